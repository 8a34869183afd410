"""The one-class support vector machine with a learned kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin

from manykernels.core.protocols import Bank
from manykernels.core.results import Result
from manykernels.core.solver import Solver
from manykernels.core.targets import Targets
from manykernels.estimators.base import BaseMKL
from manykernels.estimators.by_rows import in_memory
from manykernels.estimators.parameters import keep
from manykernels.estimators.settings import Settings
from manykernels.estimators.training import Training, read_unlabeled
from manykernels.estimators.warm_start import Learner, WarmStart
from manykernels.kernels import KernelBank
from manykernels.kernels.standard import as_bank
from manykernels.losses import Loss, OneClass
from manykernels.norms import Norm
from manykernels.outer.exact_machine import of_one_class


class OneClassMKL(OutlierMixin, BaseMKL):
    """Finds outliers with the one-class support vector machine, and learns the weights of many kernels with it.

    It minimizes, over one function f_k for each kernel and a threshold rho, with the sample weights s_i,

        1/2 N(||f_1||, ..., ||f_m||)^2 + sum_i s_i max(0, rho - f(x_i)) - nu rho sum_i s_i,      f = sum_k f_k

    The dual, with q_k = a' K_k a, is

        maximize over a    -1/2 N*(sqrt(q))^2,     0 <= a_i <= s_i,     sum_i a_i = nu sum_i s_i

    and the duality gap encloses the optimum, which is negative. There a_i = s_i where f(x_i) < rho, and a_i = 0
    where f(x_i) > rho: at most the share nu of the samples is below rho, and at least that share are support vectors.
    With one kernel, and ``normalize=None``, it is scikit-learn's OneClassSVM.

    Parameters
    ----------
    kernels : "standard", list of Kernel or KernelBank, default "standard"
        The standard kernels are Gaussian here, on all columns and on each one, in units of the columns. A polynomial
        grows with the distance from the origin, and so would the scores of outliers.
    norm : float p in [1, inf] or norm, default 2.0
        The machine prefers kernels for which the samples are like one another, of several widths the widest. With
        p = 1 few such kernels are all that is left; a larger p keeps the finer ones.
    nu : float in (0, 1], default 0.5
        About the share of the training samples that is taken for outliers.
    solver : str, Solver or function, default "auto"
        As for :class:`MKLClassifier`; "silp", "level" and "smo" do not solve this problem.
    normalize, missing, check_kernels, tol, max_iter, approximation, memory_budget, device, cluster, random_state, \
verbose
        As for :class:`MKLClassifier`. There is no ``center``: centered data surround the origin, from which they are to
        be separated.

    Attributes
    ----------
    offset_ : float
        The threshold rho of ``score_samples``.
    dual_coef_ : ndarray of shape (1, n_support)
        The coefficients a_i of the support vectors.
    intercept_ : ndarray of shape (1,)
        Minus the threshold.
    weights_, kernel_names_, kernel_groups_, group_names_, group_weights_, active_, support_, objective_, \
dual_objective_, gap_, gap_is_exact_, converged_, n_iter_, n_inner_solves_, trace_, approximation_error_, ranks_, \
column_means_, column_scales_, feature_importances_, n_features_in_, feature_names_in_
        As for :class:`MKLClassifier`; there is one problem.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import OneClassMKL
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = OneClassMKL(nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0, 0.0], [5.0, 5.0, 5.0]])
    array([ 1, -1])
    >>> round(float(np.mean(model.predict(X) == -1)), 1), bool(model.gap_ <= 1e-3)
    (0.1, True)
    """

    offset_: float
    # The threshold is an intercept, and takes part in every problem.
    fit_intercept: bool = True
    # There is one problem.
    n_jobs: int | None = None

    def __init__(
        self,
        kernels: Any = "standard",
        *,
        norm: Any = 2.0,
        nu: float = 0.5,
        solver: Any = "auto",
        normalize: str | None = "mean_diag",
        missing: str = "error",
        check_kernels: str = "quick",
        tol: float = 1e-3,
        max_iter: int = 1000,
        approximation: Any = None,
        memory_budget: Any = None,
        device: str = "cpu",
        cluster: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        keep(self, locals())

    # -- fit ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the kernel weights, the scores and their threshold.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts like two copies of a sample.

        Returns
        -------
        self
        """
        return super().fit(X, y, sample_weight)

    def _check_parameters(self) -> None:
        if self._has_family:
            raise ValueError(f"OneClassMKL needs a list of kernels, got the family {self.kernels!r}.")
        super()._check_parameters()

    def _check_data(self, given: Any, client: Any) -> None:
        if client is not None:
            raise ValueError(
                "OneClassMKL does not learn from rows on Dask workers: compute the rows, or a part of them, first."
            )

    def _read(self, given: Any, y: Any, sample_weight: Any, client: Any = None) -> Training:
        given, _, sample_weight = in_memory(self.memory_budget, given, None, sample_weight)
        training = read_unlabeled(self, given, sample_weight)
        self._check_views(training.X, training.table)
        return training

    def _targets(self, training: Any) -> Targets:
        return Targets(1.0)

    def _loss(self) -> Loss:
        return OneClass(self.nu)

    def _norm(self) -> Norm:
        norm = super()._norm()
        if not norm.has_dual or norm.bounds_dual:
            raise ValueError(
                f"OneClassMKL needs a norm of the kernels' components, such as LpNorm(2) or MixedNorm(1): with "
                f"{norm!r} the weights could grow without bound."
            )
        return norm

    def _solver(self) -> Solver:
        return of_one_class(super()._solver())

    def _bank(self, table: Any, *, tells: bool = False) -> KernelBank:
        return as_bank(self.kernels, table, tells=tells, degrees=())

    def _learner(self, settings: Settings, training: Any, targets: Targets, warm: WarmStart) -> Learner:
        kernels = self._bank(training.table, tells=True)
        return super()._learner(replace(settings, kernels=kernels), training, targets, warm)

    def _set_learned(self, bank: Bank, results: list[Result], training: Any, offset: float) -> bool:
        interrupted = super()._set_learned(bank, results, training, offset)
        self.offset_ = -float(self.intercept_[0])
        return interrupted

    # -- use ------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores less the threshold, shape (n_samples,): negative for outliers.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Or, for precomputed kernels, an array of shape (n_kernels, n_samples, n_training_samples).
        """
        return self._decisions(X)[:, 0]

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the scores f(x) = sum_i a_i k(x_i, x) with the learned kernel k, shape (n_samples,)."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return 1 for each sample that is like the training samples, and -1 for outliers, shape (n_samples,)."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1)
