"""Dates and times from text, in the notations that are supported."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

# Whether the day or the month comes first in 1/2/2024; UNCLEAR where no number above 12 decides.
DAY_FIRST, MONTH_FIRST, UNCLEAR = "day", "month", "unclear"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TIME = (
    r"(?:[T ](?P<hour>\d{1,2}):(?P<rest>\d{2}(?::\d{2}(?:\.\d{1,6})?)?)(?: ?(?P<half>[AP])M)?"
    r" ?(?P<zone>Z|[+-]\d{2}:?\d{2})?)?"
)
_DATES = tuple(
    re.compile(day + _TIME, re.IGNORECASE)
    for day in (
        r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})",
        r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
        rf"(?P<day>\d{{1,2}})([- ])(?P<month>{'|'.join(_MONTHS)})\2(?P<year>\d{{4}})",
        r"(?P<year>(?:1[5-9]|20)\d{2})-(?P<month>\d{2})",
    )
)
# Dates in which day and month could be confused.
_TWO_WAYS = re.compile(r"(?P<first>\d{1,2})([/-])(?P<second>\d{1,2})\2(?P<year>\d{4})" + _TIME, re.IGNORECASE)


def order_of(texts: Iterable[str]) -> str:
    """Find out whether the day or the month comes first in dates such as 5/31/2024.

    Parameters
    ----------
    texts : iterable of str
        The dates of a column; a number above 12 in one of them decides for all.

    Returns
    -------
    order : {"day", "month", "unclear", ""}
        Empty where no date is written like this.

    Examples
    --------
    >>> order_of(["1/2/2024", "5/31/2024"]), order_of(["1/2/2024"]), order_of(["2024-05-31"])
    ('month', 'unclear', '')
    """
    matches = [match for match in (_TWO_WAYS.fullmatch(text.strip()) for text in texts) if match]
    if not matches:
        return ""
    days_first = any(int(match["first"]) > 12 for match in matches)
    months_first = any(int(match["second"]) > 12 for match in matches)
    if days_first == months_first:
        return UNCLEAR
    return DAY_FIRST if days_first else MONTH_FIRST


def seconds_of(text: str, order: str = "") -> float | None:
    """Return the seconds from 1970 to a date in words, or None if the text is not a date.

    Parameters
    ----------
    text : str
        Such as 2024-05-31, 2024/5/31, 31.5.2024, 31-May-2024, 2024-05 or 2024-05-31T18:00:00+02:00; with an order also
        5/31/2024 6:00 PM.
    order : {"day", "month", "unclear", ""}, default=""
        What `order_of` returns for the column.

    Returns
    -------
    seconds : float or None

    Examples
    --------
    >>> seconds_of("2.1.1970"), seconds_of("1970-02-30"), seconds_of("1970")
    (86400.0, None, None)
    >>> seconds_of("1/2/1970"), seconds_of("1/2/1970", "month")
    (None, 86400.0)
    """
    text = text.strip()
    match = next(filter(None, (pattern.fullmatch(text) for pattern in _DATES)), None)
    if match is not None:
        parts = match.groupdict()
    else:
        match = _TWO_WAYS.fullmatch(text)
        if match is None or order not in (DAY_FIRST, MONTH_FIRST):
            return None
        names = ("day", "month") if order == DAY_FIRST else ("month", "day")
        parts = match.groupdict() | dict(zip(names, (match["first"], match["second"]), strict=True))
    try:
        moment = datetime.fromisoformat(f"{_day(parts)}T{_time(parts)}")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _day(parts: dict[str, str]) -> str:
    month = parts["month"].lower()
    number = _MONTHS.index(month) + 1 if month in _MONTHS else int(month)
    return f"{parts['year']}-{number:02}-{int(parts.get('day') or 1):02}"


def _time(parts: dict[str, str]) -> str:
    hour, half = int(parts["hour"] or 0), (parts["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            raise ValueError(f"{hour} is not an hour from 1 to 12")
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour:02}:{parts['rest'] or '00'}{(parts['zone'] or '').upper()}"
