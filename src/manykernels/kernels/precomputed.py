"""Kernel matrices that were computed elsewhere, looked up by sample number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.compute.compiled import njit
from manykernels.compute.pairwise import dense
from manykernels.compute.quick_look import Look, look_at_each
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
        (matrix,) = _checked_matrices([np.array(K, order="C")], [label])
        self._hold(*matrix)

    @classmethod
    def sharing(cls, matrices: Sequence[Any], groups: Sequence[str], labels: Sequence[str]) -> list[Precomputed]:
        """Return the kernels of matrices of one shape that are not copied: their owner must leave them as they are."""
        kernels = []
        checked = _checked_matrices([np.asarray(K) for K in matrices], labels)
        for matrix, group, label in zip(checked, groups, labels, strict=True):
            kernel = cls.__new__(cls)
            Kernel.__init__(kernel, None, group, label)
            kernel._hold(*matrix)
            kernels.append(kernel)
        return kernels

    def _hold(self, K: np.ndarray, look: Look) -> None:
        self.K, self.look, self._diagonal = K, look, look.diagonal

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
    n, rises = numbers.size, True
    for i in range(n - 1):
        rises &= numbers[i] < numbers[i + 1]
    whole = np.empty(K.shape[1], out.dtype)
    position = 0
    for i in range(start, stop):
        places, target = numbers[i:], out[position : position + n - i]
        low = places[0] if rises else 0
        row = K[numbers[i], low:]
        if rises and places[-1] - low < places.size:  # neighbors
            for j in range(target.size):
                target[j] = scale * row[j]
        else:
            for j in range(row.size):  # in order, since memory that is read in any other is many times slower
                whole[j] = scale * row[j]
            for j in range(target.size):
                target[j] = whole[places[j] - low]
        position += target.size


def _checked_matrices(matrices: Sequence[np.ndarray], labels: Sequence[str | None]) -> list[tuple[np.ndarray, Look]]:
    """Return read-only float arrays, and what one look at each showed, if they are square, finite and symmetric."""
    words = [f"K of {label!r}" if label else "K" for label in labels]
    for K, which in zip(matrices, words, strict=True):
        if K.ndim != 2 or K.shape[0] != K.shape[1] or K.shape[0] == 0:
            raise ValueError(f"{which} must be a square matrix, got shape {K.shape}.")
    held = [(K if K.dtype in (np.float32, np.float64) else K.astype(np.float64)).view(np.ndarray) for K in matrices]
    looks = look_at_each(held, ROUNDING)
    for K, look, which in zip(held, looks, words, strict=True):
        K.flags.writeable = False
        if not look.finite:
            raise ValueError(f"{which} contains NaN or infinity.")
        if look.skew > ROUNDING * np.abs(look.diagonal).max():  # many small differences, or a large one
            scale, skew = float(np.abs(K).max()), float(np.abs(K - K.T).max())
            if skew > ROUNDING * max(scale, 1e-300):
                raise ValueError(f"{which} must be symmetric, but K[i, j] and K[j, i] differ by up to {skew:.3g}.")
    return list(zip(held, looks, strict=True))
