"""SimpleMKL: a reduced gradient on the simplex (Rakotomamonjy, Bach, Canu and Grandvalet, 2008).

The pivot is the kernel with the largest weight, and the others move against their derivative relative to the pivot's:

    D_k = dJ/dd_pivot - dJ/dd_k,   but 0 if d_k = 0 and D_k < 0;     D_pivot = minus the sum of the others

so that the sum of the weights stays 1. While J falls, a step goes to where the first weight becomes 0, and on from
there in the direction without it. Golden sections find the best length of the last part. Each value of J is a machine
solved.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manykernels.core.results import Result
from manykernels.outer.baselines.weight_search import Point, WeightSearch, require
from manykernels.problem import Problem

_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
_WIDTH = 0.1  # of the step: golden sections end with an interval that is no wider
_MOST_SECTIONS = 60
_LEAST_SHARE = 1e-6
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
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.baselines.simple import simple
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> bank = KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]).bind(X)
    >>> problem = Problem(bank, Hinge(), LpNorm(1), np.sign(np.sin(3 * X.T)), np.ones((1, 30)))
    >>> simple(problem).converged
    True
    """
    require(problem, "simple")
    return ReducedGradient(problem, tol).run(max_iter, start)


def reduced_direction(weights: np.ndarray, gradient: np.ndarray, pivot: int) -> np.ndarray:
    """Return the descent direction D; its entries sum to 0.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.outer.baselines.simple import reduced_direction
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

    def advance(self, here: Point) -> Point | None:
        """Return the point after one direction; if J does not fall, the same weights with a more exact machine."""
        pivot = int(here.weights.argmax())
        there = self._descend(here, reduced_direction(here.weights, here.gradient, pivot), pivot)
        if there.value < here.value:
            return there
        self.share *= 0.1
        return self.evaluate(here.weights, here.machine) if self.share > _LEAST_SHARE else None

    def _descend(self, here: Point, direction: np.ndarray, pivot: int) -> Point:
        """Put weights to 0 while J falls, then search along what is left of the direction."""
        while np.any(direction > 0.0):
            shrinking = np.flatnonzero(direction < 0.0)
            lengths = here.weights[shrinking] / -direction[shrinking]
            first, length = int(shrinking[lengths.argmin()]), float(lengths.min())
            end = self.evaluate(_moved(here.weights, direction, length, first), here.machine)
            if end.value >= here.value:
                return self._search(here, direction, length, end)
            here = end
            if first == pivot:
                break  # what else rises would have to be paid for by the pivot
            direction[first] = direction[pivot] = 0.0
            direction[pivot] = -direction.sum()
        return here

    def _search(self, here: Point, direction: np.ndarray, length: float, end: Point) -> Point:
        """Return the lowest point between here and the end by golden sections."""

        def at(part: float) -> Point:
            return self.evaluate(_moved(here.weights, direction, part), here.machine)

        return golden_section(at, length, min(here, end, key=_value))


def golden_section(at: Callable[[float], Point], length: float, best: Point) -> Point:
    """Return the lowest of the points that a golden section search on [0, length] meets, and of ``best``."""
    low, high = 0.0, length
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


def _value(point: Point) -> float:
    return point.value


def _moved(weights: np.ndarray, direction: np.ndarray, length: float, first: int | None = None) -> np.ndarray:
    """Return the weights after a step, with the one that becomes 0 first exactly there."""
    there = np.maximum(weights + length * direction, 0.0)
    if first is not None:
        there[first] = 0.0
    return there / there.sum()
