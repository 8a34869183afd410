"""Views that some samples lack: where all columns that a kernel sees are NaN in a row, its values with it are 0.

That keeps a kernel positive semidefinite: with D the diagonal matrix of 1 for samples that have the view and 0 for
those that lack it, its matrix is D K D.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp


def observed(V: Any) -> np.ndarray | None:
    """Return 1 for the rows of a view that are there and 0 for those that are NaN, or None if all are there.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.missing import observed
    >>> observed(np.array([[1.0, 2.0], [np.nan, np.nan]]))
    array([1., 0.])
    """
    if sp.issparse(V) or V.shape[1] == 0 or V.dtype.kind != "f":
        return None
    lacking = np.isnan(V[:, 0])
    return np.where(lacking, 0.0, 1.0) if lacking.any() else None


def filled(V: Any, mask: np.ndarray | None) -> Any:
    """Return the view with zeros in the rows that are not there."""
    return V if mask is None else np.where(mask[:, None] > 0, V, 0.0)


def check_views(X: Any, views: Iterable[tuple[str, np.ndarray]]) -> None:
    """Raise ValueError if a row lacks a part of a view only; ``views`` are pairs of a name and column places."""
    if sp.issparse(X):
        if np.isnan(X.data).any():
            raise ValueError("Input X contains NaN: missing='ignore' needs a dense array, not a sparse matrix.")
        return
    gone, seen = np.isnan(X), set()
    if not gone.any():
        return
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
