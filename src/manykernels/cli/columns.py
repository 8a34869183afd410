"""One column of a table as numbers: one class for each kind of column.

A kind learns what it needs from the training column (``learn``), writes it as plain data (``to_dict``) and
turns any later column into a block of floats (``encode``).
"""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pandas.api import types

MAX_LEVELS = 50
_FLAGS = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0}


@dataclass(frozen=True)
class NumericColumn:
    """A number: missing values become the median, then mean 0 and standard deviation 1.

    Parameters
    ----------
    fill, mean, scale : float
        Learned from the training column.
    """

    kind: ClassVar[str] = "numeric"
    fill: float
    mean: float
    scale: float

    @classmethod
    def learn(cls, name: str, column: pd.Series) -> "NumericColumn | None":
        """Return the encoding, or None when the column is constant."""
        values = as_numbers(name, column)
        fill = float(np.nanmedian(values))
        values = np.where(np.isnan(values), fill, values)
        if values.min() == values.max():
            return None
        with np.errstate(over="ignore"):
            mean, scale = float(values.mean()), float(values.std())
        if not np.isfinite([mean, scale]).all() or scale == 0:
            raise ValueError(f"Column {name!r} cannot be standardized: its values are too large or too close.")
        return cls(fill, mean, scale)

    def encode(self, name: str, column: pd.Series) -> np.ndarray:
        """Return an array of shape (n_rows, 1)."""
        values = as_numbers(name, column)
        values = np.where(np.isnan(values), self.fill, values)
        return ((values - self.mean) / self.scale)[:, None]

    def labels(self) -> list[str]:
        """Return what distinguishes the output columns of this column."""
        return [""]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class FlagColumn:
    """True or false: 1 or 0.

    Parameters
    ----------
    fill : float
        The more frequent value, for rows that lack it later.
    """

    kind: ClassVar[str] = "flag"
    fill: float

    @classmethod
    def learn(cls, name: str, column: pd.Series) -> "FlagColumn | None":
        """Return the encoding, or None when the column is constant."""
        values = _as_flags(name, column)
        return None if np.ptp(values) == 0 else cls(float(values.mean() >= 0.5))

    def encode(self, name: str, column: pd.Series) -> np.ndarray:
        """Return an array of shape (n_rows, 1)."""
        values = _as_flags(name, column)
        return np.where(np.isnan(values), self.fill, values)[:, None]

    def labels(self) -> list[str]:
        """Return what distinguishes the output columns of this column."""
        return [""]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class LevelsColumn:
    """A category: one 0/1 output for each frequent level, one for the rare ones, one for missing.

    A level that was not seen in training is all zeros.

    Parameters
    ----------
    levels : list of str
        The frequent levels, the most frequent first.
    rare : list of str
        The levels that share the output "(other)".
    missing : bool
        Whether there is an output for missing values.
    """

    kind: ClassVar[str] = "levels"
    levels: list[str]
    rare: list[str]
    missing: bool

    @classmethod
    def learn(cls, name: str, column: pd.Series) -> "LevelsColumn | None":
        """Return the encoding, or None when the column is constant."""
        texts = as_texts(column)
        counts = texts.value_counts()
        # Ties go by the alphabet, so that the encoding does not depend on the order of the rows.
        order = sorted(counts.index, key=lambda level: (-counts[level], level))
        missing = bool(texts.isna().any())
        if len(order) + missing < 2:
            return None
        return cls(order[:MAX_LEVELS], order[MAX_LEVELS:], missing)

    def encode(self, name: str, column: pd.Series) -> np.ndarray:
        """Return an array of shape (n_rows, n_outputs)."""
        texts = as_texts(column)
        blocks = [(texts == level).to_numpy(dtype=bool) for level in self.levels]
        if self.rare:
            blocks.append(texts.isin(self.rare).to_numpy())
        if self.missing:
            blocks.append(texts.isna().to_numpy())
        return np.column_stack(blocks).astype(np.float64)

    def labels(self) -> list[str]:
        """Return what distinguishes the output columns of this column."""
        return [*self.levels, *(["(other)"] if self.rare else []), *(["(missing)"] if self.missing else [])]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"kind": self.kind, **asdict(self)}


Column = NumericColumn | FlagColumn | LevelsColumn
KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (NumericColumn, FlagColumn, LevelsColumn)}


def kind_of(name: str, column: pd.Series) -> type[Column]:
    """Choose the kind of a column of a training table.

    Parameters
    ----------
    name : str
        For the error message.
    column : pandas.Series
        With at least one value.

    Returns
    -------
    kind : type
        One of the classes above.

    Examples
    --------
    >>> kind_of("age", pd.Series([1.5, 2.0])).kind
    'numeric'
    """
    values = column.dropna()
    word = types.infer_dtype(values, skipna=True)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return LevelsColumn
    if word == "boolean":
        # A missing value is a third answer, which one number cannot hold.
        return LevelsColumn if column.isna().any() else FlagColumn
    if word in _NUMBER_WORDS or types.is_numeric_dtype(column.dtype):
        if word == "complex":
            raise ValueError(f"Column {name!r} holds complex numbers; it needs real numbers or categories.")
        return NumericColumn
    if any(isinstance(value, (list, tuple, dict, set, np.ndarray)) for value in values):
        raise ValueError(f"Column {name!r} holds lists; each cell needs one number or one category.")
    return LevelsColumn


_DATE_WORDS = {"datetime64", "datetime", "date"}
_SPAN_WORDS = {"timedelta64", "timedelta"}
_NUMBER_WORDS = {"integer", "floating", "mixed-integer-float", "decimal"} | _DATE_WORDS | _SPAN_WORDS


def as_numbers(name: str, column: pd.Series) -> np.ndarray:
    """Return a column as floats, missing values as NaN; dates become seconds since 1970.

    Parameters
    ----------
    name : str
        For the error message.
    column : pandas.Series
        Numbers, dates, durations or text that reads as numbers.

    Returns
    -------
    values : array of shape (n_rows,)

    Examples
    --------
    >>> as_numbers("age", pd.Series(["4", None]))
    array([ 4., nan])
    """
    word = types.infer_dtype(column, skipna=True)
    try:
        if word in _DATE_WORDS:
            column = (pd.to_datetime(column, utc=True) - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
        elif word in _SPAN_WORDS:
            column = pd.to_timedelta(column).dt.total_seconds()
        elif word == "decimal":
            column = column.astype(float)
        values = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError) as error:
        sample = next((str(value) for value in column.dropna() if not _is_number(value)), "text")
        raise ValueError(f"Column {name!r} must hold numbers; it holds {sample!r}.") from error
    if np.isinf(values).any():
        rows = int(np.isinf(values).sum())
        raise ValueError(f"Column {name!r} must hold finite numbers; it is infinite in {rows} rows.")
    return values


def as_texts(column: pd.Series) -> pd.Series:
    """Return a column as text, with 3 and 3.0 alike, and missing values as None.

    Parameters
    ----------
    column : pandas.Series
        Values of any type.

    Returns
    -------
    texts : pandas.Series of object

    Examples
    --------
    >>> as_texts(pd.Series([3.0, None])).tolist()
    ['3', None]
    """
    texts = [None if missing else _text(value) for value, missing in zip(column, column.isna(), strict=True)]
    return pd.Series(texts, dtype=object, index=column.index)


def _text(value: object) -> str:
    # One missing value turns a column of integers into floats, which must stay the same levels.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _as_flags(name: str, column: pd.Series) -> np.ndarray:
    texts = as_texts(column)
    values = texts.str.lower().map(_FLAGS).to_numpy(dtype=np.float64)
    wrong = np.isnan(values) & texts.notna().to_numpy()
    if wrong.any():
        raise ValueError(f"Column {name!r} must hold true or false; it holds {texts[wrong].iloc[0]!r}.")
    return values


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True
