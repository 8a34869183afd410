"""Harrell's concordance index: how often of two samples the one with the higher risk has its event first.

A pair is comparable if one of the two had its event while the other is known to have had none: it was seen at a later
time, or was censored at the same. Of comparable pairs it counts 1 if the risk of the first is higher, 1/2 if both are
the same. Pairs count by the product of their weights.

All pairs are counted in O(n log^2 n). With the samples in the order of their times, those comparable with an event are
all from some place on; blocks of 1, 2, 4, ... samples, each sorted by risk, make up any such rest.
"""

from __future__ import annotations

import numpy as np

from manykernels.core.censored_times import Survival

_SAME = 1e-8  # risks that differ by no more are the same


def concordance_index(y: Survival, risk: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the index, 1/2 for risks that say nothing and 1 for the right order.

    Parameters
    ----------
    y : Survival
    risk : ndarray of shape (n_samples,)
    weight : ndarray of shape (n_samples,), optional

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.core.concordance import concordance_index
    >>> from manykernels.core.censored_times import Survival
    >>> y = Survival(np.array([True, True, False]), np.array([1.0, 2.0, 2.0]))
    >>> concordance_index(y, np.array([3.0, 1.0, 1.0]))  # the last two tie
    0.8333333333333334
    """
    weight = np.ones(y.time.size) if weight is None else weight
    order = np.lexsort((~y.event, y.time))  # events come before those that were censored at their time
    event, time, risk, weight = y.event[order], y.time[order], risk[order], weight[order]
    died = np.flatnonzero(event)
    # Events of one time are not comparable: the rest begins after all of them.
    times, inverse, counts = np.unique(time[died], return_inverse=True, return_counts=True)
    rest = time.size - (np.searchsorted(time, times) + counts)[inverse]
    ranked = np.sort(risk)
    ends = [
        np.searchsorted(ranked, risk[died] - _SAME),
        np.searchsorted(ranked, risk[died] + _SAME, side="right"),
        np.full(died.size, time.size),
    ]
    ranks = np.searchsorted(ranked, risk)
    below, not_above, total = _weights_of_rest(ranks[::-1], weight[::-1], rest, ends) @ weight[died]
    if not total > 0.0:
        raise ValueError("y has no comparable pairs: an event is needed, and someone seen at a later time.")
    return float(0.5 * (below + not_above) / total)


def _weights_of_rest(ranks: np.ndarray, weight: np.ndarray, sizes: np.ndarray, ends: list[np.ndarray]) -> np.ndarray:
    """Return the weight of the first ``sizes`` samples whose rank is below each of ``ends``: (n_ends, n_sizes)."""
    n, places = ranks.size, np.arange(ranks.size)
    out, block = np.zeros((len(ends), sizes.size)), 1
    while block <= n:
        chosen = np.flatnonzero(sizes & block)
        number = sizes[chosen] // (2 * block) * 2  # of the block, whose samples come after larger ones
        keys = places // block * (n + 1) + ranks
        order = np.argsort(keys, kind="stable")
        sums, keys = np.append(0.0, np.cumsum(weight[order])), keys[order]
        for row, end in zip(out, ends, strict=True):
            row[chosen] += sums[np.searchsorted(keys, number * (n + 1) + end[chosen])] - sums[number * block]
        block *= 2
    return out
