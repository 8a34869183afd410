"""The training problem: kernels, loss and norm put together; its value and its certificate.

    primal   minimize over f_1..f_m, b   1/2 N(a)^2 + sum_i C_i loss(y_i, f(x_i) + b),   f = sum_k f_k, a_k = ||f_k||
    dual     maximize over beta          -sum_i conj_i(beta_i) - 1/2 N*(sqrt(q))^2,      q_k = beta' K_k beta

with 1' beta = 0 when there is an intercept. With weights d fixed, the
predictor is f_k = d_k K_k beta, so a_k = d_k sqrt(q_k). The certificate puts
this f with its true losses into the primal and this beta into the dual;
whatever the accuracy of the inner solver, the optimum lies between the two.

Several tasks (the classes of a one-vs-rest problem) that share their weights
are one problem: the losses add up, a_k^2 and q_k are summed over the tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from manykernels.compute.combined import DOUBLE, LAST_BIT
from manykernels.core.protocols import Bank, CombinedKernel
from manykernels.core.results import UNKNOWN, Certificate, Iterate, Machine
from manykernels.inner import solve as inner
from manykernels.losses import TotalLoss
from manykernels.norms import Norm

# The dual is flat around its best point, so that this error of the point costs its square.
_FINE = 1e-7
# From so many tasks on, the sum of their forms is read off the products of their coefficients: one pass for all.
_MANY_TASKS = 8


class MachineProblem:
    """What a machine is learned from once its kernel is fixed; the fields are those of a problem that inherits this.

    Attributes
    ----------
    loss : TotalLoss
    y, C : ndarrays of shape (n_tasks, n_samples)
    fit_intercept : bool
    offset : float or ndarray of shape (n_tasks,)
    """

    loss: TotalLoss
    y: np.ndarray
    C: np.ndarray
    fit_intercept: bool
    offset: Any

    def solve(self, K: CombinedKernel, start: Iterate | None = None, tol: float = 1e-3) -> Machine:
        """Return the machine of every task for the fixed kernel K, warm-started."""
        return inner.solve(
            K, self.loss, self.y, self.C, intercept=self.fit_intercept, offset=self.offset, start=start, tol=tol
        )

    def feasible(self, beta: np.ndarray, t: int) -> np.ndarray:
        """Return beta, moved into the domain of the dual of task t where it is not there."""
        return self.loss.feasible(self.y[t], beta, self.C[t], self.fit_intercept)

    def machine(self, beta: np.ndarray, decision: np.ndarray) -> Machine:
        """Return the machine with these coefficients, K beta and the intercepts that are best for them."""
        return inner.machine_of(self.loss, self.y, self.C, beta, decision, self.fit_intercept, self.offset)


@dataclass(frozen=True)
class Problem(MachineProblem):
    """Bank, loss and norm.

    Parameters
    ----------
    bank : Bank
    loss : TotalLoss
    norm : Norm
    y : ndarray of shape (n_tasks, n_samples)
        Targets; -1 or 1 for classification.
    C : ndarray of shape (n_tasks, n_samples)
        Weight of the loss of each sample.
    fit_intercept : bool
    offset : float or ndarray of shape (n_tasks,)
        What will be added to the intercepts: a huge one leaves them few digits, which the certificate is to see.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.problem import Problem
    >>> X = np.array([[-1.0], [-0.5], [0.5], [1.0]])
    >>> y = np.array([[-1.0, -1.0, 1.0, 1.0]])
    >>> bank = bind(KernelBank([Gaussian(1.0), Gaussian(3.0)]), X)
    >>> problem = Problem(bank, Hinge(), LpNorm(2), y, np.ones((1, 4)))
    >>> weights = problem.norm.initial_weights(2)
    >>> machine = problem.solve(bank.combine(weights), tol=1e-9)
    >>> gap = problem.certificate(weights, machine, problem.quad_forms(machine)).gap
    >>> 0 < gap < 0.1
    True
    """

    bank: Bank
    loss: TotalLoss
    norm: Norm
    y: np.ndarray
    C: np.ndarray
    fit_intercept: bool = True
    offset: Any = 0.0

    @property
    def can(self) -> frozenset[str]:
        """What a solver may ask of the kernels."""
        return self.bank.can

    def tail(self, size: int) -> Problem:
        """Return the problem of the last ``size`` samples."""
        return replace(self, bank=self.bank.tail(size), y=self.y[:, -size:], C=self.C[:, -size:])

    def coarse(self, size: int) -> Problem:
        """Return a problem of so many samples for a first guess of the weights, if the bank has a coarse size."""
        bank, y, C = self.bank.coarse(size, self.y, self.C)
        return replace(self, bank=bank, y=y, C=C)

    def quad_forms(self, machine: Machine, subset: np.ndarray | None = None) -> np.ndarray:
        """Return q_k summed over the tasks, for the kernels of the subset (default: all).

        That is <K_k, B'B> with the coefficients B of all tasks: a pass costs the same however many they are.
        """
        if "inner_products" in self.bank.can and machine.beta.shape[0] >= _MANY_TASKS:
            return np.maximum(self.bank.inner_products(machine.beta.T @ machine.beta, subset), 0.0)
        return self.bank.quad_forms(machine.beta, subset).sum(axis=0)

    def certificate(self, weights: np.ndarray, machine: Machine, quad_forms: np.ndarray) -> Certificate:
        """Return the primal and the dual value at the machine with these weights; what overflows is infinite."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            primal = self.norm.regularizer(weights, quad_forms) + machine.losses
            dual = self._dual_value(machine, quad_forms) if self.norm.has_dual else UNKNOWN
        if self.norm.has_dual and not np.isfinite(dual):
            dual = -np.inf
        return Certificate(primal if np.isfinite(primal) else np.inf, dual)

    def _dual_value(self, machine: Machine, quad_forms: np.ndarray) -> float:
        """Return the dual value at beta or, where the conjugate could be huge, at the best point between 0 and beta.

        The domain of the dual holds 0, unless the coefficients have another sum, so those points are feasible, too.
        """
        if not self.norm.bounds_dual or self.loss.center(self.C) is not None:
            return -machine.conjugates - self.norm.dual_regularizer(quad_forms)

        def loss_at(share: float) -> float:
            value = machine.conjugates_at(share) + self.norm.dual_regularizer(share**2 * quad_forms)
            return value if np.isfinite(value) else np.finfo(float).max

        end = self.norm.dual_limit(quad_forms)
        # The function is convex: where it still falls at the end, that is its lowest point.
        if loss_at(end) <= loss_at((1.0 - 10 * _FINE) * end):
            return -loss_at(end)
        inside = minimize_scalar(loss_at, bounds=(0.0, end), method="bounded", options={"xatol": _FINE * end})
        return -min(float(inside.fun), loss_at(end))

    def relative_rounding(self, K: CombinedKernel, machine: Machine, primal: float, tol: float) -> float:
        """Return about how far rounding moves the values of a certificate, as a part of the primal one.

        What it moves the dual value by counts from ``tol`` on.
        """
        size = max(abs(primal), 1e-300)
        return (self.rounding(K, machine) + self.dual_rounding(machine, tol * size)) / size

    def rounding(self, K: CombinedKernel, machine: Machine) -> float:
        """Return about how far rounded kernel values, and the last bit of predictions, move the primal value.

        How far the losses move where the predictions do, they say themselves.
        """

        def passed_on(errors: np.ndarray) -> float:
            b = machine.intercept[:, None]
            z, errors = machine.decision + b, errors + LAST_BIT * (np.abs(machine.decision) + np.abs(b))
            return sum(self.loss.moved(y, *parts) for y, *parts in zip(self.y, z, errors, self.C, strict=True))

        with np.errstate(over="ignore", invalid="ignore"):
            moved = K.rounding(machine, passed_on)
        return moved if np.isfinite(moved) else np.inf

    def dual_rounding(self, machine: Machine, least: float) -> float:
        """Return about how far rounded quadratic forms move the dual value, 0 where that is below ``least``.

        A form is a sum with terms of both signs, so that its error is about u * sum_i beta_i^2 K_ii.
        """
        if not self.norm.has_dual or not self.bank.can >= {"coefficients", "quad_forms", "largest_diagonals"}:
            return 0.0
        largest = self.bank.largest_diagonals(np.arange(self.bank.n_kernels))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            errors = max(self.bank.unit_roundoff, DOUBLE) * largest * float(np.sum(machine.beta**2))
            # A norm's square grows with the forms, a bound on them has no such scale.
            if not self.norm.bounds_dual and np.max(errors, initial=0.0) * errors.size <= least:
                return 0.0
            quad_forms = self.quad_forms(machine)
            lost = self._dual_value(machine, quad_forms) - self._dual_value(machine, quad_forms + errors)
        return float(lost) if np.isfinite(lost) else np.inf
