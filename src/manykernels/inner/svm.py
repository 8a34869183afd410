"""The support vector machine with one fixed kernel (hinge loss)."""

from __future__ import annotations

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.inner.smo import BoxSolution, solve_box


@one_blas_thread()
def solve(
    K: np.ndarray,
    y: np.ndarray,
    C: np.ndarray,
    *,
    start: np.ndarray | None = None,
    intercept: bool = True,
    tol: float = 1e-3,
) -> BoxSolution:
    """Maximize y'beta - 1/2 beta'K beta with 0 <= y_i beta_i <= C_i (and 1'beta = 0 with an intercept).

    Parameters are those of :func:`manykernels.inner.smo.solve_box`; ``y`` is -1 or 1, ``C`` of shape (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.inner.svm import solve
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> solve(np.outer(x, x), np.sign(x), np.full(4, 10.0)).beta
    array([ 0. , -0.5,  0.5,  0. ])
    """
    return solve_box(
        K,
        y,
        np.minimum(0.0, y * C),
        np.maximum(0.0, y * C),
        start=start,
        intercept=intercept,
        tol=tol,
    )
