"""The choice of the optimizer, and runs that go from one to the other."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import manykernels.outer.automatic as choice
from manykernels.banks.packed import PackedBank
from manykernels.core.progress import listen
from manykernels.losses import Hinge
from manykernels.norms import LpNorm
from manykernels.outer.automatic import automatic
from manykernels.outer.group_lasso import GROUP_LASSO, group_lasso
from manykernels.outer.multilevel import multilevel_newton
from manykernels.outer.newton import NEWTON, newton
from manykernels.problem import Problem
from tests.outer.test_newton import sonar_like


def problem_with(p, C=10.0):
    bank, y = sonar_like(n=60)
    return Problem(bank, Hinge(), LpNorm(p), y, np.full(y.shape, C))


class Sized:
    """A problem of which only the sizes are looked at."""

    def __init__(self, p, n_samples, n_kernels):
        self.norm, self.loss, self.y = LpNorm(p), Hinge(), np.empty((1, n_samples))
        sizes = {"n_kernels": n_kernels, "coarse_size": None, "spare": None}
        self.bank = type("Bank", (), {"can": PackedBank.can, **sizes})


@pytest.mark.parametrize(
    ("p", "n", "m", "expected"),
    [
        (1.0, 100, 50, [newton]),
        (1.1, 200, 800, [newton]),
        (1.0, 2000, 50, [multilevel_newton, newton]),
        (1.0, 10_000, 50, [multilevel_newton, group_lasso]),
        (2.0, 100, 50, [group_lasso, newton]),
        (2.0, 5000, 50, [multilevel_newton, group_lasso, newton]),
        (2.0, 5000, 800, [group_lasso, newton]),
        (4.0, 10_000, 50, [group_lasso]),
        (np.inf, 100, 50, [group_lasso]),
    ],
)
def test_what_is_tried_in_which_order(p, n, m, expected):
    assert [method.run for method in choice._methods(Sized(p, n, m))] == expected


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_run_that_goes_from_one_method_to_the_next(C, monkeypatch):
    """Whichever way it ends, it is the same optimum, and the trace and the counts tell of both parts."""
    problem = problem_with(1.0, C)
    optimum = newton(problem, tol=1e-6).certificate.primal
    short = partial(group_lasso, tol=1e-5)
    trial = lambda problem, tol, max_iter, start: short(problem, max_iter=3, start=start)  # noqa: E731
    monkeypatch.setattr(choice, "_methods", lambda problem: [trial, newton])
    heard = []
    with listen(heard.append):
        result = automatic(problem, tol=1e-5)
    assert result.converged
    assert result.n_iter > 3
    assert result.certificate.primal == pytest.approx(optimum, rel=2e-5)
    assert len(result.trace) == result.n_iter == len(heard)
    assert [step.iteration for step in result.trace] == list(range(1, result.n_iter + 1))
    assert np.all(np.diff([step.seconds for step in result.trace]) >= 0)


def test_max_iter_counts_both_parts(monkeypatch):
    monkeypatch.setattr(choice, "_HEAVY", 0.0)
    result = automatic(problem_with(1.0, 1000.0), tol=1e-12, max_iter=5)
    assert not result.converged
    assert result.n_iter <= 5


def test_where_rounding_alone_is_left_no_other_method_is_tried(monkeypatch):
    """Another method has no more digits; one that merely ended early is followed by the next."""
    problem, tried = problem_with(2.0), []

    def ends(name, rounding, tol):
        def method(problem, **options):
            tried.append(name)
            result = group_lasso(problem, **options | {"tol": tol})
            return replace(result, certificate=replace(result.certificate, rounding=rounding), converged=False)

        return method

    for rounding, tol, expected in ((1e-2, 1e-4, ["first"]), (0.0, 0.9, ["first", "second"])):
        tried.clear()
        methods = [ends("first", rounding, tol), ends("second", 0.0, 1e-4)]
        monkeypatch.setattr(choice, "_methods", lambda problem, methods=methods: methods)
        automatic(problem, tol=5e-4)
        assert tried == expected


@pytest.mark.parametrize("solver", [NEWTON, GROUP_LASSO], ids=["newton", "group_lasso"])
def test_a_missing_capability_is_named_before_any_work(solver):
    class Family:
        can = frozenset(
            {"coefficients", "combine", "matvecs", "subset", "peaks", "inner_products", "largest_diagonals"}
        )

    problem = problem_with(1.0)
    with pytest.raises(TypeError, match=r"needs kernels that offer quad_forms"):
        solver(Problem(Family(), problem.loss, problem.norm, problem.y, problem.C))
