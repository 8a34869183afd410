"""Dual coordinate descent for a kernel that is given by features, K = Z diag(c) Z' (Hsieh and others, 2008).

    minimize over beta    1/2 beta' K beta - y' beta + epsilon * sum_i |beta_i|,   beta in a box, 1' beta = 0

With u = c * (Z' beta) at hand, the derivative at one sample, f_i - y_i with f_i = z_i' u, costs one row of Z, and so
does a step: no matrix of all samples is ever needed. One sample at a time cannot keep 1' beta = 0, so that constraint
has a multiplier, the intercept b, and a quadratic penalty s/2 (1' beta)^2 (an augmented Lagrangian): the derivative
becomes f_i + b + s 1' beta - y_i, and after each round b grows by s 1' beta. What is left of 1' beta at the end is
taken back.

A round goes over the samples in random order, block by block. Samples at a bound whose derivative points outwards by a
margin leave the round, as in shrinking; a last round is over all samples. The sum of the samples' own duality gaps,

    h_i + beta_i g_i + epsilon |beta_i|,   g_i = f_i + b - y_i,   h_i = max over the box of -(x g_i + epsilon |x|),

met along a round estimates the gap of the whole, and ends the iteration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manykernels.compute.compiled import njit
from manykernels.compute.threads import one_blas_thread
from manykernels.core.protocols import FeaturesKernel

_FAST = {"reassoc", "contract", "nsz", "arcp"}
MOST_ROUNDS = 2000
_MARGIN = 1.0  # in units of the largest violation of the last round: beyond it, samples leave the round


class Rounds(NamedTuple):
    """Coefficients, the multiplier of their sum, and whether the gap was reached."""

    beta: np.ndarray
    intercept: float
    converged: bool


@one_blas_thread()
def solve_features(
    K: FeaturesKernel,
    y: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    epsilon: float = 0.0,
    start: tuple[np.ndarray, float] | None = None,
    intercept: bool = True,
    tol: float = 1e-3,
    max_rounds: int = MOST_ROUNDS,
    seed: int = 0,
) -> Rounds:
    """Solve the box-constrained quadratic program until its relative duality gap is about ``tol``.

    Parameters
    ----------
    K : FeaturesKernel
    y, lower, upper : ndarrays of shape (n,)
    epsilon : float
    start : (ndarray of shape (n,), float), optional
        Coefficients and intercept to start from.
    intercept : bool
        Whether the coefficients sum to 0; they do so up to the tolerance.
    tol : float
    max_rounds : int
    seed : int
        Of the order of the samples.
    """
    run = _Run(K, y, lower, upper, epsilon, start, intercept, seed)
    for _ in range(max_rounds):
        was_whole = run.is_whole
        gap, objective = run.round()
        if gap <= tol * objective:
            if was_whole:
                return Rounds(run.beta, run.intercept, True)
            run.take_all()
    return Rounds(run.beta, run.intercept, False)


class _Run:
    """Coefficients, u, and the samples that are still in the rounds."""

    def __init__(
        self,
        K: FeaturesKernel,
        y: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        epsilon: float,
        start: tuple[np.ndarray, float] | None,
        intercept: bool,
        seed: int,
    ) -> None:
        self.K, self.y, self.lower, self.upper, self.epsilon = K, y, lower, upper, float(epsilon)
        self.random = np.random.default_rng(seed)
        beta, begin = (np.zeros(K.n_samples), 0.0) if start is None else start
        self.beta = np.clip(beta, lower, upper)
        self.factors = K.columns
        self.used = np.flatnonzero(self.factors)
        self.u = self.factors * K.vectors(self.beta[None, :])[0] if np.any(self.beta) else np.zeros(self.factors.size)
        self.diagonal = K.diagonal()
        self.penalty = float(np.mean(self.diagonal)) if intercept else 0.0
        self.multiplier = float(begin) if intercept else 0.0
        self.total = float(self.beta.sum())
        self.margin, self.objective = np.inf, 0.0
        self.inside = np.ones(K.n_samples, bool)

    @property
    def intercept(self) -> float:
        return self.multiplier

    @property
    def is_whole(self) -> bool:
        """Whether no sample has left the rounds."""
        return bool(self.inside.all())

    def take_all(self) -> None:
        self.inside[:] = True
        self.margin = np.inf

    def round(self) -> tuple[float, float]:
        """Go over the samples once; return what they said of the gap and of the objective."""
        was_whole = self.is_whole
        state = np.array([self.total, 0.0, 0.0, 0.0])  # 1' beta, gap, objective, largest violation
        low, high = _ranges(self.used)
        for place in self.random.permutation(len(self.K.table.blocks)):
            start, stop = self.K.table.blocks[place]
            rows = np.flatnonzero(self.inside[start:stop])
            if rows.size == 0:
                continue
            block = slice(start, stop)
            _descend(
                self.K.table.block(start, stop),
                self.random.permutation(rows),
                self.y[block],
                self.lower[block],
                self.upper[block],
                self.diagonal[block],
                self.epsilon,
                self.beta[block],
                self.inside[block],
                self.u,
                self.factors,
                low,
                high,
                self.multiplier,
                self.penalty,
                self.margin,
                state,
            )
        self.total, gap, objective, violation = state.tolist()
        # Samples that have left have losses, too.
        self.objective = objective if was_whole else max(objective, self.objective)
        self.multiplier += self.penalty * self.total
        self.margin = _MARGIN * violation
        # What the constraint is violated by costs about this much to repair.
        return gap + abs(self.total * self.multiplier) * (self.penalty > 0), self.objective


def _ranges(used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the runs of neighbors among sorted numbers as (first, one after the last) of each."""
    if used.size == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    breaks = np.flatnonzero(np.diff(used) > 1)
    return used[np.concatenate([[0], breaks + 1])], used[np.concatenate([breaks, [used.size - 1]])] + 1


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dot(row: np.ndarray, vector: np.ndarray) -> float:
    total = 0.0
    for j in range(row.size):
        total += row[j] * vector[j]
    return total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add(row: np.ndarray, factors: np.ndarray, step: float, vector: np.ndarray) -> None:
    for j in range(row.size):
        vector[j] += step * factors[j] * row[j]


@njit(cache=True, nogil=True)
def _descend(
    Z, order, y, lower, upper, diagonal, epsilon, beta, inside, u, factors, low, high,
    multiplier, penalty, margin, state,
):  # fmt: skip
    """Make a step at each sample of a block, in place; ``state`` adds up 1' beta, gap, objective, violation."""
    for place in range(order.size):
        i = order[place]
        row, value = Z[i], 0.0
        for r in range(low.size):
            value += _dot(row[low[r] : high[r]], u[low[r] : high[r]])
        b, lo, hi = beta[i], lower[i], upper[i]
        g = value + multiplier + penalty * state[0] - y[i]
        worst = max(-(lo * g + epsilon * abs(lo)), -(hi * g + epsilon * abs(hi)), 0.0)
        state[1] += worst + b * g + epsilon * abs(b)
        state[2] += worst + 0.5 * b * value
        rise, fall = g + (epsilon if b >= 0.0 else -epsilon), g + (epsilon if b > 0.0 else -epsilon)
        if b >= hi:
            violation = max(fall, 0.0)
            if fall < -margin:
                inside[i] = False
        elif b <= lo:
            violation = max(-rise, 0.0)
            if rise > margin:
                inside[i] = False
        else:
            violation = max(-rise, fall, 0.0)
            if b == 0.0 and rise > margin and fall < -margin:
                inside[i] = False
        state[3] = max(state[3], violation)
        curvature = diagonal[i] + penalty
        if curvature <= 0.0:
            new = hi if g < -epsilon else (lo if g > epsilon else b)
        else:
            center, width = b - g / curvature, epsilon / curvature
            new = max(center - width, 0.0) + min(center + width, 0.0)
        new = min(max(new, lo), hi)
        if new != b:
            step = new - b
            for r in range(low.size):
                _add(row[low[r] : high[r]], factors[low[r] : high[r]], step, u[low[r] : high[r]])
            beta[i] = new
            state[0] += step
