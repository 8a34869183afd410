"""What a report needs of models and of rows: the step with the kernels, the score, folds, samples of the rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from manykernels.tables.balance import weigh_classes

# What scores are called in words.
METRICS = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "r2": "R2"}
_INNER_FOLDS = 3


def last_step(model: Any) -> Any:
    """Return the estimator with the kernels: the model itself, or the end of a pipeline."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def with_last(model: Any, last: Any) -> Any:
    """Return an unfitted copy of the model with another last step."""
    if not isinstance(model, Pipeline):
        return clone(last)
    return Pipeline(
        [*((name, clone(step, safe=False)) for name, step in model.steps[:-1]), (model.steps[-1][0], clone(last))]
    )


def as_seen(fitted: Any, X: Any) -> Any:
    """Return rows as the last step of a fitted pipeline sees them."""
    return fitted[:-1].transform(X) if isinstance(fitted, Pipeline) and len(fitted.steps) > 1 else X


def is_balanced(model: Any) -> bool:
    """Return whether all classes are to count alike."""
    weights = getattr(last_step(model), "class_weight", None)
    return isinstance(weights, str) and weights == "balanced"


def metric_of(model: Any, y: np.ndarray) -> str:
    """Return words for the score by which to compare: where classes are uneven, all are to count alike."""
    return METRICS[weigh_classes(y, "yes" if is_balanced(model) else "no").metric if is_classifier(model) else "r2"]


def folds_of(y: np.ndarray, classes: bool, folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test rows of each fold; classes are spread evenly, those with few rows over some folds."""
    if not classes:
        return list(KFold(folds, shuffle=True, random_state=seed).split(y))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(y, y))


def inner_folds(y: np.ndarray, classes: bool, seed: int) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """Return folds within training rows, or None where there are too few rows."""
    # With two rows of two classes, every training part has two classes.
    enough = int(np.sort(np.unique(y, return_counts=True)[1])[-2:].min()) if classes else y.size // 2
    return None if enough < 2 else folds_of(y, classes, min(_INNER_FOLDS, enough), seed)


def some_rows(X: Any, y: np.ndarray, count: int, seed: int, classes: bool) -> tuple[Any, np.ndarray]:
    """Return at most ``count`` rows, drawn at random; each class keeps its share, and at least two rows."""
    if y.size <= count:
        return X, y
    order = np.random.default_rng(seed).permutation(y.size)
    if classes:
        # A row's place within its class, as a share of the class: taking the smallest gives each class its part.
        codes = np.unique(y[order], return_inverse=True)[1]
        place = pd.Series(codes).groupby(codes).cumcount().to_numpy()
        share = np.where(place < 2, -1.0, place / np.bincount(codes)[codes])
        order = order[np.argsort(share, kind="stable")]
    rows = np.sort(order[:count])
    return _safe_indexing(X, rows), y[rows]
