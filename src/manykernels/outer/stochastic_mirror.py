"""Stochastic gradients in the kernel weights: one kernel drawn at each step (thesis, Algorithms 1 to 3).

    minimize over d >= 0, ||d||_2 <= 1   J(d),     dJ/dd_k = -1/2 beta' K_k beta = -q_k / 2

A kernel drawn with probability s_k gives the unbiased estimate -q_k / (2 s_k) e_k of the gradient. Drawn in proportion
to its q_k, the estimate has the length of the gradient's 1-norm whatever kernel it is, so that the work grows with that
norm and not with the number of kernels. With the map 1/2 ||.||_2^2 the projection is a scaling, and the combined kernel
is updated by one matrix per step. After T steps of length 1 / sqrt(B T) the mean of the weights has, in expectation, an
objective within sqrt(B / T) of the best, where 2 B bounds the squared estimates (Corollary 4.3). The lengths here are 1
/ sqrt(sum of the squared estimates so far), which is as good without knowing B, and later steps weigh more in the mean.

Kernels that have been met are few: at the end their weights are learned by the finite solver, if asked for.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from manykernels.banks.collection import Collection
from manykernels.compute.combined import CombinedMatrix
from manykernels.compute.threads import one_blas_thread
from manykernels.core.checks import check_choice, check_number
from manykernels.core.progress import emit, is_listened_to, silent
from manykernels.core.protocols import Bank
from manykernels.core.results import Certificate, Machine, Result, Step
from manykernels.core.solver import Solver
from manykernels.kernels.family import DRAWS, NEEDS_SAMPLE
from manykernels.outer.automatic import automatic
from manykernels.outer.family import FamilyProblem, FamilyResult, needs_norm, outer_products, search_matrices

# The objective of so many steps is compared with that of as many before.
_WINDOW = 25
# No estimate is larger: its square is to be a number.
_LARGEST = 1e150


def stochastic_mirror(
    problem: FamilyProblem,
    *,
    tol: float = 1e-3,
    max_iter: int = 200,
    draw: str = "gradient",
    corrective: bool = True,
    B: float | None = None,
    random_state: int | np.random.Generator = 0,
) -> FamilyResult:
    """Draw kernels and step.

    Parameters
    ----------
    problem : FamilyProblem
        With LpNorm(2).
    tol : float
        Relative gap to which the weights of the kernels that were met are learned at the end. The steps end when the
        mean objective of 25 of them is within this of that of the 25 before.
    max_iter : int
        Most steps; each draws a kernel and solves the machine.
    draw : {"gradient", "uniform"}
        How kernels are drawn: in proportion to their part of the gradient, or all alike.
    corrective : bool
        Learn the weights of the kernels that were met anew at the end; otherwise the mean of the steps is the result.
    B : float, optional
        Half the largest squared estimate, if it is known: all ``max_iter`` steps are taken, with the length
        1 / sqrt(B max_iter), and all weigh the same in the mean, whose expected objective is then within
        sqrt(B / max_iter) of the best one.
    random_state : int or Generator

    Returns
    -------
    FamilyResult
        The certificate is for the whole family, with a bound of the 2-norm of all quadratic forms, or of those that
        were met where there is none; ``exact`` says whether it is the norm itself. ``converged`` says that its gap is
        at most ``tol``.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind_family
    >>> from manykernels.kernels import Linear, ProductKernels
    >>> from manykernels.losses import Squared
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.family import FamilyProblem
    >>> from manykernels.outer.stochastic_mirror import stochastic_mirror
    >>> X = np.random.default_rng(0).normal(size=(80, 5))
    >>> family = bind_family(ProductKernels([Linear(columns=[j]) for j in range(5)], degree=3), X)
    >>> y = (X[:, 0] * X[:, 1])[None]
    >>> found = stochastic_mirror(FamilyProblem(family, Squared(), LpNorm(2), y, np.full((1, 80), 10.0)))
    >>> found.bank.names[int(found.result.weights.argmax())]
    'x0 * x1'
    """
    if B is not None:
        check_number("B", B, low=0, more=" or None")
    check_choice("draw", draw, DRAWS)
    with one_blas_thread():
        length = None if B is None else 1.0 / np.sqrt(B * max_iter)
        walk = MirrorWalk(problem, draw, np.random.default_rng(random_state), length)
        interrupted = walk.run(max_iter, tol if B is None else None)
        return _finished(walk, tol, corrective and not interrupted, interrupted)


STOCHASTIC_MIRROR = Solver(
    name="stochastic_mirror",
    run=stochastic_mirror,
    needs=frozenset({NEEDS_SAMPLE}),
    refuses=needs_norm(2),
    need=search_matrices,
    draws=True,
    for_family=True,
)


class MirrorWalk:
    """The steps: weights and combined kernel as ``scale`` times what is stored, so that a projection costs nothing."""

    def __init__(
        self,
        problem: FamilyProblem,
        draw: str,
        rng: np.random.Generator,
        length: float | None = None,
    ) -> None:
        n = problem.family.n_samples
        self.problem, self.draw, self.rng, self.length = problem, draw, rng, length
        self.collection = Collection(problem.family, problem.precision)
        self.weights, self.K, self.scale = np.zeros(0), np.zeros((n, n)), 1.0
        self.machine: Machine = problem.first_machine()
        self.mean = np.zeros(0)
        self.total, self.n_steps = 0.0, 0
        self.trace: list[Step] = []
        self._started = time.perf_counter()

    def run(self, steps: int, tol: float | None = None) -> bool:
        """Take steps, with a tol until nothing changes; return whether Ctrl-C ended that while someone watches."""
        try:
            for _ in range(steps):
                self.step()
                if tol is not None and self._is_settled(tol):
                    break
        except KeyboardInterrupt:
            if not (is_listened_to() and self.n_steps):
                raise
            return True
        return False

    def _is_settled(self, tol: float) -> bool:
        if self.n_steps % _WINDOW or self.n_steps < 2 * _WINDOW:
            return False
        before, now = np.reshape([step.objective for step in self.trace[-2 * _WINDOW :]], (2, -1)).mean(axis=1)
        return bool(abs(now - before) <= tol * abs(now))

    def step(self) -> None:
        """Draw a kernel, move its weight, project, and solve."""
        drawn = self.problem.family.sample(outer_products(self.machine.beta), self.rng, self.draw)
        self.n_steps += 1
        k = self.collection.place(drawn.member) if drawn.value > 0.0 or self.n_steps == 1 else -1
        if drawn.value > 0.0:
            # Densities of many parameters may be as small as numbers get.
            estimate = min(0.5 * drawn.value / max(drawn.probability, 1e-300), _LARGEST)
            self.total += estimate**2
            self._move(k, estimate / np.sqrt(self.total) if self.length is None else estimate * self.length)
        self.weights = np.r_[self.weights, np.zeros(len(self.collection) - self.weights.size)]
        self.mean = np.r_[self.mean, np.zeros(len(self.collection) - self.mean.size)]
        # Step k weighs k, or all steps the same.
        share = 2.0 / (self.n_steps + 1.0) if self.length is None else 1.0 / self.n_steps
        self.mean += share * (self.scale * self.weights - self.mean)
        self.machine = self.problem.solve(CombinedMatrix(self.scale * self.K), self.machine, 1e-4)
        seconds, n_active = time.perf_counter() - self._started, int(np.count_nonzero(self.weights))
        self.trace.append(Step(self.n_steps, seconds, self.machine.objective, np.nan, n_active, 0.0))
        emit(self.trace[-1])

    def _move(self, k: int, length: float) -> None:
        self.weights = np.r_[self.weights, np.zeros(len(self.collection) - self.weights.size)]
        self.weights[k] += length / self.scale
        self.K += (length / self.scale) * self.collection.matrix(k)
        norm = self.scale * float(np.linalg.norm(self.weights))
        if norm > 1.0:
            self.scale /= norm


def _finished(walk: MirrorWalk, tol: float, corrective: bool, interrupted: bool) -> FamilyResult:
    """Return the mean of the steps, or the best weights of the kernels that it has."""
    weights = walk.mean
    if not np.any(weights):
        weights = np.ones(weights.size)  # nothing was worth a step: any kernel will do
    weights = weights / float(np.linalg.norm(weights))
    active = np.flatnonzero(weights)
    bank = walk.collection.bank(active)
    learned = _learned(walk, bank, weights[active], tol, corrective)
    return replace(learned, result=replace(learned.result, interrupted=interrupted))


def _learned(walk: MirrorWalk, bank: Bank, weights: np.ndarray, tol: float, corrective: bool) -> FamilyResult:
    """Learn the machine with these weights, and better weights if asked for, and certify."""
    problem = walk.problem.restricted(bank)
    machine = problem.solve(bank.combine(weights), walk.machine, 0.05 * tol)
    n_solves = walk.n_steps + 1
    if corrective:
        with silent():
            solved = automatic(problem, tol=tol, start=weights)
        n_solves += solved.n_inner_solves
        # Rounded kernel values can lead the finite solver astray at a large C.
        if solved.certificate.primal <= problem.certificate(weights, machine, problem.quad_forms(machine)).primal:
            weights, machine = solved.weights, solved.machine
    quad_forms = problem.quad_forms(machine)
    known = problem.certificate(weights, machine, quad_forms)
    bound, exact = walk.problem.family.norm_bound(outer_products(machine.beta))
    met = float(np.linalg.norm(quad_forms))
    bound = max(bound, met) if np.isfinite(bound) else met
    dual = known.dual + walk.problem.norm.dual_regularizer(quad_forms) - 0.5 * bound
    rounding = problem.relative_rounding(bank.combine(weights), machine, known.primal, tol)
    certificate = Certificate(known.primal, dual).rounded(rounding, tol)
    return FamilyResult(
        bank,
        Result(
            weights=weights,
            machine=machine,
            certificate=certificate,
            converged=certificate.within(tol),
            n_iter=walk.n_steps,
            n_inner_solves=n_solves,
            rounding=rounding,
            exact=exact,
            trace=walk.trace,
        ),
    )
