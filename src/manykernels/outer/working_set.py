"""Which kernels a second-order method should work on, by their quadratic forms."""

from __future__ import annotations

import numpy as np

from manykernels.problem import FiniteBank


def important_kernels(
    bank: FiniteBank, quad_forms: np.ndarray, p: float, *, tau: float, most: int, negligible: float
) -> np.ndarray:
    """Return the kernels that a working set should hold, in order.

    For p = 1 the ``most`` largest with q_k > tau, of neighbors on a ladder the largest one. For p > 1 the largest,
    until the rest adds less than the part ``negligible`` to the dual norm, whose square is ``tau``.

    Parameters
    ----------
    bank : finite bank
    quad_forms : ndarray of shape (n_kernels,)
        0 for kernels that are out of the question.
    """
    if not tau > 0.0:
        return np.arange(min(most, quad_forms.size))  # no form tells them apart
    if p == 1:
        peaks = bank.peaks(quad_forms)
        peaks = peaks[quad_forms[peaks] > tau]
        return np.sort(peaks[np.argsort(-quad_forms[peaks], kind="stable")[:most]])
    order = np.argsort(-quad_forms, kind="stable")
    share = (quad_forms[order] / tau) ** (p / (p - 1))
    rest = np.cumsum(share[::-1])[::-1]
    return np.sort(order[rest > negligible * share.sum()])
