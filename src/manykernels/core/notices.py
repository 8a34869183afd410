"""Warnings that point at the user's line, and values as a person writes them."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy as np

_PACKAGE = str(Path(__file__).parents[1])


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside this package that led here."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


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
