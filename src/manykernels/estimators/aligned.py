"""Kernels learned by their alignment with the target: what the two-stage estimators and the transformer share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from manykernels.alignment.finite import Aligned
from manykernels.alignment.measures import Target, centered_alignment, overfits
from manykernels.alignment.methods import ALIGNMENTS
from manykernels.banks import Data, Placement, Recipe, bind, bind_family
from manykernels.banks.definiteness import check_combination
from manykernels.banks.planning import plan_alignment
from manykernels.compute.threads import one_blas_thread
from manykernels.core.checks import check_choice
from manykernels.core.notices import warn
from manykernels.core.progress import silent
from manykernels.core.samples import Samples
from manykernels.estimators.attributes import set_kernels, warn_not_converged
from manykernels.estimators.kernel_estimator import KernelEstimator
from manykernels.estimators.parameters import FAMILY_NEEDS, Check, check_needs, check_parameters, keep
from manykernels.estimators.predictor import Predictor
from manykernels.estimators.running import print_placement, watched
from manykernels.estimators.training import Training, read_rows, read_weight, standardized, table_of

# Whole numbers that differ in more than this many values are hardly classes.
_MANY_CLASSES = 20
# With fewer samples than this, nothing can be held out.
_FEW_SAMPLES = 20

_CHECKS: dict[str, Check] = {
    "alignment": partial(check_choice, choices=ALIGNMENTS),
    "target": partial(check_choice, choices=("auto", "classes", "values")),
}

TargetOf = Callable[[np.ndarray, np.ndarray], Target]


class AlignedEstimator(KernelEstimator):
    """Base class; see TwoStageMKLClassifier, TwoStageMKLRegressor and AlignedKernel."""

    alignment_: float
    alignment_bound_: float
    alignment_gap_: float
    alignment_gap_is_exact_: bool
    held_out_alignment_: float
    shrinkage_: float

    def _check_parameters(self) -> None:
        check_parameters(self, _CHECKS)
        if self._has_family and not ALIGNMENTS[self.alignment].for_families:
            raise ValueError(f"alignment={self.alignment!r} needs a list of kernels: a family takes 'greedy'.")
        if self._has_family:
            check_needs(self, "A family of kernels", FAMILY_NEEDS)
            if not self.kernels.is_settled and self.validation_fraction is None:
                raise ValueError(f"{self.kernels!r} needs a validation_fraction.")

    # -- fit ------------------------------------------------------------------------------------------------

    def _learn_kernel(self, training: Training, target_of: TargetOf) -> None:
        """Learn the kernel, see what it is worth on samples held out, and set the attributes.

        ``target_of`` makes a Target of the targets of some samples and their weights.
        """
        table, samples = training.table, training.samples
        kernels = self.kernels if self._has_family else self._bank(table, tells=True)
        self._check_views(training.X, table, kernels)
        place = self._place(samples.rows.size)  # what does not fit is refused before anything is held out
        print_placement(self, repr(kernels), place)
        X, y, weight = training.X[samples.rows], training.target, samples.weight

        def learn(candidate: Any, part: Any = slice(None)) -> Aligned:
            return self._align(candidate, table, X[part], weight[part], target_of(y[part], weight[part]))

        def worth(candidate: Any, train: np.ndarray, held_out: np.ndarray) -> float:
            """Return the alignment on samples held out of a kernel that was learned without them."""
            with silent():
                aligned = learn(candidate, train)
            kernel = aligned.bank.kernel(aligned.weights, np.zeros(1, dtype=int))
            K = kernel.pairwise(X[held_out], X[held_out])
            return centered_alignment(K, target_of(y[held_out], weight[held_out]))

        best = self._best(kernels, y, worth)
        with watched(self):
            aligned = learn(best)
        self._set_learned(aligned, samples)

    def _best(self, kernels: Any, y: np.ndarray, worth: Callable[..., float]) -> Any:
        """Return the kernels; of a family that leaves something open, the candidate worth most on samples held out.

        What the kernel is worth there is set, NaN where no samples can be held out.
        """
        self.held_out_alignment_ = np.nan
        is_open, parts = self._has_family and not kernels.is_settled, self._split(y)
        if parts is None and is_open:
            raise ValueError(
                f"{kernels!r} needs {_FEW_SAMPLES} samples or more, of different targets, got {y.shape[0]}."
            )
        if parts is None:
            return kernels
        candidates = kernels.candidates() if is_open else [kernels]
        worths = [worth(candidate, *parts) for candidate in candidates]
        best = int(np.argmax(worths))
        self.held_out_alignment_ = worths[best]
        if is_open:
            self.shrinkage_ = candidates[best].shrinkage
        return candidates[best]

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

    def _align(self, kernels: Any, table: Any, X: Any, weight: np.ndarray, target: Target) -> Aligned:
        """Bind the kernels to samples and learn the weights."""
        place = self._place(X.shape[0])
        data, recipe = Data(X, table, weight), Recipe(self.normalize, check=self.check_kernels)
        with one_blas_thread():
            bound = (bind_family if self._has_family else bind)(kernels, data, recipe, place)
            return ALIGNMENTS[self.alignment](bound, target, tol=self.tol, max_iter=int(self.max_iter))

    def _place(self, n: int) -> Placement:
        """Return where the kernels of n samples go: those of a list in double precision, whatever the tolerance."""
        precision = "single" if self._has_family else "double"  # what a search in a family collects is in double, too
        return plan_alignment(n, Placement(self.memory_budget, precision=precision), is_list=not self._has_family)

    def _set_learned(self, aligned: Aligned, samples: Samples) -> None:
        """Look at the learned kernel, set the attributes and warn."""
        bank, weights = aligned.bank, aligned.weights
        if not aligned.interrupted:
            check_combination(bank, weights)
        set_kernels(self, bank, weights)
        n = bank.n_samples
        self._predictors = [
            Predictor(
                kernel=bank.kernel(weights),
                coef=np.zeros((0, n)),
                intercept=np.zeros(0),
                active=self.active_,
                rows=samples.rows,
                n_train=samples.owner.size,
            )
        ]
        self.alignment_, self.alignment_bound_ = aligned.alignment, aligned.bound
        self.alignment_gap_, self.alignment_gap_is_exact_ = aligned.gap, aligned.exact
        # Weights by a formula ("uniform", "independent") have no optimum to come near to, and no gap.
        self.converged_ = bool(np.isnan(aligned.gap) or aligned.gap <= self.tol)
        self.n_iter_, self.trace_ = aligned.n_iter, aligned.trace
        if not self.converged_:
            self._warn_not_converged(aligned.interrupted)
        if overfits(self.alignment_, self.held_out_alignment_):
            warn(
                f"The kernel overfits: its alignment is {self.alignment_:.2f} on the training data, but "
                f"{self.held_out_alignment_:.2f} on samples held out. Take fewer kernels, one width instead of many, "
                "or GaussianFamily(..., shrinkage='auto')."
            )

    def _warn_not_converged(self, interrupted: bool) -> None:
        remedy = "raise max_iter or tol"
        if self.n_iter_ < self.max_iter:
            remedy = "no step raises it, and no closer bound is known"
        reached = f"alignment {self.alignment_:.4f}, which may rise to {self.alignment_bound_:.4f}"
        warn_not_converged(self, "steps", reached, remedy, interrupted=interrupted)

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
    normalize, missing, check_kernels, validation_fraction, tol, max_iter, memory_budget, random_state, \
verbose
        As for :class:`TwoStageMKLClassifier`.

    Attributes
    ----------
    target_ : {"classes", "values"}
    weights_, kernel_names_, active_, alignment_, alignment_bound_, alignment_gap_, held_out_alignment_, ...
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
        validation_fraction: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 50,
        memory_budget: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        keep(self, locals())

    @one_blas_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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

    def _fit(self, given: Any, y: Any, sample_weight: Any) -> None:
        X, y = read_rows(self, given, y, numeric=self.target == "values")
        weight = read_weight(sample_weight, X)
        self.target_ = self.target
        if self.target == "auto":
            kind = type_of_target(y, input_name="y")
            self.target_ = "values" if kind.startswith("continuous") else "classes"
            self._look_at_classes(y)
        target_of = Target.of_values if self.target_ == "values" else Target.of_classes
        training = standardized(self, Training(table_of(given, X), X, y, weight, Samples.all_of(weight)))
        self._learn_kernel(training, target_of)
        # Each row that it was fitted to is a column of what it returns, be it of weight 0 or there twice.
        (predictor,) = self._predictors
        everyone = replace(predictor.kernel, X=training.X)
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
