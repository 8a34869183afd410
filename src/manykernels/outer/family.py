"""Learning from a family of kernels: what its optimizers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manykernels.core.protocols import Bank
from manykernels.core.results import OVERFLOWS, Machine, Result
from manykernels.core.solver import Need, Sizes
from manykernels.kernels.family import BoundFamily
from manykernels.losses import TotalLoss
from manykernels.norms import LpNorm, Norm
from manykernels.outer.needs import matrices
from manykernels.problem import MachineProblem, Problem

# Matrices of all samples that learning from a family holds in addition to the kernels it selects: the combined kernel,
# the next one, products of the dual coefficients, what an inner solver factors, and what the search makes of them.
_MATRICES = 8


@dataclass(frozen=True)
class FamilyProblem(MachineProblem):
    """A family of kernels, a loss and a norm; the rest is as for :class:`Problem`.

    The norm is that of a list: LpNorm(1) or LpNorm(2) over all kernels of the family. ``precision``, "single" or
    "double", is that of the kernel values that are held.
    """

    family: BoundFamily
    loss: TotalLoss
    norm: Norm
    y: np.ndarray
    C: np.ndarray
    fit_intercept: bool = True
    offset: Any = 0.0
    precision: str = "single"

    @property
    def can(self) -> frozenset[str]:
        """What a solver may ask of the family."""
        return self.family.can

    def restricted(self, bank: Bank) -> Problem:
        """Return the problem with the kernels of a bank only."""
        return Problem(bank, self.loss, self.norm, self.y, self.C, self.fit_intercept, offset=self.offset)

    def first_machine(self) -> Machine:
        """Return the machine without any kernel: the best intercept, and a feasible dual point for it."""
        start = self.machine(np.zeros(self.y.shape), np.zeros(self.y.shape))
        # At the best intercept itself, a loss with corners may have its samples on them, where any pull would do.
        near = 1.0 if self.loss.smooth else 0.999
        pulled = [
            self.loss.pull(y, np.full(y.shape, near * b), C)
            for y, C, b in zip(self.y, self.C, start.intercept, strict=True)
        ]
        beta = np.array([self.feasible(pull, t) for t, pull in enumerate(pulled)])
        return self.machine(beta, np.zeros(self.y.shape))


@dataclass(frozen=True)
class FamilyResult:
    """The kernels that were selected, as a bank, and the result on them."""

    bank: Bank
    result: Result


def needs_norm(*exponents: float) -> Callable[[Norm, TotalLoss], str | None]:
    """Return what refuses all norms but LpNorm with one of these exponents."""

    def refuses(norm: Norm, loss: TotalLoss) -> str | None:
        if any(norm == LpNorm(p) for p in exponents):
            return None
        wanted = " or ".join(f"norm={p:g}" for p in exponents)
        return f"needs {wanted} with a family of kernels, got {norm!r}."

    return refuses


def search_matrices(sizes: Sizes, norm: Norm, loss: TotalLoss) -> Need:
    """Return the need of a search, of the steps and of the inner solver, besides the kernels that are selected."""
    return matrices(_MATRICES, sizes)


def outer_products(beta: np.ndarray) -> np.ndarray:
    """Return sum_t beta_t beta_t', whose inner product with a kernel is its quadratic form."""
    with np.errstate(over="ignore", invalid="ignore"):
        M = beta.T @ beta
    if not np.all(np.isfinite(M)):
        raise ValueError(OVERFLOWS)
    return M
