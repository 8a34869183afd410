"""Gaussian kernels of every width between two, one for all features or one for each.

The kernels of one width are searched by interpolation on Chebyshev nodes in the logarithm of the width, which is exact
to a known error; widths of their own for each feature are climbed by exact derivatives.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from manykernels.compute.pairwise import (
    dense,
    gaussian_rate,
    gaussian_rates,
    power_of_two,
    scaled_distances,
    scaled_gaussian_sums,
)
from manykernels.compute.threads import n_threads, parallel
from manykernels.compute.triangles import inner_products, packed, symmetric_vector
from manykernels.core.checks import check_number
from manykernels.kernels.base import Gaussian, Kernel, short
from manykernels.kernels.continuous_family import BoundContinuous, ContinuousFamily, best_on_line
from manykernels.kernels.gaussian_product import ScaledGaussian
from manykernels.kernels.ladder import chebyshev_widths, count_nodes, lagrange_basis

SHRINKAGES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_GRID, _ROUGH = 600, 32
# Waking a thread takes longer than this many terms.
_SMALL = 1 << 20
# Kernels of the nodes of all widths are held up to this size.
_HELD_BYTES = 5e8
# Interpolated kernel values are exact to this, beside a diagonal of 1.
_INTERPOLATION = 1e-8
# Beyond this part of the smallest and this multiple of the largest distance, a Gaussian changes no more.
_NARROW, _WIDE = 0.1, 30.0
# (1 / (2 * 30^2))^2 / 2, the bend of the exponential over the widths that are wider still.
_BEYOND = 1.6e-7

_LEAST_WIDTH = 1e-60


class GaussianFamily(ContinuousFamily):
    """Gaussian kernels of all widths between two, exp(-|x - z|^2 / (2 width^2)).

    Parameters
    ----------
    low, high : float, default 1e-3 and 1e3
    per_feature : bool, default False
        A width of its own for each feature, all between ``low`` and ``high``.
    n_starts : int, default 3
        Random starts of the search with a width for each feature.
    shrinkage : float or "auto", default 0
        With ``per_feature=True``: how strongly the widths of the features are drawn to their mean. The search maximizes
        <M, K> / (||M|| n) - shrinkage * the squared coefficient of variation of the widths. It keeps many widths from
        overfitting a few samples. "auto" is for the two-stage estimators and AlignedKernel, which take the strength
        with the best alignment on samples held out.
    columns, group, label
        As for :class:`Gaussian`.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.kernels import GaussianFamily
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifier(GaussianFamily(0.1, 100.0), C=10.0).fit(X, y)
    >>> len(model.weights_) < 10, bool(model.gap_ <= 1e-3)
    (True, True)
    """

    def __init__(
        self,
        low: float = 1e-3,
        high: float = 1e3,
        per_feature: bool = False,
        n_starts: int = 3,
        shrinkage: float | str = 0.0,
        columns: Any = None,
        group: str | None = None,
        label: str | None = None,
    ) -> None:
        least = check_number("low", low, low=0)
        most = check_number("high", high, low=least, more=", the value of low")
        if least < _LEAST_WIDTH or most > 1.0 / _LEAST_WIDTH:
            needs = f"between {_LEAST_WIDTH} and {1.0 / _LEAST_WIDTH}, since their squares are searched"
            raise ValueError(f"low and high must be {needs}, got {low!r} and {high!r}; scale the features.")
        super().__init__(least, most, n_starts, columns, group, label)
        self.per_feature = bool(per_feature)
        is_open = isinstance(shrinkage, str) and shrinkage == "auto"
        self.shrinkage: Any = shrinkage
        if not is_open:
            self.shrinkage = check_number("shrinkage", shrinkage, low=0, closed="left", more=", or 'auto'")
        if not self.per_feature and self.shrinkage != 0.0:
            raise ValueError(f"shrinkage={shrinkage!r} needs per_feature=True: one width is not drawn to any other.")

    @property
    def is_settled(self) -> bool:
        """Whether the strength of the shrinkage is given."""
        return not isinstance(self.shrinkage, str)

    def candidates(self) -> list[GaussianFamily]:
        """Return the same family with each strength of the shrinkage that "auto" chooses from."""
        return [self] if self.is_settled else [self.shrunk(strength) for strength in SHRINKAGES]

    def shrunk(self, shrinkage: float) -> GaussianFamily:
        """Return the same family with another strength of the shrinkage."""
        other = copy(self)
        other.shrinkage = check_number("shrinkage", shrinkage, low=0, closed="left")
        return other

    def penalty(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the squared coefficient of variation of the widths, times the shrinkage."""
        mean, square = parameters.mean(), np.mean(parameters**2)
        slope = 2.0 / (parameters.size * mean**2) * (parameters - square / mean)
        return self.shrinkage * (square / mean**2 - 1.0), self.shrinkage * slope

    def __repr__(self) -> str:
        each = ", per_feature=True" if self.per_feature else ""
        drawn = f", shrinkage={short(self.shrinkage)}" if self.shrinkage else ""
        return f"GaussianFamily({short(float(self.low[0]))}, {short(float(self.high[0]))}{each}{drawn}{self._where()})"

    def kernel(self, parameters: np.ndarray) -> Kernel:
        if self.per_feature:
            return ScaledGaussian(0.5 / np.asarray(parameters) ** 2)
        return Gaussian(float(parameters[0]))

    def for_columns(self, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
        size = n_columns if self.per_feature else 1
        return np.full(size, self.low[0]), np.full(size, self.high[0])

    def search(self, family: BoundContinuous, M: np.ndarray) -> tuple[np.ndarray, float, float]:
        return family.climb(M) if self.per_feature else self.best_width(family, M)

    def best_width(self, family: BoundContinuous, M: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Search the widths by interpolation on Chebyshev nodes, which is exact to a known error."""
        nodes = self._nodes_for(family, M)
        scale = family.member(family.low).scale  # the diagonal of every width is 1
        values = scale * nodes.values(M)
        grid = np.geomspace(nodes.low, nodes.high, _GRID)

        def interpolated(width: Any) -> Any:
            return lagrange_basis(np.atleast_1d(width), nodes.low, nodes.high, nodes.widths.size) @ values

        place = nodes.low
        if nodes.widths.size > 1:
            place = best_on_line(lambda s: float(interpolated(s)[0]), grid, interpolated(grid))[0]
        # Beyond the range the value is all but linear in 1 / width^2 up to the widest.
        error = (2 * _INTERPOLATION + _BEYOND) * scale * float(np.abs(M).sum())
        candidates = (place, float(self.low[0]), float(self.high[0]))
        value, place = max((scale * nodes.exact(M, candidate), candidate) for candidate in candidates)
        return np.array([place]), value, value + error + 1e-5 * abs(value)

    def _nodes_for(self, family: BoundContinuous, M: np.ndarray) -> _WidthNodes:
        """Return the nodes on the samples that M is about: all of them, whose kernels are held, or a few."""
        used = np.flatnonzero(np.any(M != 0, axis=0))
        if 2 * used.size < M.shape[0] and used.size:
            return _WidthNodes(family.V, *self._range(family.V, used), used, 0.0)
        if family.remembered is None:
            held = min(_HELD_BYTES, 0.5 * family.budget)
            family.remembered = _WidthNodes(family.V, *self._range(family.V, None), None, held)
        return family.remembered

    def _range(self, V: Any, used: np.ndarray | None) -> tuple[float, float]:
        """Return the part of the widths where the kernels differ on these samples."""
        rows = V if used is None else V[used]
        D, unit = scaled_distances(rows, rows)
        apart = D[D > 0]
        if apart.size == 0:
            return float(self.low[0]), float(self.low[0])
        # Powers of two, so that the number of nodes is found once.
        narrow = unit * 2.0 ** np.floor(np.log2(_NARROW * float(np.sqrt(apart.min()))))
        wide = unit * 2.0 ** np.ceil(np.log2(_WIDE * float(np.sqrt(apart.max()))))
        low = min(max(float(self.low[0]), narrow), float(self.high[0]))
        return low, max(min(float(self.high[0]), wide), low)

    def _rough_width(self, D: np.ndarray, unit: float, M: np.ndarray) -> float:
        """Return about the best width for a matrix of squared distances in a unit: the best of a few."""
        apart = D[D > 0]
        if apart.size == 0:
            return float(self.low[0])
        low, high = (unit * float(np.sqrt(square)) for square in (apart.min(), apart.max()))
        low, high = max(_NARROW * low, float(self.low[0])), min(_WIDE * high, float(self.high[0]))
        grid = np.geomspace(min(low, high), high, _ROUGH)
        values = np.array(parallel(lambda width: float(np.vdot(M, np.exp(D * -gaussian_rate(width, unit)))), grid))
        k = int(np.argmax(values))
        if not 0 < k < _ROUGH - 1:
            return float(grid[k])
        # The peak of the parabola through three values, in the logarithm of the width.
        rise, fall = values[k] - values[k - 1], values[k] - values[k + 1]
        step = 0.5 * (rise - fall) / (rise + fall) if rise + fall > 0 else 0.0
        return float(grid[k] * (grid[k + 1] / grid[k]) ** step)

    def draw(self, family: BoundContinuous, M: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
        """Draw one width near the best; with a width for each feature, one after the other, given those before."""
        if not self.per_feature:
            return super().draw(family, M, rng)
        widths, density, X = np.empty(family.low.size), 1.0, dense(family.V)
        for j in range(widths.size):
            D, unit = scaled_distances(X[:, [j]], X[:, [j]])
            width, width_density = family.near(np.array([self._rough_width(D, unit, M)]), rng)
            widths[j], density = width[0], density * width_density
            M = M * np.exp(D * -gaussian_rate(widths[j], unit))
        return widths, density

    def value_and_gradient(self, M: np.ndarray, V: Any, parameters: np.ndarray) -> tuple[float, np.ndarray] | None:
        if not self.per_feature:
            return None
        columns = np.ascontiguousarray(dense(V).T)
        unit = power_of_two(float(np.abs(columns).max()))
        columns = columns / unit
        n, widths = columns.shape[1], np.asarray(parameters) / unit
        rates = gaussian_rates(widths)
        spreads = np.zeros((n_threads() if n * columns.size > _SMALL else 1, columns.shape[0]))

        def part(t: int) -> float:
            # Rows are shorter and shorter: deal them out in turn.
            return scaled_gaussian_sums(columns, rates, M, np.arange(t, n, len(spreads)), spreads[t])

        above = sum(parallel(part, range(len(spreads))))
        return float(np.trace(M)) + 2.0 * above, 2.0 * spreads.sum(axis=0) / widths**3 / unit

    def starts(self, family: BoundContinuous, M: np.ndarray) -> list[np.ndarray]:
        """Return the best common width."""
        return [np.full(family.low.size, self.best_width(family, M)[0][0])]


class _WidthNodes:
    """Gaussian kernels of a few widths, which stand for all between them; held in memory if they are not too large."""

    def __init__(self, V: Any, low: float, high: float, used: np.ndarray | None, held_bytes: float) -> None:
        self.low, self.high, self.used = low, high, used
        rows = V if used is None else V[used]
        D, self.unit = scaled_distances(rows, rows)
        # Only the ratio counts.
        self.widths = chebyshev_widths(
            low, high, count_nodes(1.0, high / low, _INTERPOLATION) if high > 1.0001 * low else 1
        )
        self.D = packed(D)
        self.stack: np.ndarray | None = None
        if self.D.nbytes * self.widths.size <= held_bytes:
            self.stack = np.empty((self.widths.size, self.D.size))
            parallel(self._fill, range(self.widths.size))

    def _fill(self, j: int) -> None:
        assert self.stack is not None
        np.exp(self.D * -gaussian_rate(self.widths[j], self.unit), out=self.stack[j])

    def values(self, M: np.ndarray) -> np.ndarray:
        """Return <M, K> for the widths of all nodes."""
        if self.stack is None:
            v = self._vector(M)
            return np.array(parallel(lambda width: self._value(v, float(width)), self.widths))
        return inner_products(self.stack, M, np.arange(self.widths.size))

    def exact(self, M: np.ndarray, width: float) -> float:
        """Return <M, K> for any width."""
        return self._value(self._vector(M), width)

    def _vector(self, M: np.ndarray) -> np.ndarray:
        return symmetric_vector(M if self.used is None else M[np.ix_(self.used, self.used)])

    def _value(self, v: np.ndarray, width: float) -> float:
        return float(v @ np.exp(self.D * -gaussian_rate(width, self.unit)))
