"""One look at a square matrix: what can be seen of it by reading it about once.

A matrix is multiplied with one vector of random signs from both sides while its rows go by, which shows whether it is
symmetric; then a few steps of Lanczos' method go on from there, in its leading part if the whole is larger than a
cache, and a principal block of a hundred rows is factored. The two see different things: a block has the small
eigenvalues of a similarity that is not a kernel, and Lanczos' method finds one that stands alone, whatever the block.

None gives a false alarm: an eigenvalue of a principal block, and one of the small matrix of Lanczos' method, is never
below the smallest of the whole matrix.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from manykernels.compute.compiled import njit
from manykernels.compute.threads import one_blas_thread

_STEPS = 3  # of Lanczos' method: each reads what it multiplies once more, from the cache
_LEADING = 768  # rows that it multiplies: so large a part stays in the cache
_BLOCKS = 50, 100  # rows of the principal block, at least and at most: to factor it takes as long as reading 4 n rows
_SPANNED = 1e-14  # beside the trace: what is shorter is rounding
_SINGLE = 1e-6  # float32 rounds by a tenth of this
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
    return look_at_each([K], rounding)[0]


@one_blas_thread()
def look_at_each(matrices: Sequence[np.ndarray], rounding: float) -> list[Look]:
    """Look at square matrices of the same size: their principal blocks are factored together.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.quick_look import look_at_each
    >>> [look.suspect for look in look_at_each([np.eye(2), np.array([[1.0, 2.0], [2.0, 1.0]])], 1e-6)]
    [False, True]
    """
    n, rows = len(matrices[0]), _rows(len(matrices[0]))
    blocks, looks = np.empty((len(matrices), rows.size, rows.size)), []
    for K, block in zip(matrices, blocks, strict=True):
        diagonal, forward = np.empty(n), np.empty(n)
        summed, skew, suspect = _survey(_readable(K), _signs(n), rows, rounding, diagonal, forward, block)
        if not summed:  # some entries are NaN, or too large to be summed
            block[:] = np.eye(rows.size)
            looks.append(Look(bool(np.isfinite(K).all()), np.inf, True, 0, diagonal))
        else:
            looks.append(Look(True, skew, suspect, zlib.crc32(forward, zlib.crc32(diagonal)), diagonal))
    if _are_definite(blocks):
        return looks
    return [
        look._replace(suspect=look.suspect or not _are_definite(block))
        for look, block in zip(looks, blocks, strict=True)
    ]


def _are_definite(blocks: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(blocks)
    except np.linalg.LinAlgError:
        return False
    return True


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
    size = min(n, max(_BLOCKS[0], min(n // 4, _BLOCKS[1])))
    return np.sort(np.random.default_rng(n).choice(n, size, replace=False))


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _read(K, signs, roots, forward, backward):
    """Write K s to ``forward``, add K's to ``backward``, and return how much is too large.

    The latter is the sum of |K_ij| - sqrt(K_ii K_jj) where it is positive: of 2 x 2 minors that are negative.
    """
    excess = 0.0
    for i in range(K.shape[0]):
        row, sign, root = K[i], signs[i], roots[i]
        total, over = 0.0, 0.0
        for j in range(row.size):
            a = np.float64(row[j])
            total += a * signs[j]
            backward[j] += sign * a
            beyond = abs(a) - root * roots[j]
            over += beyond if beyond > 0.0 else 0.0
        forward[i] = total
        excess += over
    return excess


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _multiply(K, v, out):
    """Write the product of the leading part of K, of as many rows as v has, with v."""
    for i in range(v.size):
        row, total = K[i], 0.0
        for j in range(v.size):
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
    excess = _read(K, signs, roots, forward, backward)
    if not (np.isfinite(forward).all() and np.isfinite(backward).all() and np.isfinite(level)):
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
    """Return whether K, or its leading part, has an eigenvalue below -slack on the space of start, K start, ...

    ``product`` is K start. Lanczos' method makes an orthogonal basis in which K is a tridiagonal matrix; that plus
    slack is positive definite exactly if all pivots of its elimination are positive.
    """
    n, unit = min(start.size, _LEADING), level if level > 0.0 else 1.0
    if n < start.size:
        if np.sum(start * product) < -slack * start.size:
            return True
        start, product = start[:n], np.empty(n)
        _multiply(K, start, product)
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
