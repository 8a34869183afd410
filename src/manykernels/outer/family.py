"""Learning from a family of kernels: what its optimizers share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manykernels.banks.packed import PackedBank
from manykernels.core.results import OVERFLOWS, Machine, Result
from manykernels.kernels.family import BoundFamily
from manykernels.losses import Loss
from manykernels.norms import LpNorm
from manykernels.problem import Norm, Problem


@dataclass(frozen=True)
class FamilyProblem:
    """A family of kernels, a loss and a norm; the rest is as for :class:`Problem`.

    The norm is that of a list: LpNorm(1) or LpNorm(2) over all kernels of the family.
    """

    family: BoundFamily
    loss: Loss
    norm: Norm
    y: np.ndarray
    C: np.ndarray
    fit_intercept: bool = True
    offset: float = 0.0

    def restricted(self, bank: PackedBank) -> Problem:
        """Return the problem with the kernels of a bank only."""
        return Problem(bank, self.loss, self.norm, self.y, self.C, self.fit_intercept, offset=self.offset)

    def require(self, solver: str, capability: str, p: float) -> None:
        """Raise before any work if the family or the norm is not for this solver."""
        if capability not in self.family.can:
            raise TypeError(f"solver={solver!r} needs kernels that offer {capability!r}; {self.family!r} does not.")
        if self.norm != LpNorm(p):
            raise TypeError(f"solver={solver!r} needs norm={p:g} with a family of kernels, got {self.norm!r}.")

    def first_machine(self) -> Machine:
        """Return the machine without any kernel: the best intercept, and a feasible dual point for it."""
        problem = self.restricted(None)  # type: ignore[arg-type]
        start = problem.machine(np.zeros(self.y.shape), np.zeros(self.y.shape))
        # At the best intercept itself, a loss with corners may have its samples on them, where any pull would do.
        near = 1.0 if self.loss.smooth else 0.999
        pulled = [
            self.loss.dual_pull(y, np.full(y.shape, near * b), C)[1]
            for y, C, b in zip(self.y, self.C, start.intercept, strict=True)
        ]
        beta = np.array([problem.feasible(own, t) for t, own in enumerate(pulled)])
        return problem.machine(beta, np.zeros(self.y.shape))


@dataclass(frozen=True)
class FamilyResult:
    """The kernels that were selected, as a bank, and the result on them."""

    bank: PackedBank
    result: Result


def outer_products(beta: np.ndarray) -> np.ndarray:
    """Return sum_t beta_t beta_t', whose inner product with a kernel is its quadratic form."""
    with np.errstate(over="ignore", invalid="ignore"):
        M = beta.T @ beta
    if not np.all(np.isfinite(M)):
        raise ValueError(OVERFLOWS)
    return M
