"""Kernels as products of factors with few columns: next to no memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy

import numpy as np

from manykernels.banks.room import Room
from manykernels.banks.storage import FACTOR_ROWS, TILE, Adder, Storage, held_here
from manykernels.compute.memory import human_bytes
from manykernels.compute.triangles import add_block

_GATHERED, _KEPT = 1 << 21, 1 << 23  # bytes of factors that are gathered in a pass, and before it


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
        shared = self._sharing(places, self.columns, local)
        if places.size == self.indices.size or not room.take(1, shared.nbytes):
            return [shared]
        copied = FactorStorage(places, [self._factor(k) for k in local])
        assert copied.columns.base is not None
        room.guard(copied.columns.base)
        return [copied]

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
        for kernels in np.split(local, np.flatnonzero(np.diff(share)) + 1):
            places = np.concatenate([np.arange(self.begin[k], self.end[k]) for k in kernels])
            yield kernels, self.columns.T[places].T

    def adder(self, weights: np.ndarray) -> Adder:
        used = np.flatnonzero(weights)
        n_bytes = 8 * int(self.ranks[used].sum()) * self.columns.shape[0]
        # A few are gathered once and for all.
        kept = list(self._pieces(used, _KEPT)) if n_bytes <= _KEPT else None

        def add(start: int, stop: int, segment: np.ndarray) -> None:
            for kernels, columns in self._pieces(used) if kept is None else kept:
                column_weights = np.repeat(weights[kernels], self.ranks[kernels])
                add_block((columns[start:stop] * column_weights) @ columns[start:].T, segment)

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
            return np.concatenate([np.einsum("ij,ij->j", M @ block, block) for block in parts])

        return self._by_kernel(forms, (), local)

    def _by_kernel(self, compute: Callable, lead: tuple[int, ...], local: np.ndarray) -> np.ndarray:
        """Return the sums over each kernel's columns of what is computed of them, (*lead, len(local))."""
        out = np.empty((*lead, local.size))
        done = 0
        for kernels, columns in self._pieces(local) if local.size else ():
            first = np.concatenate([[0], np.cumsum(self.ranks[kernels])[:-1]])
            out[..., done : done + kernels.size] = np.add.reduceat(compute(columns), first, axis=-1)
            done += kernels.size
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
        for kernels, factors in self._pieces(used) if used.size else ():
            left = factors[rows] * np.repeat(weights[kernels], self.ranks[kernels])
            for cut in (slice(low, low + TILE[1]) for low in range(0, columns.size, TILE[1])):
                out[:, cut] += left @ factors[columns[cut]].T

    def add_products(self, rows: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        for k in range(self.indices.size):
            out[:, k] += (coefficients @ self._factor(k)[rows]) @ self._factor(k).T

    def _factor(self, k: int) -> np.ndarray:
        """Return the factor of a kernel, a view."""
        return self.columns[:, self.begin[k] : self.end[k]]
