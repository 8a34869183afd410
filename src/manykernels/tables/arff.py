"""A reader for the attribute-relation file format (ARFF).

SciPy's reader does not support string attributes and fails on quoted values, hence this one.
"""

import re
from collections.abc import Callable, Iterable

import pandas as pd

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)\s*(.+)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*({_QUOTED}|[^,]*?)\s*(?:,|$)")


def parse_arff(lines: Iterable[str]) -> pd.DataFrame:
    """Parse the lines of a dense ARFF file.

    Parameters
    ----------
    lines : iterable of str
        For example an open text file.

    Returns
    -------
    table : pandas.DataFrame
        Nominal attributes are categorical, dates are datetimes, ``?`` is missing.

    Examples
    --------
    >>> parse_arff(["@relation r", "@attribute age numeric", "@attribute city {Rome, 'New York'}", "@data",
    ...             "31, 'New York'", "?, Rome"])
        age      city
    0  31.0  New York
    1   NaN      Rome
    """
    numbered = enumerate((line.strip() for line in lines), start=1)
    content = ((number, line) for number, line in numbered if line and not line.startswith("%"))
    attributes = _header(content)
    rows = [_row(line, number, len(attributes)) for number, line in content]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(attributes)
    series = [
        _typed(name, kind, pd.Series(list(values), dtype=object))
        for (name, kind), values in zip(attributes, columns, strict=True)
    ]
    table = pd.concat(series, axis=1)
    table.columns = pd.Index([name for name, _ in attributes])
    return table


def _header(content: Iterable[tuple[int, str]]) -> list[tuple[str, str]]:
    """Consume the lines up to @data; return the name and the type of each attribute."""
    attributes: list[tuple[str, str]] = []
    for number, line in content:
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            if not attributes:
                raise ValueError("it declares no @attribute")
            return attributes
        match = _ATTRIBUTE.match(line)
        if word == "@attribute" and match:
            attributes.append((_plain(match[1]), match[2].strip()))
        elif word != "@relation":
            raise ValueError(f"line {number} should be @relation, @attribute or @data")
    raise ValueError("it has no @data line")


def _row(line: str, number: int, size: int) -> list[str | None]:
    if line.startswith("{"):
        raise ValueError(f"line {number} is sparse, and only dense ARFF is supported")
    values = _split(line)
    if len(values) != size:
        raise ValueError(f"line {number} has {len(values)} values for {size} attributes")
    return [None if value == "?" else _plain(value) for value in values]


def _split(line: str) -> list[str]:
    if "'" not in line and '"' not in line:
        return [value.strip() for value in line.split(",")]
    values, position = [], 0
    while position <= len(line):
        match = _VALUE.match(line, position)
        if match is None:
            raise ValueError(f"a quote is not closed in {line[:40]!r}")
        values.append(match[1])
        # After a comma at the very end comes one more value, which is empty.
        position = match.end() + (match.end() == len(line) and not match[0].endswith(","))
    return values


def _plain(text: str) -> str:
    """Remove the quotes, and the backslashes that they need."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _typed(name: str, kind: str, values: pd.Series) -> pd.Series:
    word = kind.split(None, 1)[0].lower()
    if kind.startswith("{"):
        levels = [_plain(level) for level in _split(kind.strip("{} \t"))]
        stray = set(values.dropna()) - set(levels)
        if stray:
            raise ValueError(f"attribute {name!r} has the value {sorted(stray)[0]!r}, which it does not declare")
        return values.astype(pd.CategoricalDtype(levels))
    if word in ("numeric", "real", "integer"):
        return _parsed(name, values, pd.to_numeric, "number")
    if word == "string":
        return values.astype("str")
    if word == "date":
        return _parsed(name, values, pd.to_datetime, "date")
    raise ValueError(f"attribute {name!r} has the type {kind!r}; it needs numeric, nominal, string or date")


def _parsed(name: str, values: pd.Series, parse: Callable[..., pd.Series], what: str) -> pd.Series:
    parsed = parse(values, errors="coerce")
    stray = values[parsed.isna() & values.notna()]
    if len(stray):
        raise ValueError(f"attribute {name!r} has the value {stray.iloc[0]!r}, which is not a {what}")
    return parsed
