"""Losses with derivatives: squared, squared hinge, logistic."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from manykernels.losses.base import SignedPart, SmoothLoss
from manykernels.losses.codes import LOGISTIC, SQUARED, SQUARED_HINGE, Compiled


class Squared(SmoothLoss):
    """(y - z)^2 / 2: kernel ridge regression, least-squares classification."""

    name = "squared"
    regression = True
    quadratic = True
    shifts = True

    def compiled(self) -> Compiled:
        return Compiled(SQUARED)

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return 0.5 * (y - z) ** 2

    def conjugate(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray) -> np.ndarray:
        return -y * beta + beta * over(beta, 2.0 * C)

    def domain(self, y: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        end = np.broadcast_to(np.where(C > 0, np.inf, 0.0), np.shape(y))
        return -end, +end

    def dual_slope(self, sign: float, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return x / C - y

    def dual_curvature(self, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.broadcast_to(1.0 / C, x.shape)

    def dual_stiffness(self, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.broadcast_to(1.0 / C, np.shape(y))

    def derivative(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return z - y

    def curvature(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.ones_like(z)

    def best_intercept(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> float:
        total = float(C.sum())
        return float(C @ (y - z)) / total if total > 0 else 0.0


class SquaredHinge(SmoothLoss):
    """max(0, 1 - y z)^2, for y in {-1, 1}."""

    name = "squared_hinge"

    def compiled(self) -> Compiled:
        return Compiled(SQUARED_HINGE)

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 1.0 - y * z) ** 2

    def conjugate(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray) -> np.ndarray:
        return -y * beta + beta * over(beta, 4.0 * C)

    def domain(self, y: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        end = np.where(C > 0, np.inf, 0.0)
        return np.where(y > 0, 0.0, -end), np.where(y > 0, end, 0.0)

    def dual_slope(self, sign: float, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return x / (2.0 * C) - y

    def dual_curvature(self, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.broadcast_to(0.5 / C, x.shape)

    def dual_stiffness(self, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.broadcast_to(0.5 / C, np.shape(y))

    def derivative(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return -2.0 * y * np.maximum(0.0, 1.0 - y * z)

    def curvature(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.where(y * z < 1.0, 2.0, 0.0)

    def quadratic_parts(self, y: np.ndarray, C: np.ndarray) -> list[SignedPart]:
        return [SignedPart(y, np.where(C > 0, np.inf, 0.0), np.full(y.size, -1.0), over(np.full_like(C, 0.5), C))]


class Logistic(SmoothLoss):
    """log(1 + exp(-y z)), for y in {-1, 1}: kernel logistic regression."""

    name = "logistic"
    gives_probabilities = True

    def compiled(self) -> Compiled:
        return Compiled(LOGISTIC)

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -y * z)

    def conjugate(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray) -> np.ndarray:
        share = np.clip(over(y * beta, C), 0.0, 1.0)
        # A share may be far below the rounding of 1: log(1 - share) would have none of its digits.
        return C * (xlogy(share, share) + xlog1py(1.0 - share, -share))

    def domain(self, y: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.minimum(0.0, y * C), np.maximum(0.0, y * C)

    def dual_slope(self, sign: float, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return y * np.log(y * x / (C - y * x))

    def dual_curvature(self, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return C / (y * x * (C - y * x))

    def dual_stiffness(self, y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.broadcast_to(4.0 / C, np.shape(y))

    def derivative(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return -y * expit(-y * z)

    def curvature(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return expit(z) * expit(-z)


def over(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide where the denominator is positive; a sample of weight 0 has beta = 0 and conjugate 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    return np.divide(numerator, denominator, out=np.zeros(shape), where=np.asarray(denominator) > 0)
