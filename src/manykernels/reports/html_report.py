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
import pandas as pd
from rich.console import Console
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from manykernels.compute.threads import one_blas_thread
from manykernels.core.checks import check_count
from manykernels.core.files import replacing
from manykernels.core.rows import is_on_disk
from manykernels.reports.assessment import Assessment, accuracy, assess
from manykernels.reports.bars import follow_bar
from manykernels.reports.html import words
from manykernels.reports.html.page import Facts, render
from manykernels.reports.intervals import Interval, explained
from manykernels.reports.report_inputs import check_model, check_path, check_varies, checked_rows
from manykernels.reports.steps import as_seen, last_step, some_rows
from manykernels.reports.summary import LearnedSummary, describe

_PACKAGES = ("manykernels", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Report:
    """A report: the HTML page, and the figures in it.

    Attributes
    ----------
    html : str
        One HTML file that needs nothing else.
    learned : LearnedSummary
        Views, kernels, features, certificate.
    assessment : Assessment
        Cross-validated predictions and scores.
    fit_seconds, other_seconds : float
        Time of the refits and of what they are compared with, and of everything else.
    """

    html: str
    learned: LearnedSummary
    assessment: Assessment
    fit_seconds: float
    other_seconds: float

    def save(self, path: Any) -> Path:
        """Write the page to a file and return its path."""
        path = Path(path)
        with replacing(path) as place:
            place.write_text(self.html, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        """Return the page in a frame, so that its style stays inside."""
        frame = 'title="manykernels report" width="100%" height="800" sandbox="allow-scripts"'
        return f'<iframe srcdoc="{escape(self.html)}" {frame}></iframe>'

    def __repr__(self) -> str:
        score = f"{self.assessment.metric} {self.assessment.model.score.value:.3f}"
        return f"<Report: {score} on unseen rows, {len(self.html) / 1000:.0f} kB of HTML>"


@one_blas_thread()
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
    data: Sequence[tuple[str, str]] | None = None,
    title: str | None = None,
    reproduce: str | None = None,
    notes: Sequence[str] = (),
    random_state: int = 0,
    progress: bool = True,
) -> Report:
    """Report on a fitted model: what it learned, how sure and how good it is, and how it was computed.

    The model is described as it is. Scores are of refits: in each fold it is fitted anew on the other folds, and so are
    the uniform sum of the kernels, the best single kernel and a tuned RBF machine, all chosen on the other folds alone.
    So every score is of models that have not seen the row.

    Parameters
    ----------
    model : fitted estimator of this library that predicts, or a fitted Pipeline that ends in one
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        Data to cross-validate on: usually the training data, in the form that ``fit`` got.
    y : array of shape (n_samples,)
    path : str or path, optional
        File to write.
    X_test, y_test : optional
        Rows that the model has not seen, on which the fitted model itself is scored in addition.
    kernels : list of Kernel or KernelBank, optional
        The kernels for the refits. A model that was opened from a file has only the kernels with a positive weight,
        which were chosen with all rows: give the whole list here.
    folds : int, default 5
    max_samples : int, default 5000
        If there are more rows, this many are drawn to cross-validate on.
    feature_names : sequence of str, optional
        Default: the columns of X, or x0, x1, ... Features of the same name are taken together.
    data : sequence of (name, value), optional
        What to say about the columns. Default: how many there are, and how many values are missing.
    title : str, optional
    reproduce : str, optional
        Code or a command that makes the report, which is shown in it.
    notes : sequence of str
        What the reader should know, which is shown in the report.
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
    check_model(model, feature_names)
    check_path(path)
    X, y = checked_rows(model, X, y)
    check_varies(model, y)
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test must be given together.")
    test = None if X_test is None else checked_rows(model, X_test, y_test)
    some_X, some_y = _drawn(model, X, y, max_samples, folds, random_state)
    template = _template(model, kernels)
    with follow_bar(Console(stderr=True), "Cross-validating") if progress else nullcontext():
        assessment = assess(template, some_X, some_y, folds, random_state)
    last = last_step(model)
    learned = describe(last, as_seen(model, some_X), assessment.refits, feature_names, random_state)
    chosen = kernels is None and getattr(last, "kernels_are_chosen_", False)
    facts = Facts(
        title=title or f"{type(last).__name__} on {y.size:,} samples",
        date=_now(),
        data=_data_facts(X, y, is_classifier(model), data),
        settings={name: _setting(value) for name, value in last_step(template).get_params(deep=False).items()},
        versions={"python": platform.python_version()} | {name: version(name) for name in _PACKAGES},
        times=_times(assessment, time.perf_counter() - start),
        reproduce=reproduce or _call(model, folds, max_samples, random_state, y.size),
        notes=[*notes, *_notes(last, chosen, some_y.size, y.size), *assessment.notes],
        test_score=None if test is None else _test_score(model, *test, assessment.metric, random_state),
        n_test=0 if test is None else test[1].size,
    )
    html = render(learned, assessment, facts)
    total = time.perf_counter() - start
    report = Report(html, learned, assessment, assessment.fit_seconds, total - assessment.fit_seconds)
    if path is not None:
        report.save(path)
    return report


def _template(model: Any, kernels: Any) -> Any:
    """Return the unfitted model with the kernels for the refits."""
    template = clone(model)
    last = last_step(template)
    settings = {} if kernels is None else {"kernels": kernels}
    if "verbose" in last.get_params(deep=False):
        settings["verbose"] = 0
    last.set_params(**settings)
    return template


def _drawn(model: Any, X: Any, y: np.ndarray, count: int, folds: int, seed: int) -> tuple[Any, np.ndarray]:
    """Return the rows to cross-validate on, at most ``count``, in memory."""
    count = check_count("max_samples", count, at_least=2 * folds, more=", two for each fold")
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
    return [*fits, ("everything else except this page", words.seconds(passed - assessment.fit_seconds))]


def _now() -> str:
    now = datetime.datetime.now().astimezone()
    return f"{now:%B} {now.day}, {now:%Y, %H:%M %Z}"


def _data_facts(X: Any, y: np.ndarray, classes: bool, known: Sequence[tuple[str, str]] | None) -> list[tuple[str, str]]:
    """Return facts about all rows that were given, also where only some of them were drawn."""
    facts = [("rows", f"{y.size:,}"), *(known if known is not None else _columns(X))]
    if not classes:
        return [*facts, ("target", words.span(float(y.min()), float(y.max())))]
    counts = zip(*np.unique(y, return_counts=True), strict=True)
    return [*facts, ("classes", ", ".join(f"{name} ({count:,})" for name, count in counts))]


def _columns(X: Any) -> list[tuple[str, str]]:
    facts = [("features", f"{X.shape[1]:,}")]
    if is_on_disk(X):  # reading all of it would take long
        return facts
    missing = int(np.sum(np.asarray(pd.isna(X.data if hasattr(X, "tocsr") else X))))
    return [*facts, ("missing values", f"{missing:,}")]


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


def _test_score(model: Any, X: Any, y: np.ndarray, metric: str, seed: int) -> Interval:
    predicted = model.predict(X)
    return accuracy(predicted == y, y, metric) if is_classifier(model) else explained(y, [predicted], seed)[0][0]
