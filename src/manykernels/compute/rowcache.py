"""The rows of a large matrix that were used last, in a fixed amount of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from manykernels.compute.compiled import njit

_AT_A_TIME = 512  # rows: many enough for matrix products, few enough to need little memory in addition to the cache
Compute = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


class RowCache:
    """Rows of a matrix on some of its columns, computed on demand; the least recently used make room for others.

    Parameters
    ----------
    compute : callable
        ``compute(rows, columns, out)`` writes the block [rows, columns] to ``out``.
    n_bytes : int
        Memory for the rows, in float32.

    Attributes
    ----------
    columns : ndarray of int
        The columns that are held, rising.
    values : ndarray of shape (capacity, len(columns))
        Row ``place`` holds what :meth:`places` gave that place to.
    n_computed : int
        Entries computed so far.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.rowcache import RowCache
    >>> K = np.arange(16.0).reshape(4, 4)
    >>> cache = RowCache(lambda rows, columns, out: np.copyto(out, K[np.ix_(rows, columns)]), n_bytes=10**3)
    >>> cache.restrict(np.array([0, 2]))
    >>> cache.values[cache.places(np.array([1, 3]))]
    array([[ 4.,  6.],
           [12., 14.]], dtype=float32)
    """

    def __init__(self, compute: Compute, n_bytes: int) -> None:
        self._compute = compute
        self._memory: np.ndarray = np.empty(max(n_bytes // 4, 1), np.float32)
        self._held: OrderedDict[int, int] = OrderedDict()  # row -> place, the least recently used first
        self._given = 0  # places that rows have had; those from here on are free
        self.n_computed = 0
        self.columns = np.empty(0, np.int64)
        self.values = self._memory[:0].reshape(0, 0)

    @property
    def n_bytes(self) -> int:
        """Memory for the rows."""
        return self._memory.nbytes

    @property
    def capacity(self) -> int:
        """How many rows fit."""
        return self.values.shape[0]

    def clear(self) -> None:
        """Forget all rows."""
        self._held.clear()
        self._given = 0

    def restrict(self, columns: np.ndarray) -> None:
        """Hold these (rising) columns from now on; rows that are there stay where all of the columns were held."""
        where = np.searchsorted(self.columns, columns)
        where[where == self.columns.size] = 0
        narrower = self.columns.size > 0 and np.array_equal(self.columns[where], columns)
        old = self.values
        self.columns = columns
        capacity = self._memory.size // max(columns.size, 1)
        if capacity < 1:
            raise MemoryError(f"one row of {columns.size} values does not fit into {self._memory.nbytes} bytes")
        self.values = self._memory[: capacity * columns.size].reshape(capacity, columns.size)
        if not narrower:
            self.clear()
            return
        # Each row moves to the front of where it was, in rising order: nothing is overwritten before it is read.
        kept = sorted(self._held.values())
        _gather(old, np.array(kept, dtype=np.int64), where, self.values)
        place = {before: after for after, before in enumerate(kept)}
        self._held = OrderedDict((row, place[before]) for row, before in self._held.items())
        self._given = len(kept)

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Return where the rows stand in ``values``, computing those that are not there; at most ``capacity`` rows."""
        if rows.size > self.capacity:
            raise ValueError(f"{rows.size} rows do not fit into a cache of {self.capacity}")
        wanted = rows.tolist()
        missing = []
        for row in wanted:
            if row in self._held:
                self._held.move_to_end(row)
            else:
                missing.append(row)
        if missing:
            self._fill(missing)
        return np.array([self._held[row] for row in wanted], dtype=np.int64)

    def _fill(self, missing: list[int]) -> None:
        places = [self._free_place() for _ in missing]
        for low in range(0, len(missing), _AT_A_TIME):
            rows, taken = missing[low : low + _AT_A_TIME], places[low : low + _AT_A_TIME]
            block: np.ndarray = np.zeros((len(rows), self.columns.size), np.float32)
            self._compute(np.array(rows), self.columns, block)
            self.values[taken] = block
        self.n_computed += len(missing) * self.columns.size
        self._held.update(zip(missing, places, strict=True))

    def _free_place(self) -> int:
        """Return a place that no row has had, or that of the row least recently used."""
        if self._given == self.capacity:
            return self._held.popitem(last=False)[1]
        self._given += 1
        return self._given - 1


@njit(cache=True, nogil=True)
def _gather(source, rows, columns, out):
    for r in range(rows.size):
        row, target = source[rows[r]], out[r]
        for c in range(columns.size):
            target[c] = row[columns[c]]
