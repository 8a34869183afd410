"""The interior point on features against Newton's method, and against a cone solver."""

import cvxpy as cp
import numpy as np
import pytest

from manykernels.compute.feature_table import FeatureTable
from manykernels.inner.feature_interior import solve_interior
from manykernels.inner.feature_newton import solve_smooth
from manykernels.inner.solve import machine_of
from manykernels.losses import EpsilonInsensitive, Hinge, SquaredHinge

N, M = 150, 25


class Kernel:
    """K = Z diag(columns) Z' with random features."""

    n_samples = N

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.Z = rng.normal(size=(N, M)) * np.geomspace(1.0, 1e-3, M)
        self.columns = np.where(np.arange(M) % 5 == 4, 0.0, rng.uniform(0.1, 1.0, M))
        self.table = FeatureTable(lambda low, high: self.Z[low:high], N, M, np.float64, 10**8)
        self.y = np.where(self.Z @ (rng.normal(size=M) / np.geomspace(1.0, 1e-2, M)) > 0, 1.0, -1.0)

    def diagonal(self):
        return (self.Z**2) @ self.columns

    def vectors(self, beta):
        return beta @ self.Z

    def product(self, beta):
        return (beta @ self.Z * self.columns) @ self.Z.T


def weights(C):
    """Two samples of weight 0 among others."""
    own = C * np.random.default_rng(1).uniform(0.5, 2.0, N)
    own[[3, 70]] = 0.0
    return own


def machine(K, loss, y, C, intercept, tol, start=None):
    parts = loss.quadratic_parts(y, C)
    solution = solve_interior(K, y, parts, start=start, intercept=intercept, tol=tol)
    beta = loss.feasible(y, solution, C, intercept)
    return machine_of(loss, y[None], C[None], beta[None], K.product(beta[None]), intercept)


def optimum(K, loss, y, C, intercept):
    X, v, b = K.Z * np.sqrt(K.columns), cp.Variable(M), cp.Variable()
    f = X @ v + (b if intercept else 0.0)
    short = cp.pos(1 - cp.multiply(y, f))
    costs = {
        "hinge": lambda: C @ short,
        "squared_hinge": lambda: C @ cp.square(short),
        "epsilon_insensitive": lambda: C @ cp.pos(cp.abs(y - f) - loss.epsilon),
    }[loss.name]()
    return cp.Problem(cp.Minimize(0.5 * cp.sum_squares(v) + costs)).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), EpsilonInsensitive(0.1)], ids=repr)
def test_the_optimum_of_a_cone_solver(loss, C, intercept):
    K = Kernel(0)
    found = machine(K, loss, K.y, weights(C), intercept, 1e-7)
    assert found.objective == pytest.approx(optimum(K, loss, K.y, weights(C), intercept), rel=1e-5)
    assert found.gap <= 1e-6 * found.objective


@pytest.mark.parametrize("seed", range(4))
def test_where_newton_goes_from_wall_to_wall(seed):
    # Samples that can nearly be separated: cold, Newton's method has active samples to find one after the other.
    K, C = Kernel(seed), weights(1e6)
    found = machine(K, SquaredHinge(), K.y, C, True, 1e-6)
    assert found.gap <= 1e-4 * found.objective
    newton = solve_smooth(K, K.y, C, SquaredHinge(), tol=1e-12, max_iter=2000)
    value = machine_of(SquaredHinge(), K.y[None], C[None], newton.beta[None], K.product(newton.beta[None]), True)
    assert found.dual_objective <= value.objective * (1 + 1e-9)
    assert found.objective == pytest.approx(value.objective, rel=1e-4)


@pytest.mark.parametrize("C", [1.0, 1e6])
def test_a_start_is_no_trouble(C):
    K, loss = Kernel(2), SquaredHinge()
    first = machine(K, loss, K.y, weights(C), True, 1e-6)
    K.columns = K.columns[::-1].copy()
    cold = machine(K, loss, K.y, weights(C), True, 1e-6)
    warm = machine(K, loss, K.y, weights(C), True, 1e-6, (first.beta[0], float(first.intercept[0])))
    assert warm.objective == pytest.approx(cold.objective, rel=1e-4)


def test_one_class_needs_no_kernel():
    K, ones = Kernel(0), np.ones(N)
    found = machine(K, SquaredHinge(), ones, weights(1e6), True, 1e-6)
    assert not np.any(found.beta)
    assert found.objective <= 1e-15
