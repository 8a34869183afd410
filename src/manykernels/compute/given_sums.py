"""Coefficients in a box that are to have a given sum, mostly 0: what rounding or a step has left is taken off."""

from __future__ import annotations

import numpy as np

# What rounding may leave of 1' beta, beside the size of beta, and how often it is removed.
_IMBALANCE, _BALANCES = 1e-12, 3
# How often another sum is corrected: after the first time, by rounding alone.
_SUMS = 3


def balanced(beta: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the point of the box with 1' beta = 0 that shrinks the surplus side of beta.

    Moving toward 0 keeps every coefficient in a box that holds 0. Where nearly all is surplus, its rounding
    is large beside what is left, and has to go as well.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.given_sums import balanced
    >>> balanced(np.array([3.0, 1.0, -2.0]), np.full(3, -5.0), np.full(3, 5.0))
    array([ 1.5,  0.5, -2. ])
    """
    for _ in range(_BALANCES):
        total = beta.sum()
        surplus = np.where(np.sign(beta) == np.sign(total), beta, 0.0)
        mass = surplus.sum()
        if mass == 0.0:
            break
        beta = np.clip(beta - surplus * (total / mass), lower, upper)
        if sums_to_zero(beta):
            break
    return beta


def sums_to_zero(beta: np.ndarray) -> bool:
    """Return whether 1' beta = 0 up to rounding."""
    return bool(abs(beta.sum()) <= _IMBALANCE * np.abs(beta).sum())


def summing_to(total: float, beta: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the point of the box that has this sum; coefficients at a bound stay there if the others have the room.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.given_sums import summing_to
    >>> summing_to(3.0, np.array([0.0, 1.0, 1.0]), np.zeros(3), np.full(3, 2.0))
    array([0. , 1.5, 1.5])
    """
    for _ in range(_SUMS):
        missing = total - float(beta.sum())
        room = upper - beta if missing > 0 else lower - beta
        inside = np.where((beta > lower) & (beta < upper), room, 0.0)
        if abs(inside.sum()) < abs(missing):
            inside = room
        if not np.any(inside):
            break
        beta = np.clip(beta + inside * min(missing / inside.sum(), 1.0), lower, upper)
    return beta
