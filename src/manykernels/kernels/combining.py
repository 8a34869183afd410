"""What banks share whose combined kernel is a matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from manykernels.compute.combined import CombinedMatrix
from manykernels.kernels.asked import checked_weights


class CombinesToMatrix(ABC):
    """A bank whose kernels are added up in one matrix, which is written again for other weights."""

    n_kernels: int
    n_samples: int
    unit_roundoff: float
    # How many samples a problem may have that is solved for a first guess: None where the matrix itself is there.
    coarse_size: int | None = None

    # Where features are more than samples, matrices of those may do; a first guess has so many bytes beside the bank.
    has_few_samples: bool = False
    spare: int | None = None
    # Several problems may use the bank at once.
    concurrent: bool = True

    @property
    def attributes(self) -> dict[str, Any]:
        """What a fitted estimator says of this bank beside what it says of all."""
        return {}

    def tail_bytes(self, size: int) -> int:
        """Return the bytes that :meth:`tail` takes."""
        return 0

    @property
    def centering_errors(self) -> np.ndarray | None:
        """The size of the error that centering leaves in each kernel's values; None where they are not centered."""
        return None

    @abstractmethod
    def fill(self, weights: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the combined kernel of the weights, of any sign, to ``out``, and return that."""

    def workspace(self) -> CombinedMatrix:
        """Return what :meth:`combine` writes to."""
        return CombinedMatrix.empty(self.n_samples, self.unit_roundoff)

    def combine(self, weights: np.ndarray, out: CombinedMatrix | None = None) -> CombinedMatrix:
        """Return the combined kernel of non-negative weights; ``out`` is a workspace to use again."""
        K = self.workspace() if out is None else out
        weights = checked_weights(weights, self.n_kernels)
        self.fill(weights, K.array)
        K.lost = self.lost_by_centering(weights)
        return K

    def lost_by_centering(self, weights: np.ndarray) -> float:
        """Return the size of the error that centering leaves in the values of the combined kernel."""
        errors = self.centering_errors
        return 0.0 if errors is None else float(weights @ errors)
