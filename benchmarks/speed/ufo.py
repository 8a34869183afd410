"""Speed of UFO-MKL: steps per second, and the part of the time that reading kernel values takes.

    MANYKERNELS_DATA=<folder> python -m benchmarks.speed.ufo

Every step that moves theta is heard by all samples, with all kernels: that many bytes have to be read, once. "reading"
is the time in which this machine reads as many from memory, in the same run, as a part of the time of the walk. "fit
/ SVC" compares a whole fit, kernels and all, with scikit-learn's SVC on the mean of the same kernels as a matrix.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.svm import SVC

from benchmarks.papers.ufo.table_1 import load
from benchmarks.timing import seconds, streaming_seconds
from manykernels import UFOMKLClassifier
from manykernels.banks import Placement, bind
from manykernels.banks.pairs import PairValues
from manykernels.kernels import KernelBank, Linear, Polynomial, RandomFourier, standard_bank
from manykernels.kernels.feature_maps import FeatureMaps
from manykernels.losses import Hinge, Logistic, OneVsRest
from manykernels.outer.ufo_feature_theta import FeatureTheta
from manykernels.outer.ufo_sample_theta import SampleTheta
from manykernels.outer.ufo_theta import make_rule

EPOCHS, N = 20, 1000


def walk(theta) -> tuple[float, int]:
    """Return the seconds of the epochs, and how many steps moved."""
    rng, moved = np.random.default_rng(0), 0
    total = 0.0
    for _ in range(EPOCHS):
        order = rng.permutation(theta.n_samples)
        started = time.perf_counter()
        theta.advance(order)
        total += time.perf_counter() - started
        moved += int(theta.s.length[0]) if isinstance(theta, SampleTheta) else 0
        started = time.perf_counter()
        theta.settle()
        total += time.perf_counter() - started
    return total, moved


def kernel_walks() -> None:
    print(f"{EPOCHS} epochs     n  kernels  loss      step       steps/s   moved   reading    fit / SVC")
    for name in ("liver", "ionosphere", "sonar", "breast_wisconsin"):
        X, y = load(name)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        labels = np.where(y == np.unique(y)[1], 1.0, -1.0)
        bank = bind(standard_bank(X), X, placement=Placement(storage="recomputed"))
        pairs, n, m = PairValues(bank, 1.0, 8 * 10**9), len(y), bank.n_kernels
        per_byte = streaming_seconds(pairs.triangle.nbytes) / pairs.triangle.nbytes
        K = bind(standard_bank(X), X).combine(np.full(m, 1.0 / m)).array
        svc = seconds(lambda K=K, labels=labels: SVC(C=1.0, kernel="precomputed").fit(K, labels))
        for loss_name, loss in (("hinge", Hinge()), ("logistic", Logistic())):
            joint = OneVsRest(loss, 1)
            for step in ("gradient", "exact"):
                rule = make_rule(joint, 1e-3, float(n), m, exact=step == "exact")
                walk(SampleTheta(pairs, joint, labels[:, None], np.ones(n), rule))
                taken, moved = walk(SampleTheta(pairs, joint, labels[:, None], np.ones(n), rule))
                reading = moved * n * m * 4 * per_byte
                model = UFOMKLClassifier(alpha=1e-3, loss=loss_name, step=step, max_iter=EPOCHS, random_state=0)
                fit = seconds(lambda model=model, X=X, y=y: model.fit(X, y), repeats=1)
                print(
                    f"{name:17s} {n:4d}  {m:5d}   {loss_name:8s}  {step:9s} {EPOCHS * n / taken:8.0f}    "
                    f"{moved / (EPOCHS * n):4.0%}     {reading / taken:4.0%}      {fit / svc:6.1f}",
                    flush=True,
                )


def feature_walks() -> None:
    print("\nfinite feature maps: n  kernels  features     steps/s   GB/s of features")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    y = np.sign(X[:, :1] * X[:, 1:2])
    for count in (1, 10, 100):
        kernels = [RandomFourier(w, 100, seed=s) for s, w in enumerate(np.geomspace(0.5, 8.0, count))]
        bank = bind(
            KernelBank([Linear(), Polynomial(2), *kernels]), X[:1000], placement=Placement(storage="recomputed")
        )
        maps, loss = FeatureMaps(bank.bound, bank.scale, False, 1.0), OneVsRest(Hinge(), 1)
        theta = FeatureTheta(maps, X[:N], loss, y[:N], np.ones(N), make_rule(loss, 1e-3, float(N), bank.n_kernels))
        walk(theta)
        taken, _ = walk(theta)
        rate, size = EPOCHS * N / taken, int(theta.v.first[-1])
        print(
            f"{N:23d}  {bank.n_kernels:5d}   {size:6d}   {rate:10.0f}   {rate * size * 8 / 1e9:6.2f}",
            flush=True,
        )


def main() -> None:
    kernel_walks()
    feature_walks()


if __name__ == "__main__":
    main()
