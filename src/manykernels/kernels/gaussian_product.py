"""Products of Gaussian kernels: prod_k exp(-d_k D_k), one weight for each feature or group of columns.

With D_k = |x_k - z_k|^2 / (2 width_k^2) on the columns of kernel k, the product is a Gaussian kernel on scaled columns,

    K(d) = exp(-sum_j s_j (x_j - z_j)^2),     s_j = sum over the kernels k that see column j of d_k / (2 width_k^2),

so no D_k is ever formed. The derivative is dK/dd_k = -D_k o K (entry by entry), and with W = beta beta' o K

    beta' (dK/dd_k) beta  =  -sum_{j in k} c_j / (2 width_k^2),     c_j = 2 sum_i x_ij^2 (W 1)_i - 2 x_j' W x_j

for all columns at once: a matrix product, as much work as the kernel itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manykernels.compute.pairwise import gaussian_rate, scaled_distances, squared_distances
from manykernels.compute.threads import parallel
from manykernels.kernels.base import Gaussian, Kernel
from manykernels.kernels.parametric import ParametricKernel
from manykernels.kernels.shared_distances import BoundKernel

_BLOCK_ENTRIES = 1 << 18

# Widths below it, and above its inverse, have no square.
_LEAST_WIDTH = 1e-150


class ScaledGaussian(Kernel):
    """exp(-sum_j scales_j (x_j - z_j)^2): a Gaussian kernel with a width of its own for each column.

    Parameters
    ----------
    scales : sequence of float >= 0
        One for each column.
    columns, group, label
        As for :class:`Kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.gaussian_product import ScaledGaussian
    >>> ScaledGaussian([1.0, 0.0]).compute(np.array([[0.0, 5.0]]), np.array([[1.0, 7.0]])).round(4)
    array([[0.3679]])
    """

    def __init__(
        self,
        scales: Sequence[float] | np.ndarray,
        columns: Any = None,
        group: str | None = None,
        label: str | None = None,
    ) -> None:
        super().__init__(columns, group, label)
        self.scales = np.asarray(scales, dtype=np.float64).tolist()

    def compute(self, X: Any, Z: Any) -> np.ndarray:
        root = np.sqrt(np.asarray(self.scales))
        left, right = _scaled(X, root), _scaled(Z, root)
        out = np.empty((X.shape[0], Z.shape[0]))
        step = max(1, _BLOCK_ENTRIES // max(1, Z.shape[0]))

        def fill(start: int) -> None:
            block, unit = scaled_distances(left[start : start + step], right)
            # exp(-D) is the Gaussian kernel of width sqrt(1/2).
            block *= -gaussian_rate(np.sqrt(0.5), unit)
            np.exp(block, out=out[start : start + step])

        parallel(fill, range(0, X.shape[0], step))
        return out

    def diagonal(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0])

    @property
    def trusted(self) -> bool:
        """True: it is a Gaussian kernel."""
        return True


def _scaled(X: Any, root: np.ndarray) -> Any:
    """Return the columns times ``root``, without those whose factor is 0."""
    used = np.flatnonzero(root)
    used = used if used.size else np.arange(1)
    columns = X[:, used]
    return columns.multiply(root[used]).tocsr() if sp.issparse(columns) else columns * root[used]


class GaussianProduct(ParametricKernel):
    """The product of the given Gaussian kernels, each raised to a weight; see the module's docstring."""

    def __init__(self, bound: Sequence[BoundKernel]) -> None:
        for entry in bound:
            if not isinstance(entry.kernel, Gaussian):
                raise TypeError(
                    f"combination='product' needs Gaussian kernels, got {entry.name!r}; for another product, pass a "
                    "ParametricKernel as combination."
                )
            if not _LEAST_WIDTH <= entry.kernel.width <= 1.0 / _LEAST_WIDTH:
                needs = f"widths from {_LEAST_WIDTH} to {1.0 / _LEAST_WIDTH}"
                raise ValueError(f"combination='product' needs {needs}, got {entry.name!r}.")
        self.bound = list(bound)
        self.factors = np.array([0.5 / entry.kernel.width**2 for entry in bound])  # type: ignore[attr-defined]
        self._members: sp.csr_array | None = None

    def bind(self, X: Any) -> list[str]:
        return [entry.name for entry in self.bound]

    def scales(self, weights: np.ndarray, n_features: int) -> np.ndarray:
        """Return s_j for each column."""
        return (weights * self.factors) @ self._membership(n_features)

    def _membership(self, n_features: int) -> sp.csr_array:
        """Return the (n_kernels, n_features) matrix of ones where a kernel sees a column."""
        if self._members is None or self._members.shape[1] != n_features:
            sizes = [entry.positions.size for entry in self.bound]
            columns = np.concatenate([entry.positions for entry in self.bound])
            ends = np.concatenate([[0], np.cumsum(sizes)])
            self._members = sp.csr_array((np.ones(columns.size), columns, ends), shape=(len(sizes), n_features))
        return self._members

    def compute(self, X: Any, Z: Any, weights: np.ndarray) -> np.ndarray:
        return ScaledGaussian(self.scales(weights, X.shape[1])).compute(X, Z)

    def derivative(self, X: Any, Z: Any, weights: np.ndarray, k: int) -> np.ndarray:
        positions = self.bound[k].positions
        distances = squared_distances(X[:, positions], Z[:, positions])
        return -self.factors[k] * distances * self.compute(X, Z, weights)

    def derivative_forms(self, X: Any, weights: np.ndarray, beta: np.ndarray) -> np.ndarray:
        if not sp.issparse(X):
            X = X - X.mean(axis=0)  # differences do not change, and large offsets would cost digits
        W = self.compute(X, X, weights) * beta
        W *= beta[:, None]
        squares = X.multiply(X) if sp.issparse(X) else X * X
        products = X.multiply(W @ X) if sp.issparse(X) else X * (W @ X)
        by_column = 2.0 * np.asarray(squares.T @ W.sum(axis=1)).ravel() - 2.0 * np.asarray(products.sum(axis=0)).ravel()
        return -self.factors * (self._membership(X.shape[1]) @ by_column)

    def fixed(self, weights: np.ndarray, n_features: int) -> Kernel:
        return ScaledGaussian(self.scales(weights, n_features))

    def importances(self, X: Any, weights: np.ndarray, n_features: int) -> np.ndarray:
        """Return s_j times the variance of column j: what the column adds to the exponent, in no unit."""
        if sp.issparse(X):
            variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - np.asarray(X.mean(axis=0)).ravel() ** 2
        else:
            variance = X.var(axis=0)
        return self.scales(weights, n_features) * variance
