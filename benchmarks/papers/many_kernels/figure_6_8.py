"""Figure 6.8: error and time against the number of samples and of kernels (thesis, section 6.2.1).

    python -m benchmarks.papers.many_kernels.figure_6_8 [--samples 50 500] [--kernels 50 2000] [--runs 3]

The data of Figure 6.6 with gamma = 40.
"""

from __future__ import annotations

import numpy as np

from benchmarks.papers.many_kernels.common import arguments, conclude, plot
from benchmarks.papers.many_kernels.figure_6_6 import GRID, split
from benchmarks.papers.many_kernels.machines import compare, methods

LISTS = ("AMKL", "LPMKL (p=1)", "LPMKL (p=2)", "UNIFORM")


def main() -> None:
    options = arguments(__doc__, samples=[50, 100, 200, 500], kernels=[50, 100, 200, 500, 1000, 2000], runs=3)
    by_samples, by_kernels = {}, {}
    for n in options.samples:
        print(f"\n{n} samples, 50 kernels")
        by_samples[n] = compare(methods(GRID, 1e-3, 1e5), lambda run, n=n: split(40.0, run, n), options.runs)
    for m in options.kernels:
        print(f"\n50 samples, {m} kernels")
        every = methods(np.geomspace(1e-3, 1e3, m), 1e-3, 1e5)
        own = {title: every[title] for title in LISTS}
        by_kernels[m] = compare(own, lambda run: split(40.0, run), options.runs)
    for title, found in (("samples", by_samples), ("kernels", by_kernels)):
        for what in ("error", "seconds"):
            names = next(iter(found.values()))
            curves = {t: (list(found), [getattr(found[size][t], what) for size in found]) for t in names}
            plot(options.out, f"figure_6_8_{title}_{what}", curves, xlabel=title, ylabel=what, logx=True, logy=True)
    few, many = by_kernels[min(by_kernels)], by_kernels[max(by_kernels)]
    conclude("more kernels on the same range help nobody: no list method gains a point",
             all(many[t].error > few[t].error - 1.0 for t in LISTS))  # fmt: skip
    largest = by_samples[max(by_samples)]
    conclude("of the methods with one width that learn, GCD-2s (1D) is the fastest at the largest size, or AMKL is",
             min(largest["GCD-2s (1D)"].seconds, largest["AMKL"].seconds)
             <= min(largest[t].seconds for t in ("CKL (1D)", "LPMKL (p=1)", "LPMKL (p=2)")))  # fmt: skip
    conclude("GCD-2s (nD, NoReg) is faster than CKL (nD)",
             largest["GCD-2s (nD, NoReg)"].seconds < largest["CKL (nD)"].seconds)  # fmt: skip


if __name__ == "__main__":
    main()
