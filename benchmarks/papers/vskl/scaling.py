"""Figures 1 and 2 of VSKL (Aflalo and others, 2011), the oracle of its section 4.2, and mirror descent beside "auto".

    MANYKERNELS_DATA=<folder> python -m benchmarks.papers.vskl.scaling [--splits 20] [--widths 2 5 10 20 50]

One group (L1-MKL), C = 1,000, Gaussian kernels of many widths on single features, in the bank before the clock starts;
70 % of the samples, means over random splits. Mirror descent stops as in the paper, when the objective falls by less
than 1e-4; so does nothing else here: "auto" goes to a certified duality gap of 1e-4, SimpleMKL, HessianMKL and
projected gradients to one of 1e-2, in at most ``--limit`` seconds.
"""

from __future__ import annotations

import argparse
import time
import tomllib
import warnings
from pathlib import Path

import numpy as np

from benchmarks.papers.spg_gmkl.tables import OutOfTimeError, load
from manykernels.banks import Recipe, bind
from manykernels.core.progress import listen
from manykernels.kernels import Gaussian, KernelBank, standard_bank
from manykernels.literature.hessian import hessian
from manykernels.literature.pgd import pgd
from manykernels.literature.simple import simple
from manykernels.losses import Hinge
from manykernels.norms import LpNorm, MixedNorm
from manykernels.outer.automatic import automatic
from manykernels.outer.mirror import MirrorDescent, mirror
from manykernels.problem import Problem

EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())
DATA = ("liver", "ionosphere", "sonar")


def l1_problem(X, y, n_widths: int, C: float = 1000.0) -> Problem:
    widths = np.geomspace(0.1, 10.0, n_widths)
    varies = np.flatnonzero(X.std(axis=0) > 0)
    bank = bind(
        KernelBank([Gaussian(float(w), columns=[int(j)]) for j in varies for w in widths]), X, Recipe(normalize="trace")
    )
    return Problem(bank, Hinge(), LpNorm(1), y[None], np.full((1, y.size), C * y.size))  # unit trace: K is 1/n small


def timed(solve, limit: float):
    """Return (seconds, SVM solves, iterations, gap); at the limit the run ends."""
    start = time.perf_counter()
    last = []

    def watch(step) -> None:
        last.append(step)
        if time.perf_counter() - start > limit:
            raise OutOfTimeError

    try:
        with listen(watch):
            result = solve()
        return time.perf_counter() - start, result.n_inner_solves, result.n_iter, abs(result.certificate.gap)
    except OutOfTimeError:
        return limit, np.nan, len(last), min(abs(step.gap) for step in last)


def figures(n_splits: int, n_widths: list[int], limit: float) -> None:
    solvers = {
        "mirror": lambda problem: mirror(problem, tol=1e-12, max_iter=3000, relative_change=1e-4),
        "auto": lambda problem: automatic(problem, tol=1e-4),
        "simple": lambda problem: simple(problem, tol=1e-2, max_iter=100_000),
        "hessian": lambda problem: hessian(problem, tol=1e-2, max_iter=100_000),
        "pgd": lambda problem: pgd(problem, tol=1e-2, max_iter=100_000),
    }
    print("Figures 1 and 2: seconds (SVM solves) [gap reached], one group, C = 1,000")
    iterations: list[tuple[int, float]] = []
    for name in DATA:
        X, y = load(name)
        for count in n_widths:
            rows = {key: [] for key in solvers}
            for split in range(n_splits):
                train = np.random.default_rng(split).permutation(y.size)[: int(0.7 * y.size)]
                problem = l1_problem(X[train], y[train], count)
                for key, solve in solvers.items():
                    rows[key].append(timed(lambda solve=solve, problem=problem: solve(problem), limit))
            m = problem.bank.n_kernels
            means = {key: np.nanmean(own, axis=0) for key, own in rows.items()}
            iterations.append((m, means["mirror"][2]))
            line = f"{name:11s} {m:6d} kernels"
            for key, (seconds, svms, _, gap) in means.items():
                line += f"  {key} {seconds:7.3f} ({svms:5.0f}) [{gap:.0e}]"
            print(line, flush=True)
    m, count = np.array(iterations).T
    slope = np.polyfit(np.log(m), np.log(count), 1)[0]
    print(f"mirror iterations grow as (number of kernels)^{slope:.3f} over {m.min():.0f} to {m.max():.0f} kernels")


def many_kernels(limit: float) -> None:
    """How the number of mirror iterations depends on the number of kernels, 100 to 10,000."""
    X, y = load("sonar")
    sizes, counts = [], []
    for n_widths in (2, 6, 20, 60, 170):
        problem = l1_problem(X, y, n_widths)
        result = mirror(problem, tol=1e-12, max_iter=3000, relative_change=1e-4)
        sizes.append(problem.bank.n_kernels)
        counts.append(result.n_iter)
    slope = np.polyfit(np.log(sizes), np.log(counts), 1)[0]
    pairs = ", ".join(f"{m}: {c}" for m, c in zip(sizes, counts, strict=True))
    print(f"Sonar, mirror iterations by number of kernels: {pairs}; they grow as m^{slope:.3f}", flush=True)


def groups(limit: float) -> None:
    print("Groups (a feature each, and all): the oracle's turns, and the time to a certified gap")
    print("data          q     C  turns mean/most  mirror to 1e-3: s (SVMs) [gap]   auto to 1e-4: s (SVMs)   ratio")
    for name in DATA:
        X, y = load(name)
        bank = bind(standard_bank(X), X)
        for q in (1.0, 2.0, 3.0, np.inf):
            for C in (1.0, 100.0):
                norm = MixedNorm(q).bind(bank.groups)
                problem = Problem(bank, Hinge(), norm, y[None], np.full((1, y.size), C))
                automatic(problem, tol=0.5)  # compiles
                fast = timed(lambda problem=problem: automatic(problem, tol=1e-4), limit)
                run = MirrorDescent(problem, norm, 1e-3)
                slow = timed(lambda run=run: descended(run), limit)
                marks = "" if slow[3] <= 1e-3 else ">", "" if fast[3] <= 1e-4 else f" [{fast[3]:.0e}]"
                print(
                    f"{name:11s} {q:4g} {C:5g}  {np.mean(run.turns):6.1f} /{max(run.turns):3d}  "
                    f"{marks[0]}{slow[0]:9.2f} ({slow[1]:5.0f}) [{slow[3]:.0e}]"
                    f"      {fast[0]:8.3f} ({fast[1]:4.0f}){marks[1]}    {marks[0]}{slow[0] / fast[0]:.0f}",
                    flush=True,
                )


def descended(run: MirrorDescent):
    run.solve(100_000, None, 1.0, None)
    return run.recorder.result(run.K, converged=run.converged)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--widths", nargs="*", type=int, default=[2, 5, 10, 20, 50])
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--only", nargs="*", default=["figures", "many", "groups"])
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    if "figures" in arguments.only:
        figures(arguments.splits, arguments.widths, arguments.limit)
    if "many" in arguments.only:
        many_kernels(arguments.limit)
    if "groups" in arguments.only:
        groups(arguments.limit)


if __name__ == "__main__":
    main()
