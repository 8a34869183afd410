"""The closed-form alternation for Lp-norm MKL (MKLGL: Xu, Jin, Yang, King and Lyu, 2010, Algorithm 2).

Solves  min over d >= 0, ||d||_p <= 1 of the kernel machine's optimal value with K = sum_k d_k K_k
by alternating

    beta <- the machine with the weights d fixed (one combining pass, one inner solve),
    d_k  <- proportional to a_k^{2 / (1 + p)},  a_k = d_k sqrt(beta' K_k beta)   (equations 8, 9 and 11; one pass).

Both steps lower the jointly convex objective of the paper's equation (10), so
the iteration converges to its optimum for every p in [1, inf]. It stops when
the relative duality gap of :class:`manykernels.problem.Problem` is at most ``tol``.

The weights are multiplied, so one that is exactly 0 stays 0. None is rounded
to 0 for good: those that together are far below the tolerance are left out of
the kernel, which saves their part of the pass, and are multiplied all the
same. At the end, the smallest are removed only if the certificate still holds
without them.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.results import Certificate, Machine, Result
from manykernels.core.solver import Solver
from manykernels.losses import TotalLoss
from manykernels.norms import Norm
from manykernels.outer.needs import for_inner_solver
from manykernels.outer.recorder import Recorder
from manykernels.problem import Problem

_FIRST_GAP = 0.1
_LEAST_START = 1e-6
_LEFT_OUT = 1e-4  # of the tolerance: how much of the weight a kernel may lack


def group_lasso(
    problem: Problem,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    start: np.ndarray | None = None,
    prune: bool = True,
) -> Result:
    """Run the alternation.

    Parameters
    ----------
    problem : Problem
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most iterations; each makes one combining pass, one inner solve and one pass of quadratic forms.
    start : ndarray of shape (n_kernels,), optional
        Weights to start from, not all 0; those that are 0 are raised a little, since multiplied they would stay 0.
        Default: equal weights.
    prune : bool
        Whether the smallest weights are removed at the end.

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
    >>> from manykernels.outer.group_lasso import group_lasso
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]), X)
    >>> problem = Problem(bank, Hinge(), LpNorm(2), np.sign(np.sin(3 * X.T)), np.ones((1, 30)))
    >>> group_lasso(problem, tol=1e-4).converged
    True
    """
    with one_blas_thread():
        return _run(problem, tol, max_iter, start, prune)


def _refuses(norm: Norm, loss: TotalLoss) -> str | None:
    if not norm.has_closed_form:
        return f"needs a norm with weights in closed form; {norm!r} has none."
    return None if norm.has_dual else f"stops by the duality gap; {norm!r} has no conjugate for it."


GROUP_LASSO = Solver(
    name="group_lasso",
    run=group_lasso,
    needs=frozenset({"combine", "quad_forms"}),
    refuses=_refuses,
    need=for_inner_solver,
)


def _run(problem: Problem, tol: float, max_iter: int, start: np.ndarray | None, prune: bool) -> Result:
    recorder, K = Recorder(problem, tol), problem.bank.workspace()
    weights = problem.norm.initial_weights(problem.bank.n_kernels) if start is None else _positive(problem, start)
    machine, gap = None, _FIRST_GAP
    with recorder.interruptible():
        for _ in range(max_iter):
            kept = _without_the_least(problem, weights, tol)
            machine, certificate, quad_forms = _evaluate(recorder, K, kept, machine, max(tol, 0.2 * gap))
            recorder.record(kept, machine, certificate)
            gap = abs(certificate.gap)
            if gap <= tol:
                if prune:
                    _prune(recorder, K)
                break
            if recorder.is_stuck or not np.all(np.isfinite(quad_forms)):
                break
            weights = cast(np.ndarray, problem.norm.reweigh(weights, quad_forms))
    return recorder.result(K)


def _positive(problem: Problem, weights: np.ndarray) -> np.ndarray:
    return problem.norm.scaled(np.maximum(weights, _LEAST_START * weights.max()))


def _without_the_least(problem: Problem, weights: np.ndarray, tol: float) -> np.ndarray:
    """Return the weights with 0 for those so small that the kernel is the same without them."""
    if not problem.norm.selects:
        return weights
    return np.where(weights > _LEFT_OUT * tol * weights.sum() / weights.size, weights, 0.0)


def _evaluate(
    recorder: Recorder, K: Any, weights: np.ndarray, machine: Machine | None, expected_gap: float
) -> tuple[Machine, Certificate, np.ndarray]:
    """Solve with these weights: one combining pass, an inner solve, one pass of quadratic forms."""
    problem = recorder.problem
    machine = recorder.solve(problem.bank.combine(weights, out=K), machine, expected_gap)
    quad_forms = problem.quad_forms(machine)
    return machine, problem.certificate(weights, machine, quad_forms), quad_forms


def _prune(recorder: Recorder, K: Any) -> None:
    """Remove the kernels that together carry next to no weight, if the certificate still holds without them."""
    weights = recorder.weights
    if weights is None or not recorder.problem.norm.selects:
        return
    order = np.argsort(weights)
    removed = order[np.cumsum(weights[order]) <= 0.1 * recorder.tol * weights.sum()]
    if not np.any(weights[removed]):
        return
    kept = weights.copy()
    kept[removed] = 0.0
    kept = recorder.problem.norm.scaled(kept)
    machine, certificate, _ = _evaluate(recorder, K, kept, recorder.machine, recorder.tol)
    if certificate.within(recorder.tol):
        recorder.keep(kept, machine, certificate)
