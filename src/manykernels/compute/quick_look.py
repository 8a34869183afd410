"""One look at a square matrix: what can be seen of it by reading it about once.

A matrix is multiplied with one vector of random signs from both sides while its rows go by, which shows whether it is
symmetric; then a few steps of Lanczos' method go on from there, and a principal block of a hundred rows is factored.
The two see different things: a block has the small eigenvalues of a similarity that is no kernel, and Lanczos' method
finds one that stands alone, whatever the block.

None gives a false alarm: an eigenvalue of a principal block, and one of the small matrix of Lanczos' method, is never
below the smallest of the whole matrix.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.linalg.lapack import dpotrf

from manykernels.compute.linalg import copy_block
from manykernels.compute.threads import one_blas_thread

_STEPS = 4  # of Lanczos' method: each reads the matrix once more, small ones from the cache
_BLOCK = 100  # rows of the principal block: to factor it takes no longer than to read a few hundred rows
_SPANNED = 1e-12  # beside the diagonal: what is shorter is rounding
_SINGLE = 1e-6  # float32 rounds by a tenth of this
_COLUMNS = 1024  # read at a time: the vectors beside them stay in the cache
_SUMS = {"reassoc", "contract", "nsz", "arcp"}


class Look(NamedTuple):
    """What was seen.

    Attributes
    ----------
    finite : bool
        Whether all entries are numbers; if not, nothing else holds.
    skew : float
        The largest difference of K s and K's for random signs s: that of a single pair of entries, or a sum of such.
    suspect : bool
        Whether an eigenvalue is seen that is negative beyond rounding, or an entry that is larger than the diagonal
        allows.
    mark : int
        Two matrices that are the same have the same mark, others hardly ever.
    """

    finite: bool
    skew: float
    suspect: bool
    mark: int


@one_blas_thread()
def look_at(K: np.ndarray, rounding: float) -> Look:
    """Look at a square matrix of float32 or float64.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    rounding : float
        An eigenvalue may be negative by this part of the mean diagonal times n.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.quick_look import look_at
    >>> look_at(np.array([[1.0, 2.0], [2.0, 1.0]]), 1e-6)[:3]
    (True, 0.0, True)
    >>> look_at(np.array([[1.0, np.inf], [0.0, 1.0]]), 1e-6).finite
    False
    """
    K = _readable(K)
    n, signs = len(K), _signs(len(K))
    forward, backward = np.zeros(n), np.zeros(n)
    with np.errstate(over="ignore", invalid="ignore"):
        diagonal = K.diagonal().astype(np.float64)
        roots = np.sqrt(np.maximum(diagonal, 0.0) * (1.0 + _SINGLE))
        poison, excess = _read(K, signs, roots, forward, backward)
        if poison != 0.0 or not np.isfinite(forward).all():  # numbers may be too large to be summed
            return Look(bool(np.isfinite(K).all()), np.inf, True, 0)
    slack = rounding * float(np.abs(diagonal).mean()) * n
    suspect = (
        diagonal.min() < -slack
        or excess > slack
        or not _block_is_definite(K, slack)
        or (n > _BLOCK and _lanczos(K, signs, forward, float(diagonal.max())) < -slack)
    )
    skew = float(np.abs(forward - backward).max())
    return Look(True, skew, bool(suspect), zlib.crc32(forward, zlib.crc32(diagonal)))


def _lanczos(K: np.ndarray, start: np.ndarray, product: np.ndarray, unit: float) -> float:
    """Return the smallest eigenvalue of K on the space of start, K start, ...; ``product`` is K start."""
    unit = unit if unit > 0.0 else 1.0
    return unit * float(np.linalg.eigvalsh(_tridiagonal(K, start, product, unit))[0])


def _block_is_definite(K: np.ndarray, slack: float) -> bool:
    """Return whether a principal block of K has a Cholesky factor, but for rounding."""
    rows = _rows(len(K))
    block = np.empty((rows.size, rows.size))
    copy_block(K, rows, block)
    block[np.diag_indices_from(block)] += max(slack, 1e-300)
    return dpotrf(block.T, overwrite_a=True, clean=False)[1] == 0


def _readable(K: np.ndarray) -> np.ndarray:
    """Return a view that compiled code reads row by row, always of the same kind so that it is compiled once."""
    if not K.flags.c_contiguous:
        K = K.T if K.flags.f_contiguous else np.ascontiguousarray(K)
    K = K.view(np.ndarray)
    K.flags.writeable = False
    return K


@lru_cache(maxsize=8)
def _signs(n: int) -> np.ndarray:
    return np.random.default_rng(n).choice([-1.0, 1.0], n)


@lru_cache(maxsize=8)
def _rows(n: int) -> np.ndarray:
    return np.arange(n) if n <= _BLOCK else np.sort(np.random.default_rng(n).choice(n, _BLOCK, replace=False))


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _read(K, signs, roots, forward, backward):
    """Add K s and K's to the two vectors; return 0, or NaN if an entry is not finite, and how much is too large.

    The latter is the sum of |K_ij| - sqrt(K_ii K_jj) where it is positive: of 2 x 2 minors that are negative.
    """
    poison, excess = 0.0, 0.0
    for low in range(0, K.shape[0], _COLUMNS):
        high = min(low + _COLUMNS, K.shape[0])
        v, w, c = signs[low:high], backward[low:high], roots[low:high]
        for i in range(K.shape[0]):
            row, sign, root = K[i, low:high], signs[i], roots[i]
            total, own, over = 0.0, 0.0, 0.0
            for j in range(row.size):
                a = np.float64(row[j])
                total += a * v[j]
                own += a * 0.0
                w[j] += sign * a
                beyond = abs(a) - root * c[j]
                over += beyond if beyond > 0.0 else 0.0
            forward[i] += total
            poison += own
            excess += over
    return poison, excess


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _multiply(K, v, out):
    for i in range(K.shape[0]):
        row, total = K[i], 0.0
        for j in range(row.size):
            total += np.float64(row[j]) * v[j]
        out[i] = total


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _tridiagonal(K, start, product, unit):
    """Return the matrix of K / unit in the orthogonal basis that Lanczos' method makes from ``start``."""
    n = start.size
    basis, T = np.zeros((_STEPS, n)), np.zeros((_STEPS, _STEPS))
    basis[0] = start / np.sqrt(n)
    image = product / (np.sqrt(n) * unit)
    for step in range(_STEPS):
        if step > 0:
            _multiply(K, basis[step], image)
            image /= unit
        for k in range(step + 1):  # against all before, since rounding brings them back
            along = 0.0
            for j in range(n):
                along += basis[k, j] * image[j]
            for j in range(n):
                image[j] -= along * basis[k, j]
            if k == step:
                T[step, step] = along
        length = np.sqrt(np.sum(image * image))
        if step + 1 == _STEPS or length < _SPANNED:
            return T[: step + 1, : step + 1]
        T[step, step + 1] = T[step + 1, step] = length
        basis[step + 1] = image / length
    return T
