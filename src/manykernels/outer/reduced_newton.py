"""Newton's method in the kernel weights alone: second order for problems with thousands of samples.

The objective as a function of the weights, J(d) = the optimal value of the machine with the kernel K_d, is convex.
With beta the machine's solution, its gradient is -q/2, q_k = beta' K_k beta. While the set F of samples inside their
bounds stays the same, beta moves with the weights by

    (K_d,FF + diag(conj'')) dbeta_F + G_F' dd + db 1 = 0,    1' dbeta_F = 0,     G = the rows K_k beta,

so the Hessian of J is  H = G_F M G_F',  M the inverse of the matrix on the left, with the intercept eliminated. Where
the samples in F are too few to say much (J is nearly piecewise linear then), those at a bound take part as in an
interior point: with the slope e_i of the inequality of Fenchel and Young at the bound and mu the gap for each sample,
e_i^2 / mu takes the place of conj''. One
step minimizes the quadratic model over the weights (:mod:`manykernels.outer.quadratic_model`), and the same equation
says where the machine's solution will be: the inner solver starts there. Near the optimum the gap falls
quadratically. Where a step does not lower J as the model promised, a growing multiple of the identity is added to H:
the step turns toward the gradient and becomes shorter, until it does.

A loss that couples the samples has no curvature of each, but one of all, W = F F' at the machine's predictions. There
(I + W K_d) dbeta = -W G' dd, so that  H = (F' G')' (I + F' K_d F)^-1 (F' G'),  without a set F of samples.
Many tasks with the squared loss share one such matrix (:mod:`manykernels.outer.curvature`).

All this happens on a working set of kernels; a step costs their products with beta, one factorization of the free
samples in single precision and one warm inner solve. A full pass of quadratic forms is made only where the gap on the
working set is small enough: it certifies, or shows which kernels are missing.

The interior point of :mod:`manykernels.outer.newton` needs more factorizations, of all samples and in double
precision, but no inner solver: it is the better one for few samples and for the last digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError

from manykernels.compute.threads import one_blas_thread
from manykernels.core.results import Certificate, Iterate, Machine, Result
from manykernels.core.solver import Need, Sizes, Solver
from manykernels.losses import TotalLoss
from manykernels.norms import Norm
from manykernels.outer.curvature import AllTasks, Curvature, TaskByTask, share_curvature
from manykernels.outer.needs import PRODUCTS, inner_matrices, matrices, working_set
from manykernels.outer.quadratic_model import best_weights
from manykernels.outer.recorder import Recorder
from manykernels.outer.working_set import important_kernels
from manykernels.problem import Problem

_FIRST_GAP = 0.1
_EXPECTED = 0.1  # of the gap is left after a step
_NEAR = 0.8  # of the largest quadratic form: such kernels are looked at for p = 1
_FIRST_NEAR = 0.5  # and far from a solution
_MOST_NEW = 40
_NEGLIGIBLE = 0.1  # of tol
_SMALLER = 0.1  # the next gap to reach on the working set, in the gap of the last full pass
_LAST = 0.3  # of tol: the smallest gap to ask for on a working set that proved complete
_NEW_SHARE = 0.1  # of the weight goes to kernels that join, or the gap if that is less
_PROGRESS = 0.9  # the gap counts as lowered below this part of the smallest so far
_GAIN = 0.02  # and the objective if it falls by this part of the gap
_PATIENCE = 6  # steps in a row that lower neither


def reduced_newton(
    problem: Problem,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    start: np.ndarray | None = None,
    near: np.ndarray | None = None,
) -> Result:
    """Run the method.

    Parameters
    ----------
    problem : Problem
        Its norm is an LpNorm with finite p.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most rounds, the first solve with equal weights among them; each ends with a full pass of quadratic forms.
    start : ndarray of shape (n_kernels,), optional
        Weights to start from. Default: equal weights.
    near : ndarray of int, optional
        Kernels that are likely to matter, to begin with besides those of ``start``. Default: a full pass tells which.

    Returns
    -------
    Result
        The best iterate; ``converged`` is False where no step was left before the gap was reached.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.reduced_newton import reduced_newton
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]), X)
    >>> problem = Problem(bank, Hinge(), LpNorm(1), np.sign(np.sin(3 * X.T)), np.ones((1, 30)))
    >>> reduced_newton(problem, tol=1e-4).converged
    True
    """
    with one_blas_thread():
        run = _Run(problem, exponent(problem.norm), tol, max_iter)
        with run.recorder.interruptible():
            run.solve(start, near)
        return run.recorder.result(run.K)


def refuses(norm: Norm, loss: TotalLoss) -> str | None:
    """Return what steps in the weights alone cannot do."""
    levels = norm.levels()
    fits = levels is not None and levels.is_plain and levels.is_finite
    return None if fits else f"needs LpNorm(p) with finite p, got {norm!r}."


def need(sizes: Sizes, norm: Norm, loss: TotalLoss) -> Need:
    """Return a block in single precision, factored in its place, and the products of the working set."""
    working, tasks = working_set(norm, sizes.n_kernels), sizes.n_tasks
    beside = PRODUCTS * 8 * tasks * working * sizes.n_samples + 3 * 8 * working**2
    return matrices(max(inner_matrices(loss), 1.5), sizes, beside, works_on_few=True)


REDUCED_NEWTON = Solver(
    name="reduced_newton",
    run=reduced_newton,
    needs=frozenset({"combine", "quad_forms", "matvecs", "peaks", "subset", "coefficients"}),
    refuses=refuses,
    need=need,
)


def exponent(norm: Norm) -> float:
    """Return the p of a norm whose weights are constrained together."""
    levels = norm.levels()
    assert levels is not None
    return levels.p


def near_kernels(problem: Problem, quad_forms: np.ndarray, tol: float, near: float = _NEAR) -> np.ndarray:
    """Return the kernels to work on, by the quadratic forms near a solution: not the active ones alone."""
    p, tau = exponent(problem.norm), 2.0 * problem.norm.dual_regularizer(quad_forms)
    level = near * tau if p == 1 else tau
    return important_kernels(problem.bank, quad_forms, p, tau=level, most=_MOST_NEW, negligible=_NEGLIGIBLE * tol)


@dataclass(frozen=True)
class _Evaluation:
    """What is known on the working set at some weights; ``products`` are K_k beta where beta is not 0, if needed."""

    weights: np.ndarray
    machine: Machine
    products: np.ndarray | None
    quad_forms: np.ndarray
    value: float
    error: float
    certificate: Certificate

    @property
    def gap(self) -> float:
        return abs(self.certificate.gap)


class _Run:
    def __init__(self, problem: Problem, p: float, tol: float, max_iter: int) -> None:
        self.problem, self.p, self.tol = problem, p, tol
        self.max_iter = max_iter
        self.recorder = Recorder(problem, tol)
        self.K = problem.bank.workspace()
        self.target, self.damping, self.stalled = tol, 0.0, 0

    def solve(self, start: np.ndarray | None, near: np.ndarray | None) -> None:
        """Step until the gap is reached, no step helps, or no round is left."""
        machine = None
        if start is None:
            machine, near = self._begin()
            if self.max_iter == 1 or (self.recorder.gap <= self.tol and not self.problem.norm.selects):
                return
            if near.size == 0:
                return  # quadratic forms that overflow point nowhere
            start = np.zeros(self.problem.bank.n_kernels)
            start[near] = 1.0
        elif near is None:
            near, self.target = np.flatnonzero(start), np.inf  # a full pass comes first
        self._choose(np.union1d(near, np.flatnonzero(start)))
        point = self._evaluate(self.problem.norm.scaled(start[self.chosen]), machine, _FIRST_GAP)
        best = point.gap
        while True:
            if point.gap <= self.target or self._is_at_its_end():
                if self._certify(point) or self._is_at_its_end() or len(self.recorder.trace) >= self.max_iter:
                    return
                point = self._grown(point)
                best = point.gap
            try:
                trial = self._advance(point)
            except LinAlgError:
                trial = None
            if trial is None:
                self._certify(point)
                return
            enough = _GAIN * trial.gap * abs(trial.value)
            is_progress = trial.gap < _PROGRESS * best or point.value - trial.value > enough
            self.stalled = 0 if is_progress else self.stalled + 1
            best = min(best, trial.gap)
            point = trial

    def _is_at_its_end(self) -> bool:
        return self.stalled > _PATIENCE or self.recorder.is_stuck

    def _begin(self) -> tuple[Machine, np.ndarray]:
        """Solve roughly with equal weights: the quadratic forms tell which kernels to look at first."""
        problem = self.problem
        weights = problem.norm.initial_weights(problem.bank.n_kernels)
        machine = self.recorder.solve(problem.bank.combine(weights, out=self.K), None, _FIRST_GAP)
        quad_forms = problem.quad_forms(machine)
        self.recorder.record(weights, machine, problem.certificate(weights, machine, quad_forms))
        self.target = max(_SMALLER * min(self.recorder.gap, 1.0), self.tol)
        return machine, near_kernels(problem, quad_forms, self.tol, _FIRST_NEAR)

    def _choose(self, chosen: np.ndarray) -> None:
        self.chosen = chosen
        self.subproblem = self.problem  # the last working set leaves its room to the next
        self.subproblem = replace(self.problem, bank=self.problem.bank.subset(chosen))

    def _evaluate(self, weights: np.ndarray, start: Iterate | None, expected_gap: float) -> _Evaluation:
        """Solve with these weights of the working set."""
        K = self.subproblem.bank.combine(weights, out=self.K)
        return self._examined(weights, self.recorder.solve(K, start, max(self.tol, expected_gap)))

    def _examined(self, weights: np.ndarray, machine: Machine) -> _Evaluation:
        products, bank = None, self.subproblem.bank
        if share_curvature(self.problem, bank.n_kernels):
            quad_forms = self.subproblem.quad_forms(machine)
        else:
            products = np.array([bank.matvecs(beta, on_support=True) for beta in machine.beta])
            quad_forms = np.maximum(np.einsum("tkn,tn->k", products, machine.beta), 0.0)
        return _Evaluation(
            weights,
            machine,
            products,
            quad_forms,
            value=machine.objective,
            error=machine.gap,
            certificate=self.problem.certificate(weights, machine, quad_forms),
        )

    def _certify(self, point: _Evaluation) -> bool:
        """Make a full pass; return whether the gap is reached."""
        weights = np.zeros(self.problem.bank.n_kernels)
        weights[self.chosen] = point.weights
        self.every = self.problem.quad_forms(point.machine)
        certificate = self.problem.certificate(weights, point.machine, self.every)
        self.recorder.record(weights, point.machine, certificate)
        return certificate.within(self.tol)

    def _grown(self, point: _Evaluation) -> _Evaluation:
        """Go on with the kernels that the last full pass shows to matter, and with smaller gaps if none is new."""
        near = near_kernels(self.problem, self.every, self.tol)
        after = np.union1d(near, self.chosen[point.weights > 0])
        if np.isin(after, self.chosen).all():
            self.target = max(_SMALLER * point.gap, _LAST * self.tol)
            return point
        weights = np.zeros(self.problem.bank.n_kernels)
        weights[self.chosen] = point.weights
        new = np.setdiff1d(after, self.chosen)
        # Where the kernels so far are singular, the model holds only for tiny weights of the new ones: give them some.
        share = min(_NEW_SHARE, self.recorder.trace[-1].gap)
        weights *= 1.0 - share
        weights[new] = share / new.size
        self._choose(after)
        self.stalled, self.target = 0, max(_SMALLER * share, self.tol)
        return self._evaluate(self.problem.norm.scaled(weights[after]), point.machine, share)

    def _curvature(self, point: _Evaluation) -> Curvature:
        """Return the second derivative, from one factorization where the tasks can share it, else task by task."""
        if point.products is None:
            return AllTasks(self.subproblem, self.K.array, point.machine)
        mu = point.gap * abs(point.value) / self.problem.y.size
        return TaskByTask(self.subproblem, self.K.array, point.machine, point.products, mu)

    def _advance(self, point: _Evaluation) -> _Evaluation | None:
        """Make one step that lowers the objective; None if there is no such step left."""
        curvature = self._curvature(point)
        hessian = curvature.hessian
        gradient = -0.5 * point.quad_forms
        if not (np.all(np.isfinite(gradient)) and np.all(np.isfinite(hessian))):
            return None  # values that overflow have no model
        unit = float(point.quad_forms.max())
        while True:
            damped = hessian + self.damping * unit * np.eye(gradient.size)
            aim = self.problem.norm.scaled(best_weights(gradient, damped, point.weights, self.p))
            change = aim - point.weights
            start = Iterate(curvature.moved(change), point.machine.decision, point.machine.intercept)
            promised = -float(gradient @ change + 0.5 * change @ hessian @ change)
            trial = self._evaluate(aim, start, min(_EXPECTED * point.gap, promised / abs(point.value)))
            gained = point.value - trial.value
            is_uncertain = abs(gained - promised) <= point.error + trial.error and trial.gap < point.gap
            if gained > max(0.1 * promised, 0.0) or is_uncertain or trial.gap <= self.target:
                if gained > 0.75 * promised:
                    self.damping = self.damping / 10 if self.damping > 1e-3 else 0.0
                return trial
            if self._is_at_its_end() or self.damping > 1e8:
                return None
            self.damping = max(10 * self.damping, 1e-2)
