"""Which kernels a second-order method should work on, by their quadratic forms."""

from __future__ import annotations

import numpy as np

from manykernels.core.protocols import Bank


def important_kernels(
    bank: Bank, quad_forms: np.ndarray, p: float, *, tau: float | np.ndarray, most: int, negligible: float
) -> np.ndarray:
    """Return the kernels that a working set should hold, in order.

    For p = 1 the ``most`` largest with q_k > tau, in units of tau, of neighbors on a ladder the largest one. For p > 1
    the largest, until the rest adds less than the part ``negligible`` to the dual norm, whose square is ``tau``.

    Parameters
    ----------
    bank : Bank
    quad_forms : ndarray of shape (n_kernels,)
        0 for kernels that are out of the question.
    tau : float or ndarray of shape (n_kernels,)
    """
    tau = np.broadcast_to(tau, quad_forms.shape)
    if not np.any(tau > 0.0):
        return np.arange(min(most, quad_forms.size))  # the forms cannot tell them apart
    if p == 1:
        peaks = bank.peaks(quad_forms)
        peaks = peaks[quad_forms[peaks] > tau[peaks]]
        with np.errstate(divide="ignore"):
            order = np.argsort(-quad_forms[peaks] / tau[peaks], kind="stable")
        return np.sort(peaks[order[:most]])
    order = np.argsort(-quad_forms, kind="stable")
    share = (quad_forms[order] / tau[order]) ** (p / (p - 1))
    rest = np.cumsum(share[::-1])[::-1]
    return np.sort(order[rest > negligible * share.sum()])
