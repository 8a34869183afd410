"""The ways to learn a kernel by its alignment: a record of each, read by what offers, refuses and runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from manykernels.alignment.finite import MOST_LISTED, Aligned, independent, quadratic, uniform
from manykernels.alignment.greedy_alignment import greedy
from manykernels.alignment.measures import Target
from manykernels.core.protocols import Bank
from manykernels.core.solver import check_offers
from manykernels.kernels.family import NEEDS_BEST

# The exact solution of a long list closes the bound to this.
_EXACT_TOL = 1e-7
_COMPARES = frozenset({"combine", "centered_squares", "largest_diagonals"})
_SELECTS = _COMPARES | {"quad_forms", "inner_products", "matvecs", "rows"}


@dataclass(frozen=True)
class AlignmentMethod:
    """A way to learn the weights of kernels.

    Attributes
    ----------
    name : str
        What ``alignment=`` of an estimator takes.
    run : function
        ``run(kernels, target, *, tol, max_iter)`` returns what was Aligned.
    needs : frozenset of str
        What the bank of a list must be able to do.
    for_families : bool
        Whether it takes families of kernels, too: of those it needs the search for the best kernel.

    Examples
    --------
    >>> from manykernels.alignment.methods import METHODS
    >>> METHODS["qp"].for_families, sorted(METHODS["uniform"].needs)
    (False, ['centered_squares', 'combine', 'largest_diagonals'])
    """

    name: str
    run: Callable[..., Aligned]
    needs: frozenset[str]
    for_families: bool = False

    def __call__(self, kernels: Any, target: Target, *, tol: float, max_iter: int) -> Aligned:
        """Learn the weights of a bank or a family; one that offers too little is refused before any work."""
        is_family = self.for_families and NEEDS_BEST in kernels.can
        check_offers(f"alignment={self.name!r}", frozenset({NEEDS_BEST}) if is_family else self.needs, kernels.can)
        return self.run(kernels, target, tol=tol, max_iter=max_iter)


def _exact(bank: Bank, target: Target, *, tol: float, max_iter: int) -> Aligned:
    """Return the optimum: from all inner products or, for a long list, from those that are needed."""
    if bank.n_kernels <= MOST_LISTED:
        return quadratic(bank, target)
    return greedy(bank, target, tol=_EXACT_TOL, max_iter=1000)


def _by_formula(learn: Callable[[Bank, Target], Aligned]) -> Callable[..., Aligned]:
    """Return a method without steps."""

    def run(bank: Bank, target: Target, **settings: Any) -> Aligned:
        return learn(bank, target)

    return run


METHODS = {
    method.name: method
    for method in (
        AlignmentMethod("greedy", greedy, _SELECTS, for_families=True),
        AlignmentMethod("qp", _exact, _SELECTS),
        AlignmentMethod("independent", _by_formula(independent), _COMPARES | {"quad_forms"}),
        AlignmentMethod("uniform", _by_formula(uniform), _COMPARES),
        AlignmentMethod("stagewise", partial(greedy, method="stagewise"), _SELECTS, for_families=True),
        AlignmentMethod("frank_wolfe", partial(greedy, method="frank_wolfe"), _SELECTS, for_families=True),
    )
}
