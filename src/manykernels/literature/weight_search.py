"""What the baselines that search for weights share: the value of the machine as a function of the weights, the loop.

    J(d) = the optimal value of the machine with K = sum_k d_k K_k,     dJ/dd_k = -q_k / 2

J is convex. A method says only how it gets from the machines so far to the next weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.protocols import CombinedKernel
from manykernels.core.results import Iterate, Machine, Result
from manykernels.outer.recorder import Recorder
from manykernels.problem import Problem

_FIRST_GAP = 0.1
_PATIENCE = 5


@dataclass(frozen=True)
class SearchPoint:
    """Weights with their machine, an upper bound of J, and by how much that may be too high."""

    problem: Problem
    weights: np.ndarray
    machine: Machine
    value: float
    error: float

    @cached_property
    def quad_forms(self) -> np.ndarray:
        """The machine's quadratic forms: one pass, made when they are asked for, which a line search never does."""
        return self.problem.quad_forms(self.machine)

    @property
    def gradient(self) -> np.ndarray:
        """The gradient of J."""
        return -0.5 * self.quad_forms


class WeightSearch(ABC):
    """One run; a method defines :meth:`advance`.

    Attributes
    ----------
    share : float
        The error of J that is allowed, as a share of the gap; a method that compares values of J allows little.
    """

    share = 1.0

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self.recorder = Recorder(problem, tol)
        self.K = problem.bank.workspace()

    @abstractmethod
    def advance(self, point: SearchPoint) -> SearchPoint | None:
        """Return the next point; None if there is none."""

    @property
    def is_at_its_end(self) -> bool:
        """Whether the inner solver has no more digits to give; the gap of such methods may stay the same for long."""
        return self.recorder.n_stalled > _PATIENCE

    def run(self, max_iter: int, start: np.ndarray | None) -> Result:
        """Iterate until the gap is reached or no step is left."""
        with one_blas_thread():
            with self.recorder.interruptible():
                self._loop(max_iter, start)
            return self.recorder.result(self.K)

    def _loop(self, max_iter: int, start: np.ndarray | None) -> None:
        norm = self.problem.norm
        weights = norm.initial_weights(self.problem.bank.n_kernels) if start is None else norm.scaled(start)
        # A start may already be the solution: only a machine that is exact enough shows that.
        point: SearchPoint | None = self.evaluate(weights, None, np.inf if start is None else 0.1 * self.tol)
        while point is not None:
            certificate = self.problem.certificate(point.weights, point.machine, point.quad_forms)
            self.recorder.record(point.weights, point.machine, certificate)
            is_over = certificate.within(self.tol) or len(self.recorder.trace) >= max_iter
            is_over |= not np.all(np.isfinite(point.quad_forms))  # nothing can be learned from such a point
            point = None if is_over or self.is_at_its_end else self.advance(point)

    def evaluate(self, weights: np.ndarray, begin: Iterate | None, most: float = np.inf) -> SearchPoint:
        """Solve with these weights: one combining pass and an inner solve.

        The machine is as exact as the gap so far requires, or as a gap of ``most`` does if that is less.
        """
        return self.solved(weights, self.problem.bank.combine(weights, out=self.K), begin, most)

    def solved(
        self, weights: np.ndarray, K: CombinedKernel, begin: Iterate | None, most: float = np.inf
    ) -> SearchPoint:
        """Do the same where the combined kernel is known."""
        problem = self.problem
        expected = min(most, self.share * max(self.tol, 0.2 * min(self.recorder.gap, _FIRST_GAP)))
        machine = self.recorder.solve(K, begin, expected)
        return SearchPoint(problem, weights, machine, machine.objective, machine.gap)
