"""The kernels of a bank, cut into shards: which shard holds which, and the futures of the shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from manykernels.banks.cluster import shard as on_shard
from manykernels.banks.cluster.workers import Workers
from manykernels.kernels.precomputed import Precomputed
from manykernels.kernels.shared_distances import BoundKernel, by_distances


def assign(bound: Sequence[BoundKernel], n_shards: int) -> list[np.ndarray]:
    """Cut the kernels into shards of equal numbers; those that share distances stay side by side.

    Returns
    -------
    list of ndarray of int
        The places of each shard's kernels in the bank, rising; no shard is empty.
    """
    order = np.concatenate([shared.indices for shared in by_distances(bound)])
    return [np.sort(part) for part in np.array_split(order, min(n_shards, len(bound)))]


class Shards:
    """The shards on the workers, as futures, and how to make them again.

    Attributes
    ----------
    members : list of ndarray of int
        The places of each shard's kernels in the bank.
    """

    def __init__(
        self,
        workers: Workers,
        bound: Sequence[BoundKernel],
        X: Any,
        weight: np.ndarray,
        options: dict[str, Any],
        n_shards: int | None,
    ) -> None:
        self.workers = workers
        self.members = assign(bound, len(workers) if n_shards is None else n_shards)
        self._bound, self._data, self._options = bound, (X, weight), options
        self._tail: int | None = None
        self._futures: list = []

    def _make(self) -> None:
        """Send the data and start to bind the kernels."""
        data = self.workers.send(self._data)
        self._futures = []
        for place, members in enumerate(self.members):
            kernels: Any = [self._bound[int(k)] for k in members]
            if any(isinstance(entry.kernel, Precomputed) for entry in kernels):
                # Matrices are too large to travel through the scheduler with a task.
                kernels = self.workers.send(kernels, to=place)
            self._futures.append(self.workers.submit(place, on_shard.make_shard, data, kernels, self._options))
        if self._tail is not None:
            self._cut(self._tail)

    def _cut(self, size: int) -> None:
        self._futures = [self.workers.submit(s, on_shard.tail, f, size) for s, f in enumerate(self._futures)]

    def tail(self, size: int) -> Shards:
        """Return the shards of the last samples, in the same memory."""
        tail = copy(self)
        tail._tail = size
        tail._cut(size)
        return tail

    def submit(self, s: int, function: Callable, *arguments: Any) -> Any:
        """Run ``function(shard s, *arguments)`` where the shard is; returns a future."""
        if not self._futures:
            self._make()
        return self.workers.submit(s, function, self._futures[s], *arguments)

    def gather(self, futures: list) -> list:
        """Return the results of futures."""
        return self.workers.gather(futures)

    def persistent(self, ask: Callable[[], Any]) -> Any:
        """Return ``ask()``; where the training data were lost with all workers that had them, send them again."""
        return self.workers.persistent(ask, self._make)


@dataclass(frozen=True)
class Holding:
    """The kernels of a bank that one shard holds.

    Attributes
    ----------
    shard : int
    local : ndarray of int or None
        Their places in the shard; None: all.
    places : ndarray of int
        Their places in the bank.
    """

    shard: int
    local: np.ndarray | None
    places: np.ndarray

    def chosen(self, chosen: np.ndarray) -> Holding | None:
        """Return the kernels of a subset of the bank, counted by their places in it, that are here."""
        order = np.argsort(self.places, kind="stable")
        at = np.searchsorted(self.places, chosen, sorter=order)
        at[at == self.places.size] = 0
        at = order[at]
        places = np.flatnonzero(self.places[at] == chosen)
        if places.size == 0:
            return None
        return Holding(self.shard, at[places] if self.local is None else self.local[at[places]], places)
