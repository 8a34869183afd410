"""Views that some samples lack: where all columns that a kernel sees are NaN in a row, its values with it are 0.

That keeps a kernel positive semidefinite: with D the diagonal matrix of 1 for samples that have the view and 0 for
those that lack it, its matrix is D K D.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

CENTER_NEEDS_ALL = "center=True needs samples that have all views: impute them, or set center=False."


def observed(V: Any) -> np.ndarray | None:
    """Return which rows of a view are there, as an array of bool, or None if all are.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.missing import observed
    >>> observed(np.array([[1.0, 2.0], [np.nan, np.nan]]))
    array([ True, False])
    """
    if sp.issparse(V) or V.shape[1] == 0 or V.dtype.kind != "f":
        return None
    lacking = np.isnan(V[:, 0])
    return ~lacking if lacking.any() else None


def with_zeros(values: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Return values of the rows that are there, shape (n_seen, ...), with zeros for the others.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.missing import with_zeros
    >>> with_zeros(np.array([1.0, 2.0]), np.array([True, False, True]))
    array([1., 0., 2.])
    """
    if mask is None:
        return values
    out = np.zeros((mask.size, *values.shape[1:]), values.dtype)
    out[mask] = values
    return out


def seen_rows(V: Any, mask: np.ndarray | None) -> Any:
    """Return the rows of a view that are there."""
    return V if mask is None else V[mask]


def has_gaps(X: Any) -> bool:
    """Return whether there is a NaN in the data, dense or sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.missing import has_gaps
    >>> has_gaps(np.array([[1.0, np.nan]]))
    True
    """
    return bool(np.isnan(X.data if sp.issparse(X) else X).any())


def check_views(X: Any, views: Iterable[tuple[str, np.ndarray]]) -> None:
    """Raise ValueError if a row lacks a part of a view only; ``views`` are pairs of a name and column places."""
    if not has_gaps(X):
        return
    if sp.issparse(X):
        raise ValueError("Input X contains NaN: missing='ignore' needs a dense array, not a sparse matrix.")
    gone, seen = np.isnan(X), set()
    for name, positions in views:
        if positions.tobytes() in seen:
            continue
        seen.add(positions.tobytes())
        count = gone[:, positions].sum(axis=1)
        partly = np.flatnonzero((count > 0) & (count < positions.size))
        if partly.size:
            raise ValueError(
                f"Input X contains NaN: row {partly[0]} lacks {count[partly[0]]} of the {positions.size} columns that "
                f"{name} sees. missing='ignore' is for rows that lack all of them; impute the others."
            )
