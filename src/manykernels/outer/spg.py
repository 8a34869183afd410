"""Spectral projected gradient for any differentiable kernel and penalty (SPG-GMKL: Jain, Vishwanathan, Varma, 2012).

    minimize over the allowed weights d   W(d) = J(d) + r(d),    J(d) = max over beta of the machine's dual with K(d)

By Danskin's theorem dJ/dd_k = -1/2 beta' (dK/dd_k) beta at the machine's solution beta, so a value and a gradient cost
one inner solve and one pass of the forms beta' (dK/dd_k) beta, which for a sum of kernels are the quadratic forms.
Three parts make it fast, and each can be switched off:

    spectral        the step length is that of Barzilai and Borwein, lambda = |dd|^2 / (dd' dg), clipped; the
                    direction is that to the projection of d - lambda g (equations 6 to 8 of the paper)
    non_monotone    a step is taken if it lowers a running average of the values by enough (10 to 12); the memory eta
                    of the average grows by 0.025 where the quadratic model was right, and shrinks where it was wrong
    tune_precision  the inner solver begins roughly, and its tolerance falls with the gap, the projected gradient and
                    the step (13; where several of its cases hold, the tightest counts, and it never grows)

Where the penalty's proximal map is known, the direction goes to prox(d - lambda grad J) instead, with the same lambda
for the smooth part J alone: the curvature of d^p near d = 0, which is infinite for p < 2, then shortens no step. For a
constraint and for p = 1 this is the projection. It too can be switched off.

With the l1 penalty, which leaves few kernels with weights of very different sizes, step and step length are measured in
the metric diag(1 / d), with d not below a hundredth of the largest weight: a weight then changes by a part of itself.
That takes a tenth of the steps.

It stops by the relative duality gap where there is one, by the norm of the projected gradient otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.results import OVERFLOWS, UNKNOWN, Certificate, Machine, Result
from manykernels.core.solver import Solver
from manykernels.losses import TotalLoss
from manykernels.norms import Norm
from manykernels.norms.base import Projection
from manykernels.outer.needs import for_inner_solver
from manykernels.outer.recorder import Recorder
from manykernels.problem import Problem

_SHORTEST_LENGTH, _NEAR, _FAR = 1e-30, 10.0, 1e6
ENOUGH = 1e-4  # gamma: of the decrease that the slope promises
_MEMORY = (0.1, 1.0)  # eta
_MEMORY_STEP = 0.025
_GOOD, _BAD = (0.75, 1.25), (0.25, 1.75)  # decrease over that of the model
_SHORTEST = 1e-8
_FINE = 1e-6  # the inner tolerance without tuning
_LEAST_UNIT = 40.0  # with tol = 1e-3, the projected gradient to reach is the paper's 0.04 where W is small
_FINEST = 1e-10
_SMALL = 1e-2
MOST_HALVINGS = 60
# More steps in a row than this that leave the value as it is, to the last bit, are rounding.
_STILL = 5


@dataclass(frozen=True)
class Options:
    """What is switched on, the longest spectral step, and the projected gradient to reach where there is no gap.

    ``longest`` is by default the paper's 10 where the problem may have several minima, so that no step goes to another
    world, and 1e6 for a sum of kernels, which has one: there 10 is short where the best weights are in the hundreds.
    ``gradient_tol`` is tol * max(40, W) by default; the paper's is 0.04.
    """

    spectral: bool = True
    non_monotone: bool = True
    tune_precision: bool = True
    proximal: bool = True
    scaled: bool = True
    longest: float | None = None
    gradient_tol: float | None = None


def spg(
    problem: Problem,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    start: np.ndarray | None = None,
    random_state: Any = None,
    options: Options | None = None,
) -> Result:
    """Run the method.

    Parameters
    ----------
    problem : Problem
        Its bank may be a sum of kernels or another differentiable combination.
    tol : float
        Relative duality gap to reach; where there is none, the projected gradient's largest entry beside max(40, W).
    max_iter : int
        Most steps.
    start : ndarray of shape (n_kernels,), optional
        Weights to start from.
    random_state : None, int or Generator
        Where given, and ``start`` is not, the first weights are random; else they are equal.
    options : Options, optional

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpPenalty
    >>> from manykernels.outer.spg import spg
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]), X)
    >>> problem = Problem(bank, Hinge(), LpPenalty(1), np.sign(np.sin(3 * X.T)), np.ones((1, 30)))
    >>> spg(problem).converged
    True
    """
    return ProjectedGradient(problem, tol, options or Options()).run(max_iter, start, random_state)


@dataclass(frozen=True)
class Trial:
    """Weights with the value W, the gradients of J and of the penalty, the machine, and the certificate."""

    weights: np.ndarray
    machine: Machine
    value: float
    smooth: np.ndarray
    pull: np.ndarray
    certificate: Certificate

    @property
    def gradient(self) -> np.ndarray:
        return self.smooth + self.pull


def refuses(norm: Norm, loss: TotalLoss) -> str | None:
    """Return what projected gradients cannot do."""
    if norm.projection() is None:
        return f"needs weights that can be projected; those of {norm!r} cannot."
    return None


NEEDS = frozenset({"combine", "derivative_forms"})
SPG = Solver(name="spg", run=spg, needs=NEEDS, refuses=refuses, need=for_inner_solver, draws=True)


class ProjectedGradient:
    """One run. Subclasses change how a step is found; all else is shared."""

    def __init__(self, problem: Problem, tol: float, options: Options) -> None:
        self.problem, self.tol, self.options = problem, tol, options
        self.norm = cast(Projection, problem.norm.projection())
        self.recorder = Recorder(problem, tol)
        self.K = problem.bank.workspace()
        self.has_gap = problem.norm.has_dual and "quad_forms" in problem.bank.can
        self.longest = options.longest or (_FAR if "quad_forms" in problem.bank.can else _NEAR)
        self.inner_tol = 0.1 if options.tune_precision else _FINE
        self.memory, self.mass, self.average = _MEMORY[1], 1.0, np.nan
        self.converged = False
        self._takes_prox = options.proximal and self.norm.prox(np.zeros(1), 1.0) is not None
        levels = problem.norm.levels()
        l1 = levels is not None and levels.fixed is not None and levels.p == 1
        self._is_scaled = l1 and self._takes_prox and options.scaled and "quad_forms" in problem.bank.can

    def run(self, max_iter: int, start: np.ndarray | None, random_state: Any) -> Result:
        """Solve and return the result; Ctrl-C leaves the best so far to those who watch."""
        with one_blas_thread():
            with self.recorder.interruptible():
                self.solve(max_iter, start, random_state)
            return self.result()

    def solve(self, max_iter: int, start: np.ndarray | None, random_state: Any) -> None:
        """Step until the stopping rule holds or no step is left."""
        point = self.evaluate(self._first_weights(start, random_state), None)
        before: Trial | None = None
        self.average = point.value
        self._record(point)
        still = 0
        for _ in range(max_iter - 1):
            if self._is_done(point):
                break
            length = self.step_length(point, before)
            trial = self.search(point, length)
            if trial is None:
                break
            self._tune(trial)
            still = still + 1 if trial.value == point.value else 0
            if trial.weights is not point.weights:  # else it is the same point, evaluated more exactly
                before = point
            point = trial
            self._record(point)
            if still > _STILL or (self.has_gap and self.recorder.is_drowned(self.K)):
                break
        else:
            self._is_done(point)

    def _first_weights(self, start: np.ndarray | None, random_state: Any) -> np.ndarray:
        m = self.problem.bank.n_kernels
        if start is not None:
            return self.norm.project(start)
        if random_state is None:
            return self.problem.norm.initial_weights(m)
        return self.norm.project(np.random.default_rng(random_state).uniform(size=m) / m)

    # -- values -------------------------------------------------------------------------------------------------

    def evaluate(self, weights: np.ndarray, start: Machine | None) -> Trial:
        """Solve the machine with these weights to the current tolerance."""
        problem = self.problem
        if not np.all(np.isfinite(weights)):  # a gradient of the end of the range of doubles has led there
            raise ValueError(OVERFLOWS)
        machine = problem.solve(problem.bank.combine(weights, out=self.K), start, self.inner_tol)
        self.recorder.n_inner_solves += 1
        forms = problem.bank.derivative_forms(weights, machine.beta).sum(axis=0)
        penalty = self.norm.penalty(weights)
        value = machine.dual_objective + penalty
        if self.has_gap:
            certificate = problem.certificate(weights, machine, forms)
        else:
            certificate = Certificate(primal=machine.objective + penalty, dual=UNKNOWN)
        return Trial(weights, machine, value, -0.5 * forms, self.norm.penalty_gradient(weights), certificate)

    def target(self, point: Trial, length: float | np.ndarray) -> np.ndarray:
        """Return where a step of this length (one per weight) goes: prox(d - length grad J) or P(d - length grad W)."""
        norm, aim = self.norm, point.weights - length * point.smooth
        projected = norm.prox(aim, length) if self.options.proximal else None
        return norm.project(aim - length * point.pull) if projected is None else projected

    def projected_gradient(self, point: Trial) -> np.ndarray:
        """Return d minus the target of a step of length 1, which vanishes at a stationary point."""
        return point.weights - self.target(point, 1.0)

    def _is_done(self, point: Trial) -> bool:
        if self.has_gap:
            self.converged = point.certificate.within(self.tol)
            return self.converged
        slope = np.abs(self.projected_gradient(point)).max()
        limit = self.options.gradient_tol
        limit = self.tol * max(_LEAST_UNIT, abs(point.value)) if limit is None else limit
        self.converged = bool(slope <= limit) and self._is_exact(point)
        return self.converged

    def _is_exact(self, point: Trial) -> bool:
        """Return whether the inner solver's error is small enough for the gradient to count; else ask it for more."""
        error = point.machine.gap
        if not self.options.tune_precision or error <= self.tol * abs(point.value) or self.inner_tol <= _FINEST:
            return True
        self.inner_tol = max(0.1 * self.inner_tol, _FINEST)
        return False

    def _record(self, point: Trial) -> None:
        self.recorder.record(point.weights, point.machine, point.certificate)
        self.last = point

    def result(self) -> Result:
        """Return the best iterate by the gap, or the last one where there is no gap."""
        if not self.has_gap:
            self.recorder.keep(self.last.weights, self.last.machine, self.last.certificate)
        return self.recorder.result(self.K, stationary=self.converged)

    # -- steps --------------------------------------------------------------------------------------------------

    def step_length(self, point: Trial, before: Trial | None) -> float:
        """Return lambda of equation (6), or 1 over the projected gradient at first."""
        if not self.options.spectral:
            return 1.0
        if before is None:
            slope = np.abs(point.gradient if self._is_scaled else self.projected_gradient(point)).max()
            return float(np.clip(1.0 / max(slope, 1e-300), _SHORTEST_LENGTH, self.longest))
        change, bend = point.weights - before.weights, point.gradient - before.gradient
        if self._takes_prox:
            bend = point.smooth - before.smooth
        curvature = float(change @ bend)
        if curvature <= 0:
            return self.longest
        return float(np.clip(change @ (change / self._metric(point)) / curvature, _SHORTEST_LENGTH, self.longest))

    def _metric(self, point: Trial) -> np.ndarray | float:
        """Return by what the gradient is multiplied, entry by entry, before a step."""
        weights = point.weights
        return np.maximum(weights, _SMALL * max(float(weights.max()), 1e-300)) if self._is_scaled else 1.0

    def search(self, point: Trial, length: float) -> Trial | None:
        """Return the next point along the spectral direction, or this one with more digits; None if none helps."""
        aim = self.target(point, length * self._metric(point))
        direction = point.weights - aim
        if not np.all(np.isfinite(direction)):
            return None
        slope = float(point.gradient @ direction)
        if self._takes_prox:
            penalty = self.norm.penalty
            slope = float(point.smooth @ direction) + penalty(point.weights) - penalty(aim)
        share = self._first_share(point, direction)
        for _ in range(MOST_HALVINGS):
            trial = self.evaluate(np.maximum(point.weights - share * direction, 0.0), point.machine)
            if trial.value <= self._reference(point) - ENOUGH * share * slope or self._is_done(trial):
                self._remember(
                    point, trial, share, slope, float(direction @ (direction / self._metric(point))) / length
                )
                return trial
            share *= 0.5
            # A gain below the inner solver's own error cannot be seen: shorter steps would only cost solves.
            is_drowned = share < _SHORTEST or share * slope <= point.machine.gap
            if is_drowned and self.inner_tol > _FINEST and self.options.tune_precision:
                self._tune(trial)
                self.inner_tol = max(0.1 * self.inner_tol, _FINEST)
                return self.evaluate(point.weights, point.machine)
        return None

    def _first_share(self, point: Trial, direction: np.ndarray) -> float:
        """Return how much of the direction to try first: all, unless it leads away from a minimum to another one.

        Where there may be several, no weight changes by more than the largest weight, or 1 if that is less than 1.
        """
        if "quad_forms" in self.problem.bank.can:
            return 1.0
        return min(1.0, max(float(point.weights.max()), 1.0) / max(float(np.abs(direction).max()), 1e-300))

    def _reference(self, point: Trial) -> float:
        return max(self.average, point.value) if self.options.non_monotone else point.value

    def _remember(self, point: Trial, trial: Trial, share: float, slope: float, bend: float) -> None:
        """Update the running average and its memory (11 and 12)."""
        promised = share * slope - 0.5 * share**2 * bend
        ratio = (point.value - trial.value) / promised if promised > 0 else 0.0
        if _GOOD[0] <= ratio <= _GOOD[1]:
            self.memory += _MEMORY_STEP
        elif not _BAD[0] <= ratio <= _BAD[1]:
            self.memory -= _MEMORY_STEP
        self.memory = float(np.clip(self.memory, *_MEMORY))
        mass = self.memory * self.mass + 1.0
        self.average = (self.memory * self.mass * self.average + trial.value) / mass
        self.mass = mass

    def _tune(self, point: Trial) -> None:
        """Lower the inner solver's tolerance as (13) asks for."""
        if not self.options.tune_precision:
            return
        gap = abs(point.certificate.gap) if self.has_gap else np.inf
        slope = float(np.linalg.norm(self.projected_gradient(point)))
        wanted = 1e-3 if gap < 0.1 or slope < 1.0 else 1e-2 if gap < 1.0 or slope < 5.0 else 1e-1
        self.inner_tol = min(self.inner_tol, wanted)
        # The inner solver's own error shows in the certificate: what the gap asks for goes beyond the paper's 1e-3.
        if self.has_gap and point.machine.gap > 0.3 * max(self.tol, 0.3 * gap) * abs(point.value):
            self.inner_tol = max(0.3 * self.inner_tol, _FINEST)
