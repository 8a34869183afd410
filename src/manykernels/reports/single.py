"""The best single kernel, chosen on training rows alone.

Every kernel is judged by the leave-one-out errors of ridge regression, which one inverse gives; if there are very many,
only those that are best aligned with the target and unlike one another. The best few, and those with the largest
weights in the learned sum, are then validated with the model's parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_val_score

from manykernels.alignment import Target, alignments
from manykernels.banks import Recipe, bind
from manykernels.compute.threads import one_blas_thread
from manykernels.kernels.columns import resolve_columns
from manykernels.kernels.lazy_names import run_lengths
from manykernels.kernels.standard import as_bank
from manykernels.reports.division import shares_of
from manykernels.reports.forms import form_of
from manykernels.reports.steps import as_seen, inner_folds, is_balanced, last_step, metric_of, some_rows, with_last

# Rows on which kernels are judged, and on which the best ones are validated.
_JUDGED_ROWS, _VALIDATED_ROWS = 200, 2000
# Up to _ALL kernels are all judged. Of more: _ALIGNED that are well aligned and unlike one another, _WIDEST of the view
# with the most features, since alignment underrates kernels on many features, and _USED that the model uses.
_ALL, _ALIGNED, _WIDEST, _USED = 100, 50, 20, 10
# Kernels that are validated: the best ones, a few of each kind on each view, and those with the largest weights.
_BEST, _PER_KIND, _LARGEST = 6, 2, 2
_SMALLEST_RIDGE = 1e-6


def fit_single(model: Any, learned: Any, X: Any, y: np.ndarray, seed: int) -> tuple[Any, str]:
    """Fit the model with the single kernel that validates best on the training rows.

    Parameters
    ----------
    model : estimator with a list of kernels, or a Pipeline that ends in one
    learned : the same, fitted on X and y
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    seed : int
        Seed of the choice of rows and of the folds.

    Returns
    -------
    fitted : the model with one kernel
    tried : str
        How many kernels it was chosen from, in words.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.reports.single import fit_single
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifier()
    >>> fit_single(model, model.fit(X, y), X, y, seed=0)[1]
    'all 65 kernels'
    """
    last, classes = last_step(model), is_classifier(model)
    kernels, tried = _leading(last, learned, X, y, seed)
    few_X, few_y = some_rows(X, y, _VALIDATED_ROWS, seed, classes)
    candidates = [with_last(model, clone(last).set_params(**_alone(last, learned, kernel))) for kernel in kernels]
    folds, best = inner_folds(few_y, classes, seed), 0
    if folds is not None and len(candidates) > 1:
        scoring = "balanced_accuracy" if metric_of(model, y) == "balanced accuracy" else None
        best = int(np.argmax([_validated(one, few_X, few_y, folds, scoring) for one in candidates]))
    return with_last(model, clone(last).set_params(**_alone(last, None, kernels[best]))).fit(X, y), tried


def _validated(candidate: Any, X: Any, y: np.ndarray, folds: Any, scoring: str | None) -> float:
    return float(np.mean(cross_val_score(candidate, X, y, cv=folds, scoring=scoring)))


def _alone(estimator: Any, learned: Any, kernel: Any) -> dict[str, Any]:
    """Return the parameters for one kernel, with the C that a fitted model chose; the norm makes no difference then."""
    known = estimator.get_params(deep=False)
    settings: dict[str, Any] = {"kernels": [kernel]}
    settings |= {"norms": [2.0]} if "norms" in known else {"norm": 2.0} if "norm" in known else {}
    settings |= {"Cs": [last_step(learned).C_], "cv": 2} if "Cs" in known and learned is not None else {}
    return settings | ({"solver": "auto"} if "solver" in known else {})


def _leading(last: Any, learned: Any, X: Any, y: np.ndarray, seed: int) -> tuple[list[Any], str]:
    """Return the kernels to validate, and how many they were chosen from, in words."""
    classes = is_classifier(last)
    X, y = some_rows(X, y, _JUDGED_ROWS, seed, classes)
    X = as_seen(learned, X)
    bank = as_bank(last.kernels, X)
    recipe = Recipe(getattr(last, "normalize", "mean_diag"), getattr(last, "center", False))
    bound = bind(bank, X, recipe)
    used = _used(last_step(learned), bound.n_kernels)
    kernels = bank.written_out().kernels
    judged = np.arange(bound.n_kernels)
    if judged.size > _ALL:
        target = Target.of_classes(y) if classes else Target.of_values(y)
        judged = _unlike(bound, kernels, X, alignments(bound, target), used)
    targets = pd.get_dummies(y).to_numpy(np.float64) if classes else y[:, None]
    weights = 1 / targets.sum(axis=0)[targets.argmax(axis=1)] if is_balanced(last) else np.ones(y.size)
    strength = getattr(last_step(learned), "C_", getattr(last, "C", 1.0))
    with one_blas_thread():
        errors = [left_out_error(K, targets, weights, 1 / strength) for K in bound.rows(np.arange(y.size), judged)]
    best = _of_each_kind(bound, judged[np.argsort(errors, kind="stable")])[:_BEST]
    few = f"{judged.size:,} of" if judged.size < bound.n_kernels else "all"
    return [kernels[k] for k in dict.fromkeys([*best, *used[:_LARGEST]])], f"{few} {bound.n_kernels:,} kernels"


def _used(learned: Any, n_kernels: int) -> list[int]:
    """Return the places of the kernels with the largest weights, or none where the model has other kernels."""
    shares = shares_of(learned.weights_)
    order = np.argsort(-shares, kind="stable")[:_USED]
    return [int(k) for k in order if shares[k] > 0] if shares.size == n_kernels else []


def _unlike(bound: Any, kernels: Any, X: Any, scores: np.ndarray, used: list[int]) -> np.ndarray:
    """Return the best aligned kernels, one of each form and octave of widths on each view, and those in use."""
    views = np.repeat(*np.array([(place, count) for place, (_, count) in enumerate(run_lengths(bound.groups))]).T)
    order = np.argsort(-scores, kind="stable")
    keys = pd.Series([(form_of(bound.names[int(k)], gather=True), int(views[k])) for k in order])
    order = order[~keys.duplicated().to_numpy()]
    first = np.flatnonzero(np.diff(views, prepend=-1))
    widest = np.argmax([resolve_columns(kernels[k].columns, X).size for k in first])
    wide = order[views[order] == widest][:_WIDEST]
    return np.array(list(dict.fromkeys([*order[:_ALIGNED].tolist(), *wide.tolist(), *used])))


def _of_each_kind(bound: Any, order: np.ndarray) -> list[int]:
    """Return the first few kernels of each kind on each view, in the same order."""
    keys = pd.Series([(bound.names[int(k)].split("(")[0], bound.groups[int(k)]) for k in order])
    return [int(k) for k in order[(keys.groupby(keys).cumcount() < _PER_KIND).to_numpy()]]


def left_out_error(K: np.ndarray, targets: np.ndarray, weights: np.ndarray, ridge: float) -> float:
    """Return the mean squared error of ridge regression on rows that are left out one by one.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        A kernel matrix.
    targets : ndarray of shape (n, n_targets)
    weights : ndarray of shape (n,)
        Weights of the rows in the mean.
    ridge : float

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.reports.single import left_out_error
    >>> x, alike = np.linspace(-1, 1, 50), np.ones(50)
    >>> left_out_error(np.outer(x, x), x[:, None], alike, 0.1) < left_out_error(np.eye(50), x[:, None], alike, 0.1)
    True
    """
    # A constant in the kernel acts as the intercept; the mean, which may be large, is subtracted instead.
    inverse = np.linalg.inv(K + 1.0 + max(ridge, _SMALLEST_RIDGE) * np.eye(len(K)))
    missed = inverse @ (targets - targets.mean(axis=0)) / np.diag(inverse)[:, None]
    return float(np.average((missed**2).sum(axis=1), weights=weights))
