"""Parts of matrices, sums of them, and factorizations that forgive rounding."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, eigh, get_blas_funcs, qr

from manykernels.compute.compiled import njit
from manykernels.compute.threads import one_blas_thread, parallel
from manykernels.compute.triangles import mirror_rows
from manykernels.core.results import OVERFLOWS

_FAST = {"reassoc", "contract", "nsz", "arcp"}
# From this order on, a factorization is cut into blocks for the threads: so many columns and rows.
LARGE_ORDER = 3000
_COLUMNS, _ROWS = 192, 256


def cholesky_factor(A: np.ndarray, least: float = 0.0, *, overwrite: bool = False) -> tuple[np.ndarray, bool]:
    """Return scipy's Cholesky factor of a symmetric matrix that is positive definite up to rounding.

    Where rounding has made the matrix indefinite, the factor is that of the nearest one whose eigenvalues are at least
    ``least``, and not below the rounding either, since what is there is noise. Unlike a multiple of the identity that
    is added until the factorization works, this leaves the eigenvalues above as they are.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Symmetric, in float32 or float64.
    least : float
        What the smallest eigenvalue is at least, as the caller knows; 0 where that is not known.
    overwrite : bool
        Whether the factor may take the memory of A: else there is a second matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.linalg import cho_solve
    >>> from manykernels.compute.linalg import cholesky_factor
    >>> A = 1e6 * np.ones((2, 2)) - 1e-12 * np.eye(2)  # plus the identity, if it had not been lost
    >>> np.round(cho_solve(cholesky_factor(A, least=1.0), np.array([1.0, -1.0])), 6)
    array([ 1., -1.])
    """
    if not np.all(np.isfinite(A.diagonal())):
        raise ValueError(OVERFLOWS)
    in_place = overwrite and A.flags.c_contiguous
    diagonal = A.diagonal().copy()
    try:
        # In the order that LAPACK wants, so that it takes no copy of its own.
        factor = lower_cholesky(A if in_place else np.array(A, order="C")).T
        if np.all(np.isfinite(factor.diagonal())):
            return factor, False
    except LinAlgError:
        pass
    if in_place:
        # What failed has written to the lower triangle and the diagonal alone.
        mirror_rows(A, 0, A.shape[0])
        A[np.diag_indices_from(A)] = diagonal
    return _factor_of_nearest(A, least), False


def _factor_of_nearest(A: np.ndarray, least: float) -> np.ndarray:
    """Return the upper triangular R for which R'R is the nearest matrix with eigenvalues of at least ``least``."""
    with one_blas_thread():
        values, vectors = eigh(A)
    rounding = np.finfo(values.dtype).eps * values.size * float(max(abs(values[0]), abs(values[-1])))
    raised = np.maximum(values, max(least, rounding) or 1.0)
    # The rows of sqrt(values) V' in falling order: each is then reflected with errors of its own size.
    return qr((np.sqrt(raised)[:, None] * vectors.T)[::-1], mode="r", overwrite_a=True, check_finite=False)[0]


def lower_cholesky(A: np.ndarray) -> np.ndarray:
    """Return L with L L' = A on and below its diagonal, in place of what A, a C-ordered array, has there.

    A matrix that is large enough to pay for several cores is cut into blocks of columns: those before are subtracted
    from one by all threads, then it is factored. The blocks do not depend on the number of threads, so that the result
    does not.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Symmetric; only its lower triangle is read.

    Raises
    ------
    LinAlgError
        Where A is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.linalg import lower_cholesky
    >>> np.tril(lower_cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])))
    array([[2., 0.],
           [1., 2.]])
    """
    with one_blas_thread():
        if A.shape[0] < LARGE_ORDER:
            # Seen as columns, the lower triangle of a C-ordered array is the upper one that LAPACK fills.
            return cho_factor(A.T, lower=False, overwrite_a=True, check_finite=False)[0].T
        for start in range(0, A.shape[0], _COLUMNS):
            _factor_columns(A, start, min(start + _COLUMNS, A.shape[0]))
        return A


def _factor_columns(A: np.ndarray, start: int, stop: int) -> None:
    """Turn the columns start:stop of A into those of its factor; the ones before are already."""
    inside = np.tri(stop - start, dtype=bool)

    def subtract(low: int) -> None:
        rows = slice(low, min(low + _ROWS, A.shape[0]) if low > start else stop)
        change = A[rows, :start] @ A[start:stop, :start].T
        np.subtract(A[rows, start:stop], change, out=A[rows, start:stop], where=inside if low == start else True)

    if start > 0:
        parallel(subtract, [start, *range(stop, A.shape[0], _ROWS)])
    corner = cho_factor(A[start:stop, start:stop], lower=True, check_finite=False)[0]
    np.copyto(A[start:stop, start:stop], corner, where=inside)
    if stop < A.shape[0]:
        below = np.ascontiguousarray(A[stop:, start:stop])
        solve = get_blas_funcs("trsm", (A,))
        A[stop:, start:stop] = solve(1.0, corner, below.T, lower=1, overwrite_b=1).T


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
        row, rest = rows[i], A[i, i]
        for k in range(count):
            other, total = rows[kept[k]], A[i, kept[k]]
            for j in range(k):
                total -= row[j] * other[j]
            row[k] = total / other[k]
            rest -= row[k] * row[k]
        if rest > cut * A[i, i] and rest > 0.0:
            row[count] = np.sqrt(rest)
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


def order_error(X: np.ndarray, largest: np.ndarray) -> float:
    """Return how far apart two values of an entry of X W may be whose sums were taken in different orders.

    Each is within d u |x|'|w| of the true one, for d columns and u = 2^-53 (Higham, 2002, chapter 3), and |w| is at
    most ``largest``, the largest absolute value of each row of W, shape (d,).

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.linalg import order_error
    >>> order_error(np.array([[1e6, -1e6]]), np.ones(2)) < 1e-9
    True
    """
    with np.errstate(over="ignore"):
        return float(2.0 * X.shape[1] * 2.0**-53 * (np.abs(X) @ largest).max(initial=0.0))


def ordered_product(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return X W with every sum in the order of the columns of X.

    BLAS takes another order for one row than for many, and for rows that are not contiguous. Here a row of the product
    has the same bits alone and among others.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.linalg import ordered_product
    >>> ordered_product(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [10.0]]))
    array([[21.],
           [43.]])
    """
    out = np.zeros((X.shape[0], W.shape[1]))
    _add_in_order(np.ascontiguousarray(X, dtype=np.float64), np.ascontiguousarray(W), out)
    return out


@njit(cache=True, nogil=True)  # without "contract" and "reassoc": what is compiled keeps the order
def _add_in_order(X: np.ndarray, W: np.ndarray, out: np.ndarray) -> None:
    for i in range(X.shape[0]):
        target, k = out[i], 0
        while k + 4 <= X.shape[1]:  # four at a time take half as long
            a, b, c, d = X[i, k], X[i, k + 1], X[i, k + 2], X[i, k + 3]
            first, second, third, fourth = W[k], W[k + 1], W[k + 2], W[k + 3]
            for j in range(target.size):
                target[j] = (((target[j] + a * first[j]) + b * second[j]) + c * third[j]) + d * fourth[j]
            k += 4
        for rest in range(k, X.shape[1]):
            for j in range(target.size):
                target[j] += X[i, rest] * W[rest, j]


def row_sums(block: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return block @ weight with sums that are the same for a row alone and among others.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.linalg import row_sums
    >>> row_sums(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    out = np.empty(block.shape[0])
    _write_row_sums(np.ascontiguousarray(block, dtype=np.float64), np.ascontiguousarray(weight), out)
    return out


@njit(cache=True, nogil=True, fastmath=_FAST)  # any order does, as long as all rows have the same
def _write_row_sums(block: np.ndarray, weight: np.ndarray, out: np.ndarray) -> None:
    for i in range(block.shape[0]):
        row, total = block[i], 0.0
        for j in range(row.size):
            total += row[j] * weight[j]
        out[i] = total


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
