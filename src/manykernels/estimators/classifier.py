"""The MKL classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from manykernels.core.notices import warn
from manykernels.core.targets import LabelTargets, Targets
from manykernels.estimators.base import BaseMKL
from manykernels.estimators.calibration import (
    held_out_scale,
    label_probabilities,
    logistic_probabilities,
    probabilities,
)
from manykernels.estimators.classes import label_targets_of, labels_of, targets_of
from manykernels.estimators.loss_and_norm import find_loss, gives_probabilities
from manykernels.estimators.parameters import keep
from manykernels.estimators.warm_start import WarmStart
from manykernels.losses import Loss


def _gives_probabilities(estimator: MKLClassifier) -> bool:
    if estimator.probability or gives_probabilities(estimator):
        return True
    raise AttributeError("predict_proba needs loss='logistic' or probability=True.")


class MKLClassifier(ClassifierMixin, BaseMKL):
    """Classifier that learns the weights of many kernels together with the predictor.

    It minimizes, over one function f_k for each kernel and an intercept b,

        1/2 N(||f_1||, ..., ||f_m||)^2 + C sum_i loss(y_i, sum_k f_k(x_i) + b)

    and reports a duality gap that encloses the optimum. Several classes are
    learned one against the rest; of many labels, each against its absence.

    Parameters
    ----------
    kernels : "standard", list of Kernel, KernelBank or Family, default "standard"
        "standard" is Gaussians of ten widths and polynomials of degree 1 to 3, on all features and on each
        one. They see each column less its mean and divided by its deviation, both learned on the training data, so
        that no scaler is needed; other kernels see X as it is. A list or a bank may hold GaussianLadders, whose kernels
        come after all others in ``weights_`` and ``kernel_names_``. Or a family of kernels that is not a list
        (ProductKernels, GaussianFamily, DirichletFamily): those that are selected are then the kernels of the model.
    norm : float p in [1, inf] or norm, default 1.0
        1 selects few kernels, 2 uses many, inf weighs all equally.
    C : float, default 1.0
        Weight of the losses.
    loss : {"hinge", "squared_hinge", "logistic", "squared"} or Loss, default "hinge"
        A name, or a loss as an object: one of :mod:`manykernels.losses`, or of your own.
    combination : {"sum", "product"} or ParametricKernel, default "sum"
        "product" raises Gaussian kernels to their weights and multiplies them: one width for each feature (default
        kernels) or group of columns. It has no duality gap: ``gap_`` is NaN. Or a kernel with parameters of your own.
    solver : {"auto", "newton", "reduced_newton", "group_lasso", "spg", "pgd", "mirror", "simple", "silp", \
"level", "hessian", "smo"}, Solver or function, default "auto"
        With a family of kernels "greedy" or "ckl" for norm=1, or "stochastic_mirror" for norm=2.
        "newton" is second order in weights and samples, "reduced_newton" in the weights alone (for many samples),
        "group_lasso" the closed-form alternation, "spg" the spectral projected gradient for any penalty and combination
        ("pgd" is its baseline), "mirror" the mirror descent for kernels in groups; "auto" takes the one that is fastest
        for the norm and the sizes. To compare with: "simple" (SimpleMKL), "level" (the level method) and "hessian"
        (HessianMKL) for norm=1, "silp" (semi-infinite linear program) for any p, "smo" (SMO-MKL) for p > 1 and the
        hinge loss. Or a solver of your own: a function ``run(problem, *, tol, max_iter, start)``, or a
        :class:`manykernels.core.solver.Solver`, which also says what it needs and refuses.
    normalize : {"mean_diag", "trace", "cosine", None}, default "mean_diag"
        How kernels are made comparable; learned on the training data.
    center : bool, default False
        Center the kernels in feature space.
    missing : {"error", "ignore"}, default "error"
        With "ignore" a row may be NaN in all columns that a kernel sees: the kernel's values with it are then 0.
    check_kernels : {"quick", "full"}, default "quick"
        How closely matrices and kernels of your own are checked for positive semidefiniteness. "quick" reads each about
        once and sees most that are not kernels; the learned combination is checked in full. "full" factors each.
    fit_intercept : bool, default True
    probability : bool, default False
        Calibrate probabilities on held-out folds (five more fits); the logistic loss needs no calibration, nor does
        any other whose ``gives_probabilities`` says so.
    class_weight : dict, "balanced" or None, default None
    shared_weights : bool, default True
        Learn one kernel for all classes or labels; False: one for each.
    tol : float, default 1e-3
        Relative duality gap to reach.
    max_iter : int, default 1000
    approximation : None, "nystroem", "fourier", NystroemFeatures or FourierFeatures, default None
        For very many samples: each kernel becomes the inner product of a few features, its values with landmarks or
        random waves (Gaussian kernels). No kernel matrix is made, and the certificate is that of the approximate
        problem. A name stands for 1000 features of each kernel;
        :class:`NystroemFeatures(rank) <manykernels.kernels.NystroemFeatures>` and
        :class:`FourierFeatures(rank) <manykernels.kernels.FourierFeatures>` take another number, or the share of the
        trace that may be lost.
    memory_budget : int, str or None, default None
        Memory that a fit may use, in bytes or as "2GB"; None is half of what is free.
    device : {"cpu", "cuda", "cuda:0", ..., "mps"}, default "cpu"
        Where the kernels lie and passes over them are made; a GPU needs ``pip install "manykernels[gpu]"``. It is for
        lists of kernels, combination="sum". A model fitted there is used anywhere.
    cluster : None, "dask" or dask.distributed.Client, default None
        With "dask" the kernels are held by the workers of the active Dask client, with a client by its workers;
        ``memory_budget`` is then for this process alone.
    n_jobs : int or None, default None
        Classes learned at the same time, when each has its own kernel.
    random_state : int, RandomState or None, default None
        Shuffles the folds of the calibration, and chooses the landmarks or waves of an approximation.
    verbose : int, default 0
        Above 0, prints where the kernels are held and why, then each iteration; Ctrl-C keeps the best model so far.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,), or (n_classes, n_kernels) if not shared
    kernel_names_, kernel_groups_ : sequences of str
    group_names_ : list of str
    group_weights_ : ndarray of shape (n_groups,), or (n_classes, n_groups) if not shared
        The sum of the weights of each group of kernels.
    active_ : ndarray of int
        Kernels with a positive weight.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Signed dual coefficients on the support vectors; one row for each binary problem.
    support_ : ndarray of int
        Rows of the training data that are support vectors.
    intercept_ : ndarray of shape (n_problems,)
    classes_ : ndarray of shape (n_classes,)
        For a matrix of labels 0, ..., n_labels - 1.
    n_outputs_ : int
        Only for a matrix of labels: how many there are.
    gaps_ : ndarray of shape (n_problems,)
        Only with weights that are not shared: the duality gap of each class or label.
    objective_, dual_objective_, gap_ : float
        The optimum lies between the two objectives; ``gap_`` is their relative difference, and what rounding may add.
    gap_is_exact_ : bool
        False where the search for the best kernel of a family may have missed it: the gap may then be larger.
    converged_ : bool
        Whether ``gap_ <= tol``. A problem without a dual (products of kernels, penalties without a conjugate) has no
        gap: there ``gap_`` is NaN, and this says whether the projected gradient fell to the tolerance.
    n_iter_, n_inner_solves_ : int
    trace_ : list of Step
        Seconds, objective, gap and active kernels at each iteration.
    approximation_error_ : ndarray of shape (n_kernels,)
        Only with an approximation: the share of each kernel's trace that was lost; for waves the mean error of a kernel
        value beside the mean diagonal.
    ranks_ : ndarray of shape (n_kernels,)
        Only with an approximation: the number of features of each kernel.
    gives_probabilities_ : bool
        Whether the loss gives probabilities, without calibration.
    temperature_scale_ : float
        Factor that turns decision values into probabilities; 1 unless calibrated.
    column_means_, column_scales_ : ndarrays of shape (n_features,)
        Only with kernels that standardize: what is taken off each column, and what the rest is divided by.
    feature_importances_ : ndarray of shape (n_features,)
        Each kernel's weight divided over its columns; sums to 1.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when X has column names.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.kernels import Gaussian, Linear
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> petal = ["petal length (cm)", "petal width (cm)"]
    >>> sepal = ["sepal length (cm)", "sepal width (cm)"]
    >>> model = MKLClassifier(
    ...     [Gaussian(1.0, columns=petal, label="petal"), Gaussian(1.0, columns=sepal, label="sepal"), Linear()]
    ... ).fit(X, y)
    >>> model.kernel_names_[int(model.weights_.argmax())]
    'Gaussian(width=1) on petal'
    >>> bool(model.gap_ <= 1e-3), bool(model.score(X, y) > 0.95)
    (True, True)
    """

    classes_: np.ndarray
    gives_probabilities_: bool
    temperature_scale_: float

    def __init__(
        self,
        kernels: Any = "standard",
        *,
        norm: Any = 1.0,
        C: float = 1.0,
        loss: Any = "hinge",
        combination: Any = "sum",
        solver: Any = "auto",
        normalize: str | None = "mean_diag",
        center: bool = False,
        missing: str = "error",
        check_kernels: str = "quick",
        fit_intercept: bool = True,
        probability: bool = False,
        class_weight: Any = None,
        shared_weights: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        approximation: Any = None,
        memory_budget: Any = None,
        device: str = "cpu",
        cluster: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        keep(self, locals())

    def _fit_to(self, training: Any, warm: WarmStart) -> bool:
        self.gives_probabilities_, self.temperature_scale_ = self._loss().gives_probabilities, 1.0
        interrupted = super()._fit_to(training, warm)
        if self.probability and not self.gives_probabilities_:
            warm.bank = None  # the memory budget is for the kernels of a fold now; a path binds them anew
            scale = None if interrupted else held_out_scale(self, training)
            if scale is None:
                warn("The fit was interrupted: probabilities are not calibrated.")
                return True
            self.temperature_scale_ = scale
        return interrupted

    def _targets(self, training: Any) -> Targets | LabelTargets:
        return targets_of(self, training) if training.n_outputs is None else label_targets_of(self, training)

    def _loss(self) -> Loss:
        return find_loss(self, of_classes=True)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the predictor's values.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Or, for precomputed kernels, an array of shape (n_kernels, n_samples, n_training_samples).

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes), or (n_samples, n_labels)
        """
        decisions = self._decisions(X)
        return decisions[:, 0] if self.classes_.size == 2 and not self._has_matrix else decisions

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each sample, shape (n_samples,), or 0 and 1 of shape (n_samples, n_labels)."""
        decisions = self.decision_function(X)
        return (decisions > 0).astype(np.int64) if self._has_matrix else labels_of(self.classes_, decisions)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, shape (n_samples, n_classes), or of each label, (n_samples, n_labels).

        From a loss that gives probabilities, such as the logistic one, directly (several classes: the sigmoids of the
        classes, scaled to sum 1), otherwise by temperature scaling on held-out folds. The most probable class is the
        predicted one.
        """
        check_is_fitted(self)
        decisions = self._decisions(X)
        if self._has_matrix:
            return label_probabilities(decisions, self.temperature_scale_)
        if self.gives_probabilities_:
            return logistic_probabilities(decisions)
        return probabilities(decisions, self.temperature_scale_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
