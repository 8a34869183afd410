"""Figures 6.5 and 6.14, Tables 6.3 and 6.5: Gaussian kernels of all widths on real data (thesis, 6.1.5 and 6.3).

    MANYKERNELS_DATA=<folder> python -m benchmarks.papers.many_kernels.figure_6_5 [--runs 10] [--full] [--out folder]

Ridge regression on labels of variance 1, the data sets at hand, the split sizes of Table 6.2. One width ("1D") or one
for each feature ("nD") between 1e-4 and 1e4, with the regularization chosen on the validation part. CKL moves toward
the best kernel by a line search (it is GCD-1s, too), IKL re-learns all weights, SGD-1s draws widths near the best;
LPMKL has 50 widths, UNIFORM their equal sum. GCD-2s learns the kernel by alignment first. On the sets with
500 training samples three runs are made, unless --full is given. With a folder, what was computed is kept there, and a
run that was broken off goes on.
"""

from __future__ import annotations

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from benchmarks.framework import expected, show
from benchmarks.papers.many_kernels.common import SIZES, arguments, bars, conclude, median_ranks, remembered, runs_of
from manykernels import MKLRegressor, TwoStageMKLRegressor
from manykernels.kernels import Gaussian, GaussianFamily

CS = 10.0 ** np.arange(-3, 4.1)
LOW, HIGH = 1e-4, 1e4
LARGE = 500


def methods() -> dict:
    grid = [Gaussian(1e-4 * 1.6**i / np.sqrt(2)) for i in range(50)]
    one, many = GaussianFamily(LOW, HIGH), GaussianFamily(LOW, HIGH, per_feature=True, n_starts=1)

    def on(family, solver: str, norm: float, steps: int):
        return lambda C: MKLRegressor(family, norm=norm, C=C, solver=solver, tol=1e-2, max_iter=steps, random_state=0)

    def aligned(family, C: float):
        learner = KernelRidge(kernel="precomputed", alpha=1 / C)
        return TwoStageMKLRegressor(family, learner=learner, validation_fraction=None)

    return {
        "SGD-1s (1D)": on(one, "stochastic_mirror", 2.0, 50),
        "SGD-1s (nD)": on(many, "stochastic_mirror", 2.0, 20),
        "CKL (1D)": on(one, "ckl", 1.0, 50),
        "CKL (nD)": on(many, "ckl", 1.0, 20),
        "IKL (1D)": on(one, "greedy", 1.0, 50),
        "IKL (nD)": on(many, "greedy", 1.0, 20),
        "GCD-2s (1D)": lambda C: aligned(one, C),
        "GCD-2s (nD)": lambda C: aligned(many, C),
        "LPMKL": lambda C: MKLRegressor(grid, norm=2.0, C=C, tol=1e-2),
        "UNIFORM": lambda C: MKLRegressor(grid, norm=np.inf, C=C),
    }


def errors_on(name: str, runs: int) -> list[float]:
    """Print and return the mean error of each method on a data set."""
    print(f"\n{name}: mean squared error over {runs} runs")
    row = []
    for title, make in methods().items():
        found = runs_of(make, name, CS, runs)
        row.append(float(found.errors.mean()))
        print(f"  {title:12s} {found}", flush=True)
    return row


def main() -> None:
    options = arguments(__doc__, runs=10, full=False, data=sorted(SIZES, key=lambda name: SIZES[name][0]))
    table = []
    for name in options.data:
        runs = options.runs if options.full or SIZES[name][0] < LARGE else min(options.runs, 3)
        key = f"figure_6_5_{name}_{runs}_runs_{len(methods())}_methods"
        row = remembered(options.out, key, lambda name=name, runs=runs: errors_on(name, runs))
        table.append(row)
        bars(options.out, f"figure_6_5_{name}", dict(zip(methods(), row, strict=True)), "test error")
    titles, errors = list(methods()), np.array(table)
    by_title = dict(zip(titles, errors.T, strict=True))
    one_stage = shown_ranks({title: by_title[title] for title in titles if "2s" not in title}, "Table 6.3")
    both = shown_ranks({title: by_title[title] for title in titles if title[:3] in ("SGD", "CKL", "GCD")}, "Table 6.5")
    conclude("one width does as well as one for each feature, or better, by median rank (Table 6.3)",
             np.mean([one_stage[f"{k} (1D)"] for k in ("SGD-1s", "CKL", "IKL")])
             <= np.mean([one_stage[f"{k} (nD)"] for k in ("SGD-1s", "CKL", "IKL")]))  # fmt: skip
    conclude("the equal sum of all widths ranks behind CKL and IKL with one width",
             one_stage["UNIFORM"] >= max(one_stage["CKL (1D)"], one_stage["IKL (1D)"]))  # fmt: skip
    conclude("SGD-1s and greedy selection with one width differ by a rank or less",
             abs(one_stage["SGD-1s (1D)"] - one_stage["CKL (1D)"]) <= 1)  # fmt: skip
    conclude("alignment with one width ranks first (Table 6.5)", both["GCD-2s (1D)"] == min(both.values()))


def shown_ranks(errors: dict[str, np.ndarray], title: str) -> dict[str, float]:
    found, paper = median_ranks(errors), expected(__file__)[title.lower().replace(" ", "_").replace(".", "_")]
    lines = [(name, f"{rank:g}", f"{paper[name]:g}") for name, rank in found.items()]
    show(f"{title}, median ranks", ("", "here", "thesis"), lines)
    return found


if __name__ == "__main__":
    main()
