"""Kernels learned by their alignment with the target: what the two-stage estimators and the transformer share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from manykernels.alignment.finite import MOST_LISTED, Aligned, independent, quadratic, uniform
from manykernels.alignment.greedy_alignment import METHODS, greedy
from manykernels.alignment.measures import Target, centered_alignment, overfits
from manykernels.banks import Data, Placement, Recipe, bind, bind_family
from manykernels.banks.definiteness import CHECKS, check_combination
from manykernels.banks.plan import left_beside
from manykernels.compute.threads import one_blas_thread
from manykernels.core.checks import check_choice, check_count, check_number
from manykernels.core.notices import warn
from manykernels.core.progress import listen, silent
from manykernels.core.samples import Samples
from manykernels.estimators.kernel_estimator import (
    KernelEstimator,
    print_step,
)
from manykernels.estimators.predictor import Predictor
from manykernels.kernels import GaussianFamily
from manykernels.kernels.family import Family
from manykernels.kernels.lazy_names import sums_by_group
from manykernels.kernels.standard import tell_choice

ALIGNMENTS = ("greedy", "qp", "independent", "uniform", "stagewise", "frank_wolfe")
_FOR_LISTS = ("qp", "independent", "uniform")
SHRINKAGES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Matrices of all samples that the search holds, beside the kernels.
_MATRICES = 7
# The exact solution of a long list closes the bound to this.
_EXACT_TOL = 1e-7
# Whole numbers that differ in more than this many values are hardly classes.
_MANY_CLASSES = 20
# With fewer samples than this, nothing can be held out.
_FEW_SAMPLES = 20

TargetOf = Callable[[np.ndarray, np.ndarray], Target]


class AlignedEstimator(KernelEstimator):
    """Base class; see TwoStageMKLClassifier, TwoStageMKLRegressor and AlignedKernel."""

    def _check_parameters(self) -> None:
        check_choice("alignment", self.alignment, ALIGNMENTS)
        check_choice("missing", self.missing, ("error", "ignore"))
        check_choice("check_kernels", self.check_kernels, CHECKS)
        check_number("tol", self.tol, low=0)
        check_count("max_iter", self.max_iter)
        if self.validation_fraction is not None:
            check_number("validation_fraction", self.validation_fraction, low=0, high=1, more=" or None")
        if isinstance(self.kernels, Family):
            if self.alignment in _FOR_LISTS:
                raise ValueError(f"alignment={self.alignment!r} needs a list of kernels: a family takes 'greedy'.")
            if self.missing == "ignore":
                raise ValueError("A family of kernels needs missing='error', got 'ignore'.")
        self._check_shrinkage()

    def _check_shrinkage(self) -> None:
        if self.shrinkage is None:
            return
        if not (isinstance(self.kernels, GaussianFamily) and self.kernels.per_feature):
            raise ValueError(f"shrinkage={self.shrinkage!r} is for GaussianFamily(per_feature=True): take None.")
        if isinstance(self.shrinkage, str):
            check_choice("shrinkage", self.shrinkage, ("auto",))
            if self.validation_fraction is None:
                raise ValueError("shrinkage='auto' needs a validation_fraction.")
        else:
            check_number("shrinkage", self.shrinkage, low=0, closed="left")

    # -- fit ------------------------------------------------------------------------------------------------

    def _learn_kernel(self, table: Any, X: Any, y: np.ndarray, samples: Samples, target_of: TargetOf) -> None:
        """Learn the kernel on distinct samples, see what it is worth on samples held out, and set the attributes.

        ``y`` holds the targets of the distinct samples; ``target_of`` makes a Target of some and their weights.
        """
        tell_choice(self.kernels, table)
        if self.missing == "ignore":
            self._bank(table).check_views(X, table)
        self._memory_for_kernels(samples.rows.size)
        X, kernels = X[samples.rows], self.kernels
        self.held_out_alignment_ = np.nan
        parts = self._split(y)
        if parts is None and self.shrinkage == "auto":
            raise ValueError(
                f"shrinkage='auto' needs {_FEW_SAMPLES} samples or more, of different targets, got {y.shape[0]}."
            )
        if parts is not None:
            strengths = SHRINKAGES if self.shrinkage == "auto" else [None]
            tried = [
                self._held_out(self._with(strength), table, X, y, samples, target_of, *parts) for strength in strengths
            ]
            best = int(np.argmax(tried))
            self.held_out_alignment_ = tried[best]
            if self.shrinkage == "auto":
                self.shrinkage_ = strengths[best]
                kernels = self._with(self.shrinkage_)
        if kernels is self.kernels:
            kernels = self._with(None)
        with listen(print_step) if self.verbose else nullcontext():
            found = self._align(kernels, table, X, samples.weight, target_of(y, samples.weight))
        self._set_kernel(found, samples)
        self._warn(found.interrupted)

    def _with(self, strength: float | None) -> Any:
        """Return the kernels, a family of many widths with the given strength of the shrinkage or the parameter's."""
        if strength is None and self.shrinkage != "auto":
            strength = self.shrinkage
        return self.kernels if strength is None else self.kernels.shrunk(float(strength))

    def _split(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the places of samples to learn from and of samples held out, or None."""
        if self.validation_fraction is None or y.shape[0] < _FEW_SAMPLES:
            return None
        order = check_random_state(self.random_state).permutation(y.shape[0])
        size = min(max(round(self.validation_fraction * y.shape[0]), 2), y.shape[0] - 2)
        train, held_out = order[size:], order[:size]
        # A part with only one target says nothing.
        if any(np.all(y[part] == y[part][0]) for part in (train, held_out)):
            return None
        return train, held_out

    def _held_out(self, kernels, table, X, y, samples, target_of, train, held_out) -> float:  # type: ignore[no-untyped-def]
        """Return the alignment on samples held out of a kernel that was learned without them."""
        with silent():
            own = self._align(
                kernels, table, X[train], samples.weight[train], target_of(y[train], samples.weight[train])
            )
        kernel = own.bank.kernel(own.weights, np.zeros(1, dtype=int))
        K = kernel.pairwise(X[held_out], X[held_out])
        return centered_alignment(K, target_of(y[held_out], samples.weight[held_out]))

    def _align(self, kernels: Any, table: Any, X: Any, weight: np.ndarray, target: Target) -> Aligned:
        """Bind the kernels to samples and learn the weights."""
        left = self._memory_for_kernels(X.shape[0])
        data, recipe = Data(X, table, weight), Recipe(self.normalize, check=self.check_kernels)
        with one_blas_thread():
            if isinstance(kernels, Family):
                return self._greedy(bind_family(kernels, data, recipe, Placement(left)), target)
            bank = bind(self._bank(table), data, recipe, Placement(left // 2, precision="double"))
            if self.alignment == "uniform":
                return uniform(bank, target)
            if self.alignment == "independent":
                return independent(bank, target)
            if self.alignment == "qp" and bank.n_kernels <= MOST_LISTED:
                return quadratic(bank, target)
            return self._greedy(bank, target)

    def _memory_for_kernels(self, n: int) -> int:
        """Return the bytes that are left for kernels beside the matrices of n samples, or say that there are none."""
        return left_beside(self.memory_budget, _MATRICES * 8 * n * n, f"matrices of {n} samples")

    def _greedy(self, bound: Any, target: Target) -> Aligned:
        if self.alignment == "qp":  # columns on demand, to the optimum
            return greedy(bound, target, tol=_EXACT_TOL, max_iter=1000)
        method = self.alignment if self.alignment in METHODS else "corrective"
        return greedy(bound, target, method=method, tol=self.tol, max_iter=int(self.max_iter))

    def _set_kernel(self, found: Aligned, samples: Samples) -> None:
        bank, weights = found.bank, found.weights
        if not found.interrupted:
            check_combination(bank, weights)
        n = bank.n_samples
        self._predictors = [
            Predictor(
                kernel=bank.kernel(weights),
                coef=np.zeros((0, n)),
                intercept=np.zeros(0),
                active=np.flatnonzero(weights > 0),
                rows=samples.rows,
                n_train=samples.owner.size,
            )
        ]
        self.weights_, self.kernel_names_, self.kernel_groups_ = weights, bank.names, bank.groups
        self.group_names_, group_weights = sums_by_group(bank.groups, weights[None])
        self.group_weights_ = group_weights[0]
        self.active_ = np.flatnonzero(weights > 0)
        self.alignment_, self.alignment_bound_ = found.alignment, found.bound
        self.gap_, self.gap_is_exact_ = found.gap, found.exact
        # Weights by a formula ("uniform", "independent") have no optimum to come near to, and no gap.
        self.converged_ = bool(np.isnan(found.gap) or found.gap <= self.tol)
        self.n_iter_, self.trace_ = found.n_iter, found.trace
        importances = bank.importances(weights, self.n_features_in_)
        self.feature_importances_ = importances / (importances.sum() or 1.0)
        self.extra_: dict = {}

    def _warn(self, interrupted: bool) -> None:
        if not (self.converged_ or interrupted):
            remedy = "raise max_iter or tol"
            if self.n_iter_ < self.max_iter:
                remedy = "no step raises it, and no closer bound is known"
            warn(
                f"{type(self).__name__} stopped after {self.n_iter_} steps at the alignment {self.alignment_:.4f}, "
                f"which may rise to {self.alignment_bound_:.4f}; {remedy}.",
                ConvergenceWarning,
            )
        if overfits(self.alignment_, self.held_out_alignment_):
            warn(
                f"The kernel overfits: its alignment is {self.alignment_:.2f} on the training data, but "
                f"{self.held_out_alignment_:.2f} on samples held out. Take fewer kernels, one width instead of many, "
                "or shrinkage='auto'."
            )

    # -- use ------------------------------------------------------------------------------------------------

    @one_blas_thread()
    def _cross(self, X: Any, predictor: Predictor | None = None) -> np.ndarray:
        """Return the learned kernel with the training samples that a predictor keeps, shape (len(X), n_kept)."""
        check_is_fitted(self)
        predictor = self._predictors[0] if predictor is None else predictor
        if getattr(X, "ndim", 2) == 3:
            return predictor.cross_from_stack(self._check_stack(X))
        return predictor.kernel.cross(self._checked(X))


class AlignedKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, AlignedEstimator):
    """Transform samples to their learned kernel with the training samples, for learners with a precomputed kernel.

    The kernel is a weighted sum of kernels whose centered alignment with the target is as large as can be.

    Parameters
    ----------
    kernels : "standard", list of Kernel, KernelBank or Family, default "standard"
    alignment : {"greedy", "qp", "independent", "uniform", "stagewise", "frank_wolfe"}, default "greedy"
        As for :class:`TwoStageMKLClassifier`.
    target : {"auto", "classes", "values"}, default "auto"
        What y holds; "auto" takes numbers with a fractional part for values and all else for classes.
    normalize, missing, check_kernels, shrinkage, validation_fraction, tol, max_iter, memory_budget, random_state, \
verbose
        As for :class:`TwoStageMKLClassifier`.

    Attributes
    ----------
    target_ : {"classes", "values"}
    weights_, kernel_names_, active_, alignment_, alignment_bound_, held_out_alignment_, ...
        As for :class:`TwoStageMKLClassifier`.

    Examples
    --------
    >>> from manykernels import AlignedKernel
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(AlignedKernel(), NuSVC(nu=0.1, kernel="precomputed"))
    >>> bool(cross_val_score(model, X, y).mean() > 0.94)
    True
    """

    def __init__(
        self,
        kernels: Any = "standard",
        *,
        alignment: str = "greedy",
        target: str = "auto",
        normalize: str | None = "mean_diag",
        missing: str = "error",
        check_kernels: str = "quick",
        shrinkage: float | str | None = None,
        validation_fraction: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 50,
        memory_budget: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.alignment = alignment
        self.target = target
        self.normalize = normalize
        self.missing = missing
        self.check_kernels = check_kernels
        self.shrinkage = shrinkage
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.verbose = verbose

    @one_blas_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the kernel.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts like two copies of a sample.

        Returns
        -------
        self
        """
        return super().fit(X, y, sample_weight)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("target", self.target, ("auto", "classes", "values"))

    def _fit(self, given: Any, y: Any, sample_weight: Any) -> None:
        X, y = validate_data(self, given, y, y_numeric=self.target == "values", **self._data_rules())
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.target_ = self.target
        if self.target == "auto":
            kind = type_of_target(y, input_name="y")
            self.target_ = "values" if kind.startswith("continuous") else "classes"
            self._look_at_classes(y)
        rows = np.flatnonzero(weight > 0)
        samples = Samples(rows, np.where(weight > 0, np.cumsum(weight > 0) - 1, -1), weight[rows], np.ones(weight.size))
        target_of = Target.of_values if self.target_ == "values" else Target.of_classes
        self._learn_kernel(self._table(given, X), X, y[rows], samples, target_of)
        # Each row that it was fitted to is a column of what it returns, be it of weight 0 or there twice.
        (predictor,) = self._predictors
        everyone = replace(predictor.kernel, X=X)
        self._predictors = [
            replace(predictor, kernel=everyone, coef=np.zeros((0, X.shape[0])), rows=np.arange(X.shape[0]))
        ]
        self._n_features_out = X.shape[0]

    def _look_at_classes(self, y: np.ndarray) -> None:
        """Warn where whole numbers are more likely values than classes."""
        n_classes = np.unique(y).size
        if self.target_ == "classes" and y.dtype.kind in "iuf" and n_classes > max(_MANY_CLASSES, y.size // 5):
            warn(
                f"y holds {n_classes} different whole numbers, taken for classes; "
                "target='values' takes them as they are."
            )

    def _opened(self) -> None:
        self._n_features_out = self._predictors[0].rows.size

    @one_blas_thread()
    def transform(self, X: Any) -> np.ndarray:
        """Return the learned kernel of the rows of X with the training samples.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_training_samples)
        """
        return self._cross(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
