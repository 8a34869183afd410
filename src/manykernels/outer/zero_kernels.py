"""Kernels that are zero on the training data: whatever weight a solver leaves on them has no effect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from manykernels.core.results import Result
from manykernels.problem import Problem


def without_zero_kernels(problem: Problem, result: Result) -> Result:
    """Return the result with weight 0 on kernels that are zero, or constant and centered, on the training data.

    The predictor is the same, and so is the dual value. A norm of the components does not see these weights, since
    their components are 0; a penalty of the weights does, and the primal value falls by what it no longer charges. Only
    a penalty that pays for weights as such keeps them, because without them the result would not be its optimum.

    Parameters
    ----------
    problem : Problem
    result : Result
        Of any solver.

    Examples
    --------
    >>> import numpy as np
    >>> import warnings
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import KernelBank, Linear
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.group_lasso import group_lasso
    >>> from manykernels.outer.zero_kernels import without_zero_kernels
    >>> from manykernels.problem import Problem
    >>> X = np.array([[-1.0, 0.0], [-0.5, 0.0], [0.5, 0.0], [1.0, 0.0]])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     bank = bind(KernelBank([Linear(columns=[0]), Linear(columns=[1])]), X)
    >>> problem = Problem(bank, Hinge(), LpNorm(np.inf), np.sign(X[:, :1].T), np.ones((1, 4)))
    >>> result = group_lasso(problem)
    >>> result.weights, without_zero_kernels(problem, result).weights
    (array([1., 1.]), array([1., 0.]))
    """
    zero = problem.bank.scale == 0.0
    if not np.any(result.weights * zero):
        return result
    weights, nothing = np.where(zero, 0.0, result.weights), np.zeros(result.weights.size)
    saved = problem.norm.regularizer(result.weights, nothing) - problem.norm.regularizer(weights, nothing)
    if saved < 0.0:
        return result
    certificate = replace(result.certificate, primal=result.certificate.primal - saved)
    return replace(result, weights=weights, certificate=certificate)
