"""Classes and their numbers, targets, weights and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight

from manykernels.core.notices import shown
from manykernels.core.targets import LabelTargets, Targets


def check_classes(classes: np.ndarray) -> np.ndarray:
    """Return the classes, or say that there is nothing to tell apart."""
    if classes.size < 2:
        raise ValueError(f"y must hold at least 2 classes, got 1 class: {shown(classes[0])}.")
    return classes


def label_targets_of(estimator: Any, training: Any) -> LabelTargets:
    """Return how the labels of the training data become tasks; its classes are the numbers of their columns."""
    estimator.classes_ = np.arange(training.n_outputs)
    return LabelTargets(estimator.C, _label_weights(estimator.class_weight, training))


def targets_of(estimator: Any, training: Any) -> Targets:
    """Return how the classes of the training data become tasks; the estimator is told its classes."""
    classes, counts = training.class_counts
    estimator.classes_ = check_classes(classes)
    return Targets(estimator.C, classes, _class_weights(estimator.class_weight, classes, counts))


def _class_weights(given: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the weight of each class; "balanced" counts samples with their weights."""
    if isinstance(given, str) and given == "balanced":
        return counts.sum() / (classes.size * counts)
    factors = compute_class_weight(given, classes=classes, y=classes)
    if not np.all((factors > 0) & np.isfinite(factors)):
        raise ValueError(f"class_weight must hold positive numbers, got {given!r}.")
    return factors


def _label_weights(given: Any, training: Any) -> np.ndarray | None:
    """Return the weights of the samples without and with each label, (2, n_labels); a dict is for all labels alike.

    "balanced" gives both the same sum; a label that all or no samples have leaves them as they are.
    """
    if given is None:
        return None
    if isinstance(given, str) and given == "balanced":
        weight = training.samples.weight
        positive = weight @ training.target
        counts = np.array([weight.sum() - positive, positive])
        return np.where(np.all(counts > 0, axis=0), weight.sum() / (2 * np.maximum(counts, 1e-300)), 1.0)
    return np.tile(_class_weights(given, np.arange(2), np.ones(2))[:, None], training.n_outputs)


def labels_of(classes: np.ndarray, decisions: np.ndarray) -> np.ndarray:
    """Return the class that decisions are for: by their sign, or the largest of one for each class."""
    if decisions.ndim == 1:
        return classes[(decisions > 0).astype(int)]
    return classes[decisions.argmax(axis=1)]
