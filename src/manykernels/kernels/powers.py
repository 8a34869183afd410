"""Powers of a weighted sum of kernels: (sum_k d_k K_k)^degree (Cortes, Mohri and Rostamizadeh, 2009)."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from manykernels.core.checks import check_count
from manykernels.kernels.base import Kernel
from manykernels.kernels.columns import column_names, describe_columns, resolve_columns
from manykernels.kernels.kernel_bank import KernelBank
from manykernels.kernels.parametric import ParametricKernel


class PowerOfSum(ParametricKernel):
    """The kernel (sum_k d_k k_k(x, z))^degree with weights d >= 0 to learn: all products at once, with tied weights.

    Parameters
    ----------
    base : list of Kernel
    degree : int >= 1

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKLRegressor
    >>> from manykernels.kernels import Linear, PowerOfSum
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> kernel = PowerOfSum([Linear(columns=[j]) for j in range(4)], degree=2)
    >>> model = MKLRegressor(combination=kernel, norm=2.0, C=100.0).fit(X, X[:, 0] * X[:, 1])
    >>> sorted(model.weights_.argsort()[::-1][:2].tolist())
    [0, 1]
    """

    def __init__(self, base: Any, degree: int) -> None:
        self.degree = check_count("degree", degree)
        bank = base if isinstance(base, KernelBank) else KernelBank(base)
        self.kernels = [kernel for kernel in bank.written_out() if isinstance(kernel, Kernel)]
        self.names: list[str] | None = None

    def placed(self, table: Any) -> PowerOfSum:
        """Return the kernel with positions in the place of column names, and with the names of its parameters."""
        out, kernels = copy(self), [copy(kernel) for kernel in self.kernels]
        for kernel in kernels:
            kernel.columns = resolve_columns(kernel.columns, table)
        out.kernels, out.names = kernels, self.bind(table)
        return out

    def bind(self, X: Any) -> list[str]:
        if self.names is not None:
            return self.names
        names = column_names(X)
        places = [resolve_columns(kernel.columns, X) for kernel in self.kernels]
        return [
            kernel.name(kernel.label or describe_columns(kernel.columns, columns, names, X.shape[1]))
            for kernel, columns in zip(self.kernels, places, strict=True)
        ]

    def compute(self, X: Any, Z: Any, weights: np.ndarray) -> np.ndarray:
        return self._sum(X, Z, weights) ** self.degree

    def derivative(self, X: Any, Z: Any, weights: np.ndarray, k: int) -> np.ndarray:
        return self.degree * self._sum(X, Z, weights) ** (self.degree - 1) * self._one(k, X, Z)

    def derivative_forms(self, X: Any, weights: np.ndarray, beta: np.ndarray) -> np.ndarray:
        A = self.degree * self._sum(X, X, weights) ** (self.degree - 1)
        features_or_none = [self._features(k, X) for k in range(weights.size)]
        features = [factor for factor in features_or_none if factor is not None]
        if len(features) < weights.size:
            A *= np.outer(beta, beta)
            return np.array([np.vdot(A, self._one(k, X, X)) for k in range(weights.size)])
        # beta' (A o F F') beta is the sum of (beta o f)' A (beta o f) over the columns f: one product for all kernels.
        stacked = beta[:, None] * np.hstack(features)
        owner = np.repeat(np.arange(weights.size), [factor.shape[1] for factor in features])
        return np.bincount(owner, np.sum(stacked * (A @ stacked), axis=0), minlength=weights.size)

    def _sum(self, X: Any, Z: Any, weights: np.ndarray) -> np.ndarray:
        total = np.zeros((X.shape[0], Z.shape[0]))
        for k in np.flatnonzero(weights):
            total += weights[k] * self._one(int(k), X, Z)
        return total

    def _one(self, k: int, X: Any, Z: Any) -> np.ndarray:
        columns = resolve_columns(self.kernels[k].columns, X)
        return self.kernels[k].compute(X[:, columns], Z[:, columns])

    def _features(self, k: int, X: Any) -> np.ndarray | None:
        return self.kernels[k].features(X[:, resolve_columns(self.kernels[k].columns, X)])

    def importances(self, X: Any, weights: np.ndarray, n_features: int) -> np.ndarray:
        """Return each feature's part of the weight, a kernel's being divided over its columns."""
        out = np.zeros(n_features)
        for weight, kernel in zip(weights, self.kernels, strict=True):
            columns = resolve_columns(kernel.columns, X)
            out[columns] += weight / columns.size
        return out
