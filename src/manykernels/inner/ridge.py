"""Kernel ridge regression with one fixed kernel (squared loss), by Cholesky factorization."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve

from manykernels.compute.linalg import cholesky_factor, principal_block
from manykernels.compute.threads import one_blas_thread

_IMBALANCE = 1e-12  # of 1' beta, beside the size of beta: more than sums of doubles leave


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
    # With s = sqrt(C), as B = I + s K s: 1 / C may be as large as it likes.
    s = np.sqrt(C[used])
    # One matrix in addition to K, and its factor takes its place: memory is planned for no more.
    B = principal_block(K, used)
    B *= s[:, None]
    B *= s[None, :]
    B[np.diag_indices_from(B)] += 1.0
    factor = cholesky_factor(B, least=1.0, overwrite=True)
    right = s * Y[:, used]
    solutions = cho_solve(factor, (np.vstack([right, s]) if intercept else right).T, check_finite=False).T
    b = np.zeros(Y.shape[0])
    if intercept:
        ones, solutions = solutions[-1], solutions[:-1]
        b = (solutions @ s) / (ones @ s)
        solutions = solutions - np.outer(b, ones)
    beta = np.zeros(Y.shape)
    beta[:, used] = s * solutions
    return (_balanced(beta, K.diagonal(), C) if intercept else beta), b


def _balanced(beta: np.ndarray, diagonal: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return beta with 1' beta = 0: what rounding has left goes to the sample where it moves the objective least."""
    off = beta.sum(axis=1)
    if np.any(np.abs(off) > _IMBALANCE * np.abs(beta).sum(axis=1)):
        stiffness = diagonal + np.divide(1.0, C, out=np.full(C.shape, np.inf), where=C > 0)
        beta[:, np.argmin(stiffness)] -= off
    return beta
