"""The kernels that the papers use by default."""

from __future__ import annotations

from typing import Any

import numpy as np

from manykernels.kernels.bank import KernelBank
from manykernels.kernels.base import Gaussian, Kernel, Polynomial
from manykernels.kernels.columns import column_names

STANDARD_WIDTHS = tuple(2.0**e for e in range(-3, 7))
STANDARD_DEGREES = (1, 2, 3)


def standard_bank(
    X: Any,
    *,
    widths: Any = STANDARD_WIDTHS,
    degrees: Any = STANDARD_DEGREES,
    per_feature: bool = True,
) -> KernelBank:
    """Return Gaussian and polynomial kernels on all features and on each one.

    The widths suit features of unit variance: put a StandardScaler in front.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        Only its columns count.
    widths : sequence of float, default 2^-3, ..., 2^6
    degrees : sequence of int, default 1, 2, 3
    per_feature : bool, default True
        Also make the kernels for each single column.

    Returns
    -------
    KernelBank
        ``(len(widths) + len(degrees)) * (n_features + 1)`` kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import standard_bank
    >>> len(standard_bank(np.zeros((5, 60))))
    793
    """
    names = column_names(X)
    selections: list[Any] = [None]
    if per_feature and X.shape[1] > 1:
        selections += list(range(X.shape[1])) if names is None else [[name] for name in names]
    kernels: list[Kernel] = []
    for columns in selections:
        kernels += [Gaussian(width, columns=columns) for width in np.asarray(widths, dtype=float)]
        kernels += [Polynomial(degree, columns=columns) for degree in degrees]
    return KernelBank(kernels)
