"""Kernels that share work: those that are functions of the same distances or inner products."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manykernels.compute.triangles import pack_rows, row_offset
from manykernels.kernels.base import ElementwiseKernel, Kernel, base_matrix
from manykernels.kernels.missing import observed, seen_rows, with_zeros
from manykernels.kernels.precomputed import Precomputed


@dataclass(frozen=True)
class BoundKernel:
    """A kernel with the columns it sees in one X, and its name and group in words."""

    kernel: Kernel
    positions: np.ndarray
    name: str
    group: str


@dataclass(frozen=True)
class SharedDistances:
    """Kernels on the same columns with the same base; ``indices`` are their places in the bank."""

    kernels: tuple[Kernel, ...]
    indices: np.ndarray
    positions: np.ndarray
    base: str | None
    # What would be asked again for each block: which kernels are functions of the base, and by unit of the distances
    # whether one of them is too narrow for a base in single precision.
    _elementwise: tuple[ElementwiseKernel | None, ...] = field(init=False, repr=False)
    _is_narrow: dict[float, bool] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        kinds = tuple(kernel if isinstance(kernel, ElementwiseKernel) else None for kernel in self.kernels)
        object.__setattr__(self, "_elementwise", kinds)

    def view(self, X: Any) -> Any:
        """Return the columns of X that its kernels see."""
        if self.positions.size == X.shape[1] and np.array_equal(self.positions, np.arange(X.shape[1])):
            return X
        return X[:, self.positions]

    def blocks(
        self, V: Any, W: Any, wanted: Iterable[int], dtype: type = np.float64
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (place among its kernels, kernel block of shape (len(V), len(W))) for the wanted kernels.

        With float32, distances are rounded as in :meth:`segments`, and so are Gaussian kernels.
        """
        left, right = observed(V), observed(W)
        if left is not None or right is not None:
            yield from self._scattered(V, W, left, right, wanted, dtype)
            return
        base: np.ndarray | None = None
        wanted, unit = list(wanted), 1.0
        if self.base is not None:
            base, unit = base_matrix(self.base, V, W)
            base = base.astype(self._base_type(unit, dtype), copy=False)
        for g in wanted:
            kernel = self._elementwise[g]
            if base is not None and kernel is not None:
                yield g, kernel.apply(base if g == wanted[-1] else base.copy(), unit)
            else:
                yield g, np.array(self.kernels[g].compute(V, W), dtype=np.float64)

    def _scattered(
        self, V: Any, W: Any, left: np.ndarray | None, right: np.ndarray | None, wanted: Iterable[int], dtype: type
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the blocks of views that some rows lack: zeros there, and no kernel is asked about such a row."""
        V, W = seen_rows(V, left), seen_rows(W, right)
        shape = (len(V) if left is None else left.size, len(W) if right is None else right.size)
        if len(V) == 0 or len(W) == 0:
            yield from ((g, np.zeros(shape, dtype)) for g in wanted)
            return
        for g, block in self.blocks(V, W, wanted, dtype):
            yield g, with_zeros(with_zeros(block, left).T, right).T

    def segments(
        self, V: Any, start: int, stop: int, wanted: Iterable[int], dtype: type = np.float32
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (place among its kernels, packed rows start:stop of the kernel matrix of V) for the wanted kernels.

        With float32, distances are rounded, which moves no Gaussian kernel value by more than
        3e-8; inner products stay in float64, since powers of them may be large.
        """
        size = row_offset(stop, V.shape[0]) - row_offset(start, V.shape[0])
        rows, columns = V[start:stop], V[start:]
        if observed(columns) is not None:
            for g, block in self.blocks(rows, columns, wanted, dtype):
                segment: np.ndarray = np.empty(size, block.dtype)
                pack_rows(block, segment)
                yield g, segment
            return
        base: np.ndarray | None = None
        wanted, unit = list(wanted), 1.0
        if self.base is not None:
            values, unit = base_matrix(self.base, rows, columns)
            base = np.empty(size, self._base_type(unit, dtype))
            pack_rows(values, base)
        for g in wanted:
            kernel = self._elementwise[g]
            if base is not None and kernel is not None:
                yield g, kernel.apply(base.copy(), unit)
            else:
                segment = np.empty(size)
                self.kernels[g].pack(V, start, stop, segment)
                yield g, segment

    def _base_type(self, unit: float, dtype: type) -> type:
        """Return the type to keep the base in: only distances may be rounded, and only beside widths like them."""
        if self.base != "distance":
            return np.float64
        if unit not in self._is_narrow:
            self._is_narrow[unit] = any(kernel.needs_double(unit) for kernel in self._elementwise if kernel is not None)
        return np.float64 if self._is_narrow[unit] else dtype

    def diagonal(self, g: int, V: Any) -> np.ndarray:
        """Return the diagonal of the kernel at place ``g``, 0 for rows that lack the view."""
        mask = observed(V)
        return with_zeros(self.kernels[g].diagonal(seen_rows(V, mask)), mask)

    def diagonals(self, V: Any) -> Iterator[np.ndarray]:
        """Yield the diagonals of all its kernels."""
        mask, numbers = observed(V), {}
        V = seen_rows(V, mask)
        for kernel in self.kernels:
            if isinstance(kernel, Precomputed):  # sample numbers are checked once for all matrices of an order
                order = kernel.K.shape[0]
                if order not in numbers:
                    numbers[order] = kernel.numbers_in(V)
                yield with_zeros(kernel.whole_diagonal()[numbers[order]], mask)
            else:
                yield with_zeros(kernel.diagonal(V), mask)

    def factors(self, V: Any, error: float | None, max_rank: int) -> Iterator[np.ndarray | None]:
        """Yield a factor of each of its kernels: an exact one, or one with an error of at most ``error``."""
        mask = observed(V)
        V = seen_rows(V, mask)
        for kernel in self.kernels:
            factor = kernel.factor(V) if error is None else kernel.low_rank_factor(V, error, max_rank)
            yield None if factor is None else with_zeros(factor, mask)


def by_distances(bound: Sequence[BoundKernel], indices: Iterable[int] | None = None) -> list[SharedDistances]:
    """Gather the kernels (or those at ``indices``) that share columns and base, in order of first appearance."""
    members: dict[tuple, list[int]] = {}
    for k in range(len(bound)) if indices is None else indices:
        kernel = bound[k].kernel
        base = kernel.base if isinstance(kernel, ElementwiseKernel) else None
        members.setdefault((base, bound[k].positions.tobytes()), []).append(k)
    return [
        SharedDistances(
            kernels=tuple(bound[k].kernel for k in places),
            indices=np.array(places),
            positions=bound[places[0]].positions,
            base=base,
        )
        for (base, _), places in members.items()
    ]


def make_views(all_shared: Sequence[SharedDistances], X: Any) -> list[Any]:
    """Return the columns of X that each entry sees; those on the same columns share them."""
    views: dict[bytes, Any] = {}
    for shared in all_shared:
        key = shared.positions.tobytes()
        if key not in views:
            views[key] = shared.view(X)
    return [views[shared.positions.tobytes()] for shared in all_shared]
