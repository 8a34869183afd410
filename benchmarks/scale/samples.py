"""How time and memory grow with the number of samples: n = 200 to 20,000 (or as given) at m = 50 and 500 kernels.

    python -m benchmarks.scale.samples [n ...]

Synthetic data, Gaussian kernels on all features and on single ones, p = 2 and p = 1, hinge loss, gap 1e-3, from raw X
to fitted estimator; each fit in a process of its own. The last lines are the slopes of time and memory against n on a
log-log scale, and the ratio to one SVC fit on the uniform kernel.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np

SIZES = (200, 500, 1000, 2000, 5000, 20_000)


def child(n: int, m: int, p: float) -> None:
    from sklearn.datasets import make_classification
    from sklearn.svm import SVC

    from manykernels import MKLClassifier
    from manykernels.kernels import standard_bank

    n_features = m // 10 - 1
    X, y = make_classification(n, n_features, n_informative=min(8, n_features), n_redundant=0, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    bank = standard_bank(X, degrees=())
    MKLClassifier(bank, norm=p).fit(X[:100], y[:100])  # compiles
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start = time.perf_counter()
    model = MKLClassifier(bank, norm=p).fit(X, y)
    spent = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    K = MKLClassifier(bank, norm=np.inf, max_iter=1).fit(X, y).kernel(X) / len(bank)
    start = time.perf_counter()
    SVC(kernel="precomputed").fit(K, y)
    svc = time.perf_counter() - start
    print(f"{n} {len(bank)} {p:g} {spent:.4f} {peak / 1e9:.4f} {model.gap_:.1e} {model.n_iter_} {svc:.4f}")


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:]] or SIZES
    print("      n    m  p   seconds   peak GB      gap  iterations  fit/SVC")
    for m in (50, 500):
        for p in (2.0, 1.0):
            rows = []
            for n in sizes:
                command = [sys.executable, "-m", "benchmarks.scale.samples", "--child", str(n), str(m), repr(p)]
                words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
                rows.append([float(word) for word in words])
                spent, peak, gap, iterations, svc = rows[-1][3:]
                print(
                    f"{n:7d} {m:4d} {p:g} {spent:9.3f} {peak:9.3f} {gap:8.1e} {iterations:11.0f} {spent / svc:8.1f}",
                    flush=True,
                )
            table = np.log(np.array(rows)[-3:])
            slopes = [np.polyfit(table[:, 0], table[:, column], 1)[0] for column in (3, 4)]
            print(f"        slopes of the last three: time {slopes[0]:.2f}, memory {slopes[1]:.2f}", flush=True)


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(int(sys.argv[-3]), int(sys.argv[-2]), float(sys.argv[-1]))
    else:
        main()
