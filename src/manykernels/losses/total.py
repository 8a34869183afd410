"""What a problem asks of any loss: a convex function of the predictions of all samples of a task.

    L(z) = sum_i C_i value(y_i, z_i)     a sum over samples: :class:`manykernels.losses.base.Loss`
    L(z) = anything convex and smooth    :class:`CoupledLoss`, where one prediction changes what another costs

The walk from the combined kernel to the certificate needs no more than L, its conjugate
L*(-beta) = sup_z (-beta'z - L(z)), and a beta that proves something: minus a subgradient of L, for which Fenchel's
inequality is an equality. So optimizers that learn from machines and quadratic forms take any loss. What looks at
samples one by one (pairwise steps, interior points, screening, rows on workers) needs a sum over samples, and asks
whether the loss is one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from manykernels.core.constructors import HasParameters


class TotalLoss(HasParameters, ABC):
    """A convex loss L of the predictions of one task, z of shape (n_samples,), for the targets y and the weights C.

    Attributes
    ----------
    name : str
    smooth : bool
        Whether L has two derivatives.
    quadratic : bool
        Whether L is half the weighted sum of squared residuals.
    elementwise : bool
        Whether L is a sum over samples, each of which can be asked for.
    shifts : bool
        Whether L is a function of y - z: an offset of the targets can then be moved to the intercept beforehand.
    """

    name: str
    smooth: bool = False
    quadratic: bool = False
    elementwise: bool = False
    shifts: bool = False

    @property
    @abstractmethod
    def offers(self) -> frozenset[str]:
        """What inner solvers may ask for, by the words of their rules."""

    @abstractmethod
    def total(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> float:
        """Return L(z)."""

    @abstractmethod
    def total_conjugate(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray) -> float:
        """Return L*(-beta), for beta in the domain of the dual."""

    @abstractmethod
    def pull(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Return minus a subgradient of L at z."""

    @abstractmethod
    def feasible(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray, intercept: bool) -> np.ndarray:
        """Return beta, moved into the domain of the dual where it is not there; 1' beta = 0 with an intercept."""

    def center(self, C: np.ndarray) -> np.ndarray | None:
        """Return coefficients in the domain whose sum is that of beta beside an intercept; None where it is 0.

        The intercept b then costs b times that sum. Solvers look for beta - center, which sums to 0.
        """
        return None

    @abstractmethod
    def best_intercept(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> float:
        """Return a b that minimizes L(z + b)."""

    @abstractmethod
    def moved(self, y: np.ndarray, z: np.ndarray, errors: np.ndarray, C: np.ndarray) -> float:
        """Return about how far L moves at most where each prediction moves by its error."""

    @abstractmethod
    def has_contrast(self, y: np.ndarray) -> bool:
        """Return whether such targets leave anything to learn."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class CurvatureFactor(ABC):
    """The second derivative of a coupled loss, W = F F', at some predictions."""

    @abstractmethod
    def times(self, vectors: np.ndarray) -> np.ndarray:
        """Return F u_t for vectors of shape (n_vectors, n_samples)."""

    @abstractmethod
    def transposed_times(self, vectors: np.ndarray) -> np.ndarray:
        """Return F' v_t for vectors of shape (n_vectors, n_samples)."""

    @abstractmethod
    def congruent(self, K: np.ndarray) -> np.ndarray:
        """Return F' K F as a matrix of its own; beside K there is room for that one."""


class CoupledLoss(TotalLoss):
    """A smooth convex loss that is no sum over samples; its second derivative has a factor whose products are quick.

    Newton's method solves it (``manykernels.inner.coupled_newton``). What else a problem asks of it is in
    :class:`TotalLoss`.
    """

    smooth = True

    @property
    def offers(self) -> frozenset[str]:
        return frozenset({"coupled"})

    @abstractmethod
    def curvature_factor(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> CurvatureFactor:
        """Return the second derivative of L at z."""
