"""What ``solver=`` of an estimator stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from manykernels.core.checks import check_choice
from manykernels.core.solver import Solver
from manykernels.literature.records import SOLVERS as LITERATURE
from manykernels.outer.family_choice import FAMILY_SOLVERS
from manykernels.outer.registry import SOLVERS as OUTER

SOLVERS: dict[str, Solver] = {**OUTER, **LITERATURE}


def find_solver(given: Any, for_family: bool = False) -> Solver:
    """Return the record that a parameter means: a name, a record, or a function ``run(problem, *, tol, ...)``.

    A function is taken for a solver of a list of kernels; that of a family needs a record which says so.

    Parameters
    ----------
    given : str, Solver or function
    for_family : bool
        Whether the kernels are a family, which has solvers of its own.

    Examples
    --------
    >>> from manykernels.estimators.solvers import find_solver
    >>> find_solver("newton").draws, find_solver("pgd").draws  # random first weights, if asked for
    (False, True)
    """
    if isinstance(given, Solver) or callable(given):
        return _suited(given if isinstance(given, Solver) else _record_of(given), for_family)
    names = tuple(dict.fromkeys((*SOLVERS, *FAMILY_SOLVERS)))
    if not isinstance(given, str) or given not in names:
        shown = ", ".join(repr(name) for name in names)
        raise ValueError(f"solver must be one of {shown}, a Solver or a function, got {given!r}.")
    if for_family:
        check_choice("solver", given, FAMILY_SOLVERS, more=" with a family of kernels")
        return FAMILY_SOLVERS[given]
    return _suited({**FAMILY_SOLVERS, **SOLVERS}[given], for_family)


def _record_of(function: Callable[..., Any]) -> Solver:
    return Solver(getattr(function, "__name__", type(function).__name__), function)


def _suited(solver: Solver, for_family: bool) -> Solver:
    """Return the record, or say that it is for other kernels."""
    if solver.for_family and not for_family:
        raise ValueError(f"solver={solver.name!r} is for a family of kernels, such as GaussianFamily.")
    if for_family and not solver.for_family:
        raise ValueError(
            f"solver={solver.name!r} is for a list of kernels; a family needs a Solver with for_family=True."
        )
    return solver
