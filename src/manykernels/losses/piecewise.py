"""Piecewise linear losses: hinge and epsilon-insensitive."""

from __future__ import annotations

import numpy as np

from manykernels.compute.scales import deviation_unit
from manykernels.losses.base import Box, Loss
from manykernels.losses.codes import EPSILON_INSENSITIVE, HINGE, Compiled


def minimize_piecewise_linear(breaks: np.ndarray, jumps: np.ndarray, slope: float) -> float:
    """Return a minimizer of the convex piecewise linear function of one variable.

    The slope is ``slope`` (<= 0) at minus infinity and grows by ``jumps[i]``
    at ``breaks[i]``. Where a whole interval minimizes, its middle is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.losses.piecewise import minimize_piecewise_linear
    >>> minimize_piecewise_linear(np.array([0.0, 1.0, 5.0]), np.array([2.0, 2.0, 2.0]), -3.0)  # the median
    1.0
    """
    order = np.argsort(breaks, kind="stable")
    breaks, slopes = breaks[order], slope + np.cumsum(jumps[order])
    # A slope that is zero up to rounding marks an interval of minimizers.
    slack = 1e-12 * float(np.sum(jumps))
    first = min(int(np.searchsorted(slopes, -slack)), breaks.size - 1)
    last = min(int(np.searchsorted(slopes, slack, side="right")), breaks.size - 1)
    return float(0.5 * (breaks[first] + breaks[last]))


class Hinge(Loss):
    """max(0, 1 - y z), for y in {-1, 1}: the support vector machine."""

    name = "hinge"

    def compiled(self) -> Compiled:
        return Compiled(HINGE)

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 1.0 - y * z)

    def conjugate(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray) -> np.ndarray:
        return -y * beta

    def domain(self, y: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.minimum(0.0, y * C), np.maximum(0.0, y * C)

    def box(self, y: np.ndarray, C: np.ndarray) -> Box:
        return Box(y, *self.domain(y, C))

    def dual_slope(self, sign: float, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return -y

    def dual_curvature(self, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def dual_pull(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        short = 1.0 - y * z
        return np.abs(short), np.where(short > 0, y * C, 0.0)

    def best_intercept(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> float:
        return minimize_piecewise_linear(y - z, C, -float(C[y > 0].sum()))


class EpsilonInsensitive(Loss):
    """max(0, |y - z| - epsilon): support vector regression.

    Parameters
    ----------
    epsilon : float, default 0.1
        Half the width of the tube inside which a residual costs nothing.
    """

    name = "epsilon_insensitive"
    classification = False
    regression = True
    shifts = True

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = epsilon

    def compiled(self) -> Compiled:
        return Compiled(EPSILON_INSENSITIVE, self.epsilon)

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, np.abs(y - z) - self.epsilon)

    def conjugate(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray) -> np.ndarray:
        return -y * beta + self.epsilon * np.abs(beta)

    def domain(self, y: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        C = np.broadcast_to(C, np.shape(y))
        return -C, +C

    def box(self, y: np.ndarray, C: np.ndarray) -> Box:
        return Box(y, *self.domain(y, C), epsilon=self.epsilon, unit=deviation_unit(y))

    def dual_parts(self, y: np.ndarray, C: np.ndarray) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Return the positive and the negative part of beta: the conjugate has a kink at 0."""
        C = np.broadcast_to(C, np.shape(y))
        return [(1.0, np.zeros_like(C), C), (-1.0, np.zeros_like(C), C)]

    def dual_slope(self, sign: float, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return self.epsilon - sign * y

    def dual_curvature(self, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def dual_pull(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        outside = np.abs(y - z) - self.epsilon
        return np.abs(outside), np.where(outside > 0, np.sign(y - z) * C, 0.0)

    def best_intercept(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> float:
        residual = y - z
        breaks = np.concatenate([residual - self.epsilon, residual + self.epsilon])
        return minimize_piecewise_linear(breaks, np.concatenate([C, C]), -float(C.sum()))

    def __repr__(self) -> str:
        return f"EpsilonInsensitive(epsilon={self.epsilon:g})"
