"""5,000 samples and 50 kernels to gap 1e-3: the whole optimization beside one SVC fit on the uniform kernel.

    MANYKERNELS_DATA=<folder> python -m benchmarks.speed.many_samples [p ...]

Hinge loss, C = 1 and 100; the kernel matrices are already in the bank, and in SVC's hands. Target: 3 SVC fits. On this
many samples one pass over 50 kernels costs about as much as one SVC fit.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from benchmarks.timing import seconds
from manykernels import datasets
from manykernels.banks import bind
from manykernels.kernels import Gaussian, KernelBank, standard_bank
from manykernels.losses import Hinge
from manykernels.norms import LpNorm
from manykernels.outer.automatic import automatic
from manykernels.problem import Problem

N = 5000
NAMES = ("synthetic", "covtype", "ijcnn1", "satimage", "a9a", "mnist")


def case(name: str):
    """Return X, y and 50 kernels: 10 widths on all features and on four parts of them."""
    if name == "synthetic":
        X, y = make_classification(N, 4, n_informative=4, n_redundant=0, random_state=0)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        return X, np.where(y > 0, 1.0, -1.0), standard_bank(X, degrees=())
    data = datasets.load(name)
    rows = np.random.default_rng(0).permutation(len(data.target))[:N]
    X, y = data.data[rows], data.target[rows]
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    classes = np.unique(y)
    y = np.where(np.isin(y, classes[: len(classes) // 2]), 1.0, -1.0)
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    every = np.arange(X.shape[1])
    parts = [every, *np.array_split(every, 4)]
    widths = 2.0 ** np.linspace(-3, 3, 10)
    return X, y, KernelBank([Gaussian(w * np.sqrt(p.size), columns=p.tolist()) for p in parts for w in widths])


def main() -> None:
    for p in [float(text) for text in sys.argv[1:]] or [1.0]:
        print(f"p = {p:g}\ndata            C  fit s      gap  kernels  inner solves  SVC s  fit/SVC")
        for name in NAMES:
            X, y, kernels = case(name)
            bank = bind(kernels, X)
            uniform = bank.combine(np.full(bank.n_kernels, 1 / bank.n_kernels)).array
            for C in (1.0, 100.0):
                problem = Problem(bank, Hinge(), LpNorm(p), y[None, :], np.full((1, y.size), C))
                automatic(problem.tail(900), tol=1e-2)  # compiles
                start = time.perf_counter()
                result = automatic(problem, tol=1e-3)
                spent = time.perf_counter() - start
                svc = seconds(lambda C=C, K=uniform, y=y: SVC(kernel="precomputed", C=C).fit(K, y), 3)
                print(
                    f"{name:12s} {C:4g} {spent:6.2f} {result.certificate.gap:8.1e} "
                    f"{np.count_nonzero(result.weights):8d} {result.n_inner_solves:13d} {svc:6.3f} {spent / svc:8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
