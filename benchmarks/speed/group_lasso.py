"""Lp-norm MKL by the closed-form alternation on Sonar: iterations, and time beside the cost of streaming the kernels.

    MANYKERNELS_DATA=<folder> python -m benchmarks.speed.group_lasso

793 kernels of unit trace, C = 100, gap 1e-3, the kernel matrices already in the bank. Targets for p = 2: at most 8
iterations, and at most 3 times the time that streaming takes: each iteration is one combining pass and one pass of
quadratic forms over the float32 triangles of all kernels.
"""

from __future__ import annotations

import numpy as np

from benchmarks.timing import seconds, streaming_seconds
from manykernels import datasets
from manykernels.banks import Recipe, bind
from manykernels.compute.triangles import triangle_size
from manykernels.kernels import standard_bank
from manykernels.losses import Hinge
from manykernels.norms import LpNorm
from manykernels.outer.group_lasso import group_lasso
from manykernels.problem import Problem


def main() -> None:
    data = datasets.load("sonar")
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    y = np.where(data.target == np.max(data.target), 1.0, -1.0)
    bank = bind(standard_bank(X), X, Recipe(normalize="trace"))
    stream = streaming_seconds(4 * bank.n_kernels * triangle_size(X.shape[0]))
    print(f"Sonar: {X.shape[0]} samples, {bank.n_kernels} kernels; one pass of streaming: {stream * 1e3:.2f} ms")
    print("     p  iterations      gap    fit ms  streaming ms  ratio")
    for p in (4 / 3, 2.0, 4.0):
        problem = Problem(bank, Hinge(), LpNorm(p), y[None, :], np.full((1, y.size), 100.0))
        result = group_lasso(problem, tol=1e-3)
        fit = seconds(lambda problem=problem: group_lasso(problem, tol=1e-3))
        passes = 2 * result.n_iter * stream
        print(
            f"{p:6.3g} {result.n_iter:11d} {result.certificate.gap:8.1e} {fit * 1e3:9.1f} {passes * 1e3:13.1f} "
            f"{fit / passes:6.2f}"
        )


if __name__ == "__main__":
    main()
