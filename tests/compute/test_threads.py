"""Passes on several threads: order, errors, and the limit on BLAS threads."""

import os
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from manykernels.banks import bind
from manykernels.compute import threads
from manykernels.kernels import KernelBank


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_order_is_kept(monkeypatch, workers):
    monkeypatch.setattr(threads, "n_threads", lambda: workers)
    assert threads.parallel(lambda i: i * i, range(50)) == [i * i for i in range(50)]
    assert threads.parallel(lambda i: i, []) == []


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_come_through(monkeypatch, workers, error):
    monkeypatch.setattr(threads, "n_threads", lambda: workers)

    def task(i):
        if i == 3:
            raise error("third")
        return i

    with pytest.raises(error, match="third"):
        threads.parallel(task, range(6))
    assert threads.parallel(lambda i: i, range(6)) == list(range(6))  # and the pool still works


def test_work_is_shared(monkeypatch):
    """Two items that wait for each other end only if they run at the same time."""
    monkeypatch.setattr(threads, "n_threads", lambda: 2)
    meeting = threading.Barrier(2, timeout=30)
    threads.parallel(lambda _: meeting.wait(), range(2))


def test_blas_limit_is_lifted():
    before = blas_threads()
    with threads.one_blas_thread():
        with threads.one_blas_thread():
            assert set(blas_threads()) <= {1}
        assert set(blas_threads()) <= {1}
    assert blas_threads() == before


def test_blas_limit_is_lifted_after_an_error():
    before = blas_threads()
    with pytest.raises(RuntimeError, match="stop"), threads.one_blas_thread():
        raise RuntimeError("stop")
    assert blas_threads() == before


def test_no_limit_when_not_asked_for():
    before = blas_threads()
    with threads.one_blas_thread(False):
        assert blas_threads() == before


def test_it_is_a_decorator():
    @threads.one_blas_thread()
    def inside(extra):
        return blas_threads(), extra

    before = blas_threads()
    found, extra = inside(extra=3)
    assert set(found) <= {1}
    assert extra == 3
    assert inside.__name__ == "inside"
    assert blas_threads() == before


def test_the_last_thread_to_leave_lifts_the_limit():
    """Two threads enter, the first leaves: the second still has the limit."""
    before, both, one_left = blas_threads(), threading.Barrier(2, timeout=30), threading.Barrier(2, timeout=30)
    found = []

    def first():
        with threads.one_blas_thread():
            both.wait()
        one_left.wait()

    def second():
        with threads.one_blas_thread():
            both.wait()
            one_left.wait()
            found.extend(blas_threads())

    workers = [threading.Thread(target=task) for task in (first, second)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(found) <= {1}
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_forked_inside_the_limit_is_not_stuck():
    """Not even if another thread held the lock at that moment; and leaving the block there harms nobody."""
    before = blas_threads()
    with threads.one_blas_thread(), threads._blas_limit._lock:
        child = os.fork()
        if child == 0:
            with threads.one_blas_thread():
                right = set(blas_threads()) <= {1}
            os._exit(0 if right and threads._blas_limit._holders == 0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert blas_threads() == before


def test_warnings_inside_are_traced_to_the_caller():
    stack = np.stack([np.eye(3), np.eye(3)])
    with pytest.warns(UserWarning, match="are the same") as caught:
        bind(KernelBank.from_arrays(stack), np.arange(3)[:, None])
    assert caught[0].filename == __file__
