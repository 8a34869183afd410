"""Estimators that choose C and p by cross-validation."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import check_scoring, r2_score
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from manykernels.compute.threads import one_blas_thread
from manykernels.core.progress import reached
from manykernels.estimators.base import BaseMKL
from manykernels.estimators.by_rows import in_memory
from manykernels.estimators.classifier import MKLClassifier
from manykernels.estimators.parameters import keep
from manykernels.estimators.path import DEFAULT_CS, points_of, side_by_side, walk
from manykernels.estimators.regressor import MKLRegressor
from manykernels.estimators.training import read_rows, read_weight, table_of

# What a search says of Dask data that are too large.
_NEEDS = (
    "a search takes its folds from there; raise memory_budget, or hold rows out yourself and take mkl_path, which with "
    "approximation= leaves the others on the workers"
)


class _Chooser(BaseMKL):
    """The search that both estimators share."""

    _single: type[BaseMKL]
    C_: Any
    norm_: Any
    scores_: np.ndarray
    best_score_: float
    best_estimator_: Any

    def __init__(
        self,
        kernels: Any = "standard",
        *,
        Cs: Sequence[float] = DEFAULT_CS,
        norms: Sequence[Any] = (1.0, 2.0),
        cv: Any = 5,
        scoring: Any = None,
        **others: Any,
    ) -> None:
        keep(self, {"kernels": kernels, "Cs": Cs, "norms": norms, "cv": cv, "scoring": scoring, **others})

    @one_blas_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose C and the norm by cross-validation, then fit on all samples.

        In each fold the kernels are computed once for the whole path of C and norms; each point of the path starts from
        the weights that the first fold found for it. The other folds run in parallel where ``n_jobs`` or a backend of
        joblib says so, with the same result, but not on a device. Ctrl-C ends the search, whoever watches; the last fit
        alone, to all samples, keeps the best model so far.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,), (n_samples, n_outputs) or (n_samples, n_labels)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            known = inspect.signature(self._single).parameters
            single = self._single(**{name: v for name, v in self.get_params(deep=False).items() if name in known})
            points_of(single, self.Cs, self.norms)  # what they cannot be is refused before anything is read
            self._forget()
            X, y, sample_weight = in_memory(self.memory_budget, X, y, sample_weight, _NEEDS)
            checked, y = read_rows(self, X, y, numeric=is_regressor(self))
            X, weight = table_of(X, checked), None
            self._check_views(checked, X)  # a fold would count its own rows
            if sample_weight is not None:
                weight = read_weight(sample_weight, checked)
            if checked.shape[0] > 1:  # else let the estimator say what is wrong
                self.scores_ = self._cross_validate(single, X, y, weight)
                self._choose(self.scores_.mean(axis=2))
                single.set_params(C=self.C_, norm=self.norm_)
            single.fit(X, y, weight)
            self.__dict__.update({k: v for k, v in vars(single).items() if k.endswith("_") or k == "_predictors"})
            self.best_estimator_ = single
        return self

    def _choose(self, means: np.ndarray) -> None:
        """Set the norm and the C with the best mean score, of shape (n_norms, n_Cs).

        Outputs that have scores of their own, (n_norms, n_Cs, n_outputs), have their own C, and the norm is that for
        which they are best together.
        """
        norm = int(np.argmax(means.max(axis=1).reshape(means.shape[0], -1).mean(axis=1)))
        places = means[norm].argmax(axis=0)
        chosen = np.sort(np.asarray(self.Cs, dtype=float))[places]
        self.norm_, self.C_ = self.norms[norm], chosen if chosen.ndim else float(chosen)
        self.best_score_ = float(means[norm].max(axis=0).mean())

    def _scorer(self, single: BaseMKL, y: np.ndarray) -> Callable:
        """Return what scores a model: by one number, or by one for each output that has weights and a C of its own."""
        if y.ndim == 1 or single.shared_weights or not is_regressor(single):
            return check_scoring(single, scoring=self.scoring)
        if self.scoring is not None:
            raise ValueError(
                f"scoring={self.scoring!r} compares whole models: with shared_weights=False each output has a C of its "
                "own, by its R2, which is scoring=None."
            )
        return _r2_of_outputs

    def save(self, path: Any, extra: dict | None = None) -> None:
        """Write the chosen model to a file; :func:`manykernels.load` returns it without the search."""
        check_is_fitted(self)
        self.best_estimator_.save(path, extra)

    def _cross_validate(self, single: BaseMKL, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Return the scores, shape (n_norms, n_Cs, n_folds)."""
        folds = check_cv(self.cv, y, classifier=is_classifier(self))
        scorer = self._scorer(single, y)
        parameters = single.get_params(deep=False)
        if self.scoring is None and "probability" in parameters:
            parameters["probability"] = False  # accuracy needs none
        if isinstance(self.kernels, str) and self._recipe().is_sum:
            parameters["kernels"] = self._bank(X)  # the same in all folds, whose models are compared
        splits = list(folds.split(X, y))
        points = len(self.norms) * len(self.Cs)
        n_jobs, settings = side_by_side(single, X, len(splits) - 1)
        single = type(single)(**{**parameters, **settings})

        def run(fold: int, trail: dict) -> tuple[list, dict]:
            tell = partial(_tell, fold * points, len(splits) * points, fold) if n_jobs == 1 or fold == 0 else None
            return _score_fold(single, scorer, X, y, weight, splits[fold], self.Cs, self.norms, trail, tell)

        # The first fold shows the way to all others, so that the order in which they are done does not matter.
        first, trail = run(0, {})
        if n_jobs == 1:
            rest = [run(fold, trail) for fold in range(1, len(splits))]
        else:
            jobs = (
                delayed(_score_fold)(single, scorer, X, y, weight, split, self.Cs, self.norms, trail)
                for split in splits[1:]
            )
            rest = Parallel(n_jobs=n_jobs)(jobs)
            reached(len(splits) * points, len(splits) * points, "all folds")
        scores = np.array([first, *(scores_of for scores_of, _ in rest)])
        by_point = np.moveaxis(scores, 0, 1)
        return by_point.reshape(len(self.norms), len(self.Cs), *by_point.shape[1:])


def _r2_of_outputs(model: Any, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> np.ndarray:
    return np.asarray(r2_score(y, model.predict(X), sample_weight=sample_weight, multioutput="raw_values"))


def _tell(before: int, total: int, fold: int, place: int, title: str) -> None:
    reached(before + place + 1, total, f"fold {fold + 1}, {title}")


@one_blas_thread()
def _score_fold(
    single: BaseMKL,
    scorer: Callable,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None,
    split: tuple[np.ndarray, np.ndarray],
    Cs: Sequence[float],
    norms: Sequence[Any],
    trail: dict,
    tell: Callable[[int, str], None] | None = None,
) -> tuple[list, dict]:
    """Return the scores along the path on one fold, and the weights that were found; ``trail`` has some to start from.

    ``tell(place, title)`` is called at each point. A score that is not a finite number is refused: it can be compared
    with no other.
    """
    train, test = split
    train_weight = None if weight is None else weight[train]
    left_out = {} if weight is None else {"sample_weight": weight[test]}
    X_test, y_test, trail, scores = _safe_indexing(X, test), y[test], dict(trail), []
    for point in walk(single, _safe_indexing(X, train), y[train], train_weight, Cs, norms, trail):
        if point.interrupted:  # what is half learned is not compared with anything
            raise KeyboardInterrupt
        scores.append(scorer(point.model, X_test, y_test, **left_out))
        if not np.all(np.isfinite(scores[-1])):
            worst = float(np.min(scores[-1]))  # NaN if there is one
            raise ValueError(
                f"scoring must give a finite number for each fold, got {worst:g} for one of {len(test)} held-out "
                f"row(s), at {point.title}: take larger folds or another scoring."
            )
        if tell is not None:
            tell(len(scores) - 1, point.title)
    return scores, trail


def searching(single: type[BaseMKL]) -> Callable[[type], type]:
    """Return a decorator for a search of an estimator's C and norm, which has all its other parameters.

    They and their defaults stand in the estimator alone: the signature is made of them, and so is the list of names in
    the docstring, in the place of ``{others}``. It leaves out ``n_jobs``, of which a search makes something else.
    """
    search = inspect.signature(_Chooser.__init__).parameters
    given = inspect.signature(single.__init__).parameters
    others = [given[name] for name in given if name not in (*search, "C", "norm")]
    signature = inspect.Signature([*(p for p in search.values() if p.kind is not p.VAR_KEYWORD), *others])
    names = ", ".join(parameter.name for parameter in others if parameter.name != "n_jobs")

    def listed(place: re.Match) -> str:
        return textwrap.fill(names, 116, initial_indent=place[1], subsequent_indent=place[1])

    def decorated(kind: Any) -> Any:
        def __init__(*positional: Any, **named: Any) -> None:
            bound = signature.bind(*positional, **named)
            bound.apply_defaults()
            _Chooser.__init__(**bound.arguments)

        __init__.__signature__ = signature  # type: ignore[attr-defined]
        kind.__init__, kind._single = __init__, single
        kind.__doc__ = re.sub(r"^( *)\{others\}", listed, kind.__doc__ or "", flags=re.MULTILINE)
        return kind

    return decorated


@searching(MKLClassifier)
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
    {others}
        As for :class:`MKLClassifier`.
    n_jobs : int or None, default None
        Folds at the same time; on a ``cluster`` or a ``device`` one after the other, since each fit has all of it.

    Attributes
    ----------
    C_, norm_ : float, float or norm
        The choice.
    scores_ : ndarray of shape (n_norms, n_Cs, n_folds)
    best_score_ : float
        Mean score of the choice.
    best_estimator_ : MKLClassifier
    weights_, kernel_names_, active_, gap_, ...
        As for :class:`MKLClassifier`, fitted on all samples.

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


@searching(MKLRegressor)
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
    {others}
        As for :class:`MKLRegressor`.
    n_jobs : int or None, default None
        As for :class:`MKLClassifierCV`.

    Attributes
    ----------
    C_, norm_, scores_, best_score_
        As for :class:`MKLClassifierCV`, and those of :class:`MKLRegressor`. With several outputs and
        ``shared_weights=False``, ``C_`` is of shape (n_outputs,), each chosen by the R2 of its output, and ``scores_``
        of shape (n_norms, n_Cs, n_folds, n_outputs); the norm is that for which they are best together.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKLRegressorCV
    >>> x = np.random.default_rng(0).uniform(-3, 3, 60)[:, None]
    >>> model = MKLRegressorCV(Cs=[1.0, 100.0], norms=[1.0], cv=3).fit(x, np.sin(2 * x[:, 0]))
    >>> model.C_
    100.0
    """
