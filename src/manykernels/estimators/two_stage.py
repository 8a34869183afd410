"""Two-stage multiple kernel learning: first the kernel, by alignment with the target, then any learner with it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.linalg import LinAlgWarning
from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold, check_cv
from sklearn.svm import SVC
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from manykernels.alignment.measures import Target
from manykernels.compute.pairwise import power_of_two
from manykernels.compute.scales import weighted_mean
from manykernels.compute.threads import one_blas_thread
from manykernels.core.checks import is_number
from manykernels.core.notices import warn
from manykernels.core.results import OVERFLOWS
from manykernels.estimators.aligned import AlignedEstimator
from manykernels.estimators.classes import check_classes
from manykernels.estimators.contributions import ContributionsMixin
from manykernels.estimators.parameters import keep
from manykernels.estimators.predictor import Predictor
from manykernels.estimators.reduced import REDUCIBLE, ReducedLearner
from manykernels.estimators.training import Training, read_training

_CS = (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
# Steps of the SVC of its own, and for each sample: where C is huge, rounding keeps it from ever coming to an end.
_MOST_STEPS, _STEPS_PER_SAMPLE = 10**6, 1000
_ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)


def _learner_has(method: str) -> Any:
    def check(self: Any) -> bool:
        learner = self.learner_ if hasattr(self, "learner_") else self._learner()[0]
        getattr(learner, method)  # raises the AttributeError of the learner
        return True

    return check


class _TwoStage(ContributionsMixin, AlignedEstimator):
    """Base class; see TwoStageMKLClassifier and TwoStageMKLRegressor."""

    best_params_: dict[str, Any]
    learner_: Any

    def __init__(
        self,
        kernels: Any = "standard",
        *,
        alignment: str = "greedy",
        learner: Any = None,
        grid: dict | None = None,
        cv: Any = 5,
        normalize: str | None = "mean_diag",
        missing: str = "error",
        check_kernels: str = "quick",
        validation_fraction: float | None = 0.25,
        tol: float = 1e-3,
        max_iter: int = 50,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        keep(self, locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.cv, (bool, float, np.floating)) or (is_number(self.cv) and self.cv < 2):
            raise ValueError(f"cv must be at least 2, or folds as scikit-learn takes them, got {self.cv!r}.")
        if self.learner is not None and (isinstance(self.learner, type) or not hasattr(self.learner, "fit")):
            raise TypeError(f"learner must be a scikit-learn estimator, got {self.learner!r}.")
        learner, grid = self._learner()
        known = learner.get_params() if hasattr(learner, "get_params") else {}
        unknown = sorted({name for params in ParameterGrid(grid or {}) for name in params} - set(known))
        if unknown:
            raise ValueError(f"grid names parameters that {type(learner).__name__} does not have: {unknown}.")

    def _learner(self, n_samples: int = 0, level: float = 1.0) -> tuple[Any, dict | None]:
        """Return the second stage and the grid that its parameters are chosen from, if any.

        Those of its own are for kernels of mean diagonal 1; for others they are in the unit of their ``level``.
        """
        if self.learner is not None:
            return self._given_learner(), self.grid
        learner, grid = self._default_learner(n_samples, level)
        return learner, grid if self.grid is None else self.grid

    def _default_learner(self, n_samples: int, level: float) -> tuple[Any, dict]:
        """Return the second stage of its own and the grid for kernels of that mean diagonal."""
        raise NotImplementedError

    def _folds(self, y: np.ndarray) -> Any:
        """Return a splitter of the distinct samples, or None where there are too few."""
        raise NotImplementedError

    def _score(self, learner: Any, K: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the sum of what the learner gets right, or minus what it gets wrong, over samples."""
        raise NotImplementedError

    def _learn(self, training: Training) -> None:
        """Fit the learner to the learned kernel."""
        (predictor,) = self._predictors
        K, target, samples = predictor.kernel.cross(predictor.kernel.X), training.target, training.samples
        level = 1.0
        if self.learner is None and self.grid is None and self.normalize is None:
            level = float(np.average(K.diagonal(), weights=samples.weight)) or 1.0
        learner, grid = self._learner(K.shape[0], level)
        unit = None
        if not has_fit_parameter(learner, "sample_weight"):
            unit = float(training.weight.max())
            if np.any((training.weight > 0) & (training.weight < unit)):
                raise ValueError(f"sample_weight cannot be used: {type(learner).__name__} takes none.")
        ranked: list[dict] = [{}]
        folds = [] if grid is None else list(self._weights_of_folds(training))
        if grid is not None and not folds and not isinstance(self.cv, (int, np.integer)):
            raise ValueError("cv gives no folds.")
        if folds:
            options = list(ParameterGrid(grid))
            jobs = (
                delayed(self._fold_score)(clone(learner).set_params(**params), K, target, *fold, unit)
                for params in options
                for fold in folds
            )
            scores = np.reshape(Parallel(n_jobs=self.n_jobs)(jobs), (len(options), len(folds))).sum(axis=1)
            ranked = [options[i] for i in np.argsort(-scores, kind="stable")]
        try:
            self._fit_best(learner, ranked, K, target, samples.weight, unit)
        except ValueError as error:
            if self.learner is None:
                raise ValueError(OVERFLOWS) from error
            raise

    @property
    def _rounding_signs(self) -> tuple[type[Warning], ...]:
        """The warnings by which a learner says that rounding decides; a given learner may mean something else."""
        return (LinAlgWarning,) if self.learner is not None else (LinAlgWarning, ConvergenceWarning)

    def _fit_best(
        self, learner: Any, ranked: list[dict], K: np.ndarray, y: np.ndarray, weight: np.ndarray, unit: float | None
    ) -> None:
        """Fit the learner with the best parameters for which rounding does not decide; with the best if there are none.

        Each fold may be well conditioned where all samples are not: a few of huge weight are in one fold only.
        """
        for last, params in [*((False, params) for params in ranked), (True, ranked[0])]:
            self.best_params_, self.learner_ = params, clone(learner).set_params(**params)
            with warnings.catch_warnings():
                for category in self._rounding_signs:
                    warnings.simplefilter("ignore" if last else "error", category)
                try:
                    self._kept = _fitted(self.learner_, K, y, weight, unit)
                    break
                except self._rounding_signs:
                    continue
        if last:
            warn(
                f"{type(self.learner_).__name__} is ill-conditioned with all parameters that were tried: scale the "
                "features, normalize the kernels, or lower the sample weights."
            )

    def _weights_of_folds(self, training: Training) -> Iterator[tuple]:
        """Yield for each fold the weights of the distinct samples to learn from, and of those to score on."""
        samples, n = training.samples, training.samples.rows.size
        if isinstance(self.cv, (int, np.integer)):
            splitter = self._folds(training.target)
            for parts in () if splitter is None else self._splits(splitter, training.target):
                yield tuple(np.where(np.isin(np.arange(n), part), samples.weight, 0.0) for part in parts)
            return
        y, weight = training.y, training.weight
        for parts in self._splits(check_cv(self.cv, y, classifier=is_classifier(self)), y):
            inside = [part[weight[part] > 0] for part in parts]
            yield tuple(np.bincount(samples.owner[members], weight[members], n) for members in inside)

    def _splits(self, splitter: Any, y: np.ndarray) -> Iterator[list[np.ndarray]]:
        """Yield the folds of a splitter as arrays; without those that leave a classifier one class to learn."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            for parts in splitter.split(np.zeros((y.size, 1)), y):
                train, test = (np.asarray(part, dtype=np.int64) for part in parts)
                if not is_classifier(self) or np.unique(y[train]).size > 1:
                    yield [train, test]

    def _fold_score(
        self, learner: Any, K: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, unit: float | None
    ) -> float:
        with warnings.catch_warnings():
            for category in self._rounding_signs:
                warnings.simplefilter("error", category)
            try:
                kept = _fitted(learner, K, y, train, unit)
            except self._rounding_signs:  # parameters with which rounding decides cannot be chosen
                return -np.inf
            except ValueError:
                if self.learner is None:  # nor are those with which a learner of our own overflows
                    return -np.inf
                raise
        rows = np.flatnonzero(test)
        return self._score(learner, K[np.ix_(rows, kept)], y[rows], test[rows])

    @one_blas_thread()
    def _answer(self, method: str, X: Any) -> np.ndarray:
        """Return what a method of the learner says of the rows of X.

        Where a file can keep the learner, its numbers are used as the file would keep them: a model that was saved and
        opened gives the same answers, to the last bit.
        """
        check_is_fitted(self)
        try:
            (predictor,) = self._for_file()
        except TypeError:
            K = self._cross(X)
            return getattr(self.learner_, method)(K if self._kept.size == K.shape[1] else K[:, self._kept])
        learner = ReducedLearner(predictor.coef, predictor.intercept, getattr(self, "classes_", None))
        return getattr(learner, method)(self._cross(X, predictor))

    def _for_file(self) -> list[Predictor]:
        (predictor,) = self._predictors
        learner = ReducedLearner.of(self.learner_, self._kept, predictor.rows.size)
        kept = np.flatnonzero(np.any(learner.coef != 0, axis=0))
        kept = kept if kept.size else np.arange(1)
        return [
            replace(
                predictor,
                kernel=replace(predictor.kernel, X=predictor.kernel.X[kept]),
                coef=learner.coef[:, kept],
                intercept=learner.intercept,
                rows=predictor.rows[kept],
            )
        ]

    def _machines(self) -> list[Predictor]:
        (predictor,) = self._predictors
        learner = self.learner_
        if type(learner) in REDUCIBLE:
            learner = ReducedLearner.functions_of(learner, self._kept, predictor.rows.size)
        if not isinstance(learner, ReducedLearner) or learner.intercept.size > 1:
            names = ", ".join(kind.__name__ for kind in REDUCIBLE)
            raise TypeError(
                f"contributions needs a learner whose prediction is one sum over the samples: one of {names}, for two "
                f"classes or regression; for several classes there is MKLClassifier. Got {type(learner).__name__}."
            )
        intercept = learner.intercept + getattr(self, "offset_", 0.0)
        return [replace(predictor, coef=learner.coef, intercept=intercept)]

    def _opened(self) -> None:
        (predictor,) = self._predictors
        self.learner_ = ReducedLearner(predictor.coef, predictor.intercept, getattr(self, "classes_", None))
        self._kept = np.arange(predictor.rows.size)
        self.best_params_ = {}

    def _given_learner(self) -> Any:
        """Return the learner that was given, after a look at its kernel."""
        learner = clone(self.learner)
        if (is_regressor if is_classifier(self) else is_classifier)(learner):
            needed = "classifier" if is_classifier(self) else "regressor"
            raise TypeError(f"learner must be a {needed}, got {learner!r}.")
        given = learner.get_params() if hasattr(learner, "get_params") else {}
        for name, kernel in given.items():
            if name.rpartition("__")[2] == "kernel" and not (isinstance(kernel, str) and kernel == "precomputed"):
                raise ValueError(f"learner must have {name}='precomputed', got {kernel!r}.")
        return learner


def _fitted(learner: Any, K: np.ndarray, y: np.ndarray, weight: np.ndarray, unit: float | None) -> np.ndarray:
    """Fit a learner to samples with weights, in place, and return the columns of the kernel that it needs.

    A learner that takes no weights is shown each sample as often as it is there: its weight over that of one.
    """
    if unit is not None:
        kept = np.repeat(np.arange(y.size), np.round(weight / unit).astype(int))
        learner.fit(K[np.ix_(kept, kept)], y[kept])
        return kept
    kept = np.flatnonzero(weight)
    options = {} if np.all(weight[kept] == 1.0) else {"sample_weight": weight[kept]}
    learner.fit(K[np.ix_(kept, kept)], y[kept], **options)
    return kept


class TwoStageMKLClassifier(ClassifierMixin, _TwoStage):
    """Classification with a kernel that was learned first, by its centered alignment with the classes.

    Parameters
    ----------
    kernels : "standard", list of Kernel, KernelBank or Family, default "standard"
        As for :class:`MKLClassifier`.
    alignment : {"greedy", "qp", "independent", "uniform", "stagewise", "frank_wolfe"}, default "greedy"
        How the weights are learned. "greedy" takes in one kernel after the other, each time learning all weights anew,
        and is for lists and families; "qp" is the exact optimum of a list, whatever ``tol`` and ``max_iter``;
        "independent" weighs each kernel by its own alignment; "uniform" learns nothing. "stagewise" and "frank_wolfe"
        are greedy without correction: simpler steps and more kernels (Algorithms 7 and 8 of the thesis).
    learner : estimator with kernel="precomputed", optional
        The second stage; default SVC with C chosen by cross-validation.
    grid : dict, optional
        Parameters of the learner to choose from by cross-validation, as for GridSearchCV. The kernel is learned once.
    cv : int, splitter or iterable of splits, default 5
        Folds for the grid; a number divides the distinct samples.
    normalize : {"mean_diag", "trace", "cosine", None}, default "mean_diag"
    missing : {"error", "ignore"}, default "error"
        As for :class:`MKLClassifier`.
    check_kernels : {"quick", "full"}, default "quick"
        How closely matrices and kernels of your own are checked for positive semidefiniteness. "quick" reads each about
        once and sees most that are not kernels; the learned combination is checked in full. "full" factors each.
    validation_fraction : float or None, default 0.25
        Part of the samples that is held out, once, to see what the alignment is worth; the final kernel is learned on
        all. None saves that time.
    tol : float, default 1e-3
        Greedy selection ends when the alignment is within this part of its bound, or a kernel adds less than a
        hundredth of it.
    max_iter : int, default 50
        Most steps; each takes in a kernel, with "greedy" and a list up to 32.
    memory_budget : int, str or None, default None
    n_jobs : int, optional
        Of the cross-validation.
    random_state : int or RandomState, optional
        Of the samples held out.
    verbose : int, default 0
        Above 0, prints where the kernels are held and why, then each step; Ctrl-C keeps the kernel so far.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Of sum 1; of a family, those of the kernels that were selected.
    kernel_names_, kernel_groups_ : lists of str
    active_ : ndarray of int
    alignment_ : float
        Centered alignment of the learned kernel with the target on the training data.
    alignment_bound_ : float
        What no weights exceed; of a family, none of up to ten times their total.
    alignment_gap_, alignment_gap_is_exact_ : float, bool
        ``alignment_bound_ - alignment_``, and whether the search behind the bound is exact. NaN where a formula gives
        the weights ("independent", "uniform").
    converged_ : bool
        Whether ``alignment_gap_ <= tol``, or there is no such gap.
    held_out_alignment_ : float
        Alignment on samples held out, of a kernel learned without them; NaN without a validation_fraction. Far below
        ``alignment_`` it means that the kernel overfits, of which a warning tells. A kernel that knows nothing has
        about 1 / sqrt(samples held out).
    shrinkage_ : float
        The strength that was chosen, with ``GaussianFamily(shrinkage="auto")``.
    learner_, best_params_ : estimator and dict
        The second stage, and what was chosen from the grid.
    classes_ : ndarray
    feature_importances_ : ndarray of shape (n_features,)
    n_iter_, trace_, n_features_in_, feature_names_in_
        As for :class:`MKLClassifier`.

    Examples
    --------
    >>> from manykernels import TwoStageMKLClassifier
    >>> from manykernels.kernels import GaussianFamily
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TwoStageMKLClassifier(GaussianFamily(0.1, 100.0), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.held_out_alignment_ > 0.7)
    (True, True)
    """

    def _fit(self, given: Any, y: Any, sample_weight: Any) -> None:
        training = read_training(self, given, y, sample_weight)
        self.classes_ = check_classes(training.class_counts[0])
        self._learn_kernel(training, Target.of_classes)
        self._learn(training)

    def _default_learner(self, n_samples: int, level: float) -> tuple[Any, dict]:
        steps = _MOST_STEPS + _STEPS_PER_SAMPLE * n_samples
        return SVC(kernel="precomputed", max_iter=steps), {"C": [C / level for C in _CS]}

    def _folds(self, y: np.ndarray) -> Any:
        most = int(np.unique(y, return_counts=True)[1].max())
        return StratifiedKFold(min(self.cv, most)) if most >= 2 else None

    def _score(self, learner: Any, K: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
        return float(weight @ (learner.predict(K) == y))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each sample, shape (n_samples,)."""
        return self._answer("predict", X)

    @available_if(_learner_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the learner's decision function."""
        return self._answer("decision_function", X)

    @available_if(_learner_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the learner's probabilities, shape (n_samples, n_classes)."""
        return self._answer("predict_proba", X)


class TwoStageMKLRegressor(RegressorMixin, _TwoStage):
    """Regression with a kernel that was learned first, by its centered alignment with the target.

    Parameters
    ----------
    learner : estimator with kernel="precomputed", optional
        The second stage; default KernelRidge with alpha chosen by cross-validation. It learns the target minus its
        mean.
    kernels, alignment, grid, cv, normalize, missing, check_kernels, validation_fraction, tol, max_iter, \
memory_budget, n_jobs, random_state, verbose
        As for :class:`TwoStageMKLClassifier`.

    Attributes
    ----------
    offset_ : float
        The mean of the target.
    weights_, kernel_names_, kernel_groups_, active_, alignment_, alignment_bound_, alignment_gap_, \
alignment_gap_is_exact_, converged_, held_out_alignment_, shrinkage_, learner_, best_params_, feature_importances_, ...
        As for :class:`TwoStageMKLClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import TwoStageMKLRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(120, 2))
    >>> y = np.sin(X[:, 0])
    >>> model = TwoStageMKLRegressor(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), int(model.feature_importances_.argmax())
    (True, 0)
    """

    def _fit(self, given: Any, y: Any, sample_weight: Any) -> None:
        training = read_training(self, given, y, sample_weight)
        self.offset_ = weighted_mean(training.target, training.samples.weight)
        self._unit = power_of_two(float(np.abs(training.target).max()))
        self._learn_kernel(training, Target.of_values)
        self._learn(replace(training, y=training.y - self.offset_))

    def _default_learner(self, n_samples: int, level: float) -> tuple[Any, dict]:
        return KernelRidge(kernel="precomputed"), {"alpha": [alpha * level for alpha in _ALPHAS]}

    def _folds(self, y: np.ndarray) -> Any:
        return KFold(min(self.cv, y.size)) if y.size >= 4 else None

    def _score(self, learner: Any, K: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
        # In a unit near the size of the targets, so that the squares of huge ones do not overflow.
        return -float(weight @ ((learner.predict(K) - y) / self._unit) ** 2)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target of each sample, shape (n_samples,)."""
        return self._answer("predict", X) + self.offset_
