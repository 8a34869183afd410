"""Learning from a family of kernels: those that are selected become the kernels of the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from manykernels.banks import Data, Placement, Recipe, bind_family
from manykernels.banks.planning import plan_family
from manykernels.core.protocols import Bank
from manykernels.core.results import Result
from manykernels.core.solver import Sizes
from manykernels.estimators.running import checked, print_placement, quiet, watched
from manykernels.estimators.settings import Settings
from manykernels.estimators.warm_start import Learner
from manykernels.outer.family import FamilyProblem


def from_family(settings: Settings, data: Data, y: np.ndarray, C: np.ndarray, offset: Any) -> Learner:
    """Return what learns from a family in a precision, for tasks y and C of shape (n_tasks, n_distinct).

    The family is bound in that precision, since its search computes with the kernels that it is made of. What learns
    returns the selected kernels and what was learned from them.
    """
    solver, norm, loss = settings.solver, settings.norm, settings.loss
    n_tasks, n = y.shape
    if n_tasks > 1 and not settings.shared_weights:
        raise ValueError("A family of kernels needs shared_weights=True.")
    need = solver.need(Sizes(n_tasks, n, 0), norm, loss)  # how many kernels will be selected, nobody knows
    place = plan_family(n, need, Placement(settings.wish.budget))
    recipe = Recipe(settings.recipe.normalize)

    def learn(precision: str) -> tuple[Bank, list[Result]]:
        bound = bind_family(settings.kernels, data, recipe, replace(place, precision=precision))
        print_placement(settings, repr(settings.kernels), place)
        problem = FamilyProblem(bound, loss, norm, y, C, settings.fit_intercept, offset, precision)
        options: dict[str, Any] = {"tol": settings.tol, "max_iter": settings.max_iter}
        if solver.draws:
            options["random_state"] = settings.solver_seed
        with watched(settings), quiet():
            selected = solver(problem, **options)
        return selected.bank, [checked(selected.result)]

    return learn
