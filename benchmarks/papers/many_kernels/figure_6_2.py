"""Figure 6.2: the objective against time, stochastic selection against the explicit list (thesis, section 6.1.2).

    MANYKERNELS_DATA=<folder> python -m benchmarks.papers.many_kernels.figure_6_2 [--steps 300] [--out folder]

Monomials of degree 1 to 3 of the features, ridge regression with lambda = 1e-5 (C = 1e5), the 2-norm on the weights.
SGD-1s draws one kernel per step in proportion to the gradient, UCD uniformly; LPMKL is the closed-form alternation on
the explicit list, here as columns of one matrix, its fastest form: where the list fits into memory, it is hard to beat.
Times include setting up. "the same weights learned anew" is what the estimators do at the end: the finite solver on the
kernels that were drawn.
"""

from __future__ import annotations

import time
from itertools import combinations_with_replacement

import numpy as np

from benchmarks.papers.many_kernels.common import arguments, conclude, plot, split
from manykernels.banks import Placement, Recipe, bind, bind_family
from manykernels.kernels import KernelBank, Linear, ProductKernels
from manykernels.losses import Squared
from manykernels.norms import LpNorm
from manykernels.outer.family import FamilyProblem
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.stochastic_mirror import stochastic_mirror
from manykernels.problem import Problem

DEGREE, C = 3, 1e5


def stochastic(X, y, draw: str, steps: int):
    started = time.perf_counter()
    family = bind_family(ProductKernels([Linear(columns=[j]) for j in range(X.shape[1])], DEGREE), X)
    ready = time.perf_counter() - started
    problem = FamilyProblem(family, Squared(), LpNorm(2), y[None], np.full((1, len(y)), C), precision="double")
    found = stochastic_mirror(problem, max_iter=steps, draw=draw)
    curve = [(ready + s.seconds, s.objective) for s in found.result.trace]
    return curve, (time.perf_counter() - started, found.result.certificate.primal)


def explicit(X, y, limit: float):
    """The alternation on all monomials, each a column."""
    started = time.perf_counter()
    base = X / np.sqrt(np.mean(X**2, axis=0))
    sets = [own for d in range(1, DEGREE + 1) for own in combinations_with_replacement(range(X.shape[1]), d)]
    Z = np.column_stack([np.prod(base[:, own], axis=1) for own in sets])
    bank = bind(
        KernelBank([Linear(columns=[k]) for k in range(Z.shape[1])]),
        Z,
        Recipe(normalize=None),
        Placement(precision="double"),
    )
    ready = time.perf_counter() - started
    problem = Problem(bank, Squared(), LpNorm(2), y[None], np.full((1, len(y)), C))
    result = group_lasso(problem, tol=1e-6, max_iter=200)
    return [(ready + s.seconds, s.objective) for s in result.trace if s.seconds < limit], len(sets)


def main() -> None:
    options = arguments(__doc__, steps=300, data=["ida_ringnorm", "ida_waveform", "ionosphere", "sonar"])
    for name in options.data:
        (X, y), _, _ = split(name, 0)
        X = X[:, X.std(axis=0) > 0]
        sgd, refined = stochastic(X, y, "gradient", options.steps)
        ucd, _ = stochastic(X, y, "uniform", options.steps)
        lp, count = explicit(X, y, limit=max(sgd[-1][0], 1.0) * 3)
        print(f"\n{name}: n={len(y)}, {X.shape[1]} features, {count} monomials; the objective after a time")
        times = np.geomspace(0.05, max(sgd[-1][0], lp[-1][0]), 7)
        print("seconds        " + "".join(f"{t:10.2f}" for t in times))
        curves = {"SGD-1s": sgd, "UCD": ucd, "LPMKL": lp}
        for title, curve in curves.items():
            reached = [min((value for t, value in curve if t <= limit), default=np.nan) for limit in times]
            print(f"{title:14s} " + "".join(f"{value:10.4g}" for value in reached), flush=True)
        print(
            f"the same weights learned anew: {refined[1]:.4g} after {refined[0]:.2f} s; optimum about {lp[-1][1]:.4g}"
        )
        conclude("drawing in proportion to the gradient beats drawing uniformly", sgd[-1][1] < ucd[-1][1])
        half = sgd[len(sgd) // 2][0]
        other = min((value for t, value in lp if t <= half), default=np.inf)
        conclude("at half of its time SGD-1s is ahead of the explicit alternation",
                 min(v for t, v in sgd if t <= half) < other)  # fmt: skip
        drawn = {title: tuple(zip(*curve, strict=True)) for title, curve in curves.items()}
        plot(options.out, f"figure_6_2_{name}", drawn, xlabel="seconds", ylabel="objective", logx=True, logy=True)


if __name__ == "__main__":
    main()
