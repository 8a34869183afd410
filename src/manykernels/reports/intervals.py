"""Scores with intervals: how far the random choice of the samples may have moved them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, rankdata

LEVEL = 0.95
_RESAMPLES, _CHUNK = 2000, 200
_Z = float(norm.ppf(0.5 + LEVEL / 2))


@dataclass(frozen=True)
class Interval:
    """A figure and the interval around it, at a level of 95 %."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero is outside the interval."""
        return self.low > 0 or self.high < 0


def wilson(right: int, total: int) -> Interval:
    """Return a share with Wilson's interval, which is valid near 0 and 1 too.

    Parameters
    ----------
    right, total : int
        ``right`` of ``total`` samples.

    Examples
    --------
    >>> from manykernels.reports.intervals import wilson
    >>> wilson(95, 100)
    Interval(value=0.95, low=0.888..., high=0.978...)
    >>> wilson(10, 10).high
    1.0
    """
    share, square = right / total, _Z**2 / total
    center = (share + square / 2) / (1 + square)
    reach = np.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
    # At 0 and 1 the bound is the share itself, up to rounding.
    low, high = (0.0 if right == 0 else center - reach), (1.0 if right == total else center + reach)
    return Interval(share, float(low), float(high))


def paired_difference(first: np.ndarray, second: np.ndarray) -> Interval:
    """Return how much more often the first of two predictors is right on the same samples.

    The interval is Newcombe's for paired shares: Wilson's intervals of both, combined by their correlation. It is
    valid for few samples, where a bootstrap of the few differences would be too narrow.

    Parameters
    ----------
    first, second : bool arrays of shape (n_samples,)
        Whether each is right.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.reports.intervals import paired_difference
    >>> first, second = np.arange(100) < 90, np.arange(100) < 80
    >>> difference = paired_difference(first, second)
    >>> round(difference.value, 3), difference.excludes_zero
    (0.1, True)
    """
    n = first.size
    one, two = wilson(int(first.sum()), n), wilson(int(second.sum()), n)
    both, only, other, none = (int(np.sum(a & b)) for a in (first, ~first) for b in (second, ~second))
    product = float(both * none - only * other)
    product = max(product - n / 2, 0.0) if product > 0 else product
    margins = float(both + only) * (other + none) * (both + other) * (only + none)
    correlation = product / np.sqrt(margins) if margins > 0 else 0.0
    down, up = one.value - one.low, two.high - two.value
    below = np.sqrt(max(down**2 - 2 * correlation * down * up + up**2, 0.0))
    down, up = two.value - two.low, one.high - one.value
    above = np.sqrt(max(down**2 - 2 * correlation * down * up + up**2, 0.0))
    value = one.value - two.value
    return Interval(value, float(value - below), float(value + above))


def mean_interval(parts: Sequence[Interval]) -> Interval:
    """Return the mean of independent figures with its interval, computed from their intervals.

    The possible errors of the figures add up in squares, separately to either side: shares near 0 or 1 keep their
    asymmetric intervals.

    Examples
    --------
    >>> from manykernels.reports.intervals import Interval, mean_interval
    >>> mean_interval([Interval(0.5, 0.2, 0.9), Interval(0.7, 0.3, 0.7)])
    Interval(value=0.6, low=0.35, high=0.8)
    """
    value = float(np.mean([part.value for part in parts]))
    below = np.linalg.norm([part.value - part.low for part in parts]) / len(parts)
    above = np.linalg.norm([part.high - part.value for part in parts]) / len(parts)
    return Interval(value, float(value - below), float(value + above))


def bootstrap(statistic: Callable[[np.ndarray], np.ndarray], n_samples: int, seed: int = 0) -> list[Interval]:
    """Return figures with the interval that they cover when the samples are redrawn with replacement.

    Parameters
    ----------
    statistic : function of rows, an int array of shape (n_resamples, n_samples), to (n_resamples, n_figures)
    n_samples : int
    seed : int, default 0

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.reports.intervals import bootstrap
    >>> values = np.arange(100.0)
    >>> (mean,) = bootstrap(lambda rows: values[rows].mean(axis=1)[:, None], 100)
    >>> mean.value, bool(43 < mean.low < 45 and 54 < mean.high < 56)
    (49.5, True)
    """
    rng = np.random.default_rng(seed)
    values = statistic(np.arange(n_samples)[None])[0]
    drawn = np.concatenate(
        [statistic(rng.integers(n_samples, size=(_CHUNK, n_samples))) for _ in range(_RESAMPLES // _CHUNK)]
    )
    low, high = np.nanquantile(drawn, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2], axis=0)
    return [Interval(float(v), float(a), float(b)) for v, a, b in zip(values, low, high, strict=True)]


def explained(truth: np.ndarray, predictions: list[np.ndarray], seed: int = 0) -> tuple[list[Interval], list[Interval]]:
    """Return the R2 of several predictors, and how much more the first explains than each.

    Parameters
    ----------
    truth : ndarray of shape (n_samples,)
    predictions : list of such arrays
    seed : int, default 0

    Returns
    -------
    scores, differences : lists of Interval
        Both from the same resamples: the differences are paired.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.reports.intervals import explained
    >>> truth = np.arange(50.0)
    >>> scores, differences = explained(truth, [truth, np.full(50, truth.mean())])
    >>> [score.value for score in scores], differences[1].value
    ([1.0, 0.0], 1.0)
    """
    errors = [(truth - predicted) ** 2 for predicted in predictions]

    def statistic(rows: np.ndarray) -> np.ndarray:
        drawn = truth[rows]
        spread = np.sum((drawn - drawn.mean(axis=1, keepdims=True)) ** 2, axis=1)
        missed = np.stack([error[rows].sum(axis=1) for error in errors], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # a resample of one value has no R2
            scores = np.where(spread[:, None] > 0, 1 - missed / spread[:, None], np.nan)
        return np.hstack([scores, scores[:, :1] - scores])

    intervals = bootstrap(statistic, truth.size, seed)
    return intervals[: len(errors)], intervals[len(errors) :]


def area_under_roc(positive: np.ndarray, decisions: np.ndarray) -> float:
    """Return the chance that a positive sample has the larger decision value than a negative one; NaN without both.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.reports.intervals import area_under_roc
    >>> area_under_roc(np.array([True, True, False]), np.array([2.0, 0.0, 1.0]))
    0.5
    """
    n_positive = int(positive.sum())
    pairs = n_positive * (positive.size - n_positive)
    if pairs == 0:
        return float("nan")
    return float((rankdata(decisions)[positive].sum() - n_positive * (n_positive + 1) / 2) / pairs)
