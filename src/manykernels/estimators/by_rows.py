"""Fits whose rows are on Dask workers: the steps from the data to the attributes, without an array of all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.multiclass import check_classification_targets

from manykernels.banks import Data, bind
from manykernels.core.checks import check_choice
from manykernels.core.notices import shown
from manykernels.core.rows import is_dask
from manykernels.estimators.solvers import SOLVERS
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


def fit_rows(estimator: BaseMKL, X: Any, y: Any, sample_weight: Any, class_factors: Any = None) -> None:
    """Fit on rows that are on workers, and set the attributes.

    ``class_factors(classes, weights)`` returns the weight of each class, for a classifier.
    """
    from manykernels.banks import cluster  # noqa: PLC0415 - it needs an optional dependency

    _check(estimator)
    client = cluster.find_client(estimator.n_jobs if estimator._is_distributed() else "dask")
    raw, source, table = cluster.load_rows(client, X, y, sample_weight, estimator.missing == "ignore")
    _set_columns(estimator, source, table)
    meta = np.zeros((0, source.shape[1])) if table is None else table
    kernels = estimator._bank(meta).written_out()
    if estimator.missing == "ignore":
        raw.each(cluster.check_views, kernels, meta)
    unit, offset = 1.0, 0.0
    if is_classifier(estimator):
        classes, weights = cluster.class_counts(raw)
        check_classification_targets(classes)
        if classes.size < 2:
            raise ValueError(f"y must hold at least 2 classes, got 1 class: {shown(classes[0])}.")
        estimator.classes_ = classes
        targets = cluster.Targets(estimator.C, classes, class_factors(classes, weights))
    else:
        total, first, second = raw.sum(cluster.moments_of)
        offset = float(first / total) if estimator.fit_intercept and estimator._loss().shifts else 0.0
        unit = float(np.sqrt(max(second / total - (first / total) ** 2, 0.0))) or 1.0
        targets = cluster.Targets(estimator.C, offset=offset)

    source.targets, source.unit = targets, unit

    def learn(precision: str) -> tuple:
        placement = replace(estimator._wish(precision), client=client)
        bank = bind(kernels, Data(source, meta), estimator._recipe(), placement, estimator._seed())
        # It offers less than other banks, and arrays of which only a sample is here: solvers ask for what they need.
        problem = Problem(bank, estimator._loss(), estimator._norm(), bank.targets, bank.costs, estimator.fit_intercept)
        return bank, estimator._solve([problem], [None])

    bank, results = estimator._with_digits(learn)
    estimator._set_attributes(bank, results, None, offset)
    estimator._warn_if_not_converged()


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


def _set_columns(estimator: BaseMKL, source: Any, table: Any) -> None:
    """Set what scikit-learn's check of the data would."""
    estimator.n_features_in_ = source.shape[1]
    if table is not None and all(isinstance(name, str) for name in table.columns):
        estimator.feature_names_in_ = np.asarray(table.columns, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
