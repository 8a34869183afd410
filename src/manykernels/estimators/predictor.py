"""A fitted model as predictions need it: the learned kernel on the support vectors, and their coefficients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from manykernels.banks.learned import Kept, LearnedKernel
from manykernels.banks.predictions import features_in_blocks, maps_of, predict, predict_from_features
from manykernels.kernels.missing import observed
from manykernels.kernels.precomputed import Precomputed


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
    shares : ndarray of shape (n_active, n_tasks) or None
        What each task has of the weight of each kernel, where they do not share them: a factor of its coefficients.
    """

    kernel: LearnedKernel
    coef: np.ndarray
    intercept: np.ndarray
    active: np.ndarray
    rows: np.ndarray
    n_train: int
    vectors: np.ndarray | None = None
    mean: np.ndarray | None = None
    shares: np.ndarray | None = None

    @classmethod
    def of(cls, learned: Kept, weights: np.ndarray, rows: np.ndarray, n_train: int) -> Predictor:
        """Return the predictor of what a bank says is to be kept; ``rows`` are those of the distinct samples."""
        return cls(
            kernel=learned.kernel,
            coef=learned.coef,
            intercept=learned.intercept,
            active=np.flatnonzero(weights > 0),
            rows=rows[learned.kept],
            n_train=n_train if learned.vectors is None else 0,
            vectors=learned.vectors,
            mean=learned.mean,
        )

    def decision(self, X: Any, device: str = "cpu") -> np.ndarray:
        """Return the predictions of the tasks, shape (len(X), n_tasks).

        The device is used where there is one and the work is worth it.
        """
        if self.vectors is not None:
            return predict_from_features(self.kernel, X, self.vectors, device).T + self.intercept
        return predict(self.kernel, X, self.coef, device, self.shares).T + self.intercept

    def pairwise(self, X: Any, Z: Any) -> np.ndarray:
        """Return the learned kernel of the rows of X with those of Z, shape (len(X), len(Z)).

        Of tasks that do not share their weights there is one each, (n_tasks, len(X), len(Z)).
        """
        if self.shares is not None:
            of_tasks = (replace(self.kernel, coefficients=self.kernel.coefficients * share) for share in self.shares.T)
            return np.array([kernel.pairwise(X, Z) for kernel in of_tasks])
        if self.mean is None:
            return self.kernel.pairwise(X, Z)
        features, first = maps_of(self.kernel).transform(X)
        factors = np.repeat(self.kernel.coefficients, np.diff(first))
        return ((features - self.mean) * factors) @ (maps_of(self.kernel).transform(Z)[0] - self.mean).T

    # -- the parts of a prediction --------------------------------------------------------------------------

    def owners(self, names: Sequence[str]) -> tuple[list[Part], np.ndarray]:
        """Return the parts of a prediction, and to which of them each kernel of the sum belongs.

        A part is an active kernel, or a whole ladder where the sum is over its nodes, which are not kernels of the
        bank. ``names`` are those of all kernels of the bank.
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

    def columns(self, names: Sequence[str], groups: Sequence[str]) -> dict[int, np.ndarray]:
        """Return the columns of X that each active kernel sees, by its place in the bank.

        Nodes of ladders are not kernels of the bank, and neither is a product of kernels: a kernel that they stand for
        has all columns of the nodes in its group, or of the product. ``names`` and ``groups`` are those of all kernels
        of the bank.
        """
        parts, owner = self.owners(names)
        of_kernels: dict[int, np.ndarray] = {}
        of_groups: dict[str, np.ndarray] = {}
        for place, entry in zip((parts[i].place for i in owner), self.kernel.bound, strict=True):
            if place >= 0:
                of_kernels[place] = entry.positions
            else:
                of_groups[entry.group] = np.union1d(of_groups.get(entry.group, entry.positions), entry.positions)
        return {
            k: of_kernels[k] if k in of_kernels else of_groups.get(groups[k], self.kernel.bound[-1].positions)
            for k in self.active.tolist()
        }

    def parts(self, X: Any, owner: np.ndarray, out: np.ndarray) -> None:
        """Add what each kernel of the sum adds to the predictions to ``out[:, :, owner]``, (len(X), n_tasks, n_parts).

        Together with the intercept of :meth:`own_intercept` they are what :meth:`decision` returns.
        """
        if self.vectors is None:
            for k, rows, values in self.kernel.parts(X, self.coef, self.shares):
                out[rows, :, owner[k]] += values.T
            return
        for rows, features, first in features_in_blocks(self.kernel, X, self.vectors.shape[1]):
            centered = features if self.mean is None else features - self.mean
            for k, part in enumerate(owner):
                columns = slice(first[k], first[k + 1])
                out[rows, :, part] += centered[:, columns] @ self.vectors[:, columns].T

    def parts_from_stack(self, stack: np.ndarray, owner: np.ndarray, out: np.ndarray) -> None:
        """Do the same for kernels given as an array (n_kernels, n_test, n_train)."""
        for place, block in self._of_stack(stack):
            out[:, :, owner[place]] += block @ self._coef_of(place).T

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
            out += block @ self._coef_of(place).T
        return out

    def cross_from_stack(self, stack: np.ndarray) -> np.ndarray:
        """Return the learned kernel with the samples that are kept, shape (n_test, n_kept)."""
        out = np.zeros((stack.shape[1], self.rows.size))
        for _, block in self._of_stack(stack):
            out += block
        return out

    def _coef_of(self, place: int) -> np.ndarray:
        """Return the coefficients of the tasks for an active kernel, shape (n_tasks, n_kept)."""
        coef = self.coef if self.coef.ndim == 2 else self.coef[place]
        return coef if self.shares is None else self.shares[place][:, None] * coef

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
