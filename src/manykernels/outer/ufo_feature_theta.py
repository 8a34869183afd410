"""The sum of the steps of UFO-MKL as a vector: for kernels with finite feature maps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from manykernels.kernels.feature_maps import FeatureMaps
from manykernels.losses import JointLoss
from manykernels.losses.codes import CUSTOM
from manykernels.outer import ufo_steps as steps
from manykernels.outer.ufo_steps import Rule, Vector
from manykernels.outer.ufo_theta import Start, Theta

# Features of samples are computed for this many numbers at a time, and kept if there are no more than that many.
_CHUNK, _KEPT = 1 << 20, 1 << 24


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
        self.X, self.y, self._phi = self.X[:1].copy(), None, None  # views would keep all of them
        self.gain, self.offsets = self.gain[:1].copy(), self.offsets[:1].copy()

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
        scores, squares = np.empty((self.n_outputs, len(self.maps.bound))), np.empty(len(self.maps.bound))
        for i, features in zip(rows, phi, strict=True):
            steps.project(self.v, features, scores, squares)
            step = self._ask(i, scores, squares)
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
