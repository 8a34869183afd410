"""Figure 6.12 and Table 6.4: other data sets (thesis, section 6.2.2), those that are at hand.

    MANYKERNELS_DATA=<folder> python -m benchmarks.papers.many_kernels.figure_6_12 [--runs 3] [--out folder]

The split sizes of Table 6.2, features standardized; lists of 20 widths from 0.1 to 100. The thesis has eleven sets.
"""

from __future__ import annotations

import numpy as np

from benchmarks.papers.many_kernels.common import SIZES, arguments, bars, conclude, split
from benchmarks.papers.many_kernels.machines import Data, compare, methods, ranks_and_seconds


def classes(name: str, run: int) -> tuple[Data, Data, Data]:
    first, second, third = (Data(X, np.where(y > 0, 1, -1)) for X, y in split(name, run))
    return first, second, third


def main() -> None:
    options = arguments(__doc__, runs=3, data=sorted(SIZES))
    own = methods(np.geomspace(0.1, 100.0, 20), 1e-2, 1e3)
    outcomes = []
    for name in options.data:
        print(f"\n{name}")
        outcomes.append(compare(own, lambda run, name=name: classes(name, run), options.runs))
        bars(options.out, f"figure_6_12_{name}", {t: o.error for t, o in outcomes[-1].items()}, "error in %")
    ranks = ranks_and_seconds(outcomes, "other")
    conclude("many widths with shrinkage rank before CKL with many widths", ranks["GCD-2s (nD)"] < ranks["CKL (nD)"])
    conclude("the equal sum ranks behind GCD-2s", ranks["UNIFORM"] > max(ranks["GCD-2s (1D)"], ranks["GCD-2s (nD)"]))


if __name__ == "__main__":
    main()
