"""Figures 2 and 3 of UFO-MKL (Orabona and Jie, 2011) on flowers17: 17 classes, six descriptors, 200 widths each.

    MANYKERNELS_DATA=<folder> python -m benchmarks.papers.ufo.figure_3 [--epochs 10] [--only kernels|alphas|convergence]

    kernels       time and accuracy against the number of kernels, for UFO-MKL and OBSCURE      (Figure 3, top)
    alphas        time, accuracy and selected kernels against alpha                             (Figure 3, bottom)
    convergence   objective against time, UFO-MKL with alpha = 0 and OBSCURE with the same p     (Figure 2, top)

The paper has seven distance matrices of the authors' descriptors; ours are six descriptors that were recomputed from
the images, with Hellinger distances, so accuracies do not compare with the paper's. 60 training images a class,
C = 1000, the multiclass hinge loss; exp(-d / gamma) with gamma from 0.01 to 100, d divided by its mean.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.svm import SVC

from benchmarks.papers.vskl.table_1 import load
from manykernels import UFOMKLClassifier
from manykernels.banks import Placement, bind
from manykernels.banks.pairs import PairValues
from manykernels.kernels import Gaussian, KernelBank
from manykernels.literature.obscure import obscure
from manykernels.losses import MulticlassHinge
from manykernels.outer.ufo import ufo
from manykernels.outer.ufo_sample_theta import SampleTheta
from manykernels.outer.ufo_theta import make_rule

ALPHAS = (0.0001, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.02)
C = 1000.0


def bank(X, views, count: int) -> KernelBank:
    """Return ``count`` kernels for each view: exp(-d / gamma) is a Gaussian of width sqrt(gamma / 2)."""
    kernels = []
    for view, columns in views.items():
        V = X[:, columns]
        mean = 2.0 * float(np.mean(np.sum((V - V.mean(axis=0)) ** 2, axis=1)))
        widths = np.sqrt(np.geomspace(0.01, 100.0, count) * mean / 2.0) if count > 1 else [np.sqrt(mean / 2.0)]
        kernels += [Gaussian(width, columns=columns, group=view, label=view) for width in widths]
    return KernelBank(kernels)


def report(words: str, model: UFOMKLClassifier, X, y, split) -> None:
    train, test = split
    started = time.perf_counter()
    model.fit(X[train], y[train])
    seconds = time.perf_counter() - started
    accuracy = 100 * model.score(X[test], y[test])
    print(
        f"{words:34s} {seconds:8.1f} s  {accuracy:5.1f} %  {model.active_.size:5d} kernels  gap {model.gap_:.1e}",
        flush=True,
    )


def classifier(kernels: KernelBank, epochs: int, alpha: float, step: str) -> UFOMKLClassifier:
    return UFOMKLClassifier(
        kernels,
        alpha=alpha,
        C=C,
        loss="multiclass_hinge",
        max_iter=epochs,
        step=step,
        fit_intercept=False,
        random_state=0,
    )


def against_kernels(X, y, views, split, epochs: int) -> None:
    train, test = split
    print("\nFigure 3, top: the number of kernels")
    for count in (1, 5, 20, 50, 100, 200):
        kernels = bank(X[train], views, count)
        for step in ("gradient", "exact"):
            for alpha in (0.0, 0.005):
                words = f"{len(kernels):5d} kernels, alpha {alpha:g}, {step}"
                report(words, classifier(kernels, epochs, alpha, step), X, y, split)
        obscure_line(kernels, X, y, split, epochs)
    K = bind(bank(X[train], views, 20), X[train])
    started = time.perf_counter()
    weights = np.full(K.n_kernels, 1.0 / K.n_kernels)
    svc = SVC(C=C, kernel="precomputed").fit(K.combine(weights).array, y[train])
    print(f"the mean of 120 kernels, sklearn SVC   {time.perf_counter() - started:8.1f} s  "
          f"{100 * svc.score(K.kernel(weights).cross(X[test]), y[test]):5.1f} %")  # fmt: skip


def obscure_line(kernels: KernelBank, X, y, split, epochs: int) -> None:
    train, test = split
    started = time.perf_counter()
    bound = bind(kernels, X[train], placement=Placement(storage="recomputed"))
    codes = np.unique(y, return_inverse=True)[1].astype(float)
    result = obscure(
        PairValues(bound, 0.0, 8 * 10**9),
        MulticlassHinge(17),
        codes[train, None],
        np.full(train.size, C),
        power=1.01,
        max_iter=epochs,
    )
    seconds = time.perf_counter() - started
    total = result.coef.sum()
    scores = bound.kernel(result.coef / total).cross(X[test]) @ (total * result.beta)
    accuracy = 100 * np.mean(scores.argmax(axis=1) == codes[test])
    print(f"{bound.n_kernels:5d} kernels, OBSCURE p=1.01       {seconds:8.1f} s  {accuracy:5.1f} %  "
          f"{np.count_nonzero(result.norms):5d} kernels", flush=True)  # fmt: skip


def against_alpha(X, y, views, split, epochs: int) -> None:
    print("\nFigure 3, bottom: alpha, with 1,200 kernels")
    kernels = bank(X[split[0]], views, 200)
    for step in ("gradient", "exact"):
        for alpha in ALPHAS:
            report(f"alpha {alpha:g}, {step}", classifier(kernels, epochs, alpha, step), X, y, split)


def convergence(X, y, views, split, epochs: int) -> None:
    print("\nFigure 2, top: the objective against time, alpha = 0, 120 kernels")
    train, _ = split
    bound = bind(bank(X[train], views, 20), X[train], placement=Placement(storage="recomputed"))
    pairs, loss = PairValues(bound, 0.0, 8 * 10**9), MulticlassHinge(17)
    pairs.triangle  # noqa: B018 - computed before anything is timed
    target = np.unique(y, return_inverse=True)[1].astype(float)[train, None]
    weights = np.full(train.size, C)

    def walk(exact: bool):
        rule = make_rule(loss, 0.0, float(weights.sum()), bound.n_kernels, exact=exact)
        return ufo(SampleTheta(pairs, loss, target, weights, rule), max_iter=epochs)

    runs = {"gradient": walk(False), "exact": walk(True)}
    runs["OBSCURE"] = obscure(pairs, loss, target, weights, max_iter=epochs)
    for words, result in runs.items():
        curve = "  ".join(
            f"{s.seconds:.1f} s {s.objective:.4g}" for s in result.trace[:: max(1, len(result.trace) // 8)]
        )
        print(f"{words:9s} {curve}  end {result.trace[-1].objective:.6g}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--only", choices=("kernels", "alphas", "convergence"))
    arguments = parser.parse_args()
    X, y, data = load("flowers17")
    split = next(iter(StratifiedShuffleSplit(1, train_size=1020, random_state=0).split(X, y)))
    parts = {"kernels": against_kernels, "alphas": against_alpha, "convergence": convergence}
    for name, part in parts.items():
        if arguments.only in (None, name):
            part(X, y, data.views, split, arguments.epochs)


if __name__ == "__main__":
    main()
