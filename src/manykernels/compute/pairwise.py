"""Inner products and squared distances between the rows of two matrices, dense or sparse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from manykernels.compute.compiled import njit

# Up to this number of columns, differences cost no more than a product of matrices.
_FEW_COLUMNS = 8
# A distance below this part of |x|^2 + |z|^2 has lost digits to cancellation.
_CANCELS = 2.0**-6
# Ratios beyond this cannot be squared.
_LARGEST_RATIO = 1e150


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
    """Return |x_i - z_j|^2 for all rows, as an array of shape (n, l).

    They are exact to the rounding of the data: 0 for equal rows, and the same in both directions. Those that leave the
    range of float64 are 0 or infinite; :func:`scaled_distances` has them in a unit of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.pairwise import squared_distances
    >>> squared_distances(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0]]))
    array([[ 0.],
           [25.]])
    """
    D, unit = scaled_distances(X, Z)
    with np.errstate(over="ignore", under="ignore"):
        for factor in (unit * unit,) if 1e-150 < unit < 1e150 else (unit, unit):
            D *= factor
    return D


def scaled_distances(X: Any, Z: Any) -> tuple[np.ndarray, float]:
    """Return squared distances in units of ``unit**2``, and ``unit``: a power of two near the spread of the data.

    So they are of the order of 1 for data of any scale, and the ratio of a distance and a kernel's width can be formed
    before anything is squared or rounded.

    For few columns, differences are squared and added. For more, |x|^2 + |z|^2 - 2 x'z is faster, with both sides
    shifted by the mean of Z (dense data); where it cancels, the differences are taken after all.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.pairwise import scaled_distances
    >>> D, unit = scaled_distances(np.array([[0.0], [3e200]]), np.array([[0.0]]))
    >>> np.sqrt(D.ravel()) * unit / 1e200
    array([0., 3.])
    """
    if sp.issparse(X) or sp.issparse(Z):
        return _sparse_distances(_sorted(X), _sorted(Z))
    if X.shape[1] <= _FEW_COLUMNS:
        return _distances_of_few(X, Z)
    before = 1.0
    if _size(X, Z) > _LARGEST_RATIO:  # differences of them might overflow
        before = power_of_two(_size(X, Z))
        X, Z = X / before, Z / before
    shift = Z.mean(axis=0) if Z.shape[0] else 0.0
    left, right = X - shift, Z - shift
    unit = power_of_two(_size(left, right))
    left *= 1.0 / unit
    right *= 1.0 / unit
    D = left @ right.T
    _to_distances(D, row_square_norms(left), row_square_norms(right), left, right)
    return D, unit * before


def _distances_of_few(X: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the scaled distances of few columns; blocks of them are small, so that each call on an array counts."""
    before, X, columns = 1.0, np.ascontiguousarray(X), np.ascontiguousarray(Z.T)
    size, spread = _size_and_spread(X, columns)
    if _LARGEST_RATIO < size < math.inf:  # differences of them might overflow
        before = power_of_two(size)
        X, columns = X / before, columns / before
        size, spread = _size_and_spread(X, columns)
    unit = power_of_two(spread if size < math.inf else 1.0)
    D = np.empty((X.shape[0], Z.shape[0]))
    _difference_squares(X, columns, 1.0 / unit, D)
    return D, unit * before


def gaussian_rate(width: float, unit: float = 1.0) -> float:
    """Return the r with exp(-r D) = exp(-distance^2 / (2 width^2)), for squared distances D in units of ``unit**2``.

    A ratio of width and unit that cannot be squared is put at the end of the range: the kernel is 1, or 0 but for equal
    samples, all the same.

    Examples
    --------
    >>> from manykernels.compute.pairwise import gaussian_rate
    >>> gaussian_rate(2.0), gaussian_rate(1e200, 1e200), gaussian_rate(5e-324) < float("inf")
    (0.125, 0.5, True)
    """
    ratio = min(float(unit) / float(width), _LARGEST_RATIO)  # Python's own numbers: once for each kernel and block
    return 0.5 * ratio * ratio


def gaussian_rates(widths: np.ndarray, unit: float | np.ndarray = 1.0) -> np.ndarray:
    """Return :func:`gaussian_rate` of many widths.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.pairwise import gaussian_rates
    >>> gaussian_rates(np.array([1.0, 2.0]))
    array([0.5  , 0.125])
    """
    with np.errstate(over="ignore", under="ignore"):
        ratios = np.minimum(unit / np.asarray(widths, dtype=np.float64), _LARGEST_RATIO)
        return 0.5 * ratios * ratios


def power_of_two(size: float) -> float:
    """Return a power of two that is about as large as a positive number, 1 for 0: a scale that rounds nothing.

    Examples
    --------
    >>> from manykernels.compute.pairwise import power_of_two
    >>> power_of_two(5.0), power_of_two(0.3), power_of_two(0.0)
    (4.0, 0.25, 1.0)
    """
    return math.ldexp(1.0, min(max(math.frexp(size)[1] - 1, -1000), 1000)) if size > 0 else 1.0


def _size(*parts: np.ndarray) -> float:
    """Return the largest absolute value, 0 if there are none; a NaN or an infinity counts as 1."""
    largest = max((max(float(part.max()), -float(part.min())) for part in parts if part.size), default=0.0)
    return largest if np.isfinite(largest) else 1.0


def _sorted(A: Any) -> Any:
    """Return the matrix in rows with sorted columns, each of them once."""
    A = A.tocsr() if sp.issparse(A) else sp.csr_array(A)
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    return A


def _sparse_distances(X: Any, Z: Any) -> tuple[np.ndarray, float]:
    unit = power_of_two(_size(X.data, Z.data))
    X, Z = X * (1.0 / unit), Z * (1.0 / unit)
    D = np.ascontiguousarray(dense(X @ Z.T), dtype=np.float64)
    left, right = (X.data, X.indices, X.indptr), (Z.data, Z.indices, Z.indptr)
    _to_sparse_distances(D, row_square_norms(X), row_square_norms(Z), *left, *right)
    return D, unit


@njit(cache=True, nogil=True)
def _size_and_spread(X, columns):
    """Return the largest absolute value in X and ``columns``, and the longest range of a column; a NaN has none."""
    size, spread = 0.0, 0.0
    for k in range(columns.shape[0]):
        low, high = np.inf, -np.inf
        for i in range(X.shape[0]):
            low, high = min(low, X[i, k]), max(high, X[i, k])
        for value in columns[k]:
            low, high = min(low, value), max(high, value)
        size, spread = max(size, high, -low), max(spread, high - low)
    return size, spread


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _difference_squares(X: np.ndarray, columns: np.ndarray, factor: float, D: np.ndarray) -> None:
    """Write the squares of factor |x - z| to D, for the rows of X and of Z, whose transpose is ``columns``."""
    for i in range(X.shape[0]):
        row = D[i]
        row[:] = 0.0
        for k in range(X.shape[1]):
            x, others = X[i, k], columns[k]
            for j in range(row.size):
                difference = factor * (x - others[j])
                row[j] += difference * difference


@njit(cache=True, nogil=True)
def _to_distances(products: np.ndarray, left: np.ndarray, right: np.ndarray, X: np.ndarray, Z: np.ndarray) -> None:
    """Turn inner products into squared distances in place, given the squared norms."""
    for i in range(left.size):
        row, norm = products[i], left[i]
        for j in range(right.size):
            row[j] = norm + right[j] - 2.0 * row[j]  # a NaN stays one
        for j in range(right.size):
            if row[j] < _CANCELS * (norm + right[j]):
                total = 0.0
                for k in range(X.shape[1]):
                    total += (X[i, k] - Z[j, k]) * (X[i, k] - Z[j, k])
                row[j] = total


@njit(cache=True, nogil=True)
def _to_sparse_distances(products, left, right, data, indices, ends, data_z, indices_z, ends_z):
    """Turn inner products of sparse rows into squared distances in place, given the squared norms."""
    for i in range(left.size):
        row, norm = products[i], left[i]
        for j in range(right.size):
            row[j] = norm + right[j] - 2.0 * row[j]
            if row[j] < _CANCELS * (norm + right[j]):
                row[j] = _sparse_distance(
                    data[ends[i] : ends[i + 1]],
                    indices[ends[i] : ends[i + 1]],
                    data_z[ends_z[j] : ends_z[j + 1]],
                    indices_z[ends_z[j] : ends_z[j + 1]],
                )


@njit(cache=True, nogil=True)
def _sparse_distance(x, places_x, z, places_z):
    """Return the squared distance of two sparse rows, by the differences of their entries."""
    total, a, b = 0.0, 0, 0
    while a < x.size or b < z.size:
        if b == z.size or (a < x.size and places_x[a] < places_z[b]):
            total += x[a] * x[a]
            a += 1
        elif a == x.size or places_z[b] < places_x[a]:
            total += z[b] * z[b]
            b += 1
        else:
            total += (x[a] - z[b]) * (x[a] - z[b])
            a, b = a + 1, b + 1
    return total


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
            x, distance_sum, others = columns[k, i], 0.0, columns[k, i + 1 :]
            for j in range(others.size):
                distance_sum += buffer[j] * (x - others[j]) * (x - others[j])
            spread[k] += distance_sum
    return total
