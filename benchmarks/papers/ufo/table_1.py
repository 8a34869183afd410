"""Table 1 of UFO-MKL (Orabona and Jie, 2011): accuracy, kernels and time by loss and alpha, beside the paper's.

    MANYKERNELS_DATA=<folder> python -m benchmarks.papers.ufo.table_1 [liver ionosphere sonar] [--splits 20]

Kernels are those of SimpleMKL's experiments, which the paper follows: Gaussians of ten widths and polynomials of degree
1 to 3 on all features and on each, of unit trace. 70 % of the samples for training, features of zero mean and unit
variance, C = 100, no bias, 10 epochs (20 on sonar). The steps are the paper's ("gradient"), or ours ("exact") with the
same number of epochs. The time is that of fit, with the kernels. The last column is the relative duality gap.
"""

from __future__ import annotations

import argparse
import time
import tomllib
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from manykernels import UFOMKLClassifier, datasets
from manykernels.kernels import Gaussian, KernelBank, Polynomial

EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())["table_1"]
WIDTHS = (0.5, 1, 2, 5, 7, 10, 12, 15, 17, 20)
EPOCHS = {"liver": 10, "ionosphere": 10, "sonar": 20}


def simple_mkl_kernels(n_features: int) -> KernelBank:
    kernels = []
    for columns in (None, *([j] for j in range(n_features))):
        kernels += [Gaussian(width, columns=columns) for width in WIDTHS]
        kernels += [Polynomial(degree, columns=columns) for degree in (1, 2, 3)]
    return KernelBank(kernels)


def load(name: str):
    data = datasets.load(name)
    X = np.asarray(data.data, dtype=float)
    return X[:, X.std(axis=0) > 0], np.asarray(data.target)


def one_fit(X, y, train, test, **parameters) -> tuple[float, float, int, float]:
    scaler = StandardScaler().fit(X[train])
    left, right = scaler.transform(X[train]), scaler.transform(X[test])
    left, right = left[:, left.std(axis=0) > 0], right[:, left.std(axis=0) > 0]
    model = UFOMKLClassifier(
        simple_mkl_kernels(left.shape[1]), C=100.0, normalize="trace", fit_intercept=False, random_state=0, **parameters
    )
    started = time.perf_counter()
    model.fit(left, y[train])
    seconds = time.perf_counter() - started
    return seconds, 100 * model.score(right, y[test]), model.active_.size, model.gap_


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="*", default=list(EPOCHS))
    parser.add_argument("--splits", type=int, default=20)
    arguments = parser.parse_args()
    for name in arguments.data:
        X, y = load(name)
        splits = list(StratifiedShuffleSplit(arguments.splits, train_size=0.7, random_state=0).split(X, y))
        for loss in ("hinge", "logistic"):  # compiled before anything is timed
            for step in ("gradient", "exact"):
                one_fit(X, y, *splits[0], loss=loss, step=step, max_iter=1)
        print(f"\n{name}: N={splits[0][0].size}, F={13 * (X.shape[1] + 1)}, {EPOCHS[name]} epochs, C=100")
        print(
            "loss      alpha    steps      accuracy         paper        kernels  paper   seconds   times faster    gap"
        )
        seconds, accuracy, kernels = EXPECTED[name]["silp"]
        print(f"SILP, in the paper: {accuracy} %, {kernels} kernels, {seconds} s")
        for loss in ("hinge", "logistic"):
            for alpha, paper_seconds, paper_accuracy, paper_std, paper_kernels in EXPECTED[name][loss]:
                for step in ("gradient", "exact"):
                    options = {"loss": loss, "alpha": alpha, "step": step, "max_iter": EPOCHS[name]}
                    rows = np.array([one_fit(X, y, *split, **options) for split in splits])
                    seconds, accuracy, kernels, gap = rows.mean(axis=0)
                    inside = "" if abs(accuracy - paper_accuracy) <= paper_std else " outside"
                    if accuracy > paper_accuracy + paper_std:
                        inside = " above"
                    print(
                        f"{loss:9s} {alpha:.1e}  {step:9s} {accuracy:5.1f} +- {rows[:, 1].std():3.1f}    "
                        f"{paper_accuracy:5.1f} +- {paper_std:3.1f}   {kernels:6.1f}  {paper_kernels:6.1f}   "
                        f"{seconds:6.3f}    {paper_seconds / seconds:6.0f}       {gap:.1e}{inside}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
