"""Survival analysis: Cox's proportional hazards with learned kernels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manykernels.core.censored_times import read_survival
from manykernels.core.concordance import concordance_index
from manykernels.core.protocols import Bank
from manykernels.core.results import Result
from manykernels.core.targets import Targets
from manykernels.estimators.base import BaseMKL
from manykernels.estimators.by_rows import RowTraining, in_memory, stay_on_workers
from manykernels.estimators.parameters import keep
from manykernels.estimators.training import Training, read_weight
from manykernels.losses import Cox

# The largest number whose exponential is one.
_MOST = float(np.log(np.finfo(float).max))


class MKLSurvival(BaseMKL):
    """Proportional hazards whose logarithm is learned with many kernels, from times that may be right-censored.

    The hazard of a sample is h(t) exp(f(x)), with f = sum_k f_k, one function for each kernel. Cox's partial likelihood
    says how well f orders the events, whatever the baseline hazard h is. It minimizes

        1/2 N(||f_1||, ..., ||f_m||)^2 + C L(f(x_1), ..., f(x_n)),

    where L, half the deviance, is minus the logarithm of the partial likelihood, less the least value that this can
    have (ties as Breslow treats them), and reports a duality gap that encloses the optimum. The intercept makes the
    mean of f over the training samples 0; the likelihood is the same for any.

    Parameters
    ----------
    kernels : "standard", list of Kernel, KernelBank or Family, default "standard"
    norm : float p in [1, inf] or norm, default 1.0
    C : float, default 1.0
        Weight of the loss.
    combination, solver, normalize, center, missing, check_kernels, tol, max_iter, approximation, memory_budget, device,
    cluster, random_state, verbose
        As for :class:`MKLClassifier`. The loss couples the samples: solvers that look at one at a time ("newton",
        "smo") refuse it, and rows on Dask workers are refused, too.

    Attributes
    ----------
    event_times_ : ndarray of shape (n_event_times,)
        The times at which there were events, in order.
    baseline_cumulative_hazard_ : ndarray of shape (n_event_times,)
        The cumulative hazard of a sample with the risk score 0 at these times, by Breslow's estimate.
    weights_, kernel_names_, kernel_groups_, group_names_, group_weights_, active_, dual_coef_, support_, intercept_,
    objective_, dual_objective_, gap_, gap_is_exact_, converged_, n_iter_, n_inner_solves_, trace_,
    feature_importances_, n_features_in_, feature_names_in_
        As for :class:`MKLClassifier`; there is one problem. The dual coefficients are the martingale residuals of the
        training samples, times C.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKLSurvival
    >>> from manykernels.kernels import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> time, seen = rng.exponential(np.exp(-2 * np.abs(X[:, 0]))), rng.exponential(size=200)
    >>> y = np.array(list(zip(time <= seen, np.minimum(time, seen))), dtype=[("event", bool), ("time", float)])
    >>> model = MKLSurvival([Gaussian(1.0, columns=[j]) for j in range(3)]).fit(X[:100], y[:100])
    >>> bool(model.score(X[100:], y[100:]) > 0.7), int(model.weights_.argmax())
    (True, 0)
    >>> model.predict_survival_function(X[100:]).shape == (100, model.event_times_.size)
    True
    """

    event_times_: np.ndarray
    baseline_cumulative_hazard_: np.ndarray

    # No parameter: the loss is the same for any intercept.
    fit_intercept = True

    def __init__(
        self,
        kernels: Any = "standard",
        *,
        norm: Any = 1.0,
        C: float = 1.0,
        combination: Any = "sum",
        solver: Any = "auto",
        normalize: str | None = "mean_diag",
        center: bool = False,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel weights, the risk scores and the baseline hazard.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : structured array of shape (n_samples,), DataFrame or array of shape (n_samples, 2), or pair of arrays
            Whether the event was seen, and its time, or that of censoring. The boolean field or column is the event,
            whatever its place; without one, the first column is, as 0 or 1.
        sample_weight : array of shape (n_samples,), optional
            Multiplies C; a weight of 2 counts like two copies of a sample.

        Returns
        -------
        self
        """
        return super().fit(X, y, sample_weight)

    def _client_of_rows(self, given: Any) -> Any:
        if stay_on_workers(self.approximation, self.cluster, given):
            raise ValueError(
                "MKLSurvival needs the rows in this process, since a risk set is of all of them: pass X and y "
                "computed, and cluster=None."
            )
        return None

    def _read(self, given: Any, y: Any, sample_weight: Any, client: Any = None) -> Training | RowTraining:
        if y is not None:
            given, y, sample_weight = in_memory(self.memory_budget, given, y, sample_weight)
            self.event_times_, y = read_survival(y).ranks()
        return super()._read(given, y, sample_weight)

    def _targets(self, training: Any) -> Targets:
        if not np.any(training.target > 0.0):
            raise ValueError("y holds no event of a sample with a weight: censored times alone say nothing of risks.")
        return Targets(self.C)

    def _loss(self) -> Cox:
        return Cox()

    def _set_learned(self, bank: Bank, results: list[Result], training: Any, offset: float) -> bool:
        machine = results[0].machine
        rank, weight = training.target, training.samples.weight
        hazard = _log_cumulative_hazard(rank, machine.decision[0] + machine.intercept[0], weight)
        kept = np.unique(rank[rank > 0.0]).astype(np.int64) - 1  # times whose events have no weight are none
        self.event_times_ = self.event_times_[kept]
        self.baseline_cumulative_hazard_ = np.exp(np.minimum(hazard[kept], _MOST))
        return super()._set_learned(bank, results, training, offset)

    def predict(self, X: Any) -> np.ndarray:
        """Return the risk score f of each sample, shape (n_samples,): the higher, the earlier its event is expected.

        It is the logarithm of the sample's hazard beside that of a sample with the score 0.
        """
        return self._decisions(X)[:, 0]

    def predict_cumulative_hazard_function(self, X: Any) -> np.ndarray:
        """Return the cumulative hazard of each sample at ``event_times_``, shape (n_samples, n_event_times).

        It is ``baseline_cumulative_hazard_`` times exp(f). Between two of these times it stays as it was at the first;
        before all of them it is 0.
        """
        scores = self.predict(X)
        return np.exp(np.minimum(np.log(self.baseline_cumulative_hazard_) + scores[:, None], _MOST))

    def predict_survival_function(self, X: Any) -> np.ndarray:
        """Return the probability to be without event after each of ``event_times_``, shape (n_samples, n_event_times).

        It is exp(-H) of the cumulative hazard H.
        """
        return np.exp(-self.predict_cumulative_hazard_function(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return Harrell's concordance index of the risk scores.

        Of all pairs of which it is known who had the event first, it is the share in which that sample has the higher
        score. Scores that differ by no more than 1e-8 are the same, and count 1/2.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : as for :meth:`fit`
        sample_weight : array of shape (n_samples,), optional
            A pair counts by the product of its weights.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        survival, scores = read_survival(y), self.predict(X)
        if survival.time.size != scores.size:
            raise ValueError(f"y holds {survival.time.size} samples, but X holds {scores.size}.")
        return concordance_index(survival, scores, read_weight(sample_weight, scores))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _log_cumulative_hazard(rank: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the logarithm of Breslow's cumulative hazard at each event time: the sum of events over risks so far."""
    n_times = int(rank.max())
    events = np.bincount(np.maximum(rank, 0.0).astype(np.int64), weight, n_times + 1)[1:]
    last = np.abs(rank).astype(np.int64)
    risks = np.full(n_times + 1, -np.inf)  # those who leave between an event and the next
    np.logaddexp.at(risks, last, np.log(weight) + scores)
    risks = np.logaddexp.accumulate(risks[::-1])[::-1][1:]
    with np.errstate(divide="ignore"):
        return np.logaddexp.accumulate(np.log(events) - risks)
