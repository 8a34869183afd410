"""Warnings that point at the user's line, and values and names as a person writes them."""

from __future__ import annotations

import importlib
import inspect
import sys
import threading
import warnings
from concurrent.futures import thread
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

_PACKAGE = str(Path(__file__).parents[1])
_STARTS_THREADS = (thread.__file__, threading.__file__)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside this package that led here, even if that line is an import.

    A thread of our own was led here by what the main thread is doing.
    """
    frame, level = inspect.currentframe(), 1
    while frame is not None and _leads_here(frame.f_code.co_filename):
        level += not _is_uncounted(frame.f_code.co_filename)
        frame = frame.f_back
    caller = _caller_in_main_thread() if frame is not None and frame.f_code.co_filename in _STARTS_THREADS else None
    if caller is None:
        warnings.warn(message, category, stacklevel=level)
    else:
        registry = caller.f_globals.setdefault("__warningregistry__", {})
        warnings.warn_explicit(message, category, caller.f_code.co_filename, caller.f_lineno, registry=registry)


def _caller_in_main_thread() -> FrameType | None:
    """Return the line outside this package that called it, in a main thread that waits inside; None if it is not."""
    frame, caller = sys._current_frames().get(threading.main_thread().ident or 0), None
    while frame is not None:
        inner, frame = frame, frame.f_back
        if frame is not None and _leads_here(inner.f_code.co_filename):
            caller = None if _leads_here(frame.f_code.co_filename) else frame
    return caller


def _leads_here(filename: str) -> bool:
    return filename.startswith(_PACKAGE) or filename == importlib.__file__ or _is_uncounted(filename)


def _is_uncounted(filename: str) -> bool:
    """Return whether a file belongs to Python's import system, which stack levels of warnings do not count."""
    return "importlib" in filename and "_bootstrap" in filename


def shown(value: Any) -> str:
    """Return a value as a person writes it: 7, not np.int64(7).

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.core.notices import shown
    >>> shown(np.int64(7)), shown("seven")
    ('7', "'seven'")
    """
    return repr(value.item() if isinstance(value, np.generic) else value)


def listed(names: list[str], shown: int = 3) -> str:
    """Return the first names and how many more there are.

    Parameters
    ----------
    names : list of str
        At least one.
    shown : int, default=3
        How many to name.

    Returns
    -------
    words : str

    Examples
    --------
    >>> from manykernels.core.notices import listed
    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")
