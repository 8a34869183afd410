"""Small systems by the thousand, and products of large matrices with many vectors: on the CPU, and on a device.

Both classes have the same methods, and what they return is NumPy's or torch's: sums, products and indices are written
the same for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from manykernels.compute.gpu import Device
from manykernels.compute.linalg import cholesky_factor
from manykernels.compute.memory import available_bytes

# Of the memory that is free: other programs need some, and so does what is computed on the way.
_SHARE = 0.25


class HostBatches:
    """The arrays of this process.

    Parameters
    ----------
    left : int or None
        The bytes that the kernels leave of theirs; None where they are not counted.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.batches import HostBatches
    >>> HostBatches().solve(np.array([[[2.0]], [[4.0]]]), np.ones((2, 1)))
    array([[0.5 ],
           [0.25]])
    """

    side_by_side = True

    def __init__(self, left: int | None = None) -> None:
        self._left = left

    def room(self, spare: int | None) -> int:
        """Return how many bytes may be taken: what is spare for a solver, and what the kernels leave."""
        return int(_SHARE * available_bytes()) if spare is None or self._left is None else spare + self._left

    def send(self, array: np.ndarray) -> Any:
        """Return an array where the computation is."""
        return np.array(array, dtype=np.float64)

    def fetch(self, values: Any) -> np.ndarray:
        """Return values as an array of this process."""
        return np.asarray(values)

    def places(self, numbers: np.ndarray) -> Any:
        """Return what arrays are indexed with."""
        return numbers

    def zeros(self, *shape: int) -> Any:
        """Return zeros."""
        return np.zeros(shape)

    def solve(self, A: Any, b: Any) -> Any:
        """Return the solutions x_t of A_t x_t = b_t, for A of shape (n_systems, s, s) and b of shape (n_systems, s)."""
        return np.linalg.solve(A, b[..., None])[..., 0]

    def where(self, mask: Any, values: Any, others: Any) -> Any:
        """Return values where the mask is True, and others elsewhere."""
        return np.where(mask, values, others)

    def largest(self, values: Any) -> Any:
        """Return the largest value of each row, shape (n_rows, 1)."""
        return values.max(axis=1, keepdims=True)

    def factored(self, A: np.ndarray) -> Callable[[Any], Any]:
        """Return what solves for the rows of a matrix, given A whose eigenvalues are at least 1; A is overwritten."""
        factor = cholesky_factor(A, least=1.0, overwrite=True)
        return lambda rows: cho_solve(factor, rows.T, check_finite=False).T


class DeviceBatches:
    """The same on a device.

    Parameters
    ----------
    device : Device
    """

    side_by_side = False

    def __init__(self, device: Device) -> None:
        self._device = device

    def room(self, spare: int | None) -> int:
        return int(_SHARE * self._device.free_bytes())

    def send(self, array: np.ndarray) -> Any:
        return self._device.send(np.array(array, dtype=np.float64))

    def fetch(self, values: Any) -> np.ndarray:
        return self._device.fetch(values)

    def places(self, numbers: np.ndarray) -> Any:
        return self._device.places(numbers)

    def zeros(self, *shape: int) -> Any:
        return self._device.zeros(*shape)

    def solve(self, A: Any, b: Any) -> Any:
        return self._device.torch.linalg.solve_ex(A, b[..., None])[0][..., 0]  # without a look at each

    def where(self, mask: Any, values: Any, others: Any) -> Any:
        return self._device.torch.where(mask, values, others)

    def largest(self, values: Any) -> Any:
        return values.amax(1, keepdim=True)

    def factored(self, A: np.ndarray) -> Callable[[Any], Any]:
        torch = self._device.torch
        factor, failed = torch.linalg.cholesky_ex(self._device.send(A))
        if int(failed):
            factor = self._device.send(np.tril(cholesky_factor(A, least=1.0)[0].T))
        return lambda rows: torch.cholesky_solve(rows.T, factor).T
