"""Table 2 of MKLGL: 34 features that all matter, one linear kernel each; accuracy and seconds against p.

    python -m benchmarks.papers.mklgl.table_2 [--runs 20] [--out folder]

400 normal samples, the label is the sign of the mean of the features; half to train, C by cross-validation. MKLSIP is
the semi-infinite program for Lp norms.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from benchmarks.framework import Setting, expected, run, show
from benchmarks.papers.mklgl.common import GAP, accuracy, arguments, best_C, standardized
from manykernels.kernels import KernelBank, Linear
from manykernels.literature.silp import silp
from manykernels.literature.simple import simple
from manykernels.norms import LpNorm
from manykernels.outer.group_lasso import group_lasso

NORMS = (1.0, 2.0, 3.0, 4.0, 10.0, 100.0, 1000.0)


def data(run_number: int):
    rng = np.random.default_rng(run_number)
    X = rng.normal(size=(400, 34))
    y = np.where(X.mean(axis=1) > 0, 1.0, -1.0)
    return standardized(X[:200], X[200:], y[:200], y[200:])


def one_run(number: int) -> dict[str, tuple[float, float]]:
    """Return accuracy and seconds by method and p."""
    X, y, Z, w = data(number)
    bank = KernelBank([Linear(columns=[j]) for j in range(34)])
    found = {}
    for p in (*NORMS, np.inf):
        setting = Setting("synthetic", X, y, bank, LpNorm(p), C=best_C(bank, X, y, p))
        solvers = {"MKLGL": simple if p == 1.0 else group_lasso}
        if 1.0 < p < np.inf:
            solvers["MKLSIP"] = silp
        for row in run(setting, solvers, tol=GAP):
            label = "sum" if np.isinf(p) else f"{p:g}"
            found[f"{row.solver} {label}"] = (accuracy(setting, row.result, Z, w), row.seconds)
    return found


def main() -> None:
    own = arguments(__doc__, runs=20)
    paper = expected(__file__)["table_2"]
    found = [one_run(number) for number in range(own.runs)]
    lines, by_p = [], {}
    for title in found[0]:
        solver, label = title.split()
        values = np.array([entry[title] for entry in found])
        (right, seconds), spread = values.mean(axis=0), values[:, 0].std()
        theirs = paper[solver][label]
        by_p[title] = right
        lines.append(
            (title, f"{right:.1f} +- {spread:.1f}", f"{theirs[0]} +- {theirs[1]}", f"{seconds:.3f}", f"{theirs[2]}")
        )
    show(f"Table 2, {own.runs} runs", ("", "accuracy", "paper", "seconds", "paper"), lines, own.out)
    rising = [by_p[f"MKLGL {p:g}"] for p in NORMS]
    print("the accuracy rises with p:", all(b >= a - 0.5 for a, b in pairwise(rising)))


if __name__ == "__main__":
    main()
