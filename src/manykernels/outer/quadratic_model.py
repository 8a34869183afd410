"""The best weights for a quadratic model of the objective: a small interior point.

    minimize over x >= 0, sum_k x_k^p <= 1     g'(x - d) + 1/2 (x - d)' H (x - d)

with H positive semidefinite. With the multipliers tau of the constraint, s_k of x_k >= 0 and the slack w of the
constraint, the optimality conditions are

    g + H (x - d) + tau p x^(p-1) - s = 0,   sum_k x_k^p + w = 1,   x_k s_k = 0,   tau w = 0.

Newton's method on them, with both products kept equal to a number that goes to 0, needs two or three dozen
iterations, each with a linear system of the number of kernels.
"""

from __future__ import annotations

import numpy as np

_ITERATIONS = 80
_SMALLER = 0.15
_TO_BOUNDARY = 0.99
_SMALLEST_PRODUCT = 1e-13


def best_weights(gradient: np.ndarray, hessian: np.ndarray, at: np.ndarray, p: float) -> np.ndarray:
    """Return the minimizer x of the model around the weights ``at``; for p = 1, exactly 0 where it tends to 0.

    Parameters
    ----------
    gradient, at : ndarrays of shape (n_kernels,)
    hessian : ndarray of shape (n_kernels, n_kernels)
    p : float in [1, inf)

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.outer.quadratic_model import best_weights
    >>> best_weights(np.array([-1.0, -1.0, 0.5]), np.diag([1.0, 3.0, 1.0]), np.zeros(3), p=1).round(6)
    array([0.75, 0.25, 0.  ])
    """
    # In the unit of the gradient, the multipliers are of the order of 1.
    unit = float(np.abs(gradient).max())
    if unit == 0.0:
        return at
    g, H = gradient / unit - hessian @ at / unit, hessian / unit
    m = at.size
    x = np.full(m, 0.5 * m ** (-1 / p))
    s, tau, w = np.ones(m), 1.0, 1.0 - float(np.sum(x**p))
    for _ in range(_ITERATIONS):
        product = (x @ s + tau * w) / (m + 1)
        slope = p * x ** (p - 1)
        stationarity = g + H @ x + tau * slope - s
        feasibility = 1.0 - float(np.sum(x**p)) - w
        if product < _SMALLEST_PRODUCT and np.abs(stationarity).max() < 1e-9:
            break
        target = _SMALLER * product
        A = np.empty((m + 1, m + 1))
        A[:m, :m] = H
        A[np.arange(m), np.arange(m)] += s / x + tau * (p - 1) * slope / x
        A[:m, m] = A[m, :m] = slope
        A[m, m] = -w / tau
        right = np.append(-stationarity + target / x - s, feasibility - (target - tau * w) / tau)
        step = np.linalg.solve(A, right)
        dx, dtau = step[:m], float(step[m])
        ds = (target - x * s - s * dx) / x
        dw = (target - tau * w - w * dtau) / tau
        length = min(1.0, _TO_BOUNDARY * _longest(np.append(x, w), np.append(dx, dw)))
        dual_length = min(1.0, _TO_BOUNDARY * _longest(np.append(s, tau), np.append(ds, dtau)))
        x, w = x + length * dx, float(w + length * dw)
        s, tau = s + dual_length * ds, tau + dual_length * dtau
    vanish = (x < s) & (p == 1)
    return np.where(vanish & ~vanish.all(), 0.0, x)


def _longest(values: np.ndarray, step: np.ndarray) -> float:
    """Return how far positive values can go along the step before one is 0."""
    down = step < 0
    return float(np.min(-values[down] / step[down], initial=np.inf))
