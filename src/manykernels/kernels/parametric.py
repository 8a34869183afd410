"""Kernels that depend on their weights in any differentiable way: K(d) instead of sum_k d_k K_k."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from manykernels.kernels.base import Kernel


class ParametricKernel(ABC):
    """A kernel k(x, z; d) with parameters d >= 0 to learn; subclass it for one of your own.

    ``bind(X)`` returns the names of the parameters. ``compute`` and ``derivative`` return the kernel and its
    derivative in parameter k between the rows of two matrices. Where all derivatives together cost less than one by
    one, override ``derivative_forms`` as well.

    Pass it as ``MKLClassifier(combination=...)``; the fit is by ``solver="spg"``. The problem need not be convex, and
    there is no duality gap: ``gap_`` is NaN, and the fit stops when the projected gradient is small.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.kernels import ParametricKernel
    >>> from manykernels.norms import LpPenalty
    >>> class Mixture(ParametricKernel):
    ...     "(d_0 + d_1 x'z)^2"
    ...     def bind(self, X):
    ...         return ["constant", "linear"]
    ...     def compute(self, X, Z, weights):
    ...         return (weights[0] + weights[1] * X @ Z.T) ** 2
    ...     def derivative(self, X, Z, weights, k):
    ...         return 2 * (weights[0] + weights[1] * X @ Z.T) * (X @ Z.T if k else 1.0)
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifier(combination=Mixture(), norm=LpPenalty(2)).fit(X[:100], y[:100])
    >>> model.weights_.shape
    (2,)
    >>> float(model.score(X[:100], y[:100]))
    1.0
    """

    @abstractmethod
    def bind(self, X: Any) -> list[str]:
        """Return a name for each parameter, given the training data."""

    def placed(self, table: Any) -> ParametricKernel:
        """Return the kernel for arrays of the table's columns: override it where columns may be selected by name.

        The other methods see arrays, which have no names.
        """
        return self

    @abstractmethod
    def compute(self, X: Any, Z: Any, weights: np.ndarray) -> np.ndarray:
        """Return the kernel between the rows of X and of Z, shape (len(X), len(Z))."""

    @abstractmethod
    def derivative(self, X: Any, Z: Any, weights: np.ndarray, k: int) -> np.ndarray:
        """Return the derivative of the kernel in parameter k, shape (len(X), len(Z))."""

    def derivative_forms(self, X: Any, weights: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Return beta' (dK/dd_k) beta for every parameter, shape (n_parameters,); X holds the rows where beta != 0."""
        return np.array([beta @ self.derivative(X, X, weights, k) @ beta for k in range(weights.size)])

    def fixed(self, weights: np.ndarray, n_features: int) -> Kernel:
        """Return the kernel with these parameters, for data with this many features."""
        return FixedParameters(self, weights)

    def importances(self, X: Any, weights: np.ndarray, n_features: int) -> np.ndarray:
        """Return each feature's part of the weight; evenly unless the kernel knows better."""
        return np.full(n_features, 1.0 / n_features)


class FixedParameters(Kernel):
    """A parametric kernel with its parameters fixed."""

    def __init__(self, kernel: ParametricKernel, weights: np.ndarray) -> None:
        super().__init__()
        self.kernel, self.weights = kernel, weights

    def compute(self, X: Any, Z: Any) -> np.ndarray:
        return self.kernel.compute(X, Z, self.weights)
