"""Optimizers for families of kernels, by their names, and which one ``solver="auto"`` takes."""

from __future__ import annotations

from typing import Any

from manykernels.core.solver import Solver
from manykernels.norms import LpNorm
from manykernels.outer.family import FamilyProblem, FamilyResult
from manykernels.outer.greedy import greedy
from manykernels.outer.stochastic_mirror import stochastic_mirror


def automatic_family(problem: FamilyProblem, *, random_state: Any = None, **options: Any) -> FamilyResult:
    """Solve by the method that is for the norm: sampling for LpNorm(2), greedy selection for LpNorm(1)."""
    if problem.norm == LpNorm(2):
        return stochastic_mirror(problem, random_state=random_state, **options)
    return greedy(problem, **options)


def ckl(problem: FamilyProblem, **options: Any) -> FamilyResult:
    """Run greedy selection that moves towards the best kernel, without learning the weights of the others anew."""
    return greedy(problem, corrective=False, **options)


FAMILY_SOLVERS = {
    solver.name: solver
    for solver in (
        Solver("auto", automatic_family, draws=True),
        Solver("greedy", greedy, paper="GCD-1s"),
        Solver("ckl", ckl, paper="CKL"),
        Solver("stochastic_mirror", stochastic_mirror, draws=True, paper="SGD-1s"),
    )
}
