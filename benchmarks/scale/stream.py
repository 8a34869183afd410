"""A stream of a million samples with ten kernels through partial_fit, in constant memory.

    python -m benchmarks.scale.stream [--samples 1000000] [--batch 10000]

Twenty features, of which five matter; Gaussians of eight widths as random waves, a linear and a quadratic kernel. Each
line: samples so far, accuracy on 20,000 fresh ones, kernels with a positive weight, the stream's bounds, seconds, and
the memory of the process (resident, and the most so far). scikit-learn's SGDClassifier on the same batches beside it.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import SGDClassifier

from manykernels import UFOMKLClassifier
from manykernels.kernels import Linear, Polynomial, RandomFourier


def samples(n: int, rng: np.random.Generator):
    X = rng.normal(size=(n, 20))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] ** 2 - 1.0 + 0.5 * X[:, 4]
    return X, (signal + 0.3 * rng.normal(size=n) > 0).astype(int)


def resident() -> float:
    """Return the megabytes that the process holds now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1e3
    return float("nan")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=10_000)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    test, labels = samples(20_000, rng)
    useful = list(range(5))
    kernels = [RandomFourier(w, 100, seed=s, columns=useful) for s, w in enumerate(np.geomspace(0.5, 8.0, 8))]
    kernels += [Linear(), Polynomial(2, columns=useful)]
    model = UFOMKLClassifier(kernels, alpha=1e-3, C=1.0, loss="logistic", expected_samples=arguments.samples / 10)
    plain, own, other = SGDClassifier(loss="log_loss", random_state=0), 0.0, 0.0
    print("   samples  accuracy  kernels   dual bound  mean objective  seconds     MB  most MB   SGD accuracy  seconds")
    done, shown = 0, 0
    while done < arguments.samples:
        X, y = samples(min(arguments.batch, arguments.samples - done), rng)
        started = time.perf_counter()
        model.partial_fit(X, y, classes=[0, 1])
        own += time.perf_counter() - started
        started = time.perf_counter()
        plain.partial_fit(X, y, classes=[0, 1])
        other += time.perf_counter() - started
        done += len(y)
        if done >= min(shown, arguments.samples):
            shown = max(2 * done, arguments.batch) if done < arguments.samples / 4 else done + arguments.samples // 4
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            print(
                f"{done:10d}    {model.score(test, labels):.4f}     {model.active_.size:4d}   "
                f"{model.dual_objective_:10.1f}      {model.objective_:10.1f}   {own:6.1f}  {resident():5.0f}   "
                f"{most:6.0f}         {plain.score(test, labels):.4f}   {other:6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
