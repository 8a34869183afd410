"""Which optimizer for which problem: what ``solver="auto"`` means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from manykernels.core.results import Result, joined
from manykernels.norms import LpNorm
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.newton import newton
from manykernels.problem import Norm, Problem

# Above this p the alternation needs few passes, and below it many (measured: benchmarks/speed/l1.py).
_FEW_PASSES = 1.25
# The interior point factors a matrix of the samples in each iteration: beyond this size that takes minutes.
_MANY_SAMPLES = 6000
# From this number of operations a factorization (tasks times samples cubed) on, the alternation is tried first: it is
# sometimes done after a few dozen of its cheap iterations, and a good start otherwise.
_HEAVY = 1e10
_TRIAL = 30
_NEARLY = 10.0


def prefers_newton(norm: Norm, n_samples: int) -> bool:
    """Return whether ``automatic`` uses the second-order method, which factors matrices of the samples."""
    return isinstance(norm, LpNorm) and norm.p < _FEW_PASSES and n_samples <= _MANY_SAMPLES


def automatic(problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None) -> Result:
    """Solve by :func:`newton` for p near 1, by :func:`group_lasso` otherwise.

    Where factorizations are expensive, a few iterations of the alternation come first. Where the alternation ends
    before its time, for want of digits in the inner solver, newton goes on: its interior point keeps predictions and
    dual coefficients together. Parameters and result are theirs.
    """
    n_tasks, n_samples = problem.y.shape
    if prefers_newton(problem.norm, n_samples):
        if n_tasks * n_samples**3 < _HEAVY:
            return newton(problem, tol=tol, max_iter=max_iter, start=start)
        result = group_lasso(problem, tol=tol, max_iter=min(_TRIAL, max_iter), start=start)
        if _is_final(result, max_iter):
            return result
        solver = group_lasso if abs(result.certificate.gap) <= _NEARLY * tol else newton
        return _continued(result, solver(problem, tol=tol, max_iter=max_iter - result.n_iter, start=result.weights))
    result = group_lasso(problem, tol=tol, max_iter=max_iter, start=start)
    able = isinstance(problem.norm, LpNorm) and np.isfinite(problem.norm.p) and n_samples <= _MANY_SAMPLES
    if _is_final(result, max_iter) or not able:
        return result
    return _continued(result, newton(problem, tol=tol, max_iter=max_iter - result.n_iter, start=result.weights))


def _is_final(result: Result, max_iter: int) -> bool:
    return result.converged or result.interrupted or result.n_iter >= max_iter


def _continued(first: Result, second: Result) -> Result:
    """Return the better of two runs, with the trace and the counts of both."""
    best = min(first, second, key=lambda result: abs(result.certificate.gap))
    if second.converged:
        best = second
    return replace(
        best,
        n_iter=first.n_iter + second.n_iter,
        n_inner_solves=first.n_inner_solves + second.n_inner_solves,
        interrupted=second.interrupted,
        trace=joined(first.trace, second.trace),
    )
