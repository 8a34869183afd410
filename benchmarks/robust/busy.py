"""A busy machine: one fit alone and two at the same time, in processes of their own.

    python -m benchmarks.robust.busy [case ...] [--repeats R]

Each process makes its data, fits once to pay for compilation, waits for the other one, then fits; the seconds of the
slower one count. The least of so many repetitions is taken, alone and together in turns, so that other work on the
machine weighs on both. BLAS is left to itself: OPENBLAS_NUM_THREADS and its like are unset. Target: 2.5.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.robust.stacks import given_stack
from manykernels import MKLClassifier, MKLClassifierCV, TwoStageMKLClassifier, UFOMKLClassifier
from manykernels.kernels import KernelBank, standard_bank

_LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def table() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(500, 30, n_informative=10, flip_y=0.05, random_state=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def stack_fit() -> Callable[[], object]:
    stack, y = given_stack(690, 195)
    numbers = np.arange(690)[:, None]
    return lambda: MKLClassifier(KernelBank.from_arrays(stack)).fit(numbers, y)


def table_fit() -> Callable[[], object]:
    X, y = table()
    return lambda: MKLClassifier().fit(X, y)


def cv_fit() -> Callable[[], object]:
    X, y = table()
    kernels = standard_bank(X, per_feature=False)
    return lambda: MKLClassifierCV(kernels, Cs=[0.1, 1.0, 10.0], cv=3).fit(X, y)


def ufo_fit() -> Callable[[], object]:
    X, y = table()
    kernels = standard_bank(X, per_feature=False)
    return lambda: UFOMKLClassifier(kernels, random_state=0).fit(X, y)


def two_stage_fit() -> Callable[[], object]:
    X, y = table()
    return lambda: TwoStageMKLClassifier(random_state=0).fit(X, y)


CASES: dict[str, Callable[[], Callable[[], object]]] = {
    "stack": stack_fit,
    "table": table_fit,
    "cv": cv_fit,
    "ufo": ufo_fit,
    "two_stage": two_stage_fit,
}


def work(name: str) -> None:
    """Be one of the processes: fit once for each line that comes in, and print the seconds."""
    warnings.simplefilter("ignore")
    fit = CASES[name]()
    fit()
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        fit()
        print(time.perf_counter() - start, flush=True)


def measure(name: str, repeats: int) -> tuple[list[float], list[float]]:
    """Return the seconds of fits alone, and of the slower of two at once."""
    command = [sys.executable, "-m", "benchmarks.robust.busy", "--work", name]
    own = {key: value for key, value in os.environ.items() if key not in _LIMITS}
    pair = [
        subprocess.Popen(command, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]

    def together(processes: list[subprocess.Popen]) -> float:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return max(float(process.stdout.readline()) for process in processes if process.stdout is not None)

    try:
        for process in pair:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"The case {name!r} ended before it began.")
        times = [(together(pair[:1]), together(pair)) for _ in range(repeats)]
    finally:
        for process in pair:
            process.kill()
            process.wait()
    return [one for one, _ in times], [two for _, two in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work)
        return
    print("case        alone s  two at once s  ratio of minima  median of ratios  load")
    for name in options.cases or CASES:
        one, two = measure(name, options.repeats)
        median = float(np.median(np.array(two) / np.array(one)))
        print(
            f"{name:10s} {min(one):8.3f} {min(two):14.3f} {min(two) / min(one):16.2f} {median:17.2f} "
            f"{os.getloadavg()[0]:5.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
