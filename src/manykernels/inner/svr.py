"""Epsilon-insensitive support vector regression with one fixed kernel."""

from __future__ import annotations

import numpy as np

from manykernels.compute.scales import spread
from manykernels.compute.threads import one_blas_thread
from manykernels.inner.smo import BoxSolution, solve_box


@one_blas_thread()
def solve(
    K: np.ndarray,
    y: np.ndarray,
    C: np.ndarray,
    *,
    epsilon: float = 0.1,
    start: np.ndarray | None = None,
    intercept: bool = True,
    tol: float = 1e-3,
) -> BoxSolution:
    """Maximize y'beta - epsilon sum|beta| - 1/2 beta'K beta with |beta_i| <= C_i (and 1'beta = 0).

    ``tol`` is relative to the spread of y, so that the unit of the target does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.inner.svr import solve
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> np.round(solve(np.outer(x, x), x, np.full(3, 10.0), epsilon=0.1).beta, 6) + 0.0
    array([-0.45,  0.  ,  0.45])
    """
    return solve_box(K, y, -C, +C, epsilon=epsilon, start=start, intercept=intercept, tol=tol * spread(y))
