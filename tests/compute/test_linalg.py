"""Factorizations: by blocks as in one piece, on any number of threads, and those that must fail."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError, cho_solve

from manykernels.compute import linalg, threads


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
