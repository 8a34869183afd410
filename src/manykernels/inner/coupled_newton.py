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

Where the kernel is a matrix, B is factored; where it is known by its products, conjugate gradients find the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_solve

from manykernels.compute.linalg import cholesky_factor
from manykernels.compute.threads import one_blas_thread

_SUFFICIENT_DECREASE = 1e-4
_LEAST_STEP = 1e-10
# Of the objective, which is a sum of many terms: relative.
_ROUNDING = 1e-15
_RESIDUALS = 1e-8, 0.1  # of the right-hand side, at least and at most, are left by the conjugate gradients
_MOST_STEPS = 1000
_PATIENCE = 5  # steps that gain no more than rounding, and may still bring the two values together
_HARMLESS = 1e-3  # of what a step gains


class Factor(Protocol):
    """F, as a loss gives it."""

    def times(self, vectors: np.ndarray) -> np.ndarray: ...
    def transposed_times(self, vectors: np.ndarray) -> np.ndarray: ...
    def congruent(self, K: np.ndarray) -> np.ndarray: ...


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
# Gives about the step for F, r, K r and the part of r that may be left, and K times it.
StepSolver = Callable[[Factor, np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray]]


def factored(K: np.ndarray) -> StepSolver:
    """Return what finds the step by a Cholesky factorization of B."""

    def solve_step(factor: Factor, rest: np.ndarray, climb: np.ndarray, part: float) -> tuple[np.ndarray, np.ndarray]:
        B = factor.congruent(K)
        B[np.diag_indices_from(B)] += 1.0
        right = factor.transposed_times(climb[None])[0]
        solved = cho_solve(cholesky_factor(B, least=1.0, overwrite=True), right, check_finite=False)
        inner = factor.times(solved[None])[0]
        return rest - inner, climb - K @ inner

    return solve_step


def by_products(product: Product) -> StepSolver:
    """Return what finds the step by conjugate gradients.

    I + W K is symmetric and positive definite in the inner product u' K v. There each iterate minimizes the model of
    the objective over all directions so far, so that it goes downhill wherever it is stopped. It does not see what K
    takes to 0, of which the step is to have all of r: the residual has what is lacking, and is added where that does no
    harm.
    """

    def solve_step(factor: Factor, rest: np.ndarray, climb: np.ndarray, part: float) -> tuple[np.ndarray, np.ndarray]:
        pull, way, rise = rest, np.zeros_like(rest), np.zeros_like(rest)
        direction, image, size = rest, climb, float(rest @ climb)
        limit = part**2 * size
        for _ in range(min(_MOST_STEPS, 2 * rest.size + 10)):
            bent = factor.transposed_times(image[None])
            bend = float(direction @ image + np.sum(bent**2))
            if not (size > limit and bend > 0.0):
                break  # done, or rounding
            length = size / bend
            way, rise = way + length * direction, rise + length * image
            rest = rest - length * (direction + factor.times(bent)[0])
            climb = product(rest)
            before, size = size, float(rest @ climb)
            direction, image = rest + size / before * direction, climb + size / before * image
        is_harmless = np.sum(factor.transposed_times(climb[None]) ** 2) <= size + _HARMLESS * float(pull @ rise)
        return (way + rest, rise + climb) if is_harmless else (way, rise)

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
    best, part, n_idle = None, _RESIDUALS[1], 0
    for _ in range(max_iter):
        pull, inside = (loss.feasible(y, each, C, True) for each in (loss.pull(y, decision, C), beta))
        rest = pull - beta
        climb = product(rest)
        best = _better(best, _proven(loss, y, C, pull, decision + climb))
        best = _better(best, _proven(loss, y, C, inside, decision + product(inside - beta)))
        if best.gap <= tol * abs(best.objective):
            return best._replace(converged=True)
        way, rise = solve_step(loss.curvature_factor(y, decision, C), rest, climb, part)
        promise = float(way @ climb)
        part = float(np.clip(promise / max(abs(objective), 1e-300), *_RESIDUALS))
        step, rounding = 1.0, _ROUNDING * abs(objective)
        while step >= _LEAST_STEP:
            value = _objective(loss, y, C, beta + step * way, decision + step * rise)
            if value <= objective - _SUFFICIENT_DECREASE * step * promise + rounding:
                break
            step *= 0.5
        n_idle = n_idle + 1 if promise <= rounding else 0
        if step < _LEAST_STEP or not promise >= -rounding or n_idle > _PATIENCE:
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
