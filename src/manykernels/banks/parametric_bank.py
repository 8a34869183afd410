"""One kernel with parameters, bound to training data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.banks.argument_checks import check_length
from manykernels.banks.combining import CombinesToMatrix
from manykernels.banks.learned import Terms
from manykernels.kernels.parametric import ParametricKernel
from manykernels.kernels.shared_distances import BoundKernel


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
        Refused: a kernel that is not a sum cannot be centered.
    """

    can = frozenset({"coefficients", "combine", "derivative_forms"})
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
            raise ValueError("center=True is for sums of kernels; a kernel that is not a sum cannot be centered.")
        kernel = kernel.placed(X if source is None else source)
        self.parametric, self.X, self.sample_weight = kernel, X, sample_weight
        self.names: Sequence[str] = kernel.bind(X)
        self.groups: Sequence[str] = list(self.names)
        self.n_kernels, self.n_samples = len(self.names), X.shape[0]
        self._scale = 1.0 / float(sample_weight.sum()) if normalize == "trace" else 1.0
        self.scale = np.full(self.n_kernels, self._scale)  # that of the one kernel, whichever parameter is asked for

    def describe_storage(self) -> str:
        """Return words for how the kernel is held."""
        return f"{self.n_kernels} parameters of one kernel, computed anew in each pass"

    def fill(self, weights: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write K(d) to ``out``."""
        np.multiply(self.parametric.compute(self.X, self.X, weights), self._scale, out=out)
        return out

    def derivative_forms(self, weights: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Return beta_t' (dK/dd_k) beta_t, shape (n_tasks, n_kernels)."""
        check_length(beta, self.n_samples)
        out = np.zeros((beta.shape[0], self.n_kernels))
        for t, row in enumerate(beta):
            support = np.flatnonzero(row)
            if support.size:
                out[t] = self._scale * self.parametric.derivative_forms(self.X[support], weights, row[support])
        return out

    def terms(self, weights: np.ndarray) -> Terms:
        """Return the learned kernel as a sum of one."""
        every = np.arange(self.X.shape[1])
        entry = BoundKernel(self.parametric.fixed(weights, every.size), every, "the learned kernel", "")
        return Terms([entry], np.array([self._scale]), None, None)

    def untrusted(self, weights: np.ndarray) -> list[BoundKernel]:
        """Return nothing: whoever writes such a kernel answers for it."""
        return []

    def importances(self, weights: np.ndarray, n_features: int) -> np.ndarray:
        """Return each feature's part of the weight."""
        return self.parametric.importances(self.X, weights, n_features)
