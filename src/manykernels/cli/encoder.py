"""A table as numbers, in the same way at training and at prediction."""

from typing import Any

import numpy as np
import pandas as pd

from manykernels.cli.columns import KINDS, Column, LevelsColumn, as_texts, kind_of

# pandas calls the columns so that have no name, such as an index that was written with the table.
_UNNAMED = "Unnamed: "


class TableEncoder:
    """Turn a table into floats, and remember which of them come from which column.

    Numbers are standardized, their missing values are filled with the median; true and false become 1
    and 0; a category becomes one 0/1 output for each level (the 50 most frequent ones; the others share
    one); dates become seconds. Constant columns, columns without a name and text that differs in every row
    are left out.

    Attributes
    ----------
    sources : dict
        From the name of each column that is used to the list of its outputs.
    feature_names : list of str
        Names of the outputs.
    notes : list of str
        What was left out or merged, in sentences.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [30, 50], "city": ["Rome", "Rome"], "smokes": [True, False]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.transform(table)
    array([[-1.,  1.],
           [ 1.,  0.]])
    >>> encoder.sources
    {'age': [0], 'smokes': [1]}
    """

    def __init__(self) -> None:
        self._columns: dict[str, Column] = {}
        self.notes: list[str] = []

    @property
    def sources(self) -> dict[str, list[int]]:
        """From the name of each column that is used to the list of its outputs."""
        sources, start = {}, 0
        for name, column in self._columns.items():
            size = len(column.labels())
            sources[name] = list(range(start, start + size))
            start += size
        return sources

    @property
    def feature_names(self) -> list[str]:
        """Names of the outputs, such as ``age`` and ``city=Rome``."""
        return [
            f"{name}={label}" if label else name for name, column in self._columns.items() for label in column.labels()
        ]

    def fit(self, table: pd.DataFrame) -> "TableEncoder":
        """Learn the encoding from a training table (without its target).

        Parameters
        ----------
        table : pandas.DataFrame
            At least one of its columns must vary.

        Returns
        -------
        self : TableEncoder
        """
        columns: dict[str, Column] = {}
        notes: list[str] = []
        for name, values in table.items():
            column = _learn(str(name), values, notes)
            if column is not None:
                columns[str(name)] = column
        if not columns:
            reason = "each one is constant, an identifier or without a name" if notes else "it has none"
            raise ValueError(f"TABLE must have a column to learn from beside the target; {reason}.")
        self._columns, self.notes = columns, notes
        return self

    def transform(self, table: pd.DataFrame) -> np.ndarray:
        """Encode a table; columns that the training table did not have are ignored.

        Parameters
        ----------
        table : pandas.DataFrame
            With every column of the training table that is used.

        Returns
        -------
        X : array of float64, shape (n_rows, n_outputs)
        """
        missing = [name for name in self._columns if name not in table.columns]
        if missing:
            plural = "s" if len(missing) > 1 else ""
            names = ", ".join(repr(name) for name in missing)
            raise ValueError(f"TABLE lacks the column{plural} {names} that the model was trained on.")
        return np.hstack([column.encode(name, table[name]) for name, column in self._columns.items()])

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as plain data, fit for JSON.

        Returns
        -------
        state : dict
        """
        columns = [{"name": name, **column.to_dict()} for name, column in self._columns.items()]
        return {"columns": columns, "notes": list(self.notes)}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> "TableEncoder":
        """Restore an encoder.

        Parameters
        ----------
        state : dict
            What `to_dict` gave.

        Returns
        -------
        encoder : TableEncoder
        """
        encoder = cls()
        try:
            for entry in state["columns"]:
                fields = {key: value for key, value in entry.items() if key not in ("name", "kind")}
                encoder._columns[entry["name"]] = KINDS[entry["kind"]](**fields)
            encoder.notes = list(state["notes"])
        except (KeyError, TypeError) as error:
            raise ValueError("The encoding of the table is not in the form that to_dict gives.") from error
        return encoder


def _learn(name: str, values: pd.Series, notes: list[str]) -> Column | None:
    """Return the encoding of one column, or None and a note on why it is left out."""
    if name.startswith(_UNNAMED):
        notes.append(f"Column {name!r} has no name of its own and is left out.")
        return None
    if values.isna().all():
        raise ValueError(f"Column {name!r} has no values in the {len(values)} training rows; remove it.")
    kind = kind_of(name, values)
    if kind is LevelsColumn and _is_identifier(values):
        notes.append(f"Column {name!r} differs in every row, as an identifier does, and is left out.")
        return None
    column = kind.learn(name, values)
    if column is None:
        notes.append(f"Column {name!r} is constant and is left out.")
    elif isinstance(column, LevelsColumn) and column.rare:
        notes.append(f"Column {name!r} has many levels: its {len(column.rare)} rarest share one output.")
    return column


def _is_identifier(values: pd.Series) -> bool:
    present = as_texts(values).dropna()
    # Categories declared as such are trusted; with one row there is nothing to compare.
    return not isinstance(values.dtype, pd.CategoricalDtype) and len(present) > 1 and present.is_unique
