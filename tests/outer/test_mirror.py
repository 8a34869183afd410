"""Mirror descent on mixed norms: the optimum of Newton's method, its starts, its stops."""

import numpy as np
import pytest

from manykernels.losses import Hinge
from manykernels.norms import MixedNorm
from manykernels.outer.mirror import MirrorDescent, mirror
from manykernels.outer.newton import newton
from tests.outer.test_mixed import SINGLE, UNBALANCED, problem_of
from tests.reference.oracle import random_problem


@pytest.mark.parametrize("q", [1, 2, 3, np.inf])
def test_mirror_descent_converges_to_the_same(q):
    grams, y = random_problem(30, 6, seed=6)
    problem = problem_of(grams, y, Hinge(), MixedNorm(q, UNBALANCED))
    result = mirror(problem, tol=1e-2, max_iter=5000)
    assert result.converged
    assert result.certificate.primal == pytest.approx(newton(problem, tol=1e-6).certificate.primal, rel=1.1e-2)


@pytest.mark.parametrize("start", [np.eye(6)[5], np.eye(6)[0] + np.eye(6)[3]], ids=["a group of zeros", "zeros"])
def test_mirror_descent_raises_zeros_to_start_from(start):
    grams, y = random_problem(30, 6, seed=6)
    problem = problem_of(grams, y, Hinge(), MixedNorm(2, UNBALANCED))
    result = mirror(problem, tol=1e-2, max_iter=5000, start=start)
    assert result.converged
    assert result.certificate.primal == pytest.approx(newton(problem, tol=1e-6).certificate.primal, rel=1.1e-2)


def test_mirror_descent_by_the_relative_change_and_its_oracle():
    grams, y = random_problem(40, 6, seed=7)
    problem = problem_of(grams, y, Hinge(), MixedNorm(2, SINGLE), C=10.0)
    run = MirrorDescent(problem, problem.norm, 1e-9)
    run.solve(500, None, 1.0, 1e-4)
    assert run.settled
    assert not run.recorder.result(run.K).converged  # its gap is above the tolerance
    assert len(run.turns) < 500
    assert np.mean(run.turns) <= 5
    shares = run.recorder.weights / run.norm.sums(run.recorder.weights)[run.norm.owner]
    assert np.all(shares > 0)
    assert run.norm.sums(shares) == pytest.approx(np.ones(3))


def test_mirror_descent_does_not_overflow_or_lose_kernels():
    """A huge step: one kernel of each group takes nearly all, and the others can come back."""
    grams, y = random_problem(30, 6, seed=8)
    problem = problem_of(grams, y, Hinge(), MixedNorm(2, UNBALANCED))
    run = MirrorDescent(problem, problem.norm, 1e-3)
    with np.errstate(over="raise", invalid="raise"):
        run.solve(300, None, 200.0, None)
    assert run.recorder.gap < 0.1
