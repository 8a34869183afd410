"""Read a table from a file, whatever its format: the suffix of its name says which."""

import csv
import gzip
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

from manykernels.core.notices import listed
from manykernels.tables.arff import parse_arff
from manykernels.tables.separated import open_text, read_separated, word_at

# A LIBSVM file is sparse, its table is not: with more cells than this (2 GB) it would be too large for a laptop.
MAX_CELLS = 250_000_000
# Our words for errors of other libraries, whose own messages are for programmers.
_WORDS: dict[type[BaseException], str] = {
    gzip.BadGzipFile: "it is not a gzip file, or it is damaged",
    EOFError: "the compressed file ends too early",
    zlib.error: "the compressed file is damaged",
    csv.Error: f"a cell has more than {csv.field_size_limit()} characters, so a quote may not be closed",
}


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
        file are called ``target`` and ``f<number>``, with the number that is in the file.

    Raises
    ------
    ValueError
        When the file is absent, of another format, broken or empty; the message is one sentence.

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
        raise ValueError(f"The table must be a file that exists; got '{path}', but {problem}.")
    try:
        table = read(path)
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"The table must have a line of column names and rows; '{path}' is empty.") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"The table must be text in UTF-8; '{path}' is not: save it in that encoding.") from error
    except (OSError, EOFError, zlib.error, csv.Error, ValueError) as error:
        raise ValueError(f"The table '{path}' cannot be read as {_suffix(path)[1:]}: {_reason(error)}.") from error
    return _checked(table, path)


def is_libsvm(path: str | os.PathLike[str]) -> bool:
    """Return whether a path has the suffix of a LIBSVM file, in which absent features are zero.

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


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file; an index with a name becomes a column too."""
    try:
        import pyarrow  # noqa: PLC0415 - large, and needed only for such files
    except ImportError as error:
        raise ValueError('it needs pyarrow: pip install "manykernels[parquet]"') from error
    try:
        table = pd.read_parquet(path, engine="pyarrow")
    except pyarrow.ArrowException as error:
        raise ValueError("it is not a Parquet file, or it is damaged") from error
    return table.reset_index() if any(name is not None for name in table.index.names) else table


def read_arff(path: Path) -> pd.DataFrame:
    """Read Weka's attribute-relation file format (dense)."""
    with open_text(path) as lines:
        return parse_arff(lines)


def read_libsvm(path: Path) -> pd.DataFrame:
    """Read LIBSVM's format: a target and number:value pairs in each line."""
    # The numbers are kept as they are: guessing whether they start at 0 or 1 could give the columns of
    # a training file and of a test file different names.
    try:
        features, target = load_svmlight_file(os.fspath(path), zero_based=True)
    except ValueError as error:
        raise ValueError("its lines must be a target and number:value pairs") from error
    if features.shape[0] * features.shape[1] > MAX_CELLS:
        raise ValueError(f"it has {features.shape[0]} rows and {features.shape[1]} features, too many for a table")
    first = 0 if features.shape[1] and features[:, [0]].nnz else 1
    names = [f"f{number}" for number in range(first, features.shape[1])]
    table = pd.DataFrame(features.toarray()[:, first:], columns=names)
    table.insert(0, "target", target)
    return table


READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": read_separated,
    ".tsv": read_separated,
    ".parquet": read_parquet,
    ".arff": read_arff,
    ".svm": read_libsvm,
    ".libsvm": read_libsvm,
    ".svmlight": read_libsvm,
}


def written(path: str | os.PathLike[str], row: int, column: int) -> str:
    """Return what is written in a cell of a table that was taken for a missing value.

    Parameters
    ----------
    path : path
        The table that was read.
    row, column : int
        The place of the cell, each counted from 0.

    Returns
    -------
    word : str
        Such as NA or None; empty if nothing is written there, or if the format has missing values of its own.
    """
    return word_at(Path(path), row, column) if _reader(Path(path)) is read_separated else ""


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
    """Say what is wrong: in our words where there are any, else the first sentence of the message."""
    words = next((sentence for kind, sentence in _WORDS.items() if isinstance(error, kind)), str(error).strip())
    return (words or "the file is damaged").splitlines()[0].split(". ")[0].rstrip(".")


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _reader(path: Path) -> Callable[[Path], pd.DataFrame]:
    suffix, compressed = _suffix(path), path.name.lower().endswith(".gz")
    if suffix not in READERS or (compressed and suffix == ".parquet"):
        known = ", ".join(READERS)
        raise ValueError(f"The table must end in one of {known} (or .gz after a text format); got '{path}'.")
    return READERS[suffix]


def _checked(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    table = table.reset_index(drop=True)
    table.columns = pd.Index([str(name).strip() for name in table.columns])
    repeated = sorted(set(table.columns[table.columns.duplicated()]))
    if repeated:
        raise ValueError(f"The table must have distinct column names; '{path}' repeats {listed(repeated)}.")
    if not np.prod(table.shape):
        rows, columns = table.shape
        raise ValueError(f"The table must have rows and columns; '{path}' has {rows} rows and {columns} columns.")
    return table
