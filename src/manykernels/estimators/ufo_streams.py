"""What the UFO-MKL classifier and regressor share for streams: batches of samples, each looked at once."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from manykernels.core.protocols import ExplicitBank
from manykernels.core.results import Step
from manykernels.core.samples import Samples
from manykernels.estimators.predictor import Predictor
from manykernels.estimators.running import check_costs
from manykernels.estimators.training import Training
from manykernels.estimators.ufo_base import BaseUFO, light
from manykernels.kernels.missing import check_views
from manykernels.losses import JointLoss
from manykernels.outer.ufo import UfoResult
from manykernels.outer.ufo_stream import FeatureStream, SampleStream, Stream
from manykernels.outer.ufo_theta import Theta, make_rule, norm_of

_LONG_TRACE = 1000


class StreamingUFO(BaseUFO):
    """Base class of estimators that go on learning from batches, also after a fit."""

    def _set_learned(self, bank: ExplicitBank, theta: Theta, result: UfoResult, samples: Samples) -> None:
        """Set the attributes, and the stream that partial_fit goes on with."""
        self._stream = self._following(bank, theta, result)
        super()._set_learned(bank, theta, result, samples)

    def _following(self, bank: ExplicitBank, theta: Theta, result: UfoResult) -> Stream:
        """Return the stream that partial_fit goes on with after a fit."""
        unit = float(theta.C.mean()) / self.C
        stream = self._new_stream(bank, theta.loss, theta.n_samples, unit, theta.vectors() is not None)
        stream.go_on(bank.X, theta, result)
        return stream

    def _new_stream(self, bank: ExplicitBank, loss: JointLoss, n_samples: int, unit: float, explicit: bool) -> Stream:
        """Return a stream for samples whose mean weight is ``unit``."""
        n_expected = n_samples if self.expected_samples is None else float(self.expected_samples)
        self._stream_is = self._frozen(), unit
        total_C = self.C * unit * n_expected
        rule = make_rule(loss, self.alpha, total_C, bank.n_kernels, self._power())
        sample = light(bank)
        if explicit:
            maps = bank.maps(self._bias)
            return FeatureStream(maps, sample.X, loss, rule, self.average)
        return SampleStream(sample, loss, rule, self._bias, self._place(bank, loss.n_outputs).budget)

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

    def _learn_batch(self, training: Training, loss: JointLoss, y: Any, weight: np.ndarray) -> None:
        """Learn from one batch of a stream, with targets and weights of its samples, and set the attributes."""
        started = time.perf_counter()
        check_costs(self.C * weight)
        X = training.samples.of(training.X)
        if not hasattr(self, "_stream"):
            self._begin_stream(training.table, X, loss, weight)
        check_views(X, [(entry.name, entry.positions) for entry in self._light_bank.bound])
        if self.average and not self._stream.can_average:
            raise ValueError("average=True with partial_fit needs kernels with finite feature maps.")
        stream = self._stream.copied()  # an error leaves the old one
        stream.learn(X, y, weight / self._stream_is[1])
        self._stream = stream
        self._set_streamed(stream)
        self.n_seen_ += weight.size
        self._note_batch(stream, time.perf_counter() - started)

    def _begin_stream(self, table: Any, X: Any, loss: JointLoss, weight: np.ndarray) -> None:
        """Bind the kernels to the first batch, whose scales they keep."""
        bank, self._bias = self._bound(table, X, weight)
        explicit = self._maps(bank) is not None
        self._stream = self._new_stream(bank, loss, weight.size, float(weight.mean()), explicit)
        self._light_bank, self.trace_, self.n_seen_ = light(bank), [], 0

    def _set_streamed(self, stream: Stream) -> None:
        """Set the attributes that tell of the kernels and of the predictor."""
        norms = stream.norms()
        weights = norm_of(stream.rule).weights(norms) if self.average else stream.coef()
        total = self._set_kernels(self._light_bank, weights, norms, stream.certificate)
        self._predictors = [self._stream_predictor(stream, total)]
        for name in ("support_", "dual_coef_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self.intercept_ = self._predictors[0].intercept

    def _note_batch(self, stream: Stream, seconds: float) -> None:
        """Add the batch to the trace; of a long one every other step is forgotten, again and again."""
        last, certificate = self.trace_[-1] if self.trace_ else None, stream.certificate
        seconds += last.seconds if last else 0.0
        self.n_iter_ = last.iteration + 1 if last else 1
        step = Step(self.n_iter_, seconds, certificate.primal, certificate.gap, self.active_.size, float(self.tol))
        self.trace_ = [*(self.trace_ if len(self.trace_) < _LONG_TRACE else self.trace_[::2]), step]

    def _stream_predictor(self, stream: Stream, total: float) -> Predictor:
        features = stream.features()
        if features is not None:
            return self._feature_predictor(self._light_bank, *features)
        X, beta = stream.samples()
        rows = np.arange(X.shape[0])
        return self._sample_predictor(self._light_bank.on(X), total * beta.T, rows, rows.size)
