"""Find the kind of a column of a training table."""

import re

import numpy as np
import pandas as pd
from pandas.api import types

from manykernels.tables.cells import DATE_WORDS, NUMBER_WORDS, UNCLEAR_DATES, as_texts, reads_as_number
from manykernels.tables.column import MAX_LEVELS, Column, FlagColumn, LevelsColumn, NumericColumn
from manykernels.tables.date_column import DateColumn
from manykernels.tables.sentences import Sentence, Setting
from manykernels.tables.text_column import TextColumn
from manykernels.tables.written_dates import MONTH_FIRST, UNCLEAR, order_of, seconds_of
from manykernels.tables.written_numbers import looks_like_number

KINDS: tuple[type[Column], ...] = (NumericColumn, FlagColumn, LevelsColumn, DateColumn, TextColumn)
IGNORE = "ignore"
IDENTIFIER = "differs in nearly every row, as an identifier does,"
NOTATION = "looks like numbers in a notation that is not read"

# Free text has at least this many words on average, and this share of distinct values (or this many of them).
_MIN_WORDS, _MIN_DISTINCT, _MANY_DISTINCT = 3.0, 0.5, 10 * MAX_LEVELS
# A column is meant to hold numbers (or dates) if this share of its values does, and has this many distinct ones.
_MEANT, _MANY_NUMBERS = 0.8, 20
_ID_SHARE = 0.9
_ID_NAME = re.compile(r"(?i:index|(.*[\W_])?(id|uuid|guid|nr))|.*[a-z](Id|ID)")


def kind_of(name: str, column: pd.Series) -> type[Column] | str:
    """Choose the kind of a column of a training table.

    Parameters
    ----------
    name : str
        Of the column.
    column : pandas.Series
        With at least one value.

    Returns
    -------
    kind : type or str
        One of KINDS, or why the column is to be left out, in words that fit between "Column ..." and "and is left out".

    Examples
    --------
    >>> kind_of("age", pd.Series([1.5, 2.0])).word
    'number'
    >>> kind_of("since", pd.Series(["2024-05-31", "2023-01-01"])).word
    'date'
    >>> kind_of("code", pd.Series(["x81", "x23"]))
    'differs in nearly every row, as an identifier does,'
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return LevelsColumn
    if column.dtype.kind in "iuf":
        return IDENTIFIER if _counts_rows(name, column) else NumericColumn
    values = column.dropna()
    word = types.infer_dtype(values, skipna=True)
    if word == "boolean":
        # A missing value is a third level, which one number cannot represent.
        return LevelsColumn if column.isna().any() else FlagColumn
    if word in DATE_WORDS:
        return DateColumn
    if word in NUMBER_WORDS or types.is_numeric_dtype(column.dtype):
        if word == "complex":
            raise ValueError(f"Column {name!r} holds complex numbers; it needs real numbers or categories.")
        return IDENTIFIER if _counts_rows(name, column) else NumericColumn
    if any(isinstance(value, (list, tuple, dict, set, np.ndarray)) for value in values):
        raise ValueError(f"Column {name!r} holds lists; each cell needs one number or one category.")
    return _kind_of_words(as_texts(values))


def refuse_mixtures(name: str, column: pd.Series) -> None:
    """Raise where nearly all values are numbers, or dates: the others are typing errors or marks of missing values.

    Parameters
    ----------
    name : str
        Of the column.
    column : pandas.Series
        All of it, so that the message counts what is in the file.

    Examples
    --------
    >>> refuse_mixtures("age", pd.Series([*map(str, range(30)), "unknown"]))
    Traceback (most recent call last):
    ...
    ValueError: Column 'age' mixes numbers with other text: 1 of 31 values, such as 'unknown'; correct them, ...
    """
    if column.dtype.kind in "iufb" or types.infer_dtype(column, skipna=True) not in (
        "string",
        "mixed",
        "mixed-integer",
    ):
        return
    texts = as_texts(column).dropna()
    distinct = texts.unique()
    order = order_of(distinct)
    for what, reads in (("numbers", reads_as_number), ("dates", lambda text: seconds_of(text, order) is not None)):
        fits = texts.map({text: reads(text) for text in distinct}).astype(bool)
        if _MEANT <= fits.mean() < 1 and texts[fits].nunique() > _MANY_NUMBERS:
            first = texts[~fits].index[0]
            problem = (
                f"Column {name!r} mixes {what} with other text: {int((~fits).sum())} of {len(texts)} values, such as "
                f"{texts[first]!r}; correct them, leave the cells empty, or call the column a category by "
            )
            raise ValueError(Sentence(problem, Setting("views"), "."))


def _kind_of_words(texts: pd.Series) -> type[Column] | str:
    distinct = texts.unique()
    order = order_of(distinct)
    if all(seconds_of(text, order) is not None for text in distinct):
        return DateColumn
    if order == UNCLEAR and all(seconds_of(text, MONTH_FIRST) is not None for text in distinct):
        return f"{UNCLEAR_DATES},"
    share = len(distinct) / len(texts)
    words = np.mean([len(text.split()) for text in texts])
    if words >= _MIN_WORDS and (share >= _MIN_DISTINCT or len(distinct) > _MANY_DISTINCT):
        return TextColumn
    if len(texts) > 1 and (share == 1 or (share > _ID_SHARE and len(distinct) > MAX_LEVELS)):
        return NOTATION if _is_notation(distinct) else IDENTIFIER
    return LevelsColumn


def _is_notation(distinct: np.ndarray) -> bool:
    """Return whether texts look like numbers, but are not all plain numbers: plain ones are codes."""
    return all(map(looks_like_number, distinct)) and not all(map(reads_as_number, distinct))


def _counts_rows(name: str, column: pd.Series) -> bool:
    """Return whether whole numbers are an identifier: all distinct, in a column with such a name."""
    if not _ID_NAME.fullmatch(name):
        return False
    values = column.dropna()
    return len(values) > 1 and values.is_unique and bool((values % 1 == 0).all())
