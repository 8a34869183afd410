"""Peak memory of a fit beside its ``memory_budget``, path by path.

    python -m benchmarks.robust.memory            # six paths
    python -m benchmarks.robust.memory --more     # every path
    python -m benchmarks.robust.memory ufo rows   # those that are named

Target: no path takes more than its budget plus 15 %. Each fit runs in a process of its own, and its peak is counted
from the resident size after the imports and a small fit that compiles. The data are there before the fit and do not
count; what the model keeps of them does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TARGET = 1.15
MB = 10**6
SIX = ("hinge", "logistic", "ufo", "nystroem", "ladder", "rows")
_STATUS = "/proc/self/status"


class Case:
    """A path: its model for a budget, its data, and the budget in bytes."""

    def __init__(self, make: Callable[[Any], Any], n: int, d: int, budget: float, **data: Any) -> None:
        self.make, self.n, self.d, self.budget, self.data = make, n, d, int(budget), data

    def samples(self, n: int) -> tuple[Any, np.ndarray]:
        """Return n samples with their targets."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, self.d))
        signal = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * rng.standard_normal(n)
        kind = self.data.get("target", "classes")
        if kind == "classes":
            return X, signal > 0
        return X, signal if kind == "numbers" else np.digitize(signal, [-0.7, 0.7])


def _gaussians(d: int, count: int = 10) -> list:
    """Return Gaussian kernels on all columns and on each."""
    from manykernels.kernels import Gaussian

    places = [None, *([j] for j in range(d))]
    return [Gaussian(width, columns=columns) for columns in places for width in np.geomspace(0.25, 16.0, count)]


def _wide(d: int, count: int = 10) -> list:
    """Return kernels that have no factor: Gaussians of pairs of columns."""
    from manykernels.kernels import Gaussian

    places = [None, *([j, (j + 1) % d] for j in range(d))]
    return [Gaussian(width, columns=columns) for columns in places for width in np.geomspace(0.25, 16.0, count)]


def cases() -> dict[str, Case]:
    """Return every path by its name."""
    from manykernels import (
        MKLClassifier,
        MKLClassifierCV,
        MKLRegressor,
        TwoStageMKLClassifier,
        UFOMKLClassifier,
    )
    from manykernels.kernels import FourierFeatures, GaussianFamily, GaussianLadder, NystroemFeatures, Polynomial

    def classifier(kernels: Any, **parameters: Any) -> Callable[[Any], Any]:
        return lambda budget: MKLClassifier(kernels, memory_budget=budget, **parameters)

    def regressor(kernels: Any, **parameters: Any) -> Callable[[Any], Any]:
        return lambda budget: MKLRegressor(kernels, memory_budget=budget, **parameters)

    wide = _wide(10)
    return {
        "hinge": Case(classifier(wide, norm=2.0), 3000, 10, 300 * MB),
        "logistic": Case(classifier(wide, norm=2.0, loss="logistic"), 2500, 10, 300 * MB),
        "ufo": Case(
            lambda budget: UFOMKLClassifier(wide, memory_budget=budget, max_iter=2, random_state=0), 1000, 10, 50 * MB
        ),
        "nystroem": Case(
            classifier(wide[::20], norm=2.0, approximation=NystroemFeatures(100), random_state=0), 10_000, 10, 60 * MB
        ),
        "ladder": Case(classifier([GaussianLadder(count=1000)], norm=2.0), 2500, 4, 300 * MB),
        "rows": Case(classifier(_gaussians(5, 2), norm=2.0), 5000, 5, 80 * MB),
        # the others
        "nystroem_file": Case(
            classifier(wide[::20], norm=2.0, approximation=NystroemFeatures(100), random_state=0), 10_000, 10, 25 * MB
        ),
        "nystroem_l1": Case(
            classifier(wide[::20], approximation=NystroemFeatures(100), random_state=0, loss="logistic", C=100.0),
            10_000,
            10,
            60 * MB,
        ),
        "nystroem_few": Case(classifier(wide, approximation="nystroem", random_state=0), 1000, 10, 400 * MB),
        "nystroem_tasks": Case(
            classifier(wide[::20], norm=2.0, approximation=NystroemFeatures(100), random_state=0),
            10_000,
            10,
            60 * MB,
            target="three",
        ),
        "fourier": Case(
            classifier(wide[::20], norm=2.0, approximation=FourierFeatures(100), random_state=0), 10_000, 10, 60 * MB
        ),
        "hinge_all": Case(classifier(wide, norm=2.0), 1500, 10, 700 * MB),
        "hinge_tasks": Case(classifier(wide, norm=2.0), 2500, 10, 300 * MB, target="three"),
        "hinge_l1": Case(classifier(wide), 2500, 10, 300 * MB),
        "hinge_l1_small": Case(classifier(wide), 1500, 10, 100 * MB),
        "hinge_double": Case(classifier(wide, norm=2.0, tol=1e-6), 2000, 10, 200 * MB),
        "hinge_columns": Case(classifier(_gaussians(10), norm=2.0), 3000, 10, 300 * MB),
        "hinge_center": Case(classifier(wide, norm=2.0, center=True), 2500, 10, 250 * MB),
        "hinge_cosine": Case(classifier(wide, norm=2.0, normalize="cosine"), 2500, 10, 250 * MB),
        "squared_hinge": Case(classifier(wide, norm=2.0, loss="squared_hinge"), 2500, 10, 300 * MB),
        "logistic_l1": Case(classifier(wide, loss="logistic"), 2000, 10, 250 * MB),
        "logistic_tasks": Case(classifier(wide, norm=2.0, loss="logistic"), 2000, 10, 250 * MB, target="three"),
        "probability": Case(classifier(wide, norm=2.0, probability=True), 2000, 10, 250 * MB),
        "squared": Case(regressor(wide, norm=2.0, loss="squared"), 2500, 10, 300 * MB, target="numbers"),
        "squared_l1": Case(regressor(wide, loss="squared"), 2000, 10, 250 * MB, target="numbers"),
        "epsilon": Case(regressor(wide, norm=2.0), 2500, 10, 250 * MB, target="numbers"),
        "newton": Case(classifier(wide, solver="newton"), 1500, 10, 150 * MB),
        "newton_tasks": Case(classifier(wide, solver="newton"), 1200, 10, 150 * MB, target="three"),
        "newton_l2": Case(classifier(wide, norm=2.0, solver="newton"), 1200, 10, 120 * MB),
        "reduced_newton": Case(classifier(wide, solver="reduced_newton"), 2500, 10, 300 * MB),
        "spg": Case(classifier(wide, norm=2.0, solver="spg"), 2500, 10, 200 * MB),
        "simple": Case(classifier(wide, solver="simple", max_iter=5), 2000, 10, 250 * MB),
        "product": Case(classifier(_gaussians(10, 1)[1:], combination="product", max_iter=3), 1500, 10, 150 * MB),
        "ladder_l1": Case(classifier([GaussianLadder(count=1000)]), 2500, 4, 300 * MB),
        "ladder_logistic": Case(classifier([GaussianLadder(count=1000)], norm=2.0, loss="logistic"), 2000, 4, 250 * MB),
        "rows_l1": Case(classifier(_gaussians(5, 2)), 4000, 5, 60 * MB),
        "rows_epsilon": Case(regressor(_gaussians(5, 2), norm=2.0), 3000, 5, 50 * MB, target="numbers"),
        "rows_tasks": Case(classifier(_gaussians(5, 2), norm=2.0), 4000, 5, 60 * MB, target="three"),
        "ufo_held": Case(
            lambda budget: UFOMKLClassifier(wide, memory_budget=budget, max_iter=2, random_state=0), 400, 10, 60 * MB
        ),
        "ufo_tasks": Case(
            lambda budget: UFOMKLClassifier(wide, memory_budget=budget, max_iter=2, random_state=0),
            1000,
            10,
            80 * MB,
            target="three",
        ),
        "ufo_average": Case(
            lambda budget: UFOMKLClassifier(
                wide, memory_budget=budget, max_iter=2, random_state=0, average=True, step="gradient"
            ),
            1000,
            10,
            80 * MB,
        ),
        "ufo_features": Case(
            lambda budget: UFOMKLClassifier(
                [Polynomial(2, columns=[j, j + 1, j + 2]) for j in range(28)],
                memory_budget=budget,
                max_iter=2,
                random_state=0,
            ),
            20_000,
            30,
            50 * MB,
        ),
        "two_stage": Case(lambda budget: TwoStageMKLClassifier(wide, memory_budget=budget), 1500, 10, 200 * MB),
        "two_stage_qp": Case(
            lambda budget: TwoStageMKLClassifier(wide, alignment="qp", memory_budget=budget), 1500, 10, 200 * MB
        ),
        "family": Case(classifier(GaussianFamily()), 1000, 4, 150 * MB),
        "cv": Case(
            lambda budget: MKLClassifierCV(wide, memory_budget=budget, Cs=[1.0], norms=(2.0, 1.0), cv=2),
            3000,
            10,
            150 * MB,
        ),
    }


def child(name: str) -> None:
    """Run one fit, and print what it took."""
    case = cases()[name]
    X, y = case.samples(case.n)
    warnings.simplefilter("ignore")
    case.make(None).fit(*case.samples(80))
    before = _size("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins here
    start = time.perf_counter()
    model = case.make(case.budget).fit(X, y)
    seconds, peak = time.perf_counter() - start, _size("VmHWM")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    held = _size("VmRSS")
    model.predict(X)
    print(
        json.dumps(
            {
                "budget": case.budget,
                "peak": peak - before,
                "predict": _size("VmHWM") - held,
                "gap": getattr(model, "gap_", float("nan")),
                "seconds": seconds,
            }
        )
    )


def _size(which: str) -> int:
    with open(_STATUS, encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(which + ":"))


def measure(name: str) -> dict:
    """Return what the fit of a path took, measured in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.robust.memory", "--child", name]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    if found.returncode:
        return {"error": (found.stderr.strip().splitlines() or ["no word"])[-1]}
    return json.loads(found.stdout.splitlines()[-1])


def main(names: list[str]) -> bool:
    """Print a line for each path, and return whether all keep their budgets."""
    print(f"{'path':<16} {'budget':>8} {'peak':>8} {'ratio':>6} {'predict':>8} {'gap':>8} {'time':>7}")
    kept = True
    for name in names:
        found = measure(name)
        if "error" in found:
            print(f"{name:<16} {found['error']}")
            kept = False
            continue
        ratio = found["peak"] / found["budget"]
        kept &= ratio <= TARGET
        print(
            f"{name:<16} {found['budget'] / MB:5.0f} MB {found['peak'] / MB:5.0f} MB {ratio:6.2f} "
            f"{found['predict'] / MB:5.0f} MB {found['gap']:8.1e} {found['seconds']:5.1f} s",
            flush=True,
        )
    print(f"{'every path keeps' if kept else 'NOT every path keeps'} its budget + {TARGET - 1:.0%}")
    return kept


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(sys.argv[-1])
    else:
        asked = [word for word in sys.argv[1:] if not word.startswith("-")]
        sys.exit(0 if main(asked or (list(cases()) if "--more" in sys.argv else list(SIX))) else 1)
