"""A primal-dual interior point for MKL on a few kernels: second order in the weights and in the dual at once.

The problem of :mod:`manykernels.problem` with weights d is the saddle point

    min over d >= 0, sum_k d_k^p <= 1   max over beta   -sum_i conj_i(beta_i) - 1/2 sum_k d_k q_k(beta).

With the multipliers tau of the constraint on d, s_k of d_k >= 0, b of 1' beta = 0, and z of the bounds of beta, its
optimality conditions are

    conj'(beta) + sum_k d_k K_k beta + b - z_lower + z_upper = 0,     1' beta = 0
    s_k = tau d_k^(p-1) - q_k(beta) >= 0,   d_k s_k = 0,              sum_k d_k^p = 1
    z_lower (beta - lower) = 0,   z_upper (upper - beta) = 0.

For p = 1 they say q_k <= tau, with equality where d_k > 0; for p > 1, d_k = (q_k / tau)^(1/(p-1)). Newton's method on
them, with every product of a variable and its multiplier kept equal to a number mu that goes to 0 (Mehrotra's
predictor and corrector), takes one factorization for each iteration and reaches full accuracy in a dozen or two,
whatever C and the kernels are. Duplicate kernels do no harm: the s_k keep the linear system regular.

A mixed norm (p = 1, kernels in groups) has one multiplier tau_j for each group, the largest form M_j of the group at
the optimum, and in place of the sum of all weights those of the groups: sum_(k in j) d_k = eta_j(tau), the derivative
of the squared dual norm, and its own derivative enters the system.

For q > 1 the squared dual norm is concave in the M_j, and convex in their roots u_j: the problem is

    minimize sum_i conj_i(beta_i) + 1/2 ||u||_2t^2   subject to   q_k(beta) <= u_j^2 for the kernels k of group j,

1 <= 2t < 2, with a cone for each kernel. A group of low rank may end at the apex, u_j = 0: with q = inf where it is not
among the largest, its weights grow without bound. The slack tau_j - q_k, linearized, is true of half the way to the
apex at most, while r_k = u_j - q_k / u_j is linear on every ray to it. So the unknowns of a group are u_j,
w_k = d_k u_j in place of the weights, which stay bounded, and r_k in place of s_k (w_k r_k = d_k s_k), with

    sum_(k in j) w_k (1 + q_k / u_j^2) / 2 = the derivative of 1/2 ||u||_2t^2 by u_j.

As u_j goes to 0, Newton's method holds on an ever shorter way. Hence the apex is rounded: below a level delta, u^2t is
continued by its tangent in u^2. There the weights of a group sum to a constant, as with q = 1, and its unknowns are
tau_j, d_k and s_k again. The machine with given weights is no trouble to Newton's method, so that delta, and with it
what the rounding adds to the gap, falls by a factor each time the gap has come down to that; mu follows, not faster.

A penalty strength/p sum_k d_k^p in place of the constraint leaves the same conditions with tau = 2 strength and without
the equation for the sum.

A loss whose conjugate has a kink at 0 (epsilon-insensitive) is split: beta = x_1 - x_2 with both parts >= 0. In general
beta = sum_j sign_j x_j. The linear system of a step is in :mod:`manykernels.outer.interior_system`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from manykernels.compute.combined import CombinedMatrix
from manykernels.core.results import Certificate, Iterate, Machine
from manykernels.norms import MixedNorm
from manykernels.outer.interior_system import NewtonSystem, Unknowns
from manykernels.problem import Problem

_TO_BOUNDARY = 0.995
_LEAST_STEP = 1e-9
# A step with the whole second-order correction is at least so long, beside one with a part of it, and lets mu grow by
# this at most.
_LEAST_WHOLE, _MOST_GROWTH = 0.01, 100.0
_LEAST_CONIC = 0.1  # the same with cones, whose products bend more
# So many steps without a smaller gap are enough: the first ones may only center the iterate.
_PATIENCE = 25
# The first point keeps this distance from the bounds, as a part of the range that beta uses.
_FIRST_MARGIN = 0.1
_WORLDS_APART = 1e-4
_LEAST_ROOM = 1e-290  # between bounds, and of a scale, so that it can be divided by
# The first tau of a group is this multiple of its largest form, which counts as at least this part of the largest.
_FIRST_LEVEL, _LEAST_LEVEL = 1.1, 1e-8
_VANISHING = 0.5
_LEAST_FALL = 0.03
# With q > 1: the first apex, as a part of the largest u, how much smaller each next one is, once the gap is at most
# that multiple of what the rounding adds, and the last one, as a part of the tolerance.
_FIRST_APEX, _NEXT_APEX, _SHARPEN, _LAST_APEX = 0.03, 0.1, 2.0, 0.02
_MOST_FALL = 0.7  # of u in a step
# Products stay at least these parts of what the rounding adds to the gap and, where nothing is rounded, of the gap.
_CENTER_APEX, _CENTER_GAP = 0.1, 0.03
_LEAST_PRODUCT = 0.1  # of a weight and its slack, beside the mean of all
_LEAST_TRUE = 0.1  # of the slack foreseen: less than that, and it stays an unknown of its own
# With the last apex, so many steps that do not bring the gap below this part of the best are enough.
_LAST_PATIENCE, _PROGRESS = 8, 0.7
_IMBALANCE = 1e-10  # of 1' beta, beside the size of beta: more proves nothing
# A kernel that joins gets at least this slack, as a part of tau: it may violate its constraint at first.
_NEW_SLACK = 0.1
# For p > 1 a kernel that joins may take much of the weight at once: with more than this, the iterate is centered anew.
_NEW_SHARE = 0.05
# A coefficient is at its bound when its distance, in the size of the coefficients, is this part of its multiplier.
_CLEAR = 0.1


@dataclass(frozen=True)
class InteriorSolution:
    """The best iterate on the chosen kernels.

    Its weights, slacks s and the multiplier tau of each kernel; its machine; the machine's coefficients with those that
    tend to a bound put there; its certificate on these kernels alone.
    """

    weights: np.ndarray
    tau: np.ndarray
    slack: np.ndarray
    machine: Machine
    snapped: np.ndarray
    certificate: Certificate


class InteriorPoint:
    """The method on a problem whose bank holds a few kernels; it can be stopped, given other kernels, and go on.

    Parameters
    ----------
    problem : Problem
    p : float in [1, inf)
        The norm's p.
    start : Machine
        Where to begin, pulled inside the bounds.
    weights : ndarray of shape (n_kernels,)
    fixed_tau : float, optional
        Twice the strength of a penalty of the weights; without it they are constrained.
    tol : float
        The gap that is wanted in the end: it bounds the weights of a group whose forms vanish (a mixed norm).
    workspace : CombinedMatrix, optional
        Where combined kernels and their factors are written.
    """

    def __init__(
        self,
        problem: Problem,
        p: float,
        start: Iterate,
        weights: np.ndarray,
        fixed_tau: float | None = None,
        tol: float = 1e-6,
        workspace: CombinedMatrix | None = None,
    ) -> None:
        self.problem, self.p, self.fixed_tau = problem, p, fixed_tau
        self.last_apex = float(np.clip(_LAST_APEX * tol, 1e-10, 1e-2))
        self.least = float(np.clip((_VANISHING * tol) ** 2, 1e-16, 1e-4))
        self._take_groups()
        parts = problem.loss.dual_parts(problem.y, problem.C)
        self.sign = np.array([sign for sign, _, _ in parts])[:, None, None]
        self.lower = np.array([np.broadcast_to(lower, problem.y.shape) for _, lower, _ in parts])
        self.upper = np.array([np.broadcast_to(upper, problem.y.shape) for _, _, upper in parts])
        center = problem.loss.center(problem.C)
        self.middle = np.zeros(problem.y.shape) if center is None else center
        self.has_lower, self.has_upper = np.isfinite(self.lower), np.isfinite(self.upper)
        self.n_bounds = int(self.has_lower.sum() + self.has_upper.sum())
        self.K = problem.bank.workspace() if workspace is None else workspace
        self.n_iter = 0
        self.delta, self.sharp = 0.0, np.zeros(self.n_groups, bool)
        self.point, self.products = self._first_point(start, weights)

    def _take_groups(self) -> None:
        levels = self.problem.norm.levels()
        assert levels is not None
        self.mixed: MixedNorm | None = levels.groups
        self.owner = np.zeros(self.problem.bank.n_kernels, np.int64) if self.mixed is None else self.mixed.owner
        self.n_groups = int(self.owner.max()) + 1
        self.conic = self.mixed is not None and self.mixed.q > 1

    def roots(self, point: Unknowns) -> np.ndarray:
        """Return for each kernel what its d and s are measured by: the u of a sharp group, else 1."""
        return np.where(self.sharp, point.tau, 1.0)[self.owner]

    def weights(self, point: Unknowns) -> np.ndarray:
        """Return the weights d_k of the kernels."""
        return point.d / self.roots(point)

    def levels(self, point: Unknowns) -> np.ndarray:
        """Return what the forms of each group are bounded by."""
        return np.where(self.sharp, point.tau**2, point.tau)

    def group_weights(self, tau: np.ndarray) -> np.ndarray:
        """Return what the weights of each group sum to."""
        assert self.mixed is not None
        return self.mixed.group_weights(tau, self.least)

    def bent(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and Hessian of half the rounded squared dual norm by u (sharp groups) and tau (others)."""
        assert self.mixed is not None
        t, unit = self.mixed.exponent, self.unit
        e, delta = 2.0 * t, self.delta / unit
        u = np.where(self.sharp, y / unit, delta)
        values = np.where(self.sharp, u**e, delta**e * (1.0 - t + t * y / (unit * delta) ** 2))
        slopes = np.where(self.sharp, e * u ** (e - 1.0) / unit, t * delta ** (e - 2.0) / unit**2)
        bends = np.where(self.sharp, e * (e - 1.0) * u ** (e - 2.0) / unit**2, 0.0)
        S = float(values.sum())
        if not S > 0.0:
            raise LinAlgError("outside the domain")
        first, second = S ** (2.0 / e - 1.0) / e, (2.0 / e - 1.0) * S ** (2.0 / e - 2.0) / e
        return unit**2 * first * slopes, unit**2 * (first * np.diag(bends) + second * np.outer(slopes, slopes))

    def _rounding(self, point: Unknowns) -> float:
        """Return what the rounding of the groups at the apex adds to the gap, about."""
        if not self.conic or self.sharp.all():
            return 0.0
        assert self.mixed is not None
        return self.delta * float(np.sqrt(self.mixed.dual_square(np.maximum(self.levels(point), 0.0)[self.owner])))

    def _least_mu(self) -> float:
        """Return what mu should not fall below yet, or it would vanish before the residuals."""
        point, certificate = self.point, self._solution().certificate
        rounding, gap = self._rounding(point), certificate.primal - certificate.dual
        left = _CENTER_APEX * rounding if rounding > 0.0 else _CENTER_GAP * gap
        return left / (point.d.size + self.n_bounds)

    def _sharpen(self) -> None:
        """Let the rounding of the apex follow the gap."""
        self._sort(self.delta)
        rounding, certificate = self._rounding(self.point), self._solution().certificate
        near = certificate.primal - certificate.dual < _SHARPEN * rounding * self.n_groups
        if near and rounding > 0.0 and not self._is_last_apex():
            self._sort(self.delta * _NEXT_APEX)

    def _is_last_apex(self) -> bool:
        return self.delta <= self.last_apex * self.unit

    def _sort(self, delta: float) -> None:
        """Tell sharp groups from those at an apex of size delta, and measure each in its own unknowns.

        The weights of a group at the apex are known to sum to a constant: with a smaller apex they are larger.
        """
        assert self.mixed is not None
        point = self.point
        levels, weights, slacks = self.levels(point), self.weights(point), point.s * self.roots(point)
        before = self.delta, self.sharp, point.tau
        self.delta, self.sharp = delta, levels > delta**2
        point.tau = np.where(self.sharp, np.sqrt(np.maximum(levels, 0.0)), levels)
        try:
            total = 2.0 * self.bent(point.tau)[0]
        except LinAlgError:
            self.delta, self.sharp, point.tau = before  # levels below 0: no step will be found from there
            return
        weights = weights * np.where(self.sharp, 1.0, total / self.mixed.sums(weights))[self.owner]
        point.d, point.s = weights * self.roots(point), slacks / self.roots(point)

    def group_largest(self, values: np.ndarray) -> np.ndarray:
        """Return the largest value of the kernels of each group."""
        out = np.full(self.n_groups, -np.inf)
        np.maximum.at(out, self.owner, values)
        return out

    def run(self, tol: float, max_iter: int = 100) -> InteriorSolution:
        """Go on until the gap on these kernels is at most ``tol``, or no step is left; return the best iterate."""
        best, since, patience = self._solution(), 0, _LAST_PATIENCE if self.conic else _PATIENCE
        for _ in range(max_iter):
            if best.certificate.gap <= tol or since == patience or not self._advance():
                break
            current, since = self._solution(), since + 1
            progress = _PROGRESS if self.conic else 1.0
            if current.certificate.gap < progress * best.certificate.gap or (self.conic and not self._is_last_apex()):
                since = 0
            best = min(best, current, key=lambda solution: solution.certificate.gap)
        return best

    def exchange(self, problem: Problem, kept: np.ndarray, quad_forms: np.ndarray) -> None:
        """Go on with other kernels, at the same beta.

        ``kept[k]`` is the place that kernel k of the new bank had in the old one, -1 for a new kernel;
        ``quad_forms`` are those of the new bank at the current beta. A new kernel gets the weight that makes its
        product d_k s_k equal to the mean of the others, so that the iterate stays as central as it was. For p = 1 that
        weight is small and grows later. For p > 1 it is near what the kernel will have, which may move everything: with
        products that are small already, there would be no room for the steps that this takes, so the iterate is pulled
        inside its bounds as at the beginning.
        """
        point, old, mu = self.point, kept >= 0, self.omega * self.complementarity(self.point)
        known = np.where(old, self.levels(point)[self.owner[kept]], -np.inf)
        weights, slacks = self.weights(point), point.s * self.roots(point)
        self.problem = problem
        self._take_groups()
        largest = self.group_largest(quad_forms)
        tau = self.group_largest(known)
        floor = _LEAST_LEVEL * (float(largest.max()) or 1.0)
        point.tau = np.where(np.isfinite(tau), tau, _FIRST_LEVEL * np.maximum(largest, floor))
        level = np.maximum(np.maximum(point.tau, largest), floor)[self.owner]
        s = np.maximum(point.tau[self.owner] - quad_forms, _NEW_SLACK * level)
        if self.p > 1:
            s = mu / np.maximum((quad_forms / level) ** (1 / (self.p - 1)), mu / level)
        d = mu / s
        d[old], s[old] = weights[kept[old]], slacks[kept[old]]
        point.d, point.s = d if self.conic else self._scaled(d, point.tau), s
        self.sharp = np.zeros(self.n_groups, bool)
        if self.conic:
            self._sort(self.delta)
        self.products = self._products(point.x)
        if self.p > 1 and np.sum(point.d[~old] ** self.p) > _NEW_SHARE:
            self.center()

    def center(self) -> None:
        """Pull the iterate inside its bounds as at the beginning: products that outran the rest leave no step."""
        weights = self.weights(self.point)
        field = np.einsum("k,tkn->tn", weights, self.products)
        self.point, self.products = self._first_point(Iterate(self.beta(self.point.x), field, self.point.b), weights)

    def complementarity(self, point: Unknowns) -> float:
        """Return the mean product of a variable and its multiplier, those of the weights in units of ``omega``."""
        lower = (point.x - self.lower)[self.has_lower] @ point.z_lower[self.has_lower]
        upper = (self.upper - point.x)[self.has_upper] @ point.z_upper[self.has_upper]
        return float(point.d @ point.s / self.omega + lower + upper) / (point.d.size + self.n_bounds)

    def beta(self, x: np.ndarray) -> np.ndarray:
        """Return the dual coefficients, (n_tasks, n_samples), that the parts make up."""
        return (self.sign * x).sum(axis=0)

    def imbalance(self, beta: np.ndarray) -> np.ndarray:
        """Return by how much the coefficients of each task miss the sum that they have beside an intercept."""
        return (beta - self.middle).sum(axis=1)

    def _products(self, x: np.ndarray) -> np.ndarray:
        """Return K_k beta_t, shape (n_tasks, n_kernels, n_samples): the one pass of an iteration."""
        return np.array([self.problem.bank.matvecs(beta) for beta in self.beta(x)])

    def _solution(self) -> InteriorSolution:
        point, beta, products = self.point, self.beta(self.point.x), self.products
        off = np.abs(self.imbalance(beta)) > _IMBALANCE * np.abs(beta).sum(axis=1)
        if self.problem.fit_intercept and np.any(off):  # rounding: no dual point yet
            beta = np.array([self.problem.feasible(row, t) for t, row in enumerate(beta)])
            products = np.array([self.problem.bank.matvecs(row) for row in beta])
        quad_forms = np.maximum(np.einsum("tkn,tn->k", products, beta), 0.0)
        weights = self.weights(point)
        machine = self.problem.machine(beta, np.einsum("k,tkn->tn", weights, products))
        return InteriorSolution(
            weights=weights,
            tau=self.levels(point)[self.owner],
            slack=point.s * self.roots(point),
            machine=machine,
            snapped=self._snapped(beta),
            certificate=self.problem.certificate(weights, machine, quad_forms),
        )

    def _snapped(self, beta: np.ndarray) -> np.ndarray:
        """Return beta with the parts that tend to a bound put there: of a variable and its multiplier one goes to 0."""
        point, least = self.point, _CLEAR * self._scale(beta)
        x = np.where(self.has_lower & (point.x - self.lower < point.z_lower * least), self.lower, point.x)
        x = np.where(self.has_upper & (self.upper - point.x < point.z_upper * least), self.upper, x)
        return self.beta(x)

    @staticmethod
    def _scale(beta: np.ndarray) -> np.ndarray:
        return np.mean(np.abs(beta), axis=-1, keepdims=True) + 1e-300

    # -- the first point ----------------------------------------------------------------------------------------

    def _first_point(self, start: Iterate, weights: np.ndarray) -> tuple[Unknowns, np.ndarray]:
        """Return a point inside the bounds near the given machine, and its products."""
        x = self._inside(start.beta)
        products = self._products(x)
        quad_forms = np.einsum("tkn,tn->k", products, self.beta(x))
        level = np.maximum(self.group_largest(quad_forms), _LEAST_LEVEL * (float(quad_forms.max()) or 1.0))
        unit = weights.max(initial=0.0) if self.fixed_tau else weights.size ** (-1 / self.p)
        tau = np.full(1, self.fixed_tau) if self.fixed_tau else _FIRST_LEVEL * level
        d = self._scaled(np.maximum(weights, 1e-3 * (unit or 1.0)), tau)
        s = np.maximum(tau[self.owner] * d ** (self.p - 1) - quad_forms, 0.1 * level[self.owner])
        slopes = self.slopes(x) + self.sign * (np.einsum("k,tkn->tn", d, products) + start.intercept[:, None])
        mu = float(np.mean(d * s))
        self.omega = self._relative_scale(mu, slopes, x)
        z_lower = self._first_multipliers(+slopes, x - self.lower, self.has_lower, mu / self.omega)
        z_upper = self._first_multipliers(-slopes, self.upper - x, self.has_upper, mu / self.omega)
        point = Unknowns(x, d, s, tau, start.intercept.copy(), z_lower, z_upper)
        return self._sorted(point), products

    def _sorted(self, point: Unknowns) -> Unknowns:
        """Return the first point in the unknowns of its groups."""
        self.sharp = np.zeros(self.n_groups, bool)
        if self.conic:
            self.point = point
            self.unit = float(np.sqrt(point.tau.max()))
            self._sort(_FIRST_APEX * self.unit)
        return point

    def _scaled(self, d: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Return the weights on the boundary of their constraint, if they have one."""
        if self.mixed is not None:
            return d * (self.group_weights(tau) / self.mixed.sums(d))[self.owner]
        return d if self.fixed_tau else d / np.sum(d**self.p) ** (1 / self.p)

    def _relative_scale(self, mu: float, slopes: np.ndarray, x: np.ndarray) -> float:
        """Return the scale of the products d s beside those of the bounds, 1 unless they are worlds apart.

        With a tiny C the regularizer is negligible beside the losses, and one mu for both would drown it.
        """
        room = np.minimum(
            np.where(self.has_lower, x - self.lower, np.inf), np.where(self.has_upper, self.upper - x, np.inf)
        )
        bounded = np.isfinite(room)
        if not bounded.any():
            return 1.0
        natural = float(np.mean(np.abs(slopes[bounded]) * room[bounded]))
        return 1.0 if mu >= _WORLDS_APART * natural or not mu > 0.0 else max(mu / natural, _LEAST_ROOM)

    @staticmethod
    def _first_multipliers(slopes: np.ndarray, room: np.ndarray, bounded: np.ndarray, mu: float) -> np.ndarray:
        """Return what the slopes ask for, as far as the products with the room to the bound stay near ``mu``."""
        central = mu / np.where(bounded, np.maximum(room, _LEAST_ROOM), 1.0)
        return np.where(bounded, np.clip(slopes, 0.1 * central, 100.0 * central), 0.0)

    def _inside(self, beta: np.ndarray) -> np.ndarray:
        """Return parts x strictly inside their bounds, with 1' beta = 0 for each task, near beta."""
        x = np.maximum(self.sign * beta, 0.0) if self.sign.size > 1 else beta[None].copy()
        room = np.where(self.has_lower & self.has_upper, self.upper - self.lower, np.inf)
        margin = _FIRST_MARGIN * np.minimum(room, 10 * self._scale(beta))
        x = np.where(self.has_lower, np.maximum(x, self.lower + margin), x)
        x = np.where(self.has_upper, np.minimum(x, self.upper - margin), x)
        return self._balanced(x - self.middle) + self.middle if self.problem.fit_intercept else x

    def _balanced(self, x: np.ndarray) -> np.ndarray:
        """Shrink the parts of the side with more weight, so that 1' beta = 0 for each task."""
        flow = self.sign * x
        up, down = np.maximum(flow, 0.0).sum(axis=(0, 2)), np.maximum(-flow, 0.0).sum(axis=(0, 2))
        target = np.minimum(up, down)
        rise = np.divide(target, up, out=np.ones_like(up), where=up > 0)[None, :, None]
        fall = np.divide(target, down, out=np.ones_like(down), where=down > 0)[None, :, None]
        return np.where(flow > 0, x * rise, x * fall)

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """Return the derivatives of the conjugates in the parts."""
        loss, y, C = self.problem.loss, self.problem.y, self.problem.C
        return np.array([loss.dual_slope(sign, y, part, C) for sign, part in zip(self.sign.ravel(), x, strict=True)])

    def curvatures(self, x: np.ndarray) -> np.ndarray:
        """Return their second derivatives."""
        loss, y, C = self.problem.loss, self.problem.y, self.problem.C
        return np.array([loss.dual_curvature(y, part, C) for part in x])

    # -- one iteration ------------------------------------------------------------------------------------------

    def _advance(self) -> bool:
        """Make a predictor-corrector step; return whether there was one worth making."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # a step that is not finite is not made
            return self._step()

    def _step(self) -> bool:
        point = self.point
        try:
            newton = NewtonSystem(self)
            mu = self.complementarity(point)
            if not mu > 0.0:
                return False
            step = self._direction(newton, mu)
        except LinAlgError:
            return False
        length = min(1.0, _TO_BOUNDARY * self._longest(step))
        if not length > _LEAST_STEP or not np.all(np.isfinite(step.x)) or not np.all(np.isfinite(step.d)):
            return False
        self.point = point.plus(length, step)
        if self.mixed is not None and not self.conic:
            # A mixed norm needs every tau to be positive: where one falls, it falls by a factor.
            fall = np.exp(length * np.minimum(step.tau, 0.0) / point.tau)
            self.point.tau = np.where(step.tau < 0, point.tau * np.maximum(fall, _LEAST_FALL), self.point.tau)
        self.products = self._products(self.point.x)
        if self.conic:
            self._true_slacks()
            self._sharpen()
        self.n_iter += 1
        return True

    def _true_slacks(self) -> None:
        """Take the slacks that the forms leave, except where those are much below what was foreseen."""
        point, u = self.point, self.roots(self.point)
        quad_forms = np.einsum("tkn,tn->k", self.products, self.beta(point.x))
        point.s = np.maximum(self.levels(point)[self.owner] / u - quad_forms / u, _LEAST_TRUE * point.s)
        # A product far below the others would block all steps from now on.
        least = _LEAST_PRODUCT * self.omega * self.complementarity(point)
        point.s = np.maximum(point.s, least / point.d)

    def _direction(self, newton: NewtonSystem, mu: float) -> Unknowns:
        """Return the predictor with its correction, as much of it as is true of the step that can be made.

        The correction is the second-order error of the whole predictor. Where only a part of that can be made, it may
        be far too large, and steps with it may go round in a circle: then its share is that of the part, squared.
        """
        point = self.point
        affine = newton.direction(0.0, None)
        reach = self._longest(affine)
        target = mu * (self.complementarity(point.plus(reach, affine)) / mu) ** 3
        if self.conic:
            target = max(target, min(mu, self._least_mu()))
        whole, least = newton.direction(target, affine), _LEAST_CONIC if self.conic else _LEAST_WHOLE
        length = self._longest(whole)
        grows = not self.complementarity(point.plus(min(1.0, _TO_BOUNDARY * length), whole)) <= _MOST_GROWTH * mu
        if length >= least and not grows:
            return whole
        shortened = newton.direction(target, affine, reach**2)
        return shortened if grows or length < least * self._longest(shortened) else whole

    def _longest(self, step: Unknowns) -> float:
        """Return the longest step, at most 1, that keeps every variable and multiplier non-negative."""
        point, low, high = self.point, self.has_lower, self.has_upper
        return min(
            _longest(point.d, step.d),
            _longest(point.s, step.s),
            _longest(_MOST_FALL * point.tau[self.sharp], step.tau[self.sharp]),
            _longest((point.x - self.lower)[low], step.x[low]),
            _longest((self.upper - point.x)[high], -step.x[high]),
            _longest(point.z_lower[low], step.z_lower[low]),
            _longest(point.z_upper[high], step.z_upper[high]),
        )


def _longest(values: np.ndarray, changes: np.ndarray) -> float:
    falling = changes < 0
    return float(np.min(-values[falling] / changes[falling], initial=1.0))
