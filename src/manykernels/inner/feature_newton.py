"""Newton's method with conjugate gradients for smooth losses, on a kernel that is given by features.

    minimize over v, b    1/2 ||v||^2 + sum_i C_i loss(y_i, x_i' v + b),    x_i = sqrt(c) * z_i,  K = Z diag(c) Z'

The product of the Hessian with (v, b) is one pass of Z and one of Z'. Conjugate gradients solve for the Newton step as
exactly as the gradient is small, preconditioned by the diagonal; where they take long, the Hessian is made and factored
instead, of the samples that bend the objective only. A backtracking search follows. At the optimum
beta_i = -C_i loss'(y_i, x_i' v + b) are the coefficients of the dual. They stand for X' beta, which is v less the
gradient: where C is large, that is far from v long after the objective is small, so the iteration ends only when the
objective is as small there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.protocols import FeaturesKernel
from manykernels.inner.newton import Differentiable

_SUFFICIENT_DECREASE = 1e-4
_LEAST_STEP = 1e-10
MOST_STEPS = 100
_MOST_INNER = 50
# A step that promises less than this part of the objective changes the last digits of coefficients at most: a few do.
_ROUNDING, _LAST_STEPS = 1e-16, 4
_OFTEN = 2  # steps for which conjugate gradients took long: from then on, they are not tried


class FeatureSolution(NamedTuple):
    """Coefficients, the intercept, steps made, and whether the gradient is small."""

    beta: np.ndarray
    intercept: float
    n_iter: int
    converged: bool


@one_blas_thread()
def solve_smooth(
    K: FeaturesKernel,
    y: np.ndarray,
    C: np.ndarray,
    loss: Differentiable,
    *,
    start: tuple[np.ndarray, float] | None = None,
    intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = MOST_STEPS,
) -> FeatureSolution:
    """Minimize the objective of the module's docstring until the step promises less than ``tol`` of its value.

    Parameters
    ----------
    K : FeaturesKernel
    y, C : ndarrays of shape (n,)
    loss : smooth loss
    start : (beta, intercept), optional
    intercept : bool
    tol : float
    max_iter : int
    """
    run = _Run(K, y, C, loss, start, intercept)
    is_near, n_last, number = False, 0, -1
    for number in range(max_iter):
        slope, curvature = C * loss.derivative(y, run.z), C * loss.curvature(y, run.z)
        gradient = run.gradient(slope)
        # The step that promised little has been made: it squares the error.
        if is_near and run.is_close(gradient, tol):
            return FeatureSolution(-slope, float(run.x[-1]), number, True)
        step = run.newton_step(gradient, curvature)
        promised, value = -float(gradient @ step), abs(run.value())
        is_near, n_last = promised <= tol * value, n_last + (promised <= _ROUNDING * value)
        if not run.search(step, gradient) or n_last == _LAST_STEPS:
            break
    return FeatureSolution(-C * loss.derivative(y, run.z), float(run.x[-1]), number + 1, is_near)


class _Run:
    """The point x = (v, b) on the columns in use, and the predictions z at it."""

    def __init__(
        self,
        K: FeaturesKernel,
        y: np.ndarray,
        C: np.ndarray,
        loss: Differentiable,
        start: tuple[np.ndarray, float] | None,
        intercept: bool,
    ) -> None:
        self.K, self.y, self.C, self.loss, self.has_intercept = K, y, C, loss, intercept
        self.root = np.sqrt(K.columns)
        self.n_factored = 0
        self.x = np.zeros(self.root.size + 1)
        if start is not None:
            self.x[:-1] = self.root * K.vectors(start[0][None, :])[0]
            self.x[-1] = start[1] if intercept else 0.0
        self.z = self._predictions(self.x) if start is not None else np.zeros(y.size)
        nowhere, nothing = np.zeros_like(self.x), np.zeros(y.size)
        if not self.value() <= self.value(nowhere, nothing):  # other weights can make a start far worse than none
            self.x, self.z = nowhere, nothing

    def _predictions(self, x: np.ndarray) -> np.ndarray:
        return self.K.table.times((self.root * x[:-1])[None, :])[0] + x[-1]

    def _sums(self, values: np.ndarray) -> np.ndarray:
        """Return (X' values, 1' values)."""
        sums = self.root * self.K.table.transposed_times(values[None, :])[0]
        return np.append(sums, values.sum() if self.has_intercept else 0.0)

    def value(self, x: np.ndarray | None = None, z: np.ndarray | None = None) -> float:
        x, z = self.x if x is None else x, self.z if z is None else z
        return 0.5 * float(x[:-1] @ x[:-1]) + float(self.C @ self.loss.value(self.y, z))

    def gradient(self, slope: np.ndarray) -> np.ndarray:
        return np.append(self.x[:-1], 0.0) + self._sums(slope)

    def is_close(self, gradient: np.ndarray, tol: float) -> bool:
        """Return whether X' beta, which the coefficients stand for, is as good as v."""
        change = np.append(-gradient[:-1], 0.0)
        value, moved = self.value(), self.value(self.x + change, self.z + self._predictions(change))
        return moved - value <= tol * abs(value)

    def newton_step(self, gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
        """Return minus the inverse Hessian times the gradient, to a tolerance that goes down with the gradient."""
        if self.n_factored >= _OFTEN and self.K.table.factors_quickly(int(np.count_nonzero(self.root))):
            return self._factored_step(gradient, curvature)
        diagonal = self._diagonal(curvature)
        allowed = min(0.1, np.sqrt(np.linalg.norm(gradient))) * np.sqrt(float(gradient @ (gradient / diagonal)))
        step, residual = np.zeros_like(gradient), -gradient
        scaled = residual / diagonal
        direction, rho = scaled.copy(), float(residual @ scaled)
        for _ in range(_MOST_INNER):
            if np.sqrt(rho) <= 0.1 * allowed or rho == 0.0:
                return step
            product = np.append(direction[:-1], 0.0) + self._sums(curvature * self._predictions(direction))
            bent = float(direction @ product)
            if not bent > 0.0:
                return step  # what is left of the gradient is below the smallest numbers
            length = rho / bent
            step += length * direction
            residual -= length * product
            scaled = residual / diagonal
            before, rho = rho, float(residual @ scaled)
            direction = scaled + (rho / before) * direction
        if not self.K.table.can_factor(int(np.count_nonzero(self.root))):
            return step
        self.n_factored += 1
        return self._factored_step(gradient, curvature)

    def _factored_step(self, gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
        return -self.K.table.bordered_solver(curvature, self.K.columns, self.has_intercept)(gradient)

    def _diagonal(self, curvature: np.ndarray) -> np.ndarray:
        """Return the diagonal of the Hessian."""
        sums = self.K.table.squares_times(curvature[None, :])[0]
        return np.append(
            1.0 + self.K.columns * sums, max(float(curvature.sum()), 1e-300) if self.has_intercept else 1.0
        )

    def search(self, step: np.ndarray, gradient: np.ndarray) -> bool:
        """Go along the step while the objective falls by enough; return whether it did."""
        change, value, slope = self._predictions(step), self.value(), float(gradient @ step)
        length = 1.0
        while length > _LEAST_STEP:
            x, z = self.x + length * step, self.z + length * change
            if self.value(x, z) <= value + _SUFFICIENT_DECREASE * length * slope:
                self.x, self.z = x, z
                return True
            length *= 0.5
        return False
