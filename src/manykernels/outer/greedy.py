"""Greedy selection from a family of kernels: one kernel at a time, the one that helps most (thesis, Algorithm 6).

    minimize over d >= 0, sum d <= 1   J(d),     J(d) = the optimal value of the machine with sum_k d_k K_k

The derivative of J in direction of a kernel is -1/2 beta' K beta, so the best kernel of the family is the one with the
largest quadratic form. The fully corrective variant (infinite kernel learning) re-learns all weights whenever a kernel
joins; the other (continuously parametrized kernel learning) moves toward the new kernel by an exact line search.

The dual value at beta is -sum_i conj_i(beta_i) - 1/2 max_k q_k, with the maximum over the whole family: the gap is that
of Frank and Wolfe. It is exact where the search for the best kernel is, and else a lower bound of the true gap.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from manykernels.banks.collection import Collection
from manykernels.compute.threads import one_blas_thread
from manykernels.core.progress import emit, is_listened_to, silent
from manykernels.core.results import Certificate, Machine, Result, Step
from manykernels.core.solver import Solver
from manykernels.kernels.family import NEEDS_BEST, Best
from manykernels.outer.automatic import automatic
from manykernels.outer.family import FamilyProblem, FamilyResult, needs_norm, outer_products, search_matrices
from manykernels.problem import Problem

_FIRST_TOL, _SHARE = 1e-2, 0.2
_LINE_TOL = 1e-7


def greedy(
    problem: FamilyProblem,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    corrective: bool = True,
) -> FamilyResult:
    """Select kernels until the gap is closed.

    Parameters
    ----------
    problem : FamilyProblem
        With LpNorm(1).
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most kernels to take in.
    corrective : bool
        Re-learn all weights when a kernel joins, or only move toward it.

    Returns
    -------
    FamilyResult

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind_family
    >>> from manykernels.kernels import GaussianFamily
    >>> from manykernels.losses import Squared
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.family import FamilyProblem
    >>> from manykernels.outer.greedy import greedy
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> family = bind_family(GaussianFamily(0.01, 100.0), X)
    >>> found = greedy(FamilyProblem(family, Squared(), LpNorm(1), np.sin(3 * X.T), np.full((1, 60), 10.0)))
    >>> found.result.converged, found.result.exact
    (True, True)
    """
    with one_blas_thread():
        return _Selection(problem, tol, corrective).run(max_iter)


GREEDY = Solver(
    name="greedy",
    run=greedy,
    needs=frozenset({NEEDS_BEST}),
    refuses=needs_norm(1),
    need=search_matrices,
    for_family=True,
)


class _Selection:
    def __init__(self, problem: FamilyProblem, tol: float, corrective: bool) -> None:
        self.problem, self.tol, self.corrective = problem, tol, corrective
        self.collection = Collection(problem.family, problem.precision)
        # Matrices of all samples, written again in each step: the combined kernel, and those of a line search.
        self._K, self._change, self._between = (self.collection.workspace() for _ in range(3))
        self.weights, self.machine = np.zeros(0), problem.first_machine()
        self.trace: list[Step] = []
        self.n_solves, self.exact, self.interrupted = 0, True, False
        self.certificate = Certificate(np.inf, -np.inf)
        self._started = time.perf_counter()

    def run(self, max_iter: int) -> FamilyResult:
        best, certified = self._search(), (self.weights, self.machine)
        for _ in range(max_iter):
            try:
                grown = self._take_in(best)
                best = self._search()
                self._certify(best)
                certified = self.weights, self.machine
                emit(self.trace[-1])
            except KeyboardInterrupt:
                if not (is_listened_to() and self.trace):
                    raise
                # Half of a step does not count: the model is the last that was certified.
                self.interrupted = True
                self.weights, self.machine = certified
                break
            if self.certificate.gap <= self.tol or not grown:
                break
        return self._result()

    def _search(self) -> Best:
        return self.problem.family.best(outer_products(self.machine.beta))

    def _take_in(self, best: Best) -> bool:
        """Take in a kernel and learn; return whether that changed anything."""
        before = len(self.collection)
        k = self.collection.place(best.member)
        self.weights = np.r_[self.weights, np.zeros(len(self.collection) - before)]
        if before == 0:
            self.weights[k] = 1.0
            self._solve()
            return True
        return self._correct() or len(self.collection) > before if self.corrective else self._move(k)

    def _restricted(self) -> Problem:
        return self.problem.restricted(self.collection.bank())

    def _solve(self) -> None:
        problem = self._restricted()
        self.machine = problem.solve(problem.bank.combine(self.weights, out=self._K), self.machine, self._inner_tol())
        self.n_solves += 1

    def _inner_tol(self) -> float:
        return max(1e-10, min(_FIRST_TOL, 0.05 * self.tol))

    def _correct(self) -> bool:
        """Learn the weights of all kernels at hand, well enough for the gap that there still is."""
        gap = self.certificate.gap if np.isfinite(self.certificate.gap) else 1.0
        aim = max(_SHARE * min(self.tol, gap), 1e-9) if gap < 10 * self.tol else _SHARE * gap
        start = self.weights.copy()
        start[start == 0.0] = 0.1 * start.max() / start.size
        with silent():
            result = automatic(self._restricted(), tol=aim, start=start / start.sum())
        moved = not np.array_equal(result.weights, self.weights)
        self.weights, self.machine = result.weights, result.machine
        self.n_solves += result.n_inner_solves
        return moved

    def _move(self, k: int) -> bool:
        """Move the weights toward kernel k as far as that lowers the objective."""
        problem, aim = self._restricted(), np.zeros_like(self.weights)
        aim[k] = 1.0
        K = problem.bank.combine(self.weights, out=self._K)
        change = problem.bank.combine(aim, out=self._change)
        change.array -= K.array
        machines: dict[float, Machine] = {0.0: self.machine}

        def slope(share: float) -> float:
            """The derivative of the objective along the way: -1/2 beta' (N - K) beta, rising."""
            if share not in machines:
                nearest = machines[min(machines, key=lambda length: abs(length - share))]
                np.multiply(share, change.array, out=self._between.array)
                self._between.array += K.array
                machines[share] = problem.solve(self._between, nearest, self._inner_tol())
                self.n_solves += 1
            beta = machines[share].beta
            return -0.5 * float(np.sum(beta * change.product(beta)))

        share = _root(slope)
        if share == 0.0:
            return False
        self.weights = (1.0 - share) * self.weights + share * aim
        self._solve()
        return True

    def _certify(self, best: Best) -> None:
        """Compute the certificate: the largest quadratic form is that of the best kernel found, or of one at hand."""
        problem = self._restricted()
        quad_forms = problem.quad_forms(self.machine)
        largest = np.array([max(best.value, float(quad_forms.max()))])
        known = problem.certificate(self.weights, self.machine, quad_forms)
        dual = known.dual + self.problem.norm.dual_regularizer(quad_forms) - self.problem.norm.dual_regularizer(largest)
        exact = bool(best.bound <= largest[0] * (1.0 + 1e-4))
        self.certificate, self.exact = Certificate(known.primal, dual), exact
        seconds, n_active = time.perf_counter() - self._started, int(np.count_nonzero(self.weights))
        self.trace.append(Step(len(self.trace) + 1, seconds, known.primal, self.certificate.gap, n_active, self.tol))

    def _result(self) -> FamilyResult:
        active = np.flatnonzero(self.weights)
        bank, weights = self.collection.bank(active), self.weights[active]
        problem = self.problem.restricted(bank)
        K = bank.combine(weights, out=self._K)
        rounding = problem.relative_rounding(K, self.machine, self.certificate.primal, self.tol)
        certificate = self.certificate.rounded(rounding, self.tol)
        return FamilyResult(
            bank,
            Result(
                weights=weights,
                machine=self.machine,
                certificate=certificate,
                converged=certificate.within(self.tol),
                n_iter=len(self.trace),
                n_inner_solves=self.n_solves,
                rounding=rounding,
                interrupted=self.interrupted,
                exact=self.exact,
                trace=self.trace,
            ),
        )


def _root(slope: Callable[[float], float]) -> float:
    """Return the part in [0, 1] where a rising slope vanishes, or the end where it does not."""
    if slope(0.0) >= 0.0:
        return 0.0
    if slope(1.0) <= 0.0:
        return 1.0
    return float(brentq(slope, 0.0, 1.0, xtol=_LINE_TOL, rtol=_LINE_TOL))
