"""What a loss is: its value, its conjugate, the domain of the dual, the best intercept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from manykernels.core.constructors import HasParameters
from manykernels.losses.codes import MayBeCompiled


class SignedPart(NamedTuple):
    """A part x of the coefficients, beta = sum sign * x, that costs cost'x + curvature'x^2 / 2 in the conjugate.

    Attributes
    ----------
    sign, range, cost, curvature : ndarrays of shape (n_samples,)
        0 <= x <= range, which may be infinite where the curvature is positive.
    """

    sign: np.ndarray
    range: np.ndarray
    cost: np.ndarray
    curvature: np.ndarray


@dataclass(frozen=True)
class Box:
    """The dual of a piecewise linear loss, for one task.

        maximize over beta    linear'beta - epsilon sum |beta_i| - 1/2 beta' K beta,    lower <= beta <= upper

    Attributes
    ----------
    linear, lower, upper : ndarrays of shape (n_samples,)
        The bounds enclose 0.
    epsilon : float
    unit : float
        The size of the targets, by which a tolerance of the gradient is measured.
    """

    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    epsilon: float = 0.0
    unit: float = 1.0

    def parts(self) -> list[SignedPart]:
        """Return the parts of which the conjugate is a linear function."""
        if self.epsilon == 0.0 and not np.any((self.lower < 0) & (self.upper > 0)):
            signs = [np.where(self.lower < 0, -1.0, 1.0)]
        else:
            signs = [np.ones(self.linear.size), -np.ones(self.linear.size)]
        straight = np.zeros(self.linear.size)
        return [
            SignedPart(s, np.where(s > 0, self.upper, -self.lower), self.epsilon - s * self.linear, straight)
            for s in signs
        ]


class Loss(MayBeCompiled, HasParameters, ABC):
    """A convex loss of one prediction z for the target y.

    All methods work elementwise on arrays that broadcast. ``C`` is the
    weight of each sample, so that a sample costs ``C * value(y, z)``.

    A loss may offer several things to inner solvers: a ``smooth`` one has derivatives (see :class:`SmoothLoss`), a
    ``quadratic`` one is half the squared residual, and a piecewise linear one has a :meth:`box`.

    Attributes
    ----------
    name : str
        By which estimators take a loss of the library.
    classification, regression : bool
        Whether the targets may be -1 and 1, and whether they may be any numbers.
    gives_probabilities : bool
        Whether the sigmoid of a prediction is the probability of the target 1.
    smooth, quadratic : bool
    has_box : bool
        Whether the loss is piecewise linear. A class that defines :meth:`box` is, unless it says otherwise.
    shifts : bool
        Whether the loss is a function of y - z: an offset of the targets can then be moved to the intercept beforehand.
    """

    name: str
    classification: bool = True
    regression: bool = False
    gives_probabilities: bool = False
    smooth: bool = False
    quadratic: bool = False
    has_box: bool = False
    shifts: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "has_box" not in vars(cls) and "box" in vars(cls):
            cls.has_box = True

    @abstractmethod
    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the loss of the predictions z."""

    @abstractmethod
    def conjugate(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Return sup_z (-beta z - C value(y, z)), for beta inside :meth:`domain`."""

    @abstractmethod
    def domain(self, y: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest and highest beta at which the conjugate is finite; both enclose 0."""

    def dual_parts(self, y: np.ndarray, C: np.ndarray) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Return (sign, lower, upper) of the parts x with beta = sum sign * x on which the conjugate is smooth."""
        return [(1.0, *self.domain(y, C))]

    @abstractmethod
    def dual_slope(self, sign: float, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Return the derivative of the conjugate in the part x of the given sign, inside the domain."""

    @abstractmethod
    def dual_curvature(self, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Return the second derivative of the conjugate in the part x."""

    @abstractmethod
    def dual_pull(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the slope and the minimizer of e(beta) = C value(y, z) + conjugate(y, beta) + beta z >= 0.

        For a piecewise linear loss, e(beta) >= slope * |beta - minimizer|; for a smooth one, whose slope is 0,
        e(beta) >= stiffness / 2 * (beta - minimizer)^2.
        """

    def center(self, C: np.ndarray) -> np.ndarray | None:
        """Return coefficients in the domain whose sum is that of beta beside an intercept; None where it is 0.

        The intercept b then costs b times that sum. Solvers look for beta - center, which sums to 0.
        """
        return None

    def around_center(self) -> Loss:
        """Return the loss whose machine, with the targets -K center, has the coefficients beta - center."""
        return self

    def box(self, y: np.ndarray, C: np.ndarray) -> Box | None:
        """Return the dual of one task, for y and C of shape (n,); None where the loss is not piecewise linear."""
        return None

    def quadratic_parts(self, y: np.ndarray, C: np.ndarray) -> list[SignedPart] | None:
        """Return parts of one task that the conjugate is quadratic in, for y and C of shape (n,); None: it has none."""
        box = self.box(y, C)
        return None if box is None else box.parts()

    def dual_stiffness(self, y: np.ndarray, C: np.ndarray) -> np.ndarray | None:
        """Return the least second derivative of the conjugate, or None if that is 0."""
        return None

    @abstractmethod
    def best_intercept(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> float:
        """Return the b that minimizes sum_i C_i value(y_i, z_i + b), for 1-d arrays."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class SmoothLoss(Loss):
    """A loss with two derivatives; the second may jump."""

    smooth = True

    @abstractmethod
    def derivative(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the derivative in z."""

    @abstractmethod
    def curvature(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the second derivative in z."""

    def dual_pull(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros_like(z), -C * self.derivative(y, z)

    def best_intercept(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> float:
        """Return the b where the sum of the derivatives vanishes: Newton's method inside a bracket."""
        low, high = _bracket(lambda b: float(C @ self.derivative(y, z + b)))
        b = 0.0 if low <= 0.0 <= high else 0.5 * (low + high)
        for _ in range(200):
            slope = float(C @ self.derivative(y, z + b))
            if slope == 0.0:
                break
            low, high = (b, high) if slope < 0 else (low, b)
            curvature = float(C @ self.curvature(y, z + b))
            newton = b - slope / curvature if curvature > 0 else np.inf
            after = newton if low < newton < high else 0.5 * (low + high)
            if abs(after - b) <= 4e-16 * max(1.0, abs(b)):
                break
            b = after
        return b


def _bracket(slope) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Return an interval at whose ends an increasing function has opposite signs."""
    low, high = -1.0, 1.0
    for _ in range(200):
        if slope(low) <= 0.0:
            break
        low *= 2.0
    for _ in range(200):
        if slope(high) >= 0.0:
            break
        high *= 2.0
    return low, high
