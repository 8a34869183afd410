"""Newton's method in the weights, coarse to fine in the samples.

The weights that are best for a random half of the samples are nearly best for all, and cost a quarter of the time or
less. So a large problem begins with a small part of its samples, and doubles it until all are there. The last samples
are a random part: :mod:`manykernels.core.samples` has put them in an order that looks random, and the last rows of a
packed triangle are the triangle of the last samples, so that nothing is copied.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from manykernels.core.progress import silent
from manykernels.core.results import Result
from manykernels.losses import TotalLoss
from manykernels.outer.fewer_tasks import fewer_tasks
from manykernels.outer.reduced_newton import REDUCED_NEWTON, near_kernels, reduced_newton
from manykernels.problem import Problem

_COARSEST = 400
_COARSE_GAP = 0.05


def multilevel_newton(
    problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None
) -> Result:
    """Run ``reduced_newton`` on parts of the samples that double, and last on all.

    Its parameters and its result are those of the last run, in whose trace the seconds of all count; with weights to
    start from, or kernels that have no tail, it is the only one.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.multilevel import multilevel_newton
    >>> from manykernels.problem import Problem
    >>> X = np.random.default_rng(0).uniform(-3, 3, (900, 1))
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]), X)
    >>> problem = Problem(bank, Hinge(), LpNorm(1), np.sign(np.sin(3 * X.T)), np.ones((1, 900)))
    >>> multilevel_newton(problem, tol=1e-4).converged
    True
    """
    near, begun = None, time.perf_counter()
    for size in _sizes(problem) if start is None and "tail" in problem.can else ():
        tail = fewer_tasks(problem.tail(size))
        with silent():
            result = reduced_newton(tail, tol=_COARSE_GAP, start=start, near=near)
        start, near = result.weights, near_kernels(tail, tail.quad_forms(result.machine), tol)
    seconds = time.perf_counter() - begun
    result = reduced_newton(problem, tol=tol, max_iter=max_iter, start=start, near=near)
    return replace(result, trace=[replace(step, seconds=step.seconds + seconds) for step in result.trace])


# What solver="reduced_newton" means: the same method with the same needs, begun where it costs least.
MULTILEVEL = replace(REDUCED_NEWTON, run=multilevel_newton)


def _sizes(problem: Problem) -> list[int]:
    """Return how many samples each level has, the fewest first; in each, no task's targets are all the same."""
    sizes, size = [], problem.bank.n_samples // 2
    while size >= _COARSEST and has_contrast(problem.loss, problem.y[:, -size:]):
        sizes.append(size)
        size //= 2
    return sizes[::-1]


def has_contrast(loss: TotalLoss, y: np.ndarray) -> bool:
    """Return whether the targets, (n_tasks, n_samples), leave every task something to learn."""
    return all(loss.has_contrast(targets) for targets in y)
