"""Fits whose rows are on Dask workers: the steps from the data to the attributes, without an array of all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.multiclass import check_classification_targets

from manykernels.banks import Data, bind, on_workers
from manykernels.core.checks import check_choice
from manykernels.core.protocols import Bank, BankOfRows
from manykernels.core.results import Result
from manykernels.core.rows import is_dask
from manykernels.core.targets import offset_of
from manykernels.estimators.classes import check_classes, class_weights
from manykernels.estimators.loss_and_norm import of_groups
from manykernels.estimators.running import check_costs, print_placement, solve
from manykernels.estimators.solvers import SOLVERS
from manykernels.estimators.training import set_columns
from manykernels.kernels import KernelBank
from manykernels.problem import Problem

if TYPE_CHECKING:
    from manykernels.estimators.base import BaseMKL


def client_of_rows(estimator: BaseMKL, X: Any) -> Any:
    """Return the client of the workers for rows: for features of Dask data, or with a Dask client; None otherwise."""
    if estimator.approximation is None:
        return None
    return on_workers.find_client("dask") if is_dask(X) and not estimator._is_distributed() else estimator._client()


def in_memory(estimator: BaseMKL, X: Any, y: Any, sample_weight: Any) -> tuple:
    """Return the data as they are, Dask collections gathered if they are small enough."""
    if not any(is_dask(data) for data in (X, y, sample_weight)):
        return X, y, sample_weight
    return on_workers.gathered(estimator.memory_budget, X, y, sample_weight)


def learn_rows(
    estimator: BaseMKL, client: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Bank, list[Result], None, float]:
    """Learn from rows that are on workers; return their bank, the results, no samples, and the offset of the target."""
    _check(estimator)
    norm, loss = estimator._norm(), estimator._loss()
    estimator._solver().refuse(norm, loss)
    source, table = on_workers.load_rows(client, X, y, sample_weight, estimator.missing == "ignore")
    set_columns(estimator, source.shape[1], None if table is None else table.columns)
    meta = np.zeros((0, source.shape[1])) if table is None else table
    kernels = estimator._bank(meta).written_out()
    if estimator.missing == "ignore":
        source.check_views(kernels, meta)
    source.targets, source.unit, offset = _targets(estimator, source)
    check_costs(source.least_costs())

    def learn(precision: str) -> tuple[Bank, list[Result]]:
        place = replace(estimator._wish(precision), client=client, why="they stay where the rows are")
        bank: BankOfRows = bind(kernels, Data(source, meta), estimator._recipe(), place, estimator._seed())
        print_placement(estimator, bank.describe_storage(), bank.placement)
        bound = of_groups(norm, bank.groups)
        # It offers less than other banks, and arrays of which only a sample is here: solvers ask for what they need.
        problem = Problem(bank, loss, bound, bank.targets, bank.costs, estimator.fit_intercept)
        return bank, solve(estimator, [problem], [None])

    return *estimator._with_digits(learn), None, offset


def _targets(estimator: BaseMKL, source: Any) -> tuple[Any, float, float]:
    """Return the targets of the rows, their unit, and what was subtracted from them; set the classes, if any."""
    if is_classifier(estimator):
        classes, weights = source.class_counts()
        check_classification_targets(classes)
        estimator.classes_ = check_classes(classes)
        factors = class_weights(estimator.class_weight, classes, np.arange(classes.size), weights)
        return on_workers.Targets(estimator.C, classes, factors), 1.0, 0.0
    total, first, second = source.moments()
    offset = offset_of(first / total, estimator._loss(), estimator.fit_intercept)
    unit = float(np.sqrt(max(second / total - (first / total) ** 2, 0.0))) or 1.0
    return on_workers.Targets(estimator.C, offset=offset), unit, offset


def _check(estimator: BaseMKL) -> None:
    """Raise ValueError for what cannot be done without an array of all rows."""
    if not estimator._solver().can_do_with(on_workers.ROWS_CAN):
        names = tuple(name for name, solver in SOLVERS.items() if solver.can_do_with(on_workers.ROWS_CAN))
        check_choice("solver", estimator.solver, names, more=" with rows on Dask workers")
    levels = estimator._norm().levels()
    if levels is not None and levels.groups is not None:
        raise ValueError(
            f"With rows on Dask workers, norm must be a number or a norm without groups, got {estimator.norm!r}."
        )
    if isinstance(estimator.kernels, KernelBank):
        estimator.kernels.require_plain(f"approximation={estimator.approximation!r}")
    for name, needed in (("shared_weights", True), ("probability", False)):
        if getattr(estimator, name, needed) != needed:
            raise ValueError(f"With rows on Dask workers, {name} must be {needed}.")
