"""Products of up to five of a thousand kernels: 8e12 of them, learned in minutes.

    python -m benchmarks.scale.products [--kernels 1000] [--degree 5] [--samples 2000] [--steps 200]

Stochastic selection (norm = 2) with linear base kernels of single features; the target is a sum of three products.
First the time of a step against the number of base kernels, of samples and the degree, then the whole fit. The prior is
even: else nearly all draws would be of the highest degree. A product of two is drawn in proportion to its worth among
half a million of its kind, so 200 steps find the single feature and, with luck, a product.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from manykernels import MKLRegressor
from manykernels.banks import bind_family
from manykernels.kernels import Linear, ProductKernels
from manykernels.losses import Squared
from manykernels.norms import LpNorm
from manykernels.outer.family import FamilyProblem
from manykernels.outer.stochastic_mirror import MirrorWalk


def data(n: int, r: int):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, r))
    return X, X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] * X[:, 4] + X[:, 5]


def seconds_a_step(r: int, n: int, degree: int, steps: int = 5) -> float:
    X, y = data(n, r)
    family = bind_family(ProductKernels([Linear(columns=[j]) for j in range(r)], degree, prior="even"), X)
    problem = FamilyProblem(family, Squared(), LpNorm(2), y[None], np.full((1, n), 10.0))
    walk = MirrorWalk(problem, "gradient", np.random.default_rng(0))
    walk.run(2)
    started = time.perf_counter()
    walk.run(steps)
    return (time.perf_counter() - started) / steps


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, value in (("kernels", 1000), ("degree", 5), ("samples", 2000), ("steps", 200)):
        parser.add_argument(f"--{name}", type=int, default=value)
    own = parser.parse_args()
    r, n, d = own.kernels, own.samples, own.degree
    for title, points in (
        ("base kernels", [(r // 4, n, d), (r // 2, n, d), (r, n, d)]),
        ("samples", [(r, n // 4, d), (r, n // 2, d), (r, n, d)]),
        ("degree", [(r, n, 1), (r, n, 3), (r, n, d)]),
    ):
        shown = "  ".join(f"r={a} n={b} D={c}: {seconds_a_step(a, b, c):.3f} s" for a, b, c in points)
        print(f"a step against {title}: {shown}", flush=True)
    X, y = data(n, r)
    family = ProductKernels([Linear(columns=[j]) for j in range(r)], d, prior="even")
    started = time.perf_counter()
    model = MKLRegressor(family, norm=2.0, C=10.0, tol=1e-6, max_iter=own.steps, random_state=0).fit(X, y)
    print(f"{len(family):.3g} kernels, {own.steps} steps: {time.perf_counter() - started:.0f} s")
    for k in model.weights_.argsort()[::-1][:5]:
        print(f"  {model.weights_[k]:.3f}  {model.kernel_names_[k]}")


if __name__ == "__main__":
    main()
