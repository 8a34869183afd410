"""Estimators that choose C and p by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from manykernels.core.progress import reached
from manykernels.estimators.base import BaseMKL
from manykernels.estimators.classifier import MKLClassifier
from manykernels.estimators.path import DEFAULT_CS, walk
from manykernels.estimators.regressor import MKLRegressor

_OWN = ("Cs", "norms", "cv", "scoring")


class _Chooser(BaseMKL):
    """The search that both estimators share."""

    _single: type[BaseMKL]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> _Chooser:
        """Choose C and the norm by cross-validation, then fit on all samples.

        In each fold the kernels are computed once for the whole path of C and norms; each point of the path starts from
        the weights that the fold before found for it.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            parameters = {k: v for k, v in self.get_params(deep=False).items() if k not in _OWN}
            single = self._single(**parameters)
            single._check_parameters()
            numeric = not is_classifier(self)
            checked, y = validate_data(self, X, y, y_numeric=numeric, **self._data_rules())
            X, weight = self._table(X, checked), None
            if self.missing == "ignore":  # a fold would count its own rows
                self._bank(X).check_views(checked, X)
            if sample_weight is not None:
                weight = _check_sample_weight(sample_weight, checked, dtype=np.float64, ensure_non_negative=True)
            if checked.shape[0] > 1:  # else let the estimator say what is wrong
                self.scores_ = self._cross_validate(single, X, y, weight)
                place = np.unravel_index(int(np.argmax(self.scores_.mean(axis=2))), self.scores_.shape[:2])
                self.norm_ = self.norms[place[0]]
                self.C_ = float(np.sort(np.asarray(self.Cs, dtype=float))[place[1]])
                self.best_score_ = float(self.scores_[place].mean())
                single.set_params(C=self.C_, norm=self.norm_)
            single.fit(X, y, weight)
            self.__dict__.update({k: v for k, v in vars(single).items() if k.endswith("_") or k == "_predictors"})
            self.best_estimator_ = single
        return self

    def save(self, path: Any, extra: dict | None = None) -> None:
        """Write the chosen model to a file; :func:`manykernels.load` returns it without the search."""
        check_is_fitted(self)
        self.best_estimator_.save(path, extra)

    def _cross_validate(self, single: BaseMKL, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Return the scores, shape (n_norms, n_Cs, n_folds)."""
        folds = check_cv(self.cv, y, classifier=is_classifier(self))
        scorer = check_scoring(single, scoring=self.scoring)
        scores: list[list[float]] = []
        trail: dict = {}
        if self.scoring is None and isinstance(single, MKLClassifier):
            single = MKLClassifier(**{**single.get_params(deep=False), "probability": False})  # accuracy needs none
        splits = list(folds.split(X, y))
        total = len(splits) * len(self.norms) * len(self.Cs)
        for train, test in splits:
            own = None if weight is None else weight[train]
            left_out = {} if weight is None else {"sample_weight": weight[test]}
            X_test, y_test = _safe_indexing(X, test), y[test]
            scores.append([])
            for point in walk(single, _safe_indexing(X, train), y[train], own, self.Cs, self.norms, trail):
                scores[-1].append(scorer(point.model, X_test, y_test, **left_out))
                reached(sum(map(len, scores)), total, f"fold {len(scores)}, {point.title}")
        return np.array(scores).T.reshape(len(self.norms), len(self.Cs), -1)


class MKLClassifierCV(_Chooser, MKLClassifier):
    """MKLClassifier that chooses C and the norm by cross-validation.

    Parameters
    ----------
    kernels : "standard", list of Kernel, or KernelBank, default "standard"
    Cs : sequence of float, default 0.01, 0.1, ..., 100
    norms : sequence of float or norm, default (1.0, 2.0)
    cv : int or splitter, default 5
    scoring : str, callable or None, default None
        None is accuracy.
    loss, combination, solver, normalize, center, missing, fit_intercept, probability, class_weight, multi_class,
    shared_weights, tol, max_iter, approximation, rank, memory_budget, device, n_jobs, random_state, verbose
        As for :class:`MKLClassifier`.

    Attributes
    ----------
    C_, norm_ : the choice
    scores_ : ndarray of shape (n_norms, n_Cs, n_folds)
    best_score_ : float
        Mean score of the choice.
    best_estimator_ : MKLClassifier

    And those of :class:`MKLClassifier`, fitted on all samples.

    Examples
    --------
    >>> from manykernels import MKLClassifierCV
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifierCV(Cs=[0.1, 1.0, 10.0], norms=[1.0, 2.0], cv=3).fit(X, y)
    >>> model.scores_.shape
    (2, 3, 3)
    >>> bool(model.best_score_ > 0.9)
    True
    """

    _single = MKLClassifier

    def __init__(
        self,
        kernels: Any = "standard",
        *,
        Cs: Sequence[float] = DEFAULT_CS,
        norms: Sequence[Any] = (1.0, 2.0),
        cv: Any = 5,
        scoring: Any = None,
        loss: str = "hinge",
        combination: str = "sum",
        solver: str = "auto",
        normalize: str | None = "mean_diag",
        center: bool = False,
        missing: str = "error",
        fit_intercept: bool = True,
        probability: bool = False,
        class_weight: Any = None,
        multi_class: str = "ovr",
        shared_weights: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        approximation: str | None = None,
        rank: float = 1000,
        memory_budget: Any = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.Cs = Cs
        self.norms = norms
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.combination = combination
        self.solver = solver
        self.normalize = normalize
        self.center = center
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.probability = probability
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.shared_weights = shared_weights
        self.tol = tol
        self.max_iter = max_iter
        self.approximation = approximation
        self.rank = rank
        self.memory_budget = memory_budget
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


class MKLRegressorCV(_Chooser, MKLRegressor):
    """MKLRegressor that chooses C and the norm by cross-validation.

    Parameters
    ----------
    kernels : "standard", list of Kernel, or KernelBank, default "standard"
    Cs : sequence of float, default 0.01, 0.1, ..., 100
    norms : sequence of float or norm, default (1.0, 2.0)
    cv : int or splitter, default 5
    scoring : str, callable or None, default None
        None is R2.
    loss, epsilon, combination, solver, normalize, center, missing, fit_intercept, tol, max_iter, approximation, rank,
    memory_budget, device,
    n_jobs, random_state, verbose
        As for :class:`MKLRegressor`.

    Attributes
    ----------
    C_, norm_, scores_, best_score_
        As for :class:`MKLClassifierCV`, and those of :class:`MKLRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKLRegressorCV
    >>> x = np.random.default_rng(0).uniform(-3, 3, 60)[:, None]
    >>> model = MKLRegressorCV(Cs=[1.0, 100.0], norms=[1.0], cv=3).fit(x, np.sin(2 * x[:, 0]))
    >>> model.C_
    100.0
    """

    _single = MKLRegressor

    def __init__(
        self,
        kernels: Any = "standard",
        *,
        Cs: Sequence[float] = DEFAULT_CS,
        norms: Sequence[Any] = (1.0, 2.0),
        cv: Any = 5,
        scoring: Any = None,
        loss: str = "squared",
        epsilon: float = 0.1,
        combination: str = "sum",
        solver: str = "auto",
        normalize: str | None = "mean_diag",
        center: bool = False,
        missing: str = "error",
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        approximation: str | None = None,
        rank: float = 1000,
        memory_budget: Any = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.Cs = Cs
        self.norms = norms
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.epsilon = epsilon
        self.combination = combination
        self.solver = solver
        self.normalize = normalize
        self.center = center
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.approximation = approximation
        self.rank = rank
        self.memory_budget = memory_budget
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
