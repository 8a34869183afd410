"""What a fit is asked for: the parameters of an MKL estimator, as the objects that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sklearn.utils import check_random_state

from manykernels.banks import Placement, Recipe
from manykernels.core.solver import Solver
from manykernels.losses import Loss
from manykernels.norms import Norm


@dataclass(frozen=True)
class Settings:
    """What the roads from data to weights are told: one record for each fit, so that they need not know estimators.

    Attributes
    ----------
    kernels : "standard", list of Kernel, KernelBank or Family
    solver : Solver
    norm : Norm
    loss : Loss
    recipe : Recipe
    wish : Placement
        Where the kernels are to be, in single precision; the budget is that of all of the fit.
    shared_weights : bool
    fit_intercept : bool
    tol : float
    max_iter : int
    n_jobs : int or None
    random_state : int, RandomState or None
    verbose : int
    """

    kernels: Any
    solver: Solver
    norm: Norm
    loss: Loss
    recipe: Recipe
    wish: Placement
    shared_weights: bool
    fit_intercept: bool
    tol: float
    max_iter: int
    n_jobs: int | None
    random_state: Any
    verbose: int

    @cached_property
    def seed(self) -> int:
        """The seed of all that is drawn in this fit, in whatever order threads draw it."""
        return check_random_state(self.random_state).randint(2**31 - 1)

    @property
    def solver_seed(self) -> int | None:
        """The seed for a solver that draws: None where no ``random_state`` was given."""
        return None if self.random_state is None else self.seed
