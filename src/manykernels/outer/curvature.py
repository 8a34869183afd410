"""How the value of the machine bends with the kernel weights: the second derivative of J, of one task and of many.

One task: see :mod:`manykernels.outer.reduced_newton`. Many tasks that share their weights, with the squared loss and
the same costs, share all but their targets, too. With A = K_d + diag(1 / C), P = A^-1 with the intercept eliminated,
and the coefficients B = Y P of all tasks,

    J(d) = 1/2 <Y'Y, P>,      dJ/dd_k = -1/2 <K_k, B'B>,      d2J/dd_k dd_l = <K_l, B'B K_k P>,

so that one factorization, and for each kernel two products of matrices and a pass, serve however many tasks.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np
from scipy.linalg import cho_solve

from manykernels.compute.linalg import cholesky_factor, principal_block
from manykernels.core.results import Machine
from manykernels.losses import CoupledLoss, Loss
from manykernels.problem import Problem

_FEW_FREE = 2  # free samples for each kernel: with fewer, samples at a bound take part
_STIFF = 100.0  # but those that do not give: this stiff beside the kernel's diagonal
_RIDGE = 1e-6  # of the mean diagonal; it keeps a singular matrix factorable in single precision
# So many tasks for each kernel cost more one by one than two products of matrices for each kernel.
_MANY_TASKS = 8


class Curvature(Protocol):
    """The second derivative of the value in the weights, and the response of the coefficients."""

    hessian: np.ndarray

    def moved(self, change: np.ndarray) -> Any:
        """Return beta after a change of the weights, to first order, shape (n_tasks, n)."""


def share_curvature(problem: Problem, n_kernels: int) -> bool:
    """Return whether the tasks of a problem share their curvature, and are many beside so many kernels."""
    if not problem.loss.quadratic or problem.y.shape[0] < _MANY_TASKS * n_kernels:
        return False
    return "inner_products" in problem.can and bool(np.all(problem.C[0] == problem.C))


class TaskByTask:
    """The sum of the curvatures of some tasks.

    Parameters
    ----------
    problem : Problem
    K : ndarray of shape (n, n)
    machine : Machine
    products : ndarray of shape (n_tasks, n_kernels, n)
        K_k beta_t, where beta is not 0.
    mu : float
        The gap for each sample.
    """

    def __init__(self, problem: Problem, K: np.ndarray, machine: Machine, products: np.ndarray, mu: float) -> None:
        self._tasks = [of_task(problem, K, machine, products[t], t, mu) for t in range(problem.y.shape[0])]
        self.hessian = np.sum([task.hessian for task in self._tasks], axis=0)

    def moved(self, change: np.ndarray) -> np.ndarray:
        """Return beta after a change of the weights, to first order."""
        return np.array([task.moved(change) for task in self._tasks])


class TaskCurvature:
    """That of one task whose loss is a sum over samples: those inside their bounds count."""

    def __init__(
        self, problem: Problem, K: np.ndarray, machine: Machine, products: np.ndarray, t: int, mu: float
    ) -> None:
        self.beta = machine.beta[t]
        loss, y, C = cast(Loss, problem.loss), problem.y[t], problem.C[t]
        lower, upper = loss.domain(y, C)
        is_free = (self.beta > lower) & (self.beta < upper) & (self.beta != 0)
        curvature = np.zeros(y.size)
        curvature[is_free] = loss.dual_curvature(y[is_free], self.beta[is_free], C[is_free])
        if is_free.sum() < _FEW_FREE * products.shape[0] and mu > 0.0:
            slope, _ = loss.dual_pull(y, machine.decision[t] + machine.intercept[t], C)
            curvature = np.where(is_free, curvature, slope**2 / mu)
            is_free |= curvature < _STIFF * K.diagonal()
            products = problem.bank.matvecs(self.beta)
        self.free = np.flatnonzero(is_free)
        self.response = np.zeros((products.shape[0], self.free.size))
        self.hessian = np.zeros((products.shape[0], products.shape[0]))
        if self.free.size:
            self._compute(K, products[:, self.free], curvature[self.free], problem.fit_intercept)

    def _compute(self, K: np.ndarray, G: np.ndarray, curvature: np.ndarray, intercept: bool) -> None:
        # A model of the objective needs a few digits: single precision halves the time and the memory.
        A = principal_block(K, self.free, np.float32)
        A[np.diag_indices_from(A)] += curvature + _RIDGE * A.diagonal().mean()
        right = np.vstack([G, np.ones(self.free.size)]).T.astype(np.float32)
        inverse = cho_solve(cholesky_factor(A, overwrite=True), right, check_finite=False).T.astype(np.float64)
        self.response = inverse[:-1]
        if intercept:
            along = inverse[-1]
            self.response = self.response - np.outer(self.response.sum(axis=1) / along.sum(), along)
        self.hessian = G @ self.response.T
        self.hessian = 0.5 * (self.hessian + self.hessian.T)

    def moved(self, change: np.ndarray) -> np.ndarray:
        beta = self.beta.copy()
        beta[self.free] -= change @ self.response
        return beta


class CoupledCurvature:
    """That of one task whose loss couples the samples."""

    def __init__(self, problem: Problem, K: np.ndarray, machine: Machine, products: np.ndarray, t: int) -> None:
        self.beta = machine.beta[t]
        loss, z = cast(CoupledLoss, problem.loss), machine.decision[t] + machine.intercept[t]
        factor = loss.curvature_factor(problem.y[t], z, problem.C[t])
        B = factor.congruent(K)
        B[np.diag_indices_from(B)] += 1.0
        right = factor.transposed_times(products)
        solved = cho_solve(cholesky_factor(B, least=1.0, overwrite=True), right.T, check_finite=False).T
        self.response = factor.times(solved)
        self.hessian = 0.5 * (right @ solved.T + solved @ right.T)

    def moved(self, change: np.ndarray) -> np.ndarray:
        return self.beta - change @ self.response


def of_task(
    problem: Problem, K: np.ndarray, machine: Machine, products: np.ndarray, t: int, mu: float
) -> TaskCurvature | CoupledCurvature:
    """Return the curvature of task t at its machine, whose products K_k beta are known where beta is not 0."""
    if problem.loss.elementwise:
        return TaskCurvature(problem, K, machine, products, t, mu)
    return CoupledCurvature(problem, K, machine, products, t)


class AllTasks:
    """The curvature of tasks that share it: see the docstring of the module.

    ``moved`` returns the coefficients as they are, since the machine of the squared loss is solved at once from any.
    """

    def __init__(self, problem: Problem, K: np.ndarray, machine: Machine) -> None:
        bank, used = problem.bank, np.flatnonzero(problem.C[0] > 0)
        self._beta, every = machine.beta, np.arange(bank.n_kernels)
        A = principal_block(K, used, np.float32)
        A[np.diag_indices_from(A)] += 1.0 / problem.C[0][used] + _RIDGE * A.diagonal().mean()
        P = cho_solve(cholesky_factor(A, overwrite=True), np.eye(used.size, dtype=np.float32), check_finite=False)
        if problem.fit_intercept:
            along = P.sum(axis=1)
            P -= np.outer(along, along / along.sum())
        whole = np.zeros((bank.n_samples, bank.n_samples), np.float32)
        whole[np.ix_(used, used)] = P
        M = (machine.beta.T @ machine.beta).astype(np.float32)
        rows = np.arange(bank.n_samples)
        hessian = np.empty((every.size, every.size))
        for k in every:
            product = M @ (bank.rows(rows, np.array([k]))[0].astype(np.float32) @ whole)
            hessian[k] = bank.inner_products(0.5 * (product + product.T).astype(np.float64))
        self.hessian = 0.5 * (hessian + hessian.T)

    def moved(self, change: np.ndarray) -> np.ndarray:
        """Return beta as it is."""
        return self._beta
