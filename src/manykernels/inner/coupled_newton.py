"""Newton's method for a smooth loss of all predictions at once, with one fixed kernel.

    minimize over beta    1/2 beta' K beta + L(K beta)

L has the slopes -g (g is its pull) and the second derivative W = F F' at z = K beta. With r = g - beta, which is 0 at
the solution, the Newton step solves (I + W K) step = r, that is

    step = r - F B^{-1} F' K r,    B = I + F' K F,

where no eigenvalue of B is below 1, whatever K and F lack: nothing is ever divided by a curvature. A step lowers the
objective by about r' K step / 2.

What proves the solution is a beta in the domain of the dual. At an iterate there are two: g, for which Fenchel's
inequality is an equality, with K g = z + K r, which the step needs anyway; and beta, moved into the domain. An error of
z is K W times as large in K g, one of beta W^{-1} times in what the conjugate asks for, so that the one has the more
digits where K W is small, the other where it is large. The first of them with a small enough gap is returned.

A kernel that is a matrix has B factored; of one that is known by its products, B is solved by conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_solve

from manykernels.compute.linalg import cholesky_factor
from manykernels.compute.threads import one_blas_thread
from manykernels.inner.newton_cg import conjugate_gradients

_SUFFICIENT_DECREASE = 1e-4
_LEAST_STEP = 1e-10
# Of the objective, which is a sum of many terms: relative.
_ROUNDING = 1e-15
_RESIDUALS = 1e-10, 1e-2  # of the right-hand side, at least and at most, are left by the conjugate gradients


class Factor(Protocol):
    """F, as a loss gives it."""

    def times(self, vectors: np.ndarray) -> np.ndarray: ...
    def transposed_times(self, vectors: np.ndarray) -> np.ndarray: ...
    def congruent(self, K: np.ndarray) -> np.ndarray: ...
    def scales(self) -> np.ndarray: ...


class Coupled(Protocol):
    """What this module asks of a loss: :class:`manykernels.losses.CoupledLoss` has it."""

    def total(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> float: ...
    def total_conjugate(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray) -> float: ...
    def pull(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> np.ndarray: ...
    def feasible(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray, intercept: bool) -> np.ndarray: ...
    def curvature_factor(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> Factor: ...


class CoupledSolution(NamedTuple):
    """A feasible beta, K beta, the gap between the two values of the problem, and the primal value."""

    beta: np.ndarray
    decision: np.ndarray
    gap: float
    objective: float
    converged: bool = False


# Gives K v for v of shape (n,).
Product = Callable[[np.ndarray], np.ndarray]
# Gives about B^{-1} v for F, v of shape (n,) and the part of v that may be left.
StepSolver = Callable[[Factor, np.ndarray, float], np.ndarray]


def factored(K: np.ndarray) -> StepSolver:
    """Return what solves with B by a Cholesky factorization."""

    def solve_step(factor: Factor, right: np.ndarray, part: float) -> np.ndarray:
        B = factor.congruent(K)
        B[np.diag_indices_from(B)] += 1.0
        return cho_solve(cholesky_factor(B, least=1.0, overwrite=True), right, check_finite=False)

    return solve_step


def by_products(product: Callable[[np.ndarray], np.ndarray], diagonal: np.ndarray) -> StepSolver:
    """Return what solves with B by conjugate gradients, for ``product`` of vectors (n_vectors, n)."""

    def solve_step(factor: Factor, right: np.ndarray, part: float) -> np.ndarray:
        def apply(V: np.ndarray) -> np.ndarray:
            return V + factor.transposed_times(product(factor.times(V)))

        return conjugate_gradients(apply, right[None], 1.0 + factor.scales() ** 2 * diagonal, part)[0]

    return solve_step


@one_blas_thread()
def solve(
    product: Product,
    solve_step: StepSolver,
    y: np.ndarray,
    C: np.ndarray,
    loss: Coupled,
    *,
    start: np.ndarray | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> CoupledSolution:
    """Minimize the objective of the module's docstring.

    Parameters
    ----------
    product : function
        Gives K v for v of shape (n,).
    solve_step : function
        :func:`factored` or :func:`by_products`.
    y, C : ndarrays of shape (n,)
    loss : Coupled
    start : ndarray of shape (n,), optional
        Coefficients to start from.
    tol : float
        Stop when the gap is at most ``tol`` times the objective.
    max_iter : int

    Returns
    -------
    CoupledSolution

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.inner.coupled_newton import factored, solve
    >>> from manykernels.losses import Cox
    >>> K, y = np.eye(3), np.array([1.0, 2.0, -3.0])
    >>> solution = solve(K.dot, factored(K), y, np.ones(3), Cox(), tol=1e-12)
    >>> np.round(solution.beta - Cox().pull(y, solution.decision, np.ones(3)), 6) + 0.0  # optimal: beta is the pull
    array([0., 0., 0.])
    """
    solution = _iterate(product, solve_step, y, C, loss, np.zeros(y.size) if start is None else start, tol, max_iter)
    if not solution.converged and start is not None:
        # Where a loss is flat to rounding, the model of a far start says nothing: begin at 0 instead.
        again = _iterate(product, solve_step, y, C, loss, np.zeros(y.size), tol, max_iter)
        solution = min((solution, again), key=lambda each: each.gap)
    return solution


def _iterate(
    product: Product,
    solve_step: StepSolver,
    y: np.ndarray,
    C: np.ndarray,
    loss: Coupled,
    beta: np.ndarray,
    tol: float,
    max_iter: int,
) -> CoupledSolution:
    decision = product(beta)
    objective = _objective(loss, y, C, beta, decision)
    best, part = None, _RESIDUALS[1]
    for _ in range(max_iter):
        pull, inside = (loss.feasible(y, each, C, True) for each in (loss.pull(y, decision, C), beta))
        rest = pull - beta
        climb = product(rest)
        best = _better(best, _proven(loss, y, C, pull, decision + climb))
        best = _better(best, _proven(loss, y, C, inside, decision + product(inside - beta)))
        if best.gap <= tol * abs(best.objective):
            return best._replace(converged=True)
        factor = loss.curvature_factor(y, decision, C)
        inner = factor.times(solve_step(factor, factor.transposed_times(climb[None])[0], part)[None])[0]
        way, rise = rest - inner, climb - product(inner)
        promise = float(way @ climb)
        part = float(np.clip(promise / max(abs(objective), 1e-300), *_RESIDUALS))
        step, rounding = 1.0, _ROUNDING * abs(objective)
        while step >= _LEAST_STEP:
            value = _objective(loss, y, C, beta + step * way, decision + step * rise)
            if value <= objective - _SUFFICIENT_DECREASE * step * promise + rounding:
                break
            step *= 0.5
        if step < _LEAST_STEP or not promise > 0.0:
            break
        beta, decision, objective = beta + step * way, decision + step * rise, value
    assert best is not None
    return best


def _objective(loss: Coupled, y: np.ndarray, C: np.ndarray, beta: np.ndarray, decision: np.ndarray) -> float:
    return 0.5 * float(beta @ decision) + loss.total(y, decision, C)


def _proven(loss: Coupled, y: np.ndarray, C: np.ndarray, beta: np.ndarray, decision: np.ndarray) -> CoupledSolution:
    """Return a feasible beta with its gap."""
    quadratic, losses = float(beta @ decision), loss.total(y, decision, C)
    gap = quadratic + losses + loss.total_conjugate(y, beta, C)
    return CoupledSolution(beta, decision, gap if np.isfinite(gap) else np.inf, 0.5 * quadratic + losses)


def _better(best: CoupledSolution | None, other: CoupledSolution) -> CoupledSolution:
    """Return the one with the smaller gap; where both are in the last digits, the later."""
    return other if best is None or other.gap <= max(best.gap, 0.0) else best
