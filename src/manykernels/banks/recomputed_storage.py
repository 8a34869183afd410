"""Kernels of which nothing is held: each pass computes them in blocks again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manykernels.banks.packed_storage import PackedStorage
from manykernels.banks.room import Room
from manykernels.banks.storage import BLOCK_ENTRIES, TILE, Adder, Storage, held_here, row_means
from manykernels.compute.linalg import add_row_sum, add_scaled
from manykernels.compute.threads import n_threads, parallel
from manykernels.compute.triangles import (
    add_weighted,
    balanced_blocks,
    pack_rows,
    row_blocks,
    row_offset,
    segment_centered_square,
    segment_matvec,
    segment_quad_forms,
    triangle_size,
)
from manykernels.kernels.missing import observed
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.precomputed import Precomputed
from manykernels.kernels.shared_distances import BoundKernel, by_distances, make_views

Visit = Callable[[int, np.ndarray, np.ndarray], None]
_DENSE_COLUMNS = 2000
_MEANS_AT_ONCE = 1024  # kernels whose row means are held at a time


class RecomputedStorage:
    """Kernels computed in blocks, anew in each pass."""

    is_wide = False
    nbytes = 0

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
        self._bound_places, self.indices = indices, indices if places is None else places
        self._bound, self._X = bound, X
        # Centering takes the difference of nearly equal numbers: round after it, not before.
        self._working = dtype if normalization.means is None else np.float64
        self._normalization = normalization
        self._shared = by_distances(bound, indices)
        self._views = make_views(self._shared, X)
        place = {int(k): local for local, k in enumerate(self._bound_places)}
        self._locals = [np.array([place[int(k)] for k in shared.indices]) for shared in self._shared]

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
        every, storages = np.arange(self.indices.size), list[Storage]()
        if count:
            storages.append(PackedStorage.fill(self._part(self.indices[:count], every[:count]), room))
        if count < self.indices.size:
            storages.append(self._part(self.indices[count:], every[count:]) if count else self)
        return storages

    def _part(self, places: np.ndarray, local: np.ndarray) -> RecomputedStorage:
        return RecomputedStorage(
            self._bound, self._bound_places[local], self._X, self._normalization, self.dtype, places
        )

    def segments(
        self, start: int, stop: int, wanted: np.ndarray, samples: np.ndarray | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (local kernel, normalized packed rows start:stop); only wanted kernels, only the given samples."""
        for shared, view, places in zip(self._shared, self._views, self._locals, strict=True):
            inside = np.flatnonzero(wanted[places])
            if inside.size == 0:
                continue
            rows = view if samples is None else view[samples]
            for g, segment in shared.segments(rows, start, stop, inside, self._working):
                self._normalization.apply_segment(int(shared.indices[g]), segment, start, stop, samples)
                # Rounded as if it had been stored, so that the choice of storage changes nothing.
                yield int(places[g]), segment.astype(self.dtype, copy=False)

    def matrices(self) -> list[tuple[int, Precomputed, np.ndarray, float]]:
        """Return (local kernel, matrix, sample numbers, scale) of the matrices that are only to be scaled."""
        if self._normalization.means is not None or self._normalization.inverse_norms is not None:
            return []
        matrices: list[tuple[int, Precomputed, np.ndarray, float]] = []
        for shared, view, places in zip(self._shared, self._views, self._locals, strict=True):
            if observed(view) is not None:
                continue
            numbers: dict[int, np.ndarray] = {}  # by the order of the matrix: most often all have the same
            for g, kernel in enumerate(shared.kernels):
                if isinstance(kernel, Precomputed):
                    order = kernel.K.shape[0]
                    if order not in numbers:
                        numbers[order] = kernel.numbers_in(view)
                    scale = float(self._normalization.scale[shared.indices[g]])
                    matrices.append((int(places[g]), kernel, numbers[order], scale))
        return matrices

    def moved(self, indices: np.ndarray) -> RecomputedStorage:
        return self._part(indices, np.arange(indices.size))

    def tail(self, size: int) -> RecomputedStorage:
        X, normalization = self._X[-size:], self._normalization.tail(size)
        return RecomputedStorage(self._bound, self._bound_places, X, normalization, self.dtype, self.indices)

    def adder(self, weights: np.ndarray) -> Adder:
        def add(start: int, stop: int, segment: np.ndarray) -> None:
            for local, rows in self.segments(start, stop, weights != 0):
                add_weighted(rows[None, :], weights[local : local + 1], 0, segment)

        return add

    def quad_forms(self, beta: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Only pairs of samples with a non-zero beta are computed."""
        support = np.flatnonzero(np.any(beta != 0, axis=0))
        inner, first = np.ascontiguousarray(beta[:, support]), np.zeros(1, np.int64)

        def visitor(block: tuple[int, int]) -> Visit:
            def visit(k: int, rows: np.ndarray, out: np.ndarray) -> None:
                for t in range(beta.shape[0]):
                    segment_quad_forms(rows[None, :], first, inner[t], *block, out[t : t + 1])

            return visit

        return self._reduce(visitor, beta.shape[0], local, support)

    def inner_products(self, M: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Only rows where M does not vanish are computed."""
        support = np.flatnonzero(np.any(M != 0, axis=0))
        inner = M if support.size == M.shape[0] else M[np.ix_(support, support)]

        def visitor(block: tuple[int, int]) -> Visit:
            doubled = 2.0 * inner[block[0] : block[1], block[0] :]
            doubled[np.arange(len(doubled)), np.arange(len(doubled))] *= 0.5
            rows = np.empty(row_offset(block[1], support.size) - row_offset(block[0], support.size))
            pack_rows(doubled, rows)

            def visit(k: int, segment: np.ndarray, out: np.ndarray) -> None:
                out += float(segment @ rows)

            return visit

        return self._reduce(visitor, 1, local, support)[0]

    def centered_squares(self, weight: np.ndarray, local: np.ndarray) -> np.ndarray:
        squares = np.zeros(local.size)
        for start in range(0, local.size, _MEANS_AT_ONCE):
            chosen = local[start : start + _MEANS_AT_ONCE]
            means, totals = row_means(self.matvecs(weight, chosen, False), weight)
            place = {int(k): row for row, k in enumerate(chosen)}
            squares[start : start + chosen.size] = self._reduce(
                lambda block, of=(means, totals, place): self._square_visitor(block, weight, *of),
                1,
                chosen,
                np.arange(self.n),
            )[0]
        return squares

    @staticmethod
    def _square_visitor(
        block: tuple[int, int], weight: np.ndarray, means: np.ndarray, totals: np.ndarray, place: dict[int, int]
    ) -> Visit:
        def visit(k: int, segment: np.ndarray, out: np.ndarray) -> None:
            row = place[k]
            out += segment_centered_square(segment, means[row], totals[row], weight, *block)

        return visit

    def _reduce(self, visitor: Callable, size: int, local: np.ndarray, support: np.ndarray) -> np.ndarray:
        """Sum over the blocks of rows of the chosen kernels on the support, as (size, len(local)).

        ``visitor(block)`` returns what adds a kernel's part of a block to its sums.
        """
        wanted = np.zeros(self.indices.size, bool)
        wanted[local] = True

        def piece(block: tuple[int, int]) -> np.ndarray:
            out, visit = np.zeros((self.indices.size, size)), visitor(block)
            for k, segment in self.segments(*block, wanted, support):
                visit(k, segment, out[k])
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
                for k, segment in self.segments(*block, wanted, samples if on_support else None):
                    segment_matvec(segment, inner, *block, products[k])

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
        for shared, view, places in zip(self._shared, self._views, self._locals, strict=True):
            inside = np.flatnonzero(wanted[places])
            if inside.size == 0:
                continue
            for g, block in shared.blocks(view[rows], view, inside):
                out[to[places[g]]] = self._normalization.apply_rows(int(shared.indices[g]), block, rows)
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
        cuts = [slice(low, low + TILE[1]) for low in range(0, columns.size, TILE[1])]
        pieces = [slice(low, low + TILE[0]) for low in range(0, rows.size, TILE[0])]

        def tile(cut: slice) -> None:
            for shared, view, places in zip(self._shared, self._views, self._locals, strict=True):
                inside = np.flatnonzero(wanted[places])
                if inside.size == 0:
                    continue
                right = _light(view[columns[cut]])
                for piece in pieces:
                    for g, block in shared.blocks(_light(view[rows[piece]]), right, inside, dtype):
                        self._normalization.apply_rows(int(shared.indices[g]), block, rows[piece], columns[cut])
                        visit(int(places[g]), piece, cut, block.astype(self.dtype, copy=False))

        parallel(tile, cuts)


def _light(V: Any) -> Any:
    """Return a few rows of sparse data as an array where that makes products faster."""
    return V.toarray() if sp.issparse(V) and V.shape[1] <= _DENSE_COLUMNS else V
