"""The quantile loss."""

from __future__ import annotations

import numpy as np

from manykernels.compute.scales import deviation_unit
from manykernels.core.checks import check_number
from manykernels.losses.base import Box, Loss
from manykernels.losses.piecewise import minimize_piecewise_linear


class Quantile(Loss):
    """q max(0, y - z) + (1 - q) max(0, z - y): regression to a quantile of the target, not to its mean.

    With r = y - z, the conjugate of C times the loss is -y beta where -(1 - q) C <= beta <= q C: each residual above
    pulls with q C, each below with (1 - q) C, so that a share q of the targets ends up below the prediction.

    Parameters
    ----------
    quantile : float between 0 and 1, default 0.5
        The share q; 0.5 is the median.

    Examples
    --------
    Half of the samples lie above the median, a tenth above the quantile 0.9:

    >>> import numpy as np
    >>> from manykernels import MKLRegressor
    >>> from manykernels.losses import Quantile
    >>> x = np.linspace(-3, 3, 200)[:, None]
    >>> y = np.sin(x[:, 0]) + np.random.default_rng(0).exponential(size=200)
    >>> [round(float(np.mean(y > MKLRegressor(loss=Quantile(q)).fit(x, y).predict(x))), 1) for q in (0.5, 0.9)]
    [0.5, 0.1]
    """

    name = "quantile"
    classification = False
    regression = True
    shifts = True

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = check_number("quantile", quantile, low=0, high=1)

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.maximum(self.quantile * (y - z), (1.0 - self.quantile) * (z - y))

    def conjugate(self, y: np.ndarray, beta: np.ndarray, C: np.ndarray) -> np.ndarray:
        return -y * beta

    def domain(self, y: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        C = np.broadcast_to(C, np.shape(y))
        return -(1.0 - self.quantile) * C, self.quantile * C

    def box(self, y: np.ndarray, C: np.ndarray) -> Box:
        return Box(y, *self.domain(y, C), unit=deviation_unit(y))

    def dual_slope(self, sign: float, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return -y

    def dual_curvature(self, y: np.ndarray, x: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def dual_pull(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.abs(y - z), C * np.where(y > z, self.quantile, np.where(y < z, self.quantile - 1.0, 0.0))

    def best_intercept(self, y: np.ndarray, z: np.ndarray, C: np.ndarray) -> float:
        return minimize_piecewise_linear(y - z, C, -self.quantile * float(C.sum()))

    def __repr__(self) -> str:
        return f"Quantile({self.quantile:g})"
