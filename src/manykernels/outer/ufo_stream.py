"""UFO-MKL on a stream: samples come once, in batches, and are gone.

With finite feature maps the state is a vector of fixed length. Without, it is the samples at which a step was taken,
and grows with the stream. A stream has no last sample to count by, so lambda is fixed when it begins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from manykernels.core.protocols import ExplicitBank
from manykernels.core.results import Certificate
from manykernels.kernels.feature_maps import FeatureMaps
from manykernels.losses import JointLoss
from manykernels.outer import ufo_steps as steps
from manykernels.outer.ufo import UfoResult
from manykernels.outer.ufo_feature_theta import FeatureTheta
from manykernels.outer.ufo_sample_theta import SampleTheta
from manykernels.outer.ufo_steps import Rule, Vector, Walk
from manykernels.outer.ufo_theta import Theta, norm_of


class Stream(ABC):
    """What has been learned so far.

    Attributes
    ----------
    loss : JointLoss
    rule : Rule
        With gradient steps.
    walk : Walk
    certificate : Certificate
        The mean objective along the way, and a bound below that of any predictor; see
        :meth:`Theta.stream_certificate`.
    """

    can_average = False

    def __init__(self, loss: JointLoss, rule: Rule, walk: Walk) -> None:
        self.loss, self.rule, self.walk = loss, rule, walk
        self.certificate = Certificate(np.inf, -np.inf)

    @abstractmethod
    def learn(self, X: Any, y: Any, weight: np.ndarray) -> None:
        """Take a step at each sample, in order; y as the loss takes it, weight (n,) multiplies the losses."""

    @abstractmethod
    def take_over(self, X: Any, theta: Theta, factor: float) -> None:
        """Begin with the steps of a walk on the samples X, times a factor."""

    def features(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the f_k side by side, (n_outputs, n_features), and where each begins; None if samples are kept."""
        return None

    def samples(self) -> tuple[Any, np.ndarray]:
        """Return the samples that are kept and their coefficients, (n_kept, n_outputs)."""
        raise TypeError(f"{type(self).__name__} keeps no samples.")

    def go_on(self, X: Any, theta: Theta, result: UfoResult) -> None:
        """Go on after a walk on the samples X, which counts as the steps that it took.

        What the certificate begins with are the losses and the dual point of that walk, and its predictor with the
        stream's own regularizer: lambda may be another.
        """
        t, lam = float(len(result.trace) * theta.n_samples), 1.0 / theta.C.sum()
        factor = t * lam if theta.rule.exact else t / theta.n_steps
        self.walk.squared[:] = factor**2 * theta.walk.squared
        self.walk.clock[:] = t, 0.0
        losses = lam * (result.certificate.primal - theta.norm.value(result.norms))
        regularizer = self.rule.lam * norm_of(self.rule).value(result.norms)
        slopes = np.sqrt(np.maximum(theta.walk.squared, 0.0)) * factor / (t * lam)
        offset = lam * (result.certificate.dual + theta.norm.conjugate(slopes))
        self.walk.totals[:] = t * np.array([losses, offset, regularizer, 0.0])
        self.take_over(X, theta, factor)

    def copied(self) -> Stream:
        """Return a stream that goes on by itself."""
        other = copy(self)
        other.walk = Walk(*(part.copy() for part in self.walk))
        return other

    def norms(self) -> np.ndarray:
        """Return the ||f_k||."""
        return self.coef() * np.sqrt(np.maximum(self.walk.squared, 0.0))

    def coef(self) -> np.ndarray:
        """Return coef_k with f_k = coef_k theta_k."""
        steps.refresh(self.rule, self.walk)
        self.walk.clock[steps.MADE_FOR] = 0.0
        return self.walk.coef.copy()


class FeatureStream(Stream):
    """A stream in constant memory, for kernels with finite feature maps.

    Parameters
    ----------
    maps : FeatureMaps
    X : array or CSR matrix of shape (n, n_features)
        Samples of the kind to come.
    loss : JointLoss
    rule : Rule
        With gradient steps.
    average : bool

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import KernelBank, Linear, RandomFourier
    >>> from manykernels.kernels.feature_maps import FeatureMaps
    >>> from manykernels.losses import Hinge, OneVsRest
    >>> from manykernels.outer.ufo_theta import make_rule
    >>> from manykernels.outer.ufo_stream import FeatureStream
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> y = np.sign(X[:, :1] * X[:, 1:])
    >>> bank = bind(KernelBank([Linear(), RandomFourier(1.0)]), X[:100])
    >>> loss = OneVsRest(Hinge(), 1)
    >>> maps = FeatureMaps(bank.bound, bank.scale, cosine=False, bias=1.0)
    >>> stream = FeatureStream(maps, X[:1], loss, make_rule(loss, 0.01, 100.0, 2))
    >>> for low in range(0, 2000, 100):
    ...     stream.learn(X[low : low + 100], y[low : low + 100], np.ones(100))
    >>> bool(stream.certificate.dual < stream.certificate.primal)
    True
    """

    can_average = True

    def __init__(self, maps: FeatureMaps, X: Any, loss: JointLoss, rule: Rule, average: bool = False) -> None:
        self.theta = FeatureTheta(maps, X[:1], loss, None, np.ones(1), rule, average, remember=False)
        super().__init__(loss, rule, self.theta.walk)

    def learn(self, X: Any, y: Any, weight: np.ndarray) -> None:
        self.theta.renew(X, y, weight)
        self.theta.advance(np.arange(weight.size))
        self.theta.settle()
        self.theta.forget_samples()
        self.certificate = self.theta.stream_certificate()

    def copied(self) -> FeatureStream:
        other = copy(self)
        other.theta = copy(self.theta)
        other.theta.v = Vector(*(part.copy() for part in self.theta.v))
        other.walk = other.theta.walk = Walk(*(part.copy() for part in self.walk))
        return other

    def take_over(self, X: Any, theta: Theta, factor: float) -> None:
        features = theta.vectors()
        assert features is not None
        self.theta.v.theta[:] = factor * features[0]
        self.theta.forget_average()

    def features(self) -> tuple[np.ndarray, np.ndarray]:
        vectors, first = self.theta.vectors()
        if self.theta.average:
            return self.theta.mean_vectors(), first
        return vectors * np.repeat(self.coef(), np.diff(first)), first

    def norms(self) -> np.ndarray:
        if self.theta.average:
            return self.theta.lengths(self.theta.mean_vectors())
        return super().norms()


class SampleStream(Stream):
    """A stream for any kernels: the samples at which a step was taken are kept, X and beta (n_kept, n_outputs).

    Parameters
    ----------
    bank : ExplicitBank
        The kernels, with the scales that they keep.
    loss : JointLoss
    rule : Rule
        With gradient steps.
    bias : ndarray of shape (n_kernels,)
        As for :class:`PairValues`.
    memory_budget : int
        Bytes for kernel values.
    """

    def __init__(self, bank: ExplicitBank, loss: JointLoss, rule: Rule, bias: np.ndarray, memory_budget: int) -> None:
        m = bank.n_kernels
        super().__init__(loss, rule, Walk(np.zeros(m), np.zeros(m), np.zeros(2), np.zeros(4), np.zeros(0)))
        self.bank, self.bias, self.memory_budget = bank, bias, memory_budget
        self.X, self.beta = bank.X[:0], np.zeros((0, loss.n_outputs))

    def learn(self, X: Any, y: Any, weight: np.ndarray) -> None:
        X = X.tocsr() if sp.issparse(X) else X
        if sp.issparse(self.X) != sp.issparse(X):
            X = sp.csr_matrix(X) if sp.issparse(self.X) else X.toarray()
        rows = sp.vstack([self.X, X]).tocsr() if sp.issparse(X) else np.vstack([self.X, X])
        n, n_old = rows.shape[0], self.X.shape[0]
        pairs = self.bank.on(rows).pairs(self.bias, self.memory_budget, hold=False)
        theta = SampleTheta(pairs, self.loss, _padded(y, n_old), np.ones(n), self.rule)
        theta.walk, theta.gain = self.walk, np.concatenate([np.ones(n_old), weight])
        theta.beta[:n_old] = self.beta
        theta.hear(theta.beta)
        theta.advance(np.arange(n_old, n))
        kept = np.flatnonzero(np.any(theta.beta != 0, axis=1))
        self.X, self.beta = rows[kept], theta.beta[kept]
        self.certificate = theta.stream_certificate()

    def take_over(self, X: Any, theta: Theta, factor: float) -> None:
        kept = np.flatnonzero(np.any(theta.beta != 0, axis=1))
        self.X, self.beta = X[kept], factor * theta.beta[kept]

    def samples(self) -> tuple[Any, np.ndarray]:
        return self.X, self.beta


def _padded(y: Any, n_old: int) -> Any:
    """Return the targets behind places for samples whose targets are not needed any more."""
    if isinstance(y, np.ndarray):
        return np.concatenate([np.zeros((n_old, *y.shape[1:]), y.dtype), y])
    return [None] * n_old + list(y)
