"""The Lp norm on kernel weights (MKLGL: Xu, Jin, Yang, King and Lyu, 2010)."""

from __future__ import annotations

import numpy as np

from manykernels.core.checks import check_number
from manykernels.norms.base import ComponentNorm, Levels
from manykernels.norms.projections import onto_lp_ball


class LpNorm(ComponentNorm):
    """Kernel weights with ``sum_k d_k^p <= 1``, ``d_k >= 0``.

    The regularizer of the component norms a_k = ||f_k|| is 1/2 N(a)^2 with

        N(a) = ||a||_r,   r = 2 p / (1 + p),

    because min over such d of sum_k a_k^2 / d_k equals ||a||_r^2, attained at
    d_k proportional to a_k^{2 / (1 + p)}. The dual norm of sqrt(q), squared,
    is ||q||_{p*} with 1/p + 1/p* = 1.

    Parameters
    ----------
    p : float in [1, inf]
        1 selects few kernels; 2 keeps all that help; inf gives all the same weight
        (a plain kernel machine on the sum of the kernels).

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.norms import LpNorm
    >>> norm = LpNorm(1)
    >>> a = np.array([3.0, 1.0, 0.0])
    >>> float(norm.value(a))
    4.0
    >>> norm.weights(a)
    array([0.75, 0.25, 0.  ])
    >>> float(norm.dual_square(np.array([4.0, 9.0])))
    9.0
    """

    def __init__(self, p: float) -> None:
        self.p = check_number("p", p, low=1, closed="both")

    @property
    def selects(self) -> bool:  # type: ignore[override]
        """Whether the optimal weights are exactly 0 for the kernels that do not help (p = 1)."""
        return self.p == 1

    def value(self, norms: np.ndarray) -> float:
        """Return N(a) for component norms of shape (n_kernels,)."""
        return power_norm(norms, 2.0 / (1.0 / self.p + 1.0))

    def dual_square(self, quad_forms: np.ndarray) -> float:
        """Return N*(sqrt(q))^2 for quadratic forms of shape (n_kernels,)."""
        conjugate = 1.0 if np.isinf(self.p) else np.inf if self.p == 1 else self.p / (self.p - 1)
        return power_norm(quad_forms, conjugate)

    def weights(self, norms: np.ndarray) -> np.ndarray:
        """Return the weights that attain the norm: the closed form, with ||d||_p = 1."""
        largest = norms.max(initial=0.0)
        if np.isinf(self.p):
            return np.ones(norms.size)
        if largest == 0.0:
            return self.initial_weights(norms.size)
        shape = (norms / largest) ** (2 / (1 + self.p))
        return shape / power_norm(shape, self.p)

    def levels(self) -> Levels:
        """Return the exponent."""
        return Levels(self.p)

    def projection(self) -> LpNorm:
        """Return the norm itself."""
        return self

    def penalty(self, weights: np.ndarray) -> float:
        """Return 0: the weights are constrained, not penalized."""
        return 0.0

    def penalty_gradient(self, weights: np.ndarray) -> np.ndarray:
        """Return zeros."""
        return np.zeros_like(weights)

    def project(self, weights: np.ndarray) -> np.ndarray:
        """Return the nearest weights with d >= 0 and ||d||_p <= 1."""
        return onto_lp_ball(weights, self.p)

    def prox(self, values: np.ndarray, length: float | np.ndarray) -> np.ndarray:
        """Return the projection: a constraint has no size."""
        return self.project(values)

    def initial_weights(self, n_kernels: int) -> np.ndarray:
        """Return equal weights with ||d||_p = 1."""
        return np.full(n_kernels, n_kernels ** (-1 / self.p))

    def scaled(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights scaled to the boundary, ||d||_p = 1."""
        return weights / power_norm(weights, self.p)

    def __repr__(self) -> str:
        return f"LpNorm(p={self.p:g})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LpNorm) and other.p == self.p

    def __hash__(self) -> int:
        return hash((LpNorm, self.p))


def power_norm(values: np.ndarray, power: float) -> float:
    """Return (sum v^power)^(1/power) of non-negative values, scaled so that no power overflows."""
    largest = float(values.max(initial=0.0))
    if largest == 0.0 or np.isinf(power):
        return largest
    return largest * float(np.sum((values / largest) ** power)) ** (1.0 / power)
