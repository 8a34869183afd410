"""Where the columns of a table lie and how far they spread, learned from blocks of rows; and tables in these units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from manykernels.compute.pairwise import dense, power_of_two

# A spread that is so many roundings of the mean, or fewer, is none: the column is constant.
_FEW_ROUNDINGS = 100
# A column whose mean and spread are those of a standardized one up to this stays as it is, bit by bit.
_NEAR = 1e-12


@dataclass(frozen=True)
class ColumnMoments:
    """Sums over rows, for each column; a NaN is not counted.

    Attributes
    ----------
    weight : ndarray of shape (n_columns,)
        The sum of the weights.
    mean : ndarray of shape (n_columns,)
    spread : ndarray of shape (n_columns,)
        The root of the weighted sum of squared deviations from the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.columns import ColumnMoments
    >>> X, one = np.array([[1.0, 5.0], [3.0, 5.0], [5.0, 5.0]]), np.ones(3)
    >>> parts = [ColumnMoments.of(X[rows], one[rows]) for rows in (slice(1), slice(1, 3))]
    >>> scales = ColumnMoments.total(parts).scales()
    >>> scales.location, scales.scale
    (array([3., 5.]), array([1.63299316, 1.        ]))
    """

    weight: np.ndarray
    mean: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, X: Any, weights: np.ndarray) -> ColumnMoments:
        """Return the moments of rows X (n, n_columns), an array or a CSR matrix, with positive weights (n,)."""
        X = dense(X)
        known = ~np.isnan(X)
        # Powers of two round nothing; what is squared and added up is near 1.
        units = np.array([power_of_two(size) for size in np.max(np.abs(X), axis=0, initial=0.0, where=known)])
        heaviest = power_of_two(float(weights.max(initial=0.0)))
        W, V = known * (weights / heaviest)[:, None], np.where(known, X, 0.0) / units
        total = W.sum(axis=0)
        divisor = np.where(total > 0, total, 1.0)
        mean = np.sum(W * V, axis=0) / divisor
        mean += np.sum(W * (V - mean), axis=0) / divisor  # what the first sum has rounded
        spread = np.sqrt(np.sum(W * (V - mean) ** 2, axis=0))
        return cls(total * heaviest, mean * units, spread * units * np.sqrt(heaviest))

    def merged(self, other: ColumnMoments) -> ColumnMoments:
        """Return the moments of the rows of both."""
        weight = self.weight + other.weight
        divisor = np.where(weight > 0, weight, 1.0)
        share, apart = other.weight / divisor, other.mean - self.mean
        between = np.abs(apart) * np.sqrt(self.weight) * np.sqrt(share)
        return ColumnMoments(weight, self.mean + apart * share, np.hypot(np.hypot(self.spread, other.spread), between))

    @staticmethod
    def total(parts: Any) -> ColumnMoments:
        """Return the moments of the rows of all parts."""
        return reduce(ColumnMoments.merged, parts)

    def scales(self) -> ColumnScales:
        """Return the mean and the standard deviation of each column, which is 1 where the column is constant."""
        deviation = self.spread / np.sqrt(np.where(self.weight > 0, self.weight, 1.0))
        is_constant = deviation <= _FEW_ROUNDINGS * np.finfo(float).eps * np.abs(self.mean)
        scale = np.where(is_constant, 1.0, deviation)
        stays = (np.abs(self.mean) <= _NEAR) & (np.abs(scale - 1.0) <= _NEAR)
        return ColumnScales(np.where(stays, 0.0, self.mean), np.where(stays, 1.0, scale))


@dataclass(frozen=True)
class ColumnScales:
    """The units in which a table is looked at: (x - location) / scale, column by column.

    Attributes
    ----------
    location, scale : ndarrays of shape (n_columns,)

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.columns import ColumnScales
    >>> ColumnScales(np.array([3.0, 5.0]), np.array([2.0, 1.0])).of(np.array([[1.0, 5.0], [np.nan, 6.0]]))
    array([[-1.,  0.],
           [nan,  1.]])
    """

    location: np.ndarray
    scale: np.ndarray

    def of(self, X: Any) -> np.ndarray:
        """Return the rows of X, an array or a CSR matrix, in these units: X itself where nothing changes."""
        X = dense(X)
        if not np.any(self.location) and np.all(self.scale == 1.0):
            return X
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (X - self.location) / self.scale
        if np.any(np.isinf(scaled)):
            column = int(np.flatnonzero(np.isinf(scaled).any(axis=0))[0])
            raise ValueError(
                f"Column {column} of X is too large to be standardized: it lies {self.scale[column]:.2g} around "
                f"{self.location[column]:.2g} in the training data, and has values of up to "
                f"{np.nanmax(np.abs(X[:, column])):.2g}."
            )
        return scaled
