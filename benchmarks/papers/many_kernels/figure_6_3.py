"""Figure 6.3: ten monomials of five variables among r, test error and training time against r (thesis, section 6.1.3).

    python -m benchmarks.papers.many_kernels.figure_6_3 [--sizes 5 10 20 40 70 100] [--runs 2] [--out folder]

Inputs uniform on [-1, 1]^r, the output a sum of ten random monomials of degree 3 or less of the first five variables;
500 samples to train, 1,000 to choose the regularization, 1,000 to test. Base kernels are linear, one a variable. Errors
are mean squared errors divided by the variance; times are of one fit at the chosen C. "even" is the prior that gives
each degree the same weight: without it nearly all draws are of degree 3, and 150 of them miss most of the ten.
"""

from __future__ import annotations

import time
import warnings
from itertools import combinations_with_replacement

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from benchmarks.papers.many_kernels.common import Hierarchical, arguments, conclude, plot, squared_error
from manykernels import MKLRegressor
from manykernels.kernels import KernelBank, Linear, PowerOfSum, ProductKernels

CS = (1e-2, 1e0, 1e2, 1e4, 1e6)
MOST_LISTED = 6000


def data(r: int, run: int):
    rng = np.random.default_rng(1000 * r + run)
    X = rng.uniform(-1, 1, size=(2500, r))
    every = [own for d in range(1, 4) for own in combinations_with_replacement(range(5), d)]
    chosen = rng.choice(len(every), size=10, replace=False)
    y = sum(np.prod(X[:, every[k]], axis=1) for k in chosen)
    y = (y - y[:500].mean()) / y[:500].std()
    return (X[:500], y[:500]), (X[500:1500], y[500:1500]), (X[1500:], y[1500:])


def monomials(X):
    sets = [own for d in range(1, 4) for own in combinations_with_replacement(range(X.shape[1]), d)]
    return np.column_stack([np.prod(X[:, own], axis=1) for own in sets])


class Listed:
    """LPMKL on all monomials, each a column."""

    def __init__(self, C: float) -> None:
        self.C = C

    def fit(self, X, y):
        Z = monomials(X)
        bank = KernelBank([Linear(columns=[k]) for k in range(Z.shape[1])])
        self.model = MKLRegressor(bank, norm=2.0, C=self.C, solver="group_lasso").fit(Z, y)
        return self

    def predict(self, X):
        return self.model.predict(monomials(X))


def methods(r: int) -> dict:
    base = [Linear(columns=[j]) for j in range(r)]
    family, even = ProductKernels(base, 3), ProductKernels(base, 3, prior="even")
    found = {
        "SGD-1s": lambda C: MKLRegressor(family, norm=2.0, C=C, max_iter=150, random_state=0),
        "SGD-1s, even": lambda C: MKLRegressor(even, norm=2.0, C=C, max_iter=150, random_state=0),
        "greedy": lambda C: MKLRegressor(family, norm=1.0, C=C, max_iter=60),
        "NLMKL": lambda C: MKLRegressor(combination=PowerOfSum(base, 3), norm=2.0, C=C, max_iter=50),
        "HMKL": Hierarchical,
        "UNIFORM": lambda C: KernelRidge(alpha=1 / C, kernel="poly", degree=3, gamma=1.0, coef0=1.0),
    }
    if (r + 3) * (r + 2) * (r + 1) // 6 <= MOST_LISTED:
        found["LPMKL"] = Listed
    return found


def main() -> None:
    options = arguments(__doc__, sizes=[5, 10, 20, 40, 70, 100], runs=2)
    warnings.filterwarnings("ignore")
    errors: dict[str, dict[int, float]] = {}
    seconds: dict[str, dict[int, float]] = {}
    for r in options.sizes:
        print(f"\nr = {r}, {(r + 3) * (r + 2) * (r + 1) // 6 - 1} monomials: error, seconds per fit", flush=True)
        for name, make in methods(r).items():
            own, taken = [], []
            for run in range(options.runs):
                train, validation, test = data(r, run)
                tried = []
                for C in CS:
                    started = time.perf_counter()
                    model = make(C).fit(*train)
                    tried.append((squared_error(model, *validation), time.perf_counter() - started, model))
                _, spent, best = min(tried, key=lambda entry: entry[0])
                own.append(squared_error(best, *test))
                taken.append(spent)
            errors.setdefault(name, {})[r] = float(np.mean(own))
            seconds.setdefault(name, {})[r] = float(np.mean(taken))
            print(f"  {name:12s} {np.mean(own):10.3e}  {np.mean(taken):8.2f} s", flush=True)
    large = [r for r in options.sizes if r >= 20]
    rivals = ("NLMKL", "HMKL", "UNIFORM", "LPMKL")
    for ours in ("SGD-1s", "SGD-1s, even", "greedy"):
        ahead = all(errors[ours][r] <= min(errors[name].get(r, np.inf) for name in rivals) for r in large)
        conclude(f"{ours} has the lowest error of all rivals for r >= 20", ahead)
        first, last = min(options.sizes), max(options.sizes)
        growth = np.log(seconds[ours][last] / seconds[ours][first]) / np.log(last / first)
        conclude(f"the time of {ours} grows about linearly in r or less: like r^{growth:.2f}", growth < 1.2)
    curves = {name: (list(own), list(own.values())) for name, own in errors.items()}
    plot(options.out, "figure_6_3_error", curves, xlabel="r", ylabel="error", logy=True)
    curves = {name: (list(own), list(own.values())) for name, own in seconds.items()}
    plot(options.out, "figure_6_3_seconds", curves, xlabel="r", ylabel="seconds", logy=True)


if __name__ == "__main__":
    main()
