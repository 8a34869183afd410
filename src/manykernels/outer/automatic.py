"""Which optimizer for which problem: what ``solver="auto"`` means."""

from __future__ import annotations

import numpy as np

from manykernels.core.results import Result
from manykernels.norms import LpNorm
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.newton import newton
from manykernels.problem import Norm, Problem

# Above this p the alternation needs few passes, and below it many (measured: benchmarks/speed/l1.py).
_FEW_PASSES = 1.25
# The interior point factors a matrix of the samples in each iteration: beyond this size that takes minutes.
_MANY_SAMPLES = 6000


def prefers_newton(norm: Norm, n_samples: int) -> bool:
    """Return whether ``automatic`` begins with the second-order method, which factors matrices of the samples."""
    return isinstance(norm, LpNorm) and norm.p < _FEW_PASSES and n_samples <= _MANY_SAMPLES


def automatic(problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None) -> Result:
    """Solve by :func:`newton` for p near 1, by :func:`group_lasso` otherwise.

    Where the alternation ends before its time, for want of digits in the inner solver, newton goes on: its interior
    point keeps predictions and dual coefficients together. Parameters and result are theirs.
    """
    n_samples = problem.bank.n_samples
    if prefers_newton(problem.norm, n_samples):
        return newton(problem, tol=tol, max_iter=max_iter, start=start)
    result = group_lasso(problem, tol=tol, max_iter=max_iter, start=start)
    gave_up = not result.converged and not result.interrupted and result.n_iter < max_iter
    if gave_up and isinstance(problem.norm, LpNorm) and np.isfinite(problem.norm.p) and n_samples <= _MANY_SAMPLES:
        second = newton(problem, tol=tol, max_iter=max_iter, start=result.weights)
        result = min(result, second, key=lambda r: abs(r.certificate.gap))
    return result
