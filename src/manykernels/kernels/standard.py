"""The kernels that the papers use by default."""

from __future__ import annotations

from typing import Any

import numpy as np

from manykernels.kernels.bank import KernelBank
from manykernels.kernels.base import Gaussian, Kernel, Polynomial
from manykernels.kernels.columns import column_names
from manykernels.kernels.ladder import GaussianLadder

STANDARD_WIDTHS = tuple(2.0**e for e in range(-3, 7))
STANDARD_DEGREES = (1, 2, 3)
_MANY_WIDTHS = 100  # a ladder of the whole range has about 60 nodes


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
    widths : int or sequence of float, default 2^-3, ..., 2^6
        A number asks for that many widths from 2^-3 to 2^6, evenly spaced on a log scale; when they are many, each
        set of columns gets a :class:`GaussianLadder`.
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
    >>> len(standard_bank(np.zeros((5, 60)), widths=16_394, degrees=()))
    1000034
    """
    names = column_names(X)
    selections: list[Any] = [None]
    if per_feature and X.shape[1] > 1:
        selections += list(range(X.shape[1])) if names is None else [[name] for name in names]
    count = int(widths) if np.ndim(widths) == 0 else 0
    kernels: list[Kernel | GaussianLadder] = []
    for columns in selections:
        if count > _MANY_WIDTHS:
            kernels.append(GaussianLadder(columns, STANDARD_WIDTHS[0], STANDARD_WIDTHS[-1], count))
        else:
            every = np.geomspace(STANDARD_WIDTHS[0], STANDARD_WIDTHS[-1], count) if count else np.asarray(widths)
            kernels += [Gaussian(float(width), columns=columns) for width in every]
        kernels += [Polynomial(degree, columns=columns) for degree in degrees]
    return KernelBank(kernels)


def as_bank(kernels: Any, X: Any) -> KernelBank:
    """Return what an estimator's ``kernels`` stand for: "standard", a list of kernels, or a bank.

    Parameters
    ----------
    kernels : "standard", list of Kernel or KernelBank
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.standard import as_bank
    >>> as_bank("standard", np.zeros((5, 2)))
    KernelBank of 39 kernels
    """
    if isinstance(kernels, KernelBank):
        return kernels
    return standard_bank(X) if isinstance(kernels, str) else KernelBank(kernels)
