"""The choice of the optimizer, and runs that go from one to the other."""

import numpy as np
import pytest

import manykernels.outer.automatic as choice
from manykernels.core.progress import listen
from manykernels.losses import Hinge
from manykernels.norms import LpNorm
from manykernels.outer.automatic import automatic, prefers_newton
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.newton import newton
from manykernels.problem import Problem
from tests.outer.test_newton import sonar_like


def problem_with(p, C=10.0):
    bank, y = sonar_like(n=60)
    return Problem(bank, Hinge(), LpNorm(p), y, np.full(y.shape, C))


@pytest.mark.parametrize(
    ("p", "n", "expected"), [(1.0, 100, True), (1.1, 100, True), (2.0, 100, False), (1.0, 10**5, False)]
)
def test_what_is_preferred(p, n, expected):
    assert prefers_newton(LpNorm(p), n) is expected


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_trial_of_the_alternation_comes_first_where_factors_are_expensive(C, monkeypatch):
    """Whichever way it ends, it is the same optimum, and the trace and the counts tell of both parts."""
    problem = problem_with(1.0, C)
    optimum = newton(problem, tol=1e-6).certificate.primal
    monkeypatch.setattr(choice, "_HEAVY", 0.0)
    heard = []
    with listen(heard.append):
        result = automatic(problem, tol=1e-5)
    assert result.converged
    assert result.certificate.primal == pytest.approx(optimum, rel=2e-5)
    assert len(result.trace) == result.n_iter == len(heard)
    assert [step.iteration for step in result.trace] == list(range(1, result.n_iter + 1))
    assert np.all(np.diff([step.seconds for step in result.trace]) >= 0)


def test_max_iter_counts_both_parts(monkeypatch):
    monkeypatch.setattr(choice, "_HEAVY", 0.0)
    result = automatic(problem_with(1.0, 1000.0), tol=1e-12, max_iter=32)
    assert not result.converged
    assert result.n_iter <= 32


@pytest.mark.parametrize("solver", [newton, group_lasso])
def test_a_missing_capability_is_named_before_any_work(solver):
    class Family:
        capabilities = frozenset({"combine", "matvecs", "subset", "peaks", "inner_products", "largest_diagonals"})

    problem = problem_with(1.0)
    with pytest.raises(TypeError, match=r"needs kernels that offer quad_forms"):
        solver(Problem(Family(), problem.loss, problem.norm, problem.y, problem.C))
