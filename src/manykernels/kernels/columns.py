"""Which columns of X a kernel looks at: names, positions, slices, masks or a callable."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np


def column_names(X: Any) -> list[str] | None:
    """Return the column names of a DataFrame, None for arrays and sparse matrices."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def resolve_columns(columns: Any, X: Any) -> np.ndarray:
    """Return the positions of the columns that ``columns`` selects in X.

    Parameters
    ----------
    columns : None, int, str, slice, sequence of int or of str, boolean mask, or callable
        As in scikit-learn's ColumnTransformer; None is every column; a
        callable gets X and returns one of the others.
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)

    Returns
    -------
    ndarray of int

    Examples
    --------
    >>> import pandas as pd
    >>> from manykernels.kernels.columns import resolve_columns
    >>> table = pd.DataFrame({"age": [1.0], "income": [2.0], "city": [3.0]})
    >>> resolve_columns(["income", "city"], table)
    array([1, 2])
    >>> resolve_columns(slice("age", "income"), table)  # names include both ends
    array([0, 1])
    """
    if callable(columns):
        columns = columns(X)
    names, count = column_names(X), X.shape[1]
    if columns is None:
        return np.arange(count)
    if isinstance(columns, slice):
        return _resolve_slice(columns, names, count)
    if isinstance(columns, str):
        return np.array([_position(columns, names)])
    values = np.atleast_1d(np.asarray(columns))
    if values.ndim != 1:
        raise ValueError(f"columns must be one-dimensional, got shape {values.shape}.")
    if values.size == 0:
        raise ValueError("columns selects no column: a kernel needs at least one.")
    if values.dtype == bool:
        if values.size != count:
            raise ValueError(f"columns is a mask of {values.size} entries, but X has {count} columns.")
        if not values.any():
            raise ValueError("columns is a mask that selects no column: a kernel needs at least one.")
        return np.flatnonzero(values)
    if values.dtype.kind in "iu":
        return _check_range(values, count)
    if values.dtype.kind in "UOST":
        return np.array([_position(str(value), names) for value in values])
    raise TypeError(f"columns must be names, positions, a slice, a mask or a callable, got {columns!r}.")


def _resolve_slice(columns: slice, names: list[str] | None, count: int) -> np.ndarray:
    start, stop = columns.start, columns.stop
    if isinstance(start, str):
        start = _position(start, names)
    if isinstance(stop, str):
        stop = _position(stop, names) + 1
    positions = np.arange(count)[slice(start, stop, columns.step)]
    if positions.size == 0:
        raise ValueError(f"columns={columns!r} selects none of the {count} columns of X.")
    return positions


def _check_range(positions: np.ndarray, count: int) -> np.ndarray:
    outside = positions[(positions < -count) | (positions >= count)]
    if outside.size:
        raise ValueError(f"columns asks for column {outside[0]}, but X has {count} columns.")
    return np.where(positions < 0, positions + count, positions).astype(np.int64)


def _position(name: str, names: list[str] | None) -> int:
    if names is None:
        raise ValueError(f"columns={name!r} is a name, but X has no column names; pass a DataFrame or positions.")
    if names.count(name) > 1:
        raise ValueError(f"columns={name!r} names {names.count(name)} columns of X: pass positions instead.")
    if name in names:
        return names.index(name)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise ValueError(f"columns={name!r} is not a column of X{hint}")


def describe_columns(columns: Any, positions: np.ndarray, names: Sequence[str] | None, n_features: int) -> str:
    """Return words for a selection: "all features", "age", "age, income", "12 features".

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.columns import describe_columns
    >>> describe_columns([0], np.array([0]), ["age", "income"], 2)
    'age'
    >>> describe_columns(None, np.arange(2), ["age", "income"], 2)
    'all features'
    """
    if columns is None or positions.size == n_features > 1:
        return "all features"
    shown = [names[i] if names is not None else f"x{i}" for i in positions[:3]]
    if positions.size <= 3:
        return ", ".join(shown)
    return f"{shown[0]}, {shown[1]} and {positions.size - 2} more"
