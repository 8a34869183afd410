"""How time and memory grow with the number of kernels: 10^2 to 10^7 Gaussian kernels on Sonar.

    MANYKERNELS_DATA=<folder> python -m benchmarks.scale.kernels [exponent ...]

61 feature sets (all features and each one), widths from 2^-3 to 2^6, gap 1e-3, p = 1 and 4/3, from raw X to fitted
estimator, each in a process of its own. Targets: a million kernels under 10 s and 2 GB, ten million under 30 s. The
certificate is checked with the true kernels on 10,000 chosen at random and on the 1,000 with the largest quadratic
forms: they agree to 1e-5 of the largest.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np

from manykernels.banks import bind


def child(exponent: int, p: float) -> None:
    from benchmarks.speed.l1 import load
    from manykernels import MKLClassifier
    from manykernels.kernels import standard_bank

    X, y = load("sonar")
    MKLClassifier(standard_bank(X[:, :2], widths=200, degrees=()), norm=p).fit(X, y)  # compiles
    per_set = max(2, round(10**exponent / (X.shape[1] + 1)))
    start = time.perf_counter()
    bank = standard_bank(X, widths=per_set, degrees=())
    model = MKLClassifier(bank, norm=p, C=1.0).fit(X, y)
    spent = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    error = certificate_error(model, bank, X) if per_set > 100 else 0.0
    print(
        f"{len(bank):9d} {p:5.3g} {spent:8.2f} {peak / 1e9:8.2f} {model.gap_:9.1e} {model.n_iter_:6d} "
        f"{model.active_.size:9d} {error:12.1e}",
        flush=True,
    )


def certificate_error(model, bank, X: np.ndarray) -> float:
    """Return the largest error of the interpolated quadratic forms, relative to the largest form."""
    bound = bind(bank, X)
    beta = np.zeros(X.shape[0])
    beta[model.support_] = model.dual_coef_[0]
    interpolated = bound.quad_forms(beta)
    chosen = np.random.default_rng(0).choice(bound.n_kernels, min(10_000, bound.n_kernels), replace=False)
    largest = np.argpartition(-interpolated, 1000)[:1000]
    worst = 0.0
    for piece in np.array_split(np.concatenate([chosen, largest]), 50):
        true = exact_forms(bound, np.sort(piece), beta)
        worst = max(worst, float(np.abs(true - interpolated[np.sort(piece)]).max()))
    return worst / float(interpolated.max())


def exact_forms(bound, places: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return beta' K beta with each kernel matrix computed in float64 from the data, one by one."""
    support = np.flatnonzero(beta)
    forms = []
    for entry in bound.bound_kernels(places):
        V = bound.X[support][:, entry.positions]
        forms.append(beta[support] @ entry.kernel.compute(V, V) @ beta[support])
    return np.array(forms) * bound.scale[places]


def main() -> None:
    exponents = [int(text) for text in sys.argv[1:]] or [2, 3, 4, 5, 6, 7]
    print("  kernels     p  seconds  peak GB       gap rounds    active  certificate")
    for p in (1.0, 4 / 3):
        for exponent in exponents:
            command = [sys.executable, "-m", "benchmarks.scale.kernels", "--child", str(exponent), repr(p)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(int(sys.argv[-2]), float(sys.argv[-1]))
    else:
        main()
