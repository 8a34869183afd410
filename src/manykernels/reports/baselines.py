"""What a model is compared with: simpler ways to use the same kernels, and the usual learner on the same data.

A contestant is a function of training rows that returns a fitted model. Whatever it chooses (a kernel, C, a width), it
chooses on these rows alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils import _safe_indexing

from manykernels.alignment import Target, alignments
from manykernels.kernels import KernelBank, Precomputed
from manykernels.kernels.columns import resolve_columns
from manykernels.kernels.family import Family
from manykernels.kernels.standard import as_bank
from manykernels.kernels.texts import run_lengths

# Kernels that are tried one by one: the best aligned ones, few of a view, and the best of the view with most features,
# since alignment underrates kernels on many features.
_BEST, _PER_VIEW, _WIDEST = 4, 2, 4
# Rows on which kernels are compared by alignment, and on which settings are tuned.
_ALIGNED_ROWS, _TUNED_ROWS = 200, 2000
_INNER_FOLDS = 3
CONSTANT = "constant prediction"
_CS, _GAMMAS = (1.0, 10.0, 100.0), (0.01, 0.1, 1.0, 10.0)


@dataclass
class Contestant:
    """A way to learn.

    Attributes
    ----------
    name, note : str
        What it is called, and what it does in a few words.
    fit : function (X, y) -> fitted model
    picks : list of str
        What it chose in each fold, where that is one thing.
    """

    name: str
    note: str
    fit: Callable[[Any, np.ndarray], Any]
    picks: list[str] = field(default_factory=list)


def contestants(model: Any, seed: int) -> tuple[list[Contestant], list[tuple[str, str]]]:
    """Return the model and what it is compared with.

    Parameters
    ----------
    model : estimator with kernels, or a Pipeline that ends in one
    seed : int
        Of the inner folds.

    Returns
    -------
    contestants : list of Contestant
        The first one is the model itself.
    skipped : list of (name, reason)

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.reports.baselines import contestants
    >>> [contestant.name for contestant in contestants(MKLClassifier(), seed=0)[0]]
    ['learned kernels', 'uniform sum', 'best single kernel', 'tuned RBF SVM', 'constant prediction']
    """
    last, classes = last_step(model), is_classifier(model)
    found = [Contestant("learned kernels", "this model's settings, fitted anew", clone(model).fit)]
    skipped = []
    uniform = _uniform(last)
    if uniform is None:
        skipped.append(("uniform sum", "these kernels are no list that could be summed"))
    else:
        found.append(Contestant("uniform sum", "the same kernels, all alike", with_last(model, uniform).fit))
    if _sums_a_list(last):
        picks: list[str] = []
        note = "chosen by validation inside the training rows"
        found.append(Contestant("best single kernel", note, lambda X, y: _fit_single(model, X, y, seed, picks), picks))
    else:
        skipped.append(("best single kernel", "these kernels are no list to choose from"))
    if has_features(last):
        found.append(
            Contestant(
                "tuned RBF SVM",
                "one Gaussian kernel on all features; C and width by grid search inside the training rows",
                lambda X, y: _fit_rbf(model, X, y, seed),
            )
        )
    else:
        skipped.append(("tuned RBF SVM", "the kernels were given as matrices: there are no features"))
    dummy = DummyClassifier(strategy="most_frequent") if classes else DummyRegressor()
    words = "always the most frequent class" if classes else "always the mean"
    found.append(Contestant(CONSTANT, words, with_last(model, dummy).fit))
    return found, skipped


def last_step(model: Any) -> Any:
    """Return the estimator with the kernels: the model itself, or the end of a pipeline."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def is_balanced(model: Any) -> bool:
    """Return whether each class is to count alike."""
    weights = getattr(last_step(model), "class_weight", None)
    return isinstance(weights, str) and weights == "balanced"


def with_last(model: Any, last: Any) -> Any:
    """Return an unfitted copy of the model with another last step."""
    if not isinstance(model, Pipeline):
        return clone(last)
    return Pipeline(
        [*((name, clone(step, safe=False)) for name, step in model.steps[:-1]), (model.steps[-1][0], clone(last))]
    )


def has_features(estimator: Any) -> bool:
    """Return whether X holds features, not the numbers of samples that kernel matrices are looked up by."""
    kernels = estimator.kernels
    listed = [] if isinstance(kernels, (str, Family)) else KernelBank(kernels).kernels
    return not any(isinstance(kernel, Precomputed) for kernel in listed)


def as_seen(fitted: Any, X: Any) -> Any:
    """Return rows as the last step of a fitted pipeline sees them."""
    return fitted[:-1].transform(X) if isinstance(fitted, Pipeline) and len(fitted.steps) > 1 else X


def _sums_a_list(estimator: Any) -> bool:
    combination = getattr(estimator, "combination", "sum")
    is_sum = isinstance(combination, str) and combination == "sum"
    return is_sum and not isinstance(estimator.kernels, Family)


def _uniform(estimator: Any) -> Any:
    """Return the estimator that weighs all kernels alike, None where there is none."""
    known = estimator.get_params(deep=False)
    settings: dict[str, Any] = {"norms": [np.inf]} if "norms" in known else {"norm": np.inf} if "norm" in known else {}
    if "alignment" in known:
        settings = {"alignment": "uniform"}
    if not settings or not _sums_a_list(estimator):
        return None
    if "solver" in known:
        settings["solver"] = "auto"  # some solvers are for one norm only
    return clone(estimator).set_params(**settings)


def inner_folds(y: np.ndarray, classes: bool, seed: int) -> Any:
    """Return folds within training rows, None where there are too few rows for any."""
    smallest = int(np.unique(y, return_counts=True)[1].min()) if classes else y.size // 2
    if smallest < 2:
        return None
    kind = StratifiedKFold if classes else KFold
    return kind(min(_INNER_FOLDS, smallest), shuffle=True, random_state=seed)


def some_rows(X: Any, y: np.ndarray, count: int, seed: int, classes: bool) -> tuple[Any, np.ndarray]:
    """Return at most ``count`` rows, by chance; of classes a fair share each, and two at least."""
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


def _fit_single(model: Any, X: Any, y: np.ndarray, seed: int, picks: list[str]) -> Any:
    """Fit the model with the one kernel that validates best on the training rows."""
    last, classes = last_step(model), is_classifier(model)
    few_X, few_y = some_rows(X, y, _TUNED_ROWS, seed, classes)
    candidates = [
        with_last(model, clone(last).set_params(**_alone(last, kernel)))
        for kernel in _leading(model, few_X, few_y, seed)
    ]
    folds = inner_folds(few_y, classes, seed)
    best = 0
    if folds is not None and len(candidates) > 1:
        best = int(np.argmax([_validated(candidate, few_X, few_y, folds) for candidate in candidates]))
    fitted = candidates[best].fit(X, y)
    picks.append(str(last_step(fitted).kernel_names_[0]))
    return fitted


def _validated(candidate: Any, X: Any, y: np.ndarray, folds: Any) -> float:
    if hasattr(last_step(candidate), "Cs"):  # it validates by itself, with each C
        return last_step(candidate.fit(X, y)).best_score_
    return float(np.mean(cross_val_score(candidate, X, y, cv=folds, scoring=_scoring(candidate))))


def _scoring(model: Any) -> str | None:
    return "balanced_accuracy" if is_balanced(model) else None


def _alone(estimator: Any, kernel: Any) -> dict[str, Any]:
    """Return the settings for one kernel: no norm makes a difference then."""
    known = estimator.get_params(deep=False)
    settings: dict[str, Any] = {"kernels": [kernel]}
    settings |= {"norms": [1.0]} if "norms" in known else {"norm": 1.0} if "norm" in known else {}
    return settings | ({"solver": "auto"} if "solver" in known else {})


def _leading(model: Any, X: Any, y: np.ndarray, seed: int) -> list[Any]:
    """Return the kernels that are best aligned with the target on some rows."""
    last, classes = last_step(model), is_classifier(model)
    X, y = some_rows(X, y, _ALIGNED_ROWS, seed, classes)
    X = _as_seen(model, X, y)
    bank = as_bank(last.kernels, X)
    bound = bank.bind(X, normalize=getattr(last, "normalize", "mean_diag"), center=getattr(last, "center", False))
    scores = alignments(bound, Target.of_classes(y) if classes else Target.of_values(y))
    kernels, order = bank.written_out().kernels, np.argsort(-scores, kind="stable")
    views = np.repeat(*np.array([(place, count) for place, (_, count) in enumerate(run_lengths(bound.groups))]).T)
    widths = np.array([resolve_columns(kernels[k].columns, X).size for k in np.flatnonzero(np.diff(views, prepend=-1))])
    widest = order[views[order] == widths.argmax()][:_WIDEST]
    rank = pd.Series(views[order]).groupby(views[order]).cumcount().to_numpy()
    best = order[rank < _PER_VIEW][:_BEST]
    return [kernels[k] for k in dict.fromkeys([*best.tolist(), *widest.tolist()])]


def _as_seen(model: Any, X: Any, y: np.ndarray) -> Any:
    """Return the training rows as the last step of a pipeline sees them."""
    return clone(model[:-1]).fit_transform(X, y) if isinstance(model, Pipeline) and len(model.steps) > 1 else X


def _fit_rbf(model: Any, X: Any, y: np.ndarray, seed: int) -> Any:
    """Fit a support vector machine with one Gaussian kernel, its C and width chosen on the training rows."""
    classes = is_classifier(model)
    # Sparse data stay sparse; views that are missing are filled, as this learner has no other way.
    steps = [SimpleImputer(keep_empty_features=True), StandardScaler(with_mean=not hasattr(X, "tocsr"))]
    few_X, few_y = some_rows(X, y, _TUNED_ROWS, seed, classes)
    # Features have unit variance here, so that the widths suit any number of them.
    gammas = [gamma / _as_seen(model, few_X, few_y).shape[1] for gamma in _GAMMAS]
    weights = getattr(last_step(model), "class_weight", None)
    if classes:
        learner = make_pipeline(*steps, SVC(class_weight=weights))
        grid: dict[str, Any] = {"svc__C": _CS, "svc__gamma": gammas}
    else:
        learner = TransformedTargetRegressor(make_pipeline(*steps, SVR()), transformer=StandardScaler())
        grid = {"regressor__svr__C": _CS, "regressor__svr__gamma": gammas}
    whole = with_last(model, learner)
    folds = inner_folds(few_y, classes, seed)
    if folds is not None:
        search = GridSearchCV(whole, _within(model, grid), cv=folds, refit=False, scoring=_scoring(model))
        search.fit(few_X, few_y)
        whole.set_params(**search.best_params_)
    return whole.fit(X, y)


def _within(model: Any, grid: dict[str, Any]) -> dict[str, Any]:
    """Return the grid with the names that the last step's parameters have in the model."""
    return {f"{model.steps[-1][0]}__{name}": v for name, v in grid.items()} if isinstance(model, Pipeline) else grid
