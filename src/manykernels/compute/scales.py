"""Means and spreads of numbers of any size: what is squared or added up is first brought near 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from manykernels.compute.pairwise import power_of_two


def deviation_unit(values: np.ndarray) -> float:
    """Return the standard deviation, 1 where it is 0: a unit for the accuracy of what is fitted to the values.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.scales import deviation_unit
    >>> [deviation_unit(np.array(pair)) for pair in ([2.0, 4.0], [5.0, 5.0], [0.0, 2e200])]
    [1.0, 1.0, 1e+200]
    """
    unit = power_of_two(float(np.abs(values).max(initial=0.0)))
    return float(np.std(values / unit)) * unit or 1.0


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> Any:
    """Return the weighted mean, of each column if there are several, which rounding does not take out of their range.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.scales import weighted_mean
    >>> weighted_mean(np.array([1e308, 1e308]), np.array([1.0, 3.0]))
    1e+308
    >>> weighted_mean(np.array([[1.0, 0.0], [2.0, 4.0]]), np.array([1.0, 3.0]))
    array([1.75, 3.  ])
    """
    unit = power_of_two(float(np.abs(values).max(initial=0.0)))
    mean = np.average(values / unit, axis=0, weights=weights) * unit
    mean = np.clip(mean, values.min(axis=0), values.max(axis=0))
    return mean if values.ndim > 1 else float(mean)
