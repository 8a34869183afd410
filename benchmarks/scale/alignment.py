"""Ten thousand kernels on two thousand samples, aligned with the target within 2 GB.

    python -m benchmarks.scale.alignment [--features 100] [--widths 100] [--samples 2000] [--budget 1.6GB]

Gaussian kernels of all widths on each feature; the classes depend on three features. The exact optimum ("qp") by
columns on demand: the matrix of all inner products would have 1e8 entries of 4e6 operations each. Prints the time, the
peak of the memory and the certificate.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from manykernels import AlignedKernel
from manykernels.kernels import Gaussian


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("features", 100), ("widths", 100), ("samples", 2000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--budget", default="1.6GB")
    parser.add_argument("--alignment", default="qp")
    own = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(own.samples, own.features))
    y = X[:, 0] + np.sin(3 * X[:, 1]) + np.abs(X[:, 2]) > 1.0
    widths = np.geomspace(0.1, 10.0, own.widths)
    kernels = [Gaussian(float(width), columns=[j]) for j in range(own.features) for width in widths]
    started = time.perf_counter()
    model = AlignedKernel(kernels, alignment=own.alignment, memory_budget=own.budget).fit(X, y)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{len(kernels)} kernels, {own.samples} samples: {seconds:.0f} s, peak {peak:.2f} GB")
    print(f"alignment {model.alignment_:.6f}, no weights exceed {model.alignment_bound_:.6f}, {model.n_iter_} passes")
    for k in model.weights_.argsort()[::-1][:5]:
        print(f"  {model.weights_[k]:.3f}  {model.kernel_names_[k]}")


if __name__ == "__main__":
    main()
