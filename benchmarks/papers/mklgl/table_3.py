"""Table 3 of MKLGL: accuracy against p on Bci, Usps and Coil.

    MANYKERNELS_DATA=<folder> python -m benchmarks.papers.mklgl.table_3 [--runs 5 | --full] [--out folder]

The 13 standard kernels on all features with unit trace, half of the samples to train, C by cross-validation.
"""

from __future__ import annotations

import warnings

import numpy as np
from joblib import Parallel, delayed

from benchmarks.framework import expected, show
from benchmarks.papers.mklgl.common import GAP, arguments, best_C, split
from manykernels import MKLClassifier
from manykernels.kernels import Gaussian, KernelBank, Polynomial

KERNELS = KernelBank([Gaussian(2.0**k) for k in range(-3, 7)] + [Polynomial(d) for d in (1, 2, 3)])


def one_run(name: str, number: int, labels: list[str]) -> list[float]:
    """Return the accuracy for each p."""
    warnings.simplefilter("ignore")
    X, y, Z, w = split(name, number, 0.5)
    found = []
    for label in labels:
        p = np.inf if label == "sum" else float(label)
        C = best_C(KERNELS, X, y, p)
        model = MKLClassifier(KERNELS, norm=p, C=C, normalize="trace", tol=GAP).fit(X, y)
        found.append(100.0 * model.score(Z, w))
    return found


def main() -> None:
    own = arguments(__doc__, runs=5)
    paper = expected(__file__)["table_3"]
    for name in own.data or paper:
        labels = list(paper[name])
        found = np.array(Parallel(n_jobs=2)(delayed(one_run)(name, number, labels) for number in range(own.runs)))
        lines = []
        for label, values in zip(labels, found.T, strict=True):
            mean, spread = paper[name][label]
            near = abs(values.mean() - mean) <= 2 * max(spread, values.std())
            shown = f"{values.mean():.1f} +- {values.std():.1f}"
            lines.append((label, shown, f"{mean} +- {spread}", "yes" if near else "no"))
        show(f"Table 3, {name}, {own.runs} runs", ("p", "accuracy", "paper", "within two deviations"), lines, own.out)


if __name__ == "__main__":
    main()
