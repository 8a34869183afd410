"""Classes and their numbers, targets, weights and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight

from manykernels.core.notices import shown


def check_classes(classes: np.ndarray) -> np.ndarray:
    """Return the classes, or say that there is nothing to tell apart."""
    if classes.size < 2:
        raise ValueError(f"y must hold at least 2 classes, got 1 class: {shown(classes[0])}.")
    return classes


def classes_of(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, in order, and the number of each sample's."""
    classes, codes = np.unique(y, return_inverse=True)
    return check_classes(classes), codes


def class_weights(given: Any, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weight of each class; "balanced" counts samples with their weights."""
    if isinstance(given, str) and given == "balanced":
        return weight.sum() / (classes.size * np.bincount(codes, weight))
    factors = compute_class_weight(given, classes=classes, y=classes[codes])
    if not np.all((factors > 0) & np.isfinite(factors)):
        raise ValueError(f"class_weight must hold positive numbers, got {given!r}.")
    return factors


def costs_of(estimator: Any, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weight of each sample's loss, for a classifier that knows its classes."""
    return estimator.C * weight * class_weights(estimator.class_weight, estimator.classes_, codes, weight)[codes]


def labels_of(classes: np.ndarray, decisions: np.ndarray) -> np.ndarray:
    """Return the class that decisions are for: by their sign, or the largest of one for each class."""
    if decisions.ndim == 1:
        return classes[(decisions > 0).astype(int)]
    return classes[decisions.argmax(axis=1)]
