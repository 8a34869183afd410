"""The sum of the steps of UFO-MKL, theta, in its two forms, and what a certificate needs of it.

Theta lives in one of two forms. As a sum over samples (:mod:`manykernels.outer.ufo_sample_theta`): the scores of every
sample with every kernel's theta are kept, and each sample hears of the steps since its last visit when it is visited
again, so that kernel values are read once for each step that moved and nothing else is written. As a vector, for
kernels with finite feature maps (:mod:`manykernels.outer.ufo_feature_theta`): memory does not grow with the number of
samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from manykernels.core.results import Certificate
from manykernels.losses import JointLoss
from manykernels.losses.codes import CUSTOM, MULTICLASS_HINGE
from manykernels.norms.elastic import ElasticNorm
from manykernels.outer import ufo_steps as steps
from manykernels.outer.ufo_steps import Rule, Walk


def make_rule(
    loss: JointLoss, alpha: float, total_C: float, n_kernels: int, power: float | None = None, exact: bool = False
) -> Rule:
    """Return what the steps are told; a loss that is not compiled in is asked for its descent in Python.

    Parameters
    ----------
    loss : JointLoss
    alpha : float
    total_C : float
        The sum of the weights C_i of the losses: 1 / lambda.
    n_kernels : int
    power : float, optional
        p of the norm of the lengths; default: that of ElasticNorm.
    exact : bool
        Whether steps go to the maximum of the dual in the coefficients of a sample.
    """
    p = ElasticNorm(power=power).power_for(n_kernels)
    code, epsilon = loss.compiled()
    if exact and code == CUSTOM:
        raise ValueError(f"Exact steps need a loss that is compiled in, not {loss!r}.")
    alpha, lam = (alpha * total_C, 1.0) if exact else (alpha, 1.0 / total_C)
    return Rule(float(alpha), float(lam), p / (p - 1.0), code, float(epsilon), exact)


def norm_of(rule: Rule) -> ElasticNorm:
    """Return the regularizer as the library states it, divided by lambda."""
    return ElasticNorm(rule.alpha / rule.lam, rule.power / (rule.power - 1.0))


@dataclass(frozen=True)
class Start:
    """Where a walk goes on, also one with other C, alpha or kind of steps.

    For each sample the mean of its steps, as if its loss had weight 1, (n, n_outputs), and of their parts of the dual,
    (n,); and the number of epochs that these count as: new steps outweigh few of them sooner.
    """

    steps: np.ndarray
    offsets: np.ndarray
    epochs: float

    def shortened(self) -> Start:
        """Return the same as if it came from a single epoch."""
        return replace(self, epochs=1.0)


class ThetaPredictor(NamedTuple):
    """A predictor, last or averaged: f_k = coef_k theta_k and the norms of the f_k, both (n_kernels,), and its outputs.

    ``components``, of an average, are the f_k themselves; ``outputs`` (n, n_outputs) are for the samples of the walk.
    """

    coef: np.ndarray
    norms: np.ndarray
    components: np.ndarray | None
    outputs: np.ndarray


class Theta(ABC):
    """The walk on one data set, in either form.

    Parameters
    ----------
    loss : JointLoss
    y : sequence of n targets
        For the losses that are compiled in, an array of shape (n, n_targets).
    C : ndarray of shape (n,)
        Weights of the losses.
    rule : Rule
    n_kernels : int
    average : bool
        Whether the mean over the steps is wanted.
    """

    beta: np.ndarray
    visits: np.ndarray

    def __init__(self, loss: JointLoss, y: Any, C: np.ndarray, rule: Rule, n_kernels: int, average: bool) -> None:
        if average and rule.exact:
            raise ValueError("An average is for gradient steps: exact steps need none.")
        if not np.all(C > 0):
            raise ValueError(f"C must be positive for every sample, but the smallest is {C.min():.3g}.")
        self.loss, self.y, self.rule, self.average = loss, y, rule, average
        self.n_samples, self.n_outputs = C.size, loss.n_outputs
        self.C, self.gain = C, C if rule.exact else C * (C.size / C.sum())
        area = np.zeros(n_kernels if average else 0)
        self.walk = Walk(np.zeros(n_kernels), np.zeros(n_kernels), np.zeros(2), np.zeros(4), area)
        self.walk.clock[steps.NOW] = 1.0 if rule.exact else 0.0
        self.offsets = np.zeros(C.size)  # of a loss that is not compiled in
        self._averaged_from = 0.0

    @abstractmethod
    def advance(self, order: np.ndarray) -> None:
        """Take a step at each of the samples."""

    @abstractmethod
    def settle(self) -> None:
        """Bring all samples up to date, and the norms, in which rounding errors add up."""

    @abstractmethod
    def outputs(self) -> np.ndarray:
        """Return the outputs of all samples, (n, n_outputs)."""

    @abstractmethod
    def squared_norms(self, beta: np.ndarray) -> np.ndarray:
        """Return ||sum_i beta_i phi_k(x_i)||^2 for each kernel."""

    @abstractmethod
    def averaged(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the mean of f over the steps as components, with its outputs (n, n_outputs) and norms (m,)."""

    @abstractmethod
    def forget_average(self) -> None:
        """Let the average begin here: the first steps are far away."""
        self.walk.area[:] = 0.0
        self._averaged_from = self.n_steps

    def vectors(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the theta_k side by side, (n_outputs, n_features), and where each begins; None if they are sums."""
        return None

    @property
    def n_steps(self) -> float:
        """Steps taken so far."""
        return float(self.walk.clock[steps.NOW])

    @property
    def n_averaged(self) -> float:
        """Steps that the average is over."""
        return max(self.n_steps - self._averaged_from, 1.0)

    def theta_moved(self) -> None:
        """Note that coef is out of date."""
        self.walk.clock[steps.MADE_FOR] = 0.0

    @property
    def norm(self) -> ElasticNorm:
        """The regularizer as the library states it."""
        return norm_of(self.rule)

    def begin(self, start: Start | None) -> None:
        """Go on from another walk."""
        if start is None:
            return
        self.visits[:], self.offsets[:] = start.epochs, start.epochs * start.offsets
        self.beta[:] = self.gain[:, None] * start.steps * (1.0 if self.rule.exact else start.epochs)
        if not self.rule.exact:
            self.walk.clock[steps.NOW] = self._averaged_from = self.n_samples * start.epochs

    def state(self) -> Start:
        """Return where another walk on the same samples could go on."""
        visits = np.where(self.visits > 0, self.visits, 1.0)
        means = self.beta / self.gain[:, None] / (1.0 if self.rule.exact else visits[:, None])
        return Start(means, self.offsets / visits, float(visits.mean()))

    def first_steps(self) -> np.ndarray:
        """Return minus a subgradient of each loss at the predictor 0, (n, n_outputs)."""
        if self.rule.loss == MULTICLASS_HINGE:
            # All rivals are equally bad, and any mean over them is a subgradient; this one favors none.
            out = np.full((self.n_samples, self.n_outputs), -1.0 / (self.n_outputs - 1))
            out[np.arange(self.n_samples), self.targets()] = 1.0
            return out
        return np.array([self.loss.descent(y, np.zeros(self.n_outputs))[1] for y in self.y])

    def targets(self) -> Any:
        """Return the targets as the loss takes them: a class number is one number per sample."""
        return self.y[:, 0].astype(np.int64) if self.rule.loss == MULTICLASS_HINGE else self.y

    def predictor(self) -> ThetaPredictor:
        """Return the predictor as it stands, last or averaged."""
        steps.refresh(self.rule, self.walk)
        self.theta_moved()
        coef = self.walk.coef.copy()
        if not self.average:
            return ThetaPredictor(coef, coef * np.sqrt(np.maximum(self.walk.squared, 0.0)), None, self.outputs())
        components, outputs, norms = self.averaged()
        return ThetaPredictor(coef, norms, components, outputs)

    def dual_point(self) -> np.ndarray:
        """Return coefficients that are feasible for the dual, (n, n_outputs): for each sample the mean of its steps.

        However often a sample was visited, that is feasible.
        """
        return self.beta * self._dual_scale()[:, None]

    def _dual_scale(self) -> np.ndarray:
        if self.rule.exact:
            return np.ones(self.n_samples)
        return self.C.sum() / (self.n_samples * np.where(self.visits > 0, self.visits, 1.0))

    def certificate(self, norms: np.ndarray, outputs: np.ndarray) -> Certificate:
        """Return the primal value of a predictor with these norms and outputs, and the dual value at theta."""
        visits = np.where(self.visits > 0, self.visits, 1.0)
        y, squared = self.targets(), self._dual_squares()
        conjugates = self.loss.conjugates(y, self.dual_point(), self.C)
        gained = self.C * self.offsets / visits if conjugates is None else -conjugates
        return Certificate(
            primal=self.norm.value(norms) + float(self.C @ self.loss.values(y, outputs)),
            dual=float(gained.sum()) - self.norm.conjugate(np.sqrt(np.maximum(squared, 0.0))),
        )

    def _dual_squares(self) -> np.ndarray:
        """Return ||theta_k||^2 at the dual point."""
        scale = self._dual_scale()
        return self.walk.squared * scale[0] ** 2 if np.all(scale == scale[0]) else self.squared_norms(self.dual_point())

    def moved_dual(self, errors: np.ndarray) -> float:
        """Return how far errors of the ||theta_k||^2 move the dual value."""
        squared = np.maximum(self._dual_squares(), 0.0)
        return self.norm.conjugate(np.sqrt(squared + errors)) - self.norm.conjugate(np.sqrt(squared))

    def moved_losses(self, outputs: np.ndarray, errors: np.ndarray) -> float:
        """Return about how far errors of the outputs move the losses: of one output each way, of several one by one."""
        y, ends = self.targets(), []
        values = self.loss.values(y, outputs)
        for k in range(self.n_outputs):
            step = np.zeros_like(outputs)
            step[:, k] = errors[:, k]
            ends += [self.loss.values(y, outputs + step), self.loss.values(y, outputs - step)]
        return float(self.C @ (np.max(ends, axis=0) - values))

    def stream_certificate(self) -> Certificate:
        """Return the mean objective along the way, and the dual value, for samples that came once and are gone.

        No predictor that is chosen afterwards has an objective on these samples below the dual value.
        """
        loss, offset, regularizer = self.walk.totals[:3] / self.n_steps
        slopes = np.sqrt(np.maximum(self.walk.squared, 0.0)) / (self.n_steps * self.rule.lam)
        return Certificate(
            primal=(loss + regularizer) / self.rule.lam,
            dual=offset / self.rule.lam - self.norm.conjugate(slopes),
        )

    def _ask(self, i: int, scores: np.ndarray, squares: np.ndarray) -> np.ndarray | None:
        """Take a step with a loss that is not compiled in; return it, None if it moves nothing."""
        z = np.empty(self.n_outputs)
        steps.look(self.rule, self.walk, scores, z)
        trial = steps.trial_walk(self.walk)
        trial.clock[steps.NOW] = self.walk.clock[steps.NOW] + 1.0

        def score(c: int, g: float) -> float:
            return float(steps.trial_output(self.rule, self.walk, trial, scores[c], squares, self.gain[i] * g))

        loss, offset, g = self.loss.step(self.y[i], z, score)
        self.offsets[i] += offset
        self.visits[i] += 1.0
        g = np.array(g, dtype=np.float64)
        steps.count(self.walk, loss, offset, self.gain[i], g)
        return g if steps.move(self.walk, scores, squares, g) else None
