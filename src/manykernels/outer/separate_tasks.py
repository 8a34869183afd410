"""Tasks with weights of their own that are learned together, where a solver has a way to do that."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from manykernels.core.protocols import MatrixBank
from manykernels.core.results import Certificate, Machine, Result, SeparateTasks, total
from manykernels.core.solver import Sizes, Solver
from manykernels.outer.fewer_tasks import vary
from manykernels.problem import Problem

# Fewer are learned one by one.
_FEWEST = 8


def learns_together(solver: Solver, problem: Problem) -> bool:
    """Return whether a solver learns these tasks, each with weights of its own, together, and has room for that."""
    other, (n_tasks, n) = solver.separate, problem.y.shape
    if other is None or n_tasks < _FEWEST or not other.can_do_with(problem.can):
        return False
    if other.refuses(problem.norm, problem.loss) is not None:
        return False
    bank = cast(MatrixBank, problem.bank)
    need = other.need(Sizes(n_tasks, n, bank.n_kernels), problem.norm, problem.loss)
    return need.n_bytes <= bank.batches().room(bank.spare)


def solve_together(
    solver: Solver, problem: Problem, *, tol: float, max_iter: int, start: np.ndarray | None = None
) -> Result:
    """Learn each task with weights of its own; those that do not come to their gap together, one by one.

    Parameters
    ----------
    solver : Solver
    problem : Problem
    tol : float
        Relative duality gap to reach, of each task.
    max_iter : int
    start : ndarray of shape (n_tasks, n_kernels), optional

    Returns
    -------
    Result
        With weights of shape (n_tasks, n_kernels) and the gap of each task.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Squared
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.automatic import AUTO
    >>> from manykernels.outer.separate_tasks import solve_together
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.sin(np.arange(1, 11)[:, None] * X.T)
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]), X)
    >>> result = solve_together(AUTO, Problem(bank, Squared(), LpNorm(1), Y, np.ones(Y.shape)), tol=1e-3, max_iter=100)
    >>> result.weights.shape, result.converged
    ((10, 3), True)
    """
    learning = np.flatnonzero(vary(problem))
    every = _nothing(problem)
    if learning.size:
        assert solver.separate is not None
        some_start = None if start is None else start[learning]
        tasks = solver.separate(_taken(problem, learning), tol=tol, max_iter=max_iter, start=some_start)
        for name in ("weights", "beta", "intercept", "primal", "dual", "rounding"):
            getattr(every, name)[learning] = getattr(tasks, name)
        every = replace(every, n_iter=tasks.n_iter)
    n_solves = 0
    for task in np.flatnonzero(every.gaps > tol):
        single = solver(_taken(problem, np.array([task])), tol=tol, max_iter=max_iter, start=every.weights[task])
        n_solves += single.n_inner_solves
        if single.converged or single.certificate.gap < every.gaps[task]:
            every.put(int(task), single)
    return _result(problem, every, tol, n_solves)


def _taken(problem: Problem, tasks: np.ndarray) -> Problem:
    offset = np.broadcast_to(problem.offset, problem.y.shape[:1])[tasks]
    return replace(problem, y=problem.y[tasks], C=problem.C[tasks], offset=offset)


def _nothing(problem: Problem) -> SeparateTasks:
    """Return what is learned of tasks whose targets are all the same: the intercept."""
    (n_tasks, n), m = problem.y.shape, problem.bank.n_kernels
    weights = np.tile(problem.norm.initial_weights(m), (n_tasks, 1))
    first = problem.y[:, 0] if problem.fit_intercept else np.zeros(n_tasks)
    primal, dual, rounding = np.zeros((3, n_tasks))
    return SeparateTasks(weights, np.zeros((n_tasks, n)), first.copy(), primal, dual, rounding, n_iter=1)


def _result(problem: Problem, tasks: SeparateTasks, tol: float, n_solves: int) -> Result:
    """Return the record of all tasks; kernels that are zero on the training data have no weight."""
    certificates = [
        Certificate(float(primal), float(dual)) for primal, dual in zip(tasks.primal, tasks.dual, strict=True)
    ]
    both, rounding = total(certificates), float(tasks.rounding.max())
    intercept = (tasks.intercept + problem.offset) - problem.offset
    return Result(
        weights=np.where(problem.bank.scale == 0.0, 0.0, tasks.weights),
        # What it decides on the samples is not kept, and of its values the sums alone.
        machine=Machine(
            tasks.beta, tasks.beta[:, :0], intercept, 0.0, both.primal, lambda share: -both.dual, -both.dual
        ),
        certificate=both.rounded(rounding, tol),
        converged=bool(np.all(tasks.gaps <= tol)),
        n_iter=tasks.n_iter,
        n_inner_solves=tasks.n_iter + n_solves,
        rounding=rounding,
        gaps=tasks.gaps,
    )
