"""What one fit leaves for the next on the same data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from manykernels.core.protocols import Bank
from manykernels.core.results import Result
from manykernels.kernels import KernelBank
from manykernels.norms import Norm
from manykernels.problem import Problem

# What learns in a precision: it returns a bank and the results on it.
Learner = Callable[[str], tuple[Bank, list[Result]]]


class Listed(NamedTuple):
    """The kernels of a fit, None for one with parameters, and how many weights there are to learn."""

    kernels: KernelBank | None
    n_weights: int


@dataclass
class WarmStart:
    """What one fit leaves for the next on the same data: the bank, and the weights to start from."""

    bank: Bank | None = None
    weights: list[np.ndarray] | None = None
    kernels: Listed | None = None  # those of the bank
    norms: tuple[Norm, ...] = ()  # all that will be learned with these kernels, where it is not one
    is_told: bool = False  # that the exact problem is cheaper

    def has(self, precision: str) -> bool:
        """Return whether the bank has so many digits."""
        return self.bank is not None and (precision == "single" or self.bank.precision == "double")

    def starts(self, problems: list[Problem]) -> list[np.ndarray | None]:
        """Return where each problem starts: at the last weights, if there are any."""
        if self.weights is None or len(self.weights) != len(problems):
            return [None] * len(problems)
        return [p.norm.scaled(w) for p, w in zip(problems, self.weights, strict=True)]

    def rows(self, problem: Problem) -> np.ndarray | None:
        """Return where each task starts that has weights of its own: at its last ones, if there are any."""
        shape = (problem.y.shape[0], problem.bank.n_kernels)
        if self.weights is None or len(self.weights) != 1 or self.weights[0].shape != shape:
            return None
        return self.weights[0]
