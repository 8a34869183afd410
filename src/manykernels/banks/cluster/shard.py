"""What runs on a worker: a part of the kernels, bound to the training data, and the sums over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.banks.binding import bind_resolved
from manykernels.banks.cluster.connection import distributed_library
from manykernels.banks.packed import PackedBank
from manykernels.banks.placement import Data, Placement
from manykernels.banks.planning import worker_bytes
from manykernels.compute.memory import budget_bytes
from manykernels.compute.triangles import mirror_rows, packed, write_rows
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.shared_distances import BoundKernel


class Shard:
    """A part of the kernels on a worker; its size tells the scheduler that it is not worth moving."""

    def __init__(self, bank: PackedBank, is_view: bool = False) -> None:
        self.bank, self._is_view = bank, is_view

    def __sizeof__(self) -> int:
        if self._is_view:
            return 0
        norms = self.bank.normalization
        held = (*self.bank.storages, norms.means, norms.inverse_norms)
        return sum(part.nbytes for part in held if part is not None)


def make_shard(data: tuple[Any, np.ndarray], kernels: Sequence[BoundKernel], options: dict[str, Any]) -> Shard:
    """Bind kernels to the training data, in as much memory as the worker has left."""
    X, weight = data
    place = Placement(_room(), precision=options["precision"])
    return Shard(bind_resolved(list(kernels), Data(X, weight=weight), options["recipe"], place))


def _room() -> int:
    worker = distributed_library().get_worker()
    limit = worker.memory_manager.memory_limit
    return worker_bytes(limit, worker.monitor.get_process_memory()) if limit else budget_bytes(None)


def tail(shard: Shard, size: int) -> Shard:
    """Return the shard of the last samples, in the same memory."""
    return Shard(shard.bank.tail(size), is_view=True)


def learned_scales(shard: Shard) -> tuple[np.ndarray, np.ndarray, str]:
    """Return what the driver needs to know of each kernel: its scale and largest diagonal entry; and the precision."""
    norms = shard.bank.normalization
    return norms.scale, norms.largest, shard.bank.precision


def normalization(shard: Shard, local: np.ndarray) -> Normalization:
    """Return what was learned of the chosen kernels."""
    return shard.bank.normalization.take(local)


def ask(shard: Shard, method: str, arguments: tuple, local: np.ndarray | None) -> np.ndarray:
    """Call a method of the bank for its kernels at ``local``."""
    return getattr(shard.bank, method)(*arguments, local)


def inner_products(shard: Shard, triangle: np.ndarray, local: np.ndarray | None) -> np.ndarray:
    """Return the inner products of the chosen kernels with a packed matrix."""
    return shard.bank.inner_products(unpacked(triangle, shard.bank.n_samples), local)


def matvecs(shard: Shard, beta: np.ndarray, on_support: bool, local: np.ndarray | None) -> np.ndarray:
    """Return the products of the chosen kernels with beta."""
    return shard.bank.matvecs(beta, local, on_support=on_support)


def centered_squares(shard: Shard, weight: np.ndarray, local: np.ndarray | None) -> np.ndarray:
    """Return the squared norms of the chosen kernels, centered."""
    squares = shard.bank.centered_squares(weight)
    return squares if local is None else squares[local]


def weighted_sum(shard: Shard, weights: np.ndarray, local: np.ndarray | None) -> np.ndarray:
    """Return the upper triangle of the weighted sum of the chosen kernels."""
    every = weights
    if local is not None:
        every = np.zeros(shard.bank.n_kernels)
        np.add.at(every, local, weights)
    return packed(shard.bank.fill(every, np.empty((shard.bank.n_samples,) * 2)))


def add(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the sum; both may be asked for again, so neither is overwritten."""
    return left + right


def unpacked(triangle: np.ndarray, n: int, out: np.ndarray | None = None) -> np.ndarray:
    """Return the symmetric matrix of shape (n, n) with this upper triangle."""
    K = np.empty((n, n)) if out is None else out
    write_rows(triangle, 0, n, K)
    mirror_rows(K, 0, n)
    return K
