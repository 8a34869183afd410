"""Three ways to hold the kernels of a bank; all give the same numbers up to rounding.

    packed      upper triangles in float32 (or float64): one pass reads the memory once
    factors     K = F F' with few columns: next to no memory
    recomputed  nothing is held: each pass computes the kernels in blocks again

A storage holds the kernels at ``indices`` of the bank. ``local`` below
counts within the storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from manykernels.compute.memory import human_bytes
from manykernels.compute.packed import (
    add_block,
    add_weighted,
    balanced_blocks,
    quad_forms,
    row_blocks,
    row_offset,
    segment_matvec,
    segment_quad_forms,
    triangle_size,
    unpack_rows,
)
from manykernels.compute.threads import n_threads, parallel
from manykernels.kernels.groups import BoundKernel, make_groups
from manykernels.kernels.normalize import Normalization

BLOCK_ENTRIES = 1 << 16  # a block of rows in float64 is then half a megabyte: it stays in the cache


Adder = Callable[[int, int, np.ndarray], None]


class Storage(Protocol):
    """What a bank asks of a storage."""

    indices: np.ndarray

    def describe(self) -> str:
        """Return words for what is held."""

    def adder(self, weights: np.ndarray) -> Adder:
        """Return a function that adds the weighted sum of the kernels' packed rows start:stop to a segment."""

    def quad_forms(self, beta: np.ndarray) -> np.ndarray:
        """Return beta_t' K_k beta_t for beta of shape (n_tasks, n), as (n_tasks, n_kernels)."""

    def matvecs(self, beta: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return K_k beta for the chosen kernels, shape (len(local), n)."""

    def rows(self, rows: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return rows of the chosen kernels, shape (len(local), len(rows), n)."""


class PackedStorage:
    """Upper triangles."""

    def __init__(
        self,
        bound: Sequence[BoundKernel],
        indices: np.ndarray,
        X: Any,
        normalization: Normalization,
        dtype: type,
    ) -> None:
        self.indices, self.n = indices, X.shape[0]
        self.stack: np.ndarray = np.empty((indices.size, triangle_size(self.n)), dtype)
        source = RecomputedStorage(bound, indices, X, normalization, dtype)

        def fill(block: tuple[int, int]) -> None:
            first, last = row_offset(block[0], self.n), row_offset(block[1], self.n)
            for local, segment in source.segments(*block, np.ones(indices.size, bool)):
                self.stack[local, first:last] = segment

        parallel(fill, balanced_blocks(self.n, BLOCK_ENTRIES))

    def describe(self) -> str:
        return f"{self.indices.size} packed ({human_bytes(self.stack.nbytes)})"

    def adder(self, weights: np.ndarray) -> Adder:
        def add(start: int, stop: int, segment: np.ndarray) -> None:
            add_weighted(self.stack, weights, row_offset(start, self.n), segment)

        return add

    def quad_forms(self, beta: np.ndarray) -> np.ndarray:
        return np.array([quad_forms(self.stack, b) for b in beta])

    def matvecs(self, beta: np.ndarray, local: np.ndarray) -> np.ndarray:
        out = np.zeros((local.size, self.n))
        parallel(lambda s: segment_matvec(self.stack[local[s]], beta, 0, self.n, out[s]), range(local.size))
        return out

    def rows(self, rows: np.ndarray, local: np.ndarray) -> np.ndarray:
        out = np.empty((local.size, rows.size, self.n))
        unpack_rows(self.stack, local, rows, self.n, out)
        return out


class FactorStorage:
    """Factors F_k of shape (n, rank) with K_k = F_k F_k', side by side in one matrix."""

    def __init__(self, indices: np.ndarray, factors: Sequence[np.ndarray]) -> None:
        self.indices = indices
        self.columns = np.ascontiguousarray(np.hstack(factors))
        self.owner = np.repeat(np.arange(indices.size), [f.shape[1] for f in factors])
        self.first = np.searchsorted(self.owner, np.arange(indices.size))

    def describe(self) -> str:
        return f"{self.indices.size} as factors ({human_bytes(self.columns.nbytes)})"

    def adder(self, weights: np.ndarray) -> Adder:
        by_column = weights[self.owner]
        used = by_column != 0
        right = self.columns if used.all() else self.columns[:, used]
        left = right * by_column[used]

        def add(start: int, stop: int, segment: np.ndarray) -> None:
            add_block(left[start:stop] @ right[start:].T, segment)

        return add

    def quad_forms(self, beta: np.ndarray) -> np.ndarray:
        return np.add.reduceat((beta @ self.columns) ** 2, self.first, axis=1)

    def matvecs(self, beta: np.ndarray, local: np.ndarray) -> np.ndarray:
        return np.array([self._factor(k) @ (beta @ self._factor(k)) for k in local]).reshape(local.size, -1)

    def rows(self, rows: np.ndarray, local: np.ndarray) -> np.ndarray:
        return np.array([self._factor(k)[rows] @ self._factor(k).T for k in local]).reshape(local.size, rows.size, -1)

    def _factor(self, k: int) -> np.ndarray:
        return self.columns[:, self.owner == k]


class RecomputedStorage:
    """Kernels computed in blocks, anew in each pass."""

    def __init__(
        self,
        bound: Sequence[BoundKernel],
        indices: np.ndarray,
        X: Any,
        normalization: Normalization,
        dtype: type,
    ) -> None:
        self.indices, self.n = indices, X.shape[0]
        self._dtype = dtype
        self._normalization = normalization
        self._groups = make_groups(bound, indices)
        self._views = [group.view(X) for group in self._groups]
        place = {int(k): local for local, k in enumerate(indices)}
        self._locals = [np.array([place[int(k)] for k in group.indices]) for group in self._groups]

    def describe(self) -> str:
        return f"{self.indices.size} recomputed in each pass"

    def segments(
        self, start: int, stop: int, wanted: np.ndarray, samples: np.ndarray | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (local kernel, normalized packed rows start:stop); only wanted kernels, only the given samples."""
        for group, view, places in zip(self._groups, self._views, self._locals, strict=True):
            inside = np.flatnonzero(wanted[places])
            if inside.size == 0:
                continue
            rows = view if samples is None else view[samples]
            for g, segment in group.segments(rows, start, stop, inside, self._dtype):
                self._normalization.apply_segment(int(group.indices[g]), segment, start, stop, samples)
                # Rounded as if it had been stored, so that the choice of storage changes nothing.
                yield int(places[g]), segment.astype(self._dtype, copy=False)

    def adder(self, weights: np.ndarray) -> Adder:
        def add(start: int, stop: int, segment: np.ndarray) -> None:
            for local, part in self.segments(start, stop, weights != 0):
                add_weighted(part[None, :], weights[local : local + 1], 0, segment)

        return add

    def quad_forms(self, beta: np.ndarray) -> np.ndarray:
        """Only pairs of samples with a non-zero beta are computed."""
        support = np.flatnonzero(np.any(beta != 0, axis=0))
        inner = np.ascontiguousarray(beta[:, support])
        everyone = np.ones(self.indices.size, bool)

        def piece(block: tuple[int, int]) -> np.ndarray:
            out = np.zeros((self.indices.size, beta.shape[0]))
            for local, part in self.segments(*block, everyone, support):
                for t in range(beta.shape[0]):
                    segment_quad_forms(part[None, :], inner[t], 0, *block, out[local, t : t + 1])
            return out.T

        if support.size == 0:
            return np.zeros((beta.shape[0], self.indices.size))
        return np.sum(parallel(piece, balanced_blocks(support.size, BLOCK_ENTRIES)), axis=0)

    def matvecs(self, beta: np.ndarray, local: np.ndarray) -> np.ndarray:
        out = np.zeros((self.indices.size, self.n))

        def piece(chosen: np.ndarray) -> None:
            wanted = np.zeros(self.indices.size, bool)
            wanted[chosen] = True
            for block in row_blocks(self.n, BLOCK_ENTRIES):
                for k, part in self.segments(*block, wanted):
                    segment_matvec(part, beta, *block, out[k])

        parallel(piece, np.array_split(local, min(n_threads(), local.size)))
        return out[local]

    def rows(self, rows: np.ndarray, local: np.ndarray) -> np.ndarray:
        out = np.empty((self.indices.size, rows.size, self.n))
        wanted = np.zeros(self.indices.size, bool)
        wanted[local] = True
        for group, view, places in zip(self._groups, self._views, self._locals, strict=True):
            for g, block in group.blocks(view[rows], view, np.flatnonzero(wanted[places])):
                out[places[g]] = self._normalization.apply_rows(int(group.indices[g]), block, rows)
        return out[local].astype(self._dtype).astype(np.float64)
