"""Means and spreads of numbers of any size: what is squared or added up is first brought near 1."""

from __future__ import annotations

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


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted mean, which rounding does not take out of the range of the values.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.scales import weighted_mean
    >>> weighted_mean(np.array([1e308, 1e308]), np.array([1.0, 3.0]))
    1e+308
    """
    unit = power_of_two(float(np.abs(values).max(initial=0.0)))
    mean = float(np.average(values / unit, weights=weights)) * unit
    return float(np.clip(mean, values.min(), values.max()))
