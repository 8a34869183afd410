"""The loss of the one-class support vector machine, whose coefficients have a given sum."""

from __future__ import annotations

import numpy as np

from manykernels.core.checks import check_number
from manykernels.losses.base import Loss
from manykernels.losses.piecewise import minimize_piecewise_linear
from manykernels.losses.quantile import Quantile


class OneClass(Loss):
    """max(0, -z), beside an intercept b that costs nu b sum_i C_i: most predictions are to be positive, with a low b.

    With rho = -b the problem is the one-class support vector machine's: of its scores f(x), all but a share nu of the
    samples are to have a high rho and more,

        minimize over f, rho      1/2 N(a)^2 + sum_i C_i max(0, rho - f(x_i)) - nu rho sum_i C_i
        maximize over beta        -1/2 N*(sqrt(q))^2,     0 <= beta_i <= C_i,     1'beta = nu sum_i C_i.

    The conjugate is 0. The coefficients have another sum than those of other losses, 1'beta = 0, but what they differ
    by from ``nu C`` sums to 0 again: see :meth:`around_center`.

    Parameters
    ----------
    nu : float in (0, 1], default 0.5
        At most this share of the samples has scores below rho, and at least this share has a coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.losses.threshold import OneClass
    >>> loss = OneClass(0.5)
    >>> loss.center(np.array([1.0, 3.0]))
    array([0.5, 1.5])
    >>> loss.best_intercept(np.ones(3), np.array([2.0, 5.0, 9.0]), np.ones(3))  # half of the scores are above 5
    -5.0
    """

    name = "one_class"
    classification = False

    def __init__(self, nu: float = 0.5) -> None:
        self.nu = check_number("nu", nu, low=0, high=1, closed="right")

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, -z)

    def conjugate(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.zeros(np.broadcast_shapes(np.shape(y), np.shape(beta)))

    def domain(self, y: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        C = np.broadcast_to(C, np.shape(y))
        return np.zeros(C.shape), C

    def center(self, C: np.ndarray) -> np.ndarray:
        """Return nu C."""
        return self.nu * C

    def around_center(self) -> Loss:
        """Return the loss of beta - nu C: that of the quantile 1 - nu, since -nu C <= beta - nu C <= (1 - nu) C.

        Their targets are -K nu C: with the kernel fixed, the one-class machine is a regression to a quantile.
        """
        return Quantile(1.0 - self.nu)

    def dual_slope(self, sign: float, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def dual_curvature(self, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def dual_pull(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.abs(z), np.where(z < 0, C, 0.0)

    def best_intercept(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> float:
        return minimize_piecewise_linear(-z, C, -(1.0 - self.nu) * float(C.sum()))

    def __repr__(self) -> str:
        return f"OneClass(nu={self.nu:g})"
