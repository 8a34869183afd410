"""Many outputs: 20 kernels in 4 views, one kernel for all outputs or one for each, beside himalaya.

    python -m benchmarks.scale.outputs [fit] [search] [himalaya] [alone] [options]

    fit       one C: weights that the outputs share, and weights of each output's own, with their certificates
    search    C chosen by cross-validation: one for all outputs, and one for each that has weights of its own
    himalaya  MultipleKernelRidgeCV, random search, with the same kernels, folds and penalties, if it is installed
    alone     a few of the outputs one by one: the time that a loop would take, and how far the predictions differ

Options: --samples 1000, --outputs 1000, --tests 500, --folds 5, --norm 1, --tol 1e-3, --iterations 100 (of himalaya's
search), --device cpu ("cuda" for both libraries), --seed 0. It needs numpy, scipy, scikit-learn and numba; a device
needs torch. R2 is the mean over the outputs: cross-validated, as each method reports it, and on held-out samples.

Each output is made of one or two of three views, linearly or not, and of noise; the fourth view means nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from manykernels import MKLRegressor, MKLRegressorCV
from manykernels.kernels import Gaussian, Kernel, Linear

SECTIONS = ("fit", "search", "himalaya", "alone")
SIZES = (10, 20, 30, 40)  # columns of the views
WIDTHS = (0.5, 1.0, 2.0, 4.0)  # times the root of their number
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # C, and 1 / alpha of himalaya
C = 10.0


def say(*words: object) -> None:
    print(*words, flush=True)


def views() -> list[list[int]]:
    """Return the columns of each view."""
    ends = np.cumsum((0, *SIZES))
    return [list(range(low, high)) for low, high in pairwise(ends)]


def kernels() -> list[Kernel]:
    """Return a linear kernel and four Gaussians for each view."""
    every: list[Kernel] = []
    for number, columns in enumerate(views()):
        group = f"view {number}"
        every.append(Linear(columns=columns, group=group))
        every += [Gaussian(w * len(columns) ** 0.5, columns=columns, group=group) for w in WIDTHS]
    return every


def data(n: int, n_outputs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X and Y, whose columns have mean 0 and deviation 1."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, sum(SIZES))), np.zeros((n, n_outputs))
    for number, columns in enumerate(views()[:3]):
        part = X[:, columns] @ rng.normal(size=(len(columns), n_outputs)) / len(columns) ** 0.5
        Y += (np.sin(2.0 * part) if number == 1 else part) * (rng.random(n_outputs) < 0.5)
    Y += rng.uniform(0.3, 2.0, n_outputs) * rng.normal(size=Y.shape)
    return X, (Y - Y.mean(axis=0)) / Y.std(axis=0)


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def report(name: str, seconds: float, cross: float, model: Any, X: np.ndarray, Y: np.ndarray, more: str = "") -> None:
    predictions, taken = timed(lambda: model(X))
    held_out = float(np.mean(r2_score(Y, predictions, multioutput="raw_values")))
    crossed = "" if np.isnan(cross) else f"cross-validated R2 {cross:.4f}  "
    say(f"{name:34s} {seconds:9.1f} s  {crossed}held-out R2 {held_out:.4f}  (predicted in {taken:.1f} s)  {more}")


def fits(given: Any, train: tuple, test: tuple) -> None:
    for shared in (True, False):
        model = MKLRegressor(kernels(), C=C, norm=given.norm, tol=given.tol, shared_weights=shared, device=given.device)
        _, seconds = timed(lambda model=model: model.fit(*train))
        largest = model.gap_ if shared else model.gaps_.max()
        words = f"largest gap {largest:.1e}, {model.n_iter_} iterations"
        report(f"fit, {'shared' if shared else 'separate'} weights", seconds, np.nan, model.predict, *test, words)


def searches(given: Any, train: tuple, test: tuple) -> None:
    for shared in (True, False):
        search = MKLRegressorCV(
            kernels(),
            Cs=PENALTIES,
            norms=[given.norm],
            cv=given.folds,
            tol=given.tol,
            shared_weights=shared,
            device=given.device,
        )
        _, seconds = timed(lambda search=search: search.fit(*train))
        words = f"C {search.C_}" if shared else f"C {dict(zip(*np.unique(search.C_, return_counts=True), strict=True))}"
        name = f"search, {'shared' if shared else 'separate'} weights"
        report(name, seconds, search.best_score_, search.predict, *test, words)


def himalaya(given: Any, train: tuple, test: tuple) -> None:
    try:
        from himalaya.backend import set_backend
        from himalaya.kernel_ridge import MultipleKernelRidgeCV
    except ImportError:
        say("himalaya is not installed: pip install himalaya")
        return
    backend = set_backend("numpy" if given.device == "cpu" else f"torch_{given.device.partition(':')[0]}")
    parameters = {"n_iter": given.iterations, "alphas": 1.0 / np.array(PENALTIES), "progress_bar": False}
    parameters |= {"n_targets_batch": 1000, "n_alphas_batch": 1, "score_func": _r2_of(backend)}
    model = MultipleKernelRidgeCV(
        kernels="precomputed", solver="random_search", solver_params=parameters, cv=given.folds, random_state=given.seed
    )

    def fit() -> np.ndarray:
        stack, scales = _stack(train[0], train[0])
        model.fit(backend.asarray(stack), backend.asarray(train[1]))
        return scales

    scales, seconds = timed(fit)
    best = backend.to_numpy(model.cv_scores_).max(axis=0).mean()

    def predict(X: np.ndarray) -> np.ndarray:
        return np.asarray(backend.to_numpy(model.predict(backend.asarray(_stack(X, train[0], scales)[0]))))

    report(f"himalaya, {given.iterations} random weights", seconds, float(best), predict, *test)


def _r2_of(backend: Any) -> Callable:
    from himalaya.scoring import r2_score as score

    return score


def _stack(X: np.ndarray, Z: np.ndarray, scales: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the kernels between X and Z, whose mean diagonal is 1 on the training data, and their scales."""
    every = [kernel.compute(X[:, kernel.columns], Z[:, kernel.columns]) for kernel in kernels()]
    scales = np.array([1.0 / K.diagonal().mean() for K in every]) if scales is None else scales
    return np.array([scale * K for scale, K in zip(scales, every, strict=True)]), scales


def alone(given: Any, train: tuple, test: tuple) -> None:
    X, Y = train
    count = min(5, Y.shape[1])
    settings = {"C": C, "norm": given.norm, "device": given.device}
    many = MKLRegressor(kernels(), shared_weights=False, tol=given.tol, **settings).fit(X, Y[:, : max(count, 20)])
    together, differences, seconds = many.predict(test[0]), [], 0.0
    for t in range(count):
        single = MKLRegressor(kernels(), tol=given.tol, **settings)
        seconds += timed(lambda t=t, single=single: single.fit(X, Y[:, t]))[1]
        differences.append(float(np.abs(single.predict(test[0]) - together[:, t]).max()))
    each = seconds / count
    say(f"one output alone {each:.2f} s: a loop over all would take {each * Y.shape[1]:,.0f} s", end_of(differences))


def end_of(differences: list[float]) -> str:
    return f"(predictions differ by at most {max(differences):.1e} deviations of the output)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help="fit, search, himalaya, alone; all by default")
    for name, default in (("samples", 1000), ("outputs", 1000), ("tests", 500), ("folds", 5), ("iterations", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--norm", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    unknown = set(given.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"sections are {', '.join(SECTIONS)}, got {unknown.pop()!r}")
    X, Y = data(given.samples + given.tests, given.outputs, given.seed)
    train, test = (X[: given.samples], Y[: given.samples]), (X[given.samples :], Y[given.samples :])
    say(
        f"{given.samples} samples, {given.outputs} outputs, {len(kernels())} kernels, norm {given.norm}, {given.device}"
    )
    for section, run in zip(SECTIONS, (fits, searches, himalaya, alone), strict=True):
        if section in (given.sections or SECTIONS):
            run(given, train, test)


if __name__ == "__main__":
    main()
