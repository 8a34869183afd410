"""The inner SVM solver against scikit-learn's SVC: cold, and warm after a 1 % change of the kernel weights.

    python -m benchmarks.speed.inner

Targets: cold not slower than SVC(kernel="precomputed") at tol 1e-3 for n = 200, 1,000 and 4,000; warm at least 5
times faster. Objectives agree to 1e-6 at tol 1e-6.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.timing import seconds
from manykernels.banks import bind
from manykernels.inner.smo import solve_box
from manykernels.kernels import standard_bank
from manykernels.losses import Hinge


def problem(n: int) -> tuple:
    """Return the standard kernels on all features of a synthetic data set, bound, and targets -1 and 1."""
    X, y = make_classification(n, 20, n_informative=8, flip_y=0.05, random_state=0)
    X = StandardScaler().fit_transform(X)
    return bind(standard_bank(X, per_feature=False), X), 2.0 * y - 1


def dual_value(K: np.ndarray, y: np.ndarray, beta: np.ndarray) -> float:
    return float(y @ beta - 0.5 * beta @ K @ beta)


def svc_beta(K: np.ndarray, y: np.ndarray, C: float, tol: float) -> np.ndarray:
    model = SVC(kernel="precomputed", C=C, tol=tol).fit(K, y)
    beta = np.zeros(y.size)
    beta[model.support_] = model.dual_coef_[0]
    return beta


def row(n: int, C: float) -> str:
    bank, y = problem(n)
    rng = np.random.default_rng(0)
    weights = np.full(bank.n_kernels, 1 / bank.n_kernels)
    K = bank.combine(weights).array
    moved = bank.combine(weights * (1 + 0.01 * rng.standard_normal(weights.size))).array
    lower, upper = Hinge().domain(y, np.full(n, C))
    repeats = 5 if n < 4000 else 3
    svc = seconds(lambda: SVC(kernel="precomputed", C=C, tol=1e-3).fit(K, y), repeats)
    cold = seconds(lambda: solve_box(K, y, lower, upper, tol=1e-3), repeats)
    start = solve_box(K, y, lower, upper, tol=1e-3).beta
    warm = seconds(lambda: solve_box(moved, y, lower, upper, start=start, tol=1e-3), repeats)
    ours = dual_value(K, y, solve_box(K, y, lower, upper, tol=1e-6).beta)
    theirs = dual_value(K, y, svc_beta(K, y, C, 1e-6))
    return (
        f"{n:6d} {C:7g} {svc * 1e3:9.2f} {cold * 1e3:9.2f} {warm * 1e3:9.2f} {svc / cold:9.1f} {svc / warm:9.1f} "
        f"{cold / warm:9.1f} {abs(ours - theirs) / abs(theirs):12.1e}"
    )


def main() -> None:
    print("     n       C   SVC ms   cold ms   warm ms  SVC/cold  SVC/warm cold/warm  objective difference")
    for n in (200, 1000, 4000):
        for C in (1.0, 10.0, 100.0):
            print(row(n, C), flush=True)


if __name__ == "__main__":
    main()
