"""Newton steps on few samples first: the same optimum, and levels that would have one class only."""

import numpy as np
import pytest

import manykernels.outer.multilevel as levels
from manykernels.core.progress import listen
from manykernels.losses import Hinge
from manykernels.norms import LpNorm
from manykernels.outer.multilevel import multilevel_newton
from manykernels.outer.newton import newton
from manykernels.problem import Problem
from tests.outer.test_newton import sonar_like


def test_levels_lead_to_the_same_optimum_and_keep_silent(monkeypatch):
    monkeypatch.setattr(levels, "_COARSEST", 30)
    bank, y = sonar_like(n=150)
    problem = Problem(bank, Hinge(), LpNorm(1.0), y, np.full(y.shape, 10.0))
    assert levels._sizes(problem) == [37, 75]
    heard = []
    with listen(heard.append):
        result = multilevel_newton(problem, tol=1e-6)
    assert result.converged
    assert len(heard) == result.n_iter
    # The levels before count in the seconds of the trace.
    assert all(told.seconds > step.seconds for told, step in zip(result.trace, heard, strict=True))
    assert result.certificate.primal == pytest.approx(newton(problem, tol=1e-6).certificate.primal, rel=2e-6)


def test_a_level_without_one_of_the_classes_is_left_out(monkeypatch):
    monkeypatch.setattr(levels, "_COARSEST", 10)
    bank, y = sonar_like(n=80)
    y = np.ones_like(y)
    y[0, :5] = -1.0
    problem = Problem(bank, Hinge(), LpNorm(1.0), y, np.ones(y.shape))
    assert levels._sizes(problem) == []
    assert multilevel_newton(problem, tol=1e-4).converged


def test_kernels_without_a_tail_are_solved_on_all_samples_at_once(monkeypatch):
    """One name, one sentence: what is refused is what the method itself needs, wherever it begins."""
    monkeypatch.setattr(levels, "_COARSEST", 30)
    bank, y = sonar_like(n=150)
    bank.can = bank.can - {"tail"}
    problem = Problem(bank, Hinge(), LpNorm(1.0), y, np.full(y.shape, 10.0))
    result, plain = multilevel_newton(problem, tol=1e-3), levels.reduced_newton(problem, tol=1e-3)
    assert result.converged
    np.testing.assert_array_equal(result.weights, plain.weights)
    bank.can = bank.can - {"matvecs"}
    for solver in (levels.REDUCED_NEWTON, levels.MULTILEVEL):
        with pytest.raises(TypeError, match=r"^solver='reduced_newton' needs kernels that offer matvecs; these do not"):
            solver(problem)
