"""Fits whose rows are on Dask workers: the steps from the data to the attributes, without an array of all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from manykernels.core.checks import check_choice
from manykernels.core.notices import shown
from manykernels.core.rows import is_dask
from manykernels.estimators.memory_plan import DOUBLE_BELOW
from manykernels.estimators.solvers import SOLVERS

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
    from manykernels.distributed import gathered  # noqa: PLC0415 - it needs an optional dependency

    return gathered(estimator.memory_budget, X, y, sample_weight)


def fit_rows(estimator: BaseMKL, X: Any, y: Any, sample_weight: Any, class_factors: Any = None) -> None:
    """Fit on rows that are on workers, and set the attributes.

    ``class_factors(classes, weights)`` returns the weight of each class, for a classifier.
    """
    from manykernels import distributed  # noqa: PLC0415 - it needs an optional dependency

    _check(estimator)
    client = distributed.find_client(estimator.n_jobs if estimator._is_distributed() else "dask")
    raw, source, table = distributed.load_rows(client, X, y, sample_weight, estimator.missing == "ignore")
    _set_columns(estimator, source, table)
    meta = np.zeros((0, source.shape[1])) if table is None else table
    kernels = estimator._bank(meta).written_out()
    if estimator.missing == "ignore":
        raw.each(distributed.check_views, kernels, meta)
    unit, offset = 1.0, 0.0
    if is_classifier(estimator):
        classes, weights = distributed.class_counts(raw)
        check_classification_targets(classes)
        if classes.size < 2:
            raise ValueError(f"y must hold at least 2 classes, got 1 class: {shown(classes[0])}.")
        estimator.classes_ = classes
        targets = distributed.Targets(estimator.C, classes, class_factors(classes, weights))
    else:
        total, first, second = raw.sum(distributed.moments_of)
        offset = float(first / total) if estimator.fit_intercept and estimator._loss().shifts else 0.0
        unit = float(np.sqrt(max(second / total - (first / total) ** 2, 0.0))) or 1.0
        targets = distributed.Targets(estimator.C, offset=offset)

    def learn(precision: str) -> tuple:
        bank = distributed.RowBank(
            raw,
            kernels.resolve(meta),
            source,
            targets,
            approximation=estimator.approximation,
            rank=estimator.rank,
            normalize=estimator.normalize,
            center=estimator.center,
            precision=precision,
            random_state=np.random.default_rng(check_random_state(estimator.random_state).randint(2**31 - 1)),
            unit=unit,
        )
        problem = distributed.row_problem(bank, estimator._loss(), estimator._norm(), estimator.fit_intercept)
        return bank, estimator._solve([problem], [None])

    bank, results = learn("double" if estimator.tol < DOUBLE_BELOW else "single")
    if bank.precision == "single" and estimator._want_digits(results):
        bank, results = learn("double")
    estimator._set_attributes(bank, results, None, offset)
    estimator._warn_if_not_converged()


def _check(estimator: BaseMKL) -> None:
    """Raise ValueError for what cannot be done without an array of all rows."""
    from manykernels.distributed import RowBank  # noqa: PLC0415 - it needs an optional dependency

    if not estimator._solver().can_do_with(RowBank.capabilities):
        names = tuple(name for name, solver in SOLVERS.items() if solver.can_do_with(RowBank.capabilities))
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
