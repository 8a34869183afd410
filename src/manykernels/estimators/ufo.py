"""Estimators that learn one sample at a time: UFO-MKL."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from manykernels.compute.memory import budget_bytes, human_bytes
from manykernels.core.notices import shown, warn
from manykernels.core.progress import listen
from manykernels.core.results import Certificate, Machine, Step
from manykernels.core.samples import Samples, distinct_samples
from manykernels.estimators.calibration import logistic_probabilities
from manykernels.estimators.classifier import class_weights, one_vs_rest
from manykernels.estimators.kernel_estimator import (
    KernelEstimator,
    check_choice,
    check_number,
    print_step,
    sums_by_group,
)
from manykernels.estimators.predictor import Predictor
from manykernels.kernels.bound import BoundBank, learned_kernel
from manykernels.kernels.features import FeatureMaps, have_features
from manykernels.kernels.missing import check_views
from manykernels.kernels.pairs import PairValues, sampled
from manykernels.losses import (
    EpsilonInsensitive,
    Hinge,
    JointLoss,
    Logistic,
    Loss,
    MulticlassHinge,
    OneVsRest,
    Squared,
    StructuredHinge,
)
from manykernels.norms.elastic import ElasticNorm
from manykernels.outer.ufo import SAMPLINGS, FeatureTheta, SampleTheta, Start, Theta, UfoResult, make_rule, norm_of, ufo
from manykernels.outer.ufo_stream import FeatureStream, SampleStream, Stream, follow_on

STEPS, FEATURES = ("auto", "exact", "gradient"), ("auto", "explicit", "kernel")
_NAMED: dict[str, Callable[[], Loss]] = {"hinge": Hinge, "logistic": Logistic, "squared": Squared}
LOSSES = (*_NAMED, "multiclass_hinge")
REGRESSION_LOSSES = ("squared", "epsilon_insensitive")
# Part of the memory budget that blocks in flight and the allocator take.
_HEADROOM = 0.15
_LONG_TRACE = 1000
_FROZEN = (
    "kernels",
    "alpha",
    "C",
    "loss",
    "epsilon",
    "p",
    "average",
    "features",
    "normalize",
    "missing",
    "fit_intercept",
    "expected_samples",
)


@dataclass(frozen=True)
class Task:
    """What there is to learn: distinct samples, with targets as the loss takes them and weights C of their losses."""

    table: Any
    X: Any
    samples: Samples
    loss: JointLoss
    y: Any
    C: np.ndarray

    def mark(self) -> tuple:
        """Return what tells one training set from another."""
        parts = [self.X.data, self.X.indices, self.X.indptr] if sp.issparse(self.X) else [self.X]
        parts.append(self.y if isinstance(self.y, np.ndarray) else np.frombuffer(repr(self.y).encode(), np.uint8))
        return self.X.shape, self.samples.rows.size, *(zlib.crc32(np.ascontiguousarray(part)) for part in parts)


@dataclass
class Bench:
    """What one fit leaves for the next on the same data: bound kernels, their values, and where to start."""

    bank: BoundBank | None = None
    bias: np.ndarray | None = None
    source: PairValues | FeatureMaps | None = None
    start: Start | None = None


class BaseUFO(KernelEstimator):
    """Base class; see UFOMKLClassifier and UFOMKLRegressor."""

    def _check_parameters(self) -> None:
        for name, low in (("alpha", -np.finfo(float).tiny), ("C", 0.0), ("tol", -np.finfo(float).tiny)):
            check_number(name, getattr(self, name), low=low)
        for name, choices in (("step", STEPS), ("sampling", SAMPLINGS), ("features", FEATURES)):
            check_choice(name, getattr(self, name), choices)
        check_choice("missing", self.missing, ("error", "ignore"))
        ElasticNorm(p=self.p)  # says what is wrong with p
        if isinstance(self.epochs, bool) or not isinstance(self.epochs, (int, np.integer)) or self.epochs < 1:
            raise ValueError(f"epochs must be a whole number of at least 1, got {self.epochs!r}.")
        if self.expected_samples is not None:
            check_number("expected_samples", self.expected_samples, low=0.0)
        if self.step == "exact" and self.average:
            raise ValueError("average=True is for step='gradient': exact steps need no average.")

    # -- fit ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the kernel weights and the predictor.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,), or whatever a loss of your own takes, one for each sample
        sample_weight : array of shape (n_samples,), optional
            Multiplies C; a weight of 2 counts like two copies of a sample.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            self._check_parameters()
            task = self._prepare(X, y, sample_weight)
            self._learn(task, self._warm_bench(task))
        return self

    def _prepare(self, given: Any, y: Any, sample_weight: Any) -> Task:
        raise NotImplementedError

    def _learn(self, task: Task, bench: Bench) -> None:
        """Walk, and set the attributes."""
        samples, theta = task.samples, self._theta(task, bench)
        assert bench.bank is not None
        random = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        with listen(print_step) if self.verbose else nullcontext():
            result = ufo(theta, epochs=self.epochs, sampling=self.sampling, tol=self.tol, random_state=random)
        bench.start = theta.state()
        self._last = task.mark(), self._frozen()["loss"], bench.start
        self._stream = self._following(bench.bank, theta, result)
        self.n_iter_, self.trace_, self.n_seen_ = len(result.trace), result.trace, samples.owner.size
        weights = theta.norm.weights(result.norms) if self.average else result.coef
        total = self._set_kernels(bench.bank, weights, result.norms, result.certificate)
        self._predictors = [self._predictor(bench.bank, theta, result, samples, total)]
        self.intercept_ = self._predictors[0].intercept
        dual = samples.spread(theta.dual_point().T)
        self.support_ = np.flatnonzero(np.any(dual != 0, axis=0))
        self.dual_coef_ = dual[:, self.support_]
        if self.tol > 0 and self.gap_ > self.tol and not result.interrupted:
            warn(
                f"{type(self).__name__} stopped after {self.n_iter_} epochs at the relative duality gap "
                f"{self.gap_:.2e}, above tol={self.tol:.2e}; raise epochs or tol.",
                ConvergenceWarning,
            )

    def _warm_bench(self, task: Task) -> Bench:
        """Return a new bench; with a warm start, one that goes on where the last fit on the same data ended."""
        if not (self.warm_start and hasattr(self, "_last")):
            return Bench()
        mark, loss, start = self._last
        if task.mark() != mark:
            raise ValueError("warm_start=True goes on with the same samples; for new ones there is partial_fit.")
        # The steps of another loss need not be feasible for this one.
        return Bench(start=start if loss == self._frozen()["loss"] else None)

    def _frozen(self) -> dict[str, Any]:
        """Return the parameters that a walk cannot change on its way."""
        own = {name: getattr(self, name) for name in _FROZEN if hasattr(self, name)}
        return {**own, "loss": (own["loss"], own.pop("epsilon", None))}

    def _bound(self, table: Any, X: Any, weight: np.ndarray) -> BoundBank:
        bank = self._bank(table).written_out()
        bound = bank.bind(X, source=table, normalize=self.normalize, sample_weight=weight, storage="recomputed")
        assert isinstance(bound, BoundBank)
        # A kernel is augmented by a constant of its own size, which for kernels of mean diagonal 1 is 1.
        level = bound.diagonal() @ (weight / weight.sum()) if self.fit_intercept else np.zeros(bound.n_kernels)
        self._bias = np.sqrt(level)
        return bound

    def _theta(self, task: Task, bench: Bench) -> Theta:
        if bench.bank is None:
            bench.bank = self._bound(task.table, task.X[task.samples.rows], task.samples.weight)
            bench.bias = self._bias
        assert bench.bias is not None
        self._bias = bench.bias
        bank, loss, y, C = bench.bank, task.loss, task.y, task.C
        own = isinstance(getattr(self, "loss", None), JointLoss)
        if self.step == "exact" and own:
            raise ValueError("step='exact' needs a loss with a name, not one of your own.")
        exact = not own and self.step != "gradient" and not self.average
        rule = make_rule(loss, self.alpha, float(C.sum()), bank.n_kernels, self.p, exact)
        if bench.source is None:
            bench.source = self._source(bank, loss.n_outputs)
        if isinstance(bench.source, FeatureMaps):
            kept = int((1 - _HEADROOM) * budget_bytes(self.memory_budget)) // 16
            return FeatureTheta(bench.source, bank.X, loss, y, C, rule, self.average, bench.start, kept=kept)
        return SampleTheta(bench.source, loss, y, C, rule, self.average, bench.start)

    def _source(self, bank: BoundBank, n_outputs: int) -> PairValues | FeatureMaps:
        """Return the kernels as the walk reads them: as feature maps where that is the shorter way, or as values."""
        maps = self._maps(bank)
        if maps is not None and self.features == "auto":
            n_features = int(maps.transform(bank.X[:1])[1][-1])
            maps = maps if n_features <= bank.n_kernels * bank.n_samples else None
        if maps is not None:
            return maps
        pairs = PairValues(bank, self._bias, self._value_bytes(bank, n_outputs))
        if not pairs.is_held:
            warn(
                f"The values of {bank.n_kernels} kernels on pairs of {bank.n_samples} samples do not fit into the "
                "memory budget and are computed anew twice an epoch: raise memory_budget, or take kernels with feature "
                "maps."
            )
        return pairs

    def _maps(self, bank: BoundBank) -> FeatureMaps | None:
        """Return the feature maps, if all kernels have one and they are not ruled out."""
        if self.features == "kernel":
            return None
        if have_features(bank.bound, bank.X):
            return FeatureMaps(bank.bound, bank.scale, bank.is_cosine, self._bias)
        if self.features == "explicit":
            lacking = next(entry for entry in bank.bound if not have_features([entry], bank.X))
            raise ValueError(f"features='explicit' needs kernels with a finite feature map; {lacking.name!r} has none.")
        return None

    def _value_bytes(self, bank: BoundBank, n_outputs: int) -> int:
        """Return the bytes for kernel values, beside the scores."""
        budget = budget_bytes(self.memory_budget)
        scores = 8 * bank.n_samples * n_outputs * bank.n_kernels * (3 if self.average else 1)
        left = int((1 - _HEADROOM) * budget) - scores
        if left <= 0:
            raise MemoryError(
                f"memory_budget is {human_bytes(budget)}, but the scores of {bank.n_samples} samples with "
                f"{bank.n_kernels} kernels need {human_bytes(scores / (1 - _HEADROOM))}."
            )
        return left

    # -- streams --------------------------------------------------------------------------------------------

    def _following(self, bank: BoundBank, theta: Theta, result: UfoResult) -> Stream:
        """Return the stream that partial_fit goes on with after a fit."""
        unit = float(theta.C.mean()) / self.C
        stream = self._new_stream(bank, theta.loss, theta.n_samples, unit, isinstance(theta, FeatureTheta))
        factor = follow_on(stream, theta, result)
        if isinstance(stream, FeatureStream) and isinstance(theta, FeatureTheta):
            stream.theta.v.theta[:] = factor * theta.v.theta
            stream.theta.forget_average()
        elif isinstance(stream, SampleStream):
            kept = np.flatnonzero(np.any(theta.beta != 0, axis=1))
            stream.X, stream.beta = bank.X[kept], factor * theta.beta[kept]
        return stream

    def _new_stream(self, bank: BoundBank, loss: JointLoss, n_samples: int, unit: float, explicit: bool) -> Stream:
        """Return a stream for samples whose mean weight is ``unit``."""
        n_expected = n_samples if self.expected_samples is None else float(self.expected_samples)
        self._stream_is = self._frozen(), unit
        total_C = self.C * unit * n_expected
        rule = make_rule(loss, self.alpha, total_C, bank.n_kernels, self.p)
        light = sampled(bank, bank.X[:1])
        if explicit:
            maps = FeatureMaps(bank.bound, bank.scale, bank.is_cosine, self._bias)
            return FeatureStream(maps, light.X, loss, rule, self.average)
        return SampleStream(light, loss, rule, self._bias, self._value_bytes(bank, loss.n_outputs))

    def _begin_batch(self) -> bool:
        """Return whether this is the first batch; raise if a stream cannot go on with these parameters."""
        if not hasattr(self, "_predictors"):
            return True
        if not hasattr(self, "_stream"):
            raise ValueError("A model that was loaded from a file can predict, but not go on learning.")
        now, then = self._frozen(), self._stream_is[0]
        changed = [name for name in now if now[name] is not then[name] and now[name] != then[name]]
        if changed:
            raise ValueError(f"{changed[0]} has changed since the stream began: clone the estimator to begin anew.")
        return False

    def _learn_batch(self, table: Any, X: Any, loss: JointLoss, y: Any, weight: np.ndarray) -> None:
        """Learn from one batch of a stream, and set the attributes."""
        started = time.perf_counter()
        used = np.flatnonzero(weight > 0)
        if used.size == 0:
            raise ValueError("sample_weight is zero for every sample: there is nothing to learn from.")
        if used.size < weight.size:
            X, weight = X[used], weight[used]
            y = y[used] if isinstance(y, np.ndarray) else [y[i] for i in used]
        if not hasattr(self, "_stream"):
            bank = self._bound(table, X, weight)
            explicit = self._maps(bank) is not None
            self._stream = self._new_stream(bank, loss, weight.size, float(weight.mean()), explicit)
            self._light_bank, self.trace_, self.n_seen_ = sampled(bank, X[:1]), [], 0
        check_views(X, [(entry.name, entry.positions) for entry in self._light_bank.bound])
        if self.average and isinstance(self._stream, SampleStream):
            raise ValueError("average=True with partial_fit needs kernels with finite feature maps.")
        stream = self._stream.copied()  # an error leaves the old one
        stream.learn(X, y, weight / self._stream_is[1])
        self._stream = stream
        norms, certificate = stream.norms(), stream.certificate
        weights = norm_of(stream.rule).weights(norms) if self.average else stream.coef()
        total = self._set_kernels(self._light_bank, weights, norms, certificate)
        self._predictors = [self._stream_predictor(stream, total)]
        for name in ("support_", "dual_coef_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self.intercept_ = self._predictors[0].intercept
        self.n_seen_ += weight.size
        seconds = time.perf_counter() - started + (self.trace_[-1].seconds if self.trace_ else 0.0)
        number = self.trace_[-1].iteration + 1 if self.trace_ else 1
        step = Step(number, seconds, certificate.primal, certificate.gap, self.active_.size, float(self.tol))
        # Of a long stream every other step is forgotten, again and again.
        self.trace_ = [*(self.trace_ if len(self.trace_) < _LONG_TRACE else self.trace_[::2]), step]
        self.n_iter_ = number

    def _stream_predictor(self, stream: Stream, total: float) -> Predictor:
        if isinstance(stream, FeatureStream):
            return self._feature_predictor(self._light_bank, stream.vectors(), stream.theta.v.first)
        assert isinstance(stream, SampleStream)
        rows = np.arange(stream.X.shape[0])
        return self._sample_predictor(sampled(self._light_bank, stream.X), total * stream.beta.T, rows, rows.size)

    # -- attributes -----------------------------------------------------------------------------------------

    def _set_kernels(self, bank: BoundBank, weights: np.ndarray, norms: np.ndarray, certificate: Certificate) -> float:
        """Set all that is known of the kernels; returns the sum by which the weights were divided."""
        total = float(weights.sum())
        self.weights_ = weights / total if total > 0 else weights
        self.kernel_norms_ = norms
        self.kernel_names_, self.kernel_groups_ = bank.names, bank.groups
        self.group_names_, group_weights = sums_by_group(bank.groups, self.weights_[None])
        self.group_weights_ = group_weights[0]
        self.active_ = np.flatnonzero(self.weights_)
        self.objective_, self.dual_objective_, self.gap_ = certificate.primal, certificate.dual, certificate.gap
        importances = bank.importances(self.weights_, self.n_features_in_)
        self.feature_importances_ = importances / (importances.sum() or 1.0)
        self._light_bank = sampled(bank, bank.X[:1])
        self.extra_: dict = {}
        return total

    def _predictor(self, bank: BoundBank, theta: Theta, result: UfoResult, samples: Samples, total: float) -> Predictor:
        if isinstance(theta, FeatureTheta):
            spread = np.repeat(result.coef, np.diff(theta.v.first))
            vectors = theta.v.theta * spread if result.components is None else result.components
            return self._feature_predictor(bank, vectors, theta.v.first)
        if result.components is not None:
            return self._component_predictor(bank, result.components, samples.rows, samples.owner.size)
        return self._sample_predictor(bank, total * theta.beta.T, samples.rows, samples.owner.size)

    def _sample_predictor(self, bank: BoundBank, beta: np.ndarray, rows: np.ndarray, n_train: int) -> Predictor:
        """Return the predictor with the coefficients beta (n_outputs, n) of the learned kernel."""
        constant = float(self.weights_ @ self._bias**2)
        machine = Machine(beta, np.zeros_like(beta), constant * beta.sum(axis=1) + self._offset)
        return Predictor.from_machine(bank, self.weights_, machine, rows, n_train)

    def _feature_predictor(self, bank: BoundBank, vectors: np.ndarray, first: np.ndarray) -> Predictor:
        """Return the predictor on raw features: scales go to the vectors, constants to the intercept."""
        intercept, parts = np.full(vectors.shape[0], float(self._offset)), []
        for k in self.active_:
            own = vectors[:, first[k] : first[k + 1]]
            if np.any(self._bias):
                intercept, own = intercept + self._bias[k] * own[:, -1], own[:, :-1]
            parts.append(np.sqrt(bank.scale[k]) * own)
        nobody, nothing = np.zeros(0, np.int64), np.zeros((vectors.shape[0], 0))
        kernel = learned_kernel(bank, self.weights_, nobody)
        return Predictor(kernel, nothing, intercept, self.active_, nobody, 0, np.hstack([nothing, *parts]))

    def _component_predictor(
        self, bank: BoundBank, components: np.ndarray, rows: np.ndarray, n_train: int
    ) -> Predictor:
        """Return the predictor whose kernels have coefficients of their own, given as (n, n_outputs, n_kernels)."""
        used = components[:, :, self.active_]
        keep = np.flatnonzero(np.any(used != 0, axis=(1, 2)))
        coef = used[keep].transpose(2, 1, 0) / self.weights_[self.active_, None, None]
        intercept = used.sum(axis=0) @ self._bias[self.active_] ** 2 + self._offset
        kernel = learned_kernel(bank, self.weights_, keep)
        return Predictor(kernel, coef, intercept, self.active_, rows[keep], n_train)

    def __getstate__(self) -> dict:
        """Leave out what only a warm start needs: it is as large as the training data."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_last"}


def _every_sample(weight: np.ndarray) -> Samples:
    """Return all samples as distinct ones: targets of any kind cannot be compared."""
    rows = np.flatnonzero(weight > 0)
    owner = np.full(weight.size, -1)
    owner[rows] = np.arange(rows.size)
    return Samples(rows, owner, weight[rows], (weight > 0).astype(float))


def _gives_probabilities(estimator: UFOMKLClassifier) -> bool:
    if estimator.loss == "logistic":
        return True
    raise AttributeError("predict_proba needs loss='logistic'.")


class UFOMKLClassifier(ClassifierMixin, BaseUFO):
    """Classifier that learns kernel weights one sample at a time, with exact zeros, and from streams.

    It minimizes, over one function f_k for each of m kernels, with a_k = ||f_k|| and p = 2 ln m / (2 ln m - 1),

        1/2 ||a||_p^2 + alpha C n ||a||_1 + C sum_i loss(y_i, sum_k f_k(x_i))

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
    loss : {"hinge", "logistic", "squared", "multiclass_hinge"} or JointLoss, default "hinge"
        The first three learn several classes one against the rest, with kernel weights that they share;
        "multiclass_hinge" learns them jointly. A loss of your own may predict structured labels, see
        :class:`manykernels.losses.StructuredHinge`.
    epochs : int, default 10
        Passes over the samples.
    step : {"auto", "exact", "gradient"}, default "auto"
        "gradient" is the paper's: a subgradient of one sample's loss, and a gap that falls like 1 / epochs. "exact"
        goes to the best coefficient of that sample, at about the same cost, and the gap falls geometrically in the end,
        for a large C after many epochs. "auto" is "exact" where there is no average and the loss has a name.
        ``partial_fit`` always takes gradient steps.
    p : float in (1, 2] or None, default None
        Another power of the norm.
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
        Above 0, prints each epoch, and Ctrl-C keeps the model so far.

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
        Not for a loss of your own.
    objective_, dual_objective_, gap_ : float
        The optimum lies between the two objectives; ``gap_`` is their relative difference. After ``partial_fit`` they
        are of the stream: the mean objective along the way, and a bound below that of any fixed predictor.
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
    >>> model = UFOMKLClassifier(alpha=0.02, loss="multiclass_hinge", epochs=50, random_state=0).fit(X, y)
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
        epochs: int = 10,
        step: str = "auto",
        p: float | None = None,
        sampling: str = "shuffle",
        average: bool = False,
        features: str = "auto",
        normalize: str | None = "mean_diag",
        missing: str = "error",
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 0.0,
        warm_start: bool = False,
        expected_samples: float | None = None,
        memory_budget: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.alpha = alpha
        self.C = C
        self.loss = loss
        self.epochs = epochs
        self.step = step
        self.p = p
        self.sampling = sampling
        self.average = average
        self.features = features
        self.normalize = normalize
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.warm_start = warm_start
        self.expected_samples = expected_samples
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.verbose = verbose

    _offset = 0.0

    def _prepare(self, given: Any, y: Any, sample_weight: Any) -> Task:
        if isinstance(self.loss, JointLoss):
            X = self._checked_with(given, y, reset=True)
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            samples = _every_sample(weight)
            every = list(y)  # by place, whatever the index of a Series says
            labels = [every[i] for i in samples.rows]
            return Task(self._table(given, X), X, samples, self.loss, labels, self.C * samples.weight)
        X, y = validate_data(self, given, y, **self._data_rules())
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        samples = distinct_samples(X, np.unique(y, return_inverse=True)[1], weight)
        self.classes_, codes = np.unique(y[samples.rows], return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(f"y must hold at least 2 classes, got 1 class: {shown(self.classes_[0])}.")
        C = self.C * samples.weight * class_weights(self.class_weight, self.classes_, codes, samples.weight)[codes]
        loss, targets = self._loss_and_targets(codes)
        return Task(self._table(given, X), X, samples, loss, targets, C)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> UFOMKLClassifier:
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
        if isinstance(self.loss, JointLoss):
            X = self._checked_with(given, y, reset=first)
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            self._learn_batch(self._table(given, X), X, self.loss, list(y), weight)
            return
        X, y = validate_data(self, given, y, reset=first, **self._data_rules())
        check_classification_targets(y)
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
        codes = np.searchsorted(self.classes_, y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all samples at once: give numbers for partial_fit.")
        factors = {} if self.class_weight is None else self.class_weight
        if not isinstance(factors, dict) or set(factors) - set(self.classes_.tolist()):
            raise ValueError(f"class_weight must be a dict of weights of the classes, got {self.class_weight!r}.")
        weight = weight * np.array([factors.get(label, 1.0) for label in self.classes_.tolist()])[codes]
        loss, targets = self._loss_and_targets(codes)
        self._learn_batch(self._table(given, X), X, loss, targets, weight)

    def _checked_with(self, given: Any, y: Any, reset: bool) -> Any:
        """Return checked samples; their targets may be anything, but one for each."""
        X = validate_data(self, given, reset=reset, **self._data_rules())
        if not hasattr(y, "__len__") or len(y) != X.shape[0]:
            many = len(y) if hasattr(y, "__len__") else "no"
            raise ValueError(f"y has {many} targets, but X has {X.shape[0]} samples.")
        return X

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.loss, (OneVsRest, MulticlassHinge)):
            raise ValueError(
                f"loss must be the name of {type(self.loss).__name__}, one of {LOSSES}, or one of your own."
            )
        if not isinstance(self.loss, JointLoss):
            check_choice("loss", self.loss, LOSSES)

    def _loss_and_targets(self, codes: np.ndarray) -> tuple[JointLoss, np.ndarray]:
        if self.loss == "multiclass_hinge":
            return MulticlassHinge(self.classes_.size), codes[:, None].astype(np.float64)
        targets = np.ascontiguousarray(one_vs_rest(codes, self.classes_.size).T)
        return OneVsRest(_NAMED[self.loss](), targets.shape[1]), targets

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the predictor's values.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Or, for precomputed kernels, an array of shape (n_kernels, n_samples, n_training_samples).

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
            For a loss of your own, (n_samples, n_outputs).
        """
        decisions = self._decisions(X)
        if isinstance(self.loss, JointLoss) or self.classes_.size > 2:
            return decisions
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions[:, 1] - decisions[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each sample, shape (n_samples,)."""
        decisions = self.decision_function(X)
        if isinstance(self.loss, StructuredHinge):
            return np.array([self.loss.best(z) for z in decisions])
        if isinstance(self.loss, JointLoss):
            raise TypeError(f"{self.loss!r} says no label for given scores: use decision_function.")
        if decisions.ndim == 1:
            return self.classes_[(decisions > 0).astype(int)]
        return self.classes_[decisions.argmax(axis=1)]

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, shape (n_samples, n_classes), by the logistic loss."""
        check_is_fitted(self)
        return logistic_probabilities(self._decisions(X))


class UFOMKLRegressor(RegressorMixin, BaseUFO):
    """Regressor that learns kernel weights one sample at a time, with exact zeros, and from streams.

    The problem and its solution are those of :class:`UFOMKLClassifier`, with another loss.

    Parameters
    ----------
    kernels : "standard", list of Kernel, or KernelBank, default "standard"
    alpha : float >= 0, default 0.0
    C : float, default 1.0
    loss : {"squared", "epsilon_insensitive"}, default "squared"
        (y - z)^2 / 2, or max(0, |y - z| - epsilon).
    epsilon : float, default 0.1
    epochs, step, p, sampling, average, features, normalize, missing, fit_intercept, tol, warm_start, expected_samples,
    memory_budget, random_state, verbose
        As for :class:`UFOMKLClassifier`.

    Attributes
    ----------
    weights_, kernel_norms_, kernel_names_, kernel_groups_, group_names_, group_weights_, active_, objective_,
    dual_objective_, gap_, trace_, n_iter_, intercept_, support_, dual_coef_, n_seen_, feature_importances_,
    n_features_in_, feature_names_in_
        As for :class:`UFOMKLClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import UFOMKLRegressor
    >>> x = np.linspace(-3, 3, 100)[:, None]
    >>> model = UFOMKLRegressor(C=100.0, epochs=50, random_state=0).fit(x, np.sin(2 * x[:, 0]))
    >>> bool(model.score(x, np.sin(2 * x[:, 0])) > 0.99)
    True
    """

    def __init__(
        self,
        kernels: Any = "standard",
        *,
        alpha: float = 0.0,
        C: float = 1.0,
        loss: str = "squared",
        epsilon: float = 0.1,
        epochs: int = 10,
        step: str = "auto",
        p: float | None = None,
        sampling: str = "shuffle",
        average: bool = False,
        features: str = "auto",
        normalize: str | None = "mean_diag",
        missing: str = "error",
        fit_intercept: bool = True,
        tol: float = 0.0,
        warm_start: bool = False,
        expected_samples: float | None = None,
        memory_budget: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.alpha = alpha
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.epochs = epochs
        self.step = step
        self.p = p
        self.sampling = sampling
        self.average = average
        self.features = features
        self.normalize = normalize
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.warm_start = warm_start
        self.expected_samples = expected_samples
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.verbose = verbose

    def _prepare(self, given: Any, y: Any, sample_weight: Any) -> Task:
        X, y = validate_data(self, given, y, y_numeric=True, **self._data_rules())
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        samples = distinct_samples(X, y.astype(np.float64), weight)
        target = y[samples.rows].astype(np.float64)
        # The bias would pay for the mean of the target: it is taken off before.
        self._offset = float(np.average(target, weights=samples.weight)) if self.fit_intercept else 0.0
        y = (target - self._offset)[:, None]
        return Task(self._table(given, X), X, samples, self._loss(), y, self.C * samples.weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> UFOMKLRegressor:
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
            given = X
            X, y = validate_data(self, X, y, reset=first, y_numeric=True, **self._data_rules())
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            if first:
                counted = weight if np.any(weight > 0) else np.ones_like(weight)
                self._offset = float(np.average(y, weights=counted)) if self.fit_intercept else 0.0
            target = np.asarray(y, dtype=np.float64)[:, None] - self._offset
            self._learn_batch(self._table(given, X), X, self._loss(), target, weight)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("loss", self.loss, REGRESSION_LOSSES)
        check_number("epsilon", self.epsilon, low=-np.finfo(float).tiny)

    def _loss(self) -> JointLoss:
        return OneVsRest(Squared() if self.loss == "squared" else EpsilonInsensitive(self.epsilon), 1)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target of each sample, shape (n_samples,)."""
        return self._decisions(X)[:, 0]
