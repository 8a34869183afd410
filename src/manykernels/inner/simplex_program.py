"""A small convex quadratic program over simplices, by a primal-dual interior point."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_solve

from manykernels.compute.linalg import cholesky_factor

_MOST_STEPS = 60
_TO_THE_WALL = 0.99
_ENOUGH = 1e-10
_RIDGE = 1e-13
_SHORTEST = 1e-10


def solve_program(
    G: np.ndarray, o: np.ndarray, owner: np.ndarray, balance: np.ndarray | None
) -> tuple[np.ndarray, float]:
    """Maximize o'x - 1/2 x'Gx over x >= 0 with sums of at most 1 in each group, and balance'x = 0.

    Parameters
    ----------
    G : ndarray of shape (n, n), positive semidefinite
    o : ndarray of shape (n,)
    owner : ndarray of int, shape (n,)
        The group of each variable.
    balance : ndarray of shape (n,) or None

    Returns
    -------
    x : ndarray of shape (n,)
        Feasible: negative entries and sums above 1 are removed, and the balance is restored by scaling one side down.
    multiplier : float
        That of the balance; 0 without it.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.inner.simplex_program import solve_program
    >>> x, _ = solve_program(np.eye(2), np.array([0.3, 5.0]), np.array([0, 1]), None)
    >>> x.round(6)
    array([0.3, 1. ])
    """
    n, n_groups = o.size, int(owner.max()) + 1
    # The last variables are what a group's sum falls short of 1.
    E = np.zeros((n_groups + (balance is not None), n + n_groups))
    E[owner, np.arange(n)] = 1.0
    E[np.arange(n_groups), n + np.arange(n_groups)] = 1.0
    e = np.append(np.ones(n_groups), np.zeros(E.shape[0] - n_groups))
    unit = 1.0
    if balance is not None:
        unit = max(float(np.abs(balance).max()), 1e-300)
        E[-1, :n] = balance / unit
    Q = np.zeros((n + n_groups, n + n_groups))
    Q[:n, :n] = G
    x, y = _interior(Q, np.append(o, np.zeros(n_groups)), E, e, 1.0 / (np.bincount(owner).max() + 1.0))
    x = np.maximum(x[:n], 0.0)
    x /= np.maximum(np.bincount(owner, x), 1.0)[owner]
    if balance is None:
        return x, 0.0
    flow = balance * x
    up, down = flow[flow > 0].sum(), -flow[flow < 0].sum()
    target = min(up, down)
    x = x * np.where(flow > 0, target / (up or 1.0), np.where(flow < 0, target / (down or 1.0), 1.0))
    return x, float(-y[-1] / unit)


def _interior(
    Q: np.ndarray, o: np.ndarray, E: np.ndarray, e: np.ndarray, first: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y with Q x - o - E'y = z >= 0, E x = e, x >= 0, x z = 0, by Mehrotra's method."""
    scale = max(float(np.abs(o).max()), float(np.trace(Q)) / len(Q), 1e-300)
    Q, o = Q / scale, o / scale
    x, y = np.full(o.size, first), np.zeros(e.size)
    z = np.maximum(Q @ x - o, 0.0) + 1.0
    for _ in range(_MOST_STEPS):
        mu = float(x @ z) / x.size
        residuals = Q @ x - o - E.T @ y - z, E @ x - e
        if max(mu, *(float(np.abs(residual).max()) for residual in residuals)) <= _ENOUGH:
            break
        try:
            system = _System(Q, E, x, z, *residuals)
        except LinAlgError:
            break
        dx, _, dz = system.direction(0.0, np.zeros_like(x))
        reach = min(_reach(x, dx), _reach(z, dz))
        after = float((x + reach * dx) @ (z + reach * dz)) / x.size
        dx, dy, dz = system.direction(mu * (after / mu) ** 3, dx * dz)
        length = min(1.0, _TO_THE_WALL * min(_reach(x, dx), _reach(z, dz)))
        if not (np.all(np.isfinite(dx)) and np.all(np.isfinite(dz)) and length > _SHORTEST):
            break
        x, y, z = x + length * dx, y + length * dy, z + length * dz
    return x, y * scale


class _System:
    """The equations of a step, factored."""

    def __init__(
        self, Q: np.ndarray, E: np.ndarray, x: np.ndarray, z: np.ndarray, dual: np.ndarray, primal: np.ndarray
    ) -> None:
        self.E, self.x, self.z, self.dual, self.primal = E, x, z, dual, primal
        ridge = _RIDGE * max(float(np.trace(Q)) / len(Q), 1.0)
        self.factor = cholesky_factor(Q + np.diag(z / x + ridge))
        self.inner = cho_solve(self.factor, E.T, check_finite=False)
        schur = E @ self.inner
        schur[np.diag_indices_from(schur)] += 0.1 * _RIDGE * max(float(np.trace(schur)), 1e-300)
        self.outer = cholesky_factor(schur)

    def direction(self, target: float, corner: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the step of x, y and z toward x z = target, second-order terms given."""
        pull = (target - corner) / self.x - self.z
        step = cho_solve(self.factor, pull - self.dual, check_finite=False)
        dy = cho_solve(self.outer, -self.primal - self.E @ step, check_finite=False)
        dx = step + self.inner @ dy
        return dx, dy, pull - self.z / self.x * dx


def _reach(value: np.ndarray, change: np.ndarray) -> float:
    falling = change < 0
    return min(1.0, float(np.min(-value[falling] / change[falling]))) if np.any(falling) else 1.0
