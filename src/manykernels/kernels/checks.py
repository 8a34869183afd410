"""Is it a kernel? Checks of matrices and functions that were not made by this library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigvalsh

from manykernels.kernels.groups import BoundKernel
from manykernels.kernels.missing import observed, there

# A principal submatrix of a positive semidefinite matrix is one too; this many samples keep the check cheap.
_SAMPLES = 1000
_ROUNDING = 1e-6


def check_positive_semidefinite(bound: Sequence[BoundKernel], X: Any) -> None:
    """Raise ValueError for the first kernel that is not symmetric positive semidefinite on the training data.

    Kernels that are so by construction are not checked, the others on at
    most 1,000 of the samples (fixed at random), up to rounding: an
    eigenvalue may be negative by 1e-6 of the mean diagonal times the number
    of samples.
    """
    n = X.shape[0]
    rows = np.arange(n) if n <= _SAMPLES else np.sort(np.random.default_rng(0).choice(n, _SAMPLES, replace=False))
    for entry in bound:
        if entry.kernel.trusted:
            continue
        view = X[rows][:, entry.positions]
        view = there(view, observed(view))
        K = np.asarray(entry.kernel.compute(view, view), dtype=np.float64)
        if K.shape != (view.shape[0], view.shape[0]):
            raise ValueError(
                f"The kernel {entry.name!r} must return an array of shape {(view.shape[0],) * 2}, got {K.shape}."
            )
        if not np.all(np.isfinite(K)):
            raise ValueError(f"The kernel {entry.name!r} has values that are NaN or infinite.")
        _check_matrix(K, entry.name)


def _check_matrix(K: np.ndarray, name: str) -> None:
    level = float(np.abs(K.diagonal()).mean())
    skew = float(np.abs(K - K.T).max())
    if skew > _ROUNDING * max(level, float(np.abs(K).max())):
        raise ValueError(f"The kernel {name!r} is not symmetric: entries (i, j) and (j, i) differ by {skew:.3g}.")
    slack = _ROUNDING * level * K.shape[0]
    shifted = 0.5 * (K + K.T)
    shifted[np.diag_indices_from(shifted)] += max(slack, 1e-300)
    try:
        cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        least = float(eigvalsh(0.5 * (K + K.T), subset_by_index=[0, 0])[0])
        if least < -slack:
            raise ValueError(
                f"The kernel {name!r} is not positive semidefinite: its smallest eigenvalue on the training data is "
                f"{least:.3g} (mean diagonal {level:.3g})."
            ) from None
