"""Weights that are penalized instead of constrained: generalized MKL (Jain, Vishwanathan and Varma, 2012).

    minimize over d >= 0   J(d) + r(d),     J(d) = the optimal value of the machine with the kernel of the weights d

For a sum of kernels the dual is  maximize over beta  -sum_i conj_i(beta_i) - r*(q(beta) / 2),  where r* is the
conjugate of the penalty over d >= 0: r*(u) = max over d >= 0 of u'd - r(d).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from manykernels.core.checks import check_number
from manykernels.norms.base import Levels, Norm
from manykernels.norms.projections import shrunk


class Penalty(Norm):
    """A differentiable penalty r(d) of the weights d >= 0; subclass it for a penalty of your own.

    Two methods are needed, ``value`` and ``gradient``. With a third, ``conjugate``, a sum of kernels has a duality
    gap, and a fit its certificate; without it, a fit stops when the projected gradient is small. ``has_dual`` says
    which: it is True for a class that defines ``conjugate``, unless that says otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKLClassifier
    >>> from manykernels.norms import Penalty
    >>> class Entropy(Penalty):
    ...     def value(self, weights):
    ...         return float(np.sum(weights * np.log(np.maximum(weights, 1e-300))))
    ...     def gradient(self, weights):
    ...         return 1 + np.log(np.maximum(weights, 1e-300))
    ...     def conjugate(self, slopes):
    ...         return float(np.sum(np.exp(slopes - 1)))
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifier(norm=Entropy(), solver="spg").fit(X[:100], y[:100])
    >>> bool(model.gap_ <= 1e-3)
    True
    """

    has_dual = False
    bounds_dual = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "has_dual" not in vars(cls) and "conjugate" in vars(cls):
            cls.has_dual = True

    @abstractmethod
    def value(self, weights: np.ndarray) -> float:
        """Return r(d)."""

    @abstractmethod
    def gradient(self, weights: np.ndarray) -> np.ndarray:
        """Return the derivatives of r, shape (n_kernels,)."""

    def conjugate(self, slopes: np.ndarray) -> float:
        """Return max over d >= 0 of slopes'd - r(d); NaN where it is not known."""
        return np.nan

    def project(self, weights: np.ndarray) -> np.ndarray:
        """Return the nearest weights that are allowed."""
        return np.maximum(weights, 0.0)

    def prox(self, values: np.ndarray, length: float | np.ndarray) -> np.ndarray | None:
        """Return the d >= 0 that minimizes |d - values|^2 / 2 + length * r(d), or None where that is not known."""
        return None

    # -- what a problem asks of a norm ----------------------------------------------------------------------------

    def projection(self) -> Penalty:
        """Return the penalty itself."""
        return self

    def penalty(self, weights: np.ndarray) -> float:
        """Return r(d)."""
        return self.value(weights)

    def penalty_gradient(self, weights: np.ndarray) -> np.ndarray:
        """Return the derivatives of r."""
        return self.gradient(weights)

    def regularizer(self, weights: np.ndarray, quad_forms: np.ndarray) -> float:
        """Return 1/2 sum_k d_k q_k + r(d), the regularizer of the predictor with these weights."""
        return 0.5 * float(weights @ quad_forms) + self.value(weights)

    def dual_regularizer(self, quad_forms: np.ndarray) -> float:
        """Return r*(q / 2)."""
        return self.conjugate(0.5 * quad_forms)

    def initial_weights(self, n_kernels: int) -> np.ndarray:
        """Return equal weights with sum 1."""
        return np.full(n_kernels, 1.0 / n_kernels)


class LpPenalty(Penalty):
    """The penalty strength / p * sum_k d_k^p.

    Parameters
    ----------
    p : float in [1, inf)
        1 selects few kernels.
    strength : float > 0, default 1

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.norms import LpPenalty
    >>> penalty = LpPenalty(2, strength=3.0)
    >>> penalty.value(np.array([1.0, 2.0]))
    7.5
    >>> penalty.conjugate(np.array([3.0, 0.0]))
    1.5
    >>> LpPenalty(1).conjugate(np.array([2.0]))  # slopes above the strength
    inf
    """

    def __init__(self, p: float, strength: float = 1.0) -> None:
        self.p = check_number("p", p, low=1, closed="left")
        self.strength = check_number("strength", strength, low=0)

    @property
    def selects(self) -> bool:  # type: ignore[override]
        """Whether the optimal weights are exactly 0 for the kernels that do not help (p = 1)."""
        return self.p == 1

    def value(self, weights: np.ndarray) -> float:
        """Return strength / p * sum_k d_k^p."""
        return self.strength / self.p * float(np.sum(weights**self.p))

    def gradient(self, weights: np.ndarray) -> np.ndarray:
        """Return strength * d^(p-1)."""
        return self.strength * weights ** (self.p - 1.0)

    def conjugate(self, slopes: np.ndarray) -> float:
        """Return strength / p* sum_k (slope_k / strength)^p* over the positive slopes, 1/p + 1/p* = 1."""
        ratio = np.maximum(slopes, 0.0) / self.strength
        if self.p == 1:
            return np.inf if np.any(ratio > 1.0 + 1e-12) else 0.0
        dual = self.p / (self.p - 1.0)
        with np.errstate(over="ignore"):
            return self.strength / dual * float(np.sum(ratio**dual))

    def dual_limit(self, quad_forms: np.ndarray) -> float:
        """Return sqrt(2 strength / max q) for p = 1, where q may be at most twice the strength."""
        largest = float(quad_forms.max(initial=0.0))
        return 1.0 if self.p > 1 or largest <= 2 * self.strength else float(np.sqrt(2 * self.strength / largest))

    def prox(self, values: np.ndarray, length: float | np.ndarray) -> np.ndarray:
        """Return the d >= 0 with d + length * strength * d^(p-1) = value, 0 where there is none."""
        mu = length * self.strength
        if self.p == 1:
            return np.maximum(values - mu, 0.0)
        return np.maximum(values, 0.0) / (1.0 + mu) if self.p == 2 else shrunk(np.maximum(values, 0.0), mu, self.p)

    def weights(self, norms: np.ndarray) -> np.ndarray:
        """Return the weights that minimize sum_k a_k^2 / (2 d_k) + r(d).

        The derivative of a^2 / (2 d) + strength / p d^p vanishes where d^(p+1) = a^2 / (2 strength).
        """
        return (norms**2 / (2.0 * self.strength)) ** (1.0 / (self.p + 1.0))

    def levels(self) -> Levels:
        """Return the exponent and the level, twice the strength."""
        return Levels(self.p, fixed=2.0 * self.strength)

    def __repr__(self) -> str:
        return f"LpPenalty(p={self.p:g}, strength={self.strength:g})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LpPenalty) and (other.p, other.strength) == (self.p, self.strength)

    def __hash__(self) -> int:
        return hash((LpPenalty, self.p, self.strength))
