"""The records of the methods that the papers compare with. Each method is imported when it is called."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manykernels.core.solver import Need, Sizes, Solver
from manykernels.losses import Loss
from manykernels.norms import Norm
from manykernels.outer.needs import for_inner_solver, inner_matrices, matrices
from manykernels.outer.spg import NEEDS as PROJECTED
from manykernels.outer.spg import refuses as cannot_project

_SEARCH = frozenset({"combine", "quad_forms"})
# SMO works on sets of this many rows of all kernels, and keeps this many bytes of other rows.
SET_SIZE, CACHE_BYTES = 32, 2**27


def _exponent(norm: Norm) -> float | None:
    """Return the p of an LpNorm, None for other norms."""
    levels = norm.levels()
    return levels.p if levels is not None and levels.is_plain else None


def _needs_p_1(norm: Norm, loss: Loss) -> str | None:
    return None if _exponent(norm) == 1 else f"needs LpNorm(1), got {norm!r}."


def _needs_an_lp_norm(norm: Norm, loss: Loss) -> str | None:
    return None if _exponent(norm) is not None else f"needs LpNorm(p), got {norm!r}."


def _smo_refuses(norm: Norm, loss: Loss) -> str | None:
    if _exponent(norm) in (None, 1.0):
        return f"needs LpNorm(p) with p > 1, got {norm!r}."
    # What it takes is a dual without a kink: linear in the coefficients, inside a box.
    box = loss.box(np.ones(1), np.ones(1))
    if box is not None and box.epsilon == 0:
        return None
    return f"needs a loss of straight pieces without a tube, such as the hinge loss, got {loss!r}."


def _simple_need(sizes: Sizes, norm: Norm, loss: Loss) -> Need:
    return matrices(inner_matrices(loss) + 3.0, sizes)  # both ends of a step, and the change


def _hessian_need(sizes: Sizes, norm: Norm, loss: Loss) -> Need:
    m = sizes.n_kernels
    return matrices(inner_matrices(loss) + 1.0, sizes, 8 * m * (3 * m + sizes.n_samples))


def _smo_need(sizes: Sizes, norm: Norm, loss: Loss) -> Need:
    one = 8 * sizes.n_kernels * sizes.n_samples
    rows = one * (sizes.n_tasks + 3 * SET_SIZE) + min(CACHE_BYTES, one * sizes.n_samples)
    return matrices(inner_matrices(loss), sizes, rows)


def _from_zero(refuses: Callable[[Norm, Loss], str | None]) -> Callable[[Norm, Loss], str | None]:
    """Return what also refuses losses whose dual does not hold 0: cutting planes are made less steep toward it."""

    def refused(norm: Norm, loss: Loss) -> str | None:
        outside = f"needs coefficients that may all be 0; those of {loss!r} may not."
        return refuses(norm, loss) if loss.center(np.ones(1)) is None else outside

    return refused


def _here(name: str, module: str = "") -> str:
    return f"manykernels.literature.{module or name}:{name}"


PGD = Solver("pgd", _here("pgd"), PROJECTED, cannot_project, for_inner_solver, draws=True)
SIMPLE = Solver("simple", _here("simple"), _SEARCH, _needs_p_1, _simple_need)
SILP = Solver("silp", _here("silp"), _SEARCH | {"coefficients"}, _from_zero(_needs_an_lp_norm), for_inner_solver)
LEVEL = Solver("level", _here("level"), _SEARCH | {"coefficients"}, _from_zero(_needs_p_1), for_inner_solver)
HESSIAN = Solver("hessian", _here("hessian"), _SEARCH | {"matvecs", "coefficients"}, _needs_p_1, _hessian_need)
SMO = Solver(
    "smo",
    _here("smo", "smo_mkl"),
    _SEARCH | {"matvecs", "rows", "coefficients"},
    _smo_refuses,
    _smo_need,
)
SOLVERS = {solver.name: solver for solver in (PGD, SIMPLE, SILP, LEVEL, HESSIAN, SMO)}
