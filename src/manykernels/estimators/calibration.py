"""Probabilities from decision values: temperature scaling on held-out folds.

One number, the temperature, turns decision values into probabilities:
softmax(s f), for two classes the sigmoid of s f. It is the s with the
highest likelihood on samples that the model did not see. It keeps the order
of the classes, so that the most probable class is the predicted one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp, softmax
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import _safe_indexing

from manykernels.core.notices import shown, warn
from manykernels.core.rows import is_on_disk
from manykernels.estimators.training import Training
from manykernels.estimators.warm_start import WarmStart

if TYPE_CHECKING:
    from manykernels.estimators.classifier import MKLClassifier

_FOLDS = 5
_LOG_RANGE = (-10.0, 10.0)


def probabilities(decisions: np.ndarray, scale: float) -> np.ndarray:
    """Return the class probabilities, shape (n, n_classes), of decisions of shape (n, n_tasks).

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.estimators.calibration import probabilities
    >>> probabilities(np.array([[0.0]]), 2.0)
    array([[0.5, 0.5]])
    """
    if decisions.shape[1] == 1:
        positive = expit(scale * decisions)
        return np.hstack([1.0 - positive, positive])
    return softmax(scale * decisions, axis=1)


def logistic_probabilities(decisions: np.ndarray) -> np.ndarray:
    """Return the same for the logistic loss: sigmoids, of several classes one against the rest scaled to sum 1.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.estimators.calibration import logistic_probabilities
    >>> logistic_probabilities(np.array([[0.0, 0.0, 0.0, 0.0]]))
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    if decisions.shape[1] == 1:
        return probabilities(decisions, 1.0)
    positive = expit(decisions)
    # Where every sigmoid is 0 to rounding, their ratios are those of the exponentials.
    total = positive.sum(axis=1, keepdims=True)
    return np.where(total > 0, positive / np.where(total > 0, total, 1.0), probabilities(decisions, 1.0))


def label_probabilities(decisions: np.ndarray, scale: float) -> np.ndarray:
    """Return the probability of each label, of which a sample may have many, for decisions of shape (n, n_labels).

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.estimators.calibration import label_probabilities
    >>> label_probabilities(np.array([[0.0, 0.0]]), 1.0)
    array([[0.5, 0.5]])
    """
    return expit(scale * decisions)


def held_out_scale(estimator: MKLClassifier, training: Training) -> float | None:
    """Return the s of the module's docstring, None if Ctrl-C ended the fit to a fold early.

    The folds are made of distinct samples, so that no copy of a sample is
    seen in training. A class with a single sample stays in every training
    part, and the warning says so.
    """
    X, y, weight = _taken(training.table, training.samples.rows), training.target, training.samples.weight
    if training.n_outputs is not None:
        if len(y) < 2:
            raise ValueError("probability=True needs at least 2 distinct samples, to hold one out.")
        folds = KFold(min(_FOLDS, len(y)), shuffle=True, random_state=estimator.random_state)
        decisions = _held_out_decisions(estimator, X, y, weight, [test for _, test in folds.split(y)])
        return None if decisions is None else _most_likely_scale_of_labels(decisions, y, weight)
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    single = counts[codes] < 2
    if single.any():
        name = shown(classes[counts < 2][0])
        warn(f"Class {name} has one distinct sample: probabilities are calibrated without it.")
    if single.all():
        raise ValueError("probability=True needs a class with at least 2 distinct samples, to hold one out.")
    divisible = np.flatnonzero(~single)
    parts = StratifiedKFold(min(_FOLDS, counts[counts >= 2].min()), shuffle=True, random_state=estimator.random_state)
    tests = [divisible[fold] for _, fold in parts.split(divisible, codes[divisible])]
    decisions = _held_out_decisions(estimator, X, y, weight, tests)
    if decisions is None:
        return None
    return _most_likely_scale(decisions[divisible], codes[divisible], weight[divisible])


def _held_out_decisions(
    estimator: MKLClassifier, X: Any, y: np.ndarray, weight: np.ndarray, tests: list[np.ndarray]
) -> np.ndarray | None:
    """Return the decisions for the samples of each part by a fit to the others, else 0; None after Ctrl-C."""
    decisions: np.ndarray | None = None
    for test in tests:
        train = np.setdiff1d(np.arange(len(y)), test)
        model = clone(estimator).set_params(probability=False)
        data = model._read(_safe_indexing(X, train), y[train], weight[train])
        if model._fit_to(data, WarmStart()):
            return None
        values = model._decisions(_safe_indexing(X, test))
        decisions = np.zeros((len(y), values.shape[1])) if decisions is None else decisions
        decisions[test] = values
    return decisions


def _taken(X: Any, rows: np.ndarray) -> Any:
    """Return rows of the data, in memory where they were on disk."""
    return X[rows] if is_on_disk(X) else _safe_indexing(X, rows)


def _most_likely_scale(decisions: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> float:
    """Return the s that maximizes the weighted likelihood of the classes."""
    scores = np.hstack([np.zeros_like(decisions), decisions]) if decisions.shape[1] == 1 else decisions
    chosen = scores[np.arange(codes.size), codes]

    def cost(log_scale: float) -> float:
        scale = np.exp(log_scale)
        return float(weight @ (logsumexp(scale * scores, axis=1) - scale * chosen))

    return float(np.exp(minimize_scalar(cost, bounds=_LOG_RANGE, method="bounded").x))


def _most_likely_scale_of_labels(decisions: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Return the s that maximizes the weighted likelihood of the labels, of shape (n, n_labels)."""
    margins = np.where(y > 0, decisions, -decisions)

    def cost(log_scale: float) -> float:
        return float(weight @ np.logaddexp(0.0, -np.exp(log_scale) * margins).sum(axis=1))

    return float(np.exp(minimize_scalar(cost, bounds=_LOG_RANGE, method="bounded").x))
