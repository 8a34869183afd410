"""A column of dates as numbers: the trend, and the place of a date in the year, the week and the day."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from manykernels.core.notices import listed
from manykernels.tables.cells import as_dates, as_texts
from manykernels.tables.column import Column, standardized
from manykernels.tables.written_dates import order_of

# What recurs, and the number of its steps.
CYCLES = {"month": 12, "weekday": 7, "hour": 24}


@dataclass(frozen=True)
class DateColumn(Column):
    """A date: the time that has passed, scaled like a number, and a point on a circle for each cycle that varies.

    The cycles are the month, the day of the week and the hour. Where a date is missing, the trend is the median and
    the points are the centers of their circles.

    Parameters
    ----------
    fill, mean, scale : float
        Of the seconds since 1970 in the training column.
    missing : bool
        Whether an output marks where the date was missing: it does if that happened in training.
    cycles : list of str
        Those that vary in the training column.
    order : {"day", "month", ""}, default=""
        Which comes first in dates such as 1/2/2024, if there are any.
    """

    kind: ClassVar[str] = "date"
    word: ClassVar[str] = "date"
    plural: ClassVar[str] = "dates"
    fill: float
    mean: float
    scale: float
    missing: bool
    cycles: list[str]
    order: str = ""

    @classmethod
    def learn(cls, name: str, column: pd.Series) -> "DateColumn | None":
        """Return the encoding, or None when the column is constant."""
        order = "" if column.dtype.kind == "M" else order_of(as_texts(column).dropna().unique())
        seconds = as_dates(name, column, order)
        present = seconds[~np.isnan(seconds)]
        cycles = [cycle for cycle in CYCLES if len(np.unique(_steps(cycle, present))) > 1]
        return standardized(cls, name, seconds, cycles=cycles, order=order)

    def encode(self, name: str, column: pd.Series) -> np.ndarray:
        """Return an array of shape (n_rows, n_outputs)."""
        seconds = as_dates(name, column, self.order)
        gone = np.isnan(seconds)
        seconds = np.where(gone, self.fill, seconds)
        blocks = [(seconds - self.mean) / self.scale, *([gone] if self.missing else [])]
        for cycle in self.cycles:
            angles = 2 * np.pi * _steps(cycle, seconds) / CYCLES[cycle]
            blocks += [np.where(gone, 0.0, np.sin(angles)), np.where(gone, 0.0, np.cos(angles))]
        return np.column_stack(blocks).astype(np.float64)

    def labels(self) -> list[str]:
        """Return what distinguishes the output columns of this column."""
        circles = [f"({cycle} {part})" for cycle in self.cycles for part in ("sine", "cosine")]
        return ["", *(["(missing)"] if self.missing else []), *circles]

    def parts(self) -> dict[str, int]:
        """Return the trend and the circles with the number of their outputs."""
        return {"": 2 if self.missing else 1, **{f"{cycle} of ": 2 for cycle in self.cycles}}

    @classmethod
    def treatment(cls, columns: Mapping[str, "DateColumn"]) -> str:
        """Say in words what was done to columns of this kind."""
        cycles = [cycle for cycle in CYCLES if any(cycle in column.cycles for column in columns.values())]
        gaps = [name for name, column in columns.items() if column.missing]
        words = "a trend" + (f", and a circle each for {', '.join(cycles)}" if cycles else "")
        return words + (f"; missing dates: the median, and an indicator ({listed(gaps)})" if gaps else "")


def _steps(cycle: str, seconds: np.ndarray) -> np.ndarray:
    """Return the month (0 to 11), the day of the week (0 to 6, from Thursday) or the hour (0 to 23)."""
    if cycle == "month":
        months = np.floor(seconds).astype("datetime64[s]").astype("datetime64[M]")
        return months.astype(np.int64) % 12
    return seconds // 86_400 % 7 if cycle == "weekday" else seconds // 3600 % 24
