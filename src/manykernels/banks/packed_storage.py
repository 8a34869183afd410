"""Kernels as upper triangles in memory: one pass reads it once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np

from manykernels.banks.room import Room
from manykernels.banks.storage import BLOCK_ENTRIES, FACTOR_ROWS, Adder, Storage, held_here, row_means
from manykernels.compute.memory import human_bytes
from manykernels.compute.threads import n_threads, parallel
from manykernels.compute.triangles import (
    add_weighted,
    balanced_blocks,
    inner_products,
    pack_rows,
    packed_matvecs,
    quad_forms,
    row_offset,
    segment_centered_square,
    triangle_size,
    unpack_rows,
)
from manykernels.kernels.precomputed import Precomputed

_SMALL_PASS = 1 << 13  # with fewer kernels times samples, one thread is done before others wake up


class TriangleSource(Protocol):
    """Kernels that can be computed in blocks of rows: what triangles are filled from."""

    n: int
    dtype: type
    indices: np.ndarray

    def matrices(self) -> list[tuple[int, Precomputed, np.ndarray, float]]:
        """Return (local kernel, matrix, sample numbers, scale) of the matrices that are only to be scaled."""

    def segments(self, start: int, stop: int, wanted: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (local kernel, normalized packed rows start:stop); only wanted kernels."""


class PackedStorage:
    """Upper triangles: kernel ``local`` is the row ``places[local]`` of ``stack``."""

    is_wide = False

    def __init__(self, indices: np.ndarray, stack: np.ndarray, n: int, places: np.ndarray | None = None) -> None:
        self.indices, self.stack, self.n = indices, stack, n
        self.places = np.arange(indices.size) if places is None else places

    @classmethod
    def fill(cls, source: TriangleSource, room: Room | None = None) -> PackedStorage:
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

    @property
    def nbytes(self) -> int:
        """Memory that the triangles take, that of others in the same stack not counted."""
        return self.indices.size * self.stack.shape[1] * self.stack.itemsize

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
        means, totals = row_means(self.matvecs(weight, local, False), weight)

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
