"""Bandwidth ladders: any number of Gaussian widths for the price of a few dozen.

exp(-D / (2 s^2)) is smooth in u = log s, so on a range of widths it is the interpolating polynomial in u on Chebyshev
nodes s_1, ..., s_J up to an error that falls by a factor of eight for eight more nodes:

    K(s)  =  sum_j l_j(log s) K(s_j)  +  error,        l_j the Lagrange polynomials of the nodes.

J depends on the range and on the error asked for, not on the number of widths. Whatever is linear in a kernel is
interpolated the same way: quadratic forms q(s) = sum_j l_j q(s_j), products with a vector, row means, inner products
with a matrix; and a weighted sum of a million kernels is a (signed) sum of the nodes. The error is absolute: an entry
of a kernel matrix is exact to ``error`` (its values are at most 1), so a quadratic form is exact to ``error`` times
(sum_i |beta_i|)^2 at worst, and in practice to about ``error`` times the largest quadratic form. Where few kernels are
asked for, they are computed exactly.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from manykernels.core.checks import check_count, check_number
from manykernels.kernels.base import short

_LEAST_NODES, _MORE_NODES = 8, 4


class GaussianLadder:
    """Gaussian kernels on the same columns with many widths, evenly spaced on a log scale.

    Parameters
    ----------
    low, high : float, default 2^-3 and 2^6
        The smallest and the largest width.
    count : int, default 1000
        Number of widths.
    error : float, default 5e-8
        Largest error of an interpolated kernel value.
    columns, group, label
        As for :class:`Gaussian`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import GaussianLadder, KernelBank
    >>> ladder = GaussianLadder(low=0.5, high=32.0, count=100_000)
    >>> len(ladder), len(ladder.nodes)
    (100000, 44)
    >>> bank = bind(KernelBank([ladder]), np.random.default_rng(0).normal(size=(50, 3)))
    >>> bank.quad_forms(np.ones(50)).shape
    (100000,)
    """

    def __init__(
        self,
        low: float = 2.0**-3,
        high: float = 2.0**6,
        count: int = 1000,
        error: float = 5e-8,
        columns: Any = None,
        group: str | None = None,
        label: str | None = None,
    ) -> None:
        self.low = check_number("low", low, low=0)
        self.high = check_number("high", high, low=self.low, more=", the value of low")
        self.count = check_count("count", count, at_least=2)
        self.error = check_number("error", error, low=1e-14, closed="left")
        self.columns, self.group, self.label = columns, group, label

    @property
    def widths(self) -> np.ndarray:
        """The widths, shape (count,)."""
        return np.geomspace(self.low, self.high, self.count)

    @property
    def nodes(self) -> np.ndarray:
        """The widths of the Chebyshev nodes."""
        return chebyshev_widths(self.low, self.high, count_nodes(self.low, self.high, self.error))

    @property
    def title(self) -> str:
        """The ladder's name without its columns."""
        return f"Gaussian(width={short(self.low)} to {short(self.high)})"

    def refined(self, error: float) -> GaussianLadder:
        """Return the same ladder with an error of at most ``error``."""
        finest = min(self.error, error)
        return GaussianLadder(self.low, self.high, self.count, finest, self.columns, self.group, self.label)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        where = "" if self.columns is None else f", columns={self.columns!r}"
        return f"GaussianLadder(low={short(self.low)}, high={short(self.high)}, count={self.count}{where})"

    def __deepcopy__(self, memo: dict) -> GaussianLadder:
        return self


def chebyshev_widths(low: float, high: float, n_nodes: int) -> np.ndarray:
    """Return Chebyshev nodes in log width between low and high."""
    middle, half = 0.5 * (np.log(low) + np.log(high)), 0.5 * (np.log(high) - np.log(low))
    return np.exp(middle + half * _chebyshev(n_nodes))


def _chebyshev(n_nodes: int) -> np.ndarray:
    return np.cos((2 * np.arange(n_nodes) + 1) * np.pi / (2 * n_nodes))


def lagrange_basis(widths: np.ndarray, low: float, high: float, n_nodes: int) -> np.ndarray:
    """Return the Lagrange polynomials of the nodes at the widths, by the barycentric formula.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.ladder import chebyshev_widths, lagrange_basis
    >>> nodes = chebyshev_widths(1.0, 4.0, 20)
    >>> values = lagrange_basis(np.array([2.5]), 1.0, 4.0, 20) @ np.exp(-3.0 / (2 * nodes**2))
    >>> bool(abs(values[0] - np.exp(-3.0 / (2 * 2.5**2))) < 1e-9)
    True
    """
    at = (2 * np.log(widths) - np.log(low) - np.log(high)) / (np.log(high) - np.log(low))
    nodes = _chebyshev(n_nodes)
    place = np.arange(n_nodes)
    weights = (-1.0) ** place * np.sin((2 * place + 1) * np.pi / (2 * n_nodes))
    distance = at[:, None] - nodes[None, :]
    # On a node the formula is 0/0; this near, the node's own polynomial is 1 and the others are 0 to rounding.
    distance[np.abs(distance) < 1e-15] = 1e-15
    np.divide(weights, distance, out=distance)
    distance /= distance.sum(axis=1, keepdims=True)
    return distance


@lru_cache(maxsize=64)
def count_nodes(low: float, high: float, error: float) -> int:
    """Return the least number of nodes (in steps of four) whose interpolation is exact to ``error``.

    Measured on a fine grid of widths and of squared distances, from far below low^2 to far above high^2; only the ratio
    of the two counts.
    """
    low, high = 1.0, high / low
    widths = np.geomspace(low, high, 331)
    distances = np.geomspace(1e-3, 1e3 * high**2, 400)
    true = np.exp(-distances / (2 * widths[:, None] ** 2))
    n_nodes = _LEAST_NODES
    while True:
        nodes = chebyshev_widths(low, high, n_nodes)
        values = np.exp(-distances / (2 * nodes[:, None] ** 2))
        if np.abs(lagrange_basis(widths, low, high, n_nodes) @ values - true).max() <= error:
            return n_nodes
        n_nodes += _MORE_NODES
