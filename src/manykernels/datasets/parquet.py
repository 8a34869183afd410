"""Rows of Parquet files, read a group at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


class ParquetRows:
    """Numeric columns of a Parquet file as a table that is not in memory; ``fit(ParquetRows(path), y)``.

    A row group is read when some of its rows are asked for; the last one is kept.

    Parameters
    ----------
    path : str or path
        A Parquet file.
    columns : sequence of str, optional
        The columns to take; default: all but ``without``.
    without : sequence of str, optional
        Columns to leave out, such as the target.

    Attributes
    ----------
    shape : (int, int)
    columns : ndarray of str

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> from pathlib import Path
    >>> from manykernels.datasets import ParquetRows
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "table.parquet"
    >>> pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "y": [0, 1, 0]}).to_parquet(path)
    >>> rows = ParquetRows(path, without=["y"])
    >>> rows.shape, rows[1:].tolist(), rows.column("y").tolist()
    ((3, 2), [[2.0, 1.5], [3.0, 2.5]], [0, 1, 0])
    """

    is_row_source = True
    ndim = 2

    def __init__(self, path: Any, columns: Sequence[str] | None = None, without: Sequence[str] = ()) -> None:
        try:
            import pyarrow.parquet as pq  # noqa: PLC0415 - large, and needed only for such files
        except ImportError as error:
            raise ImportError('Parquet files need pyarrow: pip install "manykernels[parquet]".') from error
        self.path = Path(path)
        self._file = pq.ParquetFile(self.path)
        names = self._file.schema_arrow.names
        unknown = [name for name in [*(columns or ()), *without] if name not in names]
        if unknown:
            raise ValueError(f"{self.path.name} has no column {unknown[0]!r}.")
        chosen = list(columns) if columns is not None else [name for name in names if name not in without]
        self.columns = np.array(chosen, dtype=object)
        sizes = [self._file.metadata.row_group(g).num_rows for g in range(self._file.num_row_groups)]
        self._first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.shape = (int(self._first[-1]), len(chosen))
        self._last: tuple[int, np.ndarray] = (-1, np.zeros((0, 0)))

    def __len__(self) -> int:
        return self.shape[0]

    def __reduce__(self) -> tuple:
        """An open file cannot be sent to another process; its path can."""
        return type(self), (self.path, list(self.columns))

    def column(self, name: str) -> np.ndarray:
        """Return a whole column, such as the target."""
        return self._file.read([name]).column(0).to_numpy()

    def __getitem__(self, rows: Any) -> np.ndarray:
        """Return rows, by a slice or by numbers, as an array in double precision."""
        wanted = np.arange(*rows.indices(self.shape[0])) if isinstance(rows, slice) else np.asarray(rows)
        out = np.empty((wanted.size, self.shape[1]))
        owner = np.searchsorted(self._first, wanted, side="right") - 1
        for group in np.unique(owner):
            places = np.flatnonzero(owner == group)
            out[places] = self._group(int(group))[wanted[places] - self._first[group]]
        return out

    def _group(self, group: int) -> np.ndarray:
        number, values = self._last
        if number != group:
            table = self._file.read_row_group(group, columns=list(self.columns))
            try:
                values = np.column_stack([np.asarray(column.to_numpy(), dtype=np.float64) for column in table.columns])
            except (TypeError, ValueError) as error:
                raise ValueError(f"{self.path.name} has a column that does not hold numbers: {error}") from error
            self._last = (group, values)
        return values
