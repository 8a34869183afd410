"""Factorizations: by blocks as in one piece, on any number of threads, in the memory that is given to them."""

import tracemalloc

import numpy as np
import pytest
from scipy.linalg import LinAlgError, cho_solve

from manykernels.compute import linalg, threads
from manykernels.compute.linalg import cholesky_factor
from manykernels.inner import newton, ridge
from manykernels.losses import Logistic
from manykernels.outer.screening import _inverse


def definite(n, seed=0, dtype=np.float64):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return (A @ A.T + np.eye(n)).astype(dtype)


@pytest.fixture
def small_blocks(monkeypatch):
    """Cut matrices of any order into blocks."""
    monkeypatch.setattr(linalg, "LARGE_ORDER", 1)
    monkeypatch.setattr(linalg, "_COLUMNS", 7)
    monkeypatch.setattr(linalg, "_ROWS", 5)


@pytest.mark.parametrize("n", [1, 6, 7, 8, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("small_blocks")
def test_blocks_give_the_factor(n, dtype):
    A = definite(n, dtype=dtype)
    L = np.tril(linalg.lower_cholesky(A.copy()))
    assert L.dtype == dtype
    np.testing.assert_allclose(L, np.linalg.cholesky(A), rtol=0, atol=100 * np.finfo(dtype).eps * np.sqrt(A.max()))


def test_one_piece_gives_the_factor():
    A = definite(30)
    np.testing.assert_allclose(np.tril(linalg.lower_cholesky(A.copy())), np.linalg.cholesky(A), atol=1e-13)


@pytest.mark.usefixtures("small_blocks")
def test_only_the_lower_triangle_is_read():
    A = definite(25)
    spoiled = np.tril(A) + np.triu(np.full(A.shape, np.nan), 1)
    np.testing.assert_array_equal(np.tril(linalg.lower_cholesky(spoiled)), np.tril(linalg.lower_cholesky(A.copy())))


@pytest.mark.usefixtures("small_blocks")
def test_the_factor_does_not_depend_on_the_threads(monkeypatch):
    found = []
    for workers in (1, 2, 5):
        monkeypatch.setattr(threads, "n_threads", lambda workers=workers: workers)
        found.append(np.tril(linalg.lower_cholesky(definite(60))))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("place", [0, 11, 29])
@pytest.mark.usefixtures("small_blocks")
def test_indefinite_matrices_are_refused(place):
    A = definite(30)
    A[place, place] = -1.0
    with pytest.raises(LinAlgError):
        linalg.lower_cholesky(A)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_solve_systems():
    A, b = definite(40), np.arange(40.0)
    x = cho_solve(linalg.cholesky_factor(A), b)
    np.testing.assert_allclose(A @ x, b, atol=1e-9)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_forgive_rounding():
    """A matrix of rank one is not definite; a jitter makes it so."""
    factor, lower = linalg.cholesky_factor(np.ones((20, 20)))
    assert not lower
    np.testing.assert_allclose(np.triu(factor).T @ np.triu(factor), np.ones((20, 20)), atol=1e-3)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_fails_in_blocks_is_put_back(dtype):
    A = spd(40, 10, dtype) - dtype(1e-5) * np.eye(40, dtype=dtype)
    factor, _ = cholesky_factor(A.copy(), overwrite=True)
    np.testing.assert_array_equal(factor, cholesky_factor(A)[0])


def spd(n, rank, dtype=np.float64):
    F = np.random.default_rng(0).normal(size=(n, rank))
    return (F @ F.T / rank).astype(dtype)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [20, 80], ids=["singular", "regular"])
def test_factor_of_a_matrix_that_may_be_indefinite(overwrite, dtype, rank):
    """A singular matrix is raised a little; a failed attempt leaves nothing behind."""
    A = spd(60, rank, dtype) - dtype(1e-7) * np.eye(60, dtype=dtype) * (rank < 60)
    before = A.copy()
    factor, lower = cholesky_factor(A, overwrite=overwrite)
    U = np.triu(factor) if not lower else np.tril(factor).T
    level = 1e-4 if dtype == np.float32 else 1e-5 if rank < 60 else 1e-12  # what is raised is at the rounding
    np.testing.assert_allclose(U.T @ U, before, atol=level)
    assert overwrite or np.array_equal(A, before)
    assert np.shares_memory(factor, A) == (overwrite and rank == 80)


def test_inverse_on_the_free_samples():
    K, free = spd(40, 60), np.array([0, 3, 4, 20, 39])
    expected = np.zeros((40, 40))
    expected[np.ix_(free, free)] = np.linalg.inv(K[np.ix_(free, free)] + 0.1 * np.eye(5))
    np.testing.assert_allclose(_inverse(K.copy(), free, np.full(40, 0.1)), expected, rtol=1e-9, atol=1e-12)
    whole = np.linalg.inv(K + 0.1 * np.eye(40))
    np.testing.assert_allclose(_inverse(K.copy(), np.arange(40), np.full(40, 0.1)), whole, rtol=1e-9, atol=1e-12)
    assert not _inverse(K.copy(), free[:0], np.full(40, 0.1)).any()


@pytest.mark.parametrize("part", [1.0, 0.9], ids=["all samples", "some of weight 0"])
@pytest.mark.parametrize("solver", ["ridge", "newton"])
def test_inner_solvers_make_one_matrix_beside_the_kernel(solver, part):
    n = 800
    K, y = spd(n, 1000), np.sign(np.random.default_rng(1).normal(size=n))
    C = (np.arange(n) < part * n).astype(float)

    def solve():
        if solver == "ridge":
            return ridge.solve(K, y[None], C)
        return newton.solve(K, y, C, Logistic())

    solve()  # compiles
    tracemalloc.start()
    solve()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.2 * K.nbytes


def test_ridge_solves_its_equations():
    K, Y, C = spd(30, 40), np.random.default_rng(1).normal(size=(2, 30)), np.linspace(0.0, 3.0, 30)
    beta, b = ridge.solve(K, Y, C)
    used = C > 0
    left = beta @ K + b[:, None]
    np.testing.assert_allclose((left + beta / np.where(used, C, 1.0))[:, used], Y[:, used], atol=1e-9)
    np.testing.assert_allclose(beta.sum(axis=1), 0.0, atol=1e-9)
    assert not beta[:, ~used].any()
    assert np.allclose(cho_solve(cholesky_factor(K + np.eye(30)), Y.T), np.linalg.solve(K + np.eye(30), Y.T))


@pytest.mark.parametrize("d", [1, 3, 4, 9])
def test_rows_of_products_have_the_same_bits_alone_and_among_others(d):
    rng = np.random.default_rng(d)
    X, W, weight = 1e9 + rng.normal(size=(7, d)), rng.normal(size=(d, 11)), rng.normal(size=d)
    wide = np.zeros((14, 2 * d))
    wide[::2, ::2] = X
    alone = np.vstack([linalg.ordered_product(row[None], W) for row in X])
    sums = np.array([linalg.row_sums(row[None], weight)[0] for row in X])
    for laid_out in (X, np.asfortranarray(X), wide[::2, ::2]):
        np.testing.assert_array_equal(linalg.ordered_product(laid_out, W), alone)
        np.testing.assert_array_equal(linalg.row_sums(laid_out, weight), sums)
    np.testing.assert_array_equal(alone, _sums_in_order(X, W))
    np.testing.assert_allclose(sums, X @ weight, rtol=1e-12, atol=1e-6)


def _sums_in_order(X, W):
    total = np.zeros((len(X), W.shape[1]))
    for k in range(len(W)):
        total += X[:, k : k + 1] * W[k]
    return total


def test_the_error_of_another_order_bounds_what_blas_does():
    rng = np.random.default_rng(0)
    X, W = 1e9 + rng.normal(size=(50, 30)), rng.normal(size=(30, 20))
    apart = np.abs(X @ W - linalg.ordered_product(X, W)).max()
    assert apart <= linalg.order_error(X, np.abs(W).max(axis=1))


def test_a_factor_of_what_rounding_made_indefinite():
    rng = np.random.default_rng(3)
    F = rng.normal(size=(30, 4)) * np.array([1e7, 1e5, 1e2, 1.0])
    K, target = F @ F.T, F @ np.array([1e-7, 1e-5, 1e-2, 1.0])
    A = K + 1e-3 * np.eye(30)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(A - 1e-2 * np.eye(30))
    beta = cho_solve(cholesky_factor(A - 1e-2 * np.eye(30), least=1e-3), target)
    # What is left is of the size of the rounding of the matrix times the coefficients.
    assert np.abs(K @ beta - target).max() < 1e-15 * np.abs(K).max() * np.abs(beta).sum() + 0.02 * np.abs(beta).max()
