"""The fuzzer's first cases: drawn evenly, where Hypothesis stays near what it has seen.

python -m benchmarks.robust.fuzz --replay SEED
"""

import pytest

from tests.hostile.cases import case_of_seed
from tests.hostile.judge import judge
from tests.hostile.profile import TIMES, ended_after

BLOCK = 40
# Cases that went wrong once: coefficients that kept the rounding of a far larger start, an overflow of a norm, a round
# of Newton's method that repeated itself to the end, pairs of coefficients that would have taken hours, the last bit of
# what UFO-MKL takes off the targets, weights and inner products that overflow without a word.
ONCE_WRONG: dict[int, dict[str, str]] = {
    100134: {},
    100779: {},
    103744: {"loss": "epsilon_insensitive"},
    20694: {},
    50900: {"task": "regression"},
    600397: {},
    602948: {},
}


@pytest.mark.parametrize("first", range(0, 4 * BLOCK * TIMES, BLOCK))
def test_the_cases_of_seeds(first):
    found = {}
    for seed in range(first, first + BLOCK):
        with ended_after(60):
            found[seed] = "; ".join(judge(case_of_seed(seed)).faults)
    faulty = [f"seed {seed}: {faults}" for seed, faults in found.items() if faults]
    assert not faulty, "\n".join(faulty)


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_what_went_wrong_once(seed):
    with ended_after(60):
        assert not judge(case_of_seed(seed, **ONCE_WRONG[seed])).faults
