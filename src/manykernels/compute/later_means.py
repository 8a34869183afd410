"""Differences of each entry and the weighted mean of those after it in some order, in place and in one pass.

The matrix F has the columns

    F_k = length_k (e_k - sum_{l > k} w_l / w(k+1) e_l),    w(k) = sum_{l >= k} w_l,

for places k in the order, and is known by share_k = w_k / w(k) and rest_k = w(k+1) / w(k) = 1 - share_k. So every step
takes a mean of two numbers, and no weight is ever formed. ``order`` (n,) has the entry at each place; ``length``,
``share`` and ``rest`` (n,) are by place; columns of F have the numbers of their entries.
"""

from __future__ import annotations

import numpy as np

from manykernels.compute.compiled import njit


@njit(cache=True, nogil=True)
def contrast_rows(V, order, length, share, rest):
    """Put F'v in place of each row v of V: take off the mean of what comes later, weighted by its risk."""
    for t in range(V.shape[0]):
        row, later = V[t], 0.0
        for k in range(order.size - 1, -1, -1):
            value = row[order[k]]
            row[order[k]] = length[k] * (value - later)
            later = share[k] * value + rest[k] * later


@njit(cache=True, nogil=True)
def contrast_columns(V, order, length, share, rest):
    """Put F'v in place of each column v of V."""
    later = np.zeros(V.shape[1])
    for k in range(order.size - 1, -1, -1):
        row = V[order[k]]
        for c in range(V.shape[1]):
            value = row[c]
            row[c] = length[k] * (value - later[c])
            later[c] = share[k] * value + rest[k] * later[c]


@njit(cache=True, nogil=True)
def spread_rows(U, order, length, share, rest):
    """Put F u in place of each row u of U."""
    for t in range(U.shape[0]):
        row, earlier = U[t], 0.0
        for k in range(order.size):
            value = length[k] * row[order[k]]
            row[order[k]] = value - share[k] * earlier
            earlier = rest[k] * earlier + value
