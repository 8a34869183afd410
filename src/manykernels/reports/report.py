"""The report on a model: gather, assess, render."""

from __future__ import annotations

import datetime
import platform
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from manykernels.core.notices import shown
from manykernels.core.rows import is_on_disk
from manykernels.reports.assessment import Assessment, accuracy, assess
from manykernels.reports.bars import follow_bar
from manykernels.reports.html import words
from manykernels.reports.html.page import Facts, render
from manykernels.reports.intervals import Interval, explained
from manykernels.reports.learned import Learned, describe
from manykernels.reports.steps import as_seen, last_step, some_rows

_PACKAGES = ("manykernels", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Report:
    """A report: the page, and the figures in it.

    Attributes
    ----------
    html : str
        One HTML file that needs nothing else.
    learned : Learned
        Views, kernels, features, certificate.
    assessment : Assessment
        Cross-validated predictions and scores.
    fit_seconds, other_seconds : float
        Time of the refits and of what they are compared with, and of all else.
    """

    html: str
    learned: Learned
    assessment: Assessment
    fit_seconds: float
    other_seconds: float

    def save(self, path: Any) -> Path:
        """Write the page to a file and return its path."""
        path = Path(path)
        path.write_text(self.html, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, so that its style stays inside."""
        frame = 'title="manykernels report" width="100%" height="800" sandbox="allow-scripts"'
        return f'<iframe srcdoc="{escape(self.html)}" {frame}></iframe>'

    def __repr__(self) -> str:
        score = f"{self.assessment.metric} {self.assessment.model.score.value:.3f}"
        return f"<Report: {score} on unseen rows, {len(self.html) / 1000:.0f} kB of HTML>"


def make_report(
    model: Any,
    X: Any,
    y: Any,
    path: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    kernels: Any = None,
    folds: int = 5,
    max_samples: int = 5000,
    feature_names: Sequence[str] | None = None,
    title: str | None = None,
    reproduce: str | None = None,
    notes: Sequence[str] = (),
    random_state: int = 0,
    progress: bool = True,
) -> Report:
    """Report on a fitted model: what it learned, how sure and how good it is, and how it was computed.

    The model is described as it is. Scores are of refits: in each fold its settings are fitted anew on the other folds,
    beside the uniform sum of the kernels, the best single kernel and a tuned RBF machine, all chosen on the other folds
    alone. So every score is of models that have not seen the row.

    Parameters
    ----------
    model : fitted estimator of this library that predicts, or a fitted Pipeline that ends in one
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        Data to cross-validate on: as a rule the training data, in the form that ``fit`` got.
    y : array of shape (n_samples,)
    path : str or path, optional
        File to write.
    X_test, y_test : optional
        Rows that the model has not seen, to score the fitted model itself on, in addition.
    kernels : list of Kernel or KernelBank, optional
        What the refits learn from. A model that was opened from a file has only the kernels with a positive weight,
        which were chosen with all rows: give it the whole list here.
    folds : int, default 5
    max_samples : int, default 5000
        Of more rows, so many are drawn to cross-validate on.
    feature_names : sequence of str, optional
        Default: the columns of X, or x0, x1, ...
    title : str, optional
    reproduce : str, optional
        Code or a command that makes the report, to be shown in it.
    notes : sequence of str
        What the reader should know, to be shown in it.
    random_state : int, default 0
        Seed of the folds and of the drawing of samples.
    progress : bool, default True
        Show a progress bar on a terminal.

    Returns
    -------
    Report

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.reports import make_report
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), MKLClassifier()).fit(X, y)
    >>> report = make_report(model, X, y, folds=3)
    >>> report.assessment.model.score.value > 0.9, report.html[:15]
    (True, '<!DOCTYPE html>')
    """
    start = time.perf_counter()
    y = _checked(model, X, y)
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test must be given together.")
    n_given = y.size
    X, y = _drawn(model, X, y, max_samples, folds, random_state)
    template = _template(model, kernels)
    with follow_bar(Console(stderr=True), "Cross-validating") if progress else nullcontext():
        assessment = assess(template, X, y, folds, random_state)
    last = last_step(model)
    learned = describe(last, as_seen(model, X), assessment.refits, feature_names, random_state)
    test_score = None if X_test is None else _test_score(model, X_test, y_test, assessment.metric, random_state)
    chosen = kernels is None and getattr(last, "kernels_are_chosen_", False)
    now = datetime.datetime.now().astimezone()
    facts = Facts(
        title=title or f"{type(last).__name__} on {n_given:,} samples",
        date=f"{now:%B} {now.day}, {now:%Y, %H:%M %Z}",
        data=_data_facts(X, y, n_given, assessment),
        settings={name: _setting(value) for name, value in last_step(template).get_params(deep=False).items()},
        versions={"python": platform.python_version()} | {name: version(name) for name in _PACKAGES},
        times=_times(assessment, time.perf_counter() - start),
        reproduce=reproduce or _call(model, folds, max_samples, random_state, n_given),
        notes=[*notes, *_notes(last, chosen, y.size, n_given), *assessment.notes],
        test_score=test_score,
        n_test=0 if y_test is None else len(y_test),
    )
    html = render(learned, assessment, facts)
    total = time.perf_counter() - start
    report = Report(html, learned, assessment, assessment.fit_seconds, total - assessment.fit_seconds)
    if path is not None:
        report.save(path)
    return report


def _checked(model: Any, X: Any, y: Any) -> np.ndarray:
    """Return y as an array, or say what is wrong with the model or the data."""
    last = last_step(model)
    if not hasattr(last, "kernels") or not (is_classifier(model) or is_regressor(model)):
        raise ValueError(f"A report needs a model with kernels that predicts, got {type(last).__name__}.")
    check_is_fitted(last)
    if hasattr(X, "__dask_graph__"):
        raise ValueError("A report needs X in memory: pass some of the rows, computed.")
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    expected = getattr(model, "n_features_in_", X.shape[1])
    if X.shape[1] != expected:
        raise ValueError(f"X has {X.shape[1]} features, but the model was fitted on {expected}.")
    if is_classifier(model):
        unknown = np.setdiff1d(y, model.classes_)
        if unknown.size:
            raise ValueError(f"y holds the class {shown(unknown[0])}, which the model does not know.")
        return y
    return y.astype(np.float64)


def _template(model: Any, kernels: Any) -> Any:
    """Return the model with the kernels that refits learn from."""
    template = clone(model)
    last = last_step(template)
    settings = {} if kernels is None else {"kernels": kernels}
    if "verbose" in last.get_params(deep=False):
        settings["verbose"] = 0
    last.set_params(**settings)
    return template


def _drawn(model: Any, X: Any, y: np.ndarray, count: int, folds: int, seed: int) -> tuple[Any, np.ndarray]:
    """Return the rows to cross-validate on, at most ``count``, in memory."""
    if not isinstance(count, (int, np.integer)) or count < 2 * folds:
        raise ValueError(
            f"max_samples must be a whole number of at least {2 * folds}, two for each fold; got {count!r}."
        )
    if is_on_disk(X):
        rows = np.sort(np.random.default_rng(seed).permutation(y.size)[:count])
        return np.asarray(X[rows]), y[rows]
    return some_rows(X, y, count, seed, is_classifier(model))


def _notes(estimator: Any, chosen: bool, n_used: int, n_given: int) -> list[str]:
    notes = []
    if n_used < n_given:
        notes.append(f"Of {n_given:,} rows, {n_used:,} were drawn to cross-validate on: the refits learn from fewer.")
    if chosen:
        notes.append(
            "The refits had only the kernels that this model uses, since a model file holds no others. They were "
            "chosen with all rows, so that the scores may be too good; give the whole list of kernels for honest ones."
        )
    if getattr(estimator, "normalize", "") is None:
        notes.append("The kernels are not normalized: shares of the weight depend on their scales.")
    return notes


def _times(assessment: Assessment, passed: float) -> list[tuple[str, str]]:
    fits = [(f"fits: {outcome.name}", words.seconds(outcome.seconds)) for outcome in assessment.outcomes]
    return [*fits, ("all else but this page", words.seconds(passed - assessment.fit_seconds))]


def _data_facts(X: Any, y: np.ndarray, n_given: int, assessment: Assessment) -> list[tuple[str, str]]:
    values = X.data if hasattr(X, "tocsr") else X
    missing = int(np.sum(values.isna().to_numpy())) if hasattr(values, "isna") else int(np.sum(np.isnan(values)))
    facts = [("rows", f"{n_given:,}"), ("features", f"{X.shape[1]:,}"), ("missing values", f"{missing:,}")]
    if assessment.classes is None:
        return [*facts, ("target", f"{words.figure(float(y.min()))} to {words.figure(float(y.max()))}")]
    counts = [f"{name} ({int(np.sum(y == name)):,})" for name in assessment.classes]
    return [*facts, ("classes", ", ".join(counts))]


def _setting(value: Any) -> str:
    """Return a parameter in words: many kernels are counted, not listed."""
    if isinstance(value, (list, tuple)) and len(value) > 10:
        return f"list of {len(value):,}"
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]} ..."


def _call(model: Any, folds: int, max_samples: int, seed: int, n_given: int) -> str:
    options = f"folds={folds}, random_state={seed}" + (f", max_samples={max_samples}" if n_given > max_samples else "")
    if isinstance(model, Pipeline):
        return f'manykernels.reports.make_report(model, X, y, "report.html", {options})'
    return f'model.report(X, y, "report.html", {options})'


def _test_score(model: Any, X: Any, y: Any, metric: str, seed: int) -> Interval:
    y = column_or_1d(y)
    predicted = model.predict(X)
    if is_classifier(model):
        return accuracy(predicted == y, y, metric)
    return explained(y.astype(np.float64), [predicted], seed)[0][0]
