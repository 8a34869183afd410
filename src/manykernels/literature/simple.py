"""SimpleMKL: a reduced gradient on the simplex (Rakotomamonjy, Bach, Canu and Grandvalet, 2008).

The pivot is the kernel with the largest weight, and the others move against their derivative relative to the pivot's:

    D_k = dJ/dd_pivot - dJ/dd_k,   but 0 if d_k = 0 and D_k < 0;     D_pivot = minus the sum of the others

so that the sum of the weights stays 1. While J falls, a step goes to where the first weight becomes 0, and on from
there in the direction without it. A golden section search finds the best length of the last part. Each value of J
is a machine solved; the kernel is linear in the weights, so between two ends it is a mean of theirs and needs no pass.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manykernels.compute.combined import CombinedMatrix
from manykernels.compute.linalg import add_scaled
from manykernels.core.results import Result
from manykernels.literature.weight_search import SearchPoint, WeightSearch
from manykernels.problem import Problem

_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
_WIDTH = 0.1  # share of the step at which the interval of the golden section search is narrow enough
_MOST_SECTIONS = 60
_LEAST_SHARE = 1e-6
_LEAST_WEIGHT = 1e-8
_ROUNDING = 1e-15
_NEGLIGIBLE = 1e-12  # of the largest entry of a direction: such entries are rounding


def simple(problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None) -> Result:
    """Run the method.

    Parameters
    ----------
    problem : Problem
        Its norm is LpNorm(1).
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most directions; each takes a dozen machines or more.
    start : ndarray of shape (n_kernels,), optional
        Weights to start from. Default: equal weights.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.literature.simple import simple
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]), X)
    >>> problem = Problem(bank, Hinge(), LpNorm(1), np.sign(np.sin(3 * X.T)), np.ones((1, 30)))
    >>> simple(problem).converged
    True
    """
    return ReducedGradient(problem, tol).run(max_iter, start)


def reduced_direction(weights: np.ndarray, gradient: np.ndarray, pivot: int) -> np.ndarray:
    """Return the descent direction D; its entries sum to 0.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.literature.simple import reduced_direction
    >>> reduced_direction(np.array([0.7, 0.3, 0.0]), np.array([-2.0, -3.0, -1.0]), 0)
    array([-1.,  1.,  0.])
    """
    direction = gradient[pivot] - gradient
    direction[(weights == 0.0) & (direction < 0.0)] = 0.0
    direction[np.abs(direction) <= _NEGLIGIBLE * np.abs(gradient).max()] = 0.0
    direction[pivot] = -(direction.sum() - direction[pivot])
    return direction


class ReducedGradient(WeightSearch):
    """One run."""

    share = 0.1

    def __init__(self, problem: Problem, tol: float) -> None:
        super().__init__(problem, tol)
        # Where rows are computed on demand, new weights cost no pass, and there are no matrices to take means of.
        self.has_matrix = "array" in self.K.can
        if self.has_matrix:
            # The combined kernels at both ends of a step, and the change between them for a step of length 1.
            self.K_here, self.K_end, self.change = (problem.bank.workspace() for _ in range(3))

    def advance(self, point: SearchPoint) -> SearchPoint | None:
        """Return the point after one direction; if J does not fall, the same weights with a more exact machine."""
        if np.any((point.weights > 0.0) & (point.weights < _LEAST_WEIGHT)):
            # A weight of 1e-20 would end the step before J has changed by more than its error.
            point = self.evaluate(_without(point.weights, _LEAST_WEIGHT), point.machine)
        trial = self._descend(point)
        if trial.value < point.value:
            return trial
        self.share *= 0.1
        return self.evaluate(point.weights, point.machine) if self.share > _LEAST_SHARE else None

    def _descend(self, point: SearchPoint) -> SearchPoint:
        """Set weights to 0 one after the other while J falls, then search along the remaining direction."""
        pivot = int(point.weights.argmax())
        direction = reduced_direction(point.weights, point.gradient, pivot)
        if self.has_matrix:
            self._combine(point.weights, self.K_here)
            self._combine(np.maximum(direction, 0.0), self.change)
            self.change.array -= self._combine(np.maximum(-direction, 0.0), self.K_end).array
        while direction.max() > 0.0 > direction.min():
            shrinking = np.flatnonzero(direction < 0.0)
            lengths = point.weights[shrinking] / -direction[shrinking]
            first, length = int(shrinking[lengths.argmin()]), float(lengths.min())
            end = self._end(point, direction, length, first)
            if end.value >= point.value:
                return self._search(point, end)
            point = end
            if first == pivot:
                break  # only the pivot could give weight to those that still rise
            if self.has_matrix:
                self.K_here, self.K_end = self.K_end, self.K_here
                self._hand_over(first, pivot, direction[first])
            direction[first] = direction[pivot] = 0.0
            direction[pivot] = -direction.sum()
        return point

    def _combine(self, weights: np.ndarray, out: CombinedMatrix) -> CombinedMatrix:
        return self.problem.bank.combine(weights, out=out)

    def _hand_over(self, first: int, pivot: int, rate: float) -> None:
        """Let the pivot change in place of a kernel whose weight is 0; only these two kernels are read."""
        for kernel, factor in ((first, -rate), (pivot, rate)):
            alone = self._combine(np.eye(1, self.problem.bank.n_kernels, kernel)[0], self.K_end)
            add_scaled(alone.array, factor, self.change.array)

    def _end(self, point: SearchPoint, direction: np.ndarray, length: float, first: int) -> SearchPoint:
        """Return the point at which the first weight becomes 0."""
        weights = point.weights + length * direction
        weights[first] = 0.0
        weights = _without(weights, _ROUNDING)
        if not self.has_matrix:
            return self.evaluate(weights, point.machine)
        self.K_end.array[...] = self.K_here.array
        add_scaled(self.change.array, length, self.K_end.array)
        return self.solved(weights, self.K_end, point.machine)

    def _search(self, point: SearchPoint, end: SearchPoint) -> SearchPoint:
        """Return the lowest point between here and the end by a golden section search."""

        def at(share: float) -> SearchPoint:
            weights = (1.0 - share) * point.weights + share * end.weights
            if not self.has_matrix:
                return self.evaluate(weights, point.machine)
            np.multiply(self.K_end.array, share, out=self.K.array)
            add_scaled(self.K_here.array, 1.0 - share, self.K.array)
            return self.solved(weights, self.K, point.machine)

        return golden_section(at, min(point, end, key=_value))


def golden_section(at: Callable[[float], SearchPoint], best: SearchPoint) -> SearchPoint:
    """Return the lowest of the points that a golden section search on [0, 1] meets, and of ``best``."""
    low, high = 0.0, 1.0
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    one, two = at(left), at(right)
    for _ in range(_MOST_SECTIONS):
        best = min(best, one, two, key=_value)
        if high - low <= _WIDTH * high:
            break
        if one.value <= two.value:
            high, right, two = right, left, one
            left = high - _GOLDEN * (high - low)
            one = at(left)
        else:
            low, left, one = left, right, two
            right = low + _GOLDEN * (high - low)
            two = at(right)
    return best


def _value(point: SearchPoint) -> float:
    return point.value


def _without(weights: np.ndarray, least: float) -> np.ndarray:
    """Set weights below ``least`` to 0 and return all weights scaled to sum 1."""
    kept = np.where(weights < least, 0.0, weights)
    return kept / kept.sum()
