"""Rows on workers: futures of blocks, and sums over all of them along a tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from manykernels.banks.cluster.workers import Workers


class RowBlocks:
    """Blocks of rows on workers.

    Parameters
    ----------
    workers : Workers
    make : function
        Returns the futures of the blocks; called again where data that the driver had sent were lost.
    source : RowBlocks, optional
        The blocks that these are made of.
    """

    def __init__(self, workers: Workers, make: Callable[[], Sequence[Any]], source: RowBlocks | None = None) -> None:
        self._workers, self._make, self._source = workers, make, source
        self._futures: list[Any] = []

    def derived(self, function: Callable, large: Any, *, replaces: bool = False) -> RowBlocks:
        """Return the blocks ``function(block, large)``; ``large`` is sent once.

        With ``replaces``, these blocks are not kept in addition to those: they are made again should they be needed.
        """

        def make() -> list:
            sent = self._workers.send(large)
            futures = [self._workers.submit(b, function, f, sent) for b, f in enumerate(self.futures())]
            if replaces:
                self._futures = []
            return futures

        return RowBlocks(self._workers, make, self)

    def futures(self) -> list:
        """Return the futures of the blocks."""
        if not self._futures:
            self._futures = list(self._make())
        return self._futures

    def sum(self, function: Callable, *arguments: Any) -> np.ndarray:
        """Return the sum of ``function(block, *arguments)`` over the blocks, in an order that is always the same."""
        return self._persistent(
            lambda: self._workers.tree(np.add, list(enumerate(self._submit(function, arguments)))).result()
        )

    def each(self, function: Callable, *arguments: Any) -> list:
        """Return ``function(block, *arguments)`` of each block."""
        return self._persistent(lambda: self._workers.gather(self._submit(function, arguments)))

    def chosen(self, function: Callable, rows: np.ndarray, sizes: np.ndarray) -> list:
        """Return ``function(block, rows)`` of each block, for rows that are counted through all blocks."""
        first = np.concatenate([[0], np.cumsum(sizes)])
        rows_of = [rows[(rows >= first[b]) & (rows < first[b + 1])] - first[b] for b in range(sizes.size)]
        return self._persistent(
            lambda: self._workers.gather(
                [self._workers.submit(b, function, f, rows_of[b]) for b, f in enumerate(self.futures())]
            )
        )

    def _submit(self, function: Callable, arguments: tuple) -> list:
        return [self._workers.submit(b, function, f, *arguments) for b, f in enumerate(self.futures())]

    def _persistent(self, ask: Callable[[], Any]) -> Any:
        return self._workers.persistent(ask, self._forget)

    def _forget(self) -> None:
        self._futures = []
        if self._source is not None:
            self._source._forget()
