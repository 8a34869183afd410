"""The MKL regressor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from manykernels.core.targets import Targets, offset_of
from manykernels.estimators.base import BaseMKL
from manykernels.estimators.loss_and_norm import find_loss
from manykernels.estimators.parameters import Check, check_costs_of_outputs, keep
from manykernels.losses import Loss


class MKLRegressor(RegressorMixin, BaseMKL):
    """Regressor that learns the weights of many kernels together with the predictor.

    It minimizes, over one function f_k for each kernel and an intercept b,

        1/2 N(||f_1||, ..., ||f_m||)^2 + C sum_i loss(y_i, sum_k f_k(x_i) + b)

    and reports a duality gap that encloses the optimum. With several outputs the losses and ||f_k||^2 are summed over
    them, or each has a problem of its own.

    Parameters
    ----------
    kernels : "standard", list of Kernel, KernelBank or Family, default "standard"
    norm : float p in [1, inf] or norm, default 1.0
    C : float, or list of float, default 1.0
        Weight of the losses; a list has one for each output.
    loss : {"squared", "epsilon_insensitive", "absolute", "quantile", "huber"} or Loss, default "squared"
        (y - z)^2 / 2; max(0, |y - z| - epsilon); |y - z|; the median's, or ``Quantile(0.9)`` for another quantile;
        squares near 0 and straight lines from 1 on, or ``Huber(delta)`` for another place. Or a loss as an object: one
        of :mod:`manykernels.losses`, or of your own.
    epsilon : float, default 0.1
        Half the width of the tube of loss="epsilon_insensitive"; a loss as an object has its own.
    shared_weights : bool, default True
        Learn one kernel for all outputs; False: one for each. With the squared loss, a norm p and solver="auto", eight
        outputs or more are then learned together in batches.
    combination, solver, normalize, center, missing, check_kernels, fit_intercept, tol, max_iter, approximation,
    memory_budget, device, cluster, random_state, verbose
        As for :class:`MKLClassifier`.
    n_jobs : int or None, default None
        Outputs with kernels of their own that are learned at the same time, where they are not learned in batches; of
        :func:`mkl_path`, norms walked along at the same time.

    Attributes
    ----------
    weights_, kernel_names_, kernel_groups_, group_names_, group_weights_, active_, dual_coef_, support_, intercept_,
    objective_, dual_objective_, gap_, gap_is_exact_, converged_, n_iter_, n_inner_solves_, trace_,
    feature_importances_, n_features_in_, feature_names_in_
        As for :class:`MKLClassifier`; ``weights_``, ``dual_coef_`` and ``intercept_`` have a row or a number for each
        output: ``weights_`` with ``shared_weights=False``, the others in any case.
    n_outputs_ : int
        Only where y had two dimensions: its columns.
    gaps_ : ndarray of shape (n_outputs,)
        Only with weights that are not shared: the duality gap of each output.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKLRegressor
    >>> x = np.linspace(-3, 3, 100)[:, None]
    >>> model = MKLRegressor(C=100.0).fit(x, np.sin(2 * x[:, 0]))
    >>> bool(model.score(x, np.sin(2 * x[:, 0])) > 0.99)
    True
    """

    def __init__(
        self,
        kernels: Any = "standard",
        *,
        norm: Any = 1.0,
        C: Any = 1.0,
        loss: Any = "squared",
        epsilon: float = 0.1,
        combination: Any = "sum",
        solver: Any = "auto",
        normalize: str | None = "mean_diag",
        center: bool = False,
        missing: str = "error",
        check_kernels: str = "quick",
        fit_intercept: bool = True,
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

    _checks: Mapping[str, Check] = {"C": check_costs_of_outputs}

    def _targets(self, training: Any) -> Targets:
        if np.ndim(self.C) and np.size(self.C) != training.n_outputs:
            columns = "one column" if training.n_outputs is None else f"{training.n_outputs} columns"
            raise ValueError(f"C has {np.size(self.C)} numbers, one for each output, but y has {columns}.")
        # The intercept takes up any offset of the target, which would only cost digits.
        C = np.asarray(self.C, dtype=np.float64) if np.ndim(self.C) else self.C
        return Targets(C, offset=offset_of(training.mean, self._loss(), self.fit_intercept))

    def _loss(self) -> Loss:
        return find_loss(self, of_classes=False)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target of each sample, shape (n_samples,), or (n_samples, n_outputs) of several."""
        decisions = self._decisions(X)
        return decisions if self._has_matrix else decisions[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
