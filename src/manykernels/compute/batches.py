"""Small systems by the thousand, and products of large matrices with many vectors: on the CPU, and on a device.

Both classes have the same methods, and what they return is NumPy's or torch's: sums, products and indices are written
the same for both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from manykernels.compute.gpu import Device
from manykernels.compute.linalg import cholesky_factor
from manykernels.compute.memory import available_bytes

# Of the memory that is free: other programs need some, and so does what is computed on the way.
_SHARE = 0.25
_WORTH_RECORDING = 8  # repetitions


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
    most_factors = 16  # that are worth their time beside a product with all kernels

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

    def factored(self, A: Any) -> Callable[[Any], Any]:
        """Return what multiplies the rows of a matrix by (I + A)^-1, A positive semidefinite; A is overwritten."""
        A[np.diag_indices_from(A)] += 1.0
        factor = cholesky_factor(A, least=1.0, overwrite=True)
        return lambda rows: cho_solve(factor, rows.T, check_finite=False).T

    def repeated(self, step: Callable[[Any], Any]) -> Callable[[Any, int], Any]:
        """Return what takes a step several times; values keep their shape in it."""
        return partial(_looped, step)


class DeviceBatches:
    """The same on a device.

    Parameters
    ----------
    device : Device
    """

    side_by_side = False
    most_factors = 6  # products take next to no time here

    def __init__(self, device: Device) -> None:
        self._device = device
        self._recorded: Any = None  # kept, so that what is recorded next may use its memory

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

    def factored(self, A: Any) -> Callable[[Any], Any]:
        torch = self._device.torch
        A.diagonal().add_(1.0)
        factor, failed = torch.linalg.cholesky_ex(A)
        if int(failed):
            factor = self.send(np.tril(cholesky_factor(self.fetch(A), least=1.0)[0].T))
        return lambda rows: torch.cholesky_solve(rows.T, factor).T

    def repeated(self, step: Callable[[Any], Any]) -> Callable[[Any, int], Any]:
        """Return what takes a step several times.

        To launch the kernels of a step takes longer than to run them: a step is recorded, and played again.
        """
        if self._device.where.type != "cuda":
            return partial(_looped, step)
        held: Any = None

        def repeat(values: Any, times: int) -> Any:
            nonlocal held
            if held is None and times < _WORTH_RECORDING:
                return _looped(step, values, times)
            if held is None:
                held = values.clone()
                self._record(step, held)
            held.copy_(values)
            for _ in range(times):
                self._recorded.replay()
            return held.clone()

        return repeat

    def _record(self, step: Callable[[Any], Any], values: Any) -> None:
        """Record that values become those after a step."""
        torch, where = self._device.torch, self._device.where
        beside = torch.cuda.Stream(where)
        beside.wait_stream(torch.cuda.current_stream(where))
        with torch.cuda.stream(beside):  # libraries prepare themselves in a step that is not recorded
            step(values)
        torch.cuda.current_stream(where).wait_stream(beside)
        graph, pool = torch.cuda.CUDAGraph(), None if self._recorded is None else self._recorded.pool()
        with torch.cuda.graph(graph, pool=pool):
            values.copy_(step(values))
        self._recorded = graph


def _looped(step: Callable[[Any], Any], values: Any, times: int) -> Any:
    for _ in range(times):
        values = step(values)
    return values
