"""Kernel matrices that were computed elsewhere, looked up by sample number."""

from __future__ import annotations

from typing import Any

import numpy as np

from manykernels.compute.compiled import njit
from manykernels.compute.pairwise import dense
from manykernels.compute.quick_look import Look, look_at
from manykernels.kernels.base import Kernel

# What is rounding: entries (i, j) and (j, i) may differ by this part of the largest, and an eigenvalue may be negative
# by this part of the mean diagonal times the number of samples.
ROUNDING = 1e-6


class Precomputed(Kernel):
    """A kernel matrix that you computed yourself, looked up by sample number.

    X is then a column of sample numbers, ``np.arange(n).reshape(-1, 1)``, so
    that scikit-learn's cross-validation, grids and pipelines cut kernels
    like any other data. Among other features, ``columns=`` names the column
    that holds the numbers.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel of all samples, training and test; symmetric. It is copied: :meth:`KernelBank.from_arrays` copies
        nothing.
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
        self._take(np.array(K, order="C"), label)

    @classmethod
    def sharing(cls, K: Any, group: str | None = None, label: str | None = None) -> Precomputed:
        """Return the kernel of a matrix that is not copied: its owner must leave it as it is."""
        kernel = cls.__new__(cls)
        Kernel.__init__(kernel, None, group, label)
        kernel._take(np.asarray(K), label)
        return kernel

    def _take(self, K: np.ndarray, label: str | None) -> None:
        self.K, self.look = _check_precomputed(K, label)
        self._diagonal = self.look.diagonal

    def compute(self, X: Any, Z: Any) -> np.ndarray:
        return self.K[np.ix_(self.numbers_in(X), self.numbers_in(Z))]

    def pack(self, X: Any, start: int, stop: int, out: np.ndarray) -> None:
        self.pack_numbers(self.numbers_in(X), start, stop, 1.0, out)

    def pack_numbers(self, numbers: np.ndarray, start: int, stop: int, scale: float, out: np.ndarray) -> None:
        """Write the upper triangle's rows start:stop of scale * K[numbers][:, numbers] to ``out``, of any type."""
        _pack_rows(self.K, numbers, start, stop, scale, out)

    def diagonal(self, X: Any) -> np.ndarray:
        return self._diagonal[self.numbers_in(X)]

    def columns_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the kernel of all samples with the given ones: what predictions from these need."""
        return self.K[:, numbers]

    def whole_diagonal(self) -> np.ndarray:
        """Return k(i, i) of all samples."""
        return self._diagonal

    def numbers_in(self, X: Any) -> np.ndarray:
        """Return the column of sample numbers as integers, if they are numbers of samples."""
        values = dense(X)
        if values.ndim != 2 or values.shape[1] != 1:
            raise ValueError(
                f"Precomputed looks up sample numbers in one column, got {values.shape[1]} columns; "
                "pass X = np.arange(n).reshape(-1, 1), or name the column with columns=."
            )
        column = values[:, 0]
        with np.errstate(invalid="ignore"):  # what does not fit into an integer is not equal to one
            numbers = column.astype(np.int64)
        if not ((numbers == column).all() and (column.size == 0 or 0 <= numbers.min() <= numbers.max() < len(self.K))):
            raise ValueError(
                f"Precomputed needs sample numbers from 0 to {self.K.shape[0] - 1}, "
                f"got values from {column.min():g} to {column.max():g}."
            )
        return numbers

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
        return self.columns_of(self.numbers_in(Z))[self.numbers_in(X)]

    def columns_of(self, numbers: np.ndarray) -> np.ndarray:
        if not np.isin(numbers, self.numbers).all():
            raise ValueError("A loaded model keeps precomputed kernels with its support vectors only.")
        return self.K[:, np.searchsorted(self.numbers, numbers)]

    def pack(self, X: Any, start: int, stop: int, out: np.ndarray) -> None:
        Kernel.pack(self, X, start, stop, out)


@njit(cache=True, nogil=True)
def _pack_rows(K, numbers, start, stop, scale, out):
    """Write the upper part of the rows start:stop of scale * K[numbers][:, numbers] to the segment ``out``."""
    whole = np.empty(K.shape[1], out.dtype)
    position = 0
    for i in range(start, stop):
        row, places = K[numbers[i]], numbers[i:]
        for j in range(row.size):  # in order, since memory that is read in any other is many times slower
            whole[j] = scale * row[j]
        target = out[position : position + places.size]
        for j in range(places.size):
            target[j] = whole[places[j]]
        position += places.size


def _check_precomputed(K: np.ndarray, label: str | None) -> tuple[np.ndarray, Look]:
    """Return K as a read-only float array, and what one look at it showed, if it is square, finite and symmetric."""
    which = f"K of {label!r}" if label else "K"
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.shape[0] == 0:
        raise ValueError(f"{which} must be a square matrix, got shape {K.shape}.")
    K = (K if K.dtype in (np.float32, np.float64) else K.astype(np.float64)).view(np.ndarray)
    K.flags.writeable = False
    look = look_at(K, ROUNDING)
    if not look.finite:
        raise ValueError(f"{which} contains NaN or infinity.")
    if look.skew > ROUNDING * np.abs(look.diagonal).max():  # many small differences, or a large one
        scale, skew = float(np.abs(K).max()), float(np.abs(K - K.T).max())
        if skew > ROUNDING * max(scale, 1e-300):
            raise ValueError(f"{which} must be symmetric, but K[i, j] and K[j, i] differ by up to {skew:.3g}.")
    return K, look
