"""Projected gradient descent with the Armijo rule, the baseline of SPG-GMKL.

A step goes to P(d - s g) with s = 1, 1/2, 1/4, ... until W falls by at least gamma g'(d - P(d - s g)); every inner
problem is solved to the same high precision. Everything else is that of :mod:`manykernels.outer.spg`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manykernels.core.results import Result
from manykernels.outer.spg import ENOUGH, MOST_HALVINGS, Options, ProjectedGradient, Trial
from manykernels.problem import Problem


def pgd(
    problem: Problem,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    start: np.ndarray | None = None,
    random_state: Any = None,
    gradient_tol: float | None = None,
) -> Result:
    """Run the method; parameters and result are those of :func:`manykernels.outer.spg.spg`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpPenalty
    >>> from manykernels.literature.pgd import pgd
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]), X)
    >>> problem = Problem(bank, Hinge(), LpPenalty(2), np.sign(np.sin(3 * X.T)), np.ones((1, 30)))
    >>> pgd(problem).converged
    True
    """
    options = Options(
        spectral=False, non_monotone=False, tune_precision=False, proximal=False, gradient_tol=gradient_tol
    )
    return _Descent(problem, tol, options).run(max_iter, start, random_state)


class _Descent(ProjectedGradient):
    def search(self, point: Trial, length: float) -> Trial | None:
        """Return the first of the points P(d - s g) that lowers W by enough."""
        share = 1.0
        for _ in range(MOST_HALVINGS):
            weights = self.norm.project(point.weights - share * point.gradient)
            trial = self.evaluate(weights, point.machine)
            if trial.value <= point.value - ENOUGH * float(point.gradient @ (point.weights - weights)):
                return trial
            share *= 0.5
        return None
