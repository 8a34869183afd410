"""What the scripts of this folder share: checks of the thesis's conclusions, plots, data, splits."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata
from sklearn.preprocessing import StandardScaler

from manykernels import datasets
from manykernels.banks import bind_family
from manykernels.kernels import Linear, ProductKernels
from manykernels.literature.hierarchical import hierarchical
from manykernels.losses import Squared

# Table 6.2: training, validation and test sizes.
SIZES = {
    "ida_banana": (500, 1000, 2000),
    "ida_breast_cancer": (105, 27, 131),
    "ida_diabetis": (307, 77, 384),
    "ida_image": (500, 500, 1000),
    "ionosphere": (140, 36, 175),
    "ida_ringnorm": (500, 1000, 2000),
    "sonar": (83, 21, 104),
    "ida_thyroid": (86, 22, 107),
    "ida_waveform": (500, 1000, 2000),
}


def arguments(description: str, **defaults) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, help="folder for the plot")
    for name, value in defaults.items():
        if isinstance(value, bool):
            parser.add_argument(f"--{name}", action="store_true")
        elif isinstance(value, (list, tuple)):
            parser.add_argument(f"--{name}", nargs="*", type=type(value[0]), default=list(value))
        else:
            parser.add_argument(f"--{name}", type=type(value), default=value)
    return parser.parse_args()


def conclude(words: str, holds: bool) -> None:
    """Say whether a conclusion of the thesis holds in this run."""
    print(f"{'holds' if holds else 'DOES NOT HOLD'}: {words}", flush=True)


def plot(folder: Path | None, name: str, curves: dict, *, xlabel: str, ylabel: str, logx=False, logy=False) -> None:
    """Draw curves {label: (x, y)} to a file, if a folder is given."""
    if folder is None:
        return
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    figure, ax = pyplot.subplots(layout="constrained")
    for label, (x, y) in curves.items():
        ax.plot(x, y, "o-", markersize=3, label=label)
    ax.set(xlabel=xlabel, ylabel=ylabel, xscale="log" if logx else "linear", yscale="log" if logy else "linear")
    ax.legend()
    figure.savefig(folder / f"{name}.png")
    pyplot.close(figure)


def bars(folder: Path | None, name: str, values: dict[str, float], ylabel: str) -> None:
    """Draw a bar for each label to a file, if a folder is given."""
    if folder is None:
        return
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    figure, ax = pyplot.subplots(layout="constrained")
    ax.bar(list(values), list(values.values()))
    ax.set_ylabel(ylabel)
    ax.tick_params(axis="x", rotation=60)
    figure.savefig(folder / f"{name}.png")
    pyplot.close(figure)


def split(name: str, run: int):
    """Return (train, validation, test) pairs (X, y) of one run, standardized by the training part; y of variance 1."""
    data = datasets.load(name)
    X, target = np.asarray(data.data, dtype=float), np.asarray(data.target)
    y = np.where(target == np.unique(target)[-1], 1.0, -1.0)
    order = np.random.default_rng(run).permutation(len(y))
    sizes = np.cumsum(SIZES[name])
    parts = [order[low:high] for low, high in zip([0, *sizes[:2]], sizes, strict=True)]
    scaler = StandardScaler().fit(X[parts[0]])
    mean, spread = y[parts[0]].mean(), y[parts[0]].std()
    return [(scaler.transform(X[own]), (y[own] - mean) / spread) for own in parts]


class Runs(NamedTuple):
    """Test errors of a method, one per run, and the seconds of a fit."""

    errors: np.ndarray
    seconds: float

    def __str__(self) -> str:
        return f"{self.errors.mean():.3f} +- {self.errors.std():.3f}  {self.seconds:7.2f} s a fit"


def remembered(folder: Path | None, name: str, compute: Callable[[], list]) -> list:
    """Return what was computed under this name, from a file of the folder if it is there: a long script can go on."""
    if folder is None:
        return compute()
    file = folder / f"{name}.json"
    if not file.exists():
        found = compute()
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found), encoding="utf-8")
    return json.loads(file.read_text(encoding="utf-8"))


def runs_of(make: Callable, name: str, grid: Iterable[float], runs: int, jobs: int = 2) -> Runs:
    """Return the test errors of ``make(C)`` on random splits, the C of a grid chosen on the validation part."""
    found = Parallel(n_jobs=jobs)(delayed(_tuned)(make, name, list(grid), run) for run in range(runs))
    errors, seconds = zip(*found, strict=True)
    return Runs(np.array(errors), float(np.mean(seconds)))


def _tuned(make: Callable, name: str, grid: list[float], run: int) -> tuple[float, float]:
    warnings.filterwarnings("ignore")
    train, validation, test = split(name, run)
    started = time.perf_counter()
    models = [make(C).fit(*train) for C in grid]
    seconds = (time.perf_counter() - started) / len(grid)
    best = min(models, key=lambda model: squared_error(model, *validation))
    return squared_error(best, *test), seconds


def median_ranks(errors: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the median over the tasks of each method's rank; errors by method, one per task."""
    ranks = np.median(rankdata(np.column_stack(list(errors.values())), axis=1), axis=0)
    return dict(zip(errors, ranks.tolist(), strict=True))


def squared_error(model, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((model.predict(X) - y) ** 2))


class Hierarchical:
    """HMKL on the lattice of monomials, with fit and predict."""

    def __init__(self, C: float, degree: int = 3, max_kernels: int = 150) -> None:
        self.C, self.degree, self.max_kernels = C, degree, max_kernels

    def fit(self, X, y):
        family = bind_family(ProductKernels([Linear(columns=[j]) for j in range(X.shape[1])], self.degree), X)
        found = hierarchical(family, Squared(), y[None], np.full((1, len(y)), self.C), max_kernels=self.max_kernels)
        self.kernel, self.machine = found.bank.kernel(found.result.weights), found.result.machine
        return self

    def predict(self, X):
        return self.kernel.cross(X) @ self.machine.beta[0] + self.machine.intercept[0]
