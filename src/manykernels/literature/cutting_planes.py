"""Cutting planes of J, the value of the machine as a function of the weights, and the lowest point of their maximum.

Any feasible beta bounds J from below, by the dual of the machine:

    J(d) >= c - s'd,     c = -sum_i conj_i(beta_i),   s_k = q_k(beta) / 2

The weights that minimize the highest of the planes are those of a linear program for p = 1. For p > 1 let x >= 0 be the
shares of the planes, sum x = 1. The minimum over ||d||_p <= 1 of the planes mixed in these shares is known, so that
the problem is, with 1/p + 1/p* = 1,

    maximize over x    c'x - ||S'x||_{p*},      attained at  d_k proportional to v_k^(p*-1),   v = S'x

Its second-order expansion at the last x is a quadratic program over the shares; with a line search, a few of them
suffice (Kloft et al., 2009, expand the constraint ||d||_p <= 1 instead). Any shares give a true lower bound.

Far from the optimum J may be larger by many powers of ten, and its planes steep. With t beta in place of beta, t < 1,
the plane is at least t c - t^2 s'd, since the conjugate is convex and 0 at 0; where the plane touched J it is still as
high as t J. So t is chosen to make it as high as a hundred times the best value, which keeps the weights away as well.

The machine whose beta is the mean of the betas with these shares has a dual value no lower than the bound, since the
dual is concave: where J has a kink at the optimum, it is the machine that the certificate needs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linprog

from manykernels.core.results import Iterate
from manykernels.literature.weight_search import SearchPoint
from manykernels.norms.lp import power_norm
from manykernels.outer.quadratic_model import best_weights
from manykernels.problem import Problem

_SHARE, _LEAST_NEEDED = 0.5, 1e-11
_MET, _PATIENCE = 1e-9, 20
_EXPANSIONS = 60
_ENOUGH = 1e-12  # the gain that an expansion promises, in the unit of the upper bound, below which it ends
_HIGH = 100.0  # times the upper bound, which is as high as a plane has to be
_ARMIJO, _MOST_HALVINGS = 0.1, 40
_LEAST = 1e-12  # of the largest entry of v: the second derivative of the norm may be infinite at 0
_EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class CuttingPlanes:
    """The planes so far.

    Attributes
    ----------
    upper, lower : float
        The optimum lies between these.
    best : SearchPoint
        Where J is lowest so far.
    shares : ndarray of shape (n_planes,)
        The shares of the planes at the lowest point.
    """

    def __init__(self, problem: Problem, p: float) -> None:
        self.problem, self.p = problem, p
        self.upper, self.lower = np.inf, 0.0
        self.constants, self.heights = np.empty(0), np.empty(0)
        self.slopes = np.empty((0, problem.bank.n_kernels))
        self.shares = np.empty(0)
        self.n_met = 0
        self._betas: list[np.ndarray] = []
        self._intercepts: list[np.ndarray] = []

    def add(self, point: SearchPoint) -> None:
        """Take in the plane of a machine."""
        beta, machine = point.machine.beta, point.machine
        height = machine.dual_objective
        self.heights = np.append(self.heights, height)
        self.constants = np.append(self.constants, height + 0.5 * float(np.sum(beta * machine.decision)))
        self.slopes = np.vstack([self.slopes, 0.5 * point.quad_forms])
        self.shares = np.append(self.shares, 0.0)
        self._betas.append(beta)
        self._intercepts.append(machine.intercept)
        if point.value < self.upper:
            self.best, self.upper = point, point.value

    def lowest(self) -> np.ndarray | None:
        """Return the weights where the highest plane is lowest; set the lower bound and the shares.

        None where slopes are too far apart for a linear program in doubles.
        """
        lowest = self._by_linear_program() if self.p == 1 else self._by_expansions()
        if lowest is None:
            return None
        weights, bound = lowest
        self.lower = max(self.lower, bound)
        self.n_met += self.upper - self.lower <= _MET * self.unit
        return weights

    @property
    def are_at_their_end(self) -> bool:
        """Whether the bounds met long ago: the programs have no more digits, and d has half as many."""
        return self.n_met > _PATIENCE

    def mean_machine(self, point: SearchPoint) -> Iterate:
        """Return a machine with the mean beta, to start from; its decision values are those of ``point``."""
        shares = self.shares * self._scales()
        active = np.flatnonzero(shares)
        beta = sum((shares[i] * self._betas[i] for i in active), np.zeros_like(point.machine.beta))
        intercept = sum((shares[i] * self._intercepts[i] for i in active), np.zeros(beta.shape[0]))
        return Iterate(beta, point.machine.decision, intercept)

    @property
    def unit(self) -> float:
        """The upper bound, or 1 if that is 0."""
        return self.upper if self.upper > 0 else 1.0

    @property
    def needed(self) -> float:
        """The relative gap that the next machine must reach: a rough one would cut nothing off."""
        return max(_SHARE * (self.upper - self.lower) / self.unit, _LEAST_NEEDED)

    def _scales(self) -> np.ndarray:
        """Return the factor t of each plane."""
        return np.minimum(1.0, _HIGH * self.unit / np.maximum(self.heights, self.unit))

    def planes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return S and c of all planes, none too steep, in the unit of the upper bound."""
        scales = self._scales()
        return (scales**2 / self.unit)[:, None] * self.slopes, scales / self.unit * self.constants

    def _by_linear_program(self) -> tuple[np.ndarray, float] | None:
        """Minimize theta over the simplex, with all planes below theta; None if that cannot be solved."""
        S, c = self.planes()
        m = S.shape[1]
        solution = linprog(
            np.append(np.zeros(m), 1.0),
            A_ub=-np.column_stack([S, np.ones(c.size)]),
            b_ub=-c,
            A_eq=np.append(np.ones(m), 0.0)[None],
            b_eq=[1.0],
            bounds=[(0.0, None)] * m + [(None, None)],
            method="highs",
            options=_EXACT,
        )
        if solution.x is None:
            return None
        weights = np.maximum(solution.x[:m], 0.0)
        shares = np.maximum(-solution.ineqlin.marginals, 0.0)
        self.shares = shares / shares.sum()
        return weights / weights.sum(), self.unit * _bound(self.shares, S, c, np.inf)

    def _by_expansions(self) -> tuple[np.ndarray, float]:
        """Maximize the concave function of the shares by quadratic programs."""
        S, c = self.planes()
        power = 1.0 if np.isinf(self.p) else self.p / (self.p - 1)
        shares = self.shares / self.shares.sum() if self.shares.any() else np.eye(c.size)[-1]
        value = _bound(shares, S, c, power)
        # The function is proportional to the shares: where it is positive, sum x <= 1 can replace sum x = 1.
        lift = max(0.0, 1.0 - value)
        for _ in range(_EXPANSIONS):
            gradient, hessian = _derivatives(shares, S, c + lift, power)
            try:
                step = _simplex(best_weights(gradient, hessian, shares, p=1)) - shares
            except np.linalg.LinAlgError:
                break  # the shares so far also give a bound and weights
            better = _searched(shares, step, value, float(gradient @ step), lambda x: _bound(x, S, c, power))
            if better is None:
                break
            shares, value = better
        self.shares = shares
        return _conjugate_weights(shares @ S, power), self.unit * value


def _simplex(shares: np.ndarray) -> np.ndarray:
    return shares / shares.sum()


def _searched(
    shares: np.ndarray, step: np.ndarray, value: float, slope: float, bound: Callable[[np.ndarray], float]
) -> tuple[np.ndarray, float] | None:
    """Halve a step until it raises the bound by enough, and return that point; None if none does."""
    for _ in range(_MOST_HALVINGS):
        if not -slope > _ENOUGH:
            return None
        after = bound(shares + step)
        if after >= value - _ARMIJO * slope:
            return shares + step, after
        step, slope = 0.5 * step, 0.5 * slope
    return None


def _bound(shares: np.ndarray, S: np.ndarray, c: np.ndarray, power: float) -> float:
    return float(c @ shares) - power_norm(shares @ S, power)


def _conjugate_weights(v: np.ndarray, power: float) -> np.ndarray:
    """Return the gradient of the norm: the weights of length 1 with the largest inner product with v."""
    size = power_norm(v, power)
    return (v / size) ** (power - 1.0) if size > 0 else np.full(v.size, v.size ** (1.0 / power - 1.0))


def _derivatives(shares: np.ndarray, S: np.ndarray, c: np.ndarray, power: float) -> tuple[np.ndarray, np.ndarray]:
    """Return gradient and Hessian of minus the bound."""
    v = shares @ S
    size, weights = power_norm(v, power), _conjugate_weights(v, power)
    gradient = S @ weights - c
    if size == 0.0:
        return gradient, np.zeros((c.size, c.size))
    curvature = np.maximum(v / size, _LEAST) ** (power - 2.0)
    along = S @ weights
    hessian = (power - 1.0) / size * ((S * curvature) @ S.T - np.outer(along, along))
    return gradient, 0.5 * (hessian + hessian.T)
