"""The row cache against the matrix that it caches, whatever is asked for in whatever order."""

import tracemalloc

import numpy as np
import pytest

from manykernels.compute.rowcache import RowCache

K = np.random.default_rng(0).standard_normal((12, 12)).astype(np.float32)


class Source:
    """A matrix that counts what is asked of it."""

    def __init__(self):
        self.asked = []

    def __call__(self, rows, columns, out):
        self.asked.append(rows.tolist())
        out[...] = K[np.ix_(rows, columns)]


def cache_of(n_rows, columns):
    source = Source()
    cache = RowCache(source, 4 * n_rows * len(columns))
    cache.restrict(np.array(columns))
    return cache, source


def test_a_row_is_computed_once_while_it_fits():
    cache, source = cache_of(3, range(12))
    for rows in ([4, 2], [2], [4, 7], [7, 2, 4]):
        assert np.array_equal(cache.values[cache.places(np.array(rows))], K[rows])
    assert source.asked == [[4, 2], [7]]
    assert cache.n_computed == 3 * 12


def test_the_least_recently_used_row_goes_first():
    cache, source = cache_of(3, range(12))
    cache.places(np.array([0, 1, 2]))
    cache.places(np.array([0]))  # now 1 is the oldest
    cache.places(np.array([3]))
    assert source.asked[-1] == [3]
    cache.places(np.array([0, 2, 3]))
    assert len(source.asked) == 2
    assert np.array_equal(cache.values[cache.places(np.array([1, 3]))], K[[1, 3]])
    assert source.asked[-1] == [1]


def test_rows_of_one_request_do_not_push_each_other_out():
    cache, _ = cache_of(3, range(12))
    cache.places(np.array([0, 1, 2]))
    wanted = np.array([2, 5, 6])
    assert np.array_equal(cache.values[cache.places(wanted)], K[wanted])


def test_fewer_columns_keep_the_rows_and_make_room():
    cache, source = cache_of(3, range(12))
    cache.places(np.array([3, 8, 1]))
    cache.places(np.array([3]))
    columns = np.array([1, 5, 6, 10])
    cache.restrict(columns)
    assert cache.capacity == 9
    rows = np.array([1, 3, 8])
    assert np.array_equal(cache.values[cache.places(rows)], K[np.ix_(rows, columns)])
    assert len(source.asked) == 1
    rows = np.array([0, 1, 2, 3, 4, 5])
    assert np.array_equal(cache.values[cache.places(rows)], K[np.ix_(rows, columns)])
    assert source.asked[-1] == [0, 2, 4, 5]


def test_other_columns_and_clear_forget_the_rows():
    cache, source = cache_of(4, [0, 1, 2])
    cache.places(np.array([5]))
    cache.restrict(np.array([1, 2, 3]))
    assert np.array_equal(cache.values[cache.places(np.array([5]))], K[[5], 1:4])
    cache.clear()
    cache.places(np.array([5]))
    assert source.asked == [[5], [5], [5]]


def test_random_requests_always_give_the_matrix():
    rng = np.random.default_rng(1)
    cache, _ = cache_of(5, range(12))
    for _ in range(200):
        if rng.random() < 0.1:
            cache.restrict(np.flatnonzero(rng.random(12) < 0.8))
        rows = rng.choice(12, rng.integers(1, 6), replace=False)
        assert np.array_equal(cache.values[cache.places(rows)], K[np.ix_(rows, cache.columns)])


def test_too_many_rows_and_too_little_memory_are_refused():
    cache, _ = cache_of(2, range(12))
    with pytest.raises(ValueError, match="3 rows do not fit into a cache of 2"):
        cache.places(np.arange(3))
    with pytest.raises(MemoryError, match="one row of 12 values"):
        RowCache(Source(), 40).restrict(np.arange(12))


def test_a_cache_with_room_for_far_more_rows_than_there_are_costs_what_it_holds():
    """A budget far beyond the matrix, and few columns in play."""
    cache = RowCache(Source(), 10**8)
    tracemalloc.start()
    cache.restrict(np.array([0, 3]))
    cache.places(np.array([1, 4]))
    cache.restrict(np.array([3]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert cache.capacity == 25 * 10**6
    assert peak < 10**6
