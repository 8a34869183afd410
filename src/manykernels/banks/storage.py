"""Three ways to hold the kernels of a bank; all give the same numbers up to rounding.

    packed      upper triangles in float32 (or float64): one pass reads the memory once
    factors     K = F F' with few columns: next to no memory
    recomputed  nothing is held: each pass computes the kernels in blocks again

A storage holds the kernels at ``indices`` of the bank. ``local`` below
counts within the storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from manykernels.banks.room import Room
from manykernels.compute.linalg import add_row_sum, add_scaled
from manykernels.compute.memory import human_bytes
from manykernels.compute.threads import n_threads, parallel
from manykernels.compute.triangles import (
    add_block,
    add_weighted,
    balanced_blocks,
    inner_products,
    pack_rows,
    packed_matvecs,
    quad_forms,
    row_blocks,
    row_offset,
    segment_centered_square,
    segment_matvec,
    segment_quad_forms,
    triangle_size,
    unpack_rows,
)
from manykernels.kernels.missing import observed
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.precomputed import Precomputed
from manykernels.kernels.shared_distances import BoundKernel, make_groups, make_views

_SMALL_PASS = 1 << 13  # with fewer kernels times samples, one thread is done before others wake up
FACTOR_ROWS = 64  # rows at a time for products with wide factors: fewer would read the factors too often
_TILE = (128, 1024)  # rows and columns of a tile: with those it is made of, it stays in the cache
_DENSE_COLUMNS = 2000
BLOCK_ENTRIES = 1 << 16  # a block of rows in float64 is then half a megabyte: it stays in the cache


Adder = Callable[[int, int, np.ndarray], None]
Visit = Callable[[int, np.ndarray, np.ndarray], None]
_MEANS_AT_ONCE = 1024  # kernels whose row means are held at a time
_GATHERED, _KEPT = 1 << 21, 1 << 23  # bytes of factors that are gathered in a pass, and before it


class Storage(Protocol):
    """What a bank asks of a storage."""

    indices: np.ndarray

    def describe(self) -> str:
        """Return words for what is held."""

    def adder(self, weights: np.ndarray) -> Adder:
        """Return a function that adds the weighted sum of the kernels' packed rows start:stop to a segment."""

    def subset(self, chosen: np.ndarray, room: Room) -> list[Storage]:
        """Return storages of those kernels of the bank that are held here, counted anew: in memory while they fit."""

    def moved(self, indices: np.ndarray) -> Storage:
        """Return the same storage for a bank in which its kernels stand at these (rising) places."""

    def tail(self, size: int) -> Storage:
        """Return a storage of the kernels' values on the last ``size`` samples; what is held is shared."""

    def quad_forms(self, beta: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return beta_t' K_k beta_t of the chosen kernels, beta (n_tasks, n), as (n_tasks, len(local))."""

    def inner_products(self, M: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return the Frobenius inner products of the chosen kernels with a symmetric M of shape (n, n)."""

    def centered_squares(self, weight: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return ||K_c||_w^2 of the chosen kernels, see :mod:`manykernels.kernels.centered`."""

    def matvecs(self, beta: np.ndarray, local: np.ndarray, on_support: bool) -> np.ndarray:
        """Return K_k beta for the chosen kernels, shape (len(local), n); ``on_support``: 0 where beta is 0."""

    def rows(self, rows: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return rows of the chosen kernels, shape (len(local), len(rows), n)."""

    def add_rows(self, rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """Add the weighted sum of the kernels' blocks [rows, columns] to ``out``, in place."""

    def add_products(self, rows: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        """Add sum_r coefficients[t, r] K_k[rows[r]] to out[t, k], of shape (n_tasks, n_held, n), in place."""


def _means(products: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of each row of each kernel, and of all of it, from K w."""
    means = products / weight.sum()
    return means, means @ weight / weight.sum()


def held_here(indices: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (places in ``chosen``, places in ``indices``) of the kernels that both name; ``indices`` is sorted."""
    where = np.searchsorted(indices, chosen)
    where[where == indices.size] = 0
    places = np.flatnonzero(indices[where] == chosen)
    return places, where[places]


class PackedStorage:
    """Upper triangles: kernel ``local`` is the row ``places[local]`` of ``stack``."""

    def __init__(self, indices: np.ndarray, stack: np.ndarray, n: int, places: np.ndarray | None = None) -> None:
        self.indices, self.stack, self.n = indices, stack, n
        self.places = np.arange(indices.size) if places is None else places

    @classmethod
    def fill(cls, source: RecomputedStorage, room: Room | None = None) -> PackedStorage:
        """Compute the triangles of all kernels of the source, once; room for them was taken."""
        n = source.n
        stack: np.ndarray = np.empty((source.indices.size, triangle_size(n)), source.dtype)
        everyone = np.ones(source.indices.size, bool)

        copies = source.matrices()
        everyone[[local for local, *_ in copies]] = False

        def fill_triangles(first: int) -> None:
            for local, kernel, numbers, scale in copies[first :: n_threads()]:
                kernel.pack_numbers(numbers, 0, n, scale, stack[local])

        def fill_rows(block: tuple[int, int]) -> None:
            first, last = row_offset(block[0], n), row_offset(block[1], n)
            for local, segment in source.segments(*block, everyone):
                stack[local, first:last] = segment

        parallel(fill_triangles, range(n_threads()))
        if everyone.any():
            parallel(fill_rows, balanced_blocks(n, BLOCK_ENTRIES))
        return cls(source.indices, stack if room is None else room.guard(stack), n)

    @classmethod
    def of_factors(cls, indices: np.ndarray, factors: Iterable[np.ndarray], n: int, dtype: type) -> PackedStorage:
        """Write out the kernels F F' of these factors F of shape (n, rank), which are asked for one by one."""
        stack: np.ndarray = np.empty((indices.size, triangle_size(n)), dtype)
        for triangle, factor in zip(stack, factors, strict=True):

            def fill(rows: tuple[int, int], triangle: np.ndarray = triangle, F: np.ndarray = factor) -> None:
                segment = triangle[row_offset(rows[0], n) : row_offset(rows[1], n)]
                pack_rows(F[rows[0] : rows[1]] @ F[rows[0] :].T, segment)

            parallel(fill, balanced_blocks(n, max(BLOCK_ENTRIES, FACTOR_ROWS * n)))
        return cls(indices, stack, n)

    def describe(self) -> str:
        return f"{self.indices.size} packed ({human_bytes(self.stack.nbytes)})"

    def subset(self, chosen: np.ndarray, room: Room) -> list[Storage]:
        """Share the triangles: nothing is copied."""
        places, local = held_here(self.indices, chosen)
        return [PackedStorage(places, self.stack, self.n, self.places[local])] if places.size else []

    def moved(self, indices: np.ndarray) -> PackedStorage:
        return PackedStorage(indices, self.stack, self.n, self.places)

    def tail(self, size: int) -> PackedStorage:
        """The last rows of a triangle are the triangle of the last samples."""
        return PackedStorage(self.indices, self.stack[:, row_offset(self.n - size, self.n) :], size, self.places)

    def adder(self, weights: np.ndarray) -> Adder:
        every = np.zeros(self.stack.shape[0])
        every[self.places] = weights

        def add(start: int, stop: int, segment: np.ndarray) -> None:
            add_weighted(self.stack, every, row_offset(start, self.n), segment)

        return add

    def quad_forms(self, beta: np.ndarray, local: np.ndarray) -> np.ndarray:
        return np.array([quad_forms(self.stack, b, self.places[local]) for b in beta])

    def inner_products(self, M: np.ndarray, local: np.ndarray) -> np.ndarray:
        return inner_products(self.stack, M, self.places[local])

    def centered_squares(self, weight: np.ndarray, local: np.ndarray) -> np.ndarray:
        means, totals = _means(self.matvecs(weight, local, False), weight)

        def square(place: int) -> float:
            row = self.stack[self.places[local[place]]]
            return segment_centered_square(row, means[place], totals[place], weight, 0, self.n)

        return np.array(parallel(square, range(local.size)))

    def matvecs(self, beta: np.ndarray, local: np.ndarray, on_support: bool) -> np.ndarray:
        out = np.zeros((local.size, self.n))
        rows = self.places[local]
        pieces = np.array_split(np.arange(local.size), n_threads() if local.size * self.n > _SMALL_PASS else 1)
        parallel(lambda piece: packed_matvecs(self.stack, rows[piece], beta, piece, on_support, out), pieces)
        return out

    def rows(self, rows: np.ndarray, local: np.ndarray) -> np.ndarray:
        out = np.empty((local.size, rows.size, self.n))
        unpack_rows(self.stack, self.places[local], rows, self.n, out)
        return out

    def add_rows(self, rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        for k in np.flatnonzero(weights):
            out += weights[k] * self.rows(rows, np.array([k]))[0][:, columns]

    def add_products(self, rows: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        for k in range(self.indices.size):
            out[:, k] += coefficients @ self.rows(rows, np.array([k]))[0]


class FactorStorage:
    """Factors F_k of shape (n, rank) with K_k = F_k F_k', side by side in one matrix.

    Parameters
    ----------
    indices : ndarray of int
    factors : iterable of ndarrays of shape (n, rank)
        Asked for one by one, so that a generator can let go of each.
    ranks : sequence of int, optional
        Their numbers of columns, where the factors do not come in a list.
    """

    def __init__(
        self, indices: np.ndarray, factors: Iterable[np.ndarray], ranks: Sequence[int] | np.ndarray | None = None
    ) -> None:
        sizes = [factor.shape[1] for factor in factors] if ranks is None else ranks
        edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.indices, self.begin, self.end = indices, edges[:-1], edges[1:]
        turned: np.ndarray | None = None
        for k, factor in enumerate(factors):
            if turned is None:
                # A column after the other: memory is touched as the factors come.
                turned = np.empty((int(edges[-1]), factor.shape[0]))
            turned[edges[k] : edges[k + 1]] = factor.T
        assert turned is not None
        self.columns = turned.T

    def _sharing(self, indices: np.ndarray, columns: np.ndarray, local: np.ndarray | slice) -> FactorStorage:
        """Return a storage of some of the factors that copies none."""
        other = copy(self)
        other.indices, other.columns = indices, columns
        other.begin, other.end = self.begin[local], self.end[local]
        return other

    @property
    def ranks(self) -> np.ndarray:
        """Columns of each factor."""
        return self.end - self.begin

    @property
    def nbytes(self) -> int:
        """Memory that the factors take, that of others in the same matrix not counted."""
        return int(self.ranks.sum()) * self.columns.shape[0] * self.columns.itemsize

    @property
    def is_wide(self) -> bool:
        """Whether a product of the factors is a matter of arithmetic, not of reading them."""
        return bool(self.ranks.sum() > FACTOR_ROWS)

    def describe(self) -> str:
        return f"{self.indices.size} as factors ({human_bytes(self.nbytes)})"

    def subset(self, chosen: np.ndarray, room: Room) -> list[Storage]:
        """Copy the factors side by side if there is room; else share them, and gather some at a time in each pass."""
        places, local = held_here(self.indices, chosen)
        if places.size == 0:
            return []
        part = self._sharing(places, self.columns, local)
        if places.size == self.indices.size or not room.take(1, part.nbytes):
            return [part]
        own = FactorStorage(places, [self._factor(k) for k in local])
        assert own.columns.base is not None
        room.guard(own.columns.base)
        return [own]

    def moved(self, indices: np.ndarray) -> FactorStorage:
        return self._sharing(indices, self.columns, slice(None))

    def tail(self, size: int) -> FactorStorage:
        return self._sharing(self.indices, self.columns[-size:], slice(None))

    def _pieces(self, local: np.ndarray, at_once: int = _GATHERED) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (some of the kernels, their factors side by side): all where they are so, else few at a time."""
        if np.array_equal(self.begin[local[1:]], self.end[local[:-1]]):
            yield local, self.columns[:, self.begin[local[0]] : self.end[local[-1]]]
            return
        n_columns = max(at_once // (8 * self.columns.shape[0]), 1)
        share = (np.cumsum(self.ranks[local]) - 1) // n_columns
        for part in np.split(local, np.flatnonzero(np.diff(share)) + 1):
            places = np.concatenate([np.arange(self.begin[k], self.end[k]) for k in part])
            yield part, self.columns.T[places].T

    def adder(self, weights: np.ndarray) -> Adder:
        used = np.flatnonzero(weights)
        n_bytes = 8 * int(self.ranks[used].sum()) * self.columns.shape[0]
        # A few are gathered once and for all.
        kept = list(self._pieces(used, _KEPT)) if n_bytes <= _KEPT else None

        def add(start: int, stop: int, segment: np.ndarray) -> None:
            for part, columns in self._pieces(used) if kept is None else kept:
                own = np.repeat(weights[part], self.ranks[part])
                add_block((columns[start:stop] * own) @ columns[start:].T, segment)

        return add

    def quad_forms(self, beta: np.ndarray, local: np.ndarray) -> np.ndarray:
        return self._by_kernel(lambda columns: (beta @ columns) ** 2, (beta.shape[0],), local)

    def centered_squares(self, weight: np.ndarray, local: np.ndarray) -> np.ndarray:
        factors = (self._factor(k) - weight @ self._factor(k) / weight.sum() for k in local)
        return np.array([np.sum(((factor.T * weight) @ factor) ** 2) for factor in factors])

    def inner_products(self, M: np.ndarray, local: np.ndarray) -> np.ndarray:
        at_once = max(_GATHERED // (8 * self.columns.shape[0]), 1)

        def forms(columns: np.ndarray) -> np.ndarray:
            parts = [columns[:, low : low + at_once] for low in range(0, columns.shape[1], at_once)]
            return np.concatenate([np.einsum("ij,ij->j", M @ part, part) for part in parts])

        return self._by_kernel(forms, (), local)

    def _by_kernel(self, compute: Callable, lead: tuple[int, ...], local: np.ndarray) -> np.ndarray:
        """Return the sums over each kernel's columns of what is computed of them, (*lead, len(local))."""
        out = np.empty((*lead, local.size))
        done = 0
        for part, columns in self._pieces(local) if local.size else ():
            first = np.concatenate([[0], np.cumsum(self.ranks[part])[:-1]])
            out[..., done : done + part.size] = np.add.reduceat(compute(columns), first, axis=-1)
            done += part.size
        return out

    def matvecs(self, beta: np.ndarray, local: np.ndarray, on_support: bool) -> np.ndarray:
        products = np.empty((local.size, beta.size))
        for place, factor in enumerate(map(self._factor, local)):
            np.matmul(factor, beta @ factor, out=products[place])
        if on_support:
            products *= beta != 0
        return products

    def rows(self, rows: np.ndarray, local: np.ndarray) -> np.ndarray:
        out = np.empty((local.size, rows.size, self.columns.shape[0]))
        for place, k in enumerate(local):
            np.matmul(self._factor(k)[rows], self._factor(k).T, out=out[place])
        return out

    def add_rows(self, rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        used = np.flatnonzero(weights)
        for part, factors in self._pieces(used) if used.size else ():
            left = factors[rows] * np.repeat(weights[part], self.ranks[part])
            for cut in (slice(low, low + _TILE[1]) for low in range(0, columns.size, _TILE[1])):
                out[:, cut] += left @ factors[columns[cut]].T

    def add_products(self, rows: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        for k in range(self.indices.size):
            out[:, k] += (coefficients @ self._factor(k)[rows]) @ self._factor(k).T

    def _factor(self, k: int) -> np.ndarray:
        """Return the factor of a kernel, a view."""
        return self.columns[:, self.begin[k] : self.end[k]]


class RecomputedStorage:
    """Kernels computed in blocks, anew in each pass."""

    def __init__(
        self,
        bound: Sequence[BoundKernel],
        indices: np.ndarray,
        X: Any,
        normalization: Normalization,
        dtype: type,
        places: np.ndarray | None = None,
    ) -> None:
        self.n, self.dtype = X.shape[0], dtype
        # Its kernels are those at ``indices`` of ``bound``; a bank of a few of them counts them anew.
        self._own, self.indices = indices, indices if places is None else places
        self._bound, self._X = bound, X
        # Centering takes the difference of nearly equal numbers: round after it, not before.
        self._working = dtype if normalization.means is None else np.float64
        self._normalization = normalization
        self._groups = make_groups(bound, indices)
        self._views = make_views(self._groups, X)
        place = {int(k): local for local, k in enumerate(self._own)}
        self._locals = [np.array([place[int(k)] for k in group.indices]) for group in self._groups]

    def describe(self) -> str:
        return f"{self.indices.size} recomputed in each pass"

    def subset(self, chosen: np.ndarray, room: Room) -> list[Storage]:
        """Hold as many as there is room for."""
        places, local = held_here(self.indices, chosen)
        return self._part(places, local).held(room) if places.size else []

    def held(self, room: Room) -> list[Storage]:
        """Return the triangles of the first kernels, as many as there is room for, and the others as they are."""
        size = np.dtype(self.dtype).itemsize * triangle_size(self.n)
        count = room.take(self.indices.size, size)
        every, found = np.arange(self.indices.size), list[Storage]()
        if count:
            found.append(PackedStorage.fill(self._part(self.indices[:count], every[:count]), room))
        if count < self.indices.size:
            found.append(self._part(self.indices[count:], every[count:]) if count else self)
        return found

    def _part(self, places: np.ndarray, local: np.ndarray) -> RecomputedStorage:
        return RecomputedStorage(self._bound, self._own[local], self._X, self._normalization, self.dtype, places)

    def segments(
        self, start: int, stop: int, wanted: np.ndarray, samples: np.ndarray | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (local kernel, normalized packed rows start:stop); only wanted kernels, only the given samples."""
        for group, view, places in zip(self._groups, self._views, self._locals, strict=True):
            inside = np.flatnonzero(wanted[places])
            if inside.size == 0:
                continue
            rows = view if samples is None else view[samples]
            for g, segment in group.segments(rows, start, stop, inside, self._working):
                self._normalization.apply_segment(int(group.indices[g]), segment, start, stop, samples)
                # Rounded as if it had been stored, so that the choice of storage changes nothing.
                yield int(places[g]), segment.astype(self.dtype, copy=False)

    def matrices(self) -> list[tuple[int, Precomputed, np.ndarray, float]]:
        """Return (local kernel, matrix, sample numbers, scale) of the matrices that are only to be scaled."""
        if self._normalization.means is not None or self._normalization.inverse_norms is not None:
            return []
        found: list[tuple[int, Precomputed, np.ndarray, float]] = []
        for group, view, places in zip(self._groups, self._views, self._locals, strict=True):
            if observed(view) is not None:
                continue
            numbers: dict[int, np.ndarray] = {}  # by the order of the matrix: most often all have the same
            for g, kernel in enumerate(group.kernels):
                if isinstance(kernel, Precomputed):
                    order = kernel.K.shape[0]
                    if order not in numbers:
                        numbers[order] = kernel.numbers_in(view)
                    scale = float(self._normalization.scale[group.indices[g]])
                    found.append((int(places[g]), kernel, numbers[order], scale))
        return found

    def moved(self, indices: np.ndarray) -> RecomputedStorage:
        return self._part(indices, np.arange(indices.size))

    def tail(self, size: int) -> RecomputedStorage:
        X, normalization = self._X[-size:], self._normalization.tail(size)
        return RecomputedStorage(self._bound, self._own, X, normalization, self.dtype, self.indices)

    def adder(self, weights: np.ndarray) -> Adder:
        def add(start: int, stop: int, segment: np.ndarray) -> None:
            for local, part in self.segments(start, stop, weights != 0):
                add_weighted(part[None, :], weights[local : local + 1], 0, segment)

        return add

    def quad_forms(self, beta: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Only pairs of samples with a non-zero beta are computed."""
        support = np.flatnonzero(np.any(beta != 0, axis=0))
        inner, first = np.ascontiguousarray(beta[:, support]), np.zeros(1, np.int64)

        def visitor(block: tuple[int, int]) -> Visit:
            def visit(k: int, part: np.ndarray, out: np.ndarray) -> None:
                for t in range(beta.shape[0]):
                    segment_quad_forms(part[None, :], first, inner[t], *block, out[t : t + 1])

            return visit

        return self._reduce(visitor, beta.shape[0], local, support)

    def inner_products(self, M: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Only rows where M does not vanish are computed."""
        support = np.flatnonzero(np.any(M != 0, axis=0))
        inner = M if support.size == M.shape[0] else M[np.ix_(support, support)]

        def visitor(block: tuple[int, int]) -> Visit:
            own = 2.0 * inner[block[0] : block[1], block[0] :]
            own[np.arange(len(own)), np.arange(len(own))] *= 0.5
            rows = np.empty(row_offset(block[1], support.size) - row_offset(block[0], support.size))
            pack_rows(own, rows)

            def visit(k: int, part: np.ndarray, out: np.ndarray) -> None:
                out += float(part @ rows)

            return visit

        return self._reduce(visitor, 1, local, support)[0]

    def centered_squares(self, weight: np.ndarray, local: np.ndarray) -> np.ndarray:
        found = np.zeros(local.size)
        for start in range(0, local.size, _MEANS_AT_ONCE):
            chosen = local[start : start + _MEANS_AT_ONCE]
            means, totals = _means(self.matvecs(weight, chosen, False), weight)
            place = {int(k): row for row, k in enumerate(chosen)}
            found[start : start + chosen.size] = self._reduce(
                lambda block, of=(means, totals, place): self._square_visitor(block, weight, *of),
                1,
                chosen,
                np.arange(self.n),
            )[0]
        return found

    @staticmethod
    def _square_visitor(
        block: tuple[int, int], weight: np.ndarray, means: np.ndarray, totals: np.ndarray, place: dict[int, int]
    ) -> Visit:
        def visit(k: int, part: np.ndarray, out: np.ndarray) -> None:
            row = place[k]
            out += segment_centered_square(part, means[row], totals[row], weight, *block)

        return visit

    def _reduce(self, visitor: Callable, size: int, local: np.ndarray, support: np.ndarray) -> np.ndarray:
        """Sum over the blocks of rows of the chosen kernels on the support, as (size, len(local)).

        ``visitor(block)`` returns what adds a kernel's part of a block to its sums.
        """
        wanted = np.zeros(self.indices.size, bool)
        wanted[local] = True

        def piece(block: tuple[int, int]) -> np.ndarray:
            out, visit = np.zeros((self.indices.size, size)), visitor(block)
            for k, part in self.segments(*block, wanted, support):
                visit(k, part, out[k])
            return out[local].T

        if support.size == 0:
            return np.zeros((size, local.size))
        return np.sum(parallel(piece, balanced_blocks(support.size, BLOCK_ENTRIES)), axis=0)

    def matvecs(self, beta: np.ndarray, local: np.ndarray, on_support: bool) -> np.ndarray:
        samples = np.flatnonzero(beta) if on_support else np.arange(self.n)
        inner = beta[samples]
        products = np.zeros((self.indices.size, samples.size))

        def piece(chosen: np.ndarray) -> None:
            wanted = np.zeros(self.indices.size, bool)
            wanted[chosen] = True
            for block in row_blocks(samples.size, BLOCK_ENTRIES):
                for k, part in self.segments(*block, wanted, samples if on_support else None):
                    segment_matvec(part, inner, *block, products[k])

        different = np.unique(local)
        parallel(piece, np.array_split(different, min(n_threads(), different.size)))
        out = np.zeros((local.size, self.n))
        out[:, samples] = products[local]
        return out

    def rows(self, rows: np.ndarray, local: np.ndarray) -> np.ndarray:
        chosen, place = np.unique(local, return_inverse=True)
        out = np.empty((chosen.size, rows.size, self.n), self.dtype)
        wanted, to = np.zeros(self.indices.size, bool), np.zeros(self.indices.size, np.int64)
        wanted[chosen], to[chosen] = True, np.arange(chosen.size)
        for group, view, places in zip(self._groups, self._views, self._locals, strict=True):
            inside = np.flatnonzero(wanted[places])
            if inside.size == 0:
                continue
            for g, block in group.blocks(view[rows], view, inside):
                out[to[places[g]]] = self._normalization.apply_rows(int(group.indices[g]), block, rows)
        return out[place].astype(np.float64)

    def add_rows(self, rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        def add(local: int, of_rows: slice, of_columns: slice, block: np.ndarray) -> None:
            add_scaled(block, out.dtype.type(weights[local]), out[of_rows, of_columns])

        self._visit(rows, columns, weights != 0, add)

    def add_products(self, rows: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        def add(local: int, of_rows: slice, of_columns: slice, block: np.ndarray) -> None:
            for t in range(out.shape[0]):
                add_row_sum(block, coefficients[t, of_rows], out[t, local, of_columns])

        self._visit(rows, np.arange(self.n), np.ones(self.indices.size, bool), add)

    def _visit(self, rows: np.ndarray, columns: np.ndarray, wanted: np.ndarray, visit: Callable) -> None:
        """Compute the blocks [rows, columns] of the wanted kernels in tiles that stay in the cache.

        ``visit(local, slice of rows, slice of columns, block)`` is called for each; threads divide the columns.
        """
        dtype = self._working if self._normalization.inverse_norms is None else np.float64
        cuts = [slice(low, low + _TILE[1]) for low in range(0, columns.size, _TILE[1])]
        pieces = [slice(low, low + _TILE[0]) for low in range(0, rows.size, _TILE[0])]

        def tile(cut: slice) -> None:
            for group, view, places in zip(self._groups, self._views, self._locals, strict=True):
                inside = np.flatnonzero(wanted[places])
                if inside.size == 0:
                    continue
                right = _light(view[columns[cut]])
                for piece in pieces:
                    for g, block in group.blocks(_light(view[rows[piece]]), right, inside, dtype):
                        self._normalization.apply_rows(int(group.indices[g]), block, rows[piece], columns[cut])
                        visit(int(places[g]), piece, cut, block.astype(self.dtype, copy=False))

        parallel(tile, cuts)


def _light(V: Any) -> Any:
    """Return a few rows of sparse data as an array where that makes products faster."""
    return V.toarray() if sp.issparse(V) and V.shape[1] <= _DENSE_COLUMNS else V
