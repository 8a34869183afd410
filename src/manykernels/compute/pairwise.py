"""Inner products and squared distances between the rows of two matrices, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manykernels.compute.compiled import njit


def dense(A: Any) -> np.ndarray:
    """Return a dense array of a dense or sparse matrix."""
    return A.toarray() if sp.issparse(A) else np.asarray(A)


def inner_products(X: Any, Z: Any) -> np.ndarray:
    """Return X Z' as a dense float64 array of shape (n, l)."""
    product = X @ Z.T
    return dense(product)


def row_square_norms(X: Any) -> np.ndarray:
    """Return the squared Euclidean norm of each row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)


def squared_distances(X: Any, Z: Any) -> np.ndarray:
    """Return |x_i - z_j|^2 for all rows, never negative, as an array of shape (n, l).

    One column is subtracted directly. For more, both sides are shifted by
    the mean of Z (dense data): distances do not change, and data far from
    the origin lose no digits.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.pairwise import squared_distances
    >>> squared_distances(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0]]))
    array([[ 0.],
           [25.]])
    """
    if X.shape[1] == 1:
        return (dense(X) - dense(Z).T) ** 2
    if not sp.issparse(X) and not sp.issparse(Z):
        shift = Z.mean(axis=0)
        X, Z = X - shift, Z - shift
    products = inner_products(X, Z)
    _to_distances(products, row_square_norms(X), row_square_norms(Z))
    return products


@njit(cache=True, nogil=True)
def _to_distances(products: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Turn inner products into squared distances in place, given the squared norms."""
    for i in range(left.size):
        row, own = products[i], left[i]
        for j in range(right.size):
            distance = own + right[j] - 2.0 * row[j]
            row[j] = 0.0 if distance < 0.0 else distance  # a NaN stays one


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
def scaled_gaussian_sums(
    columns: np.ndarray, rates: np.ndarray, M: np.ndarray, rows: np.ndarray, spread: np.ndarray
) -> float:
    """Return sum_ij M_ij exp(-sum_l rates_l (x_il - x_jl)^2) over j > i for the given rows i, for a symmetric M.

    ``columns`` holds the columns of the data as rows, shape (d, n). To ``spread``, shape (d,), the same sum with
    (x_il - x_jl)^2 as a factor is added.
    """
    d, n = columns.shape
    total, whole = 0.0, np.empty(n)
    for i in rows:
        buffer, weight = whole[i + 1 :], M[i, i + 1 :]
        buffer[:] = 0.0
        for k in range(d):
            x, rate, others = columns[k, i], rates[k], columns[k, i + 1 :]
            for j in range(others.size):
                buffer[j] += rate * (x - others[j]) * (x - others[j])
        for j in range(buffer.size):
            # Beyond this a double is as good as 0, and the exponential is what costs.
            buffer[j] = weight[j] * np.exp(-buffer[j]) if buffer[j] < 700.0 else 0.0
            total += buffer[j]
        for k in range(d):
            x, own, others = columns[k, i], 0.0, columns[k, i + 1 :]
            for j in range(others.size):
                own += buffer[j] * (x - others[j]) * (x - others[j])
            spread[k] += own
    return total
