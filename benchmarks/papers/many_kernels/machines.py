"""Section 6.2 of the thesis: support vector machines with Gaussian kernels that are learned in one stage or in two.

GCD-2s aligns a continuum of widths with the classes, one width ("1D") or one for each feature ("nD", drawn to their
mean by a strength that is chosen by the alignment on the validation part; "nD, NoReg" without); CKL does the same in
one stage, AMKL and LPMKL have a list of widths, UNIFORM its equal sum. C is chosen on the validation part. Times are
those of learning kernel and classifier once; with the choice of the strength, without that of C.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.svm import SVC

from benchmarks.framework import expected, show
from benchmarks.papers.many_kernels.common import median_ranks
from manykernels import AlignedKernel, MKLClassifier
from manykernels.alignment import Target, centered_alignment
from manykernels.kernels import Gaussian, GaussianFamily

CS_TWO = 10.0 ** np.arange(-2, 5.1, 0.5)
CS_ONE = 10.0 ** np.arange(-2, 4.1)


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray


class Outcome(NamedTuple):
    """Test error in percent, alignment on the test part, and the seconds of a fit."""

    error: float
    alignment: float
    seconds: float


Method = Callable[[Data, Data, Data], Outcome]


def methods(widths: Sequence[float], low: float, high: float, many: bool = True) -> dict[str, Method]:
    """Return the methods of the section for exp(-|x - z|^2 / width^2): a list of widths, and all between two."""
    half = np.sqrt(0.5)
    grid = [Gaussian(half * width) for width in widths]
    one = GaussianFamily(half * low, half * high)
    each = GaussianFamily(half * low, half * high, per_feature=True, n_starts=0)
    found: dict[str, Method] = {"GCD-2s (1D)": _two(lambda: AlignedKernel(one))}
    if many:
        found["GCD-2s (nD)"] = _shrunk(each)
        found["GCD-2s (nD, NoReg)"] = _two(lambda: AlignedKernel(each))
    found["CKL (1D)"] = _one(lambda C: MKLClassifier(one, C=C, solver="ckl", tol=1e-2, max_iter=50))
    if many:
        found["CKL (nD)"] = _one(lambda C: MKLClassifier(each, C=C, solver="ckl", tol=1e-2, max_iter=50))
    found["AMKL"] = _two(lambda: AlignedKernel(grid, alignment="qp"))
    found["LPMKL (p=1)"] = _one(lambda C: MKLClassifier(grid, C=C, norm=1.0))
    found["LPMKL (p=2)"] = _one(lambda C: MKLClassifier(grid, C=C, norm=2.0))
    found["UNIFORM"] = _two(lambda: AlignedKernel(grid, alignment="uniform"))
    return found


def _two(make: Callable[[], AlignedKernel]) -> Method:
    return lambda *parts: _second_stage(*_timed(lambda: make().fit(*parts[0])), *parts)


def _shrunk(family: GaussianFamily) -> Method:
    """Choose the strength of the shrinkage by the alignment on the validation part."""

    def learn(train: Data, validation: Data) -> AlignedKernel:
        models = [AlignedKernel(candidate).fit(*train) for candidate in family.candidates()]
        return max(models, key=lambda model: _alignment(model, validation))

    return lambda *parts: _second_stage(*_timed(lambda: learn(*parts[:2])), *parts)


def _second_stage(model: AlignedKernel, seconds: float, train: Data, validation: Data, test: Data) -> Outcome:
    K, Kv = model.transform(train.X), model.transform(validation.X)
    machines = [SVC(C=C, kernel="precomputed").fit(K, train.y) for C in CS_TWO]
    best = max(machines, key=lambda machine: machine.score(Kv, validation.y))
    _, once = _timed(lambda: SVC(C=best.C, kernel="precomputed").fit(K, train.y))
    error = 100.0 * (1.0 - best.score(model.transform(test.X), test.y))
    return Outcome(error, _alignment(model, test), seconds + once)


def _one(make: Callable[[float], MKLClassifier]) -> Method:
    def run(train: Data, validation: Data, test: Data) -> Outcome:
        fitted = [_timed(lambda C=C: make(C).fit(*train)) for C in CS_ONE]
        best, _ = max(fitted, key=lambda entry: entry[0].score(*validation))
        error = 100.0 * (1.0 - best.score(*test))
        return Outcome(error, _alignment(best, test), float(np.mean([seconds for _, seconds in fitted])))

    return run


def _alignment(model: Any, part: Data) -> float:
    return centered_alignment(model.kernel(part.X), Target.of_classes(part.y))


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    found = work()
    return found, time.perf_counter() - started


def compare(
    own: dict[str, Method], splits: Callable[[int], tuple[Data, Data, Data]], runs: int, jobs: int = 2
) -> dict[str, Outcome]:
    """Return the mean outcome of each method over the runs, and print it."""
    every = Parallel(n_jobs=jobs)(
        delayed(_quietly)(method, splits(run)) for method in own.values() for run in range(runs)
    )
    means = np.array(every).reshape(len(own), runs, 3).mean(axis=1)
    found = {title: Outcome(*row) for title, row in zip(own, means.tolist(), strict=True)}
    for title, outcome in found.items():
        print(
            f"  {title:18s} error {outcome.error:6.2f} %  alignment {outcome.alignment:.3f}  {outcome.seconds:8.3f} s",
            flush=True,
        )
    return found


def _quietly(method: Method, parts: tuple[Data, Data, Data]) -> Outcome:
    warnings.filterwarnings("ignore")
    _warm_up()
    return method(*parts)


def ranks_and_seconds(outcomes: Sequence[dict[str, Outcome]], data: str) -> dict[str, float]:
    """Print and return the median rank in error of each method over tasks, and print its mean time, by Table 6.4."""
    paper = expected(__file__)["table_6_4"][data]
    names = list(outcomes[0])
    found = median_ranks({name: np.array([task[name].error for task in outcomes]) for name in names})
    seconds = np.mean([[task[name].seconds for name in names] for task in outcomes], axis=0)
    lines = []
    for (name, rank), spent in zip(found.items(), seconds.tolist(), strict=True):
        theirs = [*paper.get(name, ()), None, None][:2]
        shown = ["" if value is None else f"{value:g}" for value in theirs]
        faster = "" if theirs[1] is None else f"{theirs[1] / spent:.0f}x"
        lines.append((name, f"{rank:.1f}", shown[0], f"{spent:.3f}", shown[1], faster))
    show(f"Table 6.4, {data}", ("", "median rank", "thesis", "seconds", "thesis", "faster"), lines)
    return found


@cache
def _warm_up() -> None:
    """Compile everything once in each process, so that no method's time has that in it."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    part = Data(X, (X[:, 0] > 0).astype(int))
    for method in methods([0.5, 1.0, 2.0], 0.1, 10.0).values():
        method(part, part, part)
