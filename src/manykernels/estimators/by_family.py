"""Learning from a family of kernels: those that are selected become the kernels of the model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from manykernels.banks import Placement, Recipe, bind_family
from manykernels.banks.planning import plan_family
from manykernels.core.protocols import Bank
from manykernels.core.results import Result
from manykernels.core.solver import Sizes
from manykernels.estimators.running import checked, print_placement, quiet, watched
from manykernels.estimators.training import Training
from manykernels.outer.family import FamilyProblem

if TYPE_CHECKING:
    from manykernels.estimators.base import BaseMKL


def learn_family(
    estimator: BaseMKL, training: Training, y: np.ndarray, C: np.ndarray, offset: float
) -> tuple[Bank, list[Result]]:
    """Return the selected kernels and what was learned from them, for tasks y and C of shape (n_tasks, n_distinct)."""
    solver, norm, loss = estimator._solver(), estimator._norm(), estimator._loss()
    solver.check_kernels(estimator.kernels.can)
    solver.refuse(norm, loss)
    n_tasks, n = y.shape
    if not estimator._shares_weights(n_tasks):
        raise ValueError("A family of kernels needs shared_weights=True.")
    need = solver.need(Sizes(n_tasks, n, 0), norm, loss)  # how many kernels will be selected, nobody knows
    place = plan_family(n, need, Placement(estimator.memory_budget))
    bound = bind_family(estimator.kernels, training.data(), Recipe(estimator.normalize), place)
    print_placement(estimator, repr(estimator.kernels), place)
    problem = FamilyProblem(bound, loss, norm, y, C, estimator.fit_intercept, offset)

    def learn(precision: str) -> tuple[Bank, list[Result]]:
        options: dict[str, Any] = {"tol": estimator.tol, "max_iter": int(estimator.max_iter)}
        if solver.draws:
            options["random_state"] = check_random_state(estimator.random_state).randint(2**31 - 1)
        selected = solver(replace(problem, precision=precision), **options)
        return selected.bank, [selected.result]

    with watched(estimator), quiet():
        bank, (result,) = estimator._with_digits(learn)
    return bank, [checked(result)]
