"""A table as numbers, in the same way at training and at prediction."""

import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from manykernels.core.notices import listed
from manykernels.tables.column import Column, FlagColumn, LevelsColumn
from manykernels.tables.kinds import IGNORE, KINDS, kind_of, refuse_mixtures
from manykernels.tables.reading import is_libsvm, read_table
from manykernels.tables.sentences import Sentence, Setting

# What pandas calls columns without a name, such as an index that was written with the table.
_UNNAMED = "Unnamed: "
_BY_WORD = {kind.word: kind for kind in KINDS}
_BY_KIND = {kind.kind: kind for kind in KINDS}
# What a user can declare a column to be.
WORDS = (*_BY_WORD, IGNORE)


class Block(NamedTuple):
    """The outputs of one column: its name and kind, their places, and which of them have kernels of their own.

    ``parts`` maps labels to outputs; the first part of a number or a date is its value. A number may be two-valued:
    then it says no more than true and false do.
    """

    name: str
    kind: str
    outputs: list[int]
    parts: dict[str, list[int]]
    two_valued: bool = False


class TableEncoder:
    """Turn a table into floats, and remember which of them come from which column.

    Numbers are standardized, their missing values are filled with the median and marked by an indicator; true and
    false become 1 and 0; a category becomes one 0/1 output for each level (the 50 most frequent ones; the others
    share one); dates become a trend and circles; free text becomes tf-idf of words and of pieces of words. Constant
    columns, columns without a name or without values and identifiers are left out.

    Parameters
    ----------
    kinds : mapping from str to str, optional
        What some columns are, where this should not be guessed: "number", "boolean", "category", "date", "text", or
        "ignore" to leave a column out.

    Attributes
    ----------
    columns : dict
        The encoding of each column that is used, by its name.
    left_out : dict
        The reason why a column is not used, by its name.
    blocks : list of Block
        The outputs of each column.
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
    >>> [(block.name, block.outputs) for block in encoder.blocks]
    [('age', [0]), ('smokes', [1])]
    """

    def __init__(self, kinds: Mapping[str, str] | None = None) -> None:
        self._kinds = dict(kinds or {})
        self.columns: dict[str, Column] = {}
        self.left_out: dict[str, str] = {}

    @property
    def blocks(self) -> list[Block]:
        """The outputs of each column that is used."""
        blocks, place = [], itertools.count()
        for name, column in self.columns.items():
            parts = {words + name: list(itertools.islice(place, size)) for words, size in column.parts().items()}
            outputs = [output for places in parts.values() for output in places]
            blocks.append(Block(name, column.word, outputs, parts, column.two_valued))
        return blocks

    @property
    def feature_names(self) -> list[str]:
        """Names of the outputs, such as ``age`` and ``city=Rome``."""
        return [
            f"{name}={label}" if label else name for name, column in self.columns.items() for label in column.labels()
        ]

    @property
    def notes(self) -> list[str]:
        """What was left out or merged, in sentences."""
        gone = [f"Column {name!r} {reason} and is left out." for name, reason in self.left_out.items()]
        merged = [
            f"Column {name!r} has many levels: its {column.n_merged()} rarest share one output."
            for name, column in self.columns.items()
            if column.n_merged()
        ]
        return gone + merged

    def fit(self, table: pd.DataFrame, rows: np.ndarray | None = None) -> "TableEncoder":
        """Learn the encoding from a training table (without its target).

        Parameters
        ----------
        table : pandas.DataFrame
            At least one of its columns must vary.
        rows : array of int, optional
            The rows to learn from; by default all. The others only count in messages about a column that is refused.

        Returns
        -------
        self : TableEncoder
        """
        columns: dict[str, Column] = {}
        left_out: dict[str, str] = {}
        # All columns at once: with many thousands of them, taking the rows of each by itself would take seconds.
        training = table if rows is None else table.iloc[rows]
        for (name, column), (_, values) in zip(table.items(), training.items(), strict=True):
            learned = self._learn(str(name), column, values)
            if isinstance(learned, str):
                left_out[str(name)] = learned
            else:
                columns[str(name)] = learned
        if not columns:
            reasons = [f"{name!r} {reason.rstrip(',')}" for name, reason in left_out.items()]
            needed = "The table must have a column to learn from besides the target; "
            if not reasons:
                raise ValueError(f"{needed}it has none.")
            raise ValueError(Sentence(needed, listed(reasons), " (", Setting("views"), " can say what a column is)."))
        self.columns, self.left_out = columns, left_out
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
        missing = [name for name in self.columns if name not in table.columns]
        if missing:
            plural = "s" if len(missing) > 1 else ""
            names = listed([repr(name) for name in missing])
            raise ValueError(f"The table lacks the column{plural} {names}, on which the model was trained.")
        return np.hstack([column.encode(name, table[name]) for name, column in self.columns.items()])

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as plain data, fit for JSON.

        Returns
        -------
        state : dict
        """
        columns = [{"name": name, **column.to_dict()} for name, column in self.columns.items()]
        return {"columns": columns, "left_out": dict(self.left_out)}

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
                encoder.columns[entry["name"]] = _BY_KIND[entry["kind"]](**fields)
            encoder.left_out = dict(state["left_out"])
        except (KeyError, TypeError) as error:
            raise ValueError("The encoding of the table is not in the form that to_dict gives.") from error
        return encoder

    def _learn(self, name: str, column: pd.Series, values: pd.Series) -> Column | str:
        """Return the encoding of one column, learned from its values in training rows, or why it is left out."""
        word = self._kinds.get(name)
        if word == IGNORE:
            return "is to be ignored"
        if word is None and name.startswith(_UNNAMED):
            return "has no name of its own"
        if values.isna().all():
            return f"has no values in the {len(values)} training rows"
        if word is None:
            refuse_mixtures(name, column)
        kind = kind_of(name, values) if word is None else _BY_WORD[word]
        if isinstance(kind, str):
            return kind
        if kind is FlagColumn and values.isna().any():
            kind = LevelsColumn  # a missing value is a third level
        return kind.learn(name, values) or kind.useless


def encode_table(path: str | Path, encoder: TableEncoder) -> tuple[pd.DataFrame, np.ndarray]:
    """Read a table and encode it for a model.

    Parameters
    ----------
    path : path
        Of the table, in any format that `read_table` knows.
    encoder : TableEncoder
        Of the model.

    Returns
    -------
    table : pandas.DataFrame
        As it was read, with the target if it is there.
    X : array of shape (n_rows, n_outputs)
    """
    table = read_table(path)
    if is_libsvm(path):
        # Features that no row of a LIBSVM file mentions are zero.
        absent = [name for name in encoder.columns if name not in table and re.fullmatch(r"f\d+", name)]
        table = pd.concat([table, pd.DataFrame(0.0, index=table.index, columns=pd.Index(absent))], axis=1)
    return table, encoder.transform(table)
