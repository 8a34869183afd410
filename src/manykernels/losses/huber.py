"""Huber's loss."""

from __future__ import annotations

import numpy as np

from manykernels.core.checks import check_number
from manykernels.losses.base import SignedPart, SmoothLoss
from manykernels.losses.smooth import over


class Huber(SmoothLoss):
    """r^2 / 2 where |r| <= delta, and delta (|r| - delta / 2) beyond, with r = y - z: squares, straight for outliers.

    The conjugate of C times the loss is that of the squared loss, -y beta + beta^2 / (2 C), where |beta| <= C delta.

    Parameters
    ----------
    delta : float > 0, default 1.0
        The residual, in units of the target, from which the loss grows no faster.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.losses import Huber
    >>> Huber(1.0).value(np.zeros(3), np.array([0.5, 1.0, 3.0]))
    array([0.125, 0.5  , 2.5  ])
    """

    name = "huber"
    classification = False
    regression = True
    shifts = True

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = check_number("delta", delta, low=0)

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        size = np.abs(y - z)
        near = np.minimum(size, self.delta)
        return near * (size - 0.5 * near)

    def conjugate(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray) -> np.ndarray:
        return -y * beta + beta * over(beta, 2.0 * C)

    def domain(self, y: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        end = np.broadcast_to(self.delta * C, np.shape(y))
        return -end, +end

    def dual_slope(self, sign: float, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return x / C - y

    def dual_curvature(self, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.broadcast_to(1.0 / C, x.shape)

    def dual_stiffness(self, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.broadcast_to(1.0 / C, np.shape(y))

    def derivative(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.clip(z - y, -self.delta, self.delta)

    def curvature(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.where(np.abs(y - z) < self.delta, 1.0, 0.0)

    def quadratic_parts(self, y: np.ndarray, C: np.ndarray) -> list[SignedPart]:
        rates = over(np.ones(y.size), C)
        return [SignedPart(sign, self.delta * C, -sign * y, rates) for sign in (np.ones(y.size), -np.ones(y.size))]

    def __repr__(self) -> str:
        return f"Huber(delta={self.delta:g})"
