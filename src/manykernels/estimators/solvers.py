"""What ``solver=`` of an estimator stands for."""

from __future__ import annotations

from typing import Any

from manykernels.core.checks import check_choice
from manykernels.core.solver import Solver
from manykernels.literature.records import SOLVERS as LITERATURE
from manykernels.outer.family_choice import FAMILY_SOLVERS
from manykernels.outer.registry import SOLVERS as OWN

SOLVERS: dict[str, Solver] = {**OWN, **LITERATURE}


def find_solver(given: Any, for_family: bool = False) -> Solver:
    """Return the record that a parameter means: a name, a record, or a function ``run(problem, *, tol, ...)``.

    Parameters
    ----------
    given : str, Solver or function
    for_family : bool
        Whether the kernels are a family, which has solvers of its own.

    Examples
    --------
    >>> from manykernels.estimators.solvers import find_solver
    >>> find_solver("newton").paper, find_solver("simple").paper
    ('', 'SimpleMKL')
    """
    if isinstance(given, Solver):
        return given
    if callable(given):
        return Solver(getattr(given, "__name__", type(given).__name__), given)
    names = tuple(dict.fromkeys((*SOLVERS, *FAMILY_SOLVERS)))
    if not isinstance(given, str) or given not in names:
        shown = ", ".join(repr(name) for name in names)
        raise ValueError(f"solver must be one of {shown}, a Solver or a function, got {given!r}.")
    if for_family:
        check_choice("solver", given, FAMILY_SOLVERS, more=" with a family of kernels")
    if not for_family and given not in SOLVERS:
        raise ValueError(f"solver={given!r} is for a family of kernels, such as GaussianFamily.")
    return FAMILY_SOLVERS[given] if for_family else SOLVERS[given]
