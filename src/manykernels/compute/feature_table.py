"""A table of features that may be larger than memory: held, in a file, or computed anew in each pass."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from manykernels.compute.linalg import cholesky_factor
from manykernels.compute.memory import human_bytes
from manykernels.compute.threads import n_threads, parallel

_BLOCK_ENTRIES = 1 << 23
_FREE_DISK = 1.25  # what must be free, in sizes of the table
_LEAST_ROWS = 16
_MOST_FACTORED, _MOST_PRODUCTS = 6000, 1e13  # columns, and rows * columns^2, of a matrix that is factored
_HELD = 0.75  # most of the budget that the table takes: the rest is for blocks in transit and for what is factored
BLOCKS_SHARE = 0.25  # of what is left, for the blocks of all threads
_COPIES = 3  # a block is made in double precision, with a copy or two on the way
_SUMMED_ROWS = 512  # added up in the table's own precision before they go to a sum in double precision


class FeatureTable:
    """Rows of numbers, in blocks; products with them add up in double precision.

    Parameters
    ----------
    compute : function of (low, high)
        Returns the rows low to high, shape (high - low, n_columns).
    n_rows, n_columns : int
    dtype : float32 or float64
    budget : int
        Bytes for the table and all that works on it. A table that would take most of them goes to a temporary file,
        and where there is no room for that either, rows are computed when they are asked for.
    weight : ndarray of shape (n_rows,), optional
        Subtract the mean of the rows with these weights, in double precision; default: no mean is subtracted.
    n_sources : int
        Numbers that a row is computed from, for the size of the blocks.

    Attributes
    ----------
    mean : ndarray of shape (n_columns,)
        What was subtracted.
    taken : int
        Bytes of the budget that the table and its blocks take.
    held_on : str
        "cpu", or the device of a table that is there.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.feature_table import FeatureTable
    >>> Z = np.arange(6.0).reshape(3, 2)
    >>> table = FeatureTable(lambda low, high: Z[low:high], 3, 2, np.float64, budget=10**6)
    >>> table.transposed_times(np.ones((1, 3)))
    array([[6., 9.]])
    """

    held_on = "cpu"

    def __init__(
        self,
        compute: Callable[[int, int], np.ndarray],
        n_rows: int,
        n_columns: int,
        dtype: type,
        budget: int,
        weight: np.ndarray | None = None,
        n_sources: int = 0,
    ) -> None:
        self._compute, self.n_rows, self.n_columns, self.dtype = compute, n_rows, n_columns, dtype
        self.size = n_rows * n_columns * np.dtype(dtype).itemsize
        is_held = self.size <= _HELD * budget
        left = budget - self.size if is_held else budget
        bytes_per_row = row_bytes(n_columns, n_sources)
        step = max(_LEAST_ROWS, min(_BLOCK_ENTRIES // max(n_columns, 1), int(BLOCKS_SHARE * left) // bytes_per_row))
        self._room = int(left) - min(step, n_rows) * bytes_per_row
        self.taken = budget - self._room
        self.blocks = [(low, min(low + step, n_rows)) for low in range(0, n_rows, step)]
        self.mean = np.zeros(n_columns) if weight is None else self._weighted_mean(weight)
        self.held: np.ndarray | _FileRows | None = None
        self.place = "computed in each pass"
        if is_held:
            self.held, self.place = np.empty((n_rows, n_columns), dtype), "in memory"
        elif _FREE_DISK * self.size <= shutil.disk_usage(tempfile.gettempdir()).free:
            self.held, self.place = _FileRows((n_rows, n_columns), dtype), "in a temporary file"
        if self.held is not None:
            parallel(self._fill, self.blocks)

    def describe(self) -> str:
        """Return words for how large the table is and where."""
        return f"{human_bytes(self.size)} of features {self.place}"

    def _weighted_mean(self, weight: np.ndarray) -> np.ndarray:
        parts = parallel(lambda block: weight[block[0] : block[1]] @ self._compute(*block), self.blocks)
        return np.sum(parts, axis=0) / weight.sum()

    def _fill(self, block: tuple[int, int]) -> None:
        assert self.held is not None
        self.held[block[0] : block[1]] = self._compute(*block) - self.mean

    def block(self, low: int, high: int) -> np.ndarray:
        """Return rows, in order; a view where the table is held."""
        if self.held is not None:
            return self.held[low:high]  # of a file, a map of these rows alone, which goes when the view does
        return np.asarray(self._compute(low, high) - self.mean, dtype=self.dtype)

    @property
    def _is_in_memory(self) -> bool:
        return isinstance(self.held, np.ndarray)

    def tail_bytes(self, size: int) -> int:
        """Return the bytes that :meth:`tail` takes."""
        return 0 if self._is_in_memory else size * self.n_columns * np.dtype(self.dtype).itemsize

    def tail(self, size: int) -> np.ndarray:
        """Return the last rows as they are held; a view where that is in memory."""
        first = self.n_rows - size
        if isinstance(self.held, np.ndarray):
            return self.held[first:]
        out: np.ndarray = np.empty((size, self.n_columns), self.dtype)
        for low, high in self.blocks:
            if high > first:
                start = max(low, first)
                out[start - first : high - first] = self.block(start, high)
        return out

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
        return self._sum(vectors, lambda rows: rows)

    def squares_times(self, vectors: np.ndarray) -> np.ndarray:
        """Return the same of the squared entries."""
        return self._sum(vectors, lambda rows: rows * rows)

    def _sum(self, vectors: np.ndarray, of_rows: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        left: np.ndarray = np.ascontiguousarray(vectors, dtype=self.dtype)

        def of_block(low: int, high: int, rows: np.ndarray) -> np.ndarray:
            total = np.zeros((left.shape[0], self.n_columns))
            for start in range(low, high, _SUMMED_ROWS):
                stop = min(start + _SUMMED_ROWS, high)
                total += left[:, start:stop] @ of_rows(rows[start - low : stop - low])
            return total

        # The blocks' sums are added in their order, so that the result does not depend on the threads.
        return np.sum(self.each_block(of_block), axis=0)

    def row_squares(self, factors: np.ndarray) -> np.ndarray:
        """Return the sums of each row's squares with these factors of the columns, shape (n_rows,)."""
        rounded: np.ndarray = factors.astype(self.dtype)
        return np.concatenate(self.each_block(lambda low, high, rows: (rows * rows) @ rounded)).astype(np.float64)

    def squares_by_part(self, first: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weighted sum and the largest of the rows' squares on the columns ``first[k]`` to ``first[k + 1]``.

        Parameters
        ----------
        first : ndarray of shape (n_parts + 1,)
        weight : ndarray of shape (n_rows,)
        """

        def of_block(low: int, high: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            squares = np.add.reduceat(rows * rows, first[:-1], axis=1).astype(np.float64)
            return weight[low:high] @ squares, squares.max(axis=0)

        sums, largest = zip(*self.each_block(of_block), strict=True)
        return np.sum(sums, axis=0), np.max(largest, axis=0)

    def can_factor(self, n_columns: int) -> bool:
        """Return whether :meth:`bordered_solver` has room for the matrix of so many columns."""
        return n_columns <= _MOST_FACTORED and 2 * 8 * (n_columns + 1) ** 2 <= self._room

    def factors_quickly(self, n_columns: int) -> bool:
        """Return whether it takes no longer than some rounds of coordinate descent."""
        return self.can_factor(n_columns) and float(self.n_rows) * n_columns**2 <= _MOST_PRODUCTS

    def bordered_solver(
        self, curvature: np.ndarray, factors: np.ndarray, intercept: bool
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return what solves ([X 1]' D [X 1] + diag(1, ..., 1, 0)) x = r, with the rows X scaled by sqrt(factors).

        Parameters
        ----------
        curvature : ndarray of shape (n_rows,)
            The diagonal of D.
        factors : ndarray of shape (n_columns,)
            Where it is 0, so is x.
        intercept : bool
            Whether there is the column of ones; without it, the last entry of x is that of r.

        Returns
        -------
        function of r, shape (n_columns + 1,), that returns x of the same shape
        """
        columns = np.flatnonzero(factors)
        system = self._bordered_gram(curvature, columns, np.sqrt(factors[columns]), intercept)
        system[np.diag_indices(columns.size)] += 1.0
        if not intercept:
            system[-1, -1] = 1.0
        factored, places = cholesky_factor(system, least=1.0, overwrite=True), np.append(columns, factors.size)

        def solve(right: np.ndarray) -> np.ndarray:
            out = np.zeros(factors.size + 1)
            out[places] = cho_solve(factored, right[places], check_finite=False)
            return out

        return solve

    def _bordered_gram(
        self, curvature: np.ndarray, columns: np.ndarray, root: np.ndarray, intercept: bool
    ) -> np.ndarray:
        """Return [X 1]' D [X 1] on some columns; without an intercept the border is 0."""
        total = np.zeros((columns.size + 1, columns.size + 1))
        for low, high in self.blocks:
            bends = np.flatnonzero(curvature[low:high])
            bordered = np.empty((bends.size, columns.size + 1))
            bordered[:, :-1] = self.block(low, high)[bends][:, columns] * root
            bordered[:, -1] = float(intercept)
            bordered *= np.sqrt(curvature[low:high][bends, None])
            total += bordered.T @ bordered
        return total

    def each_block(self, task: Callable[[int, int, np.ndarray], Any]) -> list:
        """Return ``task(low, high, rows)`` of every block, in order; they are computed on every core."""
        return parallel(lambda block: task(block[0], block[1], self.block(block[0], block[1])), self.blocks)


def row_bytes(n_columns: int, n_sources: int) -> int:
    """Return the bytes that a row of a block takes on its way, on all threads: sources, features and their copies."""
    return 8 * (n_sources + _COPIES * max(n_columns, 1)) * n_threads()


def least_bytes(n_columns: int, n_sources: int) -> int:
    """Return the bytes without which no table of so many columns can be made, wherever its rows are."""
    return _LEAST_ROWS * row_bytes(n_columns, n_sources)


class _FileRows:
    """An array in a temporary file that goes when this object does.

    Each selection of rows maps these rows alone: a map of all of them would keep all that was read in memory.
    """

    def __init__(self, shape: tuple[int, int], dtype: type) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._file = tempfile.TemporaryFile(prefix="manykernels-")  # noqa: SIM115 - open as long as the table is
        self._file.truncate(shape[0] * shape[1] * self.dtype.itemsize)

    def __getitem__(self, rows: slice) -> np.ndarray:
        low, high, _ = rows.indices(self.shape[0])
        place = low * self.shape[1] * self.dtype.itemsize
        return np.memmap(self._file, self.dtype, "r+", place, (high - low, self.shape[1]))

    def __setitem__(self, rows: slice, values: np.ndarray) -> None:
        self[rows][:] = values
