"""What a report costs beyond the fits it needs, with ten thousand kernels: seconds and bytes.

    python -m benchmarks.scale.report [--kernels 10000] [--norm 1] [--folds 3]

Targets: under 2 MB, and under 5 s beyond the fits.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from manykernels import MKLClassifier
from manykernels.kernels import Gaussian


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=10_000)
    parser.add_argument("--norm", type=float, default=1.0)
    parser.add_argument("--folds", type=int, default=3)
    own = parser.parse_args()
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = StandardScaler().set_output(transform="pandas").fit_transform(X)
    columns = [None, *([name] for name in X)]
    widths = np.geomspace(0.1, 50.0, -(-own.kernels // len(columns)))
    kernels = [Gaussian(width, columns=names) for names in columns for width in widths][: own.kernels]
    model = MKLClassifier(kernels, norm=own.norm, tol=1e-2).fit(X, y)
    report = model.report(X, y, folds=own.folds)
    print(
        f"{len(kernels):,} kernels, {model.active_.size:,} with a weight: {len(report.html.encode()) / 1e6:.2f} MB "
        f"(target 2), {report.fit_seconds:.0f} s of fits and {report.other_seconds:.2f} s beyond them (target 5)"
    )


if __name__ == "__main__":
    main()
