"""Factors of small numerical rank, with an error that is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def pivoted_factor(
    column: Callable[[int], np.ndarray], diagonal: np.ndarray, error: float, max_rank: int
) -> np.ndarray | None:
    """Return F of shape (n, r) with every entry of K - F F' at most ``error``, or None if that takes r > max_rank.

    The Cholesky factorization of K, a column at a time, each time of the sample whose diagonal entry is worst
    represented so far. What is left over, K - F F', is positive semidefinite, so none of its entries is larger than
    its largest diagonal entry, which is known.

    Parameters
    ----------
    column : function
        Gives column i of K, shape (n,).
    diagonal : ndarray of shape (n,)
        The diagonal of K.
    error : float
    max_rank : int

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.lowrank import pivoted_factor
    >>> x = np.linspace(0, 1, 200)
    >>> K = np.exp(-((x[:, None] - x) ** 2))
    >>> F = pivoted_factor(lambda i: K[i], np.ones(200), 1e-8, 50)
    >>> F.shape[1] < 10, bool(np.abs(K - F @ F.T).max() <= 1e-8)
    (True, True)
    """
    left = diagonal.astype(np.float64)
    rows = np.empty((min(max_rank, left.size), left.size))
    for r in range(rows.shape[0] + 1):
        pivot = int(np.argmax(left))
        if left[pivot] <= error:
            return np.ascontiguousarray(rows[:r].T)
        if r == rows.shape[0]:
            return None
        rows[r] = (column(pivot) - rows[:r, pivot] @ rows[:r]) / np.sqrt(left[pivot])
        left -= rows[r] ** 2
        left[pivot] = 0.0
    return None
