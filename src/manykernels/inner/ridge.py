"""Kernel ridge regression with one fixed kernel (squared loss), by Cholesky factorization."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve

from manykernels.compute.linalg import cholesky_factor
from manykernels.compute.threads import one_blas_thread


@one_blas_thread()
def solve(K: np.ndarray, Y: np.ndarray, C: np.ndarray, *, intercept: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Solve (K + diag(1 / C)) beta + b 1 = y, with 1'beta = 0 when there is an intercept.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    Y : ndarray of shape (n_tasks, n)
        Several targets share one factorization.
    C : ndarray of shape (n,)
        A sample of weight 0 takes no part: its beta is 0.
    intercept : bool

    Returns
    -------
    beta : ndarray of shape (n_tasks, n)
    b : ndarray of shape (n_tasks,)

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.inner.ridge import solve
    >>> beta, b = solve(np.eye(2), np.array([[1.0, 3.0]]), np.ones(2))
    >>> beta, b
    (array([[-0.5,  0.5]]), array([2.]))
    """
    used = np.flatnonzero(C > 0)
    if used.size < C.size:
        K, Y_used = K[np.ix_(used, used)], Y[:, used]
    else:
        K, Y_used = K.copy(), Y
    K[np.diag_indices_from(K)] += 1.0 / C[used]
    factor = cholesky_factor(K, least=float(np.min(1.0 / C[used])))
    right = np.vstack([Y_used, np.ones((1, used.size))]) if intercept else Y_used
    solutions = cho_solve(factor, right.T, check_finite=False).T
    b = np.zeros(Y.shape[0])
    if intercept:
        ones, solutions = solutions[-1], solutions[:-1]
        b = solutions.sum(axis=1) / ones.sum()
        solutions = solutions - np.outer(b, ones)
    beta = np.zeros(Y.shape)
    beta[:, used] = solutions
    return beta, b
