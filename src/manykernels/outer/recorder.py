"""What every outer optimizer keeps: the trace, the best iterate so far, the inner solver's accuracy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from manykernels.core.progress import emit, is_listened_to
from manykernels.core.protocols import CombinedKernel
from manykernels.core.results import OVERFLOWS, Certificate, Iterate, Machine, Result, Step, joined
from manykernels.norms import Norm
from manykernels.problem import Problem

_FIRST_INNER_TOL = 1e-2
_LEAST_INNER_TOL = 1e-13
# Below this tolerance, a tighter one that gains nothing means that the inner solver has come to its end.
_STALLED_BELOW = 1e-8
_PATIENCE = 5
# So many steps without a smaller gap are enough: where the inner solver is at its end, and where it is not, since there
# a kernel of tiny weight may be growing.
_LONG = 50
_VERY_LONG = 500
# The inner solver's own error may be this part of the gap that is expected; else it is asked for more.
_INNER_SHARE = 0.2
# Rounding of a quadratic form, beside the sum of the absolute values of its terms.
_FORM_ROUNDING = 1e-15


class Recorder:
    """The trace and the best iterate of one run.

    Attributes
    ----------
    trace : list of Step
    weights, machine, certificate
        The iterate with the smallest gap so far; None before the first.
    n_inner_solves : int
    n_stalled : int
        Last solves in a row that did not reach the accuracy asked for.
    """

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self.trace: list[Step] = []
        self.n_inner_solves = 0
        self.n_stalled = 0
        self.interrupted = False
        self.weights: np.ndarray | None = None
        self.machine: Machine | None = None
        self.certificate: Certificate | None = None
        self._started = time.perf_counter()
        self._best_step = 0
        self._inner_tol = _FIRST_INNER_TOL

    @property
    def gap(self) -> float:
        """The smallest gap so far; infinite before the first iterate."""
        return np.inf if self.certificate is None else abs(self.certificate.gap)

    @property
    def is_stuck(self) -> bool:
        """Whether the inner solver is at the end of its digits: it stalls, or the gap has long not become smaller."""
        patience = _LONG if self._inner_tol <= _STALLED_BELOW else _VERY_LONG
        return self.n_stalled > _PATIENCE or self._steps_since_best() > patience

    def is_drowned(self, K: CombinedKernel) -> bool:
        """Return whether the gap has not become smaller for many steps, in values that rounding moves by more than tol.

        K is a combined kernel near the best iterate.
        """
        if self._steps_since_best() <= _LONG or self.machine is None or self.certificate is None:
            return False
        return self.problem.rounding(K, self.machine) > self.tol * abs(self.certificate.primal)

    def _steps_since_best(self) -> int:
        gaps = [np.inf, *(abs(step.gap) for step in reversed(self.trace))]
        return int(np.nanargmin(gaps)) - 1

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C end the block when someone watches and there is an iterate: they get the best so far."""
        try:
            yield
        except KeyboardInterrupt:
            if not (is_listened_to() and self.trace):
                raise
            self.interrupted = True

    def keep(self, weights: np.ndarray, machine: Machine, certificate: Certificate) -> None:
        """Make this the best iterate, unasked."""
        self._best_step = len(self.trace)
        self.weights, self.machine, self.certificate = weights, machine, certificate

    def record(self, weights: np.ndarray, machine: Machine, certificate: Certificate) -> None:
        """Enter an iterate in the trace, tell the listeners, and keep it if it is the best."""
        if certificate.improves(self.certificate):
            self.keep(weights, machine, certificate)
            self._best_step += 1  # that is the one entered here
        step = Step(
            iteration=len(self.trace) + 1,
            seconds=time.perf_counter() - self._started,
            objective=certificate.primal,
            gap=certificate.gap,
            n_active=int(np.count_nonzero(weights)),
            tol=self.tol,
        )
        self.trace.append(step)
        emit(step)

    def append(self, result: Result) -> None:
        """Enter the trace and the counts of a run that went on from here, and whether Ctrl-C ended it."""
        self.trace = joined(self.trace, result.trace)
        self.n_inner_solves += result.n_inner_solves
        self.interrupted = self.interrupted or result.interrupted

    def solve(self, K: CombinedKernel, start: Iterate | None, expected_gap: float) -> Machine:
        """Solve the machine for the kernel K, as exactly as a gap of ``expected_gap`` asks for."""
        machine, error = start, np.inf
        while True:
            machine = self.problem.solve(K, machine, self._inner_tol)
            self.n_inner_solves += 1
            allowed = _INNER_SHARE * expected_gap * abs(machine.objective)
            before, error = error, machine.gap
            if error <= allowed:
                self.n_stalled = 0
                return machine
            if (error > 0.9 * before and self._inner_tol < _STALLED_BELOW) or self._inner_tol <= _LEAST_INNER_TOL:
                self.n_stalled += 1
                return machine
            self._inner_tol *= 0.1

    def result(self, K: CombinedKernel, stationary: bool = False) -> Result:
        """Return the best iterate; K is a combined kernel near it, for the size of the rounding errors.

        A run has converged when the gap is at most ``tol``; ``stationary`` counts where the problem has no gap.
        """
        if self.weights is None or self.machine is None or self.certificate is None:
            raise ValueError(OVERFLOWS)
        if _has_groups(self.problem.norm):
            self._drop_idle(K, self.weights, self.machine)
        if self._best_step < len(self.trace):  # K is that of a later iterate
            K = self.problem.bank.combine(self.weights, out=K)
        rounding = self.problem.relative_rounding(K, self.machine, self.certificate.primal, self.tol)
        certificate = self.certificate.rounded(rounding, self.tol)
        return Result(
            weights=self.weights,
            machine=self.machine,
            certificate=certificate,
            converged=stationary if np.isnan(certificate.gap) else certificate.within(self.tol),
            n_iter=len(self.trace),
            n_inner_solves=self.n_inner_solves,
            rounding=rounding,
            interrupted=self.interrupted,
            trace=self.trace,
        )

    def _drop_idle(self, K: CombinedKernel, weights: np.ndarray, machine: Machine) -> None:
        """Put 0 for the weights of kernels that have no component: zero ones, and constant ones beside an intercept.

        With q >= 1 a mixed norm raises the weights of a group that has next to no form, and nothing pulls them down.
        """
        problem, quad_forms = self.problem, self.problem.quad_forms(machine)
        sizes = problem.bank.largest_diagonals(np.arange(weights.size)) * np.sum(np.abs(machine.beta).sum(axis=1) ** 2)
        idle = (weights > 0) & (quad_forms <= _FORM_ROUNDING * sizes)
        if not np.any(idle) or np.all(idle[weights > 0]):
            return
        kept = np.where(idle, 0.0, weights)
        K = problem.bank.combine(kept, out=K)
        same = problem.machine(machine.beta, K.product(machine.beta))
        certificate = problem.certificate(kept, same, quad_forms)
        if abs(certificate.gap) <= max(self.tol, 1.01 * self.gap):  # rounding may move it
            self.keep(kept, same, certificate)
        else:
            problem.bank.combine(weights, out=K)


def _has_groups(norm: Norm) -> bool:
    levels = norm.levels()
    return levels is not None and levels.groups is not None
