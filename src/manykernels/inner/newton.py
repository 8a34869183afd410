"""Newton's method for smooth losses with one fixed kernel (logistic, squared hinge).

    minimize over beta, b    1/2 beta' K beta + sum_i C_i loss(y_i, (K beta)_i + b)

With the slopes l_i and curvatures w_i of the summands at the current
z = K beta + b, the Newton point solves

    (K + diag(1 / w)) beta + b 1 = z - l / w,    1' beta = 0 (with an intercept),

written with s = sqrt(w) as beta = s * B^{-1} (s z - l / s - b s), B = I + s K s,
which stays well conditioned when some w vanish: such samples get beta = 0 and
leave the factorization. A backtracking search along the segment to the
Newton point makes the method converge from any start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_solve

from manykernels.compute.linalg import cholesky_factor, principal_block
from manykernels.compute.threads import one_blas_thread

_SUFFICIENT_DECREASE = 1e-4
_LEAST_CURVATURE = 1e-14
_LEAST_STEP = 1e-10
# Of the objective, which is a sum of many terms: relative.
_ROUNDING = 1e-15


class Differentiable(Protocol):
    """What Newton's method asks of a loss."""

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray: ...
    def derivative(self, y: np.ndarray, z: np.ndarray) -> np.ndarray: ...
    def curvature(self, y: np.ndarray, z: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class NewtonSolution:
    """Coefficients, K beta, intercept, steps taken, and whether the predicted decrease fell below the tolerance."""

    beta: np.ndarray
    decision: np.ndarray
    intercept: float
    n_iter: int
    converged: bool


@one_blas_thread()
def solve(
    K: np.ndarray,
    y: np.ndarray,
    C: np.ndarray,
    loss: Differentiable,
    *,
    start: tuple[np.ndarray, float] | None = None,
    intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> NewtonSolution:
    """Minimize the objective of the module's docstring.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    y, C : ndarrays of shape (n,)
    loss : object with value, derivative and curvature
    start : (beta, b) or None
    intercept : bool
    tol : float
        Stop when a full step promises to lower the objective by less than ``tol`` times its value.
    max_iter : int

    Returns
    -------
    NewtonSolution

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.inner.newton import solve
    >>> from manykernels.losses import Logistic
    >>> y = np.array([1.0, -1.0])
    >>> solution = solve(np.eye(2), y, np.ones(2), Logistic(), tol=1e-12)
    >>> np.round(solution.beta + Logistic().derivative(y, solution.decision), 6) + 0.0  # optimal: beta = -slope
    array([0., 0.])
    """
    solution = _iterate(K, y, C, loss, start or (np.zeros(y.size), 0.0), intercept, tol, max_iter)
    if not solution.converged and start is not None:
        # Where a loss is flat to rounding, the model of a far start says nothing: begin at 0 instead.
        solution = _iterate(K, y, C, loss, (np.zeros(y.size), 0.0), intercept, tol, max_iter)
    return solution


def _iterate(
    K: np.ndarray,
    y: np.ndarray,
    C: np.ndarray,
    loss: Differentiable,
    start: tuple[np.ndarray, float],
    intercept: bool,
    tol: float,
    max_iter: int,
) -> NewtonSolution:
    beta, b = start[0], float(start[1])
    decision = K @ beta
    objective = _objective(loss, y, C, beta, decision, b)
    for n_iter in range(1, max_iter + 1):
        target, target_b = _newton_point(K, y, C, loss, decision + b, intercept)
        target_decision = K @ target
        slopes = C * loss.derivative(y, decision + b)
        promise = -(beta @ (target_decision - decision)) - slopes @ (target_decision - decision + target_b - b)
        # Where no prediction need change, the Newton point still has the coefficients that prove it.
        rounding, step = _ROUNDING * abs(objective), 1.0
        while promise >= -rounding and step >= _LEAST_STEP:
            mixed = (1 - step) * beta + step * target
            mixed_decision = (1 - step) * decision + step * target_decision
            mixed_b = (1 - step) * b + step * target_b
            value = _objective(loss, y, C, mixed, mixed_decision, mixed_b)
            if value <= objective - _SUFFICIENT_DECREASE * step * promise + rounding:
                beta, decision, b, objective = mixed, mixed_decision, mixed_b, value
                break
            step *= 0.5
        if promise <= tol * abs(objective):
            return NewtonSolution(beta, decision, b, n_iter, True)
        if step < _LEAST_STEP:
            break
    return NewtonSolution(beta, decision, b, n_iter, False)


def _objective(
    loss: Differentiable, y: np.ndarray, C: np.ndarray, beta: np.ndarray, decision: np.ndarray, b: float
) -> float:
    return float(0.5 * (beta @ decision) + C @ loss.value(y, decision + b))


def _newton_point(
    K: np.ndarray, y: np.ndarray, C: np.ndarray, loss: Differentiable, z: np.ndarray, intercept: bool
) -> tuple[np.ndarray, float]:
    """Return the minimizer (beta, b) of the quadratic model at the predictions z."""
    slopes, curvatures = C * loss.derivative(y, z), C * loss.curvature(y, z)
    curvatures = np.where(slopes != 0.0, np.maximum(curvatures, _LEAST_CURVATURE * C), curvatures)
    used = np.flatnonzero(curvatures > 0)
    beta = np.zeros(y.size)
    if used.size == 0:
        return beta, 0.0
    s = np.sqrt(curvatures[used])
    # One matrix in addition to K, and its factor takes its place: memory is planned for no more.
    B = principal_block(K, used)
    B *= s[:, None]
    B *= s[None, :]
    B[np.diag_indices_from(B)] += 1.0
    factor = cholesky_factor(B, least=1.0, overwrite=True)
    right = s * z[used] - slopes[used] / s
    if not intercept:
        beta[used] = s * cho_solve(factor, right, check_finite=False)
        return beta, 0.0
    solutions = cho_solve(factor, np.column_stack([right, s]), check_finite=False)
    b = float((s @ solutions[:, 0]) / (s @ solutions[:, 1]))
    beta[used] = s * (solutions[:, 0] - b * solutions[:, 1])
    return beta, b
