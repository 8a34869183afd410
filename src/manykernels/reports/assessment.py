"""How good a model is: predictions of refits that have not seen the row, compared with those of simpler models.

In each fold the model is fitted anew on the other folds, and so is everything that it is compared with. No row
influences a model that predicts it: not its weights, and not any choice.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from manykernels.core.checks import check_count
from manykernels.core.notices import shown
from manykernels.core.progress import reached, silent
from manykernels.reports.contestants import Contestant, contestants
from manykernels.reports.division import Division, divide
from manykernels.reports.intervals import Interval, area_under_roc, explained, mean_interval, paired_difference, wilson
from manykernels.reports.steps import as_seen, folds_of, is_balanced, last_step, metric_of
from manykernels.tables.balance import UNEVEN, evenness


@dataclass(frozen=True)
class Outcome:
    """How one contestant did on rows that it had not seen.

    Attributes
    ----------
    name, note : str
    predicted : ndarray of shape (n_samples,)
    decisions : ndarray of shape (n_samples, n_classes), or (n_samples, 1) for two classes; None where there are none
    score : Interval
        By the assessment's ``metric``.
    difference : Interval
        How much better the model is.
    beside : dict from the name of each further score to its value
        For classes, the other accuracy and the area under the ROC curve (with several, the mean over the classes);
        for numbers, the root mean squared error and the mean absolute error.
    seconds : float
        Of its fits and predictions.
    """

    name: str
    note: str
    predicted: np.ndarray
    decisions: np.ndarray | None
    score: Interval
    difference: Interval
    beside: dict[str, float]
    seconds: float


@dataclass(frozen=True)
class Assessment:
    """Cross-validated predictions and their scores.

    Attributes
    ----------
    truth : ndarray of shape (n_samples,)
    classes : ndarray of shape (n_classes,), None for regression
    metric : {"accuracy", "balanced accuracy", "R2"}
        The score by which models are compared: where all classes are to count alike, the mean over the classes.
    n_folds : int
    outcomes : tuple of Outcome
        The model itself comes first.
    skipped : tuple of (name, reason)
        Comparisons that make no sense for this model.
    refits : tuple of Division, one for each fold
        What the refits learned.
    notes : tuple of str
        Warnings of the fits, each once.
    """

    truth: np.ndarray
    classes: np.ndarray | None
    metric: str
    n_folds: int
    outcomes: tuple[Outcome, ...]
    skipped: tuple[tuple[str, str], ...]
    refits: tuple[Division, ...]
    notes: tuple[str, ...]

    @property
    def model(self) -> Outcome:
        """How the model itself did."""
        return self.outcomes[0]

    @property
    def fit_seconds(self) -> float:
        """Time of all fits."""
        return sum(outcome.seconds for outcome in self.outcomes)


def assess(model: Any, X: Any, y: np.ndarray, folds: int = 5, seed: int = 0) -> Assessment:
    """Cross-validate a model and simpler models to compare it with.

    Parameters
    ----------
    model : estimator with kernels, or a Pipeline that ends in one
        Only its parameters are used.
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    folds : int, default 5
        Classes are divided evenly over the folds; a class with fewer rows than folds is in some of them only.
    seed : int, default 0
        Seed of the folds and of the resampling.

    Returns
    -------
    Assessment

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.reports.assessment import assess
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> assessment = assess(MKLClassifier(), X, y, folds=3)
    >>> assessment.model.score.value > 0.9, len(assessment.refits), len(assessment.outcomes)
    (True, 3, 5)
    """
    splits, notes = _splits(y, is_classifier(model), folds, seed)
    metric = metric_of(model, y)
    notes += _uneven(y, is_balanced(model)) if is_classifier(model) else []
    racing, skipped = contestants(model, seed)
    classes = np.unique(y) if is_classifier(model) else None
    raw = {one.name: _Raw(y, classes) for one in racing}
    refits = []
    with _noted(notes):
        for fold, (train, test) in enumerate(splits):
            parts = _safe_indexing(X, train), y[train], _safe_indexing(X, test), test
            learned = None
            for place, one in enumerate(racing):
                reached(fold * len(racing) + place, len(splits) * len(racing), f"fold {fold + 1}, {one.name}")
                fitted = raw[one.name].add(one.fit, *parts, learned)
                learned = fitted if learned is None else learned
            refits.append(divide(last_step(learned), as_seen(learned, parts[0]), seed))
    reached(len(splits) * len(racing), len(splits) * len(racing), "done")
    outcomes = _outcomes(racing, raw, y, classes, metric, seed)
    return Assessment(y, classes, metric, len(splits), outcomes, tuple(skipped), tuple(refits), tuple(notes))


def decision_values(fitted: Any, X: Any) -> np.ndarray | None:
    """Return decision values or probabilities, a column for each class (one column for two classes), if there are any.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.reports.assessment import decision_values
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> decision_values(MKLClassifier().fit(X, y), X).shape
    (150, 3)
    """
    if hasattr(fitted, "decision_function"):
        values = np.asarray(fitted.decision_function(X))
        return values[:, None] if values.ndim == 1 else values
    if hasattr(fitted, "predict_proba"):
        values = np.asarray(fitted.predict_proba(X))
        return values[:, 1:] if values.shape[1] == 2 else values
    return None


class _Raw:
    """The predictions of one contestant, collected fold by fold."""

    def __init__(self, y: np.ndarray, classes: np.ndarray | None) -> None:
        self.predicted = np.empty_like(y) if classes is not None else np.empty(y.size)
        self.decisions: np.ndarray | None = None
        self.has_decisions, self.seconds, self._classes = classes is not None, 0.0, classes

    def add(self, fit: Callable, X: Any, y: np.ndarray, X_test: Any, test: np.ndarray, learned: Any) -> Any:
        """Fit on the training rows, predict the test rows, and return the fitted model."""
        start = time.perf_counter()
        with silent():
            fitted = fit(X, y, learned)
        self.predicted[test] = fitted.predict(X_test)
        decisions = decision_values(fitted, X_test) if self.has_decisions else None
        self.has_decisions = decisions is not None
        if decisions is not None:
            if self.decisions is None:
                self.decisions = np.empty((self.predicted.size, decisions.shape[1]))
            self.decisions[test] = decisions
        self.seconds += time.perf_counter() - start
        return fitted


def _splits(y: np.ndarray, classes: bool, folds: int, seed: int) -> tuple[list, list[str]]:
    """Return the folds, and what the user should know about them."""
    folds = check_count("folds", folds, at_least=2)
    if not classes:
        if y.size < 2 * folds:
            raise ValueError(f"y has {y.size} values, but {folds} folds need at least {2 * folds}.")
        return folds_of(y, False, folds, seed), []
    labels, counts = np.unique(y, return_counts=True)
    rare = int(counts.argmin())
    if counts[rare] < 2:
        raise ValueError(f"Class {shown(labels[rare])} has one row; cross-validation needs two of each class.")
    notes, few = [], int(np.sum(counts < folds))
    if few:
        which = f"Class {shown(labels[rare])} has" if few == 1 else f"{few} classes have"
        notes.append(f"{which} fewer rows than there are folds, so that some folds have none of them.")
    return folds_of(y, True, min(folds, int(counts.max())), seed), notes


def _uneven(y: np.ndarray, weighted: bool) -> list[str]:
    """Return a note if the classes are uneven."""
    if evenness(y) >= UNEVEN:
        return []
    labels, counts = np.unique(y, return_counts=True)
    rare, n = int(counts.argmin()), int(counts.min())
    advice = "" if weighted else "; errors are not weighted, which class_weight='balanced' would do"
    size = f"class {shown(labels[rare])} has {n:,} of {y.size:,} rows ({n / y.size:.1%})"
    done = "models are compared by balanced accuracy, in which all classes count alike"
    return [f"The classes are uneven, {size}: {done}{advice}."]


@contextmanager
def _noted(notes: list[str]) -> Iterator[None]:
    """Turn warnings inside the block into notes, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "y_pred contains classes not in y_true")  # of inner folds without a class
        yield
    for_users = [warning for warning in caught if issubclass(warning.category, UserWarning)]
    notes.extend(dict.fromkeys(" ".join(str(warning.message).split()) for warning in for_users))


def _outcomes(
    racing: list[Contestant], raw: dict[str, _Raw], y: np.ndarray, classes: np.ndarray | None, metric: str, seed: int
) -> tuple[Outcome, ...]:
    collected = [raw[one.name] for one in racing]
    if classes is None:
        scores, differences = explained(y, [one.predicted for one in collected], seed)
        besides = [_errors(one.predicted - y) for one in collected]
    else:
        right = [one.predicted == y for one in collected]
        scores = [accuracy(hits, y, metric) for hits in right]
        parts = _parts(y, metric)
        differences = [mean_interval([paired_difference(right[0][p], hits[p]) for p in parts]) for hits in right]
        besides = [_class_scores(y, classes, one, metric) for one in collected]
    return tuple(
        Outcome(one.name, _with_picks(one), r.predicted, r.decisions, s, d, b, r.seconds)
        for one, r, s, d, b in zip(racing, collected, scores, differences, besides, strict=True)
    )


def _errors(missed: np.ndarray) -> dict[str, float]:
    return {
        "root mean squared error": float(np.sqrt(np.mean(missed**2))),
        "mean absolute error": float(np.mean(np.abs(missed))),
    }


def accuracy(right: np.ndarray, truth: np.ndarray, metric: str) -> Interval:
    """Return the accuracy, or its mean over the classes, with the interval.

    Parameters
    ----------
    right : bool array of shape (n_samples,)
        Whether the right class was predicted.
    truth : ndarray of shape (n_samples,)
    metric : {"accuracy", "balanced accuracy"}

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.reports.assessment import accuracy
    >>> accuracy(np.array([True, True, False, True]), np.array([0, 0, 0, 1]), "balanced accuracy").value
    0.8333333333333333
    """
    return mean_interval([wilson(int(right[rows].sum()), int(rows.sum())) for rows in _parts(truth, metric)])


def _parts(truth: np.ndarray, metric: str) -> list[np.ndarray]:
    """Return masks of the rows whose accuracy counts as one: all of them, or those of each class."""
    return [truth == c for c in np.unique(truth)] if metric == "balanced accuracy" else [np.ones(truth.size, bool)]


def _class_scores(truth: np.ndarray, classes: np.ndarray, raw: _Raw, metric: str) -> dict[str, float]:
    other = "accuracy" if metric == "balanced accuracy" else "balanced accuracy"
    area = float("nan")
    if raw.decisions is not None:
        positives = classes[1:] if raw.decisions.shape[1] == 1 else classes
        area = float(np.mean([area_under_roc(truth == c, raw.decisions[:, t]) for t, c in enumerate(positives)]))
    return {other: accuracy(raw.predicted == truth, truth, other).value, "area under ROC": area}


def _with_picks(one: Contestant) -> str:
    """Return the note, with what was chosen most often."""
    if not one.picks:
        return one.note
    name = max(dict.fromkeys(one.picks), key=one.picks.count)
    return f"{one.note}; {name} in {one.picks.count(name)} of {len(one.picks)} folds"
