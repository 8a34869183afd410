"""The training problem of rows on workers: the same values and certificate, from sums over the blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manykernels.core.results import Machine
from manykernels.distributed.row_bank import Coefficients, RowBank
from manykernels.distributed.row_bundle import Bundle, Solution
from manykernels.problem import Problem


@dataclass(frozen=True)
class RowMachine(Machine):
    """The machines of all tasks; ``beta`` and ``decision`` are :class:`Coefficients`, no arrays."""

    solutions: tuple[Solution, ...] = ()


class OnWorkers:
    """An array of shape (n_tasks, n_samples) of which the driver has the shape, and the values on a few random rows."""

    def __init__(self, shape: tuple[int, int], values: np.ndarray) -> None:
        self.shape, self._values = shape, values

    def __getitem__(self, where: Any) -> np.ndarray:
        return self._values[where]


@dataclass(frozen=True)
class RowProblem(Problem):
    """Problem on a :class:`RowBank`; made by :func:`row_problem`.

    ``y`` and ``C`` are :class:`OnWorkers`, ``sample`` is the problem of a few random rows, ``bundles`` are those of the
    tasks: all solves share their planes.
    """

    sample: Problem | None = None
    bundles: list[Bundle] = field(default_factory=list)

    def tail(self, size: int) -> Problem:
        """Return the problem of a few random rows, held here; there are as many as the bank's coarse size."""
        assert self.sample is not None
        return self.sample

    def solve(self, K: Any, start: Any = None, tol: float = 1e-3) -> Any:
        """Return the machine of every task for the fixed kernel K."""
        solutions = tuple(bundle.solve(K.columns, tol) for bundle in self.bundles)
        beta: Any = Coefficients(np.array([s.vector for s in solutions]), sum(s.conjugates for s in solutions))
        return RowMachine(beta, beta, np.array([s.intercept for s in solutions]), solutions)

    def inner_gap(self, machine: Any) -> float:
        """Return primal minus dual of the problem with the weights fixed."""
        return sum(solution.gap for solution in machine.solutions)

    def objective(self, machine: Any) -> float:
        """Return the primal value of the problem with the weights fixed."""
        return sum(solution.objective for solution in machine.solutions)

    def dual_objective(self, machine: Any) -> float:
        """Return the dual value of the problem with the weights fixed."""
        return -sum(0.5 * solution.quadratic + solution.conjugates for solution in machine.solutions)

    def rounding(self, K: Any, machine: Any, weights: np.ndarray | None = None) -> float:
        """Return about how far products of rounded features move the primal value."""
        return self.bank.unit_roundoff * float(np.sqrt(K.columns.size)) * abs(self.objective(machine))

    def _losses(self, machine: Any) -> float:
        return sum(solution.losses for solution in machine.solutions)

    def _conjugates(self, beta: Any) -> float:
        return beta.conjugates


def row_problem(bank: RowBank, loss: Any, norm: Any, fit_intercept: bool, unit: float = 1.0) -> RowProblem:
    """Return the problem of all tasks of a bank of rows, with a sample of it for a first guess of the weights.

    Parameters
    ----------
    bank : RowBank
    loss : Loss
    norm : Norm
    fit_intercept : bool
    unit : float
        The size of the targets.
    """
    few, y, C = bank.sample(max(bank.coarse_size, 1))
    shape, n_columns = (y.shape[0], bank.n_samples), int(bank.first[-1])
    sample = Problem(few, loss, norm, y, C, fit_intercept)
    targets: Any = OnWorkers(shape, y)
    weights: Any = OnWorkers(shape, C)
    bundles = [Bundle(bank.blocks, t, loss, fit_intercept, n_columns, unit) for t in range(shape[0])]
    # It offers less than a finite bank; solvers ask for what they need.
    kernels: Any = bank
    return RowProblem(kernels, loss, norm, targets, weights, fit_intercept, sample=sample, bundles=bundles)
