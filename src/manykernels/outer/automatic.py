"""Which optimizer for which problem: what ``solver="auto"`` means."""

from __future__ import annotations

import numpy as np

from manykernels.core.results import Result
from manykernels.norms import LpNorm
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.newton import newton
from manykernels.problem import Problem

# Above this p the alternation needs few passes, and below it many (measured: benchmarks/speed/l1.py).
_FEW_PASSES = 1.25
# The interior point factors a matrix of the samples in each iteration; beyond this size the alternation is faster.
MANY_SAMPLES = 3000


def automatic(problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None) -> Result:
    """Solve by :func:`newton` for p near 1, by :func:`group_lasso` otherwise.

    Where the alternation ends before its time, for want of digits in the inner solver, newton goes on: its interior
    point keeps predictions and dual coefficients together. Parameters and result are theirs.
    """
    p = problem.norm.p if isinstance(problem.norm, LpNorm) else np.inf
    able = np.isfinite(p) and problem.bank.n_samples <= MANY_SAMPLES
    if able and p < _FEW_PASSES:
        return newton(problem, tol=tol, max_iter=max_iter, start=start)
    result = group_lasso(problem, tol=tol, max_iter=max_iter, start=start)
    if able and not result.converged and not result.interrupted and result.n_iter < max_iter:
        second = newton(problem, tol=tol, max_iter=max_iter, start=result.weights)
        result = min(result, second, key=lambda r: abs(r.certificate.gap))
    return result
