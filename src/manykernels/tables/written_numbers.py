"""Numbers as people write them: thousands separators, currencies, percent, decimal commas."""

import re

import pandas as pd

_MONEY = "$€£¥"
_POWER = r"(?:[eE][+-]?\d+)?"
_UNITS = rf"(?P<sign>[+-]?)(?P<before>[{_MONEY}]?) ?(?P<number>%s) ?(?P<after>[{_MONEY}%%]?)"
# By decimal mark. Dots between thousands are not supported: 1.234 in a later table would be a fraction.
_NOTATIONS = {
    ".": re.compile(_UNITS % rf"(?=\.?\d)(?:\d{{1,3}}(?:,\d{{3}})+|\d+)?(?:\.\d*)?{_POWER}"),
    ",": re.compile(_UNITS % rf"\d+(?:,\d+)?{_POWER}"),
}
# Digits that a float would not keep.
_CODE = re.compile(r"0\d+|\d{16,}")
# The same and more: spaces, dots or apostrophes between thousands, parentheses for a minus, different units.
_LIKELY = re.compile(rf"\(?[+-]?[{_MONEY}]? ?\d+(?:[.,' ]\d{{3}})*(?:[.,]\d+)?{_POWER} ?[{_MONEY}%]?\)?")


def read_notation(column: pd.Series, decimal: str) -> pd.Series | None:
    """Return the numbers of a column of text, or None if not all of its values are numbers.

    Parameters
    ----------
    column : pandas.Series of str
        Numbers such as 1,234.5 or $12 or 45%, the latter two with the same sign in each cell.
    decimal : {".", ","}
        What precedes the fraction; with a comma there are no thousands separators.

    Returns
    -------
    numbers : pandas.Series of float or None
        Missing values stay missing; 45% is 45. None also for codes, which have leading zeros or many digits.

    Examples
    --------
    >>> read_notation(pd.Series(["$1,234.50", None]), ".").tolist()
    [1234.5, nan]
    >>> read_notation(pd.Series(["3,14", "2"]), ",").tolist()
    [3.14, 2.0]
    >>> read_notation(pd.Series(["45%", "0.45"]), ".") is None
    True
    """
    matches = {}
    for text in column.dropna().unique():
        match = _NOTATIONS[decimal].fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None or _CODE.fullmatch(match["number"]):
            return None
        matches[text] = match
    units = {(match["before"], match["after"]) for match in matches.values()}
    if len(units) != 1:
        return None
    plain = {text: _value(match, decimal) for text, match in matches.items()}
    return column.astype(object).map(plain).astype(float)


def number_of(text: str) -> float | None:
    """Return the number that a text stands for, or None.

    Parameters
    ----------
    text : str
        In a notation with a decimal point.

    Returns
    -------
    number : float or None

    Examples
    --------
    >>> number_of("0100"), number_of("45%"), number_of("Rome")
    (100.0, 45.0, None)
    """
    match = _NOTATIONS["."].fullmatch(text)
    return None if match is None else _value(match, ".")


def looks_like_number(text: str) -> bool:
    """Return whether a text looks like a number, though perhaps in a notation that is not supported.

    Parameters
    ----------
    text : str
        A cell.

    Returns
    -------
    answer : bool

    Examples
    --------
    >>> looks_like_number("1.234,50"), looks_like_number("10.0.0.1"), looks_like_number("x17")
    (True, False, False)
    """
    return _LIKELY.fullmatch(text.strip()) is not None


def _value(match: re.Match[str], decimal: str) -> float:
    grouping = "," if decimal == "." else "."
    return float(match["sign"] + match["number"].replace(grouping, "").replace(decimal, "."))
