"""Optimizers for families of kernels, by their names, and which one ``solver="auto"`` takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from manykernels.core.solver import Solver
from manykernels.norms import LpNorm
from manykernels.outer.family import FamilyProblem, FamilyResult, needs_norm, search_matrices
from manykernels.outer.greedy import GREEDY, greedy
from manykernels.outer.stochastic_mirror import STOCHASTIC_MIRROR


def automatic_family(problem: FamilyProblem, *, random_state: Any = None, **options: Any) -> FamilyResult:
    """Solve by the method that is for the norm: sampling for LpNorm(2), greedy selection for LpNorm(1)."""
    if problem.norm == LpNorm(2):
        return STOCHASTIC_MIRROR(problem, random_state=random_state, **options)
    return GREEDY(problem, **options)


def ckl(problem: FamilyProblem, **options: Any) -> FamilyResult:
    """Run greedy selection that moves toward the best kernel, without learning the weights of the others anew."""
    return greedy(problem, corrective=False, **options)


AUTO = Solver("auto", automatic_family, refuses=needs_norm(1, 2), need=search_matrices, draws=True, for_family=True)
CKL = replace(GREEDY, name="ckl", run=ckl)
FAMILY_SOLVERS = {solver.name: solver for solver in (AUTO, GREEDY, CKL, STOCHASTIC_MIRROR)}
