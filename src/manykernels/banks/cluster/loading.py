"""Data in Dask arrays and DataFrames: as blocks of rows on workers, or gathered where it is small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from manykernels.banks.cluster import row_block as on_row_block
from manykernels.banks.cluster.connection import distributed_library, find_client
from manykernels.banks.cluster.row_bank import RowSource
from manykernels.banks.cluster.row_blocks import RowBlocks
from manykernels.banks.cluster.workers import Workers
from manykernels.banks.planning import gathered_bytes
from manykernels.compute.memory import human_bytes
from manykernels.core.rows import bare_dask, is_dask


def gathered(memory_budget: Any, needs: str, X: Any, *others: Any) -> tuple:
    """Return X and what belongs to it (y, sample weights) as they are in memory; raise MemoryError if X is too large.

    Parameters
    ----------
    memory_budget : int, str or None
    needs : str
        What the sentence ends in: who needs X in one place, and what to do instead.
    X : any data
    *others : any data or None
    """
    if is_dask(X):
        distributed_library()
        allowed = gathered_bytes(memory_budget)
        size = _bytes_of(X)
        if size > allowed:
            raise MemoryError(
                f"X is a Dask collection of {human_bytes(size)}, but memory_budget allows for {human_bytes(allowed)} "
                f"in one place: {needs}."
            )
    return tuple(data.compute() if is_dask(data) else data for data in (X, *others))


def _bytes_of(X: Any) -> float:
    """Return the size of a collection in double precision."""
    rows = X.shape[0]
    if hasattr(X, "map_partitions"):  # a DataFrame does not know its length before it is computed
        rows = sum(X.map_partitions(len).compute())
    elif np.isnan(rows):
        rows = X[:, 0].compute().shape[0]
    return 8.0 * float(rows) * X.shape[1]


def by_parts(function: Callable[[Any], np.ndarray], X: Any, cluster: Any) -> np.ndarray:
    """Return ``function`` of the parts of a collection, one after the other; only the results are gathered.

    It is sent once, and not asked of parts without rows, unless there are no others.
    """
    client = find_client("dask" if cluster is None else cluster)
    if client is None:  # within a task
        return function(X.compute())
    X = bare_dask(X)
    data = X.rechunk({1: -1}) if hasattr(X, "chunks") else X
    workers, parts = Workers(client), client.compute(np.ravel(data.to_delayed()).tolist())

    def ask() -> list:
        sent = workers.send(function)
        return workers.gather([workers.submit(None, _of_part, sent, part) for part in parts])

    results = [result for result in workers.persistent(ask, lambda: None) if result is not None]
    return np.concatenate(results) if results else function(X.compute())


def _of_part(function: Callable[[Any], np.ndarray], part: Any) -> np.ndarray | None:
    return function(part) if part.shape[0] else None


def load_rows(client: Any, X: Any, y: Any, sample_weight: Any, allow_nan: bool) -> tuple[RowSource, Any]:
    """Put rows on the workers, one block each.

    Parameters
    ----------
    client : distributed.Client
    X : Dask array or DataFrame, array, CSR matrix or DataFrame of shape (n_samples, n_features)
    y : the same or an array, of shape (n_samples,)
    sample_weight : the same, or None
    allow_nan : bool

    Returns
    -------
    source : RowSource
    table : DataFrame without rows, or None
        Where column names are looked up.
    """
    X, y, sample_weight = bare_dask(X), bare_dask(y), bare_dask(sample_weight)
    workers = Workers(client)
    table = None
    if hasattr(X, "columns"):
        table = X._meta if is_dask(X) else X.iloc[:0]
    parts = _Parts(workers, X, y, sample_weight)

    def make() -> list:
        return [workers.submit(b, on_row_block.raw_block, *parts.of_block(b), allow_nan) for b in range(parts.n_blocks)]

    raw = RowBlocks(workers, make)
    return RowSource(raw, raw.each(on_row_block.shape_of)), table


class _Parts:
    """The parts of X, y and the sample weights that make up each block."""

    def __init__(self, workers: Workers, X: Any, y: Any, sample_weight: Any) -> None:
        self._workers, self._given = workers, [X, y, sample_weight]
        self._futures: list[list | None] = [self._delayed(X, None)]
        if self._futures[0] is not None:
            n_parts = len(self._futures[0])
            self._cuts = np.array_split(np.arange(n_parts), min(len(workers), n_parts))
            lengths = None if is_dask(y) and _is_same(sample_weight) else self._lengths()
        else:
            rows = np.array_split(np.arange(X.shape[0]), min(len(workers), X.shape[0]))
            self._cuts = [np.array([b]) for b in range(len(rows))]
            lengths = [part.size for part in rows]
        self._lengths_of = lengths
        self._futures += [self._delayed(data, X) for data in (y, sample_weight)]
        self.n_blocks = len(self._cuts)

    def _lengths(self) -> list[int]:
        return self._workers.gather([self._workers.submit(p, len, f) for p, f in enumerate(self._futures[0] or [])])

    def _delayed(self, data: Any, beside: Any) -> list | None:
        """Return the parts of a collection as futures; None for data that are here."""
        if not is_dask(data):
            return None
        if hasattr(data, "chunks") and data.ndim == 2:
            data = data.rechunk({1: -1})
        if beside is not None and hasattr(data, "chunks") and hasattr(beside, "chunks"):
            known = not np.isnan(np.sum([*data.chunks[0], *beside.chunks[0]]))
            if known and sum(data.chunks[0]) != sum(beside.chunks[0]):
                raise ValueError(f"X and y must have as many rows, got {beside.shape[0]} and {data.shape[0]}.")
            if known and data.chunks[0] != beside.chunks[0]:
                data = data.rechunk({0: beside.chunks[0]})
        parts = np.ravel(data.to_delayed()).tolist()
        if beside is not None and self._futures[0] is not None and len(parts) != len(self._futures[0]):
            raise ValueError(
                f"X and y must have the same chunks of rows, got {len(self._futures[0])} and {len(parts)}."
            )
        return self._workers.client.compute(parts)

    def of_block(self, b: int) -> list[list | None]:
        """Return the parts of X, of y and of the sample weights that block b is made of."""
        return [self._one(data, futures, b) for data, futures in zip(self._given, self._futures, strict=True)]

    def _one(self, data: Any, futures: list | None, b: int) -> list | None:
        if data is None:
            return None
        if futures is not None:
            return [futures[p] for p in self._cuts[b]]
        first = np.concatenate([[0], np.cumsum(self._lengths_of or [])]).astype(int)
        rows = slice(first[self._cuts[b][0]], first[self._cuts[b][-1] + 1])
        n_rows = data.shape[0] if hasattr(data, "shape") else len(data)  # a sparse matrix has no length
        if b == 0 and n_rows != first[-1]:
            raise ValueError(f"X has {first[-1]} rows, but y or sample_weight has {n_rows}.")
        rows_sent = data.iloc[rows] if hasattr(data, "iloc") else data[rows]
        return [self._workers.send(rows_sent, to=b)]


def _is_same(sample_weight: Any) -> bool:
    return sample_weight is None or is_dask(sample_weight)
