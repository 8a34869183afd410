"""Cox's partial likelihood of right-censored times, with its conjugate and a closed factor of its second derivative.

The target of a sample says in one number when it was last seen and how: |y| is its time, of which the order alone
counts, and y > 0 if it then had its event, y < 0 if it was censored. At a time t let W_t be the weights C of the events
and S_t = sum of C_j exp(z_j) over all samples that were still at risk, |y_j| >= t. The loss is

    L(z) = sum over times with events   W_t log(S_t / W_t) - sum over events at t  C_i z_i.

It is C times minus the logarithm of the partial likelihood (ties as Breslow treats them), less the least value that
this can have: half the deviance. So L >= 0, a sample of weight 2 counts like two copies of it, and a constant that is
added to z changes nothing. At each time it is W_t times the divergence of the events from the risks
p_tj = C_j exp(z_j) / S_t.

Slopes. With the hazard H_t = sum_{s <= t} W_s / S_s and m_j = C_j exp(z_j) H_{t_j}, what the model expects of sample j
up to its time,

    beta = -dL/dz,   beta_j = C_j [event] - m_j,   1'beta = 0:

the dual coefficients are the martingale residuals times C. The m sum to the weight of all events, whatever z is.

Conjugate. z can be had from beta in one pass over the times. Let m = C [event] - beta, and B_t = sum of beta over the
samples up to t, so that R_t = B_{t-} + W_t = H_t S_t. The samples at t have the part M_t / R_t of S_t, where M_t is
their sum of m; hence B_t / R_t is left of S, and

    L*(-beta) = sum_j m_j log(m_j / C_j) + sum_t [ B_t log B_t + W_t log W_t - R_t log R_t ]

for m >= 0, B_t >= 0 and 1'beta = 0, and infinite elsewhere. It is 0 at beta = 0, as L comes as near to 0 as one likes.

Curvature. The second derivative is diag(m) - sum_t W_t p_t p_t'. Its entries off the diagonal are
-C_j e^{z_j} C_k e^{z_k} Q_min(t_j, t_k), Q_t = sum_{s <= t} W_s / S_s^2, and its rows sum to 0. Eliminated in the order
of the times, with S(j) the sum of C exp(z) from sample j on in that order, the pivots come out in closed form:

    W = F F',   F_j = sqrt(m_j S(j+1) / S(j)) (e_j - sum_{k > j} C_k e^{z_k} / S(j+1) e_k).

So F'v takes from each entry the mean of those after it, weighted by their risks; products with F and F' are one pass of
means each, without a difference of large numbers. All sums of exponentials are kept as logarithms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manykernels.compute.later_means import contrast_columns, contrast_rows, spread_rows
from manykernels.losses.total import CoupledLoss, CurvatureFactor

_FAR = 1e300  # two numbers with this quotient or more cannot be scaled to one another


class Cox(CoupledLoss):
    """Half the deviance of Cox's proportional hazards, for times |y|: an event where y > 0, censored where y < 0.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.losses import Cox
    >>> y, z, C = np.array([1.0, -2.0, 3.0]), np.array([np.log(2.0), 0.0, 0.0]), np.ones(3)
    >>> round(float(np.exp(-Cox().total(y, z, C))), 12)  # of a risk of 4, the first has 2; the last is alone
    0.5
    >>> Cox().pull(y, z, C)  # events less what is expected
    array([ 0.5 , -0.25, -0.25])
    """

    name = "cox"

    def total(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> float:
        at = _Risks.of(y, z, C)
        happened, behind = at.events > 0.0, np.zeros(at.events.size)
        behind[happened] = at.log_risk[at.first[happened]] - np.log(at.events[happened])
        parts = at.died * (behind[at.group] - at.scores)
        return max(float(parts.sum()), 0.0)

    def total_conjugate(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray) -> float:
        order, _, first = _in_order(y)
        died = np.where(y > 0.0, C, 0.0)
        expected = np.maximum(died - beta, 0.0)
        events = np.add.reduceat(died[order], first)
        left = np.maximum(np.cumsum(np.add.reduceat(beta[order], first)), 0.0)
        left[-1] = 0.0
        risk = np.append(0.0, left[:-1]) + events
        unit = np.full(left.size, C.max())  # its logarithms cancel, and so would their digits
        paths = _entropy(left, unit) + _entropy(events, unit) - _entropy(risk, unit)
        return float(_entropy(expected, C).sum() + paths.sum())

    def pull(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> np.ndarray:
        at, out = _Risks.of(y, z, C), np.empty(y.size)
        out[at.order] = at.died - at.expected
        return out

    def feasible(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray, intercept: bool) -> np.ndarray:
        """Return beta with no less than 0 expected of anyone, and at no time more than there were events before.

        The sum of beta is 0 whether an intercept is asked for or not.
        """
        order, group, first = _in_order(y)
        died, out = np.where(y > 0.0, C, 0.0)[order], np.empty(y.size)
        expected = np.maximum(died - beta[order], 0.0)
        events, sums = np.add.reduceat(died, first), np.add.reduceat(expected, first)
        # What is left of the events after each time, never below 0, and nothing in the end.
        path = np.cumsum(events - sums)
        left = path - np.minimum(np.minimum.accumulate(path), 0.0)
        left[-1] = 0.0
        allowed = np.maximum(np.append(0.0, left[:-1]) + events - left, 0.0)
        bare = (allowed > 0.0) & (sums <= allowed / _FAR)
        expected = np.where(bare[group], C[order], expected)
        sums = np.add.reduceat(expected, first)
        factors = np.divide(allowed, sums, out=np.zeros(sums.size), where=sums > 0.0)
        out[order] = died - expected * factors[group]
        return out

    def best_intercept(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> float:
        """Return the b for which the mean of z + b is 0: the loss is the same for any."""
        total = float(C.sum())
        return -float(C @ z) / total if total > 0.0 else 0.0

    def moved(self, y: np.ndarray, z: np.ndarray, errors: np.ndarray, C: np.ndarray) -> float:
        """Return a bound to second order: v'Wv is at most sum_j m_j v_j^2."""
        at = _Risks.of(y, z, C)
        beta, errors = at.died - at.expected, errors[at.order]
        return float(np.abs(beta) @ errors + 0.5 * at.expected @ errors**2)

    def has_contrast(self, y: np.ndarray) -> bool:
        """Return whether an event happened while someone else was at risk."""
        times = np.abs(y)
        return bool(np.any(y > 0.0)) and int(np.sum(times >= times[y > 0.0].min())) > 1

    def curvature_factor(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> CurvatureFactor:
        at = _Risks.of(y, z, C)
        log_risk = np.where(np.isneginf(at.log_risk), 0.0, at.log_risk)  # samples of weight 0 share no risk
        share, rest = np.exp(at.log_share - log_risk), np.exp(np.append(at.log_risk[1:], -np.inf) - log_risk)
        return _RiskFactor(at.order, np.sqrt(at.expected * rest), share, rest)


def _in_order(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the samples in the order of their times, the number of each one's time, and where each time begins."""
    times = np.abs(y)
    order = np.argsort(times, kind="stable")
    is_new = np.append(True, np.diff(times[order]) > 0.0)
    return order, np.cumsum(is_new) - 1, np.flatnonzero(is_new)


def _entropy(values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return v log(v / unit), 0 where the quotient is 0."""
    ratios = np.divide(values, units, out=np.zeros(values.size), where=units > 0.0)
    return values * np.log(np.where(ratios > 0.0, ratios, 1.0))


def _log(values: np.ndarray) -> np.ndarray:
    """Return the logarithms, minus infinity of 0."""
    with np.errstate(divide="ignore"):
        return np.log(values)


class _Risks(NamedTuple):
    """What is at risk when, all in the order of the times.

    Attributes
    ----------
    order, group, first
        Of :func:`_in_order`.
    died : ndarray of shape (n,)
        The weights C of the events, 0 of the censored.
    events : ndarray of shape (n_times,)
        Their sum at each time, W.
    scores : ndarray of shape (n,)
        z less its maximum, which would cost digits.
    log_share, log_risk, expected : ndarrays of shape (n,)
        Logarithms of C exp(z) and of its sum from each sample on; m.
    """

    order: np.ndarray
    group: np.ndarray
    first: np.ndarray
    died: np.ndarray
    events: np.ndarray
    scores: np.ndarray
    log_share: np.ndarray
    log_risk: np.ndarray
    expected: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> _Risks:
        order, group, first = _in_order(y)
        died = np.where(y > 0.0, C, 0.0)[order]
        events = np.add.reduceat(died, first)
        scores = z[order] - z.max()
        log_share = _log(C[order]) + scores
        log_risk = np.logaddexp.accumulate(log_share[::-1])[::-1]
        # Where nothing happens nothing is added, also where nobody is at risk.
        step = _log(events) - np.where(events > 0.0, log_risk[first], 0.0)
        expected = np.exp(log_share + np.logaddexp.accumulate(step)[group])
        return cls(order, group, first, died, events, scores, log_share, log_risk, expected)


class _RiskFactor(CurvatureFactor):
    """The factor F of the module's docstring.

    Parameters
    ----------
    order : ndarray of shape (n,)
        The samples in the order of their times; all else is in this order.
    length : ndarray of shape (n,)
        The roots.
    share, rest : ndarrays of shape (n,)
        The part of each sample in the risk from it on, and that of all after it: their sum is 1.
    """

    def __init__(self, order: np.ndarray, length: np.ndarray, share: np.ndarray, rest: np.ndarray) -> None:
        self.parts = order, length, share, rest

    def times(self, vectors: np.ndarray) -> np.ndarray:
        out = np.array(vectors, dtype=np.float64, order="C")
        spread_rows(out, *self.parts)
        return out

    def transposed_times(self, vectors: np.ndarray) -> np.ndarray:
        out = np.array(vectors, dtype=np.float64, order="C")
        contrast_rows(out, *self.parts)
        return out

    def congruent(self, K: np.ndarray) -> np.ndarray:
        out = self.transposed_times(K)  # K F
        contrast_columns(out, *self.parts)
        return out
