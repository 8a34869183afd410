"""Kernel values with the kernels side by side: all kernels of a pair of samples in one row.

That is the order in which stochastic learning reads them: a step looks at one sample with every kernel.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from manykernels.banks.placement import PRECISIONS
from manykernels.compute.compiled import njit
from manykernels.compute.memory import human_bytes
from manykernels.compute.threads import n_threads, parallel
from manykernels.compute.triangles import row_offset, triangle_size
from manykernels.kernels.shared_distances import by_distances

if TYPE_CHECKING:
    from manykernels.banks.listed import ListedBank

_BLOCK_ENTRIES = 1 << 22  # kernel values that a thread computes before it turns them around, at most
_TURNED = 8  # part of the budget that all threads may take for that


class PairValues:
    """The kernels of a bank on pairs of its samples, in the bank's precision.

    Parameters
    ----------
    bank : ListedBank
    bias : float or ndarray of shape (n_kernels,)
        Each kernel that is not zero is augmented by the square of this constant; 0 is none.
    memory_budget : int
        Bytes for kernel values.
    hold : bool
        Whether all pairs are held in memory if they fit.

    Attributes
    ----------
    is_held : bool
        Whether all pairs fit into the budget; otherwise they are computed in blocks of rows, again and again.
    """

    def __init__(self, bank: ListedBank, bias: float | np.ndarray, memory_budget: int, hold: bool = True) -> None:
        self.bank, self.dtype = bank, PRECISIONS[bank.precision]
        self._bias = np.where(bank.scale > 0, np.square(bias), 0.0)
        self.n_samples, self.n_kernels = bank.n_samples, bank.n_kernels
        self._shared = by_distances(bank.bound)
        self._views = [shared.view(bank.X) for shared in self._shared]
        size = np.dtype(self.dtype).itemsize * self.n_kernels
        row = size * self.n_samples
        turned = memory_budget // _TURNED
        # A kernel's own values, in double, are there in addition to what is turned around.
        self._entries = int(np.clip(turned // (2 * n_threads() * size // self.n_kernels), 1, _BLOCK_ENTRIES))
        left = memory_budget - max(turned, 2 * row)
        self.is_held = hold and size * triangle_size(self.n_samples) <= left
        self.block_size = max(1, min(self.n_samples, left // row))
        if not self.is_held and left < row:
            raise MemoryError(
                f"memory_budget leaves {human_bytes(memory_budget)} for kernel values, but three rows of all "
                f"{self.n_kernels} kernels on {self.n_samples} samples need {human_bytes(3 * row)}."
            )

    @cached_property
    def triangle(self) -> np.ndarray:
        """The values of all pairs i <= j, row after row, shape (n (n + 1) / 2, n_kernels)."""
        n = self.n_samples
        out: np.ndarray = np.empty((triangle_size(n), self.n_kernels), self.dtype)

        def fill(block: tuple[int, int]) -> None:
            start, stop = block
            values = self._values(np.arange(start, stop), start)
            turn_triangle(values, out[row_offset(start, n) : row_offset(stop, n)])

        parallel(fill, self._blocks(n))
        return out

    def rows(self, samples: np.ndarray) -> np.ndarray:
        """Return the values of the given samples with all, shape (len(samples) * n_samples, n_kernels)."""
        out: np.ndarray = np.empty((samples.size * self.n_samples, self.n_kernels), self.dtype)

        def fill(block: tuple[int, int]) -> None:
            start, stop = block
            turn(self._values(samples[start:stop], 0), out[start * self.n_samples : stop * self.n_samples])

        parallel(fill, self._blocks(samples.size))
        return out

    def _blocks(self, count: int) -> list[tuple[int, int]]:
        step = max(1, min(self._entries // (self.n_kernels * self.n_samples), -(-count // 2)))
        return [(low, min(low + step, count)) for low in range(0, count, step)]

    def _values(self, samples: np.ndarray, first: int) -> np.ndarray:
        """Return the kernels of the samples with all from ``first`` on, shape (n_kernels, len(samples), n - first)."""
        out: np.ndarray = np.empty((self.n_kernels, samples.size, self.n_samples - first), self.dtype)
        columns = np.arange(first, self.n_samples)
        for shared, view in zip(self._shared, self._views, strict=True):
            for g, block in shared.blocks(view[samples], view[first:], range(len(shared.kernels)), self.dtype):
                k = int(shared.indices[g])
                out[k] = self.bank.normalization.apply_rows(k, block, samples, columns)
        if np.any(self._bias):
            out += self._bias[:, None, None].astype(self.dtype)
        return out

    def diagonals(self) -> np.ndarray:
        """Return the values of each sample with itself, shape (n_samples, n_kernels)."""
        return self.bank.diagonal().T + self._bias


@njit(cache=True, nogil=True)
def turn(values, out):
    """Write values (m, r, n) to out (r * n, m), in tiles that stay in the cache."""
    m, r, n = values.shape
    for low in range(0, m, 16):
        high = min(low + 16, m)
        for i in range(r):
            for j in range(n):
                for k in range(low, high):
                    out[i * n + j, k] = values[k, i, j]


@njit(cache=True, nogil=True)
def turn_triangle(values, out):
    """Write values (m, r, n) of the rows of a triangle, of which row i begins at column i, to out (pairs, m)."""
    m, r, n = values.shape
    for low in range(0, m, 16):
        high = min(low + 16, m)
        place = 0
        for i in range(r):
            for j in range(i, n):
                for k in range(low, high):
                    out[place, k] = values[k, i, j]
                place += 1
