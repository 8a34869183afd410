"""Figures 6.6 and 6.7: fifty features of which fewer and fewer matter (thesis, section 6.2.1).

    python -m benchmarks.papers.many_kernels.figure_6_6 [--gammas 0 1 2 5 10 20 40] [--runs 10] [--out folder]

Two Gaussian classes in 50 dimensions at the distance 2 * 1.75 along beta, beta_i = (i / 50)^gamma; 50 samples to train,
1,000 to choose, 2,000 to test.
"""

from __future__ import annotations

import numpy as np

from benchmarks.papers.many_kernels.common import arguments, conclude, plot
from benchmarks.papers.many_kernels.machines import Data, Outcome, compare, methods

GRID = np.geomspace(1e-3, 1e3, 50)


def split(gamma: float, run: int, n_train: int = 50) -> tuple[Data, Data, Data]:
    rng = np.random.default_rng(1000 * run + int(gamma))
    beta = (np.arange(1, 51) / 50) ** gamma
    mean = 1.75 * beta / np.linalg.norm(beta)
    y = rng.permutation(np.resize([1, -1], n_train + 3000))
    y[:n_train] = np.resize([1, -1], n_train)
    X = rng.normal(size=(y.size, 50)) + y[:, None] * mean
    parts = np.split(np.arange(y.size), [n_train, n_train + 1000])
    first, second, third = (Data(X[own], y[own]) for own in parts)
    return first, second, third


def main() -> None:
    options = arguments(__doc__, gammas=[0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0], runs=10)
    own = methods(GRID, 1e-3, 1e5)
    found = {}
    for gamma in options.gammas:
        print(f"\ngamma = {gamma:g}")
        found[gamma] = compare(own, lambda run, gamma=gamma: split(gamma, run), options.runs)
    for what in ("error", "alignment", "seconds"):
        curves = {t: (list(found), [getattr(found[g][t], what) for g in found]) for t in own}
        plot(options.out, f"figure_6_6_{what}", curves, xlabel="gamma", ylabel=what, logy=what == "seconds")
    check(list(found.values()))


def check(found: list[dict[str, Outcome]]) -> None:
    """State the thesis's conclusions; gamma grows from the first to the last."""
    first, last = found[0], found[-1]
    one, many, free = "GCD-2s (1D)", "GCD-2s (nD)", "GCD-2s (nD, NoReg)"
    conclude("with one width the error rises with gamma", last[one].error > first[one].error)
    conclude(
        "many widths cope: less error at the largest gamma than one width, for GCD-2s and CKL",
        last[many].error < last[one].error and last["CKL (nD)"].error < last["CKL (1D)"].error,
    )
    conclude(
        "without shrinkage many widths overfit at gamma = 0",
        min(first[free].error, first["CKL (nD)"].error) > first[many].error + 1.0,
    )
    conclude("at the largest gamma many widths are aligned better", last[many].alignment > last[one].alignment)
    conclude(
        "the list is fine enough: AMKL is aligned like GCD-2s (1D)",
        max(abs(own["AMKL"].alignment - own[one].alignment) for own in found) < 0.02,
    )
    for own, other in ((one, "CKL (1D)"), (free, "CKL (nD)")):
        ratio = np.mean([outcome[other].seconds / outcome[own].seconds for outcome in found])
        conclude(f"{own} is faster than {other}: {ratio:.1f} times", ratio > 1.0)


if __name__ == "__main__":
    main()
