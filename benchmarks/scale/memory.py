"""Peak memory of a fit whose kernels do not fit: 5,000 samples, 500 kernels, memory_budget 1 GB.

    python -m benchmarks.scale.memory

Target: the fit's peak stays within the budget plus 15 %. The fit runs in a process of its own; the peak is the
process's largest resident size less its size just before the fit (interpreter and libraries).
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

N_SAMPLES, N_FEATURES, BUDGET = 5000, 49, 10**9


def child() -> None:
    import numpy as np

    from manykernels import MKLClassifier
    from manykernels.kernels import standard_bank

    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES))
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * rng.standard_normal(N_SAMPLES) > 0
    bank = standard_bank(X, degrees=())  # 10 Gaussians on all features and on each: 500 kernels
    MKLClassifier(bank, norm=2.0).fit(X[:100], y[:100])  # compiles
    before = resident()
    start = time.perf_counter()
    model = MKLClassifier(bank, norm=2.0, C=1.0, memory_budget=BUDGET).fit(X, y)
    spent = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{len(bank)} kernels on {N_SAMPLES} samples; float32 triangles of all would take", end=" ")
    print(f"{len(bank) * N_SAMPLES * (N_SAMPLES + 1) / 2 * 4 / 1e9:.1f} GB; budget {BUDGET / 1e9:.2f} GB")
    print(f"gap {model.gap_:.1e} after {model.n_iter_} iterations, {spent:.0f} s")
    print(f"resident before the fit {before / 1e9:.3f} GB, peak {peak / 1e9:.3f} GB")
    ratio = (peak - before) / BUDGET
    print(f"peak of the fit / budget: {ratio:.2f} (target 1.15); whole process / budget: {peak / BUDGET:.2f}")


def resident() -> int:
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


if __name__ == "__main__":
    if "--child" in sys.argv:
        child()
    else:
        subprocess.run([sys.executable, "-m", "benchmarks.scale.memory", "--child"], check=True)
