"""Many tasks that share their weights: what is left out changes nothing, and nothing grows with their number."""

import tracemalloc

import numpy as np
import pytest

from manykernels import MKLRegressor
from manykernels.kernels import Gaussian, KernelBank, Linear
from manykernels.losses import Huber, Squared
from manykernels.norms import LpNorm
from manykernels.outer.automatic import AUTO
from manykernels.outer.curvature import AllTasks, TaskByTask
from manykernels.outer.fewer_tasks import fewer_tasks, restored
from manykernels.outer.reduced_newton import reduced_newton
from manykernels.problem import Problem
from tests.outer.test_newton import problem_of
from tests.reference.oracle import certificate, random_problem


def many_targets(n, n_tasks, seed=0):
    rng = np.random.default_rng(seed)
    grams, few = random_problem(n, 5, seed=seed, task="regression", n_tasks=3)
    return grams, rng.normal(size=(n_tasks, 3)) @ few + 0.5 * rng.normal(size=(n_tasks, n))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, np.inf])
def test_fewer_targets_give_what_all_give(p, fit_intercept):
    grams, Y = many_targets(20, 60)
    problem = problem_of(grams, Y, Squared(), p, fit_intercept=fit_intercept)
    fewer = fewer_tasks(problem)
    assert fewer.y.shape == (20, 20)
    result = restored(problem, fewer, AUTO(fewer, tol=1e-8), 1e-8)
    direct = AUTO(problem, tol=1e-8)
    assert result.converged
    assert result.certificate.primal == pytest.approx(direct.certificate.primal, rel=1e-7)
    np.testing.assert_allclose(result.weights, direct.weights, atol=1e-4)
    np.testing.assert_allclose(result.machine.beta, direct.machine.beta, atol=1e-4 * np.abs(direct.machine.beta).max())
    primal, dual, _ = certificate(
        grams, Y, 1.0, "squared", p, result.weights, result.machine.beta, result.machine.intercept, fit_intercept
    )
    assert [result.certificate.primal, result.certificate.dual] == pytest.approx([primal, dual], rel=1e-7)


def test_what_is_left_as_it_is():
    grams, Y = many_targets(20, 60)
    problem = problem_of(grams, Y, Huber(), 1.0)
    assert fewer_tasks(problem) is problem  # a loss that is not a square
    costs = np.ones(Y.shape)
    costs[0, 0] = 2.0
    uneven = Problem(problem.bank, Squared(), LpNorm(1), Y, costs)
    assert fewer_tasks(uneven) is uneven
    few = problem_of(grams, Y[:20], Squared(), 1.0)
    assert fewer_tasks(few) is few


def test_targets_of_any_size():
    """The product Y'Y would lose what is 1e8 times smaller than the rest; the triangle does not."""
    grams, Y = many_targets(20, 60)
    Y[30:] *= 1e-9
    problem = problem_of(grams, Y, Squared(), 1.0, C=1e4)
    fewer = fewer_tasks(problem)
    machine, direct = (
        fewer.solve(problem.bank.combine(np.full(5, 0.2))),
        problem.solve(problem.bank.combine(np.full(5, 0.2))),
    )
    assert machine.objective == pytest.approx(direct.objective, rel=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_shared_curvature_is_the_sum_of_the_curvatures_of_the_tasks(fit_intercept):
    grams, Y = many_targets(25, 40)
    problem = problem_of(grams, Y, Squared(), 1.0, C=3.0, fit_intercept=fit_intercept)
    K = problem.bank.combine(np.array([0.3, 0.3, 0.2, 0.1, 0.1]))
    machine = problem.solve(K)
    products = np.array([problem.bank.matvecs(beta) for beta in machine.beta])
    expected = TaskByTask(problem, K.array, machine, products, 0.0).hessian
    shared = AllTasks(problem, K.array, machine).hessian
    np.testing.assert_allclose(shared, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("p", [1.0, 1.1])
def test_second_order_steps_of_many_tasks(p):
    grams, Y = many_targets(30, 60)
    problem = problem_of(grams, Y, Squared(), p, C=10.0)
    result = reduced_newton(problem, tol=1e-7)
    assert result.converged
    assert result.n_inner_solves < 40


def test_memory_does_not_grow_with_the_products_of_outputs_and_kernels():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 4)), rng.normal(size=(60, 4000))
    kernels = KernelBank([Gaussian(w, columns=[j]) for j in range(4) for w in (0.5, 1.0, 2.0)] + [Linear()])
    for norm in (1.0, 2.0):
        MKLRegressor(kernels, norm=norm).fit(X, Y[:, :100])  # what is compiled and imported is not counted
        tracemalloc.start()
        model = MKLRegressor(kernels, norm=norm).fit(X, Y)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert model.converged_
        assert most < 13 * Y.nbytes  # the products would be as many as kernels, and more than once
