"""The p-norm with an l1 part: exact zeros, as many as the user asks for (UFO-MKL: Orabona and Jie, 2011).

    Omega(a) = 1/2 ||a||_p^2 + strength ||a||_1,      p = 2 ln m / (2 ln m - 1) for m kernels

With v = (s - strength)_+ and 1/p + 1/q = 1, its conjugate over a >= 0 is Omega*(s) = 1/2 ||v||_q^2, attained at
a_k = v_k^{q-1} / ||v||_q^{q-2}: zero where s_k is at most the strength.
"""

from __future__ import annotations

import math

import numpy as np

from manykernels.core.checks import check_number
from manykernels.norms.base import Norm, half_square
from manykernels.norms.lp import power_norm


class ElasticNorm(Norm):
    """The regularizer 1/2 ||a||_p^2 + strength ||a||_1 of the component norms a_k = ||f_k||.

    Parameters
    ----------
    strength : float >= 0, default 0
        Of the l1 part. UFO-MKL's alpha, which is stated for the mean of the losses, is ``strength / (C n_samples)``.
    power : float in (1, 2] or None, default None
        p above, that of the component norms; ``LpNorm(p)``, which is about the weights, has 2 p / (1 + p). None stands
        for 2 ln m / (2 ln m - 1) with m kernels, and for 2 with one or two.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.norms import ElasticNorm
    >>> norm = ElasticNorm(strength=1.0, power=2)
    >>> norm.value(np.array([3.0, 4.0]))
    19.5
    >>> norm.conjugate(np.array([4.0, 0.5]))
    4.5
    """

    def __init__(self, strength: float = 0.0, power: float | None = None) -> None:
        self.strength = check_number("strength", strength, low=0, closed="left")
        self.power = None
        if power is not None:
            self.power = check_number("power", power, low=1, high=2, closed="right", more=", or None")

    @property
    def selects(self) -> bool:  # type: ignore[override]
        """Whether the optimal weights are exactly 0 for the kernels that help little."""
        return self.strength > 0

    def power_for(self, n_kernels: int) -> float:
        """Return the power for this many kernels."""
        return self.power if self.power is not None else _conjugate_power(dual_power(n_kernels))

    def value(self, norms: np.ndarray) -> float:
        """Return Omega(a) for component norms of shape (n_kernels,)."""
        return half_square(power_norm(norms, self.power_for(norms.size))) + self.strength * float(norms.sum())

    def conjugate(self, slopes: np.ndarray) -> float:
        """Return Omega*(s) = max over a >= 0 of s'a - Omega(a), for slopes s of shape (n_kernels,)."""
        beyond = np.maximum(slopes - self.strength, 0.0)
        return half_square(power_norm(beyond, _conjugate_power(self.power_for(slopes.size))))

    def weights(self, norms: np.ndarray) -> np.ndarray:
        """Return d_k = a_k / (dOmega/da_k): the weights of the kernel whose machine has these component norms.

        1/2 sum_k a_k^2 / d_k then has the slopes of Omega at a, and bounds Omega from above up to a constant.
        """
        p, total = self.power_for(norms.size), power_norm(norms, self.power_for(norms.size))
        if total == 0.0:
            return np.zeros(norms.size)
        slopes = total * (norms / total) ** (p - 1.0) + self.strength
        return np.divide(norms, slopes, out=np.zeros(norms.size), where=slopes > 0)

    # -- what a problem asks of a norm ----------------------------------------------------------------------------

    def regularizer(self, weights: np.ndarray, quad_forms: np.ndarray) -> float:
        """Return Omega(a) of the predictor with these weights, a_k = d_k sqrt(q_k)."""
        return self.value(weights * np.sqrt(quad_forms))

    def dual_regularizer(self, quad_forms: np.ndarray) -> float:
        """Return Omega*(sqrt(q))."""
        return self.conjugate(np.sqrt(quad_forms))

    def reweigh(self, weights: np.ndarray, quad_forms: np.ndarray) -> np.ndarray:
        """Return the weights that are best for the components of a machine with these weights."""
        better = self.weights(weights * np.sqrt(quad_forms))
        return better if np.any(better) else weights

    def initial_weights(self, n_kernels: int) -> np.ndarray:
        """Return equal weights with sum 1."""
        return np.full(n_kernels, 1.0 / n_kernels)

    def __repr__(self) -> str:
        exponent = "" if self.power is None else f", power={self.power:g}"
        return f"ElasticNorm(strength={self.strength:g}{exponent})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ElasticNorm) and (other.strength, other.power) == (self.strength, self.power)

    def __hash__(self) -> int:
        return hash((ElasticNorm, self.strength, self.power))


def dual_power(n_kernels: int) -> float:
    """Return q = 2 ln m, where q m^{2/q} is smallest; 2 for one or two kernels, for which it would be less than 2.

    Examples
    --------
    >>> from manykernels.norms.elastic import dual_power
    >>> dual_power(2), round(dual_power(1000), 2)
    (2.0, 13.82)
    """
    return max(2.0, 2.0 * math.log(n_kernels))


def _conjugate_power(power: float) -> float:
    return power / (power - 1.0)
