"""Figure 6.4: polynomial kernels on real data (thesis, section 6.1.4), those of its data sets that are at hand.

    MANYKERNELS_DATA=<folder> python -m benchmarks.papers.many_kernels.figure_6_4 [--runs 10] [--out folder]

Ridge regression on labels of variance 1; test errors are mean squared errors over the runs, with the split sizes of
Table 6.2. The regularization is chosen on the validation part. "prior" divides the kernels of degree 3 by 4.
"""

from __future__ import annotations

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from benchmarks.papers.many_kernels.common import Hierarchical, arguments, bars, conclude, runs_of, split
from manykernels import MKLRegressor
from manykernels.kernels import Linear, PowerOfSum, ProductKernels

CS = 10.0 ** np.arange(-3, 4.1)


def methods(r: int) -> dict:
    base = [Linear(columns=[j]) for j in range(r)]

    def sgd(degree: int, prior=None):
        family = ProductKernels(base, degree, prior)
        return lambda C: MKLRegressor(family, norm=2.0, C=C, max_iter=100, random_state=0)

    found = {"SGD-1s D=2": sgd(2), "SGD-1s D=3": sgd(3), "SGD-1s D=3, prior": sgd(3, [1.0, 1.0, 4.0])}
    for degree in (2, 3):
        found[f"HMKL D={degree}"] = lambda C, degree=degree: Hierarchical(C, degree, max_kernels=100)
        kernel = PowerOfSum(base, degree)
        found[f"NLMKL D={degree}"] = lambda C, kernel=kernel: MKLRegressor(
            combination=kernel, norm=2.0, C=C, max_iter=30
        )
    for p in (1.0, 2.0):
        found[f"LPMKL p={p:g}"] = lambda C, p=p: MKLRegressor(base, norm=p, C=C)
    for degree in (1, 2, 3):
        found[f"UNIFORM D={degree}"] = lambda C, degree=degree: KernelRidge(
            alpha=1 / C, kernel="poly", degree=degree, gamma=1.0, coef0=1.0
        )
    return found


def main() -> None:
    options = arguments(__doc__, runs=10, data=["ida_ringnorm", "ida_waveform", "ionosphere", "sonar"])
    means: dict[str, list[float]] = {}
    for name in options.data:
        print(f"\n{name}: mean squared error over {options.runs} runs")
        (X, _), _, _ = split(name, 0)
        for title, make in methods(X.shape[1]).items():
            found = runs_of(make, name, CS, options.runs)
            means.setdefault(title, []).append(float(found.errors.mean()))
            print(f"  {title:18s} {found}", flush=True)
        bars(options.out, f"figure_6_4_{name}", {t: own[-1] for t, own in means.items()}, "test error")
    mean = {title: float(np.mean(own)) for title, own in means.items()}
    conclude("products (SGD-1s, HMKL) do better than linear kernels (LPMKL)",
             max(mean["SGD-1s D=2"], mean["HMKL D=2"]) < min(mean["LPMKL p=1"], mean["LPMKL p=2"]))  # fmt: skip
    conclude("NLMKL does worse than SGD-1s and HMKL", mean["NLMKL D=2"] > max(mean["SGD-1s D=2"], mean["HMKL D=2"]))
    conclude("the prior takes off some of the overfitting of degree 3", mean["SGD-1s D=3, prior"] <= mean["SGD-1s D=3"])


if __name__ == "__main__":
    main()
