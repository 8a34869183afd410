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

    Parameters and result are theirs.
    """
    sparse = isinstance(problem.norm, LpNorm) and problem.norm.p < _FEW_PASSES
    solver = newton if sparse and problem.bank.n_samples <= MANY_SAMPLES else group_lasso
    return solver(problem, tol=tol, max_iter=max_iter, start=start)
