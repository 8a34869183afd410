"""What a bank is asked for, checked before compiled code reads beyond the end of an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def checked_weights(weights: np.ndarray, n_kernels: int) -> np.ndarray:
    """Return weights as an array; raise ValueError unless there is one for each kernel, and none is negative or NaN.

    Examples
    --------
    >>> from manykernels.banks.argument_checks import checked_weights
    >>> checked_weights([1, 0], 2)
    array([1., 0.])
    """
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if weights.shape != (n_kernels,):
        raise ValueError(f"weights must have shape ({n_kernels},), got {weights.shape}.")
    if not np.all(weights >= 0):
        raise ValueError(f"weights must not be negative or NaN, but the smallest is {weights.min():.3g}.")
    return weights


def checked_places(places: Sequence[int] | np.ndarray | None, size: int, name: str = "subset") -> np.ndarray:
    """Return places from 0 to size - 1 as an array, all of them for None; raise ValueError if one is outside.

    Examples
    --------
    >>> from manykernels.banks.argument_checks import checked_places
    >>> checked_places([2, 0], 3), checked_places(None, 3)
    (array([2, 0]), array([0, 1, 2]))
    """
    if places is None:
        return np.arange(size)
    chosen = np.asarray(places, dtype=np.int64)
    if chosen.size and not (chosen.min() >= 0 and chosen.max() < size):
        raise ValueError(f"{name} must hold places from 0 to {size - 1}, got {chosen.min()} to {chosen.max()}.")
    return chosen


def check_length(values: Any, n_samples: int, name: str = "beta") -> None:
    """Raise ValueError unless the last axis of an array is as long as there are samples.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks.argument_checks import check_length
    >>> check_length(np.ones((2, 5)), 5)
    """
    if np.shape(values)[-1] != n_samples:
        raise ValueError(f"{name} must be for {n_samples} samples, got {np.shape(values)[-1]}.")


def check_matrix(M: np.ndarray, n_samples: int) -> None:
    """Raise ValueError unless a matrix is of all pairs of samples.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks.argument_checks import check_matrix
    >>> check_matrix(np.eye(5), 5)
    """
    if np.shape(M) != (n_samples, n_samples):
        raise ValueError(f"M must have shape ({n_samples}, {n_samples}), got {np.shape(M)}.")
