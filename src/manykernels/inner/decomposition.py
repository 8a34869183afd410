"""The program of :mod:`manykernels.inner.smo` for a kernel that does not fit into memory.

    minimize over beta    1/2 beta' K beta - y' beta + epsilon * sum_i |beta_i|,   beta in a box, 1' beta = 0

Two loops. The outer one knows the gradient of all samples; it sets those aside that sit at a bound with a margin, lets
the inner one solve the rest, and rebuilds the gradient from the coefficients that changed. The inner one takes a few
thousand samples at a time, those that violate the optimality conditions most, solves for them by sequential minimal
optimization in a small matrix, and corrects the gradient of the samples that are left by the rows that changed, which
come from a cache; as samples settle, they and their columns of the cache are dropped.

From nothing, the outer loop begins with a random eighth of the samples, the last ones, and doubles them: most of the
others then lie where they should, and never need a row.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from manykernels.compute.compiled import njit
from manykernels.compute.threads import n_threads, one_blas_thread, parallel
from manykernels.core.protocols import RowsKernel
from manykernels.inner import smo
from manykernels.inner.smo import BoxSolution

_WORKING_SET = 2000
_SMALLEST = 500
_PATIENCE = 50
_COARSEST = 4000
_FIRST_PART = 8
_ROUGH = 0.1  # a loop is left when its violation is this part of what it began with
_SLACK = 0.5  # samples this near to moving, in parts of the violation, are among the active ones
_MANY_LEFT = 0.7


@one_blas_thread()
def solve_rows(
    K: RowsKernel,
    y: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    product: Callable[[np.ndarray], np.ndarray],
    epsilon: float = 0.0,
    start: np.ndarray | None = None,
    intercept: bool = True,
    tol: float = 1e-3,
) -> BoxSolution:
    """Solve the box-constrained quadratic program; parameters as :func:`manykernels.inner.smo.solve_box`.

    ``product(beta)`` is K beta for all samples.
    """
    beta = smo.feasible_start(start, lower, upper, intercept)
    state = _State(K, y, lower, upper, float(epsilon), intercept, product, beta)
    size = K.n_samples if np.any(beta) else max(K.n_samples // _FIRST_PART, min(_COARSEST, K.n_samples))
    n_iter, idle, violation = 0, 0, state.violation()
    while violation > tol:
        used = state.improve(state.movable(violation, size), max(tol, _ROUGH * violation))
        n_iter += used
        before, violation = violation, state.violation()
        idle = 0 if violation < before or size < K.n_samples else idle + 1
        if (used == 0 and idle) or idle > _PATIENCE:
            break  # rounding: no step is left that helps
        size = min(2 * size, K.n_samples)
    return BoxSolution(state.beta, state.gradient, n_iter, bool(violation <= tol))


class _State:
    """Coefficients and gradient of all samples."""

    def __init__(
        self,
        K: RowsKernel,
        y: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        epsilon: float,
        intercept: bool,
        product: Callable[[np.ndarray], np.ndarray],
        beta: np.ndarray,
    ) -> None:
        self.K, self.y, self.lower, self.upper = K, y, lower, upper
        self.epsilon, self.intercept, self.product = epsilon, intercept, product
        self.beta, self.gradient = beta, product(beta) - y
        self.diagonal = K.diagonal()

    def violation(self) -> float:
        return smo.violation(self.gradient, self.beta, self.lower, self.upper, self.epsilon, self.intercept)

    def movable(self, violation: float, size: int) -> np.ndarray:
        """Return those of the last ``size`` samples that may still move, and those that are nearly so."""
        places = smo.movable(
            self.gradient, self.beta, self.lower, self.upper, self.epsilon, self.intercept, _SLACK * violation
        )
        return places[places >= self.y.size - size]

    def improve(self, active: np.ndarray, tol: float) -> int:
        """Solve for the active samples, and rebuild the gradient of all; returns the steps made."""
        subproblem = _Subproblem(self, active)
        n_iter, last = 0, np.empty(0, np.int64)
        most = 1000 * active.size + 100_000
        while n_iter < most:
            violation = subproblem.violation()
            if violation <= tol:
                break
            last = subproblem.choose(last)
            used = subproblem.solve(last, max(tol, _ROUGH * violation), most - n_iter)
            if used == 0:
                break
            n_iter += used
            self.beta[subproblem.samples] = subproblem.beta
            last = subproblem.shrink(last)
        self.gradient = self.product(self.beta) - self.y
        return n_iter


class _Subproblem:
    """Some of the samples, with their gradient and the rows of the cache on their columns."""

    def __init__(self, state: _State, samples: np.ndarray) -> None:
        self.samples, self.cache = samples, state.K.cache
        self.epsilon, self.intercept = state.epsilon, state.intercept
        self.beta, self.gradient, self.diagonal = state.beta[samples], state.gradient[samples], state.diagonal[samples]
        self.lower, self.upper = state.lower[samples], state.upper[samples]
        self.cache.restrict(samples)

    def violation(self) -> float:
        return smo.violation(self.gradient, self.beta, self.lower, self.upper, self.epsilon, self.intercept)

    def choose(self, last: np.ndarray) -> np.ndarray:
        """Return the places of the next working set."""
        # Its matrix, in double precision, takes at most a quarter of the memory of the cache.
        most = min(_WORKING_SET, self.cache.capacity, max(_SMALLEST, int((self.cache.n_bytes / 32) ** 0.5)))
        return working_set(self.gradient, self.beta, self.lower, self.upper, self.epsilon, last, most)

    def solve(self, chosen: np.ndarray, tol: float, max_iter: int) -> int:
        """Solve for the chosen samples, in place; returns the steps made."""
        rows = self.cache.values
        places = self.cache.places(self.samples[chosen])
        beta, gradient = self.beta[chosen], self.gradient[chosen]
        n_iter, _ = smo.solve_in_place(
            _block(rows, places, chosen),
            self.diagonal[chosen],
            gradient,
            beta,
            self.lower[chosen],
            self.upper[chosen],
            self.epsilon,
            tol,
            max_iter,
            self.intercept,
        )
        change = beta - self.beta[chosen]
        self.beta[chosen] = beta
        cuts = np.linspace(0, self.samples.size, 1 + n_threads()).astype(int)
        parallel(lambda cut: _add_rows(rows, places, change, cut[0], cut[1], self.gradient), pairwise(cuts.tolist()))
        return n_iter

    def shrink(self, last: np.ndarray) -> np.ndarray:
        """Drop the samples that have settled, if they are many; returns the new places of ``last``."""
        kept = smo.movable(self.gradient, self.beta, self.lower, self.upper, self.epsilon, self.intercept, 0.0)
        if kept.size > _MANY_LEFT * self.samples.size or kept.size < 2:
            return last
        place = np.full(self.samples.size, -1)
        place[kept] = np.arange(kept.size)
        for name in ("samples", "beta", "gradient", "diagonal", "lower", "upper"):
            setattr(self, name, getattr(self, name)[kept])
        self.cache.restrict(self.samples)
        return place[last][place[last] >= 0]


def working_set(
    gradient: np.ndarray,
    beta: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    epsilon: float,
    last: np.ndarray,
    most: int,
) -> np.ndarray:
    """Return the places of the next samples to solve for: the worst that can go up and down.

    With them go the last ones that are still free: else the same samples would come and go in turn. There are at most
    ``most``, and all where these are not more.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.inner.decomposition import working_set
    >>> slopes, last = np.array([-3.0, -1.0, 0.0, 1.0, 2.0]), np.array([2])
    >>> working_set(slopes, np.zeros(5), np.full(5, -1.0), np.ones(5), 0.0, last, 4)
    array([0, 2, 4])
    """
    if beta.size <= most:
        return np.arange(beta.size)
    rise, fall = smo.offsets(beta, lower, upper, epsilon)
    up, down = rise - gradient, fall - gradient
    free = last[(beta[last] > lower[last]) & (beta[last] < upper[last])]
    chosen, quarter = np.zeros(beta.size, bool), max(most // 4, 1)
    chosen[np.argpartition(-up, quarter)[:quarter]] = True
    chosen[np.argpartition(down, quarter)[:quarter]] = True
    chosen[free[: most - int(chosen.sum())]] = True
    return np.flatnonzero(chosen)


@njit(cache=True, nogil=True)
def _block(rows: np.ndarray, places: np.ndarray, columns: np.ndarray) -> np.ndarray:
    out = np.empty((places.size, columns.size))
    for a in range(places.size):
        row = rows[places[a]]
        for b in range(columns.size):
            out[a, b] = row[columns[b]]
    return out


@njit(cache=True, nogil=True)
def _add_rows(rows: np.ndarray, places: np.ndarray, change: np.ndarray, low: int, high: int, out: np.ndarray) -> None:
    """Add the changes times the rows to the columns low to high of ``out``."""
    target = out[low:high]
    for a in range(places.size):
        if change[a] != 0.0:
            row, step = rows[places[a], low:high], change[a]
            for b in range(target.size):
                target[b] += step * row[b]
