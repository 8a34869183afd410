"""Whatever is asked of the library: a true answer, or one clear sentence."""

import pytest
from hypothesis import given

from tests.hostile.cases import Case, cases, replaced, settled
from tests.hostile.judge import judge
from tests.hostile.profile import ended_after, examples

# What needs no excuse: it must be solved, to the tolerance.
TAME = {"scale": 1.0, "shift": 0.0, "solver": "auto", "C": 10.0, "weights": "none", "approximation": None, "tol": 1e-4}


def check(case: Case) -> None:
    with ended_after(60):
        faults = judge(case).faults
    assert not faults, f"{case}\n" + "\n".join(f"{name}\n{detail}" for name, detail in faults.items())


@given(case=cases(estimator="mkl", again="nothing"))
@examples(100)
def test_a_fit_is_true_or_refused(case):
    check(case)


@given(case=cases(estimator="mkl", again="nothing", **TAME))
@examples(50)
def test_what_is_not_extreme_is_solved(case):
    check(case)


@given(case=cases(estimator="mkl", again="nothing", given=True))
@examples(30)
def test_given_matrices(case):
    check(case)


@pytest.mark.parametrize("estimator", ["ufo", "two_stage", "family"])
@given(case=cases(again="nothing"))
@examples(20)
def test_other_estimators(estimator, case):
    check(settled(replaced(case, estimator=estimator)))


@pytest.mark.parametrize("again", ["permute samples", "permute kernels", "duplicate kernel", "split sample"])
@given(case=cases(estimator="mkl", scale=1.0, shift=0.0, approximation=None))
@examples(20)
def test_a_changed_fit_has_the_same_optimum(again, case):
    check(replaced(case, again=again))


@given(case=cases(estimator="mkl", task="regression", again="scale y", scale=1.0, shift=0.0))
@examples(25)
def test_scaled_targets_scale_the_optimum(case):
    check(case)
