"""Is it a kernel? Checks of matrices and functions that were not made by this library.

Each kernel gets one quick look when a bank is bound (a matrix when it is given): whether it is symmetric, its diagonal
and 2 x 2 minors, a principal block, a few steps of Lanczos' method (:mod:`manykernels.compute.quick_look`). One that
looks suspicious is checked in full, and so are all where ``check_kernels="full"`` asks for it. What a fit ends with is
checked in full in any case: the learned combination, by :func:`check_combination`.

That is where it matters. With a combined kernel K_d that is positive semidefinite, the primal objective is that of a
function in its space; the dual value at beta is at most -conj(beta) - 1/2 beta' K_d' beta for any weights d', and so at
most the optimum with d'. So the certificate holds although a kernel in the sum may be indefinite. And a sum that is not
positive semidefinite has a term that is not: it is looked for, and named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, eigvalsh

from manykernels.compute.linalg import lower_cholesky
from manykernels.compute.quick_look import look_at
from manykernels.compute.threads import one_blas_thread
from manykernels.core.checks import check_choice
from manykernels.core.protocols import Bank
from manykernels.kernels.missing import observed, seen_rows
from manykernels.kernels.precomputed import ROUNDING, Precomputed
from manykernels.kernels.shared_distances import BoundKernel

CHECKS = ("quick", "full")
# A principal submatrix of a positive semidefinite matrix is one too: functions are checked on so many samples, and
# where all is to be factored, on so many.
_SAMPLES = 1000
_MOST_SAMPLES = 5000


def check_positive_semidefinite(bound: Sequence[BoundKernel], X: Any, check: str = "quick") -> None:
    """Raise ValueError for the first kernel that is seen not to be symmetric positive semidefinite.

    Only the training data count, and kernels that are so by construction are not checked. With ``check="quick"`` the
    others get a quick look, functions on at most 1,000 of the samples (fixed at random); with "full" they are factored,
    on at most 5,000 samples. Both forgive rounding: an eigenvalue may be negative by 1e-6 of the mean diagonal times
    the number of samples.
    """
    check_choice("check_kernels", check, CHECKS)
    for entry in bound:
        if entry.kernel.trusted:
            continue
        if check == "full":
            _check_in_full(entry, X)
        elif not isinstance(entry.kernel, Precomputed):
            _check_function(entry, X)
        elif entry.kernel.look.suspect:  # in all samples: those to learn from may be fine
            _check_in_full(entry, X)


@one_blas_thread()
def check_combination(bank: Bank, weights: np.ndarray) -> None:
    """Raise ValueError if the weighted sum of a bank's kernels is not positive semidefinite, naming one that is not.

    Nothing is done where all kernels with a positive weight are so by construction, or approximated by features. A sum
    that fails only because normalization made rounding large passes: none of its terms fails.

    Parameters
    ----------
    bank : Bank
    weights : ndarray of shape (n_kernels,)
    """
    if not bank.untrusted(weights):
        return
    rows = _some(bank.n_samples, _MOST_SAMPLES)
    combined = bank.combine(weights) if rows.size == bank.n_samples else None
    if combined is not None and "array" in combined.can:
        K = combined.array
    else:  # rows on demand, or too many of them
        sample = bank.X[rows]
        K = np.array(bank.kernel(weights).pairwise(sample, sample), dtype=np.float64)
    slack = ROUNDING * float(np.abs(K.diagonal()).mean()) * rows.size
    if not _is_definite(K, slack):
        name_culprit(bank, weights)


@one_blas_thread()
def name_culprit(bank: Bank, weights: np.ndarray) -> None:
    """Raise ValueError for the first kernel with a positive weight that fails the full check, if one does."""
    for entry in bank.untrusted(weights):
        _check_in_full(entry, bank.X)


def _some(n: int, most: int) -> np.ndarray:
    """Return so many sample numbers at most: all of them, or some that are fixed at random."""
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _values(entry: BoundKernel, X: Any, rows: np.ndarray) -> np.ndarray:
    """Return the kernel's matrix of the samples, without those that lack its view."""
    view = X[rows][:, entry.positions]
    view = seen_rows(view, observed(view))
    K = np.asarray(entry.kernel.compute(view, view), dtype=np.float64)
    if K.shape != (view.shape[0], view.shape[0]):
        raise ValueError(
            f"The kernel {entry.name!r} must return an array of shape {(view.shape[0],) * 2}, got {K.shape}."
        )
    if not np.all(np.isfinite(K)):
        raise ValueError(f"The kernel {entry.name!r} has values that are NaN or infinite.")
    return K


def _check_function(entry: BoundKernel, X: Any) -> None:
    K = _values(entry, X, _some(X.shape[0], _SAMPLES))
    look = look_at(K, ROUNDING) if K.size else None
    if look is not None and (look.suspect or look.skew > ROUNDING * np.abs(look.diagonal).max()):
        _check_matrix(K, entry.name)


def _check_in_full(entry: BoundKernel, X: Any) -> None:
    _check_matrix(_values(entry, X, _some(X.shape[0], _MOST_SAMPLES)), entry.name)


def _check_matrix(K: np.ndarray, name: str) -> None:
    if K.size == 0:
        return
    level = float(np.abs(K.diagonal()).mean())
    skew = float(np.abs(K - K.T).max())
    if skew > ROUNDING * max(level, float(np.abs(K).max())):
        raise ValueError(f"The kernel {name!r} is not symmetric: entries (i, j) and (j, i) differ by {skew:.3g}.")
    slack = ROUNDING * level * K.shape[0]
    if _is_definite(0.5 * (K + K.T), slack):
        return
    least = float(eigvalsh(0.5 * (K + K.T), subset_by_index=[0, 0])[0])
    if least < -slack:
        raise ValueError(
            f"The kernel {name!r} is not positive semidefinite: its smallest eigenvalue on the training data is "
            f"{least:.3g} (mean diagonal {level:.3g})."
        )


def _is_definite(K: np.ndarray, slack: float) -> bool:
    """Return whether K is positive definite once ``slack`` is added to its diagonal; K is overwritten.

    Single precision, which takes half the time, is asked first: what it rounds is a small part of the slack.
    """
    K[np.diag_indices_from(K)] += max(slack, 1e-300)
    largest = float(K.diagonal().max())
    with np.errstate(over="ignore", under="ignore"):
        rounded = K.astype(np.float32) if 1e-30 < largest < 1e30 else K
    return _factors(rounded) or (rounded is not K and _factors(K))


def _factors(K: np.ndarray) -> bool:
    try:
        factor = lower_cholesky(K)
    except LinAlgError:
        return False
    return bool(np.all(np.isfinite(factor.diagonal())))
