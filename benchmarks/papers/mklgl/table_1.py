"""Table 1 of MKLGL: SimpleMKL and the closed-form alternation, accuracy, seconds and SVM solves.

    MANYKERNELS_DATA=<folder> python -m benchmarks.papers.mklgl.table_1 [--runs 5 | --full] [--out folder]

The standard kernels with unit trace, 80 % of the samples to train, C by cross-validation, to a relative duality gap of
0.01. The paper's breast data have 117 kernels, ours 130: it must have left out a feature.
"""

from __future__ import annotations

import numpy as np

from benchmarks.framework import Setting, expected, run, show
from benchmarks.papers.mklgl.common import GAP, accuracy, arguments, best_C, signs, split
from manykernels.kernels import standard_bank
from manykernels.literature.simple import simple
from manykernels.norms import LpNorm
from manykernels.outer.group_lasso import group_lasso

SOLVERS = {"SimpleMKL": simple, "MKLGL": group_lasso}
HEADINGS = ("", "accuracy", "paper", "seconds", "paper", "faster", "SVM solves", "paper")


def one_run(name: str, number: int) -> dict[str, tuple[float, float, float]]:
    """Return accuracy, seconds and SVM solves of each method."""
    X, y, Z, w = split(name, number, 0.8)
    bank = standard_bank(X)
    C = best_C(bank, X, y, 1.0)
    setting = Setting(name, X, signs(y), bank, LpNorm(1), C=C)
    rows = run(setting, SOLVERS, tol=GAP)
    return {r.solver: (accuracy(setting, r.result, Z, signs(w)), r.seconds, r.inner_solves) for r in rows}


def main() -> None:
    own = arguments(__doc__, runs=5)
    paper = expected(__file__)["table_1"]
    for name in own.data or paper:
        found = [one_run(name, number) for number in range(own.runs)]
        lines, solves = [], {}
        for title in SOLVERS:
            values = np.array([entry[title] for entry in found])
            (right, seconds, solves[title]), spread = values.mean(axis=0), values[:, 0].std()
            theirs = paper[name][title]
            lines.append(
                (
                    title,
                    f"{right:.1f} +- {spread:.1f}",
                    f"{theirs[0]} +- {theirs[1]}",
                    f"{seconds:.3f}",
                    f"{theirs[2]}",
                    f"{theirs[2] / seconds:.0f}x",
                    f"{solves[title]:.0f}",
                    f"{theirs[3]:.0f}",
                )
            )
            if abs(right - theirs[0]) > theirs[1]:
                print(f"{name}, {title}: the accuracy is more than a standard deviation from the paper's.")
        show(f"Table 1, {name}, {own.runs} runs", HEADINGS, lines, own.out)
        ratio = paper[name]["SimpleMKL"][3] / paper[name]["MKLGL"][3]
        print(f"SVM solves, SimpleMKL / MKLGL: {solves['SimpleMKL'] / solves['MKLGL']:.1f}, the paper {ratio:.1f}")


if __name__ == "__main__":
    main()
