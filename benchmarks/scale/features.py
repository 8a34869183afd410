"""Very many samples by kernels of small rank: time, memory and accuracy.

    MANYKERNELS_DATA=<folder> python -m benchmarks.scale.features [--data covtype] [--rank 1000] [--rows 581012]
        [--loss hinge] [--device cpu]

Covertype (581,012 samples, a tenth of them held out): five Gaussian kernels, p = 1.33, hinge loss, to a gap of 1e-2 of
the approximate problem; SPG-GMKL reports 64 hours for the exact one. Adult-9 (32,561 samples): the test accuracy beside
that of the exact fit, with ``--exact``.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from sklearn.preprocessing import StandardScaler

from manykernels import MKLClassifier, datasets
from manykernels.kernels import Gaussian
from manykernels.kernels.approximate import APPROXIMATIONS

WIDTHS = {"covtype": (0.5, 1.0, 2.0, 4.0, 8.0), "a9a": (1.0, 2.0, 4.0, 8.0, 16.0)}


def load(name: str, rows: int | None, everything: bool):
    """Return training and test parts, standardized (binary features as they are)."""
    data = datasets.load(name)
    X, y = data.data, np.where(np.asarray(data.target) > 0, 1, -1)
    if name == "a9a":
        X = X.toarray().astype(float)
        return X[data.train_idx][:rows], y[data.train_idx][:rows], X[data.test_idx], y[data.test_idx]
    train, test = np.split(np.random.default_rng(0).permutation(len(y)), [int(0.9 * len(y))])
    train = np.concatenate([train, test]) if everything else train
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train[:rows]]), y[train[:rows]], scaler.transform(X[test]), y[test]


def peak() -> float:
    """Return the largest resident size so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=["a9a", "covtype"])
    parser.add_argument("--rank", type=int, default=1000)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--memory", default="14GB")
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--approximation", default="nystroem")
    parser.add_argument("--loss", default="hinge")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--everything", action="store_true", help="learn from the samples that are held out, too")
    parser.add_argument("--exact", action="store_true", help="fit the exact kernels, too")
    own = parser.parse_args()
    for name in own.data:
        X, y, Z, w = load(name, own.rows, own.everything)
        kernels = [Gaussian(width) for width in WIDTHS[name]]
        shared = {"norm": 1.33, "C": own.C, "loss": own.loss, "tol": own.tol, "device": own.device}
        kinds = {kind.name: kind for kind in APPROXIMATIONS}
        warm = MKLClassifier(kernels, approximation=kinds[own.approximation](20), **shared)
        warm.fit(X[:500], y[:500])  # pays for compilation
        asked = kinds[own.approximation](own.rank)
        for approximation in (asked, None) if own.exact else (asked,):
            model = MKLClassifier(
                kernels, approximation=approximation, memory_budget=own.memory, random_state=0,
                verbose=1, **shared,
            )  # fmt: skip
            started = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - started
            print(
                f"{name}, {len(y)} samples, {approximation or 'exact'}, {own.device}, {own.loss}: {seconds:.1f} s, "
                f"peak {peak():.2f} GB, "
                f"gap {model.gap_:.1e}, {model.n_iter_} iterations, {model.n_inner_solves_} SVMs, "
                f"test accuracy {100 * model.score(Z, w):.2f} %, weights {np.round(model.weights_, 3)}",
                flush=True,
            )
            if approximation is not None:
                print("  lost of the trace:", np.round(model.approximation_error_, 3), "ranks:", model.ranks_)


if __name__ == "__main__":
    main()
