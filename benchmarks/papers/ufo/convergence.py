"""Convergence of UFO-MKL (Orabona and Jie, 2011): the objective along the epochs, and the bound of Theorem 2.

    MANYKERNELS_DATA=<folder> python -m benchmarks.papers.ufo.convergence [liver ionosphere sonar]

Standard kernels as cosines, so that their diagonals are 1 as the theorem asks; no bias. Each line: the relative error
of the objective after 1, 2, 5, 10, 20, 50 epochs, for the paper's steps (uniform sampling, and shuffled) and ours
(exact), and of a bound e L^2 (1 + ln T) ln F / (lambda delta T) with L = 1 and delta = 1/2. The optimum is that of
exact steps run to a gap of 1e-6; "batch" is the closed-form alternation on the same regularizer, which agrees with it.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.papers.ufo.table_1 import load
from manykernels.banks import Placement, Recipe, bind
from manykernels.banks.pairs import PairValues
from manykernels.kernels import standard_bank
from manykernels.losses import Hinge, Logistic, OneVsRest
from manykernels.norms import ElasticNorm
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.ufo import ufo
from manykernels.outer.ufo_sample_theta import SampleTheta
from manykernels.outer.ufo_theta import make_rule
from manykernels.problem import Problem

SHOWN = (1, 2, 5, 10, 20, 50)


def main() -> None:
    for name in sys.argv[1:] or ("liver", "ionosphere", "sonar"):
        X, y = load(name)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        labels, n = np.where(y == np.unique(y)[1], 1.0, -1.0), len(y)
        bank = bind(standard_bank(X), X, Recipe(normalize="cosine"), Placement(storage="recomputed"))
        pairs, m = PairValues(bank, 0.0, 8 * 10**9), bank.n_kernels
        for loss in (Hinge(), Logistic()):
            for C in (1.0, 100.0):
                for alpha in (0.0, 1e-3):
                    run(f"{name} {loss.name} C={C:g} alpha={alpha:g}", pairs, loss, labels, C, alpha, n, m)


def run(words: str, pairs: PairValues, loss, labels, C: float, alpha: float, n: int, m: int) -> None:
    joint = OneVsRest(loss, 1)

    def walk(exact: bool, epochs: int, sampling: str = "shuffle", tol: float = 0.0):
        rule = make_rule(joint, alpha, C * n, m, exact=exact)
        theta = SampleTheta(pairs, joint, labels[:, None], np.full(n, C), rule)
        return ufo(theta, max_iter=epochs, sampling=sampling, tol=tol)

    best = walk(True, 3000, tol=1e-6).certificate
    bank = bind(standard_bank(pairs.bank.X), pairs.bank.X, Recipe(normalize="cosine"))
    problem = Problem(bank, loss, ElasticNorm(alpha * C * n), labels[None], np.full((1, n), C), False)
    batch = group_lasso(problem, tol=1e-3, max_iter=300).certificate
    print(f"\n{words}: optimum {best.dual:.6g} (gap {best.gap:.0e}), batch {batch.primal:.6g} (gap {batch.gap:.0e})")
    rows = {
        "paper, uniform": walk(False, 50, "uniform").trace,
        "paper, shuffled": walk(False, 50).trace,
        "exact": walk(True, 50).trace,
    }
    for title, trace in rows.items():
        errors = [trace[min(e, len(trace)) - 1].objective / best.dual - 1 for e in SHOWN]
        falling = "still falling" if trace[-1].objective < trace[max(-6, -len(trace))].objective else "not falling"
        print(f"  {title:16s}" + "".join(f"{error:10.2e}" for error in errors) + f"   {falling}", flush=True)
    # In the library's units the objective is the paper's divided by lambda.
    steps = np.array(SHOWN) * n
    bound = np.e * (1 + np.log(steps)) * np.log(m) * (C * n) ** 2 / (0.5 * steps)
    print("  bound           " + "".join(f"{error:10.2e}" for error in bound / best.dual))
    below = all(trace[e - 1].objective - best.dual <= b for e, b in zip(SHOWN, bound, strict=True)
                for trace in (rows["paper, uniform"], rows["paper, shuffled"]))  # fmt: skip
    print(f"  below the bound: {below}")


if __name__ == "__main__":
    main()
