"""Factorizations of kernel matrices that rounding may have made slightly indefinite."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor

_JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)


def cholesky_factor(A: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return scipy's Cholesky factor of a symmetric matrix that is positive definite up to rounding.

    Where the factorization fails, a growing multiple of the mean diagonal is added: what is solved with it is then
    inexact, which a certificate shows.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.linalg import cholesky_factor
    >>> cholesky_factor(np.ones((2, 2)) - 1e-17 * np.eye(2))[1] in (True, False)
    True
    """
    level = float(np.mean(np.abs(A.diagonal())))
    for jitter in _JITTERS:
        try:
            return cho_factor(A if jitter == 0.0 else A + jitter * level * np.eye(A.shape[0]), check_finite=False)
        except LinAlgError:
            continue
    raise LinAlgError(f"a matrix of order {A.shape[0]} is far from positive definite")
