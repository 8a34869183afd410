"""Kernels with parameters in a box: infinitely many.

The best kernel for a matrix M maximizes <M, K_s> over the parameters s. In one dimension that is a function on an
interval, looked at on a fine grid and polished; in many it is climbed by L-BFGS-B from a few starts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import truncnorm

from manykernels.compute.pairwise import dense
from manykernels.core.checks import check_choice, check_count, check_number
from manykernels.kernels.base import Dirichlet, Kernel, short
from manykernels.kernels.columns import column_names, describe_columns, resolve_columns
from manykernels.kernels.family import DRAWS, Best, BoundFamily, Draw, Family, Member, scale_of
from manykernels.kernels.shared_distances import BoundKernel

_COARSE, _PEAKS, _MOST_GRID = 60, 4, 20_000
# A search in many dimensions ends when a step gains less than this part.
_CLIMB_TOL, _CLIMB_STEPS = 1e-6, 100


class ContinuousFamily(Family):
    """Kernels with parameters in a box; subclass it for one of your own.

    A subclass sets ``low`` and ``high``, arrays of shape (n_parameters,), and implements :meth:`kernel`. With
    :meth:`value_and_gradient` the search for the best parameters is by exact derivatives, else by differences.

    Parameters
    ----------
    low, high : array-like of shape (n_parameters,)
    n_starts : int, default 3
        Random starts of a search in many dimensions.
    columns, group, label
        As for :class:`Kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import cdist
    >>> from manykernels import MKLRegressor
    >>> from manykernels.kernels import ContinuousFamily, Kernel
    >>> class Laplacian(Kernel):
    ...     def __init__(self, scale, columns=None, group=None, label=None):
    ...         super().__init__(columns, group, label)
    ...         self.scale = scale
    ...     def compute(self, X, Z):
    ...         return np.exp(-cdist(X, Z, "cityblock") / self.scale)
    >>> class Laplacians(ContinuousFamily):
    ...     def __init__(self):
    ...         super().__init__(low=[0.1], high=[10.0])
    ...     def kernel(self, parameters):
    ...         return Laplacian(float(parameters[0]))
    >>> X = np.linspace(-3, 3, 50)[:, None]
    >>> MKLRegressor(Laplacians(), C=10.0).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.95
    True
    """

    def __init__(
        self,
        low: Any,
        high: Any,
        n_starts: int = 3,
        columns: Any = None,
        group: str | None = None,
        label: str | None = None,
    ) -> None:
        self.low, self.high = np.atleast_1d(np.asarray(low, float)), np.atleast_1d(np.asarray(high, float))
        finite = np.isfinite(self.low).all() and np.isfinite(self.high).all()
        if self.low.shape != self.high.shape or not finite or not np.all(self.low < self.high):
            raise ValueError(f"low must lie below high, both finite and of one shape, got {low!r} and {high!r}.")
        self.n_starts = check_count("n_starts", n_starts, at_least=0)
        self.columns, self.group, self.label = columns, group, label

    def _where(self) -> str:
        """Return the arguments that say what the kernels see, as a repr ends with them."""
        given = {name: getattr(self, name) for name in ("columns", "group", "label")}
        return "".join(f", {name}={value!r}" for name, value in given.items() if value is not None)

    @abstractmethod
    def kernel(self, parameters: np.ndarray) -> Kernel:
        """Return the kernel with these parameters, shape (n_parameters,)."""

    def value_and_gradient(self, M: np.ndarray, V: Any, parameters: np.ndarray) -> tuple[float, np.ndarray] | None:
        """Return <M, K> on the columns V and its derivatives in the parameters, or None where they are not known."""
        return None

    def penalty(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Return what a search in many dimensions is to keep small, with its derivatives; its unit is ||M|| n."""
        return 0.0, np.zeros(parameters.size)

    def search(self, family: BoundContinuous, M: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return the best parameters found, <M, K> there, and what it exceeds nowhere (infinite if unknown)."""
        if self.low.size > 1:
            return family.climb(M)
        low, high = float(self.low[0]), float(self.high[0])
        grid = np.geomspace(low, high, _COARSE) if low > 0 else np.linspace(low, high, _COARSE)
        values = np.array([family.value(M, np.array([s])) for s in grid])
        place, value = best_on_line(lambda s: family.value(M, np.array([s])), grid, values)
        return np.array([place]), value, np.inf

    def for_columns(self, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the box for this many columns."""
        return self.low, self.high

    def draw(self, family: BoundContinuous, M: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
        """Return random parameters near the best ones, and their density."""
        return family.near(np.array(family.best(M).member.key, dtype=float), rng)

    def starts(self, family: BoundContinuous, M: np.ndarray) -> list[np.ndarray]:
        """Return parameters to start a search in many dimensions from, in addition to random ones."""
        return []

    def on(
        self, X: Any, table: Any, weight: np.ndarray, normalize: str | None, budget: int, base: Any = None
    ) -> BoundContinuous:
        positions = resolve_columns(self.columns, table)
        where = self.label or describe_columns(self.columns, positions, column_names(table), table.shape[1])
        return BoundContinuous(self, X, positions, where, normalize, weight, budget)


class BoundContinuous(BoundFamily):
    """A continuum of kernels bound to training data."""

    def __init__(
        self,
        family: ContinuousFamily,
        X: Any,
        positions: np.ndarray,
        where: str,
        normalize: str | None,
        weight: np.ndarray,
        budget: int,
    ) -> None:
        self.family, self.X, self.sample_weight, self.budget = family, X, weight, budget
        self.positions, self.where, self.normalize = positions, where, normalize
        self.V = X if positions.size == X.shape[1] else X[:, positions]
        self.low, self.high = family.for_columns(positions.size)
        self._last: np.ndarray | None = None
        self.remembered: Any = None  # what the family keeps from one search to the next
        self.member(self.low)  # says at once what is wrong with the normalization

    def member(self, parameters: np.ndarray) -> Member:
        kernel = self.family.kernel(parameters)
        kernel.columns = self.positions.tolist()
        entry = BoundKernel(kernel, self.positions, kernel.name(self.where), self.family.group or self.where)
        scale = scale_of(entry, self.X, self.normalize, self.sample_weight)
        return Member(tuple(np.asarray(parameters, float).tolist()), entry, scale)

    def value(self, M: np.ndarray, parameters: np.ndarray) -> float:
        """Return <M, K> of the normalized kernel."""
        member = self.member(parameters)
        return member.scale * float(np.vdot(M, member.kernel.kernel.compute(self.V, self.V)))

    def best(self, M: np.ndarray, definite: bool = True) -> Best:
        parameters, value, bound = self.family.search(self, M)
        self._last = parameters
        return Best(self.member(parameters), value, max(value, bound))

    def sample(self, M: np.ndarray, rng: np.random.Generator, how: str = "gradient") -> Draw:
        """Draw parameters: by a normal around the best ones, as wide as they are large, cut to the box; or evenly."""
        check_choice("how", how, DRAWS)
        if how == "uniform":
            parameters, density = self.near(None, rng)
        else:
            parameters, density = self.family.draw(self, M, rng)
        member = self.member(parameters)
        return Draw(member, self.value(M, parameters), density)

    def near(self, center: np.ndarray | None, rng: np.random.Generator) -> tuple[np.ndarray, float]:
        """Return parameters near the center (some or all of them), or anywhere in the box, with their density."""
        if center is None:
            return rng.uniform(self.low, self.high), float(1.0 / np.prod(self.high - self.low))
        low, high = self.low[: center.size], self.high[: center.size]
        width = np.maximum(np.abs(center), 1e-12)
        law = truncnorm((low - center) / width, (high - center) / width, loc=center, scale=width)
        parameters = np.clip(law.rvs(random_state=rng, size=center.shape), low, high)
        return parameters, float(np.prod(law.pdf(parameters)))

    def climb(self, M: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Maximize by L-BFGS-B in the logarithms of positive parameters, from a few starts."""
        rng = np.random.default_rng(0)
        log = bool(np.all(self.low > 0))
        low, high = (np.log(self.low), np.log(self.high)) if log else (self.low, self.high)

        def negative(u: np.ndarray) -> Any:
            parameters = np.exp(u) if log else u
            known = self.family.value_and_gradient(M, self.V, parameters) if exact else None
            fine, steepness = self.family.penalty(parameters)
            if known is None:
                return level * fine - self.value(M, parameters)
            value, gradient = known
            slope = level * steepness - first * gradient
            return level * fine - first * value, slope * parameters if log else slope

        # Derivatives are of the kernel as it is: they serve if its normalization is the same everywhere.
        first, last = self.member(self.low).scale, self.member(self.high).scale
        # What <M, K> cannot exceed for a kernel with entries of at most 1: the unit of the penalty.
        level = first * float(np.linalg.norm(M)) * M.shape[0]
        exact = (
            abs(first - last) <= 1e-9 * abs(first) and self.family.value_and_gradient(M, self.V, self.low) is not None
        )
        named = self.family.starts(self, M) + ([] if self._last is None else [self._last])
        starts = [np.log(point) if log else point for point in named]
        starts += list(rng.uniform(low, high, (self.family.n_starts, low.size)))
        starts = starts or [0.5 * (low + high)]
        ends = [
            minimize(
                negative,
                np.clip(u, low, high),
                jac=exact,
                method="L-BFGS-B",
                bounds=list(zip(low, high, strict=True)),
                options={"ftol": _CLIMB_TOL, "maxiter": _CLIMB_STEPS},
            )
            for u in starts
        ]
        best = min(ends, key=lambda end: float(end.fun))
        parameters = np.clip(np.exp(best.x) if log else best.x, self.low, self.high)
        return parameters, self.value(M, parameters), np.inf


class DirichletFamily(ContinuousFamily):
    """Dirichlet kernels 1 + 2 cos(frequency |x - z|) of all frequencies between two, on a single column.

    Parameters
    ----------
    low, high : float, default 0 and 20
    columns : int, str or list of one, default None
        None is the only column of X.
    group, label : str or None, default None
        As for :class:`Kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKLClassifier
    >>> from manykernels.kernels import DirichletFamily
    >>> x = np.random.default_rng(0).uniform(-10, 10, 100)[:, None]
    >>> model = MKLClassifier(DirichletFamily(0, 20), C=1.0, tol=1e-2).fit(x, np.sin(np.sqrt(60) * x[:, 0]) > 0)
    >>> model.kernel_names_[int(model.weights_.argmax())][:23]  # the square root of 60 is 7.746
    'Dirichlet(frequency=7.7'
    """

    def __init__(
        self,
        low: float = 0.0,
        high: float = 20.0,
        columns: Any = None,
        group: str | None = None,
        label: str | None = None,
    ) -> None:
        least = check_number("low", low, low=0, closed="left")
        most = check_number("high", high, low=least, more=", the value of low")
        super().__init__(least, most, columns=columns, group=group, label=label)

    def __repr__(self) -> str:
        return f"DirichletFamily({short(float(self.low[0]))}, {short(float(self.high[0]))}{self._where()})"

    def kernel(self, parameters: np.ndarray) -> Kernel:
        return Dirichlet(float(parameters[0]))

    def search(self, family: BoundContinuous, M: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Look at frequencies eight times as dense as the range of the values can tell apart, and polish the peaks."""
        if family.positions.size != 1:
            raise ValueError(f"DirichletFamily is for a single column, got {family.positions.size}.")
        x = dense(family.V)[:, 0]
        scale, total = family.member(family.low).scale, float(M.sum())

        def values(frequencies: np.ndarray) -> np.ndarray:
            phases = np.outer(x, frequencies)
            waves = [np.cos(phases), np.sin(phases)]
            return scale * (total + 2.0 * sum(np.sum(wave * (M @ wave), axis=0) for wave in waves))

        low, high = float(family.low[0]), float(family.high[0])
        count = int(np.ceil((high - low) * max(float(np.ptp(x)), 1e-12) * 8 / np.pi)) + 2
        grid = np.linspace(low, high, min(max(count, 16), _MOST_GRID))
        place, value = best_on_line(lambda s: float(values(np.array([s]))[0]), grid, values(grid))
        known = value * (1 + 1e-5) if count <= _MOST_GRID else np.inf
        return np.array([place]), value, known


def best_on_line(value: Callable[[float], float], grid: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Return where a function that is known on a grid is largest, and its value there."""
    padded = np.r_[-np.inf, values, -np.inf]
    peaks = np.flatnonzero((padded[1:-1] >= padded[:-2]) & (padded[1:-1] >= padded[2:]))
    candidates = []
    for k in peaks[np.argsort(-values[peaks])][:_PEAKS]:
        candidates.append((float(values[k]), float(grid[k])))
        left, right = grid[max(k - 1, 0)], grid[min(k + 1, grid.size - 1)]
        if left < right:
            options = {"xatol": 1e-6 * float(right - left)}
            optimum = minimize_scalar(
                lambda s: -value(float(s)), bounds=(left, right), method="bounded", options=options
            )
            candidates.append((-float(optimum.fun), float(optimum.x)))
    best, place = max(candidates)
    return place, best
