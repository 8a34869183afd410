"""What the UFO-MKL classifier and regressor share: the walk, attributes, predictors."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from manykernels.banks import Data, Placement, Recipe, bind
from manykernels.banks.definiteness import check_combination
from manykernels.banks.planning import plan_kept_features, plan_stream
from manykernels.compute.combined import DOUBLE, LAST_BIT
from manykernels.core.checks import check_choice, check_number
from manykernels.core.notices import warn
from manykernels.core.protocols import ExplicitBank
from manykernels.core.results import Certificate, Iterate, Step, joined
from manykernels.core.samples import Samples
from manykernels.estimators.attributes import (
    gap_in_words,
    set_certificate,
    set_kernels,
    set_support,
    warn_not_converged,
)
from manykernels.estimators.contributions import ContributionsMixin
from manykernels.estimators.kernel_estimator import KernelEstimator
from manykernels.estimators.parameters import Check, check_parameters
from manykernels.estimators.predictor import Predictor
from manykernels.estimators.running import check_costs, check_finite, needs_digits, print_placement, quiet, watched
from manykernels.estimators.training import Training
from manykernels.kernels.feature_maps import FeatureMaps
from manykernels.losses import JointLoss
from manykernels.losses.codes import CUSTOM
from manykernels.outer.ufo import SAMPLINGS, UfoResult, standing, ufo
from manykernels.outer.ufo_feature_theta import FeatureTheta
from manykernels.outer.ufo_sample_theta import SampleTheta
from manykernels.outer.ufo_theta import Start, Theta, make_rule

STEPS, FEATURES = ("auto", "exact", "gradient"), ("auto", "explicit", "kernel")
# For the rounding of kernel values, a tolerance counts as at least so much: epochs rarely come nearer.
_FINE_TOL = 1e-4
_FROZEN = (
    "kernels",
    "alpha",
    "C",
    "loss",
    "epsilon",
    "norm",
    "average",
    "features",
    "normalize",
    "missing",
    "fit_intercept",
    "expected_samples",
)


def _check_norm(name: str, value: Any) -> None:
    if value is not None:
        check_number(name, value, low=1, closed="right", more=", inf or None")


_CHECKS: dict[str, Check] = {
    "tol": partial(check_number, low=0, closed="left"),
    "step": partial(check_choice, choices=STEPS),
    "sampling": partial(check_choice, choices=SAMPLINGS),
    "features": partial(check_choice, choices=FEATURES),
    "norm": _check_norm,
}


@dataclass(frozen=True)
class Task:
    """What there is to learn: samples, with targets y as the loss takes them and weights C of their losses."""

    training: Training
    loss: JointLoss
    y: Any
    C: np.ndarray

    def mark(self) -> tuple:
        """Return what tells one training set from another."""
        X = self.training.X
        parts = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
        parts.append(self.y if isinstance(self.y, np.ndarray) else np.frombuffer(repr(self.y).encode(), np.uint8))
        return X.shape, self.C.size, *(zlib.crc32(np.ascontiguousarray(part)) for part in parts)


@dataclass
class UfoWarmStart:
    """What one fit leaves for the next on the same data: bound kernels, what makes a theta on them, where to start."""

    bank: Any = None
    bias: np.ndarray | None = None
    source: Callable[..., Theta] | None = None
    start: Start | None = None
    precision: str = "single"


def light(bank: ExplicitBank) -> ExplicitBank:
    """Return the kernels, scaled as they are, on a copy of one sample: a view would keep all others."""
    return bank.on(bank.X[:1].copy())


def _is_compiled(loss: JointLoss) -> bool:
    return loss.compiled().code != CUSTOM


class BaseUFO(ContributionsMixin, KernelEstimator):
    """Base class; see UFOMKLClassifier and UFOMKLRegressor."""

    dual_coef_: np.ndarray
    support_: np.ndarray
    intercept_: np.ndarray
    objective_: float
    dual_objective_: float
    gap_: float
    gap_is_exact_: bool
    kernel_norms_: np.ndarray
    n_seen_: int

    def _check_parameters(self) -> None:
        check_parameters(self, _CHECKS)
        if self.step == "exact" and self.average:
            raise ValueError("average=True is for step='gradient': exact steps need no average.")
        is_compiled = _is_compiled(self._loss())
        if self.step == "exact" and not is_compiled:
            raise ValueError(f"step='exact' needs a loss of the library, not one of your own, got {self.loss!r}.")

    def _loss(self) -> JointLoss:
        raise NotImplementedError

    @property
    def _has_own_loss(self) -> bool:
        """Whether the loss is a joint one of the user's own, which learns labels of any kind."""
        return isinstance(self.loss, JointLoss)

    def _power(self) -> float | None:
        """Return p of the norm of the lengths ||f_k||, given that of the weights; None stands for the default."""
        return None if self.norm is None else 2.0 / (1.0 / self.norm + 1.0)

    # -- fit ------------------------------------------------------------------------------------------------

    def _fit(self, given: Any, y: Any, sample_weight: Any) -> None:
        task = self._checked_task(given, y, sample_weight)
        self._learn(task, self._warm_start_of(task))

    def _checked_task(self, given: Any, y: Any, sample_weight: Any) -> Task:
        """Read the data, set what they tell, and return what there is to learn."""
        task = self._prepare(given, y, sample_weight)
        check_costs(task.C)
        return task

    def _prepare(self, given: Any, y: Any, sample_weight: Any) -> Task:
        raise NotImplementedError

    def _learn(self, task: Task, warm: UfoWarmStart) -> bool:
        """Walk, in double precision where single is too coarse, and set the attributes.

        Returns whether Ctrl-C ended the walk early.
        """
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        theta, result = self._walk(task, warm, seed, int(self.max_iter))
        rounding = 0.0 if result.interrupted else self._rounding(warm.bank, theta, result)
        # Digits far below the gap that was reached are in nobody's way; what rounding may add to it is stated.
        if needs_digits(rounding, max(self.tol, _FINE_TOL, result.certificate.gap)):
            reached, trace = theta.state() if theta.rule.exact else None, result.trace
            del theta, result  # the memory budget holds the kernels once
            theta, result = self._again_in_double(reached, trace, task, warm, seed)
            rounding = self._rounding(warm.bank, theta, result)
        result = replace(result, certificate=result.certificate.rounded(rounding, self.tol))
        warm.start = theta.state()
        self._last = task.mark(), self._frozen()["loss"], warm.start
        self._set_learned(warm.bank, theta, result, task.training.samples)
        return result.interrupted

    def _set_learned(self, bank: ExplicitBank, theta: Theta, result: UfoResult, samples: Samples) -> None:
        """Set the attributes."""
        self.n_iter_, self.trace_, self.n_seen_ = len(result.trace), result.trace, samples.owner.size
        weights = theta.norm.weights(result.norms) if self.average else result.coef
        if not result.interrupted:
            check_combination(bank, weights)
        total = self._set_kernels(bank, weights, result.norms, result.certificate)
        self._predictors = [self._predictor(bank, theta, result, samples, total)]
        self.intercept_ = self._predictors[0].intercept
        set_support(self, samples.spread(theta.dual_point().T))
        if not self.converged_ and (self.tol > 0 or result.interrupted):
            steps = f"epochs (max_iter={self.max_iter})"
            reached, remedy = gap_in_words(self), "raise max_iter or tol"
            warn_not_converged(self, steps, reached, remedy, interrupted=result.interrupted)

    def _walk(self, task: Task, warm: UfoWarmStart, seed: int, max_iter: int) -> tuple[Theta, UfoResult]:
        theta = self._theta(task, warm)
        with watched(self), quiet():
            random = np.random.default_rng(seed)
            result = ufo(theta, max_iter=max_iter, sampling=self.sampling, tol=self.tol, random_state=random)
        check_finite(result.certificate, result.certificate.dual, result.coef)
        return theta, result

    def _again_in_double(
        self, reached: Start | None, trace: list[Step], task: Task, warm: UfoWarmStart, seed: int
    ) -> tuple[Theta, UfoResult]:
        """Return what was reached with kernels in single precision, looked at with those in double precision.

        One pass over the kernels tells what it is worth, and the walk goes on where that is not yet within ``tol``. The
        steps of the paper leave no more than a mean of each sample's steps to start from: they are walked again.
        """
        warm.bank, warm.source, warm.precision = None, None, "double"
        if reached is None:
            return self._walk(task, warm, seed, int(self.max_iter))
        warm.start = reached
        theta = self._theta(task, warm)
        with quiet():
            result = standing(theta)
        check_finite(result.certificate, result.certificate.dual, result.coef)
        certificate, left = result.certificate, int(self.max_iter) - len(trace)
        trace = [*trace[:-1], replace(trace[-1], objective=certificate.primal, gap=certificate.gap)]
        if certificate.gap > self.tol and left > 0:
            del theta, result
            theta, result = self._walk(task, warm, seed, left)
        return theta, replace(result, trace=joined(trace, result.trace))

    def _rounding(self, bank: ExplicitBank, theta: Theta, result: UfoResult) -> float:
        """Return about how far rounded kernel values move the objective, as a part of it.

        Their errors are independent: that of a prediction is about the largest times ||beta||, and that of a quadratic
        form, which the component's length is the root of, the largest times ||beta||^2. What is taken off the targets
        costs the last bits of a prediction. A loss is moved by as much as it differs at that distance.
        """
        unit = max(bank.unit_roundoff, DOUBLE)
        sizes = bank.largest_diagonals(np.arange(bank.n_kernels)) + self._bias**2
        error = unit * float(result.coef @ sizes) * float(np.linalg.norm(result.beta))
        active, outputs = np.flatnonzero(result.norms * result.coef), theta.predictor().outputs
        forms = (result.norms[active] / result.coef[active]) ** 2
        form_errors = unit * sizes[active] * float(np.sum(result.beta**2))
        # A component whose form is lost in rounding is small itself: |f_k(x)| <= ||f_k|| sqrt(k(x, x)).
        longer = 0.5 * form_errors / forms
        reach = float(longer @ (result.norms[active] * np.sqrt(sizes[active])))
        stretched = np.minimum(float(np.max(longer, initial=0.0)) * np.abs(outputs), reach)
        last = np.minimum(LAST_BIT * (np.abs(outputs) + abs(self._offset)), np.abs(outputs))
        with quiet():
            moved = theta.moved_losses(outputs, error + stretched + last)
            moved += theta.moved_dual(unit * sizes * float(np.sum(theta.dual_point() ** 2)))
        return moved / max(abs(result.certificate.primal), 1e-300) if np.isfinite(moved) else np.inf

    def _warm_start_of(self, task: Task) -> UfoWarmStart:
        """Return a start from nothing, or with ``warm_start`` from where the last fit on the same data ended."""
        if not (self.warm_start and hasattr(self, "_last")):
            return UfoWarmStart()
        mark, loss, start = self._last
        if task.mark() != mark:
            raise ValueError("warm_start=True goes on with the same samples; for new ones there is partial_fit.")
        # The steps of another loss need not be feasible for this one.
        return UfoWarmStart(start=start if loss == self._frozen()["loss"] else None)

    def _frozen(self) -> dict[str, Any]:
        """Return the parameters that a walk cannot change on its way."""
        frozen = {name: getattr(self, name) for name in _FROZEN if hasattr(self, name)}
        return {**frozen, "loss": (frozen["loss"], frozen.pop("epsilon", None))}

    def _wish(self) -> Placement:
        """Return where the kernels are to be: samples with all kernels are read, and not kernels with all samples."""
        return Placement(self.memory_budget, storage="recomputed")

    def _bound(
        self, table: Any, X: Any, weight: np.ndarray, precision: str = "single"
    ) -> tuple[ExplicitBank, np.ndarray]:
        """Return the kernels on these samples, and the root of the constant that is added to each."""
        recipe = Recipe(self.normalize, check=self.check_kernels)
        place = replace(self._wish(), precision=precision)
        kernels = self._bank(table, tells=True)
        kernels.require_plain(type(self).__name__)
        bound: ExplicitBank = bind(kernels.written_out(), Data(X, table, weight), recipe, place)
        # A kernel is augmented by a constant of its own size, which for kernels of mean diagonal 1 is 1.
        level = bound.diagonal() @ (weight / weight.sum()) if self.fit_intercept else np.zeros(bound.n_kernels)
        return bound, np.sqrt(level)

    def _theta(self, task: Task, warm: UfoWarmStart) -> Theta:
        if warm.bank is None:
            data = task.training.data()
            warm.bank, warm.bias = self._bound(data.table, data.X, data.weights, warm.precision)
        assert warm.bias is not None
        self._bias = warm.bias
        bank, loss, y, C = warm.bank, task.loss, task.y, task.C
        exact = _is_compiled(loss) and self.step != "gradient" and not self.average
        rule = make_rule(loss, self.alpha, float(C.sum()), bank.n_kernels, self._power(), exact)
        if warm.source is None:
            warm.source = self._source(bank, loss.n_outputs)
        return warm.source(loss, y, C, rule, self.average, warm.start)

    def _source(self, bank: ExplicitBank, n_outputs: int) -> Callable[..., Theta]:
        """Return what makes a theta on the kernels: on feature maps where that is the shorter way, or on values."""
        maps = self._maps(bank)
        if maps is not None and self.features == "auto":
            n_features = int(maps.transform(bank.X[:1])[1][-1])
            maps = maps if n_features <= bank.n_kernels * bank.n_samples else None
        if maps is not None:
            place = plan_kept_features(self._wish())
            print_placement(self, f"features of {bank.n_kernels}", place)
            return partial(FeatureTheta, maps, bank.X, kept=place.budget // 8)
        place = self._place(bank, n_outputs)
        pairs = bank.pairs(self._bias, place.budget)
        words = "in memory" if pairs.is_held else "computed anew twice an epoch"
        print_placement(self, f"values of {bank.n_kernels} on pairs of samples, {words}", place)
        if not pairs.is_held:
            warn(
                f"The values of {bank.n_kernels} kernels on pairs of {bank.n_samples} samples do not fit into the "
                "memory budget and are computed anew twice an epoch: raise memory_budget, or take kernels with feature "
                "maps."
            )
        return partial(SampleTheta, pairs)

    def _maps(self, bank: ExplicitBank) -> FeatureMaps | None:
        """Return the feature maps, if all kernels have one and they are not ruled out."""
        if self.features == "kernel":
            return None
        maps = bank.maps(self._bias)
        if maps is None and self.features == "explicit":
            name = bank.without_map()
            raise ValueError(f"features='explicit' needs kernels with a finite feature map; {name!r} has none.")
        return maps

    def _place(self, bank: ExplicitBank, n_outputs: int) -> Placement:
        """Return how much memory kernel values get, in addition to the scores."""
        shape = n_outputs, bank.n_samples, bank.n_kernels
        return plan_stream(shape, self._wish(), is_averaged=bool(self.average))

    # -- attributes -----------------------------------------------------------------------------------------

    def _set_kernels(
        self, bank: ExplicitBank, weights: np.ndarray, norms: np.ndarray, certificate: Certificate
    ) -> float:
        """Set all that is known of the kernels; returns the sum by which the weights were divided."""
        total = float(weights.sum())
        set_kernels(self, bank, weights / total if total > 0 else weights)
        set_certificate(self, certificate)
        self.kernel_norms_ = norms
        self._light_bank = light(bank)
        return total

    def _predictor(
        self, bank: ExplicitBank, theta: Theta, result: UfoResult, samples: Samples, total: float
    ) -> Predictor:
        features = theta.vectors()
        if features is not None:
            vectors, first = features
            learned = vectors * np.repeat(result.coef, np.diff(first))
            return self._feature_predictor(bank, learned if result.components is None else result.components, first)
        if result.components is not None:
            return self._component_predictor(bank, result.components, samples.rows, samples.owner.size)
        return self._sample_predictor(bank, total * theta.beta.T, samples.rows, samples.owner.size)

    def _sample_predictor(self, bank: ExplicitBank, beta: np.ndarray, rows: np.ndarray, n_train: int) -> Predictor:
        """Return the predictor with the coefficients beta (n_outputs, n) of the learned kernel."""
        constant = float(self.weights_ @ self._bias**2)
        machine = Iterate(beta, np.zeros_like(beta), constant * beta.sum(axis=1) + self._offset)
        return Predictor.of(bank.learned(self.weights_, machine), self.weights_, rows, n_train)

    def _feature_predictor(self, bank: ExplicitBank, vectors: np.ndarray, first: np.ndarray) -> Predictor:
        """Return the predictor on raw features: scales go to the vectors, constants to the intercept."""
        intercept, parts = np.full(vectors.shape[0], float(self._offset)), []
        for k in self.active_:
            vector = vectors[:, first[k] : first[k + 1]]
            if np.any(self._bias):
                intercept, vector = intercept + self._bias[k] * vector[:, -1], vector[:, :-1]
            parts.append(np.sqrt(bank.scale[k]) * vector)
        nobody, nothing = np.zeros(0, np.int64), np.zeros((vectors.shape[0], 0))
        kernel = bank.kernel(self.weights_, nobody)
        return Predictor(kernel, nothing, intercept, self.active_, nobody, 0, np.hstack([nothing, *parts]))

    def _component_predictor(
        self, bank: ExplicitBank, components: np.ndarray, rows: np.ndarray, n_train: int
    ) -> Predictor:
        """Return the predictor whose kernels have coefficients of their own, given as (n, n_outputs, n_kernels)."""
        used = components[:, :, self.active_]
        keep = np.flatnonzero(np.any(used != 0, axis=(1, 2)))
        coef = used[keep].transpose(2, 1, 0) / self.weights_[self.active_, None, None]
        intercept = used.sum(axis=0) @ self._bias[self.active_] ** 2 + self._offset
        kernel = bank.kernel(self.weights_, keep)
        return Predictor(kernel, coef, intercept, self.active_, rows[keep], n_train)

    def __getstate__(self) -> dict:
        """Leave out what only a warm start needs: it is as large as the training data."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_last"}
