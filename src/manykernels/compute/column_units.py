"""Where the columns of a table lie and how far they spread, learned from blocks of rows; and tables in these units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from manykernels.compute.pairwise import dense, power_of_two

# Standardized values are rounded to this part of a deviation, far below what kernels of standardized columns see. So
# the last bits of a mean, which depend on the order of rows and on what others have rounded before, decide nothing.
_GRAIN = 2.0**-28


@dataclass(frozen=True)
class ColumnMoments:
    """What is known of the columns of some rows; a NaN is not counted.

    Attributes
    ----------
    weight : ndarray of shape (n_columns,)
        The sum of the weights.
    mean, deviation : ndarrays of shape (n_columns,)
        The standard deviation is 0 where it is no more than rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.column_units import ColumnMoments
    >>> X, one = np.array([[1.0, 5.0], [3.0, 5.0], [5.0, 5.0]]), np.ones(3)
    >>> parts = [ColumnMoments.of(X[rows], one[rows]) for rows in (slice(1), slice(1, 3))]
    >>> scales = ColumnMoments.total(parts).scales()
    >>> scales.location, scales.scale.round(6)
    (array([3., 5.]), array([1.632993, 1.      ]))
    """

    weight: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, X: Any, weights: np.ndarray) -> ColumnMoments:
        """Return the moments of rows X (n, n_columns), an array or a CSR matrix, with weights (n,).

        They are scikit-learn's, also where their squares would overflow.
        """
        from sklearn.preprocessing import StandardScaler  # noqa: PLC0415 - of many modules, and not always needed

        used = weights > 0
        X, weights = dense(X)[used] if not used.all() else dense(X), weights[used]
        if not len(X):
            return cls(*np.zeros((3, X.shape[1])))
        known = ~np.isnan(X)
        total = weights @ known
        # Powers of two round nothing.
        units = np.array([power_of_two(size) for size in np.max(np.abs(X), axis=0, initial=0.0, where=known)])
        seen = X / units
        if not np.all(total > 0):
            seen[:, total == 0] = 0.0
        scaler = StandardScaler().fit(seen, sample_weight=None if np.ptp(weights) == 0 else weights / weights.max())
        is_constant = (scaler.scale_ == 1.0) & (scaler.var_ != 1.0)
        deviation = np.where(is_constant, 0.0, np.sqrt(np.maximum(scaler.var_, 0.0)))
        return cls(total, scaler.mean_ * units, deviation * units)

    def merged(self, other: ColumnMoments) -> ColumnMoments:
        """Return the moments of the rows of both."""
        weight = self.weight + other.weight
        divisor = np.where(weight > 0, weight, 1.0)
        rest, share, apart = self.weight / divisor, other.weight / divisor, other.mean - self.mean
        inside = np.hypot(np.sqrt(rest) * self.deviation, np.sqrt(share) * other.deviation)
        return ColumnMoments(
            weight, self.mean + share * apart, np.hypot(inside, np.sqrt(rest) * np.sqrt(share) * np.abs(apart))
        )

    @staticmethod
    def total(parts: Any) -> ColumnMoments:
        """Return the moments of the rows of all parts."""
        return reduce(ColumnMoments.merged, parts)

    def scales(self) -> ColumnScales:
        """Return the mean and the standard deviation of each column; a constant one has the scale 1."""
        return ColumnScales(self.mean, np.where(self.deviation > 0, self.deviation, 1.0))


@dataclass(frozen=True)
class ColumnScales:
    """The units in which a table is looked at: (x - location) / scale, column by column.

    Attributes
    ----------
    location, scale : ndarrays of shape (n_columns,)

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.column_units import ColumnScales
    >>> ColumnScales(np.array([3.0, 5.0]), np.array([2.0, 1.0])).of(np.array([[1.0, 5.0], [np.nan, 6.0]]))
    array([[-1.,  0.],
           [nan,  1.]])
    """

    location: np.ndarray
    scale: np.ndarray

    def of(self, X: Any) -> np.ndarray:
        """Return the rows of X, an array or a CSR matrix, in these units."""
        X = dense(X)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.rint((X - self.location) / (self.scale * _GRAIN)) * _GRAIN
        if np.any(np.isinf(scaled)):
            column = int(np.flatnonzero(np.isinf(scaled).any(axis=0))[0])
            raise ValueError(
                f"Column {column} of X is too large to be standardized: it lies {self.scale[column]:.2g} around "
                f"{self.location[column]:.2g} in the training data, and has values of up to "
                f"{np.nanmax(np.abs(X[:, column])):.2g}."
            )
        return scaled
