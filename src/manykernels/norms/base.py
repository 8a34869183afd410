"""What a norm is: the part of a problem that weights kernels against one another, and its dual."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from manykernels.core.constructors import HasParameters


class Projection(Protocol):
    """What projected gradients need: they minimize the machine's value plus a penalty of the weights."""

    def penalty(self, weights: np.ndarray) -> float:
        """Return r(d), 0 where the weights are constrained."""

    def penalty_gradient(self, weights: np.ndarray) -> np.ndarray:
        """Return its derivatives."""

    def project(self, weights: np.ndarray) -> np.ndarray:
        """Return the nearest weights that are allowed."""

    def prox(self, values: np.ndarray, length: float | np.ndarray) -> np.ndarray | None:
        """Return the allowed d that minimizes |d - values|^2 / 2 + length * r(d), or None where that is not known."""


@dataclass(frozen=True)
class Levels:
    """What second-order methods need: at the optimum, d_k > 0 only where q_k reaches the level tau of its group.

    Attributes
    ----------
    p : float
        q_k = tau d_k^(p-1); with p = 1, q_k = tau for d_k > 0 and q_k <= tau for all.
    fixed : float or None
        The level itself, where the weights are penalized; None where they are constrained and the level is sought.
    groups : MixedNorm or None
        The norm that weights the levels of the groups; None where all kernels share one level.
    """

    p: float
    fixed: float | None = None
    groups: Any = None

    @property
    def is_finite(self) -> bool:
        """Whether there is anything to learn: with p = inf all weights are 1."""
        return bool(np.isfinite(self.p))

    @property
    def is_plain(self) -> bool:
        """Whether the weights are constrained, and all kernels are one group."""
        return self.fixed is None and self.groups is None


class Norm(HasParameters, ABC):
    """A norm on the component norms a_k = ||f_k||, or a penalty of the weights, with its dual.

    Solvers ask for what else it offers: weights in closed form (:meth:`reweigh`), a :meth:`projection`, and
    :meth:`levels`.

    Attributes
    ----------
    has_dual : bool
        Whether the dual value is known: without it there is no duality gap.
    bounds_dual : bool
        Whether the dual point is shrunk to where the conjugate is smallest: it may be infinite, or huge.
    selects : bool
        Whether the optimal weights are exactly 0 for kernels that do not help.
    has_closed_form : bool
        Whether the best weights are known in closed form. A class that defines :meth:`weights` or :meth:`reweigh` has
        one, unless it says otherwise.
    """

    has_dual: bool = True
    bounds_dual: bool = False
    selects: bool = False
    has_closed_form: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "has_closed_form" not in vars(cls) and {"weights", "reweigh"} & vars(cls).keys():
            cls.has_closed_form = True

    @abstractmethod
    def regularizer(self, weights: np.ndarray, quad_forms: np.ndarray) -> float:
        """Return the regularizer of the predictor with these weights, a_k = d_k sqrt(q_k)."""

    @abstractmethod
    def dual_regularizer(self, quad_forms: np.ndarray) -> float:
        """Return the conjugate of the regularizer at sqrt(q)."""

    def dual_limit(self, quad_forms: np.ndarray) -> float:
        """Return the largest t in [0, 1] at which the conjugate at t^2 q is finite."""
        return 1.0

    @abstractmethod
    def initial_weights(self, n_kernels: int) -> np.ndarray:
        """Return weights that treat all kernels alike."""

    def scaled(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights scaled to the boundary of their constraint, if they have one."""
        return weights

    def bind(self, groups: Sequence[str]) -> Norm:
        """Return the norm for kernels of these groups."""
        return self

    def take(self, indices: np.ndarray) -> Norm:
        """Return the norm of some of the kernels."""
        return self

    def weights(self, norms: np.ndarray) -> np.ndarray | None:
        """Return the weights that are best for these component norms, or None where there is no closed form."""
        return None

    def reweigh(self, weights: np.ndarray, quad_forms: np.ndarray) -> np.ndarray | None:
        """Return better weights, given the quadratic forms of a machine with these, or None without a closed form."""
        return self.weights(weights * np.sqrt(quad_forms))

    def projection(self) -> Projection | None:
        """Return the object that projects the weights, or None."""
        return None

    def levels(self) -> Levels | None:
        """Return what second-order methods work with, or None."""
        return None


class ComponentNorm(Norm):
    """A norm N(a) of the component norms a_k = ||f_k||, which enters the problem as 1/2 N(a)^2.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.norms import LpNorm
    >>> LpNorm(1).regularizer(np.array([0.5, 0.5]), np.array([4.0, 16.0]))  # a = (1, 2)
    4.5
    """

    @abstractmethod
    def value(self, norms: np.ndarray) -> float:
        """Return N(a) for component norms of shape (n_kernels,)."""

    @abstractmethod
    def dual_square(self, quad_forms: np.ndarray) -> float:
        """Return N*(sqrt(q))^2 for quadratic forms of shape (n_kernels,)."""

    def regularizer(self, weights: np.ndarray, quad_forms: np.ndarray) -> float:
        """Return 1/2 N(a)^2 of the predictor with these weights, a_k = d_k sqrt(q_k)."""
        return half_square(self.value(weights * np.sqrt(quad_forms)))

    def dual_regularizer(self, quad_forms: np.ndarray) -> float:
        """Return 1/2 N*(sqrt(q))^2."""
        return 0.5 * self.dual_square(quad_forms)


def half_square(value: float) -> float:
    """Return value^2 / 2, infinite where it overflows; a power of Python's own numbers would raise."""
    return 0.5 * (float(value) * float(value))
