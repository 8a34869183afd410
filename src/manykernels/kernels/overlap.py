"""The kernel of categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from manykernels.compute.pairwise import dense, row_square_norms
from manykernels.core.checks import check_count
from manykernels.kernels.base import ElementwiseKernel


class Overlap(ElementwiseKernel):
    """The share of the categorical features on which two samples agree, on their one-hot columns.

    It is the inner product of the 0/1 columns divided by ``count``. A category that has no column, such as one that
    was not seen in training, agrees with none.

    Parameters
    ----------
    count : int >= 1, default 1
        How many categorical features the columns stand for.
    columns, group, label
        As for :class:`Kernel`.

    Examples
    --------
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> from manykernels.kernels import Overlap
    >>> X = OneHotEncoder().fit_transform([["Rome", "red"], ["Rome", "blue"], ["Oslo", "green"]])
    >>> Overlap(count=2).compute(X, X)
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """

    base = "inner"

    def __init__(self, count: int = 1, columns: Any = None, group: str | None = None, label: str | None = None) -> None:
        super().__init__(columns, group, label)
        self.count = check_count("count", count)

    def apply(self, base: np.ndarray, unit: float = 1.0) -> np.ndarray:
        base /= base.dtype.type(self.count)
        return base

    def diagonal(self, X: Any) -> np.ndarray:
        return row_square_norms(X) / self.count

    def factor(self, X: Any) -> np.ndarray | None:
        return self.features(X)

    def features(self, X: Any) -> np.ndarray:
        return dense(X).astype(np.float64) / np.sqrt(self.count)

    @property
    def title(self) -> str:
        """The kernel's name without its columns; the count is seen from them."""
        return "Overlap"
