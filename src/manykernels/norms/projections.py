"""Nearest points of the sets to which weights are constrained."""

from __future__ import annotations

import numpy as np

from manykernels.core.results import OVERFLOWS


def onto_lp_ball(values: np.ndarray, p: float) -> np.ndarray:
    """Return the nearest point with all entries >= 0 and sum_k x_k^p <= 1 (p = inf: all entries <= 1).

    Where the constraint binds, x_k + mu x_k^(p-1) = v_k for each positive v_k, and mu >= 0 is the number that makes
    the sum 1: found by bisection on log mu, with each x_k by Newton's method from above, where it cannot fail.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.norms.projections import onto_lp_ball
    >>> onto_lp_ball(np.array([0.7, 0.5, -1.0]), 1)
    array([0.6, 0.4, 0. ])
    >>> onto_lp_ball(np.array([3.0, 4.0]), 2)
    array([0.6, 0.8])
    """
    if not np.all(np.isfinite(values)):
        raise ValueError(OVERFLOWS)
    x = np.maximum(values, 0.0)
    if np.isinf(p):
        return np.minimum(x, 1.0)
    largest = float(x.max(initial=0.0))
    if largest == 0.0 or largest * float(np.sum((x / largest) ** p)) ** (1 / p) <= 1.0:
        return x
    if p == 1:
        return _onto_simplex(x)
    if p == 2:
        return x / np.linalg.norm(x)
    return _onto_power_ball(x, p)


def _onto_simplex(x: np.ndarray) -> np.ndarray:
    """Subtract the number that leaves positive entries of sum 1; the largest entry first, which keeps all digits."""
    x = x - x.max()
    falling = np.sort(x)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, x.size + 1)
    return np.maximum(x - excess[np.flatnonzero(falling > excess)[-1]], 0.0)


def _onto_power_ball(v: np.ndarray, p: float) -> np.ndarray:
    low, high = -40.0, 40.0 + np.log(max(float(v.max()), 1.0))
    for _ in range(100):
        middle = 0.5 * (low + high)
        x = shrunk(v, np.exp(middle), p)
        if float(np.sum(x**p)) > 1.0:
            low = middle
        else:
            high = middle
        if high - low < 1e-15 * max(1.0, abs(middle)):
            break
    x = shrunk(v, np.exp(high), p)
    return x / float(np.sum(x**p)) ** (1 / p)


def shrunk(v: np.ndarray, mu: float | np.ndarray, p: float) -> np.ndarray:
    """Return x >= 0 with x + mu x^(p-1) = v for each entry.

    For p > 2 the left side is convex and Newton's method falls to the root from x = v. For p < 2 it is concave in x,
    but convex in z = x^(p-1): z^(1/(p-1)) + mu z = v, and z = v / mu or v^(p-1), whichever is less, is above the root.
    """
    power = p - 1.0 if p >= 2 else 1.0 / (p - 1.0)
    slope = (1.0, mu) if p >= 2 else (mu, 1.0)  # slope[0] z + slope[1] z^power = v
    z = np.minimum(v / slope[0], (v / slope[1]) ** (1.0 / power))
    for _ in range(100):
        raised = slope[1] * z**power
        excess = slope[0] * z + raised - v
        step = excess / (slope[0] + power * np.divide(raised, z, out=np.zeros_like(z), where=z > 0))
        z = np.maximum(z - step, 0.0)
        if np.all(np.abs(step) <= 1e-15 * (z + 1e-300)):
            break
    return z if p >= 2 else z**power
