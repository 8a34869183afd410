"""The solver for a kernel on a device against the one that has the whole matrix."""

import numpy as np
import pytest

from manykernels.inner import device_smo, smo
from tests.inner.test_smo import KERNELS, assert_feasible, noisy_labels, points, regression_target, violation


class OnDevice:
    """A matrix in memory that pretends to be far away; ``rounds`` as single precision does."""

    def __init__(self, K, rounds=False):
        self.K, self.n_samples, self.rounds, self.n_blocks = K, K.shape[0], rounds, 0
        self.unit_roundoff = 2.0**-24 if rounds else 2.0**-53

    def _rounded(self, values):
        return values.astype(np.float32).astype(float) if self.rounds else values

    def diagonal(self):
        return self.K.diagonal().copy()

    def product(self, beta):
        return self._rounded(beta @ self.K)

    def block(self, rows):
        self.n_blocks += 1
        return self.K[np.ix_(rows, rows)].copy()

    def columns_product(self, columns, change):
        return self._rounded(self.K[:, columns] @ change)


@pytest.fixture(autouse=True)
def small_working_sets(monkeypatch):
    monkeypatch.setattr(device_smo, "_WORKING_SET", 20)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e3])
@pytest.mark.parametrize("kernel", list(KERNELS))
def test_hinge_reaches_the_solver_with_the_whole_matrix(kernel, C, intercept):
    X = points(150)
    K, y = KERNELS[kernel](X), noisy_labels(X)
    box = np.minimum(0.0, C * y), np.maximum(0.0, C * y)
    expected = smo.solve_box(K, y, *box, intercept=intercept, tol=1e-5)
    found = device_smo.solve_blocks(OnDevice(K), y, *box, intercept=intercept, tol=1e-4)
    assert_feasible(found.beta, *box, intercept=intercept)
    assert np.allclose(found.gradient, K @ found.beta - y, rtol=0, atol=1e-9 * (1 + C))
    value = [y @ s.beta - 0.5 * s.beta @ K @ s.beta for s in (expected, found)]
    assert value[1] >= value[0] - 1e-3 * abs(value[0])
    if found.converged:
        assert violation(K, y, *box, found.beta, intercept=intercept) <= 1.01e-4
    else:
        assert C == 1e3  # so few samples at a time crawl there


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 100.0])
def test_regression_reaches_the_solver_with_the_whole_matrix(epsilon, intercept):
    X = points(150)
    K, y = KERNELS["narrow"](X), regression_target(X)
    box = np.full(150, -10.0), np.full(150, 10.0)
    expected = smo.solve_box(K, y, *box, epsilon=epsilon, intercept=intercept, tol=1e-6)
    found = device_smo.solve_blocks(OnDevice(K), y, *box, epsilon=epsilon, intercept=intercept, tol=1e-4)
    assert found.converged
    value = [y @ s.beta - epsilon * np.abs(s.beta).sum() - 0.5 * s.beta @ K @ s.beta for s in (expected, found)]
    assert value[1] == pytest.approx(value[0], rel=1e-3, abs=1e-6)


def test_a_warm_start_at_the_solution_asks_for_no_block():
    X = points(150)
    K, y = KERNELS["narrow"](X), noisy_labels(X)
    box = np.minimum(0.0, y), np.maximum(0.0, y)
    first = device_smo.solve_blocks(OnDevice(K), y, *box, tol=1e-3)
    again = OnDevice(K)
    assert np.array_equal(device_smo.solve_blocks(again, y, *box, start=first.beta, tol=1e-3).beta, first.beta)
    assert again.n_blocks == 0


def test_rounding_ends_the_solver():
    """A tolerance below the rounding of the products is not reached, and the solver does not turn forever."""
    X = points(150)
    K, y = KERNELS["narrow"](X), noisy_labels(X)
    box = np.minimum(0.0, y), np.maximum(0.0, y)
    found = device_smo.solve_blocks(OnDevice(K, rounds=True), y, *box, tol=1e-13)
    assert not found.converged
    assert violation(K, y, *box, found.beta, intercept=True) < 1e-4
