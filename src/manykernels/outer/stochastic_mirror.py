"""Stochastic gradients in the kernel weights: one kernel drawn at each step (thesis, Algorithms 1 to 3).

    minimize over d >= 0, ||d||_2 <= 1   J(d),     dJ/dd_k = -1/2 beta' K_k beta = -q_k / 2

A kernel drawn with probability s_k gives the unbiased estimate -q_k / (2 s_k) e_k of the gradient. Drawn in proportion
to its q_k, the estimate has the length of the gradient's 1-norm whatever kernel it is, so that the work grows with that
norm and not with the number of kernels. With the map 1/2 ||.||_2^2 the projection is a scaling, and the combined kernel
is updated by one matrix a step. After T steps of length 1 / sqrt(B T) the mean of the weights has, in expectation, an
objective within sqrt(B / T) of the best, where 2 B bounds the squared estimates. The lengths here are 1 / sqrt(sum of
the squared estimates so far), which is as good without knowing B, and later steps weigh more in the mean.

Kernels that have been met are few: at the end their weights are learned by the finite solver, if asked for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from manykernels.compute.memory import budget_bytes
from manykernels.compute.packed import triangle_size
from manykernels.compute.threads import blas_threads_for
from manykernels.core.progress import emit, is_listened_to, silent
from manykernels.core.results import Certificate, Machine, Result, Step
from manykernels.kernels.bound import BoundBank
from manykernels.kernels.family import DRAWS, NEEDS_SAMPLE, Collection
from manykernels.outer.automatic import automatic
from manykernels.outer.family import FamilyProblem, FamilyResult, outer_products

# Rounded kernel values may move the objective by this part of tol.
_ROUNDING_SHARE = 0.1


def stochastic_mirror(
    problem: FamilyProblem,
    *,
    tol: float = 1e-3,
    max_iter: int = 200,
    draw: str = "gradient",
    corrective: bool = True,
    precision: str = "single",
    random_state: int | np.random.Generator = 0,
) -> FamilyResult:
    """Draw kernels and step.

    Parameters
    ----------
    problem : FamilyProblem
        With LpNorm(2).
    tol : float
        Relative gap to which the weights of the kernels that were met are learned at the end.
    max_iter : int
        Steps; each draws a kernel and solves the machine.
    draw : {"gradient", "uniform"}
        How kernels are drawn: in proportion to their part of the gradient, or all alike.
    corrective : bool
        Learn the weights of the kernels that were met anew at the end; otherwise the mean of the steps is the result.
    precision : {"single", "double"}
    random_state : int or Generator

    Returns
    -------
    FamilyResult
        The certificate is for the whole family, with a bound of the 2-norm of all quadratic forms, or of those that
        were met where there is none; ``exact`` says whether it is the norm itself. ``converged`` says that the weights
        of the kernels met are optimal for them.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Linear, ProductKernels
    >>> from manykernels.losses import Squared
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.family import FamilyProblem
    >>> from manykernels.outer.stochastic_mirror import stochastic_mirror
    >>> X = np.random.default_rng(0).normal(size=(80, 5))
    >>> family = ProductKernels([Linear(columns=[j]) for j in range(5)], degree=3).bind(X)
    >>> y = (X[:, 0] * X[:, 1])[None]
    >>> found = stochastic_mirror(FamilyProblem(family, Squared(), LpNorm(2), y, np.full((1, 80), 10.0)))
    >>> found.bank.names[int(found.result.weights.argmax())]
    'x0 * x1'
    """
    problem.require("stochastic_mirror", NEEDS_SAMPLE, 2.0)
    if draw not in DRAWS:
        raise ValueError(f"draw must be one of {DRAWS}, got {draw!r}.")
    with blas_threads_for(problem.family.n_samples):
        walk = Walk(problem, draw, precision, np.random.default_rng(random_state))
        interrupted = walk.run(max_iter)
        return _finished(walk, tol, corrective and not interrupted, interrupted)


@dataclass
class Average:
    """A mean in which step k weighs k, of vectors that grow and of matrices."""

    weights: np.ndarray
    K: np.ndarray

    def add(self, k: int, weights: np.ndarray, scale: float, K: np.ndarray) -> None:
        """Take in step k: the weights, and the combined kernel scale * K."""
        part = 2.0 / (k + 1.0)
        self.weights = np.r_[self.weights, np.zeros(weights.size - self.weights.size)]
        self.weights += part * (weights - self.weights)
        self.K *= 1.0 - part
        self.K += (part * scale) * K


class Walk:
    """The steps: weights and combined kernel as ``scale`` times what is stored, so that a projection costs nothing."""

    def __init__(self, problem: FamilyProblem, draw: str, precision: str, rng: np.random.Generator) -> None:
        n = problem.family.n_samples
        self.problem, self.draw, self.rng = problem, draw, rng
        self.collection = Collection(problem.family, precision)
        self.weights, self.K, self.scale = np.zeros(0), np.zeros((n, n)), 1.0
        self.machine: Machine = problem.first_machine()
        self.mean = Average(np.zeros(0), np.zeros((n, n)))
        self.total, self.n_steps = 0.0, 0
        self.trace: list[Step] = []
        self._started = time.perf_counter()

    def run(self, steps: int) -> bool:
        """Take steps; return whether Ctrl-C ended that while someone watches."""
        try:
            for _ in range(steps):
                self.step()
        except KeyboardInterrupt:
            if not (is_listened_to() and self.n_steps):
                raise
            return True
        return False

    def step(self) -> None:
        """Draw a kernel, move its weight, project, and solve."""
        drawn = self.problem.family.sample(outer_products(self.machine.beta), self.rng, self.draw)
        self.n_steps += 1
        k = self.collection.place(drawn.member) if drawn.value > 0.0 or self.n_steps == 1 else -1
        if drawn.value > 0.0:
            estimate = 0.5 * drawn.value / drawn.probability
            self.total += estimate**2
            self._move(k, estimate / np.sqrt(self.total))
        self.weights = np.r_[self.weights, np.zeros(len(self.collection) - self.weights.size)]
        self.mean.add(self.n_steps, self.scale * self.weights, self.scale, self.K)
        problem = self.problem.restricted(None)  # type: ignore[arg-type]
        self.machine = problem.solve(self.scale * self.K, self.machine, 1e-4)
        seconds, n_active = time.perf_counter() - self._started, int(np.count_nonzero(self.weights))
        self.trace.append(Step(self.n_steps, seconds, problem.objective(self.machine), np.nan, n_active, 0.0))
        emit(self.trace[-1])

    def _move(self, k: int, length: float) -> None:
        self.weights = np.r_[self.weights, np.zeros(len(self.collection) - self.weights.size)]
        self.weights[k] += length / self.scale
        self.K += (length / self.scale) * self.collection.matrix(k)
        norm = self.scale * float(np.linalg.norm(self.weights))
        if norm > 1.0:
            self.scale /= norm


def _finished(walk: Walk, tol: float, corrective: bool, interrupted: bool) -> FamilyResult:
    """Return the mean of the steps, or the best weights of the kernels that it has."""
    weights = walk.mean.weights
    if not np.any(weights):
        weights = np.ones(weights.size)  # nothing was worth a step: any kernel will do
    weights = weights / float(np.linalg.norm(weights))
    active = np.flatnonzero(weights)
    bank = walk.collection.bank(active)
    found = _learned(walk, bank, weights[active], tol, corrective)
    if found.result.rounding > _ROUNDING_SHARE * tol and walk.collection.precision == "single":
        # The steps bear rounding, the result should not.
        double = Collection(walk.problem.family, "double")
        if 8 * triangle_size(bank.n_samples) * active.size <= budget_bytes(None):
            for k in active:
                double.place(walk.collection.members[k])
            found = _learned(walk, double.bank(), weights[active], tol, corrective)
    return replace(found, result=replace(found.result, interrupted=interrupted))


def _learned(walk: Walk, bank: BoundBank, weights: np.ndarray, tol: float, corrective: bool) -> FamilyResult:
    """Learn the machine with these weights, and better weights if asked for, and certify."""
    problem = walk.problem.restricted(bank)
    machine, converged = problem.solve(bank.combine(weights), walk.machine, 0.05 * tol), True
    n_solves = walk.n_steps + 1
    if corrective:
        with silent():
            found = automatic(problem, tol=tol, start=weights)
        n_solves += found.n_inner_solves
        # Rounded kernel values can lead the finite solver astray at a large C.
        if found.certificate.primal <= problem.certificate(weights, machine, problem.quad_forms(machine)).primal:
            weights, machine, converged = found.weights, found.machine, found.converged
    quad_forms = problem.quad_forms(machine)
    known = problem.certificate(weights, machine, quad_forms)
    bound, exact = walk.problem.family.norm_bound(outer_products(machine.beta))
    met = float(np.linalg.norm(quad_forms))
    bound = max(bound, met) if np.isfinite(bound) else met
    dual = known.dual + walk.problem.norm.dual_regularizer(quad_forms) - 0.5 * bound
    return FamilyResult(
        bank,
        Result(
            weights=weights,
            machine=machine,
            certificate=Certificate(known.primal, dual),
            converged=converged,
            n_iter=walk.n_steps,
            n_inner_solves=n_solves,
            rounding=problem.rounding(bank.combine(weights), machine) / max(abs(known.primal), 1e-300),
            exact=exact,
            trace=walk.trace,
        ),
    )
