"""One look at a square matrix: what can be seen of it by reading it about once.

A matrix is multiplied with one vector of random signs from both sides while its rows go by, which shows whether it is
symmetric; then a few steps of Lanczos' method go on from there, and a principal block of a hundred rows is factored.
The two see different things: a block has the small eigenvalues of a similarity that is not a kernel, and Lanczos'
method finds one that stands alone, whatever the block.

None gives a false alarm: an eigenvalue of a principal block, and one of the small matrix of Lanczos' method, is never
below the smallest of the whole matrix.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf

from manykernels.compute.compiled import njit
from manykernels.compute.threads import one_blas_thread

_STEPS = 4  # of Lanczos' method: each reads the matrix once more, small ones from the cache
_BLOCK = 100  # rows of the principal block: to factor it takes no longer than to read a few hundred rows
_SPANNED = 1e-14  # beside the trace: what is shorter is rounding
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
    diagonal : ndarray of shape (n,)
    """

    finite: bool
    skew: float
    suspect: bool
    mark: int
    diagonal: np.ndarray


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
    n, rows = len(K), _rows(len(K))
    block, diagonal, forward = np.empty((rows.size, rows.size)), np.empty(n), np.zeros(n)
    summed, skew, suspect = _survey(K, _signs(n), rows, rounding, diagonal, forward, block)
    if not summed:  # some entries are NaN, or too large to be summed
        return Look(bool(np.isfinite(K).all()), np.inf, True, 0, diagonal)
    # Seen as columns, as LAPACK does, the lower triangle is the upper one: no copy is made.
    suspect = suspect or dpotrf(block.T, overwrite_a=True, clean=False)[1] != 0
    return Look(True, skew, suspect, zlib.crc32(forward, zlib.crc32(diagonal)), diagonal)


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
            total, zeros, over = 0.0, 0.0, 0.0
            for j in range(row.size):
                a = np.float64(row[j])
                total += a * v[j]
                zeros += a * 0.0
                w[j] += sign * a
                beyond = abs(a) - root * c[j]
                over += beyond if beyond > 0.0 else 0.0
            forward[i] += total
            poison += zeros
            excess += over
    return poison, excess


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _multiply(K, v, out):
    for i in range(K.shape[0]):
        row, total = K[i], 0.0
        for j in range(row.size):
            total += np.float64(row[j]) * v[j]
        out[i] = total


@njit(cache=True, nogil=True)
def _survey(K, signs, rows, rounding, diagonal, forward, block):
    """Do all that is cheap in one go, and write the diagonal, K s, and the principal block plus what is forgiven.

    Returns whether all sums are finite, the largest difference of K s and K's, and whether K is suspicious.
    """
    n, level = K.shape[0], 0.0
    roots, backward = np.empty(n), np.zeros(n)
    for i in range(n):
        diagonal[i] = K[i, i]
        roots[i] = np.sqrt(max(diagonal[i], 0.0) * (1.0 + _SINGLE))
        level += abs(diagonal[i]) / n
    poison, excess = _read(K, signs, roots, forward, backward)
    if not (poison == 0.0 and np.isfinite(forward).all() and np.isfinite(backward).all() and np.isfinite(level)):
        return False, np.inf, True
    slack = rounding * level * n
    for a in range(rows.size):
        for b in range(rows.size):
            block[a, b] = K[rows[a], rows[b]]
        block[a, a] += max(slack, 1e-300)
    suspect = diagonal.min() < -slack or excess > slack
    if rows.size < n and not suspect:
        suspect = _has_negative_direction(K, signs, forward, level, slack)
    return True, np.abs(forward - backward).max(), suspect


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _has_negative_direction(K, start, product, level, slack):
    """Return whether K has an eigenvalue below -slack on the space of start, K start, K K start, ...

    ``product`` is K start. Lanczos' method makes an orthogonal basis in which K is a tridiagonal matrix; that plus
    slack is positive definite exactly if all pivots of its elimination are positive.
    """
    n, unit = start.size, level if level > 0.0 else 1.0
    basis = np.zeros((_STEPS, n))
    basis[0] = start / np.sqrt(n)
    image, length, pivot = product / (np.sqrt(n) * unit), 0.0, 1.0
    for step in range(_STEPS):
        if step > 0:
            basis[step] = image / length
            _multiply(K, basis[step], image)
            image /= unit
        along = 0.0
        for k in range(step + 1):  # against all before, since rounding brings them back
            along = 0.0
            for j in range(n):
                along += basis[k, j] * image[j]
            for j in range(n):
                image[j] -= along * basis[k, j]
        pivot = along + slack / unit - length * length / pivot
        if pivot <= 0.0:
            return slack > 0.0 or pivot < 0.0
        length = np.sqrt(np.sum(image * image))
        if length < _SPANNED * n:
            break
    return False
