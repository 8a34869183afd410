"""One column of a table as numbers, with a class for each kind of column.

A kind learns what it needs from the training column (``learn``), writes it as plain data (``to_dict``) and
turns any later column into a block of floats (``encode``).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from manykernels.core.notices import listed
from manykernels.tables.cells import as_flags, as_numbers, as_texts, spelled_as

MAX_LEVELS = 50


class Column(ABC):
    """What every kind of column has: its names, and its encoding as plain data.

    A subclass is a frozen dataclass of what it learned.
    """

    kind: ClassVar[str]  # in model files
    word: ClassVar[str]  # in views files and results
    plural: ClassVar[str]
    useless: ClassVar[str] = "is constant"  # why learn returned None
    two_valued: bool = False  # of a number: whether it says no more than true and false do

    @classmethod
    @abstractmethod
    def learn(cls, name: str, column: pd.Series) -> Self | None:
        """Return the encoding, or None when the column cannot tell the rows apart."""

    @abstractmethod
    def encode(self, name: str, column: pd.Series) -> np.ndarray:
        """Return an array of shape (n_rows, n_outputs)."""

    @abstractmethod
    def labels(self) -> list[str]:
        """Return what distinguishes the output columns of this column."""

    @classmethod
    @abstractmethod
    def treatment(cls, columns: Mapping[str, Any]) -> str:
        """Say in words what was done to columns of this kind, given by name."""

    def parts(self) -> dict[str, int]:
        """Return the parts that get kernels of their own: the words before the column's name, by number of outputs."""
        return {"": len(self.labels())}

    def n_merged(self) -> int:
        """Return how many values share an output because they are rare."""
        return 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True)
class NumericColumn(Column):
    """A number: missing values become the median, then mean 0 and standard deviation 1.

    Parameters
    ----------
    fill, mean, scale : float
        Learned from the training column.
    missing : bool, default=False
        Whether a second output marks where the value was missing: it does if that happened in training.
    two_valued : bool, default=False
        Whether the output had two values in training, such as 0 and 1.
    """

    kind: ClassVar[str] = "numeric"
    word: ClassVar[str] = "number"
    plural: ClassVar[str] = "numbers"
    fill: float
    mean: float
    scale: float
    missing: bool = False
    two_valued: bool = False

    @classmethod
    def learn(cls, name: str, column: pd.Series) -> "NumericColumn | None":
        """Return the encoding, or None when the column is constant."""
        values = as_numbers(name, column)
        return standardized(cls, name, values, two_valued=_are_two(values))

    def encode(self, name: str, column: pd.Series) -> np.ndarray:
        """Return an array of shape (n_rows, 1), or (n_rows, 2) with the indicator."""
        values = as_numbers(name, column)
        gone = np.isnan(values)
        number = (np.where(gone, self.fill, values) - self.mean) / self.scale
        return np.column_stack([number, gone]) if self.missing else number[:, None]

    def labels(self) -> list[str]:
        """Return what distinguishes the output columns of this column."""
        return ["", "(missing)"] if self.missing else [""]

    @classmethod
    def treatment(cls, columns: Mapping[str, "NumericColumn"]) -> str:
        """Say in words what was done to columns of this kind."""
        gaps = [name for name, column in columns.items() if column.missing]
        words = "scaled to mean 0 and standard deviation 1"
        return words + (f"; missing values: the median, and an indicator ({listed(gaps)})" if gaps else "")


def _are_two(values: np.ndarray) -> bool:
    # A gap would be a third value.
    return bool(np.all((values == values.min()) | (values == values.max())))


def standardized(cls: Any, name: str, values: np.ndarray, **more: Any) -> Any:
    """Make a column with a fill value, mean, scale and an indicator of missing values, or None for a constant."""
    gone = np.isnan(values)
    fill = float(np.nanmedian(values))
    values = np.where(gone, fill, values)
    if values.min() == values.max():
        return None
    with np.errstate(over="ignore"):
        mean, scale = float(values.mean()), float(values.std())
    if not np.isfinite([mean, scale]).all() or scale == 0:
        raise ValueError(f"Column {name!r} cannot be standardized: its values are too large or too close.")
    return cls(fill=fill, mean=mean, scale=scale, missing=bool(gone.any()), **more)


@dataclass(frozen=True)
class FlagColumn(Column):
    """True or false: 1 or 0.

    Parameters
    ----------
    fill : float
        The more frequent value, used for later rows that lack one.
    """

    kind: ClassVar[str] = "flag"
    word: ClassVar[str] = "boolean"
    plural: ClassVar[str] = "true or false"
    fill: float

    @classmethod
    def learn(cls, name: str, column: pd.Series) -> "FlagColumn | None":
        """Return the encoding, or None when the column is constant."""
        values = as_flags(name, column)
        return None if np.ptp(values) == 0 else cls(float(values.mean() >= 0.5))

    def encode(self, name: str, column: pd.Series) -> np.ndarray:
        """Return an array of shape (n_rows, 1)."""
        values = as_flags(name, column)
        return np.where(np.isnan(values), self.fill, values)[:, None]

    def labels(self) -> list[str]:
        """Return what distinguishes the output columns of this column."""
        return [""]

    @classmethod
    def treatment(cls, columns: Mapping[str, "FlagColumn"]) -> str:
        """Say in words what was done to columns of this kind."""
        return "true is 1, false is 0"


@dataclass(frozen=True)
class LevelsColumn(Column):
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
    word: ClassVar[str] = "category"
    plural: ClassVar[str] = "categories"
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
        texts = spelled_as(as_texts(column), [*self.levels, *self.rare])
        blocks = [(texts == level).to_numpy(dtype=bool) for level in self.levels]
        if self.rare:
            blocks.append(texts.isin(self.rare).to_numpy())
        if self.missing:
            blocks.append(texts.isna().to_numpy())
        return np.column_stack(blocks).astype(np.float64)

    def labels(self) -> list[str]:
        """Return what distinguishes the output columns of this column."""
        return [*self.levels, *(["(other)"] if self.rare else []), *(["(missing)"] if self.missing else [])]

    def n_merged(self) -> int:
        """Return how many levels share an output because they are rare."""
        return len(self.rare)

    @classmethod
    def treatment(cls, columns: Mapping[str, "LevelsColumn"]) -> str:
        """Say in words what was done to columns of this kind."""
        gaps = [name for name, column in columns.items() if column.missing]
        many = [name for name, column in columns.items() if column.rare]
        words = "compared by whether they agree (overlap)"
        words += f"; missing is a category of its own ({listed(gaps)})" if gaps else ""
        return words + (f"; all but the {MAX_LEVELS} most frequent count as one ({listed(many)})" if many else "")
