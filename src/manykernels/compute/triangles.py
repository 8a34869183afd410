"""Symmetric matrices kept as packed upper triangles.

Row i of the triangle holds the entries (i, i), (i, i+1), ..., (i, n-1), and
the rows follow one another, so the rows ``start`` to ``stop`` are one
contiguous *segment*. A stack of m triangles in float32 takes a quarter of
the memory of m full matrices in float64, and each pass reads it once. Sums
are accumulated in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from manykernels.compute.compiled import njit
from manykernels.compute.threads import n_threads, parallel

# Reassociation lets the compiler use vector registers for sums; NaN and infinity keep their meaning.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
# A piece of the combined segment that stays in the first-level cache while all kernels are added to it.
_CHUNK = 2048
_TILE = 64


def triangle_size(n: int) -> int:
    """Return the number of entries of the upper triangle of an n x n matrix."""
    return n * (n + 1) // 2


def row_offset(i: int, n: int) -> int:
    """Return where row i starts in the packed triangle."""
    return i * n - i * (i - 1) // 2


def row_blocks(n: int, max_entries: int) -> list[tuple[int, int]]:
    """Cut the rows of a triangle into blocks of at most ``max_entries`` entries (at least one row each)."""
    blocks, start = [], 0
    while start < n:
        stop = start + 1
        room = max_entries - (n - start)
        while stop < n and room >= n - stop:
            room -= n - stop
            stop += 1
        blocks.append((start, stop))
        start = stop
    return blocks


def balanced_blocks(n: int, max_entries: int) -> list[tuple[int, int]]:
    """Cut the rows into blocks for the threads: several a thread, so that all end together."""
    share = -(-triangle_size(n) // (4 * n_threads()))
    return row_blocks(n, max(min(share, max_entries), n))


@njit(cache=True, nogil=True, fastmath=_FAST)
def pack_rows(block: np.ndarray, out: np.ndarray) -> None:
    """Write the upper part of ``block`` (rows start:stop, columns start:n) into the segment ``out``."""
    position = 0
    for i in range(block.shape[0]):
        for j in range(i, block.shape[1]):
            out[position] = block[i, j]
            position += 1


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_block(block: np.ndarray, out: np.ndarray) -> None:
    """Add the upper part of ``block`` (rows start:stop, columns start:n) to the segment ``out``."""
    position = 0
    for i in range(block.shape[0]):
        for j in range(i, block.shape[1]):
            out[position] += block[i, j]
            position += 1


@njit(cache=True, nogil=True, fastmath=_FAST)
def write_rows(segment: np.ndarray, start: int, stop: int, out: np.ndarray) -> None:
    """Write a segment to the upper triangle of the rows start:stop of ``out``."""
    n = out.shape[0]
    position = 0
    for i in range(start, stop):
        for j in range(i, n):
            out[i, j] = segment[position]
            position += 1


@njit(cache=True, nogil=True)
def mirror_rows(out: np.ndarray, start: int, stop: int) -> None:
    """Write the lower triangle of the rows start:stop from the upper one, in tiles that stay in the cache."""
    for left in range(0, stop, _TILE):
        right = min(left + _TILE, stop)
        for top in range(max(start, left), stop, _TILE):
            bottom = min(top + _TILE, stop)
            for i in range(top, bottom):
                for j in range(left, min(right, i)):
                    out[i, j] = out[j, i]


def _tiles(n: int) -> list[tuple[int, int]]:
    """Cut rows for the threads, a few hundred rows each."""
    cuts = np.linspace(0, n, 2 + n // 256).astype(int)
    return list(pairwise(cuts.tolist()))


def mirror(out: np.ndarray) -> np.ndarray:
    """Write the lower triangle of a square matrix from the upper one, on all threads, and return the matrix."""
    parallel(lambda rows: mirror_rows(out, *rows), _tiles(out.shape[0]))
    return out


def pack_block(block: np.ndarray, start: int, triangle: np.ndarray) -> None:
    """Write the rows of a symmetric matrix from ``start`` on, whole ones, to its packed triangle, on all threads."""
    n = block.shape[1]

    def pack(rows: tuple[int, int]) -> None:
        low, high = start + rows[0], start + rows[1]
        pack_rows(block[slice(*rows), low:], triangle[row_offset(low, n) : row_offset(high, n)])

    parallel(pack, _tiles(block.shape[0]))


def add_weighted(stack: np.ndarray, weights: np.ndarray, first: int, out: np.ndarray) -> None:
    """Add ``sum_k weights[k] * stack[k, first:first+len(out)]`` to ``out``; zero weights cost nothing."""
    _add_chosen(stack, np.flatnonzero(weights), weights, first, out)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_chosen(stack: np.ndarray, chosen: np.ndarray, weights: np.ndarray, first: int, out: np.ndarray) -> None:
    size = out.shape[0]
    for low in range(0, size, _CHUNK):
        high = min(low + _CHUNK, size)
        target = out[low:high]
        for c in range(0, chosen.size - 3, 4):
            k0, k1, k2, k3 = chosen[c], chosen[c + 1], chosen[c + 2], chosen[c + 3]
            w0, w1, w2, w3 = weights[k0], weights[k1], weights[k2], weights[k3]
            r0, r1 = stack[k0, first + low : first + high], stack[k1, first + low : first + high]
            r2, r3 = stack[k2, first + low : first + high], stack[k3, first + low : first + high]
            for t in range(high - low):
                target[t] += w0 * r0[t] + w1 * r1[t] + w2 * r2[t] + w3 * r3[t]
        for c in range(chosen.size - chosen.size % 4, chosen.size):
            w0 = weights[chosen[c]]
            r0 = stack[chosen[c], first + low : first + high]
            for t in range(high - low):
                target[t] += w0 * r0[t]


@njit(cache=True, nogil=True, fastmath=_FAST)
def segment_centered_square(
    segment: np.ndarray, means: np.ndarray, total: float, weight: np.ndarray, start: int, stop: int
) -> float:
    """Return the part of ||K_c||_w^2 in rows start:stop of a packed kernel and below them, given its row means."""
    n, position, total_square = weight.size, 0, 0.0
    for i in range(start, stop):
        row, m, w = segment[position : position + n - i], means[i:], weight[i:]
        shift, row_square = means[i] - total, 0.0
        for j in range(row.size):
            row_square += w[j] * (row[j] - shift - m[j]) * (row[j] - shift - m[j])
        total_square += w[0] * (2.0 * row_square - w[0] * (row[0] - shift - m[0]) ** 2)
        position += n - i
    return total_square


@njit(cache=True, nogil=True, fastmath=_FAST)
def _quad_forms_by_fours(
    stack: np.ndarray, chosen: np.ndarray, beta: np.ndarray, start: int, stop: int, out: np.ndarray
) -> None:
    """Add parts of quadratic forms, see segment_quad_forms: the number of kernels is a multiple of four."""
    n = beta.shape[0]
    for c in range(0, chosen.size, 4):
        k0, k1, k2, k3 = chosen[c], chosen[c + 1], chosen[c + 2], chosen[c + 3]
        q0 = q1 = q2 = q3 = 0.0
        position = 0
        for i in range(start, stop):
            end = position + n - i
            bi = beta[i]
            if bi != 0.0:
                # Slices, not offsets: a loop over non-negative indices is one the compiler vectorizes.
                b = beta[i:]
                r0, r1, r2, r3 = (
                    stack[k0, position:end],
                    stack[k1, position:end],
                    stack[k2, position:end],
                    stack[k3, position:end],
                )
                s0 = s1 = s2 = s3 = 0.0
                for j in range(n - i):
                    s0 += r0[j] * b[j]
                    s1 += r1[j] * b[j]
                    s2 += r2[j] * b[j]
                    s3 += r3[j] * b[j]
                half = 0.5 * bi
                q0 += bi * (s0 - half * r0[0])
                q1 += bi * (s1 - half * r1[0])
                q2 += bi * (s2 - half * r2[0])
                q3 += bi * (s3 - half * r3[0])
            position = end
        out[c] += 2.0 * q0
        out[c + 1] += 2.0 * q1
        out[c + 2] += 2.0 * q2
        out[c + 3] += 2.0 * q3


@njit(cache=True, nogil=True, fastmath=_FAST)
def _quad_forms_one_by_one(
    stack: np.ndarray, chosen: np.ndarray, beta: np.ndarray, start: int, stop: int, out: np.ndarray
) -> None:
    """Add parts of quadratic forms, see segment_quad_forms, one kernel after the other."""
    n = beta.shape[0]
    for c in range(chosen.size):
        total = 0.0
        position = 0
        for i in range(start, stop):
            end = position + n - i
            bi = beta[i]
            if bi != 0.0:
                b = beta[i:]
                row = stack[chosen[c], position:end]
                s = 0.0
                for j in range(n - i):
                    s += row[j] * b[j]
                total += bi * (s - 0.5 * bi * row[0])
            position = end
        out[c] += 2.0 * total


def segment_quad_forms(
    stack: np.ndarray, chosen: np.ndarray, beta: np.ndarray, start: int, stop: int, out: np.ndarray
) -> None:
    """Add the part of beta' K beta that lies in rows start:stop to ``out[c]`` for kernel ``chosen[c]`` of the stack.

    The stack holds these rows only. A row whose beta is 0 is skipped: the
    support vectors alone are read. Four kernels are read side by side.
    """
    paired = chosen.size - chosen.size % 4
    if paired:
        _quad_forms_by_fours(stack, chosen[:paired], beta, start, stop, out)
    if paired < chosen.size:
        _quad_forms_one_by_one(stack, chosen[paired:], beta, start, stop, out[paired:])


@njit(cache=True, nogil=True, fastmath=_FAST)
def stack_dots(stack: np.ndarray, chosen: np.ndarray, vector: np.ndarray, out: np.ndarray) -> None:
    """Write the dot product of row ``chosen[c]`` of the stack with the vector to ``out[c]``."""
    for c in range(chosen.size):
        row = stack[chosen[c]]
        total = 0.0
        for t in range(vector.size):
            total += row[t] * vector[t]
        out[c] = total


@njit(cache=True, nogil=True, fastmath=_FAST)
def segment_matvec(
    segment: np.ndarray, beta: np.ndarray, start: int, stop: int, out: np.ndarray, on_support: bool = False
) -> None:
    """Add the product of the symmetric matrix's rows start:stop (both triangles) with beta to ``out``.

    With ``on_support`` only the rows where beta is not 0 are read; the sums at the others are then not complete.
    """
    n = beta.shape[0]
    position = 0
    for i in range(start, stop):
        end = position + n - i
        bi = beta[i]
        if bi != 0.0 or not on_support:
            row = segment[position:end]
            b = beta[i:]
            target = out[i:]
            total = 0.0
            for j in range(1, n - i):
                total += row[j] * b[j]
                target[j] += row[j] * bi
            out[i] += total + row[0] * bi
        position = end


@njit(cache=True, nogil=True)
def packed_matvecs(
    stack: np.ndarray, kernels: np.ndarray, beta: np.ndarray, places: np.ndarray, on_support: bool, out: np.ndarray
) -> None:
    """Add K beta of the packed kernel ``kernels[s]`` to ``out[places[s]]`` (zeros) for every s."""
    for s in range(kernels.size):
        target = out[places[s]]
        segment_matvec(stack[kernels[s]], beta, 0, beta.size, target, on_support)
        if on_support:
            for i in range(beta.size):  # a mask takes longer to compile
                if beta[i] == 0.0:
                    target[i] = 0.0


@njit(cache=True, nogil=True)
def unpack_rows(stack: np.ndarray, kernels: np.ndarray, rows: np.ndarray, n: int, out: np.ndarray) -> None:
    """Write row ``rows[r]`` of kernel ``kernels[s]`` to ``out[s, r]``."""
    for s in range(kernels.size):
        triangle = stack[kernels[s]]
        for r in range(rows.size):
            i = rows[r]
            for j in range(i):
                out[s, r, j] = triangle[j * n - j * (j - 1) // 2 + i - j]
            first = i * n - i * (i - 1) // 2
            for j in range(i, n):
                out[s, r, j] = triangle[first + j - i]


def _over_kernels(run: Callable[[np.ndarray, np.ndarray], None], chosen: np.ndarray) -> np.ndarray:
    """Run ``run(part of chosen, part of the result)`` on every core; the parts are multiples of four kernels."""
    out = np.zeros(chosen.size)
    pieces = max(1, min(4 * n_threads(), chosen.size // 4))
    cuts = np.linspace(0, chosen.size // 4, pieces + 1).astype(int) * 4
    cuts[-1] = chosen.size
    parallel(lambda cut: run(chosen[cut[0] : cut[1]], out[cut[0] : cut[1]]), pairwise(cuts))
    return out


def quad_forms(stack: np.ndarray, beta: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
    """Return beta' K beta for the chosen packed kernels of the stack.

    Parameters
    ----------
    stack : ndarray of shape (n_kernels, n * (n + 1) / 2), float32 or float64
    beta : ndarray of shape (n,)
    chosen : ndarray of int, default all

    Returns
    -------
    ndarray of shape (len(chosen),)

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.triangles import quad_forms
    >>> quad_forms(np.array([[2.0, 1.0, 3.0]]), np.array([1.0, -1.0]))  # [[2, 1], [1, 3]]
    array([3.])
    """
    n = beta.shape[0]
    chosen = np.arange(stack.shape[0]) if chosen is None else chosen
    return _over_kernels(lambda part, out: segment_quad_forms(stack, part, beta, 0, n, out), chosen)


def packed(M: np.ndarray) -> np.ndarray:
    """Return the upper triangle of a matrix, row by row."""
    vector = np.empty(triangle_size(M.shape[0]))
    pack_rows(M, vector)
    return vector


def symmetric_vector(M: np.ndarray) -> np.ndarray:
    """Return the vector whose product with a packed kernel is its Frobenius inner product with the symmetric M."""
    vector = packed(M)
    diagonal = np.cumsum(np.concatenate([[0], np.arange(M.shape[0], 1, -1)]))
    vector *= 2.0
    vector[diagonal] *= 0.5
    return vector


def inner_products(stack: np.ndarray, M: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the Frobenius inner products of the chosen packed kernels with the symmetric matrix M."""
    vector = symmetric_vector(M)
    return _over_kernels(lambda part, out: stack_dots(stack, part, vector, out), chosen)
