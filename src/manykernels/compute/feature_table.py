"""A table of features that may be larger than memory: held, in a file, or computed anew in each pass."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from manykernels.compute.memory import human_bytes
from manykernels.compute.threads import parallel

_BLOCK_ENTRIES = 1 << 23
_FREE_DISK = 1.25  # what must be free, in sizes of the table
_LEAST_ROWS = 16


class FeatureTable:
    """Rows of numbers, in blocks; products with them add up in double precision.

    Parameters
    ----------
    compute : function of (low, high)
        Returns the rows low to high, shape (high - low, n_columns).
    n_rows, n_columns : int
    dtype : float32 or float64
    budget : int
        Bytes that the table may take in memory; beyond it goes to a temporary file, and where there is no room for
        that either, rows are computed when they are asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.feature_table import FeatureTable
    >>> Z = np.arange(6.0).reshape(3, 2)
    >>> table = FeatureTable(lambda low, high: Z[low:high], 3, 2, np.float64, budget=10**6)
    >>> table.transposed_times(np.ones((1, 3)))
    array([[6., 9.]])
    """

    def __init__(
        self, compute: Callable[[int, int], np.ndarray], n_rows: int, n_columns: int, dtype: type, budget: int
    ) -> None:
        self._compute, self.n_rows, self.n_columns, self.dtype = compute, n_rows, n_columns, dtype
        self._shift: np.ndarray = np.zeros(n_columns, dtype)
        step = max(_LEAST_ROWS, min(_BLOCK_ENTRIES // max(n_columns, 1), max(1, budget // 8) // max(n_columns, 1)))
        self.blocks = [(low, min(low + step, n_rows)) for low in range(0, n_rows, step)]
        self.size = n_rows * n_columns * np.dtype(dtype).itemsize
        self.held: np.ndarray | None = None
        self.place = "computed in each pass"
        if self.size <= budget:
            self.held, self.place = np.empty((n_rows, n_columns), dtype), "in memory"
        elif _FREE_DISK * self.size <= shutil.disk_usage(tempfile.gettempdir()).free:
            self.held, self.place = _in_a_file((n_rows, n_columns), dtype), "in a temporary file"
        if self.held is not None:
            parallel(self._fill, self.blocks)

    def describe(self) -> str:
        """Return words for how large the table is and where."""
        return f"{human_bytes(self.size)} of features {self.place}"

    def _fill(self, block: tuple[int, int]) -> None:
        assert self.held is not None
        self.held[block[0] : block[1]] = self._compute(*block)

    def block(self, low: int, high: int) -> np.ndarray:
        """Return rows, in order; a view where the table is held."""
        if self.held is not None:
            return self.held[low:high]
        return np.asarray(self._compute(low, high), dtype=self.dtype) - self._shift

    def subtract(self, row: np.ndarray) -> None:
        """Subtract a row from all rows."""
        if self.held is None:
            self._shift = row.astype(self.dtype)
        else:
            self.held -= row.astype(self.dtype)

    def tail(self, size: int) -> np.ndarray:
        """Return the last rows in double precision."""
        parts = [self.block(low, high) for low, high in self.blocks if high > self.n_rows - size]
        return np.concatenate(parts)[-size:].astype(np.float64)

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """Return the products of the rows with vectors, given as (n_vectors, n_columns): (n_vectors, n_rows)."""
        right: np.ndarray = np.ascontiguousarray(vectors.T, dtype=self.dtype)
        out = np.empty((vectors.shape[0], self.n_rows))

        def fill(low: int, high: int, rows: np.ndarray) -> None:
            out[:, low:high] = (rows @ right).T

        self.each_block(fill)
        return out

    def transposed_times(self, vectors: np.ndarray) -> np.ndarray:
        """Return the sums of the rows with these coefficients, given as (n_vectors, n_rows): (n_vectors, n_columns)."""
        left: np.ndarray = np.ascontiguousarray(vectors, dtype=self.dtype)
        out = np.zeros((vectors.shape[0], self.n_columns))
        # The blocks' sums are added in their order, so that the result does not depend on the threads.
        for part in self.each_block(lambda low, high, rows: left[:, low:high] @ rows):
            out += part
        return out

    def each_block(self, task: Callable[[int, int, np.ndarray], Any]) -> list:
        """Return ``task(low, high, rows)`` of every block, in order; they are computed on every core."""
        return parallel(lambda block: task(block[0], block[1], self.block(block[0], block[1])), self.blocks)


def _in_a_file(shape: tuple[int, int], dtype: type) -> Any:
    """Return an array in a temporary file that goes when the array does."""
    with tempfile.TemporaryFile(prefix="manykernels-") as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)
