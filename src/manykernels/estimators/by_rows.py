"""Fits whose rows are on Dask workers: the steps from the data to the attributes, without an array of all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.multiclass import check_classification_targets

from manykernels.banks import Data, bind
from manykernels.core.checks import check_choice
from manykernels.core.protocols import Bank, BankOfRows
from manykernels.core.results import Result
from manykernels.core.rows import is_dask
from manykernels.estimators.classes import check_classes, class_weights
from manykernels.estimators.solvers import SOLVERS
from manykernels.estimators.solving import solve
from manykernels.estimators.training import set_columns
from manykernels.problem import Problem

if TYPE_CHECKING:
    from manykernels.estimators.base import BaseMKL


def goes_by_rows(estimator: BaseMKL, X: Any) -> bool:
    """Return whether rows are to be on workers: features of them, and Dask data or a Dask client."""
    if estimator.approximation is None:
        return False
    return is_dask(X) or estimator._client() is not None


def in_memory(estimator: BaseMKL, X: Any, y: Any, sample_weight: Any) -> tuple:
    """Return the data as they are, Dask collections gathered if they are small enough."""
    if not any(is_dask(data) for data in (X, y, sample_weight)):
        return X, y, sample_weight
    from manykernels.banks.cluster import gathered  # noqa: PLC0415 - it needs an optional dependency

    return gathered(estimator.memory_budget, X, y, sample_weight)


def learn_rows(estimator: BaseMKL, X: Any, y: Any, sample_weight: Any) -> tuple[Bank, list[Result], None, float]:
    """Learn from rows that are on workers; return their bank, the results, no samples, and the offset of the target."""
    from manykernels.banks import cluster  # noqa: PLC0415 - it needs an optional dependency

    _check(estimator)
    client = cluster.find_client(estimator.n_jobs if estimator._is_distributed() else "dask")
    raw, source, table = cluster.load_rows(client, X, y, sample_weight, estimator.missing == "ignore")
    set_columns(estimator, source.shape[1], None if table is None else table.columns)
    meta = np.zeros((0, source.shape[1])) if table is None else table
    kernels = estimator._bank(meta).written_out()
    if estimator.missing == "ignore":
        raw.each(cluster.check_views, kernels, meta)
    source.targets, source.unit, offset = _targets(estimator, raw)

    def learn(precision: str) -> tuple[Bank, list[Result]]:
        placement = replace(estimator._wish(precision), client=client)
        bank: BankOfRows = bind(kernels, Data(source, meta), estimator._recipe(), placement, estimator._seed())
        # It offers less than other banks, and arrays of which only a sample is here: solvers ask for what they need.
        problem = Problem(bank, estimator._loss(), estimator._norm(), bank.targets, bank.costs, estimator.fit_intercept)
        return bank, solve(estimator, [problem], [None])

    return *estimator._with_digits(learn), None, offset


def _targets(estimator: BaseMKL, raw: Any) -> tuple[Any, float, float]:
    """Return the targets of the rows, their unit, and what was subtracted from them; set the classes, if any."""
    from manykernels.banks import cluster  # noqa: PLC0415 - it needs an optional dependency

    if is_classifier(estimator):
        classes, weights = cluster.class_counts(raw)
        check_classification_targets(classes)
        estimator.classes_ = check_classes(classes)
        factors = class_weights(estimator.class_weight, classes, np.arange(classes.size), weights)
        return cluster.Targets(estimator.C, classes, factors), 1.0, 0.0
    total, first, second = raw.sum(cluster.moments_of)
    offset = float(first / total) if estimator.fit_intercept and estimator._loss().shifts else 0.0
    unit = float(np.sqrt(max(second / total - (first / total) ** 2, 0.0))) or 1.0
    return cluster.Targets(estimator.C, offset=offset), unit, offset


def _check(estimator: BaseMKL) -> None:
    """Raise ValueError for what cannot be done without an array of all rows."""
    from manykernels.banks.cluster import RowBank  # noqa: PLC0415 - it needs an optional dependency

    if not estimator._solver().can_do_with(RowBank.can):
        names = tuple(name for name, solver in SOLVERS.items() if solver.can_do_with(RowBank.can))
        check_choice("solver", estimator.solver, names, more=" with rows on Dask workers")
    levels = estimator._norm().levels()
    if levels is not None and levels.groups is not None:
        raise ValueError(
            f"With rows on Dask workers, norm must be a number or a norm without groups, got {estimator.norm!r}."
        )
    for name, needed in (("shared_weights", True), ("probability", False)):
        if getattr(estimator, name, needed) != needed:
            raise ValueError(f"With rows on Dask workers, {name} must be {needed}.")
