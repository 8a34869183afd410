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
        Bytes that the table may take in memory; beyond it goes to a temporary file, and where there is no room for
        that either, rows are computed when they are asked for.
    weight : ndarray of shape (n_rows,), optional
        Subtract the mean of the rows with these weights, in double precision; default: no mean is subtracted.
    n_sources : int
        Numbers that a row is computed from, for the size of the blocks.

    Attributes
    ----------
    mean : ndarray of shape (n_columns,)
        What was subtracted.

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
        # Features are made in double precision from rows in double precision, with a copy or two on the way.
        own = 8 * (n_sources + 3 * n_columns) * 4 * n_threads()
        step = max(_LEAST_ROWS, min(_BLOCK_ENTRIES // max(n_columns, 1), budget // own))
        self.blocks = [(low, min(low + step, n_rows)) for low in range(0, n_rows, step)]
        self.size = n_rows * n_columns * np.dtype(dtype).itemsize
        self.mean = np.zeros(n_columns) if weight is None else self._weighted_mean(weight)
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

    def _weighted_mean(self, weight: np.ndarray) -> np.ndarray:
        parts = parallel(lambda block: weight[block[0] : block[1]] @ self._compute(*block), self.blocks)
        return np.sum(parts, axis=0) / weight.sum()

    def _fill(self, block: tuple[int, int]) -> None:
        assert self.held is not None
        self.held[block[0] : block[1]] = self._compute(*block) - self.mean

    def block(self, low: int, high: int) -> np.ndarray:
        """Return rows, in order; a view where the table is held."""
        if self.held is not None:
            return self.held[low:high]
        return np.asarray(self._compute(low, high) - self.mean, dtype=self.dtype)

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
        own: np.ndarray = factors.astype(self.dtype)
        return np.concatenate(self.each_block(lambda low, high, rows: (rows * rows) @ own)).astype(np.float64)

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
        return n_columns <= _MOST_FACTORED

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
        factored, places = cholesky_factor(system, least=1.0), np.append(columns, factors.size)

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
            own = np.empty((bends.size, columns.size + 1))
            own[:, :-1] = self.block(low, high)[bends][:, columns] * root
            own[:, -1] = float(intercept)
            own *= np.sqrt(curvature[low:high][bends, None])
            total += own.T @ own
        return total

    def each_block(self, task: Callable[[int, int, np.ndarray], Any]) -> list:
        """Return ``task(low, high, rows)`` of every block, in order; they are computed on every core."""
        return parallel(lambda block: task(block[0], block[1], self.block(block[0], block[1])), self.blocks)


def _in_a_file(shape: tuple[int, int], dtype: type) -> Any:
    """Return an array in a temporary file that goes when the array does."""
    with tempfile.TemporaryFile(prefix="manykernels-") as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)
