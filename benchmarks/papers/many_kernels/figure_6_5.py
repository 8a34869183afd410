"""Figures 6.5 and 6.14, Tables 6.3 and 6.5: Gaussian kernels of all widths on real data (thesis, 6.1.5 and 6.3).

    MANYKERNELS_DATA=<folder> python -m benchmarks.papers.many_kernels.figure_6_5 [--runs 10] [--out folder]

Ridge regression on labels of variance 1, the data sets at hand, the split sizes of Table 6.2. One width ("1D") or one
for each feature ("nD") between 1e-4 and 1e4. CKL moves towards the best kernel by a line search (it is GCD-1s, too),
IKL re-learns all weights, SGD-1s draws widths near the best; LPMKL has 50 widths, UNIFORM their equal sum. The thesis's
median ranks: SGD-1s 3 / 6, CKL 3 / 3.5, IKL 3.5 / 5, LPMKL 3, UNIFORM 6.5 (1D / nD).
"""

from __future__ import annotations

import numpy as np

from benchmarks.papers.many_kernels.common import SIZES, arguments, bars, conclude, runs_of
from manykernels import MKLRegressor
from manykernels.kernels import Gaussian, GaussianFamily

CS = 10.0 ** np.arange(-3, 4.1)
LOW, HIGH = 1e-4, 1e4


def methods() -> dict:
    grid = [Gaussian(1e-4 * 1.6**i / np.sqrt(2)) for i in range(50)]
    one, many = GaussianFamily(LOW, HIGH), GaussianFamily(LOW, HIGH, per_feature=True, n_starts=1)

    def on(family, solver: str, norm: float, steps: int):
        return lambda C: MKLRegressor(family, norm=norm, C=C, solver=solver, tol=1e-2, max_iter=steps, random_state=0)

    return {
        "SGD-1s (1D)": on(one, "stochastic_mirror", 2.0, 50),
        "SGD-1s (nD)": on(many, "stochastic_mirror", 2.0, 20),
        "CKL (1D)": on(one, "ckl", 1.0, 50),
        "CKL (nD)": on(many, "ckl", 1.0, 20),
        "IKL (1D)": on(one, "greedy", 1.0, 50),
        "IKL (nD)": on(many, "greedy", 1.0, 20),
        "LPMKL": lambda C: MKLRegressor(grid, norm=2.0, C=C, tol=1e-2),
        "UNIFORM": lambda C: MKLRegressor(grid, norm=np.inf, C=C),
    }


def main() -> None:
    options = arguments(__doc__, runs=10, data=sorted(SIZES))
    table = []
    for name in options.data:
        print(f"\n{name}: mean squared error over {options.runs} runs")
        row = []
        for title, make in methods().items():
            found = runs_of(make, name, CS, options.runs)
            row.append(float(found.errors.mean()))
            print(f"  {title:12s} {found}", flush=True)
        table.append(row)
        bars(options.out, f"figure_6_5_{name}", dict(zip(methods(), row, strict=True)), "test error")
    ranks = np.median(1 + np.argsort(np.argsort(table, axis=1), axis=1), axis=0)
    found = dict(zip(methods(), ranks.tolist(), strict=True))
    print("\nmedian ranks:", "  ".join(f"{title} {rank:g}" for title, rank in found.items()))
    conclude("one width does as well as one for each feature, or better, by median rank",
             np.mean([found[f"{k} (1D)"] for k in ("SGD-1s", "CKL", "IKL")])
             <= np.mean([found[f"{k} (nD)"] for k in ("SGD-1s", "CKL", "IKL")]))  # fmt: skip
    conclude("the equal sum of all widths ranks behind CKL and IKL with one width",
             found["UNIFORM"] >= max(found["CKL (1D)"], found["IKL (1D)"]))  # fmt: skip
    conclude("SGD-1s and greedy selection with one width differ by a rank or less",
             abs(found["SGD-1s (1D)"] - found["CKL (1D)"]) <= 1)  # fmt: skip


if __name__ == "__main__":
    main()
