"""One policy for the cores: every call of BLAS and LAPACK runs on one thread, and parallel work is ours.

The threads of OpenBLAS spin while they wait for one another. Alone on a machine that costs little; beside another
process, or another thread of this one, each waits for a thread that the system has put to sleep, and a factorization
takes a hundred times as long. So nothing here leaves parallel work to BLAS: :func:`one_blas_thread` is entered where a
user comes in (a fit, a prediction, a bank that is bound, a solver), and what pays for several cores is cut into pieces
that run in :func:`parallel`, whose threads sleep while they wait. Large factorizations are cut up, too
(:func:`manykernels.compute.linalg.cholesky_factor`).

The compiled loops of this package release the interpreter lock, and so does
NumPy, so plain threads use every core. A thread pool is safe under joblib's
threads and processes alike, which Numba's own threading layers are not.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from itertools import product
from typing import Any, TypeVar, cast

import scipy.linalg  # noqa: F401 - it brings a BLAS of its own, which must be there when the libraries are listed
from threadpoolctl import ThreadpoolController

_Function = TypeVar("_Function", bound=Callable[..., Any])
_limit: ContextVar[int | None] = ContextVar("limit", default=None)


def n_threads() -> int:
    """Return how many threads a pass may use: NUMBA_NUM_THREADS, by default the cores.

    joblib sets that variable in its worker processes, so nested parallelism
    does not oversubscribe the machine.
    """
    limit = _limit.get()
    return _cores() if limit is None else min(limit, _cores())


@lru_cache(maxsize=1)
def _cores() -> int:
    given = os.environ.get("NUMBA_NUM_THREADS", "")
    if given.isdecimal():
        return max(1, int(given))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


class _Library:
    """A BLAS library: it says and takes how many threads it uses, for the whole process or for each thread on its own.

    threadpoolctl finds the libraries, but lets a single thread tell OpenBLAS (others are ignored without a word), and
    its contexts ask each library for all it knows, which takes a hundred times as long as telling it.
    """

    def __init__(self, controller: Any) -> None:
        layer = getattr(controller, "threading_layer", None)
        self.by_thread = controller.internal_api == "mkl" or layer == "openmp"
        self.get, self.set = controller.get_num_threads, controller.set_num_threads
        if controller.internal_api == "openblas" and not self.by_thread:
            for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
                names = (f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set"))
                functions = [getattr(controller.dynlib, name, None) for name in names]
                if None not in functions:
                    self.get, self.set = functions
                    return


@lru_cache(maxsize=1)
def _libraries() -> list[_Library]:
    return [_Library(controller) for controller in ThreadpoolController().select(user_api="blas").lib_controllers]


def _limited(by_thread: bool) -> list[tuple[_Library, int]]:
    """Limit the libraries of one kind to one thread; return those that had more, and how many."""
    changed = [(library, library.get()) for library in _libraries() if library.by_thread == by_thread]
    changed = [(library, count) for library, count in changed if count is not None and count != 1]
    for library, _ in changed:
        library.set(1)
    return changed


class _Decorator(AbstractContextManager):
    """A context that decorates functions, too; unlike contextlib's, warnings inside are traced to the caller's line."""

    def __call__(self, function: _Function) -> _Function:
        @wraps(function)
        def inside(*arguments: Any, **named: Any) -> Any:
            with self:
                return function(*arguments, **named)

        return cast(_Function, inside)


class _BlasLimit(_Decorator):
    """One BLAS thread while anyone asks for it: the first to come sets the limit, the last to leave lifts it.

    Libraries that keep a number for each thread are told by each thread.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew, as a forked process does: those who hold the limit or the lock are not in it."""
        self._lock = threading.Lock()
        self._holders = 0
        self._before: list[tuple[_Library, int]] = []
        self._own = threading.local()

    def __enter__(self) -> None:
        depth = getattr(self._own, "depth", 0)
        if depth == 0:
            with self._lock:
                if self._holders == 0:
                    self._before = _limited(by_thread=False)
                self._holders += 1
            self._own.before = _limited(by_thread=True)
        self._own.depth = depth + 1

    def __exit__(self, *error: object) -> None:
        depth = getattr(self._own, "depth", 0)
        if depth == 0:  # a process that was forked inside the block leaves it, too
            return
        self._own.depth = depth - 1
        if depth > 1:
            return
        for library, count in self._own.before:
            library.set(count)
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                for library, count in self._before:
                    library.set(count)
                self._before = []


class _NoLimit(_Decorator):
    """Nothing changes."""

    def __exit__(self, *error: object) -> None:
        pass


_blas_limit = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas_limit.forget)
_inside = threading.local()  # ``pool`` is True in the threads of the pool


def one_blas_thread(when: bool = True) -> _BlasLimit | _NoLimit:
    """Return a context, and a decorator, in which every call of BLAS and LAPACK uses one thread.

    It may be entered again inside itself and by any number of threads; the limit, which is the process's, is lifted
    when the last one leaves.

    Examples
    --------
    >>> from manykernels.compute.threads import one_blas_thread
    >>> from threadpoolctl import threadpool_info
    >>> with one_blas_thread():
    ...     {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} <= {1}
    True
    """
    return _blas_limit if when else _NoLimit()


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
        with one_blas_thread():
            return task(item)

    with one_blas_thread():
        return list(_pool(workers, os.getpid()).map(marked, items))
