"""Newton's method of :mod:`manykernels.inner.newton` for a kernel that is known by its products with vectors.

    minimize over beta, b    1/2 beta' K beta + sum_i C_i loss(y_i, (K beta)_i + b)

With the slopes l and curvatures w of the summands, s = sqrt(w), u = beta / s and B = I + s K s, the step from (u, b) is

    B delta = (s z - l / s) - b s - B u,     B along = s,     u + delta - db along,    db chosen so that 1' beta = 0,

and both systems are solved by the method of conjugate gradients, at the same time: each of its steps takes one product
with two vectors. They are solved to a part of the residual that goes down with what the last step promised, so that
the first steps are cheap and the last ones square the error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.inner.newton import Differentiable, NewtonSolution

_SUFFICIENT_DECREASE = 1e-4
_LEAST_CURVATURE = 1e-14
_LEAST_STEP = 1e-10
# Of the objective, which is a sum of many terms: relative.
_ROUNDING = 1e-15
_RESIDUALS = 1e-8, 1e-3  # of the right-hand side, at least and at most, are left by the conjugate gradients
_MOST_STEPS = 1000
Product = Callable[[np.ndarray], np.ndarray]


@one_blas_thread()
def solve(
    product: Product,
    diagonal: np.ndarray,
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
    product : function
        Gives K v_t for vectors of shape (n_vectors, n).
    diagonal : ndarray of shape (n,)
        Of K.
    y, C, loss, start, intercept, tol, max_iter
        As for :func:`manykernels.inner.newton.solve`.

    Returns
    -------
    NewtonSolution

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.inner.newton_cg import solve
    >>> from manykernels.losses import Logistic
    >>> y = np.array([1.0, -1.0])
    >>> solution = solve(lambda V: V, np.ones(2), y, np.ones(2), Logistic(), tol=1e-12)
    >>> np.round(solution.beta + Logistic().derivative(y, solution.decision), 5) + 0.0  # optimal: beta = -slope
    array([0., 0.])
    """
    run = _Run(product, diagonal, y, C, loss, intercept)
    solution = run.iterate(start or (np.zeros(y.size), 0.0), tol, max_iter)
    if not solution.converged and start is not None:
        # Where a loss is flat to rounding, the model of a far start says nothing: begin at 0 instead.
        again = run.iterate((np.zeros(y.size), 0.0), tol, max_iter)
        solution = min((solution, again), key=run.objective_of)
    return solution


class _Run:
    def __init__(
        self,
        product: Product,
        diagonal: np.ndarray,
        y: np.ndarray,
        C: np.ndarray,
        loss: Differentiable,
        intercept: bool,
    ) -> None:
        self.product, self.diagonal, self.y, self.C, self.loss = product, diagonal, y, C, loss
        self.intercept = intercept

    def objective(self, beta: np.ndarray, decision: np.ndarray, b: float) -> float:
        return float(0.5 * (beta @ decision) + self.C @ self.loss.value(self.y, decision + b))

    def objective_of(self, solution: NewtonSolution) -> float:
        return self.objective(solution.beta, solution.decision, solution.intercept)

    def iterate(self, start: tuple[np.ndarray, float], tol: float, max_iter: int) -> NewtonSolution:
        """Step until a full step promises less than ``tol`` of the objective, or none helps."""
        beta, b = start[0].copy(), float(start[1])
        decision = self.product(beta[None])[0]
        objective = self.objective(beta, decision, b)
        residual = _RESIDUALS[1]
        for n_iter in range(1, max_iter + 1):
            target, target_b = self._newton_point(beta, decision, b, residual)
            way, way_b = target - beta, target_b - b
            climb = self.product(way[None])[0]
            slopes = self.C * self.loss.derivative(self.y, decision + b)
            promise = -float(beta @ climb) - float(slopes @ (climb + way_b))
            residual = float(np.clip(promise / max(abs(objective), 1e-300), *_RESIDUALS))
            # As in newton.py: the Newton point has the coefficients that prove what the predictions are worth.
            rounding, step = _ROUNDING * abs(objective), 1.0
            while promise >= -rounding and step >= _LEAST_STEP:
                candidate = beta + step * way, decision + step * climb, b + step * way_b
                value = self.objective(*candidate)
                if value <= objective - _SUFFICIENT_DECREASE * step * promise + rounding:
                    (beta, decision, b), objective = candidate, value
                    break
                step *= 0.5
            if promise <= tol * abs(objective):
                return NewtonSolution(beta, self.product(beta[None])[0], b, n_iter, True)
            if step < _LEAST_STEP:
                break
        return NewtonSolution(beta, self.product(beta[None])[0], b, n_iter, False)

    def _newton_point(
        self, beta: np.ndarray, decision: np.ndarray, b: float, residual: float
    ) -> tuple[np.ndarray, float]:
        """Return about the minimizer (beta, b) of the quadratic model."""
        z = decision + b
        slopes, curvatures = self.C * self.loss.derivative(self.y, z), self.C * self.loss.curvature(self.y, z)
        curvatures = np.where(slopes != 0.0, np.maximum(curvatures, _LEAST_CURVATURE * self.C), curvatures)
        used = np.flatnonzero(curvatures > 0)
        out = np.zeros(beta.size)
        if used.size == 0:
            return out, 0.0
        s = np.sqrt(curvatures[used])
        u = np.zeros(used.size)
        if np.all(beta[curvatures == 0] == 0.0):
            # s z - l / s - b s - B u with u = beta / s is s K beta - l / s - u - s K beta: no product is needed.
            u = beta[used] / s
            right = -slopes[used] / s - u
        else:
            right, b = s * z[used] - slopes[used] / s, 0.0

        def apply(V: np.ndarray) -> np.ndarray:
            whole = np.zeros((V.shape[0], beta.size))
            whole[:, used] = s * V
            return V + s * self.product(whole)[:, used]

        rights = np.stack([right, s]) if self.intercept else right[None]
        solutions = conjugate_gradients(apply, rights, 1.0 + s * s * self.diagonal[used], residual)
        u = u + solutions[0]
        if self.intercept:
            change = float(s @ u) / float(s @ solutions[1])
            u, b = u - change * solutions[1], b + change
        out[used] = s * u
        return out, b


def conjugate_gradients(
    apply: Product, right: np.ndarray, diagonal: np.ndarray, part: float = _RESIDUALS[1]
) -> np.ndarray:
    """Return about the solutions of B x_t = right_t for a positive definite B, all from 0.

    Parameters
    ----------
    apply : function
        Gives B v_t for vectors of shape (n_vectors, n).
    right : ndarray of shape (n_vectors, n)
    diagonal : ndarray of shape (n,)
        Of B, or about that: what the residuals are divided by.
    part : float
        Of the right-hand sides may be left.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.inner.newton_cg import conjugate_gradients
    >>> conjugate_gradients(lambda V: V * [1.0, 2.0], np.array([[3.0, 4.0]]), np.array([1.0, 2.0]))
    array([[3., 2.]])
    """
    x, residual = np.zeros_like(right), right.copy()
    limit = part * np.linalg.norm(right, axis=1)
    scaled = residual / diagonal
    direction, size = scaled.copy(), np.sum(residual * scaled, axis=1)
    for _ in range(min(_MOST_STEPS, 2 * right.shape[1] + 10)):
        open_ = np.flatnonzero(np.linalg.norm(residual, axis=1) > limit)
        if open_.size == 0:
            break
        image = apply(direction[open_])
        bend = np.sum(direction[open_] * image, axis=1)
        if not np.all(bend > 0.0):
            break  # rounding
        length = (size[open_] / bend)[:, None]
        x[open_] += length * direction[open_]
        residual[open_] -= length * image
        scaled[open_] = residual[open_] / diagonal
        after = np.sum(residual[open_] * scaled[open_], axis=1)
        direction[open_] = scaled[open_] + (after / size[open_])[:, None] * direction[open_]
        size[open_] = after
    return x
