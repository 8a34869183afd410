"""Every solver on one problem: time, SVM solves, passes over the kernels, objective and gap.

    MANYKERNELS_DATA=<folder> python -m benchmarks.solvers [--data sonar] [--norm 1] [--C 100] [--tol 1e-3] [--limit 60]

The standard kernels with unit trace, hinge loss, standardized features. A solver is stopped after ``limit`` seconds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.framework import HEADINGS, Setting, cells, plot_gaps, run, show
from manykernels import datasets
from manykernels.estimators.solvers import SOLVERS
from manykernels.kernels import standard_bank
from manykernels.norms import LpNorm
from manykernels.problem import Problem


def standardized(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a data set of two classes with features of mean 0 and variance 1, and labels -1 and 1."""
    data = datasets.load(name)
    X, target = np.asarray(data.data, dtype=float), np.asarray(data.target)
    return StandardScaler().fit_transform(X), np.where(target == np.unique(target)[-1], 1.0, -1.0)


def allowed(problem: Problem, names: list[str]) -> dict:
    """Return the solvers that take the problem's norm and loss."""
    found = {}
    for name in names:
        try:
            SOLVERS[name](problem, tol=0.5, max_iter=1)
        except (TypeError, ImportError) as reason:
            print(f"{name}: left out. {reason}")
        else:
            found[name] = SOLVERS[name]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="sonar")
    parser.add_argument("--solvers", nargs="*", default=list(SOLVERS), choices=list(SOLVERS))
    parser.add_argument("--out", type=Path, help="folder for the table and the plot")
    for name, value in (("norm", 1.0), ("C", 100.0), ("tol", 1e-3), ("limit", 60.0)):
        parser.add_argument(f"--{name}", type=float, default=value)
    own = parser.parse_args()
    X, y = standardized(own.data)
    setting = Setting(own.data, X, y, standard_bank(X), LpNorm(own.norm), C=own.C)
    rows = run(setting, allowed(setting.part(40).problem(), own.solvers), tol=own.tol, limit=own.limit)
    title = f"{own.data}, {len(setting.kernels)} kernels, p = {own.norm:g}, C = {own.C:g}"
    show(title, HEADINGS, map(cells, sorted(rows, key=lambda row: (not row.finished, row.seconds))), own.out)
    plot_gaps(rows, title, own.out)


if __name__ == "__main__":
    main()
