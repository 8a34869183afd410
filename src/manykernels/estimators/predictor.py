"""A fitted model as predictions need it: the learned kernel on the support vectors, and their coefficients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from manykernels.compute.gpu import Device, has_device
from manykernels.core.results import Iterate
from manykernels.kernels.bound import learned_kernel
from manykernels.kernels.device.features import predict_features_on
from manykernels.kernels.device.learned import predict_on
from manykernels.kernels.feature_bank import FeatureBank
from manykernels.kernels.features import FeatureMaps
from manykernels.kernels.learned import LearnedKernel
from manykernels.kernels.missing import observed
from manykernels.kernels.precomputed import Precomputed

# Rows whose features are made at once: fewer where each has many, since a block exists two or three times on its way.
_MOST_ROWS, _LEAST_ROWS, _BLOCK_VALUES = 4096, 16, 1 << 20
_MANY_VALUES = 10**7


class Part(NamedTuple):
    """What a part of a prediction belongs to: the kernel at a place in the bank, or a whole ladder at place -1."""

    place: int
    name: str
    group: str


@dataclass(frozen=True)
class Predictor:
    """The machines of the tasks that share one kernel.

    Attributes
    ----------
    kernel : LearnedKernel
    coef : ndarray of shape (n_tasks, n_kept), or (n_active, n_tasks, n_kept)
        Of the learned kernel, or of each active kernel where they do not share them.
    intercept : ndarray of shape (n_tasks,)
    active : ndarray of shape (n_active,)
        Places of the kernel's parts in the bank.
    rows : ndarray of shape (n_kept,)
        The rows of the training data that are kept.
    n_train : int
    vectors : ndarray of shape (n_tasks, n_map_features) or None
        The predictor on the kernels' finite feature maps; no samples are kept then.
    mean : ndarray of shape (n_map_features,) or None
        Of those features over the training samples, where the kernels are centered; their part of the predictions is
        in the intercept.
    """

    kernel: LearnedKernel
    coef: np.ndarray
    intercept: np.ndarray
    active: np.ndarray
    rows: np.ndarray
    n_train: int
    vectors: np.ndarray | None = None
    mean: np.ndarray | None = None

    @classmethod
    def from_machine(
        cls, bank: Any, weights: np.ndarray, machine: Iterate, rows: np.ndarray, n_train: int
    ) -> Predictor:
        """Keep the support vectors; all samples when the kernels are centred, none when they are features."""
        if isinstance(bank, FeatureBank):
            vectors, mean = bank.predictor_vectors(weights, machine.beta)
            nothing = np.zeros((vectors.shape[0], 0))
            active, nobody = np.flatnonzero(weights > 0), np.zeros(0, np.int64)
            own = mean if bank.is_centered else None
            return cls(
                bank.learned(weights), nothing, machine.intercept - vectors @ mean, active, nobody, 0, vectors, own
            )
        keep = np.flatnonzero(np.any(machine.beta != 0, axis=0))
        if bank.is_centered or keep.size == 0:
            keep = np.arange(bank.n_samples)
        return cls(
            kernel=learned_kernel(bank, weights, keep),
            coef=machine.beta[:, keep],
            intercept=machine.intercept,
            active=np.flatnonzero(weights > 0),
            rows=rows[keep],
            n_train=n_train,
        )

    def decision(self, X: Any, device: str = "cpu") -> np.ndarray:
        """Return the predictions of the tasks, shape (len(X), n_tasks).

        The device is used where there is one and the work is worth it: a model that was fitted on a GPU predicts on
        any machine.
        """
        if self.vectors is not None:
            return self._from_features(X, device)
        if self.coef.ndim == 2 and self._is_worth(X) and has_device(device):
            return (predict_on(Device(device), self.kernel, X, self.coef) + self.intercept[:, None]).T
        if self.coef.ndim == 3:
            return (self.kernel.predict_components(X, self.coef) + self.intercept[:, None]).T
        return (self.kernel.predict(X, self.coef) + self.intercept[:, None]).T

    def _is_worth(self, X: Any) -> bool:
        """Return whether the kernel values are so many that sending samples to a device and back is little beside."""
        return X.shape[0] * self.kernel.X.shape[0] * len(self.kernel.bound) >= _MANY_VALUES

    def _from_features(self, X: Any, device: str) -> np.ndarray:
        assert self.vectors is not None
        if self.kernel.bound and X.shape[0] * self.vectors.shape[1] >= _MANY_VALUES and has_device(device):
            return predict_features_on(Device(device), self._maps(), X, self.vectors) + self.intercept
        out = np.tile(self.intercept, (X.shape[0], 1))
        for rows, features, _ in self._features(X):
            out[rows] += features @ self.vectors.T
        return out

    def _maps(self) -> FeatureMaps:
        return FeatureMaps(self.kernel.bound, np.ones(len(self.kernel.bound)), self.kernel.cosine, 0.0)

    def _features(self, X: Any) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield some rows of X, their features, and where those of each active kernel begin, and the end."""
        assert self.vectors is not None
        maps, step = self._maps(), _BLOCK_VALUES // max(self.vectors.shape[1], 1)
        step = min(max(step, _LEAST_ROWS), _MOST_ROWS)
        for low in range(0, X.shape[0] if self.kernel.bound else 0, step):
            rows = slice(low, min(low + step, X.shape[0]))
            yield rows, *maps.transform(X[rows])

    def pairwise(self, X: Any, Z: Any) -> np.ndarray:
        """Return the learned kernel of the rows of X with those of Z, shape (len(X), len(Z))."""
        if self.mean is None:
            return self.kernel.pairwise(X, Z)
        features, first = self._maps().transform(X)
        factors = np.repeat(self.kernel.coefficients, np.diff(first))
        return ((features - self.mean) * factors) @ (self._maps().transform(Z)[0] - self.mean).T

    # -- the parts of a prediction --------------------------------------------------------------------------

    def owners(self, names: Sequence[str]) -> tuple[list[Part], np.ndarray]:
        """Return the parts of a prediction, and to which of them each kernel of the sum belongs.

        A part is an active kernel, or a whole ladder where the sum is over its nodes, which are no kernels of the bank.
        ``names`` are those of all kernels of the bank.
        """
        places: dict[Part, int] = {}
        owner = np.empty(len(self.kernel.bound), np.int64)
        n_kernels = 0
        for j, entry in enumerate(self.kernel.bound):
            # Plain kernels come first, and nodes have the name of their ladder, not of a kernel.
            is_kernel = n_kernels < self.active.size and entry.name == names[int(self.active[n_kernels])]
            place = int(self.active[n_kernels]) if is_kernel else -1
            n_kernels += is_kernel
            owner[j] = places.setdefault(Part(place, entry.name, entry.group), len(places))
        return list(places), owner

    def parts(self, X: Any, owner: np.ndarray, out: np.ndarray) -> None:
        """Add what each kernel of the sum adds to the predictions to ``out[:, :, owner]``, (len(X), n_tasks, n_parts).

        Together with the intercept of :meth:`own_intercept` they are what :meth:`decision` returns.
        """
        if self.vectors is None:
            for k, rows, values in self.kernel.parts(X, self.coef):
                out[rows, :, owner[k]] += values.T
            return
        for rows, features, first in self._features(X):
            centered = features if self.mean is None else features - self.mean
            for k, part in enumerate(owner):
                own = slice(first[k], first[k + 1])
                out[rows, :, part] += centered[:, own] @ self.vectors[:, own].T

    def parts_from_stack(self, stack: np.ndarray, owner: np.ndarray, out: np.ndarray) -> None:
        """Do the same for kernels given as an array (n_kernels, n_test, n_train)."""
        for place, block in self._of_stack(stack):
            out[:, :, owner[place]] += block @ (self.coef if self.coef.ndim == 2 else self.coef[place]).T

    def own_intercept(self) -> np.ndarray:
        """Return what is added to the parts, shape (n_tasks,)."""
        return (
            self.intercept if self.vectors is None or self.mean is None else self.intercept + self.vectors @ self.mean
        )

    # -- precomputed kernels --------------------------------------------------------------------------------

    def decision_from_stack(self, stack: np.ndarray) -> np.ndarray:
        """Return the predictions for kernels given as an array (n_kernels, n_test, n_train).

        Test samples that lack a view have zeros there.
        """
        out = np.tile(self.intercept, (stack.shape[1], 1))
        for place, block in self._of_stack(stack):
            out += block @ (self.coef if self.coef.ndim == 2 else self.coef[place]).T
        return out

    def cross_from_stack(self, stack: np.ndarray) -> np.ndarray:
        """Return the learned kernel with the samples that are kept, shape (n_test, n_kept)."""
        out = np.zeros((stack.shape[1], self.rows.size))
        for _, block in self._of_stack(stack):
            out += block
        return out

    def _of_stack(self, stack: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the place of each active kernel and its weighted values with the samples that are kept."""
        kernel = self.kernel
        if (
            kernel.cosine
            or kernel.means is not None
            or not all(isinstance(entry.kernel, Precomputed) for entry in kernel.bound)
        ):
            raise ValueError(
                "X is a stack of kernels: that needs precomputed kernels without centering or cosine "
                "normalization; pass sample numbers instead, X = indices.reshape(-1, 1)."
            )
        for place, k in enumerate(self.active):
            # What the stack says of training samples that lack the view is void.
            mask = observed(kernel.X[:, kernel.bound[place].positions])
            yield place, kernel.coefficients[place] * stack[k][:, self.rows] * (1.0 if mask is None else mask)
