"""Newton steps in the weights alone: the optimum of the oracle, its Hessian, its way out of trouble."""

import numpy as np
import pytest

from manykernels.losses import Cox, Hinge, Logistic
from manykernels.norms import LpNorm
from manykernels.outer.automatic import automatic
from manykernels.outer.curvature import of_task
from manykernels.outer.newton import newton
from manykernels.outer.reduced_newton import REDUCED_NEWTON, reduced_newton
from manykernels.problem import Problem
from tests.outer.test_newton import LOSSES, naive_gap, problem_of, sonar_like
from tests.reference.oracle import random_problem, solve_dual


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", [1.0, 1.001, 1.1, 4 / 3, 2.0, 4.0])
@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=[loss.name for loss, _ in LOSSES])
def test_reaches_the_optimum(loss, task, p, fit_intercept):
    grams, y = random_problem(30, 6, seed=1, task=task)
    problem = problem_of(grams, y, loss, p, fit_intercept=fit_intercept)
    result = reduced_newton(problem, tol=1e-6)
    optimum, _ = solve_dual(grams, y, 1.0, loss.name, p, fit_intercept)
    assert result.converged
    assert result.certificate.primal == pytest.approx(optimum, rel=2e-6)
    assert abs(naive_gap(problem, grams, result)) <= 1.1e-6


@pytest.mark.parametrize("C", [1e-4, 1e6])
@pytest.mark.parametrize("p", [1.0, 1.001, 2.0])
@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=[loss.name for loss, _ in LOSSES])
def test_hostile_settings(loss, task, p, C, monkeypatch):
    """Duplicates, a constant kernel, tiny and huge C: where it ends too early, auto goes on from there."""
    grams, y = random_problem(40, 6, seed=4, task=task)
    grams = [*grams, grams[0].copy(), np.ones((40, 40)), grams[2].copy()]
    problem = problem_of(grams, y, loss, p, C)
    monkeypatch.setattr("manykernels.outer.automatic._steps_in_weights", lambda norm, sizes, loss: True)
    result = automatic(problem, tol=1e-4)
    assert result.converged
    assert -1e-9 <= naive_gap(problem, grams, result) <= 1.01e-4


@pytest.mark.parametrize("p", [1.0, 1.5])
def test_several_tasks_share_their_weights(p):
    grams, Y = random_problem(36, 5, seed=2, n_tasks=3)
    targets = np.where(Y.argmax(axis=0) == np.arange(3)[:, None], 1.0, -1.0)
    result = reduced_newton(problem_of(grams, targets, Hinge(), p), tol=1e-6)
    optimum, _ = solve_dual(grams, targets, 1.0, "hinge", p)
    assert result.certificate.primal == pytest.approx(optimum, rel=2e-6)


@pytest.mark.parametrize("p", [1.0, 1.1])
@pytest.mark.parametrize("C", [1.0, 100.0, 1000.0])
def test_same_objective_as_the_interior_point(C, p):
    bank, y = sonar_like()
    problem = Problem(bank, Hinge(), LpNorm(p), y, np.full(y.shape, C))
    first, second = reduced_newton(problem, tol=1e-6), newton(problem, tol=1e-6)
    assert first.converged
    assert first.certificate.primal == pytest.approx(second.certificate.primal, rel=2e-6)
    if p == 1:
        assert np.count_nonzero(first.weights) <= 40


@pytest.mark.parametrize("loss", [Hinge(), Logistic(), Cox()], ids=lambda loss: loss.name)
def test_the_hessian_is_that_of_the_objective(loss):
    """Against second differences of the optimal value, found by exact inner solves."""
    grams, y = random_problem(30, 4, seed=3)
    y = y if loss.elementwise else y * np.arange(1, 31)  # events and times
    problem = problem_of(grams, y, loss, 1.0)
    weights = np.array([0.4, 0.3, 0.2, 0.1])

    def value(d):
        return problem.solve(problem.bank.combine(d), tol=1e-12).objective

    K = problem.bank.combine(weights)
    machine = problem.solve(K, tol=1e-12)
    products = problem.bank.matvecs(machine.beta[0], on_support=True)
    found = of_task(problem, K.array, machine, products, 0, mu=0.0).hessian
    step = 3e-4
    for k in range(4):
        for j in range(4):
            a, b = step * np.eye(4)[k], step * np.eye(4)[j]
            corners = value(weights + a + b) - value(weights + a - b) - value(weights - a + b) + value(weights - a - b)
            assert found[k, j] == pytest.approx(corners / (4 * step**2), rel=2e-2, abs=1e-3 * np.abs(found).max())


def test_warm_start_and_rounds():
    bank, y = sonar_like()
    problem = Problem(bank, Hinge(), LpNorm(1.0), y, np.full(y.shape, 10.0))
    cold = reduced_newton(problem, tol=1e-6)
    warm = reduced_newton(problem, tol=1e-6, start=cold.weights)
    assert warm.n_iter == 1
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-6)
    once = reduced_newton(problem, tol=1e-9, max_iter=1)
    assert once.n_iter == 1
    assert not once.converged


def test_infinite_p_is_refused():
    bank, y = sonar_like(n=40)
    with pytest.raises(TypeError, match="finite p"):
        REDUCED_NEWTON(Problem(bank, Hinge(), LpNorm(np.inf), y, np.ones(y.shape)))
