"""The ways to learn a kernel by its alignment: a record of each, read by what offers, refuses and runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from manykernels.alignment.finite import MOST_LISTED, Aligned, independent, quadratic, uniform
from manykernels.alignment.greedy_alignment import LIST_NEEDS, greedy, needs_of
from manykernels.alignment.measures import Target
from manykernels.core.protocols import Bank
from manykernels.core.solver import check_offers

# The exact solution of a long list closes the bound to this.
_EXACT_TOL = 1e-7
_COMPARES = frozenset({"combine", "centered_squares", "largest_diagonals"})


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
    >>> from manykernels.alignment.methods import ALIGNMENTS
    >>> ALIGNMENTS["qp"].for_families, sorted(ALIGNMENTS["uniform"].needs)
    (False, ['centered_squares', 'combine', 'largest_diagonals'])
    """

    name: str
    run: Callable[..., Aligned]
    needs: frozenset[str]
    for_families: bool = False

    def __call__(self, kernels: Any, target: Target, *, tol: float, max_iter: int) -> Aligned:
        """Learn the weights of a bank or a family; one that offers too little is refused before any work."""
        needs = needs_of(kernels.can) if self.for_families else self.needs
        check_offers(f"alignment={self.name!r}", needs, kernels.can)
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


ALIGNMENTS = {
    method.name: method
    for method in (
        AlignmentMethod("greedy", greedy, LIST_NEEDS, for_families=True),
        AlignmentMethod("qp", _exact, LIST_NEEDS),
        AlignmentMethod("independent", _by_formula(independent), _COMPARES | {"quad_forms"}),
        AlignmentMethod("uniform", _by_formula(uniform), _COMPARES),
        AlignmentMethod("stagewise", partial(greedy, method="stagewise"), LIST_NEEDS, for_families=True),
        AlignmentMethod("frank_wolfe", partial(greedy, method="frank_wolfe"), LIST_NEEDS, for_families=True),
    )
}
