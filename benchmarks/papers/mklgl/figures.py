"""Figures 1 and 2 of MKLGL: the objective against time, and the five largest weights along the iterations.

    MANYKERNELS_DATA=<folder> python -m benchmarks.papers.mklgl.figures [--data sonar] [--out folder]

The data sets of Table 1, 80 % of the samples, C = 100.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.framework import Setting, run, show
from benchmarks.papers.mklgl.common import arguments, signs, split
from benchmarks.papers.mklgl.table_1 import SOLVERS
from manykernels.kernels import standard_bank
from manykernels.norms import LpNorm
from manykernels.outer.recorder import Recorder

DATA = ("ionosphere", "breast_wisconsin", "sonar", "pima")


@contextmanager
def weights_along_the_way():
    """Yield a list that every solver's iterates are added to."""
    found, original = [], Recorder.record

    def record(self, weights, machine, certificate):
        found.append(weights.copy())
        original(self, weights, machine, certificate)

    Recorder.record = record
    try:
        yield found
    finally:
        Recorder.record = original


def draw(folder: Path | None, name: str, traces: dict, weights: dict) -> None:
    if folder is None:
        return
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = pyplot.subplots(1, 1 + len(weights), figsize=(14, 4), layout="constrained")
    for solver, trace in traces.items():
        axes[0].plot([s.seconds for s in trace], [s.objective for s in trace], label=solver)
    axes[0].set(xlabel="seconds", ylabel="objective", yscale="log", title=f"{name}: Figure 1")
    axes[0].legend()
    for ax, (solver, path) in zip(axes[1:], weights.items(), strict=True):
        largest = np.argsort(-path[-1])[:5]
        ax.plot(np.array(path)[:, largest])
        ax.set(xlabel="iteration", ylabel="weight", title=f"{solver}: Figure 2")
    figure.savefig(folder / f"figures_1_2_{name}.png")
    pyplot.close(figure)


def main() -> None:
    own = arguments(__doc__, runs=1)
    for name in own.data or DATA:
        X, y, _, _ = split(name, 0, 0.8)
        setting = Setting(name, X, signs(y), standard_bank(X), LpNorm(1), C=100.0)
        traces, weights, lines = {}, {}, []
        for solver, method in SOLVERS.items():
            with weights_along_the_way() as path:
                (row,) = run(setting, {solver: method}, tol=1e-2)
            traces[solver], weights[solver] = row.trace, path[-len(row.trace) :]
            changes = np.abs(np.diff([entry / entry.sum() for entry in weights[solver]], axis=0)).sum(axis=1)
            rough = float(changes[1:].max(initial=0.0))
            lines.append((solver, str(len(row.trace)), f"{row.seconds:.3f}", f"{rough:.2f}"))
        show(
            f"Figures 1 and 2, {name}", ("solver", "iterations", "seconds", "largest change of weights"), lines, own.out
        )
        draw(own.out, name, traces, weights)


if __name__ == "__main__":
    main()
