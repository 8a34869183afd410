"""Figure 3.3: three frequencies, found among all between 0 and 20, and missed by a grid (thesis, chapter 3).

    python -m benchmarks.papers.many_kernels.figure_3_3 [--runs 3] [--out folder]

The sign of sin(sqrt(2) x) + sin(sqrt(12) x) + sin(sqrt(60) x) on [-10, 10]; 500 samples to train, 500 to choose C among
1e-5, ..., 1e5 and 1,000 to test; Dirichlet kernels 1 + 2 cos(f |x - z|). Finite methods have f = 0, 1, ..., 9.
The thesis: the three true kernels with equal weights 2.3 %, CKL about as good, finite methods far worse.
"""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.papers.many_kernels.common import arguments, bars, conclude
from manykernels import MKLClassifier
from manykernels.kernels import Dirichlet, DirichletFamily

TRUE = np.sqrt([2.0, 12.0, 60.0])
CS = 10.0 ** np.arange(-3, 5.1, 1.0)


def data(run: int):
    rng = np.random.default_rng(run)
    x = rng.uniform(-10, 10, size=(2000, 1))
    y = np.sign(np.sin(x @ TRUE[None, :]).sum(axis=1))
    return (x[:500], y[:500]), (x[500:1000], y[500:1000]), (x[1000:], y[1000:])


def methods() -> dict:
    grid = [Dirichlet(float(f)) for f in range(10)]
    return {
        "the true three, equal": lambda C: MKLClassifier([Dirichlet(f) for f in TRUE], norm=np.inf, C=C),
        "greedy (IKL)": lambda C: MKLClassifier(DirichletFamily(0, 20), C=C, max_iter=50),
        "line search (CKL)": lambda C: MKLClassifier(DirichletFamily(0, 20), C=C, solver="ckl", max_iter=50),
        "grid, p = 1": lambda C: MKLClassifier(grid, norm=1, C=C),
        "grid, p = 2": lambda C: MKLClassifier(grid, norm=2, C=C),
        "grid, equal": lambda C: MKLClassifier(grid, norm=np.inf, C=C),
    }


def main() -> None:
    options = arguments(__doc__, runs=3)
    warnings.filterwarnings("ignore")
    errors: dict[str, list[float]] = {name: [] for name in methods()}
    found = []
    for run in range(options.runs):
        train, validation, test = data(run)
        for name, make in methods().items():
            models = [make(C).fit(*train) for C in CS]
            best = max(models, key=lambda model: model.score(*validation))
            errors[name].append(100 * (1 - best.score(*test)))
            if name.startswith("greedy"):
                heavy = best.weights_.argsort()[::-1][:6]
                found.append([f"{best.kernel_names_[k]} {best.weights_[k]:.2f}" for k in heavy])
    print("method                   test error %")
    for name, own in errors.items():
        print(f"{name:24s} {np.mean(own):5.1f} +- {np.std(own):.1f}")
    print("frequencies found in the first run:", *found[0], sep="\n  ")
    mean = {name: float(np.mean(own)) for name, own in errors.items()}
    finite = min(mean[name] for name in mean if name.startswith("grid"))
    conclude("methods that search all frequencies come to an error of 2 to 3 %, as in the thesis, or below",
             max(mean["greedy (IKL)"], mean["line search (CKL)"]) < 3.5)  # fmt: skip
    conclude("a grid of ten is at least five times worse", finite >= 5 * mean["greedy (IKL)"])
    bars(options.out, "figure_3_3", mean, "test error %")


if __name__ == "__main__":
    main()
