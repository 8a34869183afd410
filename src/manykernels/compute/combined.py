"""The combined kernel of some weights, as inner solvers see it: what it can do stands in ``can``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from manykernels.core.protocols import Measured

# Relative error of a kernel value in double precision, after a distance, a function of it and a normalization.
DOUBLE = 2.0**-49
# Of a prediction, as a part of the two terms that it is the sum of.
LAST_BIT = 2.0**-53


def as_matrix(K: Any) -> np.ndarray:
    """Return the matrix of a combined kernel, written out where it is not held.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.combined import CombinedMatrix, as_matrix
    >>> as_matrix(CombinedMatrix(np.eye(2)))
    array([[1., 0.],
           [0., 1.]])
    """
    return K.array if "array" in K.can else K.product(np.eye(K.n_samples))


class Rounded:
    """What combined kernels share whose diagonal is known: how far the rounding of their values moves an objective.

    Attributes
    ----------
    unit_roundoff : float
        Relative error of the kernel values.
    lost : float
        The size of the error that centering has left in each value.
    """

    unit_roundoff: float
    lost: float = 0.0

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, shape (n_samples,)."""
        raise NotImplementedError

    def rounding(self, machine: Measured, passed_on: Callable[[np.ndarray], float]) -> float:
        """Return about how far rounded kernel values move the primal value.

        An error of u in each kernel value moves the prediction i by about
        e_i = u * sqrt(sum_j K_ij^2 beta_j^2) <= u * sqrt(K_ii) * ||sqrt(K_jj) beta_j||.
        What centering has lost of the kernels is counted separately: there each value has an error of one size,
        e_i = size * ||beta||.

        Parameters
        ----------
        machine : Machine
        passed_on : function of an ndarray of shape (n_tasks, n_samples)
            How far the losses move when the predictions move by these.
        """
        root = np.sqrt(np.maximum(self.diagonal(), 0.0))
        moved = np.sqrt(np.sum((root * machine.beta) ** 2, axis=1, keepdims=True))
        errors = max(self.unit_roundoff, DOUBLE) * moved * root
        return passed_on(errors + self.lost * np.linalg.norm(machine.beta, axis=1, keepdims=True))


class CombinedMatrix(Rounded):
    """A combined kernel that is a matrix in double precision.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_samples)
        Symmetric; banks write to it again and again.
    unit_roundoff : float
        Relative error of its values.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.combined import CombinedMatrix
    >>> K = CombinedMatrix(2.0 * np.eye(2))
    >>> K.product(np.array([[1.0, -1.0]]))
    array([[ 2., -2.]])
    """

    can = frozenset({"array"})

    def __init__(self, array: np.ndarray, unit_roundoff: float = 2.0**-53) -> None:
        self.array, self.unit_roundoff = array, unit_roundoff

    @classmethod
    def empty(cls, n_samples: int, unit_roundoff: float) -> CombinedMatrix:
        """Return one for a bank to write to."""
        return cls(np.empty((n_samples, n_samples)), unit_roundoff)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.array.shape[0]

    def product(self, beta: np.ndarray) -> np.ndarray:
        """Return K beta_t for beta of shape (n_tasks, n_samples)."""
        return beta @ self.array

    def diagonal(self) -> np.ndarray:
        """Return the diagonal."""
        return self.array.diagonal()
