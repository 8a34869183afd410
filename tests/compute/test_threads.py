"""Passes on several threads: order, errors, and the limit on BLAS threads."""

import threading

import pytest
from threadpoolctl import threadpool_info

from manykernels.compute import threads


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
