"""Coefficients in a box that sum to 0: what rounding or a step has left of their sum is taken off."""

from __future__ import annotations

import numpy as np

# What rounding may leave of 1' beta, beside the size of beta, and how often it is removed.
_IMBALANCE, _BALANCES = 1e-12, 3


def balanced(beta: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the point of the box with 1' beta = 0 that shrinks the surplus side of beta.

    Moving toward 0 keeps every coefficient in a box that holds 0. Where nearly all is surplus, its rounding
    is large beside what is left, and has to go as well.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.zero_sums import balanced
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
