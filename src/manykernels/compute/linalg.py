"""Parts of matrices, sums of them, and factorizations that forgive rounding."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor

from manykernels.compute.compiled import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}
# Parts of the mean diagonal that are added, one after the other, until a matrix can be factored.
JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)


def cholesky_factor(A: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return scipy's Cholesky factor of a symmetric matrix that is positive definite up to rounding.

    Where the factorization fails, a growing multiple of the mean diagonal is added: what is solved with it is then
    inexact, which a certificate shows.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.linalg import cholesky_factor
    >>> cholesky_factor(np.ones((2, 2)) - 1e-17 * np.eye(2))[1] in (True, False)
    True
    """
    level = float(np.mean(np.abs(A.diagonal())))
    for jitter in JITTERS:
        try:
            raised = np.array(A.T, order="F")  # in the order that LAPACK wants, so that it takes no copy of its own
            if jitter:
                raised[np.diag_indices_from(raised)] += jitter * level
            return cho_factor(raised, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
    raise LinAlgError(f"a matrix of order {A.shape[0]} is far from positive definite")


def independent_rows(A: np.ndarray, cut: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of rows that those before do not span, and the Cholesky factor of their block.

    Rows are taken in order, and no library is asked: the result is the same on every machine, up to rounding.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Symmetric and positive semidefinite up to rounding.
    cut : float
        A row is spanned if less than this part of its diagonal is left.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.linalg import independent_rows
    >>> independent_rows(np.array([[4.0, 4.0, 0.0], [4.0, 4.0, 0.0], [0.0, 0.0, 9.0]]), 1e-10)
    (array([0, 2]), array([[2., 0.],
           [0., 3.]]))
    """
    rows = np.zeros(A.shape)
    kept = _eliminate(np.ascontiguousarray(A, dtype=np.float64), cut, rows)
    return kept, rows[kept, : kept.size]


@njit(cache=True, nogil=True)
def _eliminate(A: np.ndarray, cut: float, rows: np.ndarray) -> np.ndarray:
    kept = np.empty(A.shape[0], np.int64)
    count = 0
    for i in range(A.shape[0]):
        own, rest = rows[i], A[i, i]
        for k in range(count):
            other, total = rows[kept[k]], A[i, kept[k]]
            for j in range(k):
                total -= own[j] * other[j]
            own[k] = total / other[k]
            rest -= own[k] * own[k]
        if rest > cut * A[i, i] and rest > 0.0:
            own[count] = np.sqrt(rest)
            kept[count] = i
            count += 1
    return kept[:count]


@njit(cache=True, nogil=True)
def copy_block(K: np.ndarray, keep: np.ndarray, out: np.ndarray) -> None:
    """Write K[keep][:, keep] to ``out``; for compiled code."""
    for a in range(keep.size):
        row = K[keep[a]]
        for b in range(keep.size):
            out[a, b] = row[keep[b]]


def principal_block(K: np.ndarray, keep: np.ndarray, dtype: type = np.float64) -> np.ndarray:
    """Return K[keep][:, keep] as a matrix of its own; many times faster than indexing.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.linalg import principal_block
    >>> principal_block(np.arange(9.0).reshape(3, 3), np.array([0, 2]))
    array([[0., 2.],
           [6., 8.]])
    """
    out: np.ndarray = np.empty((keep.size, keep.size), dtype)
    copy_block(K, keep, out)
    return out


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_scaled(block: np.ndarray, factor: float, out: np.ndarray) -> None:
    """Add factor * block to ``out`` in place; give the factor the type of ``out``, which the sums then have."""
    for i in range(block.shape[0]):
        source, target = block[i], out[i]
        for j in range(source.size):
            target[j] += factor * source[j]


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_row_sum(block: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
    """Add coefficients @ block to ``out`` in place, in double precision, without the rows of coefficient 0."""
    for i in range(block.shape[0]):
        if coefficients[i] != 0.0:
            source, factor = block[i], coefficients[i]
            for j in range(source.size):
                out[j] += factor * source[j]
