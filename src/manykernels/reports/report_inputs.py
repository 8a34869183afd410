"""Checks of what a report is given, made before the work and not after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from manykernels.core.notices import shown
from manykernels.core.rows import is_dask
from manykernels.reports.steps import last_step


def check_model(model: Any, feature_names: Sequence[str] | None) -> None:
    """Raise unless the model is fitted, predicts and has kernels, and feature names, if given, are complete."""
    last = last_step(model)
    if not hasattr(last, "kernels") or not (is_classifier(model) or is_regressor(model)):
        raise ValueError(
            f"A report needs a model with kernels that predicts classes or numbers, got {type(last).__name__}."
        )
    check_is_fitted(last)
    if hasattr(last, "n_outputs_"):
        raise ValueError(
            "A report is for one target or for classes: fit a model to one column of y, and report on that."
        )
    n_features = len(last.feature_importances_)
    if feature_names is not None and len(feature_names) != n_features:
        raise ValueError(f"feature_names must hold {n_features} names, one for each feature; got {len(feature_names)}.")


def checked_rows(model: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Return X with a shape, and y as an array that the model can be scored on; raise ValueError where they are not."""
    if is_dask(X):
        raise ValueError("A report needs X in memory: pass some of the rows, computed.")
    X, y = X if hasattr(X, "shape") else np.asarray(X), column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    if len(X.shape) != 2:
        raise ValueError(f"X must have rows and columns; it has the shape {X.shape}.")
    expected = getattr(model, "n_features_in_", X.shape[1])
    if X.shape[1] != expected:
        raise ValueError(f"X has {X.shape[1]} features, but the model was fitted on {expected}.")
    if is_classifier(model):
        unknown = np.setdiff1d(y, model.classes_)
        if unknown.size:
            raise ValueError(f"y holds the class {shown(unknown[0])}, which the model does not know.")
        return X, y
    y = y.astype(np.float64)
    if not np.isfinite(y).all():
        raise ValueError("y must hold finite numbers; some are missing or infinite.")
    return X, y


def check_varies(model: Any, y: np.ndarray) -> None:
    """Raise where all values of the target are the same."""
    if np.all(y == y[0]):
        raise ValueError(f"y must vary, but it is {shown(y[0]) if is_classifier(model) else f'{y[0]:g}'} in every row.")


def check_path(path: Any) -> None:
    """Raise unless a file can be written there."""
    if path is not None and (Path(path).is_dir() or not Path(path).parent.is_dir()):
        raise ValueError(f"path must be a file in a folder that exists; got '{path}'.")
