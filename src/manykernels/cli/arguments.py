"""Types of arguments: each turns text into a checked number."""

import argparse
import math
from collections.abc import Callable


def positive(text: str) -> float:
    """Parse a positive finite number."""
    return _number(text, "a positive number", lambda value: 0 < value < math.inf)


def norm(text: str) -> float:
    """Parse the p of an Lp norm.

    Parameters
    ----------
    text : str
        What the user wrote.

    Returns
    -------
    p : float

    Examples
    --------
    >>> norm("inf")
    inf
    """
    return _number(text, "a number of at least 1, or inf", lambda value: value >= 1)


def share(text: str) -> float:
    """Parse a share of the rows."""
    return _number(text, "at least 0 and below 1", lambda value: 0 <= value < 1)


def count(text: str) -> int:
    """Parse a number of iterations."""
    return int(_number(text, "a whole number of at least 1", lambda value: value >= 1 and value.is_integer()))


def folds(text: str) -> int:
    """Parse a number of folds."""
    return int(_number(text, "a whole number of at least 2", lambda value: value >= 2 and value.is_integer()))


def seed(text: str) -> int:
    """Parse the seed of a random generator."""
    needed = f"a whole number from 0 to {2**32 - 1}"
    return int(_number(text, needed, lambda value: 0 <= value < 2**32 and value.is_integer()))


def _number(text: str, needed: str, allowed: Callable[[float], bool]) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not allowed(value):
        raise argparse.ArgumentTypeError(f"it must be {needed}; got {text!r}")
    return value
