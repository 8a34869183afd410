"""Given kernel matrices: the whole fit beside its solver and three readings of the stack.

    python -m benchmarks.robust.stacks [n,kernels ...] [--norm P] [--repeats R] [--largest GB]

A fit is ``KernelBank.from_arrays(stack)`` and ``MKLClassifier(bank).fit(numbers, y)``; its solver's seconds are those
of its trace; a reading is ``matrix.sum()`` of each matrix in turn on one core. All are the least of so many repetitions
in one process, after one that pays for compilation and for memory that was never touched. Target: a ratio of 1.5.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

import numpy as np

from manykernels import MKLClassifier
from manykernels.kernels import KernelBank

CASES = ((200, 50), (200, 195), (200, 800), (700, 50), (700, 195), (700, 400), (2000, 50))


def given_stack(n: int, m: int, seed: int = 0, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian kernels of five features each, in some of which the classes differ, and classes -1 and 1."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, -1, 1)
    stack: np.ndarray = np.empty((m, n, n), dtype)
    for K in stack:
        X = rng.normal(size=(n, 5)) + 0.4 * y[:, None] * (rng.random(5) < 0.3)
        squares = (X**2).sum(axis=1)
        D = np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0.0)
        K[:] = np.exp(-(D + D.T) / (4 * rng.uniform(1, 4) ** 2))
    return stack, y


def measure(n: int, m: int, norm: float, repeats: int) -> dict[str, float]:
    """Return the least seconds of the whole fit, its parts, and a reading."""
    stack, y = given_stack(n, m)
    numbers, found = np.arange(n)[:, None], []
    for _ in range(1 + repeats):
        start = time.perf_counter()
        for K in stack:
            K.sum()
        read = time.perf_counter()
        bank = KernelBank.from_arrays(stack)
        given = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MKLClassifier(bank, norm=norm).fit(numbers, y)
        end = time.perf_counter()
        found.append((read - start, given - read, end - given, model.trace_[-1].seconds))
        del model, bank
    # Minima may be of different fits; in one fit, the parts belong together.
    reads, gives, fits, solves = np.array(found[1:]).T
    best = int(np.argmin((gives + fits) / (solves + 3 * reads)))
    return {
        "read": float(reads.min()),
        "from_arrays": float(gives.min()),
        "fit": float(fits.min()),
        "solver": float(solves.min()),
        "ratio": float((gives.min() + fits.min()) / (solves.min() + 3 * reads.min())),
        "best": float((gives[best] + fits[best]) / (solves[best] + 3 * reads[best])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="such as 700,195")
    parser.add_argument("--norm", type=float, nargs="*", default=[1.0, 2.0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--largest", type=float, default=2.0, help="gigabytes of a stack: larger ones are left out")
    options = parser.parse_args()
    cases = [tuple(int(part) for part in case.split(",")) for case in options.cases] or CASES
    print("   n  kernels  norm  stack GB   read s  from_arrays s    fit s  solver s  ratio of minima  best ratio  load")
    for n, m in cases:
        size = 8e-9 * m * n * n
        if size > options.largest:
            print(f"{n:4d} {m:8d}        {size:8.2f}  left out: see --largest")
            continue
        for norm in options.norm:
            s = measure(n, m, norm, options.repeats)
            print(
                f"{n:4d} {m:8d} {norm:5g} {size:9.2f} {s['read']:8.3f} {s['from_arrays']:14.3f} {s['fit']:8.3f} "
                f"{s['solver']:9.3f} {s['ratio']:16.2f} {s['best']:11.2f} {os.getloadavg()[0]:5.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
