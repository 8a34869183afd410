"""The cells of a column as numbers, dates, truth values or text."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from pandas.api import types

from manykernels.tables.written_dates import UNCLEAR, seconds_of
from manykernels.tables.written_numbers import number_of

DATE_WORDS = {"datetime64", "datetime", "date"}
SPAN_WORDS = {"timedelta64", "timedelta"}
NUMBER_WORDS = {"integer", "floating", "mixed-integer-float", "decimal"} | SPAN_WORDS
# A part of a sentence that begins with "Column ...".
UNCLEAR_DATES = "looks like dates whose order of day and month is unclear: write them as 2024-05-31"
_FLAGS = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0}


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
    # A plain column of numbers need not be inspected cell by cell, which saves time with many thousand columns.
    plain = column.dtype.kind in "iuf"
    word = "" if plain else types.infer_dtype(column, skipna=True)
    try:
        if word in DATE_WORDS:
            return as_dates(name, column)
        if word in SPAN_WORDS:
            column = pd.to_timedelta(column).dt.total_seconds()
        elif word == "decimal":
            column = column.astype(float)
        values = (column if plain else pd.to_numeric(column)).to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError) as error:
        sample = next((str(value) for value in column.dropna() if not reads_as_number(value)), "text")
        raise ValueError(f"Column {name!r} must hold numbers; it holds {sample!r}.") from error
    if np.isinf(values).any():
        rows = int(np.isinf(values).sum())
        raise ValueError(f"Column {name!r} must hold finite numbers; it is infinite in {rows} rows.")
    return values


def as_dates(name: str, column: pd.Series, order: str = "") -> np.ndarray:
    """Return a column of dates as seconds since 1970 (UTC), missing values as NaN.

    Parameters
    ----------
    name : str
        For the error message.
    column : pandas.Series
        Dates, or text that `seconds_of` reads.
    order : {"day", "month", "unclear", ""}, default=""
        Which comes first in dates such as 1/2/2024.

    Returns
    -------
    values : array of shape (n_rows,)

    Examples
    --------
    >>> as_dates("born", pd.Series(["1970-01-02", None]))
    array([86400.,    nan])
    """
    if types.infer_dtype(column, skipna=True) in DATE_WORDS:
        days = pd.to_datetime(column, utc=True) - pd.Timestamp(0, tz="UTC")
        return days.dt.total_seconds().to_numpy(dtype=np.float64)
    texts = as_texts(column)
    seconds = {text: seconds_of(text, order) for text in texts.dropna().unique()}
    wrong = next((text for text, value in seconds.items() if value is None), None)
    if wrong is not None:
        if order == UNCLEAR:
            raise ValueError(f"Column {name!r} {UNCLEAR_DATES}, as {wrong!r} is not.")
        raise ValueError(f"Column {name!r} must hold dates such as 2024-05-31; it holds {wrong!r}.")
    return texts.map(seconds).to_numpy(dtype=np.float64)


def as_flags(name: str, column: pd.Series) -> np.ndarray:
    """Return a column of true and false as 1 and 0, missing values as NaN.

    Parameters
    ----------
    name : str
        For the error message.
    column : pandas.Series
        Truth values, 1 and 0, or the words true and false.

    Returns
    -------
    values : array of shape (n_rows,)

    Examples
    --------
    >>> as_flags("smokes", pd.Series(["TRUE", "false", None]))
    array([ 1.,  0., nan])
    """
    texts = as_texts(column)
    values = texts.str.lower().map(_FLAGS).to_numpy(dtype=np.float64)
    wrong = np.isnan(values) & texts.notna().to_numpy()
    if wrong.any():
        raise ValueError(f"Column {name!r} must hold true or false; it holds {texts[wrong].iloc[0]!r}.")
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


def spelled_as(texts: pd.Series, known: Sequence[str]) -> pd.Series:
    """Return text in the spelling of what is known: the code 0100 may have become 100, and 3 may have become 3.0.

    Parameters
    ----------
    texts : pandas.Series of object
        What `as_texts` returns.
    known : sequence of str
        Levels or labels. If only one of them reads as a certain number, it stands for all spellings of that number.

    Returns
    -------
    texts : pandas.Series of object
        Texts that are not known in any spelling stay as they are.

    Examples
    --------
    >>> spelled_as(pd.Series(["100", "Rome", "7"]), ["0100", "Oslo"]).tolist()
    ['0100', 'Rome', '7']
    """
    strange = set(texts.dropna().unique()).difference(known)
    if not strange:
        return texts
    numbers = {label: number_of(label) for label in known}
    counts = Counter(numbers.values())
    spelling: dict[float | None, str] = {
        number: label for label, number in numbers.items() if number is not None and counts[number] == 1
    }
    same = {text: spelling.get(number_of(text), text) for text in strange}
    return pd.Series([same.get(text, text) for text in texts], dtype=object, index=texts.index)


def reads_as_number(value: object) -> bool:
    """Return whether the text of a value reads as a number.

    Parameters
    ----------
    value : object
        A cell.

    Returns
    -------
    answer : bool

    Examples
    --------
    >>> reads_as_number("1e3"), reads_as_number("n/a")
    (True, False)
    """
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _text(value: object) -> str:
    # One missing value turns a column of integers into floats, which must stay the same levels.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
