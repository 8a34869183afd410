"""What a model is compared with: simpler ways to use the same kernels, and the usual learner on the same data.

A contestant is a function of training rows that returns a fitted model. Whatever it chooses (a kernel, C, a width), it
chooses on these rows alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from manykernels.kernels import KernelBank, Precomputed
from manykernels.kernels.family import Family
from manykernels.reports.single import fit_single
from manykernels.reports.steps import as_seen, inner_folds, last_step, metric_of, some_rows, with_last

_TUNED_ROWS = 2000
CONSTANT = "constant prediction"
_CS, _GAMMAS = (1.0, 10.0, 100.0), (0.01, 0.1, 1.0, 10.0)


@dataclass
class Contestant:
    """A way to learn.

    Attributes
    ----------
    name, note : str
        What it is called, and what it does in a few words.
    fit : function (X, y, learned) -> fitted model
        A function of training rows, and of the model itself fitted on them (None if it is to be fitted now).
    picks : list of str
        What it chose in each fold, if it makes a single choice.
    """

    name: str
    note: str
    fit: Callable[[Any, np.ndarray, Any], Any]
    picks: list[str] = field(default_factory=list)


def contestants(model: Any, seed: int) -> tuple[list[Contestant], list[tuple[str, str]]]:
    """Return the model and what it is compared with.

    Parameters
    ----------
    model : estimator with kernels, or a Pipeline that ends in one
    seed : int
        Seed of the inner folds.

    Returns
    -------
    contestants : list of Contestant
        The first one is the model itself.
    skipped : list of (name, reason)

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.reports.contestants import contestants
    >>> [contestant.name for contestant in contestants(MKLClassifier(), seed=0)[0]]
    ['learned kernels', 'uniform sum', 'best single kernel', 'tuned RBF SVM', 'constant prediction']
    """
    last, classes = last_step(model), is_classifier(model)
    racing = [Contestant("learned kernels", "this model, fitted anew", lambda X, y, _: clone(model).fit(X, y))]
    skipped = []
    uniform = _uniform(last)
    if uniform is None:
        skipped.append(("uniform sum", "these kernels are not a list that could be summed"))
    else:
        alike = with_last(model, uniform)
        racing.append(Contestant("uniform sum", "the same kernels, all alike", lambda X, y, _: alike.fit(X, y)))
    if _sums_a_list(last):
        racing.append(_single(model, seed))
    else:
        skipped.append(("best single kernel", "these kernels are not a list to choose from"))
    if has_features(last):
        racing.append(
            Contestant(
                "tuned RBF SVM",
                "one Gaussian kernel on all features; C and width by grid search inside the training rows",
                lambda X, y, learned: _fit_rbf(model, learned, X, y, seed),
            )
        )
    else:
        skipped.append(("tuned RBF SVM", "the kernels were given as matrices: there are no features"))
    learner, words = constant_learner(classes)
    constant = with_last(model, learner)
    racing.append(Contestant(CONSTANT, words, lambda X, y, _: constant.fit(X, y)))
    return racing, skipped


def constant_learner(classes: bool) -> tuple[Any, str]:
    """Return the learner that needs no features, and what it does in a few words.

    Examples
    --------
    >>> from manykernels.reports.contestants import constant_learner
    >>> constant_learner(classes=False)
    (DummyRegressor(), 'always the mean')
    """
    if classes:
        return DummyClassifier(strategy="most_frequent"), "always the most frequent class"
    return DummyRegressor(), "always the mean"


def _single(model: Any, seed: int) -> Contestant:
    def fit(X: Any, y: np.ndarray, learned: Any) -> Any:
        fitted, tried = fit_single(model, learned, X, y, seed)
        one.picks.append(str(last_step(fitted).kernel_names_[0]))
        one.note = f"chosen from {tried} inside the training rows"
        return fitted

    one = Contestant("best single kernel", "", fit)
    return one


def has_features(estimator: Any) -> bool:
    """Return whether X holds features, not sample numbers by which kernel matrices are looked up."""
    kernels = estimator.kernels
    listed = [] if isinstance(kernels, (str, Family)) else KernelBank(kernels).kernels
    return not any(isinstance(kernel, Precomputed) for kernel in listed)


def _sums_a_list(estimator: Any) -> bool:
    combination = getattr(estimator, "combination", "sum")
    is_sum = isinstance(combination, str) and combination == "sum"
    return is_sum and not isinstance(estimator.kernels, Family)


def _uniform(estimator: Any) -> Any:
    """Return the estimator that gives all kernels the same weight, or None where there is none."""
    known = estimator.get_params(deep=False)
    settings: dict[str, Any] = {"norms": [np.inf]} if "norms" in known else {"norm": np.inf} if "norm" in known else {}
    if "alignment" in known:
        settings = {"alignment": "uniform"}
    if "alpha" in known:
        settings["alpha"] = 0.0  # it would leave kernels out
    if not settings or not _sums_a_list(estimator):
        return None
    if "solver" in known:
        settings["solver"] = "auto"  # some solvers are for one norm only
    return clone(estimator).set_params(**settings)


def _fit_rbf(model: Any, learned: Any, X: Any, y: np.ndarray, seed: int) -> Any:
    """Fit a support vector machine with one Gaussian kernel, its C and width chosen on the training rows."""
    classes = is_classifier(model)
    # Sparse data stay sparse; missing views are filled in, as this learner cannot do without.
    steps = [SimpleImputer(keep_empty_features=True), StandardScaler(with_mean=not hasattr(X, "tocsr"))]
    few_X, few_y = some_rows(X, y, _TUNED_ROWS, seed, classes)
    # Features have unit variance here, so that the widths suit any number of them.
    gammas = [gamma / as_seen(learned, few_X[:1]).shape[1] for gamma in _GAMMAS]
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
        scoring = "balanced_accuracy" if metric_of(model, y) == "balanced accuracy" else None
        search = GridSearchCV(whole, _within(model, grid), cv=folds, refit=False, scoring=scoring)
        search.fit(few_X, few_y)
        whole.set_params(**search.best_params_)
    return whole.fit(X, y)


def _within(model: Any, grid: dict[str, Any]) -> dict[str, Any]:
    """Return the grid with the names that the parameters of the last step have in the model."""
    return {f"{model.steps[-1][0]}__{name}": v for name, v in grid.items()} if isinstance(model, Pipeline) else grid
