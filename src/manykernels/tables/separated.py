"""Read values that are separated by commas, semicolons, tabs or bars."""

import csv
import gzip
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import pandas as pd

from manykernels.tables.written_numbers import read_notation

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# The bytes that are inspected to tell text from other files.
_START = 1 << 16
# A first line that gives the separator, as Excel reads and writes it.
_SAID = re.compile(r'"?sep=(?P<mark>[^\w\s]|\t)"?', re.IGNORECASE)


class Layout(NamedTuple):
    """How a file is laid out: what separates its values, and how many lines precede the names of the columns."""

    separator: str
    skipped: int = 0

    @property
    def words(self) -> str:
        """What separates the values, in words."""
        return SEPARATORS.get(self.separator, repr(self.separator))


def layout_of(path: Path) -> Layout:
    """Find the layout of a file: its first line gives the separator, or the one most frequent in the line of names.

    Parameters
    ----------
    path : Path
        A text file.

    Returns
    -------
    layout : Layout

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text('"weight, kg";"height, cm"\\n80,5;181\\n')
    ...     layout_of(path).words
    'semicolons'
    """
    if path.name.lower().removesuffix(".gz").endswith(".tsv"):
        return Layout("\t")
    with open_text(path) as lines:
        header = next((line.rstrip("\r\n") for line in lines if line.strip()), "")
    said = _SAID.fullmatch(header)
    if said:
        return Layout(said["mark"], skipped=1)
    outside_quotes = re.sub(r'"[^"]*"?', "", header)
    return Layout(max(SEPARATORS, key=outside_quotes.count))


def read_separated(path: Path) -> pd.DataFrame:
    """Read a table whose first line names its columns.

    Parameters
    ----------
    path : Path
        A text file, which may be compressed.

    Returns
    -------
    table : pandas.DataFrame
        Codes, which are whole numbers with leading zeros, stay text; numbers such as $1,234.50 become numbers.
    """
    layout = layout_of(path)
    names = _names(path, layout)
    try:
        table = _parse(path, layout)
    except pd.errors.ParserError as error:
        if "EOF inside string" in str(error):
            raise ValueError("a quote is opened and not closed") from error
        _refuse_ragged_rows(path, layout, len(names))
        raise ValueError(f"its lines cannot be split into values at the {layout.words}") from error
    if len(table) and table.iloc[:, -1].isna().any():
        _refuse_ragged_rows(path, layout, len(names))
    table = _with_notations(_with_codes(table, path, layout), decimal="," if layout.separator == ";" else ".")
    table.columns = pd.Index([name or default for name, default in zip(names, table.columns, strict=True)])
    return table


def word_at(path: Path, row: int, column: int) -> str:
    """Return what is written in one cell of a file that was taken for a missing value.

    Parameters
    ----------
    path : Path
        A table that `read_separated` can read.
    row, column : int
        The place of the cell, each counted from 0.

    Returns
    -------
    word : str
        Empty if nothing is written there.
    """
    options: dict[str, Any] = {"usecols": [column], "nrows": row + 1, "dtype": str, "keep_default_na": False}
    return str(_parse(path, layout_of(path), **options).iloc[row, 0]).strip()


def open_text(path: Path) -> TextIO:
    """Open a text file in UTF-8, which may be compressed; other files are refused."""
    compressed = path.name.lower().endswith(".gz")
    with gzip.open(path) if compressed else open(path, "rb") as file:
        start = file.read(_START)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError("it is in UTF-16, as some spreadsheets write text; save it as CSV in UTF-8")
    if b"\0" in start:
        raise ValueError("it is not a text file")
    # "utf-8-sig" drops the byte-order mark that spreadsheets write.
    return gzip.open(path, "rt", encoding="utf-8-sig") if compressed else open(path, encoding="utf-8-sig")


def _parse(path: Path, layout: Layout, **options: Any) -> pd.DataFrame:
    fixed: dict[str, Any] = {"skipinitialspace": True, "index_col": False, "low_memory": False}
    with open_text(path) as lines, warnings.catch_warnings():
        # Rows longer than the line of names: pandas would warn and drop their last values.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(lines, sep=layout.separator, skiprows=layout.skipped, **fixed, **options)
        except pd.errors.ParserWarning as warning:
            raise ValueError(
                f"its rows have more values, separated by {layout.words}, than its first line has names"
            ) from warning


def _rows(lines: TextIO, layout: Layout) -> Any:
    for _ in range(layout.skipped):
        next(lines)
    return csv.reader(lines, delimiter=layout.separator, skipinitialspace=True)


def _names(path: Path, layout: Layout) -> list[str]:
    """Return the names of the columns as they are written; pandas would rename the second of two that are equal."""
    with open_text(path) as lines:
        return next((row for row in _rows(lines, layout) if row), [])


def _refuse_ragged_rows(path: Path, layout: Layout, count: int) -> None:
    """Raise where a row has too few values, which pandas would take for missing ones, or too many."""
    with open_text(path) as lines:
        rows = _rows(lines, layout)
        for row in rows:
            if len(row) != count and any(cell.strip() for cell in row):
                raise ValueError(
                    f"line {rows.line_num + layout.skipped} has {len(row)} values separated by {layout.words}, and the "
                    f"first line has {count} names"
                )


def _with_codes(table: pd.DataFrame, path: Path, layout: Layout) -> pd.DataFrame:
    """Turn columns of whole numbers with leading zeros back into text: 0100 is a code, and not 100."""
    numeric = [place for place, kind in enumerate(table.dtypes) if kind.kind in "iuf"]
    # Reading all cells as text would take ten times as long, so the lines are first searched for such a cell.
    border = rf'{re.escape(layout.separator)}"\s'
    code = re.compile(rf"0(?<![^{border}]0)\d+(?=[{border}]|$)")
    with open_text(path) as lines:
        if not numeric or not any(code.search(line) for line in lines):
            return table
    for name, column in _parse(path, layout, usecols=numeric, dtype=str).items():
        texts = column.dropna().str.strip()
        if texts.str.fullmatch(r"\d+").all() and texts.str.fullmatch(r"0\d+").any():
            table[name] = column
    return table


def _with_notations(table: pd.DataFrame, decimal: str) -> pd.DataFrame:
    """Turn columns of numbers as people write them into numbers."""
    for name in table.columns[[pd.api.types.is_string_dtype(kind) for kind in table.dtypes]]:
        numbers = read_notation(table[name], decimal)
        if numbers is not None:
            table[name] = numbers
    return table
