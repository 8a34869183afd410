"""An interior point method for losses with a quadratic conjugate on a kernel that is given by features, K = X X'.

    minimize over beta    1/2 beta' K beta + sum_j (l_j' p_j + 1/2 h_j' p_j^2),   beta = sum_j s_j p_j,   1' beta = 0

beta is a sum of signed parts with 0 <= p_j <= c_j: one part a sample for the hinge losses, two for the
epsilon-insensitive one. The curvature h_j is 0 for a piecewise linear loss; for the squared hinge it is not, and c_j is
infinite. With multipliers z, w of the two bounds and t = c - p, the conditions are
s_j (K beta + b)_i + l_j + h_j p_j - z_j + w_j = 0 and p z = t w = 0. A Newton step at p z = t w = mu gives

    Theta_j dp_j = r_j - s_j g_i,   Theta = h + z / p + w / t,   g = K dbeta + db 1,

so dbeta = a - D g with a_i = sum_j s_j r_j / Theta_j and D_i = sum_j 1 / Theta_j. With h = X' dbeta this is

    ([X 1]' D [X 1] + diag(1, ..., 1, 0)) (h, db) = (X' a, 1' a + 1' beta),

a system as large as the features, not the samples. A predictor and a corrector share its factorization (Mehrotra).
Where coordinate descent and Newton's method take long, since C is large, this takes twenty steps all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.protocols import FeaturesKernel

Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Sign, range, cost and curvature of a part of each sample's coefficient, each of shape (n,)."""

_MOST_STEPS = 60
_PATIENCE = 5  # steps that gain nothing
_LESS = 0.9  # of the residual, which rounding moves: it has become smaller
_LEAST_LENGTH = 1e-8
_TO_THE_WALL = 0.99
_INSIDE = 1e-3  # of its range: how far from its bounds a part begins


@one_blas_thread()
def solve_interior(
    K: FeaturesKernel,
    y: np.ndarray,
    parts: Sequence[Part],
    *,
    start: tuple[np.ndarray, float] | None = None,
    intercept: bool = True,
    tol: float = 1e-3,
) -> np.ndarray:
    """Return beta, with a relative duality gap of about ``tol``.

    Parameters
    ----------
    K : FeaturesKernel
    y : ndarray of shape (n,)
    parts : sequence of (sign, range, cost, curvature)
        Signs, ranges c_j, costs l_j and curvatures h_j of the parts of all samples.
    start : (beta, intercept), optional
    intercept : bool
    tol : float
    """
    if _is_flat(parts, intercept):
        return np.zeros(y.size)
    run = _Interior(K, y, parts, start, intercept)
    least, off, idle = run.gap(), run.size_of_residual(), 0
    for _ in range(_MOST_STEPS):
        if run.gap() <= tol * abs(run.objective()) or idle > _PATIENCE or not run.step():
            break
        # First steps may lead to where the conditions hold, or to the center only: the gap need not fall with each.
        gains = run.gap() < least or run.size_of_residual() < _LESS * off
        least, off = min(least, run.gap()), min(off, run.size_of_residual())
        idle = 0 if gains else idle + 1
    return run.beta


def _is_flat(parts: Sequence[Part], intercept: bool) -> bool:
    """Return whether no part gains by leaving 0, for some intercept: all costs s_j b + l_j are positive then."""
    low, high = (-np.inf, np.inf) if intercept else (0.0, 0.0)
    for sign, top, cost, _ in parts:
        low = max(low, float(np.max(-cost[(top > 0) & (sign > 0)], initial=-np.inf)))
        high = min(high, float(np.min(cost[(top > 0) & (sign < 0)], initial=np.inf)))
    return low <= high


class _Interior:
    """Parts p, multipliers z and w, each of shape (n_parts, n), and the intercept."""

    def __init__(
        self,
        K: FeaturesKernel,
        y: np.ndarray,
        parts: Sequence[Part],
        start: tuple[np.ndarray, float] | None,
        intercept: bool,
    ) -> None:
        self.K, self.y, self.has_intercept = K, y, intercept
        self.sign, tops, self.cost, self.bend = (np.array(values) for values in zip(*parts, strict=True))
        self.used, self.capped = tops > 0, (tops > 0) & np.isfinite(tops)
        # Without an upper bound, what a part would be if it were alone stands for its range.
        alone = np.abs(self.cost) / np.where(self.bend > 0, self.bend, 1.0)
        top = np.where(self.capped, tops, np.where(self.used, alone, 1.0))
        begin, self.intercept = (np.zeros(y.size), 0.0) if start is None else start
        # Products p z of parts with a tiny range are to be no smaller than the others, or they would end each step:
        # such parts begin in the middle, and are held there from both sides.
        level = _INSIDE * float(top[self.used].mean()) if self.used.any() else 0.0
        least = np.clip(level / top, _INSIDE, 0.5)
        share = np.clip(np.maximum(self.sign * begin, 0.0) / top, least, 1.0 - least)
        self.p, self.t = share * top, np.where(self.capped, (1.0 - share) * top, 1.0)
        force = self._force()
        size = max(float(np.abs(force[self.used]).mean()), 1e-12)
        nearest = np.where(self.capped, np.minimum(self.p, self.t), self.p)
        hold = 0.1 * size * np.maximum(1.0, level / nearest)
        self.z, self.w = np.maximum(force, 0.0) + hold, np.where(self.capped, np.maximum(-force, 0.0) + hold, 0.0)
        self.residual = force - self.z + self.w

    @property
    def beta(self) -> np.ndarray:
        return np.sum(self.sign * np.where(self.used, self.p, 0.0), axis=0)

    def _force(self) -> np.ndarray:
        """Return s (K beta + b) + l + h p, what holds each part at its lower bound."""
        self.decision = self.K.product(self.beta[None, :])[0]
        return self.sign * (self.decision + self.intercept) + self.cost + self.bend * self.p

    def gap(self) -> float:
        """Return p z + t w, summed."""
        return float(np.sum(np.where(self.used, self.p * self.z + self.t * self.w, 0.0)))

    def size_of_residual(self) -> float:
        """Return how far the forces are from being held."""
        return float(np.max(np.abs(self.residual), where=self.used, initial=0.0))

    def objective(self) -> float:
        """Return minus the value of the program: near the optimum the primal value."""
        costs = float(np.sum(np.where(self.used, (self.cost + 0.5 * self.bend * self.p) * self.p, 0.0)))
        return -0.5 * float(self.beta @ self.decision) - costs

    def step(self) -> bool:
        """Make a predictor and a corrector step; return whether it led anywhere."""
        before = self.gap()
        theta = self.bend + self.z / self.p + self.w / self.t
        inverse = np.where(self.used, 1.0 / theta, 0.0)
        system = self.K.table.bordered_solver(inverse.sum(axis=0), self.K.columns, self.has_intercept)
        mu = before / max(int(self.used.sum() + self.capped.sum()), 1)
        nothing = np.zeros_like(self.p)
        dp, dz, dw, _ = self._direction(system, inverse, 0.0, nothing, nothing)
        reach = self._reach(dp, dz, dw)
        trial = np.sum(
            np.where(self.used, (self.p + reach * dp) * (self.z + reach * dz), 0.0)
            + np.where(self.used, (self.t - reach * dp) * (self.w + reach * dw), 0.0)
        )
        target = mu * (float(trial) / before) ** 3
        dp, dz, dw, db = self._direction(system, inverse, target, dp * dz, -dp * dw)
        length = min(1.0, _TO_THE_WALL * self._reach(dp, dz, dw))
        self.p, self.t = self.p + length * dp, self.t - length * np.where(self.capped, dp, 0.0)
        self.z, self.w = self.z + length * dz, self.w + length * dw
        self.intercept += length * db
        self.residual = self._force() - self.z + self.w
        return length > _LEAST_LENGTH

    def _direction(
        self,
        system: Callable[[np.ndarray], np.ndarray],
        inverse: np.ndarray,
        target: float,
        low: np.ndarray,
        high: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return the step of p, z, w and b toward p z = t w = target, second-order terms given."""
        pull = (target - low) / self.p - self.z
        push = np.where(self.capped, (target - high) / self.t - self.w, 0.0)
        r = -self.residual + pull - push
        a = np.sum(self.sign * r * inverse, axis=0)
        root = np.sqrt(self.K.columns)
        right = np.append(
            root * self.K.table.transposed_times(a[None, :])[0],
            a.sum() + self.beta.sum() if self.has_intercept else 0.0,
        )
        solution = system(right)
        db = float(solution[-1]) if self.has_intercept else 0.0
        g = self.K.table.times((root * solution[:-1])[None, :])[0] + db
        dp = inverse * (r - self.sign * g)
        return dp, pull - self.z / self.p * dp, push + self.w / self.t * dp, db

    def _reach(self, dp: np.ndarray, dz: np.ndarray, dw: np.ndarray) -> float:
        """Return how far p, t, z and w may go before one of them is 0, at most 1."""
        reach = 1.0
        for value, change in ((self.p, dp), (self.t, np.where(self.capped, -dp, 0.0)), (self.z, dz), (self.w, dw)):
            falling = self.used & (change < 0)
            if np.any(falling):
                reach = min(reach, float(np.min(-value[falling] / change[falling])))
        return reach
