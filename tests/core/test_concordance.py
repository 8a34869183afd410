"""Harrell's index against all pairs, one by one."""

import numpy as np
import pytest

from manykernels.core.censored_times import Survival
from manykernels.core.concordance import concordance_index
from tests.reference import cox_oracle


@pytest.mark.parametrize("n", [2, 3, 7, 16, 33, 100])
@pytest.mark.parametrize("seed", range(4))
def test_is_that_of_all_pairs(n, seed):
    rng = np.random.default_rng(seed)
    event, time = rng.random(n) < 0.6, rng.integers(0, max(2, n // 3), n).astype(float)
    event[0], time[0], time[1] = True, 0.0, 1.0
    risk, weight = np.round(rng.standard_normal(n), 1), rng.uniform(0.1, 2.0, n)
    expected = cox_oracle.concordance(event, time, risk, weight)
    assert concordance_index(Survival(event, time), risk, weight) == pytest.approx(expected, rel=1e-12)
    alike = concordance_index(Survival(event, time), risk)
    assert alike == pytest.approx(cox_oracle.concordance(event, time, risk, np.ones(n)), rel=1e-12)
    assert concordance_index(Survival(event, time), -risk) == pytest.approx(1 - alike, rel=1e-12)


def test_ties():
    """An event is comparable with who was censored at its time, not with another event; nearly equal risks tie."""
    both = Survival(np.array([True, True, False]), np.array([1.0, 1.0, 1.0]))
    assert concordance_index(both, np.array([2.0, 0.0, 1.0])) == 0.5
    assert concordance_index(both, np.array([1.0 + 1e-9, 1.0 - 1e-9, 1.0])) == 0.5
    assert concordance_index(both, np.array([1.0 + 1e-7, 1.0, 1.0])) == 0.75


@pytest.mark.parametrize("event", [[False, False], [True, True], [False, True]])
def test_without_comparable_pairs_there_is_none(event):
    time = np.array([1.0, 1.0] if all(event) else [1.0, 2.0])
    with pytest.raises(ValueError, match="no comparable pairs"):
        concordance_index(Survival(np.array(event), time), np.zeros(2))
