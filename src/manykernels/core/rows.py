"""Tables that are not in memory: on disk, where rows are read and checked when they are asked for, or Dask's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def is_on_disk(X: Any) -> bool:
    """Return whether X is a table whose rows are read when they are asked for: a memory map, or a RowSource.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.core.rows import is_on_disk
    >>> is_on_disk(np.zeros((2, 2)))
    False
    """
    return isinstance(X, (np.memmap, CheckedRows)) or bool(getattr(X, "is_row_source", False))


def is_dask(data: Any) -> bool:
    """Return whether data is a Dask array, DataFrame or the like, or wraps one; Dask need not be installed.

    Containers that may or may not hold Dask arrays, such as those of xarray, have Dask's methods in any case; their
    graph is None if they do not. Dask's own collections are not asked for a graph, since a DataFrame would make its
    whole plan for that.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.core.rows import is_dask
    >>> is_dask(np.zeros((2, 2)))
    False
    """
    graph = getattr(data, "__dask_graph__", None)
    if isinstance(data, type) or not callable(graph):
        return False
    return _is_of_dask(data) or graph() is not None


def bare_dask(data: Any) -> Any:
    """Return the Dask collection that a container holds, or the data as they are if they are not such a container."""
    if not is_dask(data) or _is_of_dask(data):
        return data
    inside = getattr(data, "data", data)
    return inside if is_dask(inside) else data


def _is_of_dask(data: Any) -> bool:
    return type(data).__module__.split(".")[0] in ("dask", "dask_expr", "dask_cudf")


_NEEDS_FEATURES = (
    "A table on disk needs MKLClassifier or MKLRegressor with approximation='nystroem' or 'fourier'; to read it into "
    "memory, pass X[:]."
)


def refuse_row_source(X: Any, words: str = _NEEDS_FEATURES) -> None:
    """Raise ValueError if X is a table on disk that is not an array."""
    if getattr(X, "is_row_source", False):
        raise ValueError(words)


class CheckedRows:
    """A table on disk whose rows come in double precision and are checked for NaN and infinity.

    Parameters
    ----------
    source : memory map, or object with ``shape`` whose slices and selections of rows are arrays
    allow_nan : bool
        Whether rows may hold NaN.
    check : function of a block of rows, optional
        Raises where NaN is not allowed.
    last : function of a block of rows, optional
        What is done to rows that passed.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.core.rows import CheckedRows
    >>> rows = CheckedRows(np.array([[1, 2], [3, 4]]), allow_nan=False)
    >>> rows[:1], rows.shape
    (array([[1., 2.]]), (2, 2))
    """

    ndim = 2
    is_read_in_blocks = True

    def __init__(
        self,
        source: Any,
        allow_nan: bool,
        check: Callable[[np.ndarray], None] | None = None,
        last: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        if len(source.shape) != 2:
            raise ValueError(f"X must have two dimensions, got shape {tuple(source.shape)}.")
        self.source, self.shape, self._allow_nan, self.check = source, tuple(source.shape), allow_nan, check
        self._last = last

    def then(self, function: Callable[[np.ndarray], np.ndarray]) -> CheckedRows:
        """Return the same rows, each block as ``function`` returns it."""
        return CheckedRows(self.source, self._allow_nan, self.check, function)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray:
        block = np.asarray(self.source[rows], dtype=np.float64)
        allowed = ~np.isinf(block) if self._allow_nan else np.isfinite(block)
        if not allowed.all():
            where = int(np.flatnonzero(~allowed.all(axis=1))[0])
            first = rows.start or 0 if isinstance(rows, slice) else rows[where] - where
            raise ValueError(f"Input X contains NaN or infinity, first in row {first + where}.")
        if self.check is not None:
            self.check(block)
        return block if self._last is None else self._last(block)
