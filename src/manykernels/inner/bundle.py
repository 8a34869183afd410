"""A bundle method on rows that are on workers: only vectors as long as the features travel.

    minimize over u, b    1/2 sum_j u_j^2 / c_j + sum_i C_i loss(y_i, z_i' u + b),    K = Z diag(c) Z'

At any (u, b) each block gives coefficients in the domain of the dual, beta_i = -C_i times a slope of the loss, and
returns their sums a = Z' beta, s = 1' beta and o = minus the conjugates: a plane, losses(u, b) >= o - a'u - s b, that
touches the block's losses there. The lower bound made of all planes has the dual

    maximize over alpha    sum_p alpha_p o_p - 1/2 || sqrt(c) sum_p alpha_p a_p ||^2,
    alpha >= 0,  sum of alpha over the planes of a block <= 1,  sum_p alpha_p s_p = 0,

a quadratic program of the number of planes, solved here. Its alpha mixes the coefficients to a feasible point of the
problem's dual, with w = Z' beta = sum_p alpha_p a_p, and its value is a lower bound of the optimum, since conjugates
are convex. No coefficient ever leaves its worker, and none is even kept there. The next planes are taken near the best
point so far, a little toward the solution of the program (Franc and Sonnenburg, 2009).

The planes do not depend on c: when the weights of the kernels change, all stay valid, and few new ones are needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manykernels.core.protocols import SumsKernel
from manykernels.core.results import Machine
from manykernels.inner.simplex_program import solve_program

_TOWARD = 0.1  # the part of the way to the program's solution at which the next planes are taken
_LENGTHS = np.concatenate([[1.0, 0.0], np.geomspace(1e-4, 0.9, 40), np.geomspace(1.2, 10.0, 8)])
_WHOLE = 0  # the place of the length 1
_MOST_ROUNDS = 300
_IDLE = 20  # rounds without weight after which a plane is forgotten
_STALLED, _LESS = 40, 0.95  # rounds in which the gap does not fall to this part
_STEPS = np.geomspace(1e-6, 1.0, 16)
# Intercepts around one that is nearly best, in units of the targets; then between two that are known, and how often.
_AROUND, _BETWEEN, _MOST_GRIDS = np.concatenate([-_STEPS[::-1], [0.0], _STEPS]), np.linspace(0.0, 1.0, 33), 12
_FLAT = 1e-9  # of the losses: what a finer grid must gain
_FINE = 0.1  # of what rounding costs: a gap below that is in nobody's way


@dataclass(frozen=True)
class Coefficients:
    """The coefficients of all samples, which are nowhere: only what is needed of them is known.

    Attributes
    ----------
    vectors : ndarray of shape (n_tasks, n_columns)
        Z' beta_t.
    """

    vectors: np.ndarray


@dataclass(frozen=True)
class BundleSolution:
    """The machine of one task.

    Attributes
    ----------
    vector : ndarray of shape (n_columns,)
        Z' beta.
    intercept : float
    quadratic, losses, conjugates : float
        beta' K beta, and sums over the rows; the conjugates are an upper bound.
    """

    vector: np.ndarray
    intercept: float
    quadratic: float
    losses: float
    conjugates: float

    @property
    def objective(self) -> float:
        """The primal value with the kernel fixed."""
        return 0.5 * self.quadratic + self.losses

    @property
    def gap(self) -> float:
        """The primal value minus the dual one."""
        return self.quadratic + self.losses + self.conjugates


def solve(work: Any) -> Machine:
    """Return the machines of all tasks for a combined kernel of "sums"; the planes stay with the kernel.

    Parameters
    ----------
    work : manykernels.inner.solve.Work
    """
    K = work.K
    for t in range(work.n_tasks):
        if t not in K.planes:
            K.planes[t] = Bundle(K, t, work.loss, work.intercept, work.offset)
    solutions = [K.planes[t].solve(K.columns, work.tol) for t in range(work.n_tasks)]
    conjugates = sum(solution.conjugates for solution in solutions)
    beta = Coefficients(np.array([solution.vector for solution in solutions]))
    return Machine(
        beta=beta,
        decision=beta,
        intercept=np.array([solution.intercept for solution in solutions]),
        quadratic=sum(solution.quadratic for solution in solutions),
        losses=sum(solution.losses for solution in solutions),
        # Conjugates are convex and at most 0 at 0, so that for parts up to 1 this is an upper bound.
        conjugates_at=lambda share: share * conjugates,
        conjugates=conjugates,
    )


class Bundle:
    """The planes of one task, and the best point so far.

    Parameters
    ----------
    K : SumsKernel
    task : int
    loss : Loss
    intercept : bool
    offset : float
        What will be added to the intercept: it has the digits that this leaves.
    """

    def __init__(self, K: SumsKernel, task: int, loss: Any, intercept: bool, offset: float) -> None:
        self.K, self.task, self.loss, self.unit = K, task, loss, K.unit
        self.has_intercept, self.offset = intercept, offset
        n_columns = K.columns.size
        self.normals, self.owner, self.idle = np.zeros((0, n_columns)), np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.sums, self.offsets = np.zeros(0), np.zeros(0)
        self.gram: np.ndarray | None = None
        self.columns = np.zeros(n_columns)
        self.u, self.b = np.zeros(n_columns), 0.0
        self.lost = 0.0  # what the last solution has lost to the digits of its intercept

    def solve(self, columns: np.ndarray, tol: float) -> BundleSolution:
        """Add planes until the relative gap is at most ``tol``, or until none helps."""
        self._weigh(columns)
        if self.offsets.size == 0:
            self._add(self.u, self.b)
        best, stalled = None, 0
        for _ in range(_MOST_ROUNDS):
            alpha, multiplier = self._program()
            w = alpha @ self.normals
            aim = columns * w
            losses = self._advance(aim, multiplier)
            candidate = BundleSolution(w, multiplier, float(aim @ w), losses, -float(alpha @ self.offsets))
            stalled = 0 if best is None or candidate.gap < _LESS * best.gap else stalled + 1
            if best is None or candidate.gap < best.gap:
                best = candidate
            if best.gap <= max(tol * abs(best.objective), _FINE * self.lost) or stalled > _STALLED:
                break
            self._add(self.u + _TOWARD * (aim - self.u), self.b + _TOWARD * (multiplier - self.b))
            self._forget(alpha)
        assert best is not None
        return self._finished(best)

    def _finished(self, best: BundleSolution) -> BundleSolution:
        """Return the solution with the best intercept among those that are left once the offset is added."""
        intercept, losses = self._best_intercept(self.columns * best.vector, best.intercept)
        self.lost = max(losses - best.losses, 0.0)
        return replace(best, intercept=intercept, losses=losses)

    def _weigh(self, columns: np.ndarray) -> None:
        """Take other factors of the features: the planes stay, and the best point keeps to the columns in use."""
        if not np.array_equal(columns, self.columns):
            self.columns, self.gram = columns.copy(), None
            self.u = np.where(columns > 0, self.u, 0.0)

    def _regularizer(self, u: np.ndarray) -> float:
        used = self.columns > 0
        return 0.5 * float(np.sum(u[used] ** 2 / self.columns[used]))

    def _advance(self, aim: np.ndarray, multiplier: float) -> float:
        """Go from the best point toward the program's solution as far as it pays; return the losses at that."""
        du, db = aim - self.u, multiplier - self.b
        losses = self._losses(self.u, du, self.b + _LENGTHS * db, _LENGTHS)
        values = [self._regularizer(self.u + length * du) + loss for length, loss in zip(_LENGTHS, losses, strict=True)]
        k = int(np.argmin(values))
        self.u, self.b = self.u + _LENGTHS[k] * du, self.b + float(_LENGTHS[k]) * db
        return float(losses[_WHOLE])

    def _losses(self, u: np.ndarray, du: np.ndarray, intercepts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        return self.K.losses_along(self.task, u, du, intercepts, lengths, self.loss)

    def _best_intercept(self, u: np.ndarray, near: float) -> tuple[float, float]:
        """Return the intercept that is best for the predictions Z u, and the losses with it.

        A grid at a time, the next between the neighbors of the best of the last: losses are convex in the intercept.
        Only numbers are tried that keep their digits once the offset is added.
        """
        nothing, lowest, best = np.zeros_like(u), np.inf, near
        grid = near + self.unit * _AROUND if self.has_intercept else np.zeros(1)
        for _ in range(_MOST_GRIDS):
            grid = (grid + self.offset) - self.offset
            values = self._losses(u, nothing, grid, np.zeros(grid.size))
            k = int(np.argmin(values))
            gain, before = lowest - float(values[k]), lowest
            if gain > 0.0:
                lowest, best = float(values[k]), float(grid[k])
            if gain <= _FLAT * abs(before) or grid.size == 1:
                break
            low, high = max(k - 1, 0), min(k + 1, grid.size - 1)
            inside = 0 < k < grid.size - 1
            grid = grid[low] + (grid[high] - grid[low]) * _BETWEEN if inside else best + self.unit * _AROUND
        return best, lowest

    def _add(self, u: np.ndarray, b: float) -> None:
        """Take a plane of each block at a point."""
        planes = self.K.plane(self.task, u, b, self.loss)
        new = np.array([plane[2:] for plane in planes])
        if self.gram is not None:
            cross = (new * self.columns) @ self.normals.T
            corner = (new * self.columns) @ new.T
            self.gram = np.block([[self.gram, cross.T], [cross, corner]])
        self.normals = np.vstack([self.normals, new])
        self.offsets = np.append(self.offsets, [plane[0] for plane in planes])
        self.sums = np.append(self.sums, [plane[1] for plane in planes])
        self.owner = np.append(self.owner, np.arange(len(planes)))
        self.idle = np.append(self.idle, np.zeros(len(planes), np.int64))

    def _program(self) -> tuple[np.ndarray, float]:
        """Return the best alpha, and the intercept that is the multiplier of its balance."""
        if self.gram is None:
            self.gram = (self.normals * self.columns) @ self.normals.T
        return solve_program(self.gram, self.offsets, self.owner, self.sums if self.has_intercept else None)

    def _forget(self, alpha: np.ndarray) -> None:
        """Drop the planes that have long had no weight."""
        known = alpha.size
        self.idle[:known] = np.where(alpha > 1e-8, 0, self.idle[:known] + 1)
        kept = np.flatnonzero(self.idle <= _IDLE)
        if kept.size == self.idle.size:
            return
        self.normals, self.owner, self.idle = self.normals[kept], self.owner[kept], self.idle[kept]
        self.sums, self.offsets = self.sums[kept], self.offsets[kept]
        self.gram = None if self.gram is None else self.gram[np.ix_(kept, kept)]
