"""What norms of the component norms share: the part that a problem asks for, by the norm and its dual."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np


class ComponentNorm(ABC):
    """A norm N(a) of the component norms a_k = ||f_k||, of which the problem takes 1/2 N(a)^2.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.norms import LpNorm
    >>> LpNorm(1).regularizer(np.array([0.5, 0.5]), np.array([4.0, 16.0]))  # a = (1, 2)
    4.5
    """

    has_dual = True
    bounds_dual = False

    @abstractmethod
    def value(self, norms: np.ndarray) -> float:
        """Return N(a) for component norms of shape (n_kernels,)."""

    @abstractmethod
    def dual_square(self, quad_forms: np.ndarray) -> float:
        """Return N*(sqrt(q))^2 for quadratic forms of shape (n_kernels,)."""

    def regularizer(self, weights: np.ndarray, quad_forms: np.ndarray) -> float:
        """Return 1/2 N(a)^2 of the predictor with these weights, a_k = d_k sqrt(q_k)."""
        return 0.5 * self.value(weights * np.sqrt(quad_forms)) ** 2

    def dual_regularizer(self, quad_forms: np.ndarray) -> float:
        """Return 1/2 N*(sqrt(q))^2."""
        return 0.5 * self.dual_square(quad_forms)

    def dual_limit(self, quad_forms: np.ndarray) -> float:
        """Return 1: the dual norm is finite everywhere."""
        return 1.0
