"""Read a table from a file, whatever its format: the suffix of its name says which."""

import csv
import gzip
import os
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd
import pyarrow
from sklearn.datasets import load_svmlight_file

from manykernels.cli.arff import parse_arff

# A LIBSVM file is sparse, its table is not: beyond this many cells (2 GB) it would not fit a laptop.
MAX_CELLS = 250_000_000
# What is looked at to tell text from other files.
_START = 1 << 16


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table.

    Parameters
    ----------
    path : path
        Ends in .csv or .tsv (the first line names the columns), .arff, .svm, .libsvm or .svmlight, each of
        which can be compressed (.gz), or in .parquet.

    Returns
    -------
    table : pandas.DataFrame
        With at least one row and one column, and names that are distinct strings. The columns of a LIBSVM
        file are called ``target`` and ``f<number>``, the number being the one in the file.

    Raises
    ------
    ValueError
        In one sentence, when the file is absent, of another format, broken or empty.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text("age,city\\n31,Rome\\n45,Oslo\\n")
    ...     read_table(path)
       age  city
    0   31  Rome
    1   45  Oslo
    """
    path = Path(path)
    read = _reader(path)
    if not path.is_file():
        problem = "it is a folder" if path.is_dir() else "there is no such file"
        raise ValueError(f"TABLE must be a file that exists; got '{path}', but {problem}.")
    try:
        table = read(path)
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"TABLE must have a line of column names and rows; '{path}' is empty.") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"TABLE must be text in UTF-8; '{path}' is not: save it in that encoding.") from error
    except (OSError, EOFError, zlib.error, csv.Error, ValueError, pyarrow.ArrowException) as error:
        raise ValueError(f"TABLE '{path}' cannot be read as {_suffix(path)[1:]}: {_reason(error)}.") from error
    return _checked(table, path)


def is_libsvm(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path has the suffix of a LIBSVM file, in which absent features are zero.

    Parameters
    ----------
    path : path
        It need not exist.

    Returns
    -------
    answer : bool

    Examples
    --------
    >>> is_libsvm("a9a.svm.gz"), is_libsvm("a9a.csv")
    (True, False)
    """
    return READERS.get(_suffix(Path(path))) is read_libsvm


def read_csv(path: Path) -> pd.DataFrame:
    """Read comma-separated values; semicolons and tabs are recognized from the line of names."""
    with _open_text(path) as lines:
        header = lines.readline()
    return _read_separated(path, next((mark for mark in ",;\t" if mark in header), ","))


def read_tsv(path: Path) -> pd.DataFrame:
    """Read tab-separated values."""
    return _read_separated(path, "\t")


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file."""
    return pd.read_parquet(path)


def read_arff(path: Path) -> pd.DataFrame:
    """Read Weka's attribute-relation file format (dense)."""
    with _open_text(path) as lines:
        return parse_arff(lines)


def read_libsvm(path: Path) -> pd.DataFrame:
    """Read LIBSVM's format: a target and number:value pairs in each line."""
    # The numbers are kept as they are: guessing whether they start at 0 or 1 could give the columns of
    # a training file and of a test file different names.
    features, target = load_svmlight_file(os.fspath(path), zero_based=True)
    if features.shape[0] * features.shape[1] > MAX_CELLS:
        raise ValueError(f"it has {features.shape[0]} rows and {features.shape[1]} features, too many for a table")
    first = 0 if features.shape[1] and features[:, [0]].nnz else 1
    names = [f"f{number}" for number in range(first, features.shape[1])]
    table = pd.DataFrame(features.toarray()[:, first:], columns=names)
    table.insert(0, "target", target)
    return table


READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".parquet": read_parquet,
    ".arff": read_arff,
    ".svm": read_libsvm,
    ".libsvm": read_libsvm,
    ".svmlight": read_libsvm,
}


def table_stem(path: str | os.PathLike[str]) -> str:
    """Return the name of a table without its folder and suffixes.

    Parameters
    ----------
    path : path
        It need not exist.

    Returns
    -------
    stem : str

    Examples
    --------
    >>> table_stem("data/people.v2.csv.gz")
    'people.v2'
    """
    name = Path(path).name
    return Path(name.removesuffix(".gz")).stem


def _reason(error: BaseException) -> str:
    """Keep the first sentence of another library's message."""
    text = str(error).strip().removeprefix("Error tokenizing data. C error: ") or "the file is damaged"
    return text.splitlines()[0].split(". ")[0].rstrip(".")


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _reader(path: Path) -> Callable[[Path], pd.DataFrame]:
    suffix, compressed = _suffix(path), path.name.lower().endswith(".gz")
    if suffix not in READERS or (compressed and suffix == ".parquet"):
        known = ", ".join(READERS)
        raise ValueError(f"TABLE must end in one of {known} (or .gz after a text format); got '{path}'.")
    return READERS[suffix]


def _open_text(path: Path) -> TextIO:
    compressed = path.name.lower().endswith(".gz")
    with gzip.open(path) if compressed else open(path, "rb") as file:
        start = file.read(_START)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError("it is in UTF-16, as some spreadsheets write text; save it as CSV in UTF-8")
    if b"\0" in start:
        raise ValueError("it is no text file")
    # "utf-8-sig" drops the byte-order mark that spreadsheets write.
    return gzip.open(path, "rt", encoding="utf-8-sig") if compressed else open(path, encoding="utf-8-sig")


def _read_separated(path: Path, separator: str) -> pd.DataFrame:
    names = _names(path, separator)
    with _open_text(path) as lines, warnings.catch_warnings():
        # Rows longer than the line of names: pandas would warn and drop their last values.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            table = pd.read_csv(lines, sep=separator, skipinitialspace=True, index_col=False, low_memory=False)
        except pd.errors.ParserWarning as warning:
            raise ValueError("its rows have more values than its first line has names") from warning
    if len(table) and table.iloc[:, -1].isna().any():
        _refuse_short_rows(path, separator, len(names))
    table = _with_points(table) if separator == ";" else table
    table.columns = pd.Index([name or own for name, own in zip(names, table.columns, strict=True)])
    return table


def _names(path: Path, separator: str) -> list[str]:
    """Return the names of the columns as they are written; pandas would rename the second of two that are alike."""
    with _open_text(path) as lines:
        rows = (row for row in csv.reader(lines, delimiter=separator, skipinitialspace=True) if row)
        return next(rows, [])


def _refuse_short_rows(path: Path, separator: str, count: int) -> None:
    """Raise where a row ends early: pandas would take the values that are not there for missing ones."""
    with _open_text(path) as lines:
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        for row in rows:
            if len(row) < count and any(cell.strip() for cell in row):
                raise ValueError(f"line {rows.line_num} has {len(row)} values, and the first line has {count} names")


def _with_points(table: pd.DataFrame) -> pd.DataFrame:
    """Turn columns of numbers such as 3,14 into numbers: where semicolons separate values, commas often mean that."""
    for name in table.columns[[not pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes]]:
        texts = table[name].dropna().astype(str)
        if len(texts) and texts.str.fullmatch(r"[+-]?\d+(,\d+)?").all():
            table[name] = pd.to_numeric(
                table[name].astype(object).where(table[name].isna(), texts.str.replace(",", "."))
            )
    return table


def _checked(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    table = table.reset_index(drop=True)
    table.columns = pd.Index([str(name).strip() for name in table.columns])
    repeated = sorted(set(table.columns[table.columns.duplicated()]))
    if repeated:
        raise ValueError(f"TABLE must have distinct column names; '{path}' repeats {', '.join(repeated)}.")
    if not np.prod(table.shape):
        rows, columns = table.shape
        raise ValueError(f"TABLE must have rows and columns; '{path}' has {rows} rows and {columns} columns.")
    return table
