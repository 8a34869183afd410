"""Right-censored times: what users bring as y, and the one number for each sample that a loss takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_FORMS = (
    "y must say for each sample whether it had its event, and its time: a structured array with a boolean field and "
    "one of numbers, or two columns (event, time)"
)


class Survival(NamedTuple):
    """Right-censored times.

    Attributes
    ----------
    event : ndarray of bool, shape (n_samples,)
        Whether the event was seen; without it the sample was censored.
    time : ndarray of float, shape (n_samples,)
        Of the event, or of the last time that the sample was seen.
    """

    event: np.ndarray
    time: np.ndarray

    def ranks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the times at which there are events, in order, and each sample's target.

        Who is at risk at an event depends on the order alone, so a target is k for an event at the k-th of these
        times, and -k for a sample that was censored when k of them had come.

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels.core.censored_times import Survival
        >>> times, targets = Survival(np.array([True, False, True]), np.array([2.5, 3.0, 7.0])).ranks()
        >>> times.tolist(), targets.tolist()
        ([2.5, 7.0], [1.0, -1.0, 2.0])
        """
        times = np.unique(self.time[self.event])
        count = np.searchsorted(times, self.time, side="right").astype(np.float64)
        return times, np.where(self.event, count, -count)


def read_survival(y: Any) -> Survival:
    """Return the events and times that y holds; raise ValueError where it is something else.

    Parameters
    ----------
    y : structured array, DataFrame or array of shape (n_samples, 2), or pair of arrays
        The boolean field or column is the event, whatever its place; else the first is.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.core.censored_times import read_survival
    >>> y = np.array([(2.0, True), (3.0, False)], dtype=[("days", float), ("died", bool)])
    >>> read_survival(y)
    Survival(event=array([ True, False]), time=array([2., 3.]))
    """
    first, second = _columns(y)
    if second.dtype == bool and first.dtype != bool:
        first, second = second, first
    try:
        event, time = first.astype(np.float64), second.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{_FORMS}; it holds values that are not numbers.") from None
    if event.ndim != 1 or event.shape != time.shape:
        raise ValueError(f"{_FORMS}; got events of shape {event.shape} and times of shape {time.shape}.")
    if not np.all((event == 0.0) | (event == 1.0)):
        raise ValueError(f"{_FORMS}; the events must be 0 or 1, or True or False.")
    if not np.all(np.isfinite(time)) or np.any(time < 0.0):
        raise ValueError(
            "The times in y must be finite numbers of at least 0: drop the rows of which they are not known."
        )
    return Survival(event == 1.0, time)


def _columns(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the two columns of y, each with a type of its own."""
    if isinstance(y, tuple) and len(y) == 2:
        return np.asarray(y[0]), np.asarray(y[1])
    if hasattr(y, "columns") and hasattr(y, "iloc") and len(y.columns) == 2:
        return np.asarray(y.iloc[:, 0]), np.asarray(y.iloc[:, 1])
    array = np.asarray(y)
    names = array.dtype.names
    if names is not None and len(names) == 2:
        if (array[names[0]].dtype == bool) == (array[names[1]].dtype == bool):
            raise ValueError(f"{_FORMS}; of the fields {names[0]!r} and {names[1]!r} one must be boolean.")
        return array[names[0]], array[names[1]]
    if names is None and array.ndim == 2 and array.shape[1] == 2:
        return array[:, 0], array[:, 1]
    raise ValueError(f"{_FORMS}; got {'fields ' + repr(names) if names else f'the shape {array.shape}'}.")
