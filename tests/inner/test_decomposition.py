"""The solver for kernels that do not fit against the one that has the whole matrix."""

import numpy as np
import pytest

from manykernels.compute.rowcache import RowCache
from manykernels.inner import decomposition, smo
from tests.inner.test_smo import KERNELS, assert_feasible, noisy_labels, points, regression_target, violation


class Rows:
    """A matrix in memory that pretends to be rows on demand."""

    def __init__(self, K, n_rows):
        self.K, self.n_samples = K, K.shape[0]
        self.cache = RowCache(self._compute, 4 * n_rows * self.n_samples)

    def _compute(self, rows, columns, out):
        out[...] = self.K[np.ix_(rows, columns)]

    def diagonal(self):
        return self.K.diagonal().copy()

    def product(self, beta):
        return self.K @ beta


def solve(K, y, lower, upper, n_rows=60, **options):
    rows = Rows(K, n_rows)
    return decomposition.solve_rows(rows, y, lower, upper, product=rows.product, **options)


@pytest.fixture(autouse=True)
def small_working_sets(monkeypatch):
    monkeypatch.setattr(decomposition, "_WORKING_SET", 20)
    monkeypatch.setattr(decomposition, "_COARSEST", 30)


@pytest.mark.parametrize("n_rows", [8, 60, 400], ids=["tiny cache", "small cache", "all rows fit"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e3])
@pytest.mark.parametrize("kernel", list(KERNELS))
def test_hinge_reaches_the_solver_with_the_whole_matrix(kernel, C, intercept, n_rows):
    X = points(150)
    K, y = KERNELS[kernel](X).astype(np.float32).astype(float), noisy_labels(X)
    box = np.minimum(0.0, C * y), np.maximum(0.0, C * y)
    expected = smo.solve_box(K, y, *box, intercept=intercept, tol=1e-5)
    found = solve(K, y, *box, n_rows=n_rows, intercept=intercept, tol=1e-4)
    assert found.converged
    assert_feasible(found.beta, *box, intercept=intercept)
    assert violation(K, y, *box, found.beta, intercept=intercept) <= 1.01e-4
    assert np.allclose(found.gradient, K @ found.beta - y, rtol=0, atol=1e-9 * (1 + C))
    value = [y @ s.beta - 0.5 * s.beta @ K @ s.beta for s in (expected, found)]
    assert value[1] >= value[0] - 1e-3 * abs(value[0])  # where single steps crawl, it may be better


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 100.0])
def test_regression_reaches_the_solver_with_the_whole_matrix(epsilon, intercept):
    X = points(150)
    K, y = KERNELS["narrow"](X).astype(np.float32).astype(float), regression_target(X)
    box = np.full(150, -10.0), np.full(150, 10.0)
    expected = smo.solve_box(K, y, *box, epsilon=epsilon, intercept=intercept, tol=1e-6)
    found = solve(K, y, *box, epsilon=epsilon, intercept=intercept, tol=1e-4)
    assert found.converged
    value = [y @ s.beta - epsilon * np.abs(s.beta).sum() - 0.5 * s.beta @ K @ s.beta for s in (expected, found)]
    assert value[1] == pytest.approx(value[0], rel=1e-3, abs=1e-6)


def test_a_warm_start_at_the_solution_computes_no_row():
    X = points(150)
    K, y = KERNELS["narrow"](X).astype(np.float32).astype(float), noisy_labels(X)
    box = np.minimum(0.0, y), np.maximum(0.0, y)
    first = solve(K, y, *box, tol=1e-3)
    rows = Rows(K, 60)
    again = decomposition.solve_rows(rows, y, *box, product=rows.product, start=first.beta, tol=1e-3)
    assert rows.cache.n_computed == 0
    assert np.array_equal(again.beta, first.beta)


def test_settled_samples_cost_no_columns():
    """Far fewer entries are computed than the matrix has, where few samples are near the margin."""
    X = np.linspace(-3, 3, 2000)[:, None] + 0.01
    y = np.sign(X[:, 0])
    rows = Rows(np.exp(-0.5 * (X - X.T) ** 2), 2000)
    found = decomposition.solve_rows(rows, y, np.minimum(0.0, y), np.maximum(0.0, y), product=rows.product, tol=1e-3)
    assert found.converged
    assert rows.cache.n_computed < 0.2 * 2000**2


def test_one_class_and_a_zero_kernel_end():
    y = np.ones(50)
    assert np.all(solve(np.eye(50), y, np.zeros(50), y).beta == 0)
    y = np.where(np.arange(50) < 10, -1.0, 1.0)
    found = solve(np.zeros((50, 50)), y, np.minimum(0.0, y), np.maximum(0.0, y))
    assert found.beta.sum() == pytest.approx(0)
    assert np.abs(found.beta).sum() == pytest.approx(20)
