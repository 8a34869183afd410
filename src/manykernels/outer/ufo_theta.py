"""The sum of the steps of UFO-MKL, theta, in its two forms, and what a certificate needs of it.

Theta lives in one of two forms. As a sum over samples: the scores of every sample with every kernel's theta are kept,
and each sample hears of the steps since its last visit when it is visited again, so that kernel values are read once
for each step that moved and nothing else is written. As a vector, for kernels with finite feature maps: memory does
not grow with the number of samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from manykernels.banks.pairs import PairValues
from manykernels.compute.threads import n_threads, parallel
from manykernels.core.results import Certificate
from manykernels.kernels.feature_maps import FeatureMaps
from manykernels.losses import JointLoss
from manykernels.losses.codes import CUSTOM, MULTICLASS_HINGE
from manykernels.norms.elastic import ElasticNorm
from manykernels.outer import ufo_steps as steps
from manykernels.outer.ufo_steps import Rule, Scores, Vector, Walk

# Samples of an epoch that are brought up to date side by side before their steps are taken one after the other.
_AHEAD = 64
# Below this many multiplications a thread costs more than it saves.
_SMALL_PASS = 1 << 16
# Features of samples are computed for this many numbers at a time, and kept if there are no more than that many.
_CHUNK, _KEPT = 1 << 20, 1 << 24


def make_rule(
    loss: JointLoss, alpha: float, total_C: float, n_kernels: int, p: float | None = None, exact: bool = False
) -> Rule:
    """Return what the steps are told; a loss that is not compiled in is asked for its descent in Python.

    Parameters
    ----------
    loss : JointLoss
    alpha : float
    total_C : float
        The sum of the weights C_i of the losses: 1 / lambda.
    n_kernels : int
    p : float, optional
    exact : bool
        Whether steps go to the maximum of the dual in the coefficients of a sample.
    """
    p = ElasticNorm(p=p).power(n_kernels)
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
        """Return the targets as the loss takes them: a class number is one number a sample."""
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

    def _ask(self, i: int, scores: np.ndarray, own: np.ndarray) -> np.ndarray | None:
        """Take a step with a loss that is not compiled in; return it, None if it moves nothing."""
        z = np.empty(self.n_outputs)
        steps.look(self.rule, self.walk, scores, z)
        trial = steps.trial_walk(self.walk)
        trial.clock[steps.NOW] = self.walk.clock[steps.NOW] + 1.0

        def score(c: int, g: float) -> float:
            return float(steps.trial_output(self.rule, self.walk, trial, scores[c], own, self.gain[i] * g))

        loss, offset, g = self.loss.step(self.y[i], z, score)
        self.offsets[i] += offset
        self.visits[i] += 1.0
        g = np.array(g, dtype=np.float64)
        steps.count(self.walk, loss, offset, self.gain[i], g)
        return g if steps.move(self.walk, scores, own, g) else None


class SampleTheta(Theta):
    """theta_k = sum_i beta_i phi_k(x_i): for any kernels.

    Parameters
    ----------
    pairs : PairValues
    loss, y, C, rule, average
        As for :class:`Theta`.
    start : Start, optional
        Where to go on.
    """

    def __init__(
        self,
        pairs: PairValues,
        loss: JointLoss,
        y: Any,
        C: np.ndarray,
        rule: Rule,
        average: bool = False,
        start: Start | None = None,
    ) -> None:
        n, m = pairs.n_samples, pairs.n_kernels
        super().__init__(loss, y, C, rule, m, average)
        shape = (n, self.n_outputs, m)
        self.pairs, self.own = pairs, np.ascontiguousarray(pairs.diagonals())
        self._values = pairs.triangle if pairs.is_held else None
        self.s = Scores(
            scores=np.zeros(shape),
            seen=np.zeros(n, np.int64),
            beta=np.zeros((n, self.n_outputs)),
            visits=np.zeros(n),
            samples=np.zeros(2 * n, np.int64),
            steps=np.zeros((2 * n, self.n_outputs)),
            length=np.zeros(1, np.int64),
            debt=np.zeros(shape if average else (0, 0, 0)),
        )
        self.beta, self.visits = self.s.beta, self.s.visits
        self.begin(start)

    def begin(self, start: Start | None) -> None:
        """Go on from another walk, whose steps enter the log as one a sample."""
        if start is None:
            return
        super().begin(start)
        self.hear(self.beta)
        self.settle()

    def hear(self, beta: np.ndarray) -> None:
        """Enter steps that were taken elsewhere in the log, for the scores to hear of."""
        used = np.flatnonzero(np.any(beta != 0, axis=1))
        self.s.samples[: used.size], self.s.steps[: used.size] = used, beta[used]
        self.s.length[0] = used.size

    def advance(self, order: np.ndarray) -> None:
        for block in self._blocks(order):
            self._advance_block(block)  # the kernel values of a block are gone before those of the next come

    def _advance_block(self, block: np.ndarray) -> None:
        if self.s.length[0] + block.size > self.s.samples.size:
            self.settle()  # the log is full
        values, places = self._catch_up(np.unique(block), block)
        if self.rule.loss == CUSTOM:
            self._advance_by_asking(block, values, places)
        else:
            steps.walk_samples(self.rule, self.walk, self.s, values, self.own, self.y, self.gain, block, places)

    def _advance_by_asking(self, block: np.ndarray, values: np.ndarray, places: np.ndarray) -> None:
        for i, place in zip(block, places, strict=True):
            steps.catch_up(self.s, values, i, place)
            step = self._ask(i, self.s.scores[i], self.own[i])
            if step is not None:
                steps.enter(self.walk, self.s, i, step)

    def settle(self) -> None:
        for block in self._blocks(np.arange(self.n_samples)):
            self._catch_up(block, block)
        self.s.seen[:], self.s.length[0] = 0, 0
        self.walk.squared[:] = np.einsum("ic,ick->k", self.beta, self.s.scores)
        self.theta_moved()

    def outputs(self) -> np.ndarray:
        return self.s.scores @ self.walk.coef

    def squared_norms(self, beta: np.ndarray) -> np.ndarray:
        support = np.flatnonzero(np.any(beta != 0, axis=1))
        if self._values is None:
            return self._squared_norms_in_blocks(beta, support)
        # Row a has a + 1 pairs: dealt out in turns, the threads have the same to do.
        shares = [np.arange(k, support.size, n_threads()) for k in range(n_threads())]

        def part(rows: np.ndarray) -> np.ndarray:
            out = np.zeros(self.pairs.n_kernels)
            steps.add_norms(self._values, beta, support, rows, out)
            return out

        return np.sum(parallel(part, shares), axis=0)

    def _squared_norms_in_blocks(self, beta: np.ndarray, support: np.ndarray) -> np.ndarray:
        total = np.zeros(self.pairs.n_kernels)
        for block in self._blocks(support):
            self._add_norms(beta[block] @ beta.T, self.pairs.rows(block), total)
        return total

    @staticmethod
    def _add_norms(products: np.ndarray, values: np.ndarray, total: np.ndarray) -> None:
        """Add the parts of some samples' rows; one after the other, since they are made double on the way."""
        for own, rows in zip(products, values.reshape(*products.shape, -1), strict=True):
            total += own @ rows

    def averaged(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        W = (self.beta[:, :, None] * self.walk.area - self.s.debt) / self.n_averaged
        scores = np.zeros_like(W)
        for block in self._blocks(np.arange(self.n_samples)):
            self._add_components(block, W, scores)
        squared = np.einsum("ick,ick->k", W, scores)
        return W, scores.sum(axis=2), np.sqrt(np.maximum(squared, 0.0))

    def _add_components(self, block: np.ndarray, W: np.ndarray, scores: np.ndarray) -> None:
        values, places = self._values_of(block)
        pieces = np.array_split(np.arange(block.size), n_threads())
        parallel(lambda own: steps.add_components(values, W, block[own], places[own], scores), pieces)

    def forget_average(self) -> None:
        super().forget_average()
        self.s.debt[:] = 0.0

    def _blocks(self, order: np.ndarray) -> Iterator[np.ndarray]:
        size = min(_AHEAD, self.n_samples) if self._values is not None else self.pairs.block_size
        return (order[low : low + size] for low in range(0, order.size, size))

    def _values_of(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return kernel values, and where the rows of the samples are in them; -1 says in a triangle of all."""
        if self._values is not None:
            return self._values, np.full(samples.size, -1)
        return self.pairs.rows(samples), np.arange(samples.size)

    def _catch_up(self, samples: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bring distinct samples up to date; return kernel values and the places of the samples in ``order``."""
        values, places = self._values_of(samples)
        pending = int(np.sum(self.s.length[0] - self.s.seen[samples])) * self.pairs.n_kernels
        pieces = np.array_split(np.arange(samples.size), n_threads() if pending > _SMALL_PASS else 1)
        parallel(lambda own: steps.catch_up_all(self.s, values, samples[own], places[own]), pieces)
        return values, places[np.searchsorted(samples, order)]


class FeatureTheta(Theta):
    """theta_k as a vector: for kernels with finite feature maps.

    Parameters
    ----------
    maps : FeatureMaps
    X : array or CSR matrix of shape (n, n_features_in)
    loss, y, C, rule, average
        As for :class:`Theta`.
    start : Start, optional
        Where to go on, on the same samples.
    remember : bool
        Whether the steps of each sample are kept, for the certificate of a batch; not for a stream.
    kept : int
        Most numbers that are kept of the samples' features; beyond, they are computed when they are needed.
    """

    def __init__(
        self,
        maps: FeatureMaps,
        X: Any,
        loss: JointLoss,
        y: Any,
        C: np.ndarray,
        rule: Rule,
        average: bool = False,
        start: Start | None = None,
        remember: bool = True,
        kept: int = _KEPT,
    ) -> None:
        super().__init__(loss, y, C, rule, len(maps.bound), average)
        first = maps.transform(X[:1])[1]
        shape = (self.n_outputs, int(first[-1]))
        self.maps, self.X = maps, X
        self.v = Vector(np.zeros(shape), first, np.zeros(shape if average else (0, 0)))
        n = self.n_samples if remember or self.rule.loss == CUSTOM else 1
        self.beta, self.visits = np.zeros((n, self.n_outputs)), np.zeros(n)
        self._remembers, self._kept = remember, kept
        self._phi: np.ndarray | None = None
        if start is not None:
            self.begin(start)
            self.settle()

    def renew(self, X: Any, y: Any, weight: np.ndarray) -> None:
        """Go on with other samples."""
        self.X, self.y, self.n_samples = X, y, weight.size
        # A stream has no end to count its samples by: a weight is a weight.
        self.gain = weight
        self._phi = None
        if self.rule.loss == CUSTOM:
            self.beta, self.visits = np.zeros((weight.size, self.n_outputs)), np.zeros(weight.size)
            self.offsets = np.zeros(weight.size)

    def forget_samples(self) -> None:
        """Let go of the samples at hand: what was learned from them is in theta."""
        self.X, self.y, self._phi = self.X[:1], None, None
        self.gain, self.offsets = self.gain[:1], self.offsets[:1]

    def advance(self, order: np.ndarray) -> None:
        for rows in self._chunks(order):
            phi = self._features(rows)
            if self.rule.loss == CUSTOM:
                self._advance_by_asking(rows, phi)
            else:
                steps.walk_features(
                    self.rule, self.walk, self.v, phi, self.y, self.gain, rows, self.beta, self.visits, self._remembers
                )

    def _advance_by_asking(self, rows: np.ndarray, phi: np.ndarray) -> None:
        scores, own = np.empty((self.n_outputs, len(self.maps.bound))), np.empty(len(self.maps.bound))
        for i, features in zip(rows, phi, strict=True):
            steps.project(self.v, features, scores, own)
            step = self._ask(i, scores, own)
            if step is not None:
                self.beta[i] += step
                steps.add_features(self.walk, self.v, features, step)

    def settle(self) -> None:
        if self._remembers:
            self.v.theta[:] = self._sum(self.beta)
        self.walk.squared[:] = self._by_kernel(self.v.theta**2)
        self.theta_moved()

    def outputs(self) -> np.ndarray:
        return self._linear(self.v.theta * np.repeat(self.walk.coef, np.diff(self.v.first)))

    def squared_norms(self, beta: np.ndarray) -> np.ndarray:
        return self._by_kernel(self._sum(beta) ** 2)

    def averaged(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        W = self.mean_vectors()
        return W, self._linear(W), self.lengths(W)

    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        return self.v.theta, self.v.first

    def mean_vectors(self) -> np.ndarray:
        """Return the mean of the f_k over the steps, side by side, (n_outputs, n_features)."""
        area = np.repeat(self.walk.area, np.diff(self.v.first))
        return (self.v.theta * area - self.v.debt) / self.n_averaged

    def lengths(self, W: np.ndarray) -> np.ndarray:
        """Return the length of each kernel's part of vectors."""
        return np.sqrt(self._by_kernel(W**2))

    def forget_average(self) -> None:
        super().forget_average()
        self.v.debt[:] = 0.0

    def _by_kernel(self, values: np.ndarray) -> np.ndarray:
        owner = np.repeat(np.arange(len(self.maps.bound)), np.diff(self.v.first))
        return np.bincount(owner, values.sum(axis=0), minlength=len(self.maps.bound))

    def _linear(self, W: np.ndarray) -> np.ndarray:
        return np.concatenate([self._features(rows) @ W.T for rows in self._chunks(np.arange(self.n_samples))])

    def _sum(self, beta: np.ndarray) -> np.ndarray:
        chunks = self._chunks(np.arange(self.n_samples))
        return np.sum([beta[rows].T @ self._features(rows) for rows in chunks], axis=0)

    def _chunks(self, order: np.ndarray) -> Iterator[np.ndarray]:
        size = max(1, _CHUNK // int(self.v.first[-1]))
        return (order[low : low + size] for low in range(0, order.size, size))

    def _features(self, rows: np.ndarray) -> np.ndarray:
        if self._phi is None and self.n_samples * int(self.v.first[-1]) <= self._kept:
            self._phi = self.maps.transform(self.X)[0]
        return self.maps.transform(self.X[rows])[0] if self._phi is None else self._phi[rows]
