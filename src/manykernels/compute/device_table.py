"""A table of features on a device: the methods of :class:`manykernels.compute.feature_table.FeatureTable`.

As many of the rows as fit are kept on the device; the others are computed there in each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from manykernels.compute.gpu import Device, Tensor, device_budget
from manykernels.compute.memory import human_bytes

_COPIES = 4  # of a block, in float64, while its features are made
_MOST_FACTORED = 16_000
_FACTORED_SHARE = 8  # the matrix that is factored takes at most one in so many of the bytes for what is held
_PANEL = 1024  # columns at a time of a symmetric matrix, of which half is computed


class DeviceFeatureTable:
    """Rows of numbers on a device; products with them add up in its widest precision, and come back as arrays.

    Parameters
    ----------
    device : Device
    compute : function of rows, given as a slice or as numbers
        Returns them as a tensor on the device, shape (number of rows, n_columns).
    n_rows, n_columns : int
    dtype : float32 or float64
    weight : ndarray of shape (n_rows,), optional
        Subtract the mean of the rows with these weights.

    Attributes
    ----------
    mean : ndarray of shape (n_columns,)
        What was subtracted.
    taken : int
        Bytes that the table takes off the device: none.
    held_on : str
        The name of the device.

    Examples
    --------
    With torch installed, ``DeviceFeatureTable(device, compute, 3, 2, np.float64).times(np.ones((1, 2)))`` are the sums
    of the rows.
    """

    taken = 0

    def __init__(
        self,
        device: Device,
        compute: Callable[[Any], Tensor],
        n_rows: int,
        n_columns: int,
        dtype: type,
        weight: np.ndarray | None = None,
    ) -> None:
        self._device, self._compute, self._dtype = device, compute, device.dtype(dtype)
        self.n_rows, self.n_columns, self.held_on = n_rows, n_columns, device.name
        self._held: Tensor = device.zeros(0, n_columns, dtype=self._dtype)
        self._shift: Tensor = device.zeros(n_columns)
        if weight is not None:
            # The mean of what is not rounded yet: it is subtracted before that.
            sent, total = device.send(weight), device.zeros(n_columns)
            for _, part in self._computed(0, n_rows, device.wide, lambda rows, block: sent[rows] @ block):
                total += part
            self._shift = total / sent.sum()
        self.mean = device.fetch(self._shift)
        self._hold(np.dtype(dtype).itemsize)

    @property
    def has_all(self) -> bool:
        """Whether all rows are kept on the device."""
        return self._held.shape[0] == self.n_rows

    def describe(self) -> str:
        """Return words for how large the table is and where."""
        size = human_bytes(self.n_rows * self.n_columns * self._held.element_size())
        place = f"on {self._device.name!r}"
        if not self.has_all:
            place += (
                f", of which {self._held.shape[0] / self.n_rows:.0%} are kept and the rest is computed in each pass"
            )
        return f"{size} of features {place}"

    # -- rows ---------------------------------------------------------------------------------------------------

    def _hold(self, itemsize: int) -> None:
        """Keep the first rows, as many as there is room for."""
        device = self._device
        budget = device_budget(device)
        budget -= min(_factored_bytes(self.n_columns), budget // _FACTORED_SHARE)
        count = min(self.n_rows, budget // max(itemsize * self.n_columns, 1))
        held = None
        while held is None and count > 0:
            held = device.empty_or_none(count, self.n_columns, dtype=self._dtype)
            count = count if held is not None else count // 2
        if held is None:
            return
        for rows, block in self._computed(0, count, self._dtype, lambda _, block: block):
            held[rows] = block
        self._held = held

    def _computed(
        self, low: int, high: int, dtype: Any, of_block: Callable[[slice, Tensor], Any]
    ) -> Iterator[tuple[slice, Any]]:
        """Yield ``of_block(rows, their features)`` of the rows from low to high, computed now, in blocks that fit."""

        def of_rows(_: slice, rows: slice) -> Any:
            chosen = slice(low + rows.start, low + rows.stop)
            return of_block(chosen, (self._compute(chosen) - self._shift).to(dtype))

        for _, rows, result in self._device.sweep(1, high - low, _COPIES * self.n_columns, of_rows):
            yield slice(low + rows.start, low + rows.stop), result

    def _each(self, of_block: Callable[[slice, Tensor], Any]) -> Iterator[tuple[slice, Any]]:
        """Yield ``of_block(rows, their features)`` of all rows, in blocks that fit."""
        kept = self._held.shape[0]

        def of_held(_: slice, rows: slice) -> Any:
            return of_block(rows, self._held[rows])

        for _, rows, result in self._device.sweep(1, kept, self.n_columns, of_held):
            yield rows, result
        yield from self._computed(kept, self.n_rows, self._dtype, of_block)

    def _sum(self, of_block: Callable[[slice, Tensor], Tensor]) -> Tensor:
        total: Tensor = 0.0
        for _, result in self._each(of_block):
            total = total + result
        return total

    def rows(self, chosen: np.ndarray) -> Tensor:
        """Return some rows on the device."""
        if self.has_all:
            return self._held[self._device.places(chosen)]
        return (self._compute(chosen) - self._shift).to(self._dtype)

    def tail_bytes(self, size: int) -> int:
        """Return the bytes that :meth:`tail` takes."""
        return 8 * size * self.n_columns

    def tail(self, size: int) -> np.ndarray:
        """Return the last rows in double precision."""
        return self._device.fetch(self.rows(np.arange(self.n_rows - size, self.n_rows)))

    # -- products -----------------------------------------------------------------------------------------------

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """Return the products of the rows with vectors, given as (n_vectors, n_columns): (n_vectors, n_rows)."""
        sent, out = self._device.send(vectors), self._device.zeros(vectors.shape[0], self.n_rows)
        for rows, products in self._each(lambda _, block: self._device.products(block, sent)):
            out[:, rows] = products.T
        return self._device.fetch(out)

    def transposed_times(self, vectors: np.ndarray) -> np.ndarray:
        """Return the sums of the rows with these coefficients, given as (n_vectors, n_rows): (n_vectors, n_columns)."""
        return self._columns_times(vectors, lambda block: block)

    def squares_times(self, vectors: np.ndarray) -> np.ndarray:
        """Return the same of the squared entries."""
        return self._columns_times(vectors, lambda block: block.square())

    def _columns_times(self, vectors: np.ndarray, of_block: Callable[[Tensor], Tensor]) -> np.ndarray:
        device, sent = self._device, self._device.send(vectors)
        return device.fetch(self._sum(lambda rows, block: device.products(of_block(block).T, sent[:, rows]))).T.copy()

    def row_squares(self, factors: np.ndarray) -> np.ndarray:
        """Return the sums of each row's squares with these factors of the columns, shape (n_rows,)."""
        sent = self._device.send(factors[None])
        sums = [column[:, 0] for _, column in self._each(lambda _, block: self._device.products(block.square(), sent))]
        return self._device.fetch(self._device.torch.cat(sums))

    def squares_by_part(self, first: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weighted sum and the largest of the rows' squares on the columns ``first[k]`` to ``first[k + 1]``.

        Parameters
        ----------
        first : ndarray of shape (n_parts + 1,)
        weight : ndarray of shape (n_rows,)
        """
        device, sent = self._device, self._device.send(weight)
        belongs = np.repeat(np.eye(len(first) - 1), np.diff(first), axis=1)
        sums, largest = device.zeros(len(first) - 1), device.zeros(len(first) - 1)
        parts = device.send(belongs, self._dtype)
        for rows, squares in self._each(lambda _, block: device.products(block.square(), parts)):
            sums += sent[rows] @ squares
            largest = device.torch.maximum(largest, squares.max(0).values)
        return device.fetch(sums), device.fetch(largest)

    # -- linear systems -----------------------------------------------------------------------------------------

    def can_factor(self, n_columns: int) -> bool:
        """Return whether :meth:`bordered_solver` has room for the matrix of so many columns."""
        room = _factored_bytes(n_columns) <= self._device.free_bytes()
        return n_columns <= _MOST_FACTORED and room and self._device.has_double

    def factors_quickly(self, n_columns: int) -> bool:
        """Return whether it is worth its while: where there is room, it is."""
        return self.can_factor(n_columns)

    def bordered_solver(
        self, curvature: np.ndarray, factors: np.ndarray, intercept: bool
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return what solves ([X 1]' D [X 1] + diag(1, ..., 1, 0)) x = r; see :class:`FeatureTable`."""
        device = self._device
        columns = np.flatnonzero(factors)
        system = self._bordered_gram(curvature, columns, np.sqrt(factors[columns]), intercept)
        diagonal = system.diagonal()
        diagonal[: columns.size] += 1.0
        if not intercept:
            diagonal[-1] = 1.0
        lower, places = self._factored(system), np.append(columns, factors.size)

        def solve(right: np.ndarray) -> np.ndarray:
            out = np.zeros(factors.size + 1)
            solution = device.torch.cholesky_solve(device.send(right[places])[:, None], lower)
            out[places] = device.fetch(solution[:, 0])
            return out

        return solve

    def _bordered_gram(self, curvature: np.ndarray, columns: np.ndarray, root: np.ndarray, intercept: bool) -> Tensor:
        """Return the lower triangle of [X 1]' D [X 1] on some columns; without an intercept the border is 0."""
        device, size = self._device, columns.size
        bend, factor = device.send(np.sqrt(curvature)), device.send(root)
        places = slice(None) if size == self.n_columns else device.places(columns)
        total = device.zeros(size + 1, size + 1)

        def scaled(rows: slice, block: Tensor) -> Tensor:
            bordered = device.torch.empty(block.shape[0], size + 1, dtype=device.wide, device=device.where)
            bordered[:, :-1] = block[:, places]
            bordered[:, :-1] *= factor
            bordered[:, -1] = float(intercept)
            return bordered.mul_(bend[rows, None])

        for _, bordered in self._each(scaled):
            for low in range(0, size + 1, _PANEL):
                total[low:, low : low + _PANEL].addmm_(bordered[:, low:].T, bordered[:, low : low + _PANEL])
        return total

    def _factored(self, system: Tensor) -> Tensor:
        """Return a triangular factor of a matrix whose lower triangle is given and whose eigenvalues are at least 1."""
        linalg = self._device.torch.linalg
        lower, info = linalg.cholesky_ex(system)
        if int(info) == 0:
            return lower
        # As in compute/linalg.py: rounding has made it indefinite, and the nearest matrix that is not is factored.
        values, vectors = linalg.eigh(system)
        return linalg.qr((values.clamp_(min=1.0).sqrt_()[:, None] * vectors.T).flip(0), mode="r").R.T


def _factored_bytes(n_columns: int) -> int:
    """Return the bytes that a matrix of so many columns and its factor take, with their copies."""
    return 4 * 8 * n_columns**2
