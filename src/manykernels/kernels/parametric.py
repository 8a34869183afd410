"""Kernels that depend on their weights in any differentiable way: K(d) instead of sum_k d_k K_k."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.kernels.asked import check_length
from manykernels.kernels.base import Kernel
from manykernels.kernels.bound import Terms
from manykernels.kernels.combining import CombinesToMatrix
from manykernels.kernels.groups import BoundKernel


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


class ParametricBank(CombinesToMatrix):
    """A parametric kernel bound to training data: what an optimizer that needs only values and derivatives works with.

    Parameters
    ----------
    kernel : ParametricKernel
    X : array or CSR matrix of shape (n_samples, n_features)
    sample_weight : ndarray of shape (n_samples,)
    source : DataFrame, optional
        Where column names are looked up, if not in X.
    normalize : {"mean_diag", "trace", "cosine", None}
        "trace" divides the kernel by the number of samples; the others leave it as it is.
    center : bool
        Refused: a kernel that is no sum cannot be centered.
    """

    capabilities = frozenset({"coefficients", "combine", "derivative_forms"})
    is_centered = False
    is_cosine = False
    precision = "double"
    unit_roundoff = 2.0**-53

    def __init__(
        self,
        kernel: ParametricKernel,
        X: Any,
        sample_weight: np.ndarray,
        *,
        source: Any = None,
        normalize: str | None = None,
        center: bool = False,
    ) -> None:
        if center:
            raise ValueError("center=True is for sums of kernels; a kernel that is no sum cannot be centered.")
        kernel = kernel.placed(X if source is None else source)
        self.kernel, self.X, self.sample_weight = kernel, X, sample_weight
        self.names: Sequence[str] = kernel.bind(X)
        self.groups: Sequence[str] = list(self.names)
        self.n_kernels, self.n_samples = len(self.names), X.shape[0]
        self._scale = 1.0 / float(sample_weight.sum()) if normalize == "trace" else 1.0

    def describe_storage(self) -> str:
        """Return words for how the kernel is held."""
        return f"{self.n_kernels} parameters of one kernel, computed anew in each pass"

    def fill(self, weights: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write K(d) to ``out``."""
        np.multiply(self.kernel.compute(self.X, self.X, weights), self._scale, out=out)
        return out

    def derivative_forms(self, weights: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Return beta_t' (dK/dd_k) beta_t, shape (n_tasks, n_kernels)."""
        check_length(beta, self.n_samples)
        out = np.zeros((beta.shape[0], self.n_kernels))
        for t, row in enumerate(beta):
            support = np.flatnonzero(row)
            if support.size:
                out[t] = self._scale * self.kernel.derivative_forms(self.X[support], weights, row[support])
        return out

    def terms(self, weights: np.ndarray) -> Terms:
        """Return the learned kernel as a sum of one."""
        every = np.arange(self.X.shape[1])
        entry = BoundKernel(self.kernel.fixed(weights, every.size), every, "the learned kernel", "")
        return Terms([entry], np.array([self._scale]), None, None)

    def importances(self, weights: np.ndarray, n_features: int) -> np.ndarray:
        """Return each feature's part of the weight."""
        return self.kernel.importances(self.X, weights, n_features)
