"""Where samples are few for their features: any solver, on the matrices that they make up.

Matrices have as many digits and, where features are no fewer than samples, fewer numbers; up to a few samples per
feature, a step on them costs less than one on the features.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from manykernels.core.results import Result
from manykernels.core.solver import Need, Sizes, Solver
from manykernels.problem import Problem

# Of tol: a gap on matrices of features, whose certificate on the features themselves differs by rounding.
_WRITTEN_SHARE = 0.9


def solve_on_matrices(solver: Solver, problem: Problem, *, tol: float, **options: Any) -> Result | None:
    """Return what a solver finds on matrices; None where samples are not few, or there is no room for them.

    Parameters
    ----------
    solver : Solver
    problem : Problem
    tol : float
    **options
        What else the solver takes.

    Returns
    -------
    Result or None
        The certificate is that of the features.
    """
    bank, n = problem.bank, problem.y.shape[1]
    if not bank.has_few_samples or not has_room(
        problem, n, solver.need(sizes_of(problem, n), problem.norm, problem.loss)
    ):
        return None
    written = problem.tail(n)
    if not solver.can_do_with(written.can):
        return None
    result = solver(written, tol=_WRITTEN_SHARE * tol, **options)
    K = bank.combine(result.weights)
    machine = problem.machine(result.machine.beta, K.product(result.machine.beta))
    certificate = problem.certificate(result.weights, machine, problem.quad_forms(machine))
    rounding = problem.relative_rounding(K, machine, certificate.primal, tol)
    certificate = certificate.rounded(rounding, tol)
    return replace(
        result, machine=machine, certificate=certificate, converged=certificate.within(tol), rounding=rounding
    )


def has_room(problem: Problem, size: int, need: Need) -> bool:
    """Return whether the bank has room for its kernels on so many samples, and for what solves with them."""
    spare = problem.bank.spare_beside_tail(size)
    return spare is None or need.n_bytes <= spare


def sizes_of(problem: Problem, size: int) -> Sizes:
    """Return the sizes of the problem of so many of its samples."""
    return Sizes(problem.y.shape[0], size, problem.bank.n_kernels)
