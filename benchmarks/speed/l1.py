"""L1-MKL (and p near 1) to gap 1e-6 on five data sets: time, passes, and the ratio to one SVC fit in the same run.

    MANYKERNELS_DATA=<folder> python -m benchmarks.speed.l1 [p ...]

Hinge loss, standard kernels of unit trace, C = 1, 100, 1,000; the kernel matrices are already in the bank. Targets for
p = 1: gap 1e-6 on all 15, median under 0.2 s, worst under 1.5 s, under 15 full passes. For p > 1 the closed-form
alternation runs beside: "auto" takes it where it is the faster one.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.svm import SVC

from benchmarks.timing import seconds
from manykernels import datasets
from manykernels.banks import Placement, Recipe, bind
from manykernels.kernels import standard_bank
from manykernels.losses import Hinge
from manykernels.norms import LpNorm
from manykernels.outer.automatic import automatic
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.newton import newton
from manykernels.problem import Problem

NAMES = ("sonar", "ionosphere", "pima", "liver", "breast_wisconsin")


class Counted:
    """A bank that counts its full passes; a pass over a part of the kernels counts as that part."""

    def __init__(self, bank) -> None:
        self.bank, self.passes, self.last = bank, 0.0, bank.n_kernels

    def __getattr__(self, name):
        return getattr(self.bank, name)

    def combine(self, weights, out=None):
        self.passes += np.count_nonzero(weights) / weights.size
        return self.bank.combine(weights, out)

    def quad_forms(self, beta, subset=None):
        self.last = self.bank.n_kernels if subset is None else len(subset)
        self.passes += self.last / self.bank.n_kernels
        return self.bank.quad_forms(beta, subset)

    def inner_products(self, M, subset=None):
        self.passes += (self.bank.n_kernels if subset is None else len(subset)) / self.bank.n_kernels
        return self.bank.inner_products(M, subset)


def load(name: str):
    data = datasets.load(name)
    X, y = data.data.astype(float), np.where(data.target == np.max(data.target), 1.0, -1.0)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y


def timed(run):
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def main() -> None:
    for p in [float(text) for text in sys.argv[1:]] or [1.0]:
        print(f"p = {p:g}")
        print("data                   C  auto s  passes      gap  kernels last pass  SVC s  auto/SVC alternation/auto")
        times = []
        for name in NAMES:
            X, y = load(name)
            bank = bind(standard_bank(X), X, Recipe(normalize="trace"), Placement(precision="double"))
            uniform = bank.combine(np.full(bank.n_kernels, 1 / bank.n_kernels)).array * X.shape[0]
            for C in (1.0, 100.0, 1000.0):
                counted = Counted(bank)
                problem = Problem(counted, Hinge(), LpNorm(p), y[None, :], np.full((1, y.size), C))
                automatic(problem, tol=1e-2)
                counted.passes = 0.0
                result, spent = timed(lambda problem=problem: automatic(problem, tol=1e-6))
                times.append(spent)
                svc = seconds(lambda C=C, K=uniform, y=y: SVC(kernel="precomputed", C=C / y.size).fit(K, y), 3)
                ratio = ""
                if p > 1:
                    plain = Problem(bank, Hinge(), LpNorm(p), y[None, :], np.full((1, y.size), C))
                    other, slow = timed(lambda plain=plain: group_lasso(plain, tol=1e-6, max_iter=5000))
                    _, second = timed(lambda plain=plain: newton(plain, tol=1e-6))
                    ratio = f"{slow / spent:5.2f} (newton alone {slow / second:.2f}x, {other.n_iter} iterations)"
                print(
                    f"{name:18s} {C:6g} {spent:7.3f} {counted.passes:7.1f} {result.certificate.gap:8.1e} "
                    f"{np.count_nonzero(result.weights):8d} {counted.last:5d}/{bank.n_kernels:<4d} {svc:6.4f} "
                    f"{spent / svc:9.1f}  {ratio}",
                    flush=True,
                )
        print(f"median {np.median(times):.3f} s, worst {max(times):.3f} s")


if __name__ == "__main__":
    main()
