"""Run independent pieces of a pass side by side.

The compiled loops of this package release the interpreter lock, and so does
NumPy, so plain threads use every core. A thread pool is safe under joblib's
threads and processes alike, which Numba's own threading layers are not.
Matrix products inside such a pass run on one thread each.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import lru_cache

import numba
from threadpoolctl import ThreadpoolController

_limit: ContextVar[int | None] = ContextVar("limit", default=None)


def n_threads() -> int:
    """Return how many threads a pass may use: NUMBA_NUM_THREADS, by default the cores.

    joblib sets that variable in its worker processes, so nested parallelism
    does not oversubscribe the machine.
    """
    every = max(1, int(getattr(numba.config, "NUMBA_NUM_THREADS", 1)))
    limit = _limit.get()
    return every if limit is None else min(limit, every)


@contextmanager
def at_most(count: int) -> Iterator[None]:
    """Let the passes inside the block use at most so many threads: a worker process shares its machine with others.

    Examples
    --------
    >>> from manykernels.compute.threads import at_most, n_threads
    >>> with at_most(1):
    ...     n_threads()
    1
    """
    token = _limit.set(max(1, count))
    try:
        yield
    finally:
        _limit.reset(token)


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


_LARGE_MATRIX = 3000


class _BlasLimit:
    """One BLAS thread while anyone asks for it: the first to come sets the limit, the last to leave lifts it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._limit: AbstractContextManager | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._limit = _libraries().limit(limits=1, user_api="blas")
                self._limit.__enter__()
            self._holders += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0 and self._limit is not None:
                self._limit.__exit__(None, None, None)


_blas_limit = _BlasLimit()
_inside = threading.local()  # ``pool`` is True in the threads of the pool


def one_blas_thread(when: bool = True) -> AbstractContextManager:
    """Return a context in which matrix products use one thread: waking several costs more than a small product."""
    return _blas_limit if when else nullcontext()


def blas_threads_for(n_samples: int) -> AbstractContextManager:
    """Return a context for work on matrices of this order: one thread unless they are large enough to pay for more."""
    return one_blas_thread(n_samples < _LARGE_MATRIX)


@lru_cache(maxsize=4)
def _pool(workers: int, process: int) -> ThreadPoolExecutor:  # keyed by process: a forked child needs its own
    return ThreadPoolExecutor(workers, thread_name_prefix="manykernels")


def parallel(task: Callable[..., object], items: Iterable[object]) -> list:
    """Return ``[task(item) for item in items]``, computed on every core; the order is kept."""
    items = list(items)
    workers = n_threads()
    # A thread of the pool that waited for others of the pool could wait forever.
    if workers == 1 or len(items) <= 1 or getattr(_inside, "pool", False):
        return [task(item) for item in items]

    def marked(item: object) -> object:
        _inside.pool = True
        return task(item)

    with one_blas_thread():
        return list(_pool(workers, os.getpid()).map(marked, items))
