"""What banks share whose combined kernel is a matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from manykernels.compute.combined import CombinedMatrix


class CombinesToMatrix(ABC):
    """A bank whose kernels are added up in one matrix, which is written again for other weights."""

    n_kernels: int
    n_samples: int
    unit_roundoff: float
    # How many samples a problem may have that is solved for a first guess: None where the matrix itself is there.
    coarse_size: int | None = None

    @abstractmethod
    def fill(self, weights: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the combined kernel of the weights, of any sign, to ``out``, and return that."""

    def workspace(self) -> CombinedMatrix:
        """Return what :meth:`combine` writes to."""
        return CombinedMatrix.empty(self.n_samples, self.unit_roundoff)

    def combine(self, weights: np.ndarray, out: CombinedMatrix | None = None) -> CombinedMatrix:
        """Return the combined kernel of non-negative weights; ``out`` is a workspace to use again."""
        K = self.workspace() if out is None else out
        self.fill(self._check_weights(weights), K.array)
        return K

    def _check_weights(self, weights: np.ndarray) -> np.ndarray:
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        if weights.shape != (self.n_kernels,):
            raise ValueError(f"weights must have shape ({self.n_kernels},), got {weights.shape}.")
        if not np.all(weights >= 0):
            raise ValueError(f"weights must not be negative or NaN, but the smallest is {weights.min():.3g}.")
        return weights
