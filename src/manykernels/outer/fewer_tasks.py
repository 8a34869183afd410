"""Fewer tasks with the same optimal weights: what is solved where many tasks share their weights.

A task whose targets are all the same has the optimum f = 0 where there is an intercept: b alone makes each loss as
small as it can be, and beta = 0 proves it. Such tasks take no part.

With the squared loss, and the same costs for all tasks, the targets Y, of shape (n_tasks, n), matter by Y'Y alone. For
a matrix Q with orthonormal columns and B = Q V,

    sum_t y_t'b_t = <Q'Y, V>,     sum_t b_t'D b_t = <V'V, D>,     q_k = <K_k, B'B> = <K_k, V'V>,     B 1 = Q V 1,

and with Y = Q R (the QR decomposition, R of shape (n, n)), the problem of Y and that of R have the same value for the
same weights: the best B is in the range of Q, since B = Y (K + D)^-1 less what the intercept takes. So there are never
more than n tasks to solve for. The coefficients of all tasks then follow from one factorization, and the certificate is
computed anew for them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.results import Machine, Result
from manykernels.problem import Problem

# Rows of the targets that join a triangle at a time, as a multiple of its size.
_ROWS_AT_A_TIME = 4


def fewer_tasks(problem: Problem) -> Problem:
    """Return a problem with the same optimal weights and as few tasks as may be, or the problem itself.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Squared
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.fewer_tasks import fewer_tasks
    >>> from manykernels.problem import Problem
    >>> X, Y = np.arange(5.0)[:, None], np.random.default_rng(0).normal(size=(200, 5))
    >>> problem = Problem(bind(KernelBank([Gaussian(1.0)]), X), Squared(), LpNorm(1), Y, np.ones((200, 5)))
    >>> fewer_tasks(problem).y.shape
    (5, 5)
    """
    if problem.y.shape[0] == 1 or "coefficients" not in problem.can:
        return problem
    learning = vary(problem)
    if not np.all(learning):
        tasks = np.flatnonzero(learning) if np.any(learning) else np.array([0])
        problem = replace(problem, y=problem.y[tasks], C=problem.C[tasks], offset=_offsets(problem)[tasks])
    if _matters_by_products(problem):
        y = triangle_of(problem.y)
        return replace(problem, y=y, C=np.broadcast_to(problem.C[0], y.shape), offset=0.0)
    return problem


def restored(problem: Problem, fewer: Problem, result: Result, tol: float) -> Result:
    """Return the result for all tasks of a problem, given that for the fewer tasks."""
    K = problem.bank.combine(result.weights)
    machine = _machine(problem, fewer, result.machine, K)
    certificate = problem.certificate(result.weights, machine, problem.quad_forms(machine))
    rounding = problem.relative_rounding(K, machine, certificate.primal, tol)
    converged = result.converged
    if not np.isnan(certificate.gap):
        certificate = certificate.rounded(rounding, tol)
        converged = certificate.within(tol)
    return replace(result, machine=machine, certificate=certificate, converged=converged, rounding=rounding)


def _machine(problem: Problem, fewer: Problem, machine: Machine, K: Any) -> Machine:
    if _matters_by_products(problem):
        return problem.solve(K)
    beta, decision = np.zeros(problem.y.shape), np.zeros(problem.y.shape)
    learning = vary(problem)
    if np.any(learning):
        beta[learning], decision[learning] = machine.beta, machine.decision
    return problem.machine(beta, decision)


def vary(problem: Problem) -> np.ndarray:
    """Return which tasks have something to learn: without an intercept all, else those whose targets vary."""
    if not problem.fit_intercept or problem.loss.center(problem.C) is not None:
        return np.ones(problem.y.shape[0], bool)
    return problem.y.max(axis=1) > problem.y.min(axis=1)


def _offsets(problem: Problem) -> np.ndarray:
    return np.broadcast_to(problem.offset, problem.y.shape[:1])


def _matters_by_products(problem: Problem) -> bool:
    """Return whether the targets matter by Y'Y alone, and are more than samples."""
    n_tasks, n = problem.y.shape
    suits = problem.loss.quadratic and "inner_products" in problem.can
    return suits and n_tasks > n and bool(np.all(problem.C[0] == problem.C))


@one_blas_thread()
def triangle_of(Y: np.ndarray) -> np.ndarray:
    """Return R of shape (n, n) with R'R = Y'Y, for Y of shape (n_tasks, n) with at least n rows; Y'Y is not formed.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.outer.fewer_tasks import triangle_of
    >>> Y = np.random.default_rng(0).normal(size=(50, 3))
    >>> R = triangle_of(Y)
    >>> R.shape, bool(np.allclose(R.T @ R, Y.T @ Y))
    ((3, 3), True)
    """
    n = Y.shape[1]
    R: np.ndarray = np.zeros((0, n))
    step = _ROWS_AT_A_TIME * n
    for low in range(0, Y.shape[0], step):
        R = np.asarray(np.linalg.qr(np.vstack([R, Y[low : low + step]]), mode="r"))
    return R
