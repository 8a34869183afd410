"""The cells of a column as numbers, dates, truth values or text."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pandas as pd
from pandas.api import types

from manykernels.cli.notations import number_of

DATE_WORDS = {"datetime64", "datetime", "date"}
SPAN_WORDS = {"timedelta64", "timedelta"}
NUMBER_WORDS = {"integer", "floating", "mixed-integer-float", "decimal"} | SPAN_WORDS
_FLAGS = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0}
_TIME = r"(?:[T ](?P<time>\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?) ?(?P<zone>Z|[+-]\d{2}:?\d{2})?)?"
# The year comes first, or the separators are dots: elsewhere day and month could be taken for each other.
_DATES = (
    re.compile(r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})" + _TIME),
    re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})" + _TIME),
)


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
    # A plain column of numbers needs no look at its cells, which counts in tables of many thousand columns.
    word = "" if column.dtype.kind in "iuf" else types.infer_dtype(column, skipna=True)
    try:
        if word in DATE_WORDS:
            return as_dates(name, column)
        if word in SPAN_WORDS:
            column = pd.to_timedelta(column).dt.total_seconds()
        elif word == "decimal":
            column = column.astype(float)
        values = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError) as error:
        sample = next((str(value) for value in column.dropna() if not reads_as_number(value)), "text")
        raise ValueError(f"Column {name!r} must hold numbers; it holds {sample!r}.") from error
    if np.isinf(values).any():
        rows = int(np.isinf(values).sum())
        raise ValueError(f"Column {name!r} must hold finite numbers; it is infinite in {rows} rows.")
    return values


def as_dates(name: str, column: pd.Series) -> np.ndarray:
    """Return a column of dates as seconds since 1970 (UTC), missing values as NaN.

    Parameters
    ----------
    name : str
        For the error message.
    column : pandas.Series
        Dates, or text such as 2024-05-31, 2024/5/31, 31.5.2024 or 2024-05-31T18:00:00+02:00.

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
    seconds = {text: seconds_of(text) for text in texts.dropna().unique()}
    wrong = next((text for text, value in seconds.items() if value is None), None)
    if wrong is not None:
        raise ValueError(f"Column {name!r} must hold dates such as 2024-05-31; it holds {wrong!r}.")
    return texts.map(seconds).to_numpy(dtype=np.float64)


def seconds_of(text: str) -> float | None:
    """Return the seconds from 1970 to a date in words, or None if the text is no date.

    Parameters
    ----------
    text : str
        In one of the forms of `as_dates`.

    Returns
    -------
    seconds : float or None

    Examples
    --------
    >>> seconds_of("2.1.1970"), seconds_of("1970-02-30"), seconds_of("1970")
    (86400.0, None, None)
    """
    match = next((found for found in (pattern.fullmatch(text.strip()) for pattern in _DATES) if found), None)
    if match is None:
        return None
    day = f"{match['year']}-{match['month']:0>2}-{match['day']:0>2}"
    try:
        moment = datetime.fromisoformat(f"{day}T{match['time'] or '00:00'}{match['zone'] or ''}")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


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
        Levels or labels. One that is the only one of its number stands for all spellings of that number.

    Returns
    -------
    texts : pandas.Series of object
        What is known in no spelling stays as it is.

    Examples
    --------
    >>> spelled_as(pd.Series(["100", "Rome", "7"]), ["0100", "Oslo"]).tolist()
    ['0100', 'Rome', '7']
    """
    strange = set(texts.dropna().unique()).difference(known)
    if not strange:
        return texts
    numbers = {own: number_of(own) for own in known}
    counts = Counter(numbers.values())
    spelling: dict[float | None, str] = {
        number: own for own, number in numbers.items() if number is not None and counts[number] == 1
    }
    same = {text: spelling.get(number_of(text), text) for text in strange}
    return pd.Series([same.get(text, text) for text in texts], dtype=object, index=texts.index)


def reads_as_number(value: object) -> bool:
    """Tell whether the text of a value is that of a number.

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
