"""An interior point method for piecewise linear losses on a kernel that is given by features, K = X X'.

    minimize over beta    1/2 beta' K beta - y' beta + epsilon * sum_i |beta_i|,   beta in a box, 1' beta = 0

beta is a sum of signed parts, beta_i = sum_j s_j p_j with 0 <= p_j <= c_j and the linear cost l_j: one part a sample
for the hinge loss, two for the epsilon-insensitive one. With multipliers z, w of the two bounds and t = c - p, the
conditions are s_j (K beta + b)_i + l_j - z_j + w_j = 0 and p z = t w = 0. A Newton step at p z = t w = mu gives

    Theta_j dp_j = r_j - s_j g_i,   Theta = z / p + w / t,   g = K dbeta + db 1,

so dbeta = a - D g with a_i = sum_j s_j r_j / Theta_j and D_i = sum_j 1 / Theta_j. With h = X' dbeta this is

    ([X 1]' D [X 1] + diag(1, ..., 1, 0)) (h, db) = (X' a, 1' a + 1' beta),

a system as large as the features, not the samples. A predictor and a corrector share its factorization (Mehrotra).
Where coordinate descent takes long, since C is large, this takes twenty steps all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.inner.coordinate_descent import Features

_MOST_STEPS = 60
_PATIENCE = 5  # steps that gain nothing
_LEAST_LENGTH = 1e-8
_TO_THE_WALL = 0.99
_INSIDE = 1e-3  # of its range: how far from its bounds a part begins


@one_blas_thread()
def solve_interior(
    K: Features,
    y: np.ndarray,
    parts: Sequence[tuple[float, np.ndarray, np.ndarray]],
    *,
    start: tuple[np.ndarray, float] | None = None,
    intercept: bool = True,
    tol: float = 1e-3,
) -> np.ndarray:
    """Return beta, with a relative duality gap of about ``tol``.

    Parameters
    ----------
    K : Features
    y : ndarray of shape (n,)
    parts : sequence of (sign, range, cost)
        Signs and ranges c_j of the parts of all samples, each of shape (n,) or a number, and their costs l_j, (n,).
    start : (beta, intercept), optional
    intercept : bool
    tol : float
    """
    if _is_flat(parts, y.size, intercept):
        return np.zeros(y.size)
    run = _Interior(K, y, parts, start, intercept)
    least, idle = run.gap(), 0
    for _ in range(_MOST_STEPS):
        # A first step may be for the center only: the gap need not fall with each.
        if run.gap() <= tol * abs(run.objective()) or idle > _PATIENCE or not run.step():
            break
        least, idle = (run.gap(), 0) if run.gap() < least else (least, idle + 1)
    return run.beta


def _is_flat(parts: Sequence[tuple[float, np.ndarray, np.ndarray]], n: int, intercept: bool) -> bool:
    """Return whether no part gains by leaving 0, for some intercept: all costs s_j b + l_j are positive then."""
    low, high = (-np.inf, np.inf) if intercept else (0.0, 0.0)
    for sign, top, cost in parts:
        used, signs = np.broadcast_to(top, n) > 0, np.broadcast_to(sign, n)
        low = max(low, float(np.max(-cost[used & (signs > 0)], initial=-np.inf)))
        high = min(high, float(np.min(cost[used & (signs < 0)], initial=np.inf)))
    return low <= high


class _Interior:
    """Parts p, multipliers z and w, each of shape (n_parts, n), and the intercept."""

    def __init__(
        self,
        K: Features,
        y: np.ndarray,
        parts: Sequence[tuple[float, np.ndarray, np.ndarray]],
        start: tuple[np.ndarray, float] | None,
        intercept: bool,
    ) -> None:
        self.K, self.y, self.has_intercept = K, y, intercept
        self.sign = np.array([np.broadcast_to(sign, y.shape) for sign, _, _ in parts])
        self.range = np.array([np.broadcast_to(top, y.shape) for _, top, _ in parts])
        self.cost = np.array([cost for _, _, cost in parts])
        self.used = self.range > 0
        top = np.where(self.used, self.range, 1.0)
        begin, self.intercept = (np.zeros(y.size), 0.0) if start is None else start
        # Products p z of parts with a tiny range are to be no smaller than the others, or they would end each step:
        # such parts begin in the middle, and are held there from both sides.
        level = _INSIDE * float(top[self.used].mean()) if self.used.any() else 0.0
        least = np.clip(level / top, _INSIDE, 0.5)
        share = np.clip(np.maximum(self.sign * begin, 0.0) / top, least, 1.0 - least)
        self.p, self.t = share * top, (1.0 - share) * top
        force = self._force()
        size = max(float(np.abs(force[self.used]).mean()), 1e-12)
        hold = 0.1 * size * np.maximum(1.0, level / np.minimum(self.p, self.t))
        self.z, self.w = np.maximum(force, 0.0) + hold, np.maximum(-force, 0.0) + hold

    @property
    def beta(self) -> np.ndarray:
        return np.sum(self.sign * np.where(self.used, self.p, 0.0), axis=0)

    def _force(self) -> np.ndarray:
        """Return s (K beta + b) + l, what holds each part at its lower bound."""
        self.decision = self.K.product(self.beta[None, :])[0]
        return self.sign * (self.decision + self.intercept) + self.cost

    def gap(self) -> float:
        """Return p z + t w, summed."""
        return float(np.sum(np.where(self.used, self.p * self.z + self.t * self.w, 0.0)))

    def objective(self) -> float:
        """Return minus the value of the program: near the optimum the primal value."""
        costs = float(np.sum(np.where(self.used, self.cost * self.p, 0.0)))
        return -0.5 * float(self.beta @ self.decision) - costs

    def step(self) -> bool:
        """Make a predictor and a corrector step; return whether it led anywhere."""
        before = self.gap()
        theta = self.z / self.p + self.w / self.t
        inverse = np.where(self.used, 1.0 / theta, 0.0)
        system = self.K.table.bordered_solver(inverse.sum(axis=0), self.K.columns, self.has_intercept)
        residual = self._force() - self.z + self.w
        mu = before / (2 * max(int(self.used.sum()), 1))
        nothing = np.zeros_like(self.p)
        dp, dz, dw, _ = self._direction(system, inverse, residual, 0.0, nothing, nothing)
        reach = self._reach(dp, dz, dw)
        trial = np.sum(
            np.where(self.used, (self.p + reach * dp) * (self.z + reach * dz), 0.0)
            + np.where(self.used, (self.t - reach * dp) * (self.w + reach * dw), 0.0)
        )
        target = mu * (float(trial) / before) ** 3
        dp, dz, dw, db = self._direction(system, inverse, residual, target, dp * dz, -dp * dw)
        length = min(1.0, _TO_THE_WALL * self._reach(dp, dz, dw))
        self.p, self.t = self.p + length * dp, self.t - length * dp
        self.z, self.w = self.z + length * dz, self.w + length * dw
        self.intercept += length * db
        self._force()
        return length > _LEAST_LENGTH

    def _direction(
        self,
        system: Callable[[np.ndarray], np.ndarray],
        inverse: np.ndarray,
        residual: np.ndarray,
        target: float,
        low: np.ndarray,
        high: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return the step of p, z, w and b towards p z = t w = target, second-order terms given."""
        pull, push = (target - low) / self.p - self.z, (target - high) / self.t - self.w
        r = -residual + pull - push
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
        for value, change in ((self.p, dp), (self.t, -dp), (self.z, dz), (self.w, dw)):
            falling = self.used & (change < 0)
            if np.any(falling):
                reach = min(reach, float(np.min(-value[falling] / change[falling])))
        return reach
