"""Estimators that learn one sample at a time: UFO-MKL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from manykernels.compute.threads import one_blas_thread
from manykernels.core.notices import shown
from manykernels.core.targets import n_tasks_of, offset_of
from manykernels.estimators.calibration import logistic_probabilities
from manykernels.estimators.classes import labels_of, targets_of
from manykernels.estimators.contributions import Contributions
from manykernels.estimators.loss_and_norm import find_loss, gives_probabilities
from manykernels.estimators.parameters import keep
from manykernels.estimators.training import Training, read_any, read_batch, read_training
from manykernels.estimators.ufo_base import Task
from manykernels.estimators.ufo_streams import StreamingUFO
from manykernels.losses import JOINT_LOSSES, JointLoss, OneVsRest

_JOINT = {kind.name: kind for kind in JOINT_LOSSES}


def _gives_probabilities(estimator: UFOMKLClassifier) -> bool:
    if gives_probabilities(estimator):
        return True
    raise AttributeError("predict_proba needs loss='logistic'.")


class UFOMKLClassifier(ClassifierMixin, StreamingUFO):
    """Classifier that learns kernel weights one sample at a time, with exact zeros, and from streams.

    It minimizes, over one function f_k for each of m kernels, with a_k = ||f_k|| and r = 2 ln m / (2 ln m - 1),

        1/2 ||a||_r^2 + alpha C n ||a||_1 + C sum_i loss(y_i, sum_k f_k(x_i))

    so that alpha tunes how many kernels are left. Every epoch ends with a duality gap that encloses the optimum.

    Parameters
    ----------
    kernels : "standard", list of Kernel, or KernelBank, default "standard"
        As for :class:`MKLClassifier`. With kernels that have finite feature maps (Linear, Polynomial, RandomFourier,
        Nystroem) memory does not grow with the number of samples.
    alpha : float >= 0, default 0.0
        Strength of the l1 norm, stated for the mean of the losses; :func:`ufo_path` finds a range of it.
    C : float, default 1.0
        Weight of the losses.
    loss : {"hinge", "squared_hinge", "logistic", "squared", "multiclass_hinge"}, Loss or JointLoss, default "hinge"
        The first four, and any other loss of one output as an object (one of :mod:`manykernels.losses`, or of your
        own), learn several classes one against the rest, with kernel weights that they share; "multiclass_hinge"
        learns them jointly. A JointLoss of your own may predict structured labels, see
        :class:`manykernels.losses.StructuredHinge`.
    max_iter : int, default 10
        Epochs: passes over the samples.
    step : {"auto", "exact", "gradient"}, default "auto"
        "gradient" is the paper's: a subgradient of one sample's loss, and a gap that falls like 1 / max_iter. "exact"
        goes to the best coefficient of that sample, at about the same cost, and the gap falls geometrically in the end,
        for a large C after many epochs. "auto" is "exact" where there is no average and the loss is one of the library.
        ``partial_fit`` always takes gradient steps.
    norm : float p in (1, inf] or None, default None
        As for :class:`MKLClassifier`, with r = 2 p / (1 + p). None is the r above: p = 1.3 for a hundred kernels.
    sampling : {"shuffle", "uniform"}, default "shuffle"
        Every sample once an epoch in random order, or each step at a random sample.
    average : bool, default False
        Predict by the mean over all gradient steps after the first epoch, instead of the last; its kernel weights
        are not sparse.
    features : {"auto", "explicit", "kernel"}, default "auto"
        Learn vectors on finite feature maps, or coefficients of samples; "auto" takes the shorter ones.
    normalize : {"mean_diag", "trace", "cosine", None}, default "mean_diag"
    missing : {"error", "ignore"}, default "error"
        As for :class:`MKLClassifier`.
    check_kernels : {"quick", "full"}, default "quick"
        How closely matrices and kernels of your own are checked for positive semidefiniteness. "quick" reads each about
        once and sees most that are not kernels; the learned combination is checked in full. "full" factors each.
    fit_intercept : bool, default True
        Augment every kernel by a constant, its mean diagonal. Unbalanced classes alone then give each kernel something
        to do: for few kernels, center the classes or set this to False.
    class_weight : dict, "balanced" or None, default None
    tol : float, default 0.0
        Stop when the relative duality gap falls to this.
    warm_start : bool, default False
        Let ``fit`` go on where the last one on the same samples ended; with another loss, or in a copy that was
        pickled, it begins anew.
    expected_samples : float or None, default None
        What C is stated for in a stream: ``partial_fit`` weighs the regularizer by 1 / (C expected_samples). None is
        the number of samples of the first call. Weights of samples count beside the mean weight of the first call.
    memory_budget : int, str or None, default None
        Memory that a fit may use, in bytes or as "2GB"; None is half of what is free.
    random_state : int, RandomState or None, default None
        Shuffles the samples.
    verbose : int, default 0
        Above 0, prints where the kernels are held and why, then each epoch; Ctrl-C keeps the model so far.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Sum to 1; exactly 0 for the kernels that are left out.
    kernel_norms_ : ndarray of shape (n_kernels,)
        ||f_k||.
    kernel_names_, kernel_groups_, group_names_ : sequences of str
    group_weights_ : ndarray of shape (n_groups,)
    active_ : ndarray of int
        Kernels with a positive weight.
    classes_ : ndarray of shape (n_classes,)
        Not for a JointLoss of your own.
    gives_probabilities_ : bool
        Whether the loss gives probabilities.
    objective_, dual_objective_, gap_ : float
        The optimum lies between the two objectives; ``gap_`` is their relative difference. After ``partial_fit`` they
        are of the stream: the mean objective along the way, and a bound below that of any fixed predictor.
    gap_is_exact_ : bool
        True: all kernels of a list are looked at.
    converged_ : bool
        Whether ``gap_ <= tol``; with the default ``tol=0`` all epochs are made, and it is False.
    trace_ : list of Step
        Seconds, objective, gap and active kernels after each epoch, or each call of ``partial_fit``.
    n_iter_ : int
        Its length.
    intercept_ : ndarray of shape (n_outputs,)
    support_ : ndarray of int
        Rows of the training data at which a step was taken; not after ``partial_fit``.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        The point of the dual problem that ``dual_objective_`` is the value of; not after ``partial_fit``.
    n_seen_ : int
        Samples of the fit, or of the stream so far.
    feature_importances_ : ndarray of shape (n_features,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when X has column names.

    Examples
    --------
    >>> from manykernels import UFOMKLClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = UFOMKLClassifier(alpha=0.03, loss="multiclass_hinge", max_iter=50, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.gap_ < 0.01)
    (True, True)
    >>> len(model.weights_), len(model.active_) < 30
    (65, True)
    """

    def __init__(
        self,
        kernels: Any = "standard",
        *,
        alpha: float = 0.0,
        C: float = 1.0,
        loss: Any = "hinge",
        max_iter: int = 10,
        step: str = "auto",
        norm: float | None = None,
        sampling: str = "shuffle",
        average: bool = False,
        features: str = "auto",
        normalize: str | None = "mean_diag",
        missing: str = "error",
        check_kernels: str = "quick",
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 0.0,
        warm_start: bool = False,
        expected_samples: float | None = None,
        memory_budget: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        keep(self, locals())

    _offset = 0.0
    classes_: np.ndarray
    gives_probabilities_: bool

    def _prepare(self, given: Any, y: Any, sample_weight: Any) -> Task:
        self.gives_probabilities_ = self._loss().gives_probabilities
        if self._has_own_loss:
            training = read_any(self, given, y, sample_weight)
            return Task(training, self.loss, training.target, self.C * training.samples.weight)
        training = read_training(self, given, y, sample_weight)
        y, targets = training.target, targets_of(self, training)
        loss = self._loss(self.classes_.size)
        return Task(training, loss, loss.targets_of(targets.codes(y)), targets.costs(y, training.samples.weight))

    @one_blas_thread()
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from new samples, each looked at once, in order.

        With kernels that have finite feature maps, memory does not grow; otherwise the samples at which a step was
        taken are kept. Kernels keep the scales that the first call learned.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array of shape (n_classes,), optional
            All classes that will come; needed in the first call.
        sample_weight : array of shape (n_samples,), optional
            Multiplies the losses.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels import UFOMKLClassifier
        >>> from manykernels.kernels import Linear, RandomFourier
        >>> rng = np.random.default_rng(0)
        >>> model = UFOMKLClassifier([Linear(), RandomFourier(1.0)])
        >>> for _ in range(20):
        ...     X = rng.normal(size=(200, 2))
        ...     model = model.partial_fit(X, X[:, 0] * X[:, 1] > 0, classes=[False, True])
        >>> bool(model.score(X, X[:, 0] * X[:, 1] > 0) > 0.9), model.n_seen_
        (True, 4000)
        """
        with self._all_or_nothing():
            self._check_parameters()
            self._partial_fit(X, y, classes, sample_weight)
        return self

    def _partial_fit(self, given: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        first = self._begin_batch()
        self.gives_probabilities_ = self._loss().gives_probabilities
        if self._has_own_loss:
            training = read_any(self, given, y, sample_weight, reset=first)
            self._learn_batch(training, self.loss, training.target, training.samples.weight)
            return
        training = read_batch(self, given, y, sample_weight, numeric=False, reset=first)
        self._set_classes(classes, training.y, first)
        codes = np.searchsorted(self.classes_, training.target)
        loss, factors = self._loss(self.classes_.size), self._given_class_weights()
        self._learn_batch(training, loss, loss.targets_of(codes), training.samples.weight * factors[codes])

    def _set_classes(self, classes: Any, y: np.ndarray, first: bool) -> None:
        """Set the classes that will come, with the first samples, or see that they are still those."""
        if first and classes is None:
            raise ValueError("classes must be given in the first call of partial_fit.")
        if first:
            self.classes_ = np.unique(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes must be those of the first call, {self.classes_}, got {classes!r}.")
        if self.classes_.size < 2:
            raise ValueError(f"classes must hold at least 2 classes, got {classes!r}.")
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"y holds the class {shown(unknown[0])}, which is not one of classes.")

    def _given_class_weights(self) -> np.ndarray:
        """Return the weight of each class, which for a stream must be given in numbers."""
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all samples at once: give numbers for partial_fit.")
        factors = {} if self.class_weight is None else self.class_weight
        if not isinstance(factors, dict) or set(factors) - set(self.classes_.tolist()):
            raise ValueError(f"class_weight must be a dict of weights of the classes, got {self.class_weight!r}.")
        return np.array([factors.get(label, 1.0) for label in self.classes_.tolist()])

    def _loss(self, n_classes: int = 2) -> JointLoss:
        if self._has_own_loss and self.loss.is_made_for_classes:
            raise ValueError(
                f"loss={type(self.loss).__name__}(...) is made for the classes by the estimator: pass "
                f"{', '.join(map(repr, _JOINT))}, or the loss of one output."
            )
        if self._has_own_loss:
            return self.loss
        if isinstance(self.loss, str) and self.loss in _JOINT:
            return _JOINT[self.loss](n_classes)
        return OneVsRest(find_loss(self, of_classes=True, more=tuple(_JOINT)), n_tasks_of(n_classes))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the predictor's values.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Or, for precomputed kernels, an array of shape (n_kernels, n_samples, n_training_samples).

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
            For a JointLoss of your own, (n_samples, n_outputs).
        """
        decisions = self._decisions(X)
        if self._has_own_loss or self.classes_.size > 2:
            return decisions
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions[:, 1] - decisions[:, 0]

    def contributions(self, X: Any) -> Contributions:
        parts = super().contributions(X)
        if self._has_own_loss or self.classes_.size > 2 or parts.intercept.size == 1:
            return parts
        # Two classes that were learned jointly have a score each; the decision is their difference.
        return replace(parts, values=np.diff(parts.values, axis=1), intercept=np.diff(parts.intercept))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each sample, shape (n_samples,)."""
        decisions = self.decision_function(X)
        if self._has_own_loss:
            return self.loss.labels(decisions)
        return labels_of(self.classes_, decisions)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, shape (n_samples, n_classes): sigmoids, of several scaled to sum 1."""
        check_is_fitted(self)
        return logistic_probabilities(self._decisions(X))


class UFOMKLRegressor(RegressorMixin, StreamingUFO):
    """Regressor that learns kernel weights one sample at a time, with exact zeros, and from streams.

    The problem and its solution are those of :class:`UFOMKLClassifier`, with another loss.

    Parameters
    ----------
    kernels : "standard", list of Kernel, or KernelBank, default "standard"
    alpha : float >= 0, default 0.0
    C : float, default 1.0
    loss : {"squared", "epsilon_insensitive", "absolute", "quantile", "huber"} or Loss, default "squared"
        As for :class:`manykernels.MKLRegressor`.
    epsilon : float, default 0.1
        Half the width of the tube of loss="epsilon_insensitive"; a loss as an object has its own.
    max_iter, step, norm, sampling, average, features, normalize, missing, check_kernels, fit_intercept, tol,
    warm_start, expected_samples, memory_budget, random_state, verbose
        As for :class:`UFOMKLClassifier`.

    Attributes
    ----------
    weights_, kernel_norms_, kernel_names_, kernel_groups_, group_names_, group_weights_, active_, objective_,
    dual_objective_, gap_, gap_is_exact_, converged_, trace_, n_iter_, intercept_, support_, dual_coef_, n_seen_,
    feature_importances_, n_features_in_, feature_names_in_
        As for :class:`UFOMKLClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import UFOMKLRegressor
    >>> x = np.linspace(-3, 3, 100)[:, None]
    >>> model = UFOMKLRegressor(C=100.0, max_iter=50, random_state=0).fit(x, np.sin(2 * x[:, 0]))
    >>> bool(model.score(x, np.sin(2 * x[:, 0])) > 0.99)
    True
    """

    def __init__(
        self,
        kernels: Any = "standard",
        *,
        alpha: float = 0.0,
        C: float = 1.0,
        loss: Any = "squared",
        epsilon: float = 0.1,
        max_iter: int = 10,
        step: str = "auto",
        norm: float | None = None,
        sampling: str = "shuffle",
        average: bool = False,
        features: str = "auto",
        normalize: str | None = "mean_diag",
        missing: str = "error",
        check_kernels: str = "quick",
        fit_intercept: bool = True,
        tol: float = 0.0,
        warm_start: bool = False,
        expected_samples: float | None = None,
        memory_budget: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        keep(self, locals())

    def _prepare(self, given: Any, y: Any, sample_weight: Any) -> Task:
        training = read_training(self, given, y, sample_weight)
        self._set_offset(training)
        return Task(training, self._loss(), self._shifted(training), self.C * training.samples.weight)

    def _set_offset(self, training: Training) -> None:
        """Set what is taken off the targets: the bias would pay for their mean, where the loss lets it be moved."""
        self._offset = offset_of(training.mean, self._loss().loss, self.fit_intercept)

    def _shifted(self, training: Training) -> np.ndarray:
        return (training.target - self._offset)[:, None]

    @one_blas_thread()
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go on learning from new samples, each looked at once, in order; see :meth:`UFOMKLClassifier.partial_fit`.

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
            self._check_parameters()
            first = self._begin_batch()
            training = read_batch(self, X, y, sample_weight, numeric=True, reset=first)
            if first:
                self._set_offset(training)
            self._learn_batch(training, self._loss(), self._shifted(training), training.samples.weight)
        return self

    def _loss(self) -> OneVsRest:
        return OneVsRest(find_loss(self, of_classes=False), 1)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target of each sample, shape (n_samples,)."""
        return self._decisions(X)[:, 0]
