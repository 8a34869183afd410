"""What kernels on the same columns share on a device: the columns, and distances or inner products of their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from manykernels.compute.gpu import Device, Rows, Tensor
from manykernels.compute.pairwise import dense, gaussian_rate, power_of_two
from manykernels.kernels.base import Dirichlet, Gaussian, Kernel, Linear, Polynomial, base_matrix
from manykernels.kernels.missing import observed
from manykernels.kernels.overlap import Overlap

EVERY = slice(None)
# A sparse view with more entries than this, zeros included, is not sent: its distances are.
_MOST_ENTRIES = 1 << 27

# How the kernels that a device knows are made of their base, in place; all others are computed on the CPU, and sent.
_FUNCTIONS: dict[type, Callable[[Any, Tensor, float], Tensor]] = {
    Gaussian: lambda kernel, base, unit: base.mul_(-gaussian_rate(kernel.width, unit)).exp_(),
    Linear: lambda kernel, base, unit: base,
    Overlap: lambda kernel, base, unit: base.div_(kernel.count),
    Polynomial: lambda kernel, base, unit: base.add_(kernel.coef0).pow_(kernel.degree),
    Dirichlet: lambda kernel, base, unit: base.sqrt_().mul_(kernel.frequency * unit).cos_().mul_(2.0).add_(1.0),
}


def is_known(kernel: Kernel) -> bool:
    """Return whether a device can make the kernel of distances or inner products; subclasses may be anything."""
    return type(kernel) in _FUNCTIONS


def apply(kernel: Any, base: Tensor, unit: float) -> Tensor:
    """Return the kernel values of a base matrix, which is overwritten; distances are in units of ``unit``."""
    return _FUNCTIONS[type(kernel)](kernel, base, unit)


def is_every(rows: Rows) -> bool:
    """Return whether all rows are meant."""
    return isinstance(rows, slice) and rows == EVERY


def near_one(data: np.ndarray, reference: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Return rows shifted by their mean and divided by a power of two, so that they are of the order of 1, and that.

    Distances do not change by the shift, and data far from the origin lose no digits. Shift and power are those of the
    reference, if there is one.
    """
    reference = data if reference is None else reference
    shift = reference.mean(axis=0)
    unit = power_of_two(float(np.abs(reference - shift).max(initial=0.0)))
    return (data - shift) / unit, unit


class View:
    """Some columns of the samples, with the inner products or squared distances of the rows.

    Parameters
    ----------
    device : Device
    V : array or CSR matrix of shape (n, n_columns)
        Rows of NaN are samples that lack the view.
    base : {"inner", "distance", "exact distance"}

    Attributes
    ----------
    unit : float
        Squared distances are in units of ``unit**2``; 1 for inner products.
    """

    def __init__(self, device: Device, V: Any, base: str) -> None:
        self._device, self.base, self.n = device, base, V.shape[0]
        self.mask = observed(V)
        self._host: Any = None
        self.unit = 1.0
        if (sp.issparse(V) and V.shape[0] * V.shape[1] > _MOST_ENTRIES) or not device.has_double:
            self._host = V if self.mask is None else np.where(self.mask[:, None], V, 0.0)
            return
        data = dense(V).astype(np.float64)
        if self.mask is not None:
            data[~self.mask] = 0.0
        if base != "inner":
            data, self.unit = near_one(data)
        self._data = device.send(data)

    def values(self, rows: Rows, columns: Rows = EVERY) -> Tensor:
        """Return the base of these rows and columns, in ``wide``; samples that lack the view are infinitely far."""
        device = self._device
        left, right = device.places(rows), device.places(columns)
        if self._host is not None:
            values, unit = base_matrix(self.base, self._host[rows], self._host[columns])
            block = device.send(values if self.base == "inner" else values * (unit * unit))
        elif self.base == "inner":
            block = self._data[left] @ self._data[right].T
        else:
            block = device.squared_distances(self._data[left], self._data[right])
        if self.mask is not None and self.base != "inner":
            gone = device.send(~self.mask, device.torch.bool)
            block[gone[left]] = float("inf")
            block[:, gone[right]] = float("inf")
        return block

    def tail(self, size: int) -> View:
        """Return the view of the last ``size`` samples."""
        tail = object.__new__(View)
        tail._device, tail.base, tail.n, tail.unit = self._device, self.base, size, self.unit
        tail.mask = None if self.mask is None or self.mask[-size:].all() else self.mask[-size:]
        tail._host = None if self._host is None else self._host[-size:]
        if self._host is None:
            tail._data = self._data[-size:]
        return tail
