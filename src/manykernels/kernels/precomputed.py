"""Kernel matrices that were computed elsewhere, looked up by sample number."""

from __future__ import annotations

from typing import Any

import numpy as np

from manykernels.compute.pairwise import dense
from manykernels.kernels.base import Kernel


class Precomputed(Kernel):
    """A kernel matrix that you computed yourself, looked up by sample number.

    X is then a column of sample numbers, ``np.arange(n).reshape(-1, 1)``, so
    that scikit-learn's cross-validation, grids and pipelines cut kernels
    like any other data. Beside other features, ``columns=`` names the column
    that holds the numbers.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel of all samples, training and test; symmetric.
    columns, group, label
        As for :class:`Kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Precomputed
    >>> kernel = Precomputed(np.array([[2.0, 1.0], [1.0, 3.0]]), label="graph")
    >>> kernel.compute(np.array([[0]]), np.array([[1], [0]]))
    array([[1., 2.]])
    """

    def __init__(self, K: Any, columns: Any = None, group: str | None = None, label: str | None = None) -> None:
        super().__init__(columns, group, label)
        self.K = _check_precomputed(K, label)

    def compute(self, X: Any, Z: Any) -> np.ndarray:
        return self.K[np.ix_(self._numbers(X), self._numbers(Z))]

    def diagonal(self, X: Any) -> np.ndarray:
        numbers = self._numbers(X)
        return self.K[numbers, numbers].astype(np.float64)

    def columns_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the kernel of all samples with the given ones: what predictions from these need."""
        return self.K[:, numbers]

    def whole_diagonal(self) -> np.ndarray:
        """Return k(i, i) of all samples."""
        return self.K.diagonal()

    def _numbers(self, X: Any) -> np.ndarray:
        values = dense(X)
        if values.ndim != 2 or values.shape[1] != 1:
            raise ValueError(
                f"Precomputed looks up sample numbers in one column, got {values.shape[1]} columns; "
                "pass X = np.arange(n).reshape(-1, 1), or name the column with columns=."
            )
        column = values[:, 0]
        if not np.all((column >= 0) & (column < self.K.shape[0]) & (column == np.floor(column))):
            raise ValueError(
                f"Precomputed needs sample numbers from 0 to {self.K.shape[0] - 1}, "
                f"got values from {column.min():g} to {column.max():g}."
            )
        return column.astype(np.int64)

    @property
    def title(self) -> str:
        """The label, or "Precomputed"."""
        return self.label or "Precomputed"

    def name(self, where: str) -> str:
        """Return the label: the column of sample numbers says nothing."""
        return self.title


class PrecomputedColumns(Precomputed):
    """A precomputed kernel as a model file keeps it: all samples against the support vectors only.

    Parameters
    ----------
    K : ndarray of shape (n, n_kept)
    numbers : ndarray of shape (n_kept,)
        Sample numbers of the columns, in increasing order.
    diagonal : ndarray of shape (n,)
    """

    def __init__(self, K: np.ndarray, numbers: np.ndarray, diagonal: np.ndarray) -> None:
        Kernel.__init__(self)
        self.K, self.numbers, self._diagonal = K, numbers, diagonal

    def compute(self, X: Any, Z: Any) -> np.ndarray:
        return self.columns_of(self._numbers(Z))[self._numbers(X)]

    def columns_of(self, numbers: np.ndarray) -> np.ndarray:
        if not np.isin(numbers, self.numbers).all():
            raise ValueError("A loaded model keeps precomputed kernels with its support vectors only.")
        return self.K[:, np.searchsorted(self.numbers, numbers)]

    def diagonal(self, X: Any) -> np.ndarray:
        return self._diagonal[self._numbers(X)]

    def whole_diagonal(self) -> np.ndarray:
        return self._diagonal


def _check_precomputed(K: Any, label: str | None) -> np.ndarray:
    """Return K as a read-only float array after checking that it is a square, finite, symmetric matrix."""
    K = np.asarray(K)
    which = f"K of {label!r}" if label else "K"
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.shape[0] == 0:
        raise ValueError(f"{which} must be a square matrix, got shape {K.shape}.")
    K = K.astype(np.float64 if K.dtype != np.float32 else np.float32, copy=True)
    if not np.all(np.isfinite(K)):
        raise ValueError(f"{which} contains NaN or infinity.")
    scale, skew = float(np.abs(K).max()), float(np.abs(K - K.T).max())
    if skew > 1e-6 * max(scale, 1e-300):
        raise ValueError(f"{which} must be symmetric, but K[i, j] and K[j, i] differ by up to {skew:.3g}.")
    K.flags.writeable = False
    return K
