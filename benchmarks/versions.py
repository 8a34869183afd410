"""Two versions of the library side by side: seconds and memory of whole fits, in turns, and the noise of one version.

    [MANYKERNELS_DATA=<folder>] python -m benchmarks.versions BEFORE AFTER [case ...] [--turns 5] [--out table.md]

BEFORE and AFTER are checkouts, say two worktrees. Each run is a process of its own with one checkout's ``src`` first on
its path; it makes its data, runs the case once to pay for compilation, and then as often as fits into a few seconds;
its least time counts. Memory is what the process holds at most beyond what it held before the first run. The table
has the medians over the turns, their ratio, and the ratio of BEFORE's own slowest and fastest turn: what noise does. A
case says what users do, so it names only what estimators and kernels have in both versions.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# Seconds that the repetitions of one run may take, and their number.
_LONGEST, _MOST = 4.0, 7
_DATA = ("sonar", "ionosphere", "pima", "liver", "breast_wisconsin")


# -- the cases --------------------------------------------------------------------------------------------------------


def classes(n: int, d: int = 20) -> tuple[Any, Any]:
    from sklearn.datasets import make_classification
    from sklearn.preprocessing import StandardScaler

    X, y = make_classification(n, d, n_informative=8, flip_y=0.05, random_state=0)
    return StandardScaler().fit_transform(X), y


def tables() -> list[tuple[Any, Any]]:
    import numpy as np

    from manykernels import datasets

    pairs = [(data.data.astype(float), data.target) for data in map(datasets.load, _DATA)]
    return [
        ((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-300), np.where(y == np.unique(y)[1], 1, -1))
        for X, y in pairs
    ]


def standard(norm: float, C: float) -> Callable[[], object]:
    from manykernels import MKLClassifier
    from manykernels.kernels import standard_bank

    data = tables()
    return lambda: [MKLClassifier(standard_bank(X), norm=norm, C=C, tol=1e-4).fit(X, y) for X, y in data]


def many_samples(norm: float) -> Callable[[], object]:
    from manykernels import MKLClassifier
    from manykernels.kernels import standard_bank

    X, y = classes(2000)
    return lambda: MKLClassifier(standard_bank(X, per_feature=False), norm=norm, C=10.0).fit(X, y)


def inner() -> Callable[[], object]:
    from manykernels import MKLClassifier
    from manykernels.kernels import Gaussian

    X, y = classes(3000)
    return lambda: MKLClassifier([Gaussian(4.0)], C=10.0).fit(X, y)


def logistic() -> Callable[[], object]:
    from manykernels import MKLClassifier

    X, y = classes(700)
    return lambda: MKLClassifier(loss="logistic", norm=1).fit(X, y)


def many_classes() -> Callable[[], object]:
    from sklearn.datasets import load_digits

    from manykernels import MKLClassifier
    from manykernels.kernels import Gaussian

    X, y = load_digits(return_X_y=True)
    return lambda: MKLClassifier([Gaussian(w) for w in (5.0, 20.0, 80.0)], norm=2).fit(X[:900], y[:900])


def regression() -> Callable[[], object]:
    from sklearn.datasets import make_friedman1

    from manykernels import MKLRegressor

    X, y = make_friedman1(1000, 15, noise=0.5, random_state=0)
    return lambda: MKLRegressor(norm=1, C=10.0).fit(X, y)


def ladders() -> Callable[[], object]:
    from manykernels import MKLClassifier
    from manykernels.kernels import GaussianLadder, KernelBank

    X, y = classes(300)
    kernels = KernelBank([GaussianLadder(columns=[j], low=0.1, high=100.0, count=500) for j in range(20)])
    return lambda: MKLClassifier(kernels, norm=1).fit(X, y)


def ufo() -> Callable[[], object]:
    from manykernels import UFOMKLClassifier

    X, y = classes(1500)
    return lambda: UFOMKLClassifier(max_iter=5, tol=1e-12, random_state=0).fit(X, y)


def stream() -> Callable[[], object]:
    import numpy as np

    from manykernels import UFOMKLClassifier
    from manykernels.kernels import Linear, Polynomial, RandomFourier

    X, y = classes(20_000)
    kernels = [RandomFourier(w, 100, seed=s) for s, w in enumerate(np.geomspace(0.5, 8.0, 4))] + [
        Linear(),
        Polynomial(2),
    ]

    def run() -> object:
        model = UFOMKLClassifier(kernels, alpha=1e-3, loss="logistic", expected_samples=len(y))
        for low in range(0, len(y), 5000):
            model.partial_fit(X[low : low + 5000], y[low : low + 5000], classes=[0, 1])
        return model

    return run


def features() -> Callable[[], object]:
    from manykernels import MKLClassifier
    from manykernels.kernels import Gaussian, NystroemFeatures

    X, y = classes(10_000)
    kernels = [Gaussian(w) for w in (2.0, 4.0, 8.0)]
    settings = {"approximation": NystroemFeatures(100), "norm": 1.5, "C": 0.1, "tol": 1e-2, "random_state": 0}
    return lambda: MKLClassifier(kernels, **settings).fit(X, y)


def aligned() -> Callable[[], object]:
    import numpy as np

    from manykernels import AlignedKernel
    from manykernels.kernels import Gaussian

    X, y = classes(1000)
    kernels = [Gaussian(w, columns=[j]) for j in range(20) for w in np.geomspace(0.1, 10.0, 20)]
    return lambda: AlignedKernel(kernels).fit(X, y)


def two_stage() -> Callable[[], object]:
    from manykernels import TwoStageMKLClassifier

    X, y = classes(500)
    return lambda: TwoStageMKLClassifier().fit(X, y)


def products() -> Callable[[], object]:
    import numpy as np

    from manykernels import MKLRegressor
    from manykernels.kernels import Linear, ProductKernels

    X = np.random.default_rng(0).normal(size=(500, 50))
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] * X[:, 4] + X[:, 5]
    family = ProductKernels([Linear(columns=[j]) for j in range(50)], 3, prior="even")
    settings = {"norm": 2.0, "C": 10.0, "tol": 1e-6, "max_iter": 100, "random_state": 0}
    return lambda: MKLRegressor(family, **settings).fit(X, y)


def widths() -> Callable[[], object]:
    from manykernels import MKLClassifier
    from manykernels.kernels import GaussianFamily

    X, y = classes(500)
    return lambda: MKLClassifier(GaussianFamily(0.1, 100.0), C=10.0).fit(X, y)


def path() -> Callable[[], object]:
    from manykernels import MKLClassifierCV

    X, y = classes(300)
    return lambda: MKLClassifierCV(norms=(1, 2), Cs=(0.1, 1.0, 10.0), cv=3).fit(X, y)


def prediction() -> Callable[[], object]:
    from manykernels import MKLClassifier

    X, y = classes(1000)
    model, new = MKLClassifier(norm=2).fit(X, y), classes(5000)[0]
    return lambda: model.decision_function(new)


def one_row() -> Callable[[], object]:
    from manykernels import MKLClassifier

    X, y = classes(300)
    model = MKLClassifier(norm=1).fit(X, y)
    return lambda: [model.predict(X[[i]]) for i in range(100)]


def workers() -> Callable[[], object]:
    import dask.array as da
    from distributed import Client, LocalCluster

    from manykernels import MKLClassifier
    from manykernels.kernels import FourierFeatures, Gaussian

    client = Client(LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"))
    X, y = classes(4000)
    rows, targets = da.from_array(X, chunks=(1000, 20)), da.from_array(y, chunks=1000)
    settings = {"approximation": FourierFeatures(50), "norm": 1.5, "C": 0.1, "random_state": 0}
    few = [Gaussian(w) for w in (2.0, 4.0, 8.0)]
    return lambda: (
        MKLClassifier(few, **settings, cluster=client).fit(rows, targets),
        MKLClassifier(few, cluster=client, norm=2).fit(X[:800], y[:800]),
    )


def imported() -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", "import manykernels; manykernels.MKLClassifier()"], check=True)


CASES: dict[str, Callable[[], Callable[[], object]]] = {
    "import": imported,
    "five tables, p = 1, C = 1": lambda: standard(1, 1.0),
    "five tables, p = 1, C = 100": lambda: standard(1, 100.0),
    "five tables, p = 4/3": lambda: standard(4 / 3, 1.0),
    "five tables, p = 2": lambda: standard(2, 1.0),
    "2,000 samples, p = 1": lambda: many_samples(1),
    "2,000 samples, p = 2": lambda: many_samples(2),
    "one kernel, 3,000 samples": inner,
    "logistic": logistic,
    "ten classes": many_classes,
    "regression": regression,
    "10,000 kernels in ladders": ladders,
    "UFO": ufo,
    "stream": stream,
    "features": features,
    "aligned": aligned,
    "two stages": two_stage,
    "products": products,
    "widths": widths,
    "CV path": path,
    "prediction": prediction,
    "prediction, one row": one_row,
    "Dask": workers,
}


# -- one run ----------------------------------------------------------------------------------------------------------


def resident(key: str) -> float:
    """Return megabytes of this process: ``VmRSS`` now, ``VmHWM`` at most; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith(key))


def child(case: str) -> None:
    """Run a case; print its least seconds, and the megabytes that it took."""
    warnings.simplefilter("ignore")
    run = CASES[case]()
    held = resident("VmRSS")
    run()
    times: list[float] = []
    while len(times) < _MOST and (len(times) < 2 or sum(times) < _LONGEST):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    print(json.dumps([min(times), resident("VmHWM") - held]), flush=True)
    os._exit(0)  # clusters and threads go with the process


def measure(checkout: Path, case: str) -> tuple[float, float]:
    """Return seconds and megabytes of a case with the library of a checkout."""
    paths = os.pathsep.join([str(checkout / "src"), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths}
    command = [sys.executable, "-m", "benchmarks.versions", "--child", case]
    done = subprocess.run(command, check=False, env=environment, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{case}, {checkout}:\n{done.stderr[-2000:]}")
    seconds, megabytes = json.loads(done.stdout.splitlines()[-1])
    return seconds, megabytes


# -- the table --------------------------------------------------------------------------------------------------------


def line(case: str, before: list[tuple[float, float]], after: list[tuple[float, float]]) -> str:
    """Return a row of the table."""
    old, new = (statistics.median(seconds for seconds, _ in runs) for runs in (before, after))
    noise = max(seconds for seconds, _ in before) / min(seconds for seconds, _ in before)
    least, now = (statistics.median(megabytes for _, megabytes in runs) for runs in (before, after))
    return f"| {case} | {old:.3f} | {new:.3f} | {new / old:.2f} | {noise:.2f} | {least:.0f} | {now:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], metavar="case")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    lines = ["| case | before, s | after, s | ratio | noise | before, MB | after, MB |", "| --- |" + " --- |" * 6]
    print(*lines, sep="\n", flush=True)
    for case in arguments.cases or CASES:
        turns = [
            [measure(checkout.resolve(), case) for checkout in (arguments.before, arguments.after)]
            for _ in range(arguments.turns)
        ]
        lines.append(line(case, [turn[0] for turn in turns], [turn[1] for turn in turns]))
        print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2])
    else:
        main()
