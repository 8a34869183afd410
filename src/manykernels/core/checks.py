"""Checks of parameters: numbers, whole numbers and choices, refused in one sentence that names the parameter."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, Literal, TypeGuard

import numpy as np

from manykernels.core.notices import shown

Closed = Literal["neither", "left", "right", "both"]


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a real number of Python or NumPy; True and False are not.

    Parameters
    ----------
    value : object

    Returns
    -------
    answer : bool

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.core.checks import is_number
    >>> is_number(np.float32(1.5)), is_number(True), is_number("1.5")
    (True, False, False)
    """
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def is_count(value: Any, at_least: int = 1) -> bool:
    """Return whether a value is a whole number that is large enough; 2.0 is the whole number 2.

    Parameters
    ----------
    value : object
    at_least : int, default 1

    Returns
    -------
    answer : bool

    Examples
    --------
    >>> from manykernels.core.checks import is_count
    >>> is_count(2), is_count(2.0), is_count(2.5), is_count(0)
    (True, True, False, False)
    """
    return is_number(value) and at_least <= value < math.inf and value == int(value)


def check_number(
    name: str, value: Any, low: float, high: float = math.inf, *, closed: Closed = "neither", more: str = ""
) -> float:
    """Return a number, which must lie between two bounds.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
        What the user gave for it.
    low : float
    high : float, default inf
    closed : {"neither", "left", "right", "both"}, default "neither"
        Which of the bounds are allowed values themselves.
    more : str, default ""
        What to add to the description of a valid number, such as " or None".

    Returns
    -------
    number : float

    Raises
    ------
    ValueError
        If the value is not such a number.

    Examples
    --------
    >>> from manykernels.core.checks import check_number
    >>> check_number("C", 2, low=0)
    2.0
    >>> check_number("tol", -1.0, low=0, closed="left")
    Traceback (most recent call last):
    ...
    ValueError: tol must be a finite number of at least 0, got -1.0.
    >>> check_number("p", 0.5, low=1, closed="both")
    Traceback (most recent call last):
    ...
    ValueError: p must be a number in [1, inf], got 0.5.
    """
    if not is_number(value) or not _lies_between(value, low, high, closed):
        raise ValueError(f"{name} must be a {_words(low, high, closed)}{more}, got {shown(value)}.")
    return float(value)


def check_count(name: str, value: Any, at_least: int = 1, *, more: str = "") -> int:
    """Return a whole number, which must be large enough.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
        What the user gave for it; 2.0 is the whole number 2.
    at_least : int, default 1
    more : str, default ""
        What to add to the description of a valid number, such as ", two for each fold".

    Returns
    -------
    count : int

    Raises
    ------
    ValueError
        If the value is not such a number.

    Examples
    --------
    >>> from manykernels.core.checks import check_count
    >>> check_count("degree", 2.0)
    2
    >>> check_count("max_iter", 2.5)
    Traceback (most recent call last):
    ...
    ValueError: max_iter must be a whole number of at least 1, got 2.5.
    """
    if not is_count(value, at_least):
        raise ValueError(f"{name} must be a whole number of at least {at_least}{more}, got {shown(value)}.")
    return int(value)


def check_choice(name: str, value: Any, choices: Collection[str | None], *, more: str = "") -> None:
    """Raise unless a value is one of a few words, or None where that is one of the choices.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
        What the user gave for it.
    choices : collection of str or None
    more : str, default ""
        What to add to the choices, such as " with a family of kernels".

    Raises
    ------
    ValueError
        If the value is not one of the choices.

    Examples
    --------
    >>> from manykernels.core.checks import check_choice
    >>> check_choice("precision", "half", ("single", "double"))
    Traceback (most recent call last):
    ...
    ValueError: precision must be one of 'single', 'double', got 'half'.
    """
    # Comparing an array with a word would compare each of its entries.
    if not (value is None or isinstance(value, str)) or value not in choices:
        words = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be {'one of ' if len(choices) > 1 else ''}{words}{more}, got {shown(value)}.")


def _lies_between(value: Any, low: float, high: float, closed: Closed) -> bool:
    above = low <= value if closed in ("left", "both") else low < value
    below = value <= high if closed in ("right", "both") else value < high
    return bool(above and below)


def _words(low: float, high: float, closed: Closed) -> str:
    if closed == "both":
        return f"number in [{low:g}, {high:g}]"
    above = f"{'of at least' if closed == 'left' else 'above'} {low:g}"
    if math.isinf(high):
        return f"finite number {above}"
    if closed == "neither":
        return f"number between {low:g} and {high:g}"
    return f"number {above} and {'up to' if closed == 'right' else 'below'} {high:g}"
