"""Timing for benchmarks: the median of repeated runs, and what it costs to stream memory."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """Return the median time of ``run`` after one run that pays for compilation and cold caches."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def streaming_seconds(n_bytes: int) -> float:
    """Return the time to read ``n_bytes`` once from memory on all cores, by summing float32 numbers in NumPy.

    NumPy's sum runs on one core; two threads read two halves, so that this is the machine's bandwidth.
    """
    from manykernels.compute.threads import n_threads, parallel

    data = np.ones(n_bytes // 4, np.float32)
    pieces = np.array_split(data, n_threads())
    return seconds(lambda: parallel(np.sum, pieces))
