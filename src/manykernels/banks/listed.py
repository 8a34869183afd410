"""Kernels that are known one by one, wherever they are held: what banks of a list have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.banks.argument_checks import check_length, checked_places, checked_weights
from manykernels.banks.combining import CombinesToMatrix
from manykernels.banks.learned import Terms
from manykernels.banks.pairs import PairValues
from manykernels.banks.placement import UNIT_ROUNDOFFS
from manykernels.banks.room import Room
from manykernels.kernels.feature_maps import FeatureMaps, have_features
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.shared_distances import BoundKernel, by_distances


def divided_weights(bound: Sequence[BoundKernel], weights: np.ndarray, n_features: int) -> np.ndarray:
    """Return each feature's part of the weight, a kernel's being divided over its columns."""
    out = np.zeros(n_features)
    for k in np.flatnonzero(weights):
        positions = bound[int(k)].positions
        out[positions] += weights[k] / positions.size
    return out


class ListedBank(CombinesToMatrix):
    """Kernels bound to training data, of which each is known by itself.

    Attributes
    ----------
    names, groups : lists of str
    n_kernels, n_samples : int
    precision : {"single", "double"}
    unit_roundoff : float
        Relative error of the kernel values that are held.
    """

    def __init__(
        self,
        bound: Sequence[BoundKernel],
        X: Any,
        normalization: Normalization,
        sample_weight: np.ndarray,
        precision: str,
        room: Room | None = None,
    ) -> None:
        self.bound, self.X, self.normalization = list(bound), X, normalization
        self.sample_weight, self.precision = sample_weight, precision
        self.names = [entry.name for entry in bound]
        self.groups = [entry.group for entry in bound]
        self.n_kernels, self.n_samples = len(bound), X.shape[0]
        self.room = Room() if room is None else room

    @property
    def unit_roundoff(self) -> float:  # type: ignore[override]
        """Relative error of the kernel values that are held."""
        return UNIT_ROUNDOFFS[self.precision]

    @property
    def centering_errors(self) -> np.ndarray | None:
        """About how far centering has moved the values of each kernel; None where they are not centered."""
        return self.normalization.centering_errors

    @property
    def scale(self) -> np.ndarray:
        """The normalization's factor of each kernel; 0 for a kernel that is zero on the training data."""
        return self.normalization.scale

    @property
    def is_cosine(self) -> bool:  # type: ignore[override]
        """Whether the kernels are normalized to cosines."""
        return self.normalization.inverse_norms is not None

    @property
    def is_centered(self) -> bool:  # type: ignore[override]
        """Whether the kernels are centered."""
        return self.normalization.means is not None

    def diagonal(self, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return the diagonals of the kernels of the subset, shape (len(subset), n)."""
        chosen = self._chosen(subset)
        scale, means, totals = self.normalization.scale, self.normalization.means, self.normalization.totals
        out = np.empty((len(chosen), self.n_samples))
        for row, k in enumerate(chosen):
            (shared,) = by_distances(self.bound, [int(k)])
            raw = shared.diagonal(0, shared.view(self.X))
            if self.normalization.inverse_norms is not None:
                raw = raw * self.normalization.inverse_norms[k] ** 2
            if means is not None and totals is not None:
                raw = raw - 2 * means[k] + totals[k]
            out[row] = scale[k] * raw
        return out

    def largest_diagonals(self, subset: np.ndarray) -> np.ndarray:
        """Return the largest diagonal entry of each kernel of the subset."""
        return self.normalization.largest[subset]

    def peaks(self, values: np.ndarray) -> np.ndarray:
        """Return the places worth a look: here all; a ladder names the local maxima along it."""
        return np.arange(self.n_kernels)

    def terms(self, weights: np.ndarray) -> Terms:
        """Return the combined kernel as a sum of the kernels with a positive weight."""
        weights = checked_weights(weights, self.n_kernels)
        active = np.flatnonzero(weights)
        learned = self.normalization.take(active)
        bound = [self.bound[int(k)] for k in active]
        return Terms(bound, weights[active] * learned.scale, learned.means, learned.totals)

    def importances(self, weights: np.ndarray, n_features: int) -> np.ndarray:
        """Return each feature's part of the weight, a kernel's being divided over its columns."""
        return divided_weights(self.bound, weights, n_features)

    # -- for learning one sample at a time ----------------------------------------------------------------------

    def pairs(self, bias: float | np.ndarray, memory_budget: int, hold: bool = True) -> PairValues:
        """Return the kernels with all their values of a pair of samples side by side."""
        return PairValues(self, bias, memory_budget, hold)

    def maps(self, bias: float | np.ndarray) -> FeatureMaps | None:
        """Return the finite feature maps of the kernels; None where one of them has none."""
        if not have_features(self.bound, self.X):
            return None
        return FeatureMaps(self.bound, self.scale, self.is_cosine, bias)

    def without_map(self) -> str:
        """Return the name of the first kernel that has no finite feature map."""
        return next(entry.name for entry in self.bound if not have_features([entry], self.X))

    def _check_length(self, beta: np.ndarray) -> None:
        check_length(beta, self.n_samples)

    def _chosen(self, subset: Sequence[int] | np.ndarray | None) -> np.ndarray:
        return checked_places(subset, self.n_kernels)
