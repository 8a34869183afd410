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

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize_scalar

from manykernels.compute.scales import spread
from manykernels.core.results import UNKNOWN, Certificate, Machine
from manykernels.inner import newton, newton_cg, ridge, smo, svm, svr
from manykernels.inner.blocks import solve_blocks
from manykernels.inner.coordinate_descent import MOST_ROUNDS, solve_features
from manykernels.inner.decomposition import solve_rows
from manykernels.inner.feature_interior import solve_interior
from manykernels.inner.feature_newton import solve_smooth
from manykernels.losses import EpsilonInsensitive, Hinge, Loss, SmoothLoss, Squared

# The dual is flat around its best point, so that this error of the point costs its square.
_FINE = 1e-7
# Relative error of a kernel value in double precision, after a distance, a function of it and a normalization.
_DOUBLE = 2.0**-49
# Fewest rounds of coordinate descent before the interior point takes over.
_FEW_ROUNDS = 50


class FiniteBank(Protocol):
    """The capabilities that a problem with a list of kernels needs."""

    @property
    def capabilities(self) -> frozenset[str]: ...
    @property
    def n_kernels(self) -> int: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def unit_roundoff(self) -> float: ...
    def combine(self, weights: np.ndarray, out: np.ndarray | None = None) -> np.ndarray: ...
    def quad_forms(self, beta: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray: ...
    def inner_products(self, M: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray: ...
    def matvecs(
        self, beta: np.ndarray, subset: np.ndarray | None = None, *, on_support: bool = False
    ) -> np.ndarray: ...
    def rows(self, indices: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray: ...
    def largest_diagonals(self, subset: np.ndarray) -> np.ndarray: ...
    def peaks(self, values: np.ndarray) -> np.ndarray: ...
    def derivative_forms(self, weights: np.ndarray, beta: np.ndarray) -> np.ndarray: ...
    def subset(self, indices: np.ndarray) -> FiniteBank: ...
    def tail(self, size: int) -> FiniteBank: ...


class Norm(Protocol):
    """A norm on the component norms, or a penalty of the weights, with its dual.

    Some offer weights in closed form, which the alternation needs: ``reweigh(weights, quad_forms)``, better ones than
    those of the machine, or ``weights(norms)``, the best ones for given component norms.
    """

    @property
    def selects(self) -> bool: ...
    @property
    def has_dual(self) -> bool: ...
    @property
    def bounds_dual(self) -> bool: ...
    def regularizer(self, weights: np.ndarray, quad_forms: np.ndarray) -> float: ...
    def dual_regularizer(self, quad_forms: np.ndarray) -> float: ...
    def dual_limit(self, quad_forms: np.ndarray) -> float: ...
    def initial_weights(self, n_kernels: int) -> np.ndarray: ...
    def scaled(self, weights: np.ndarray) -> np.ndarray: ...


class ProjectableNorm(Norm, Protocol):
    """What projected gradients ask for beyond that: the problem is to minimize the machine's value plus a penalty."""

    def penalty(self, weights: np.ndarray) -> float: ...
    def penalty_gradient(self, weights: np.ndarray) -> np.ndarray: ...
    def project(self, weights: np.ndarray) -> np.ndarray: ...
    def prox(self, values: np.ndarray, length: float | np.ndarray) -> np.ndarray | None: ...


def closed_form(norm: Norm) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """Return better weights as a function of weights and quadratic forms, or None where the norm has no closed form."""
    own, best = getattr(norm, "reweigh", None), getattr(norm, "weights", None)
    if own is None and best is not None:
        return lambda weights, quad_forms: best(weights * np.sqrt(quad_forms))
    return own


@dataclass(frozen=True)
class Problem:
    """Bank, loss and norm.

    Parameters
    ----------
    bank : finite bank
    loss : Loss
    norm : Norm
    y : ndarray of shape (n_tasks, n_samples)
        Targets; -1 or 1 for classification.
    C : ndarray of shape (n_tasks, n_samples)
        Weight of the loss of each sample.
    fit_intercept : bool
    memory : int, optional
        Bytes that a solver may take beside the bank: ``solver="auto"`` leaves out methods that need more.
    offset : float
        What will be added to the intercepts: a huge one leaves them few digits, which the certificate is to see.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.problem import Problem
    >>> X = np.array([[-1.0], [-0.5], [0.5], [1.0]])
    >>> y = np.array([[-1.0, -1.0, 1.0, 1.0]])
    >>> bank = KernelBank([Gaussian(1.0), Gaussian(3.0)]).bind(X)
    >>> problem = Problem(bank, Hinge(), LpNorm(2), y, np.ones((1, 4)))
    >>> weights = problem.norm.initial_weights(2)
    >>> machine = problem.solve(bank.combine(weights), tol=1e-9)
    >>> gap = problem.certificate(weights, machine, problem.quad_forms(machine)).gap
    >>> 0 < gap < 0.1
    True
    """

    bank: FiniteBank
    loss: Loss
    norm: Norm
    y: np.ndarray
    C: np.ndarray
    fit_intercept: bool = True
    memory: int | None = None
    offset: float = 0.0

    def require(self, needs: frozenset[str], solver: str) -> None:
        """Raise before any work if the kernels cannot do what a solver needs, naming what is missing."""
        missing = sorted(needs - getattr(self.bank, "capabilities", frozenset()))
        if missing:
            raise TypeError(f"solver={solver!r} needs kernels that offer {', '.join(missing)}; these do not.")

    def tail(self, size: int) -> Problem:
        """Return the problem of the last ``size`` samples."""
        return replace(self, bank=self.bank.tail(size), y=self.y[:, -size:], C=self.C[:, -size:])

    def workspace(self) -> Any:
        """Return what the bank's ``combine`` writes to: a matrix, unless the bank brings something of its own."""
        own = getattr(self.bank, "workspace", None)
        return np.empty((self.bank.n_samples, self.bank.n_samples)) if own is None else own()

    def solve(self, K: Any, start: Machine | None = None, tol: float = 1e-3) -> Machine:
        """Return the machine of every task for the fixed kernel K, warm-started."""
        if hasattr(K, "vectors"):
            return self._solve_features(K, start, tol)
        if not isinstance(K, np.ndarray):
            on_device = hasattr(K, "block")
            return self._solve_on_device(K, start, tol) if on_device else self._solve_rows(K, start, tol)
        if isinstance(self.loss, Squared) and np.all(self.C[0] == self.C):
            beta, _ = ridge.solve(K, self.y, self.C[0], intercept=self.fit_intercept)
            return self.machine(beta, beta @ K)
        solutions = [self._solve_task(K, t, start, tol) for t in range(self.y.shape[0])]
        return self.machine(np.array([s[0] for s in solutions]), np.array([s[1] for s in solutions]))

    def _solve_task(self, K: np.ndarray, t: int, start: Machine | None, tol: float) -> tuple[np.ndarray, np.ndarray]:
        """Return a dual feasible beta and K beta for one task."""
        y, C = self.y[t], self.C[t]
        begin = None if start is None else start.beta[t]
        if isinstance(self.loss, Hinge):
            box = svm.solve(K, y, C, start=begin, intercept=self.fit_intercept, tol=tol)
            return box.beta, box.gradient + y
        if isinstance(self.loss, EpsilonInsensitive):
            epsilon = self.loss.epsilon
            box = svr.solve(K, y, C, epsilon=epsilon, start=begin, intercept=self.fit_intercept, tol=tol)
            return box.beta, box.gradient + y
        if isinstance(self.loss, SmoothLoss):
            from_point = None if start is None else (start.beta[t], start.intercept[t])
            # A Newton step squares the error, so the last one is nearly free: ask for more than is needed.
            solution = newton.solve(K, y, C, self.loss, start=from_point, intercept=self.fit_intercept, tol=1e-2 * tol)
            beta = self.feasible(solution.beta, t)
            return beta, solution.decision if np.array_equal(beta, solution.beta) else K @ beta
        raise TypeError(f"There is no inner solver for the loss {self.loss!r}.")

    def _solve_rows(self, K: Any, start: Machine | None, tol: float) -> Machine:
        """Return the machines for a kernel whose rows are computed on demand: hinge or epsilon-insensitive loss."""
        if not isinstance(self.loss, (Hinge, EpsilonInsensitive)):
            raise TypeError(f"A kernel with rows on demand needs a loss with support vectors, not {self.loss!r}.")
        beta = np.zeros(self.y.shape) if start is None else start.beta.copy()
        decision = np.zeros(self.y.shape)
        for t in range(beta.shape[0]):

            def product(own: np.ndarray, t: int = t) -> np.ndarray:
                beta[t] = own
                return K.product(beta)[t]

            y, unit, epsilon = self.y[t], 1.0, 0.0
            if isinstance(self.loss, EpsilonInsensitive):
                unit, epsilon = spread(y), self.loss.epsilon
            box = solve_rows(
                K,
                y,
                *self.loss.domain(y, self.C[t]),
                product=product,
                epsilon=epsilon,
                start=beta[t].copy(),
                intercept=self.fit_intercept,
                tol=tol * unit,
            )
            beta[t], decision[t] = box.beta, box.gradient + y
        return self.machine(beta, decision)

    def _solve_features(self, K: Any, start: Machine | None, tol: float) -> Machine:
        """Return the machines for a kernel that is given by features of the samples."""
        beta: np.ndarray = np.empty(self.y.shape)
        for t in range(beta.shape[0]):
            y, C = self.y[t], self.C[t]
            begin = None if start is None else (np.asarray(start.beta[t]), float(start.intercept[t]))
            if isinstance(self.loss, (Hinge, EpsilonInsensitive)):
                beta[t] = self._solve_kinked(K, t, self.loss, begin, tol)
            elif isinstance(self.loss, SmoothLoss):
                # As with a matrix: a Newton step squares the error.
                fine = 1e-2 * tol
                beta[t] = solve_smooth(K, y, C, self.loss, start=begin, intercept=self.fit_intercept, tol=fine).beta
            else:
                raise TypeError(f"There is no inner solver for the loss {self.loss!r} on features.")
            beta[t] = self.feasible(beta[t], t)
        return self.machine(beta, K.product(beta))

    def _solve_kinked(
        self, K: Any, t: int, loss: Hinge | EpsilonInsensitive, start: tuple[np.ndarray, float] | None, tol: float
    ) -> np.ndarray:
        """Return beta of a task with a piecewise linear loss on features.

        Coordinate descent is fast to a first accuracy, and slow where C is large. The interior point is not, but each
        of its steps makes and factors a matrix of the features: on a device, that is quick.
        """
        y, C, n_columns = self.y[t], self.C[t], np.count_nonzero(K.columns)
        lower, upper = loss.domain(y, C)
        epsilon = loss.epsilon if isinstance(loss, EpsilonInsensitive) else 0.0
        signs = (1.0, -1.0) if isinstance(loss, EpsilonInsensitive) else (y,)
        parts = [(sign, np.where(sign > 0, upper, -lower), epsilon - sign * y) for sign in signs]
        if hasattr(K, "columns_product"):
            if K.table.can_factor(n_columns):
                return solve_interior(K, y, parts, start=start, intercept=self.fit_intercept, tol=tol)
            unit = 1.0 if epsilon == 0.0 else spread(y)
            options: dict[str, Any] = {"epsilon": epsilon, "intercept": self.fit_intercept, "tol": tol * unit}
            return solve_blocks(K, y, lower, upper, start=None if start is None else start[0], **options).beta
        heavy = not K.table.factors_quickly(n_columns)
        # A step of the interior point costs about as much as a tenth of a round for each column.
        rounds = MOST_ROUNDS if heavy else int(np.clip(2 * n_columns, _FEW_ROUNDS, MOST_ROUNDS))
        found = solve_features(
            K, y, lower, upper, epsilon=epsilon, start=start, intercept=self.fit_intercept, tol=tol, max_rounds=rounds
        )
        if found.converged or heavy:
            return found.beta
        point = (found.beta, found.intercept)
        return solve_interior(K, y, parts, start=point, intercept=self.fit_intercept, tol=tol)

    def _solve_on_device(self, K: Any, start: Machine | None, tol: float) -> Machine:
        """Return the machines for a kernel that stays on a device: products with it and blocks of it are cheap."""
        solutions = [self._solve_task_on_device(K, t, start, tol) for t in range(self.y.shape[0])]
        return self.machine(np.array([s[0] for s in solutions]), np.array([s[1] for s in solutions]))

    def _solve_task_on_device(self, K: Any, t: int, start: Machine | None, tol: float) -> tuple[np.ndarray, np.ndarray]:
        """Return a dual feasible beta and K beta for one task."""
        y, C = self.y[t], self.C[t]
        options: dict[str, Any] = {"intercept": self.fit_intercept}
        if isinstance(self.loss, SmoothLoss):
            begin = None if start is None else (start.beta[t], float(start.intercept[t]))
            # Where the loss has corners in its slope, the last step by conjugate gradients does not square the error.
            options["tol"] = max(1e-5 * tol, K.unit_roundoff)  # the objective itself is known no better
            solution = newton_cg.solve(K.product, K.diagonal(), y, C, self.loss, start=begin, **options)
            beta = self.feasible(solution.beta, t)
            return beta, solution.decision if np.array_equal(beta, solution.beta) else K.product(beta[None])[0]
        if not isinstance(self.loss, (Hinge, EpsilonInsensitive)):
            raise TypeError(f"There is no inner solver for the loss {self.loss!r}.")
        if isinstance(self.loss, EpsilonInsensitive):
            options["epsilon"], tol = self.loss.epsilon, tol * spread(y)
        begin_at = None if start is None else start.beta[t]
        box = solve_blocks(K, y, *self.loss.domain(y, C), start=begin_at, tol=tol, **options)
        return box.beta, box.gradient + y

    def feasible(self, beta: np.ndarray, t: int) -> np.ndarray:
        """Return the nearest beta in the domain of the dual: the box, and 1' beta = 0 with an intercept."""
        lower, upper = self.loss.domain(self.y[t], self.C[t])
        inside = np.clip(beta, lower, upper)
        return smo.balanced(inside, lower, upper) if self.fit_intercept else inside

    def machine(self, beta: np.ndarray, decision: np.ndarray) -> Machine:
        """Return the machine with these coefficients, K beta and the intercepts that are best for them."""
        intercept = np.zeros(beta.shape[0])
        if self.fit_intercept:
            for t in range(beta.shape[0]):
                best = self.loss.best_intercept(self.y[t], decision[t], self.C[t])
                intercept[t] = (best + self.offset) - self.offset
        return Machine(beta, decision, intercept)

    def quad_forms(self, machine: Machine, subset: np.ndarray | None = None) -> np.ndarray:
        """Return q_k summed over the tasks, for the kernels of the subset (default: all)."""
        return self.bank.quad_forms(machine.beta, subset).sum(axis=0)

    def certificate(self, weights: np.ndarray, machine: Machine, quad_forms: np.ndarray) -> Certificate:
        """Return the primal and the dual value at the machine with these weights; what overflows is infinite."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            primal = self.norm.regularizer(weights, quad_forms) + self._losses(machine)
            dual = self._dual_value(machine, quad_forms) if self.norm.has_dual else UNKNOWN
        if self.norm.has_dual and not np.isfinite(dual):
            dual = -np.inf
        return Certificate(primal if np.isfinite(primal) else np.inf, dual)

    def _dual_value(self, machine: Machine, quad_forms: np.ndarray) -> float:
        """Return the dual value at beta or, where the conjugate could be huge, at the best point between 0 and beta.

        The domain of the dual holds 0, so those points are feasible, too.
        """
        if not self.norm.bounds_dual:
            return -self._conjugates(machine.beta) - self.norm.dual_regularizer(quad_forms)

        def loss_at(part: float) -> float:
            value = self._conjugates(part * machine.beta) + self.norm.dual_regularizer(part**2 * quad_forms)
            return value if np.isfinite(value) else np.finfo(float).max

        end = self.norm.dual_limit(quad_forms)
        # The function is convex: where it still falls at the end, that is its lowest point.
        if loss_at(end) <= loss_at((1.0 - 10 * _FINE) * end):
            return -loss_at(end)
        inside = minimize_scalar(loss_at, bounds=(0.0, end), method="bounded", options={"xatol": _FINE * end})
        return -min(float(inside.fun), loss_at(end))

    def inner_gap(self, machine: Machine) -> float:
        """Return primal minus dual of the problem with the weights fixed: the inner solver's own error.

        Needs no pass over the kernels, since beta' K beta is beta' decision.
        """
        quadratic = float(np.sum(machine.beta * machine.decision))
        return quadratic + self._losses(machine) + self._conjugates(machine.beta)

    def objective(self, machine: Machine) -> float:
        """Return the primal value of the problem with the weights fixed."""
        return 0.5 * float(np.sum(machine.beta * machine.decision)) + self._losses(machine)

    def dual_objective(self, machine: Machine) -> float:
        """Return the dual value of the problem with the weights fixed: it lies below the optimum of the machine."""
        return -0.5 * float(np.sum(machine.beta * machine.decision)) - self._conjugates(machine.beta)

    def rounding(self, K: Any, machine: Machine, weights: np.ndarray | None = None) -> float:
        """Return about how far rounded kernel values move the primal value.

        An error of u in each kernel value moves the prediction i by about
        e_i = u * sqrt(sum_j K_ij^2 beta_j^2) <= u * sqrt(K_ii) * ||sqrt(K_jj) beta_j||,
        and its loss by as much as it differs at that distance: a sample at a corner of its loss counts, whatever its
        beta is. Given the weights, what centering has lost of the kernels is counted: there each value has an error of
        one size, e_i = size * ||beta||.
        """
        root = np.sqrt(np.maximum(K.diagonal(), 0.0))
        with np.errstate(over="ignore", invalid="ignore"):
            moved = np.sqrt(np.sum((root * machine.beta) ** 2, axis=1, keepdims=True))
            errors = max(self.bank.unit_roundoff, _DOUBLE) * moved * root
            lost = getattr(self.bank, "centering_errors", None)
            if weights is not None and lost is not None:
                errors = errors + float(weights @ lost) * np.linalg.norm(machine.beta, axis=1, keepdims=True)
            z = machine.decision + machine.intercept[:, None]
            worst = np.maximum(self.loss.value(self.y, z + errors), self.loss.value(self.y, z - errors))
            passed = float(np.sum(self.C * (worst - self.loss.value(self.y, z))))
        return passed if np.isfinite(passed) else np.inf

    def dual_rounding(self, machine: Machine, least: float) -> float:
        """Return about how far rounded quadratic forms move the dual value, 0 where that is below ``least``.

        A form is a sum with terms of both signs, so that its error is about u * sum_i beta_i^2 K_ii.
        """
        if not self.norm.has_dual:
            return 0.0
        largest = self.bank.largest_diagonals(np.arange(self.bank.n_kernels))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            errors = max(self.bank.unit_roundoff, _DOUBLE) * largest * float(np.sum(machine.beta**2))
            # A norm's square grows with the forms, a bound on them has no such scale.
            if not self.norm.bounds_dual and np.max(errors, initial=0.0) * errors.size <= least:
                return 0.0
            quad_forms = self.quad_forms(machine)
            lost = self._dual_value(machine, quad_forms) - self._dual_value(machine, quad_forms + errors)
        return float(lost) if np.isfinite(lost) else np.inf

    def _losses(self, machine: Machine) -> float:
        predictions = machine.decision + machine.intercept[:, None]
        return float(np.sum(self.C * self.loss.value(self.y, predictions)))

    def _conjugates(self, beta: np.ndarray) -> float:
        return float(np.sum(self.loss.conjugate(self.y, beta, self.C)))
