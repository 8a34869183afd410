"""Second-order MKL on a working set of kernels: few full passes, whatever the number of kernels.

Solves the problem of :mod:`manykernels.problem` for LpNorm(p) with finite p, LpPenalty(p) and MixedNorm. Most kernels
matter little: for p = 1 all but a few have weight 0. So the method keeps a working set, solves the problem on it by the
primal-dual interior point of :mod:`manykernels.outer.interior_point`, and makes one full pass of quadratic forms
q_k = beta' K_k beta over all kernels. The pass certifies (the relative duality gap over all kernels is the stopping
rule), and it shows which kernels are missing: with the multiplier tau of the norm (2 strength for a penalty), those
with q_k > tau for p = 1, and for p > 1 those whose share (q_k / tau)^(p/(p-1)) of the dual norm is not negligible.
A mixed norm is p = 1 with a tau for each group.

The first sets are guesses and the first solves rough; the interior point is not started anew when kernels join or
leave, but goes on from where it stands. The optimal value on the working set falls with each kernel that violates its
condition and joins, and does not change when kernels of weight 0 leave, so no set occurs twice. For p = 1, kernels
that provably have weight 0 (:mod:`manykernels.outer.screening`) are not looked at again. Where rounding stops the
interior point before the gap is reached, the closed-form alternation goes on from its weights.

At the end the machine is solved once more with the weights found, without the kernels whose weight vanishes in the
limit (p = 1), so that weights and dual coefficients are exactly 0 where they should be. Where that misses the gap and
the point as it is does not, the latter counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from scipy.linalg import LinAlgError

from manykernels.compute.threads import one_blas_thread
from manykernels.core.results import Certificate, Machine, Result
from manykernels.core.solver import Need, Sizes, Solver
from manykernels.losses import TotalLoss
from manykernels.norms import LpNorm, MixedNorm, Norm
from manykernels.norms.base import Levels
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.interior_point import InteriorPoint, InteriorSolution
from manykernels.outer.needs import PRODUCTS, matrices, refuses_coupled, working_set
from manykernels.outer.recorder import Recorder
from manykernels.outer.screening import surviving_kernels
from manykernels.outer.working_set import important_kernels
from manykernels.problem import Problem

_FIRST_SET = 40
_MOST_NEW = 40
_LAST_ROUNDS = 200  # of the alternation, where the interior point has come to its end; more for a mixed norm
_DEAD = 1e-12
_FIRST_ROUNDS, _FIRST_GAP = 10, 0.08  # of the alternation, for a mixed norm: it ends with the first of them
_FIRST_TARGET = 0.1  # gap on the working set at which the first full pass is worth its cost
_NEXT_TARGET = 0.03  # and how much smaller each time the set proves complete
_LAST_TARGET = 0.5  # of tol
_NEGLIGIBLE = 0.1  # of tol: what kernels outside the set may add to the dual norm when p > 1
_SCREEN_BELOW = 1e-3  # gap below which screening is worth a pass
_SCREEN_AGAIN = 0.2  # and how much smaller the gap must be for another
_POLISH = (0.02, 1e-4, 1e-6)  # of tol: gaps on the working set that tell apart what tends to 0


def newton(problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None) -> Result:
    """Run the method.

    Parameters
    ----------
    problem : Problem
        Its norm is an LpNorm with finite p, an LpPenalty, or a MixedNorm.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most rounds, those of the alternation and the first solve with equal weights among them; each makes a full pass
        of quadratic forms.
    start : ndarray of shape (n_kernels,), optional
        Weights to start from. Default: equal weights.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.newton import newton
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]), X)
    >>> problem = Problem(bank, Hinge(), LpNorm(1), np.sign(np.sin(3 * X.T)), np.ones((1, 30)))
    >>> result = newton(problem, tol=1e-5)
    >>> result.converged
    True
    """
    with one_blas_thread():
        run = _Run(problem, cast(Levels, problem.norm.levels()), tol)
        with run.recorder.interruptible():
            run.solve(max_iter, start)
        if run.recorder.weights is not None:  # the interior point has written its factors there
            problem.bank.combine(run.recorder.weights, out=run.K)
        return run.recorder.result(run.K)


def _refuses(norm: Norm, loss: TotalLoss) -> str | None:
    levels = norm.levels()
    if levels is None or not levels.is_finite:
        return f"needs LpNorm(p) with finite p, LpPenalty(p) or MixedNorm(q), got {norm!r}."
    return refuses_coupled(loss)


def _need(sizes: Sizes, norm: Norm, loss: TotalLoss) -> Need:
    """Return the factors of all tasks, or of all at once, or what screening makes; the alternation needs less."""
    working, tasks, n = working_set(norm, sizes.n_kernels), sizes.n_tasks, sizes.n_samples
    at_once = 1.0 + tasks**2 if working > tasks * n else 0.0
    beside = PRODUCTS * 8 * tasks * working * n + 8 * (working + tasks) ** 2
    return matrices(max(3.0, 1.0 + tasks, at_once), sizes, beside, works_on_few=True)


NEWTON = Solver(
    name="newton",
    run=newton,
    needs=frozenset(
        {"combine", "quad_forms", "matvecs", "subset", "peaks", "inner_products", "largest_diagonals", "coefficients"}
    ),
    refuses=_refuses,
    need=_need,
)


class _Run:
    """One run: the working set, the kernels still in question, and what has been reached."""

    def __init__(self, problem: Problem, levels: Levels, tol: float) -> None:
        self.problem, self.p, self.tol = problem, levels.p, tol
        self.fixed_tau = levels.fixed
        self.recorder = Recorder(problem, tol)
        self.owner = np.zeros(problem.bank.n_kernels, np.int64)
        self.screens = levels.p == 1 and levels.is_plain
        self.groups: MixedNorm | None = levels.groups
        if self.groups is not None:
            self.owner = self.groups.owner
        self.candidates = np.arange(problem.bank.n_kernels)
        self.screen_below = _SCREEN_BELOW
        self.proven_above = -np.inf
        self.K = problem.bank.workspace()

    def solve(self, max_iter: int, start: np.ndarray | None) -> None:
        """Alternate solves on the working set with full passes, then finish."""
        machine, quad_forms = self._begin(start, max_iter)
        if self.recorder.interrupted or not np.all(np.isfinite(quad_forms)):
            return
        tau = self._level(quad_forms)
        # With p = 1 equal weights may do, but few kernels are wanted, unless there is nothing to learn at all.
        if self.recorder.gap <= self.tol and not (self.problem.norm.selects and np.any(tau > 0.0)):
            return
        chosen, method = self._first_set(machine, quad_forms, tau, start)
        last = self._rounds(chosen, method, max_iter - len(self.recorder.trace))
        if last is not None:
            self._finish(last, method)
        self.recorder.n_inner_solves += method.n_iter
        if last is not None and self.recorder.gap > self.tol:
            self._fall_back(max_iter)

    def _first_set(
        self, machine: Machine, quad_forms: np.ndarray, tau: np.ndarray, start: np.ndarray | None
    ) -> tuple[np.ndarray, InteriorPoint]:
        """Return the first working set, and the interior point on it."""
        most = max(_FIRST_SET, 2 * (int(self.owner.max()) + 1))
        chosen = self._important(quad_forms, 0.5 * tau if self.p == 1 else tau, most)
        weights = self._first_weights(quad_forms) if start is None else start
        if self.groups is not None and self.recorder.weights is not None:
            weights = self.recorder.weights
        problem = self._restricted(chosen)
        return chosen, InteriorPoint(problem, self.p, machine, weights[chosen], self.fixed_tau, self.tol, self.K)

    def _rounds(self, chosen: np.ndarray, method: InteriorPoint, rounds: int) -> np.ndarray | None:
        """Return the working set on which nothing is left to do; None out of rounds: the best so far is the result."""
        target, centered = _FIRST_TARGET, False
        for _ in range(rounds):
            solution = method.run(max(target, _LAST_TARGET * self.tol))
            gap, quad_forms = self._certify(chosen, solution)
            if gap <= self.tol:
                return chosen
            after = self._next_set(chosen, solution, quad_forms)
            is_same = np.array_equal(after, chosen)
            complete = is_same or gap <= 3.0 * solution.certificate.gap
            if not is_same:
                self._exchange(method, chosen, after, quad_forms)
                chosen, centered = after, False
            elif self._is_solved(solution):
                return chosen  # and no kernel outside has anything to add: what is left is rounding
            elif solution.certificate.gap > max(target, _LAST_TARGET * self.tol):
                if centered or method.conic:
                    return chosen  # the interior point has come to its end
                method.center()
                centered = True
            if complete:
                target = _NEXT_TARGET * solution.certificate.gap
        return None

    def _exchange(self, method: InteriorPoint, chosen: np.ndarray, after: np.ndarray, quad_forms: np.ndarray) -> None:
        """Let the interior point go on with another working set."""
        at = np.searchsorted(chosen, after)
        at[at == chosen.size] = 0
        kept = np.where(chosen[at] == after, at, -1)
        method.problem = self.problem  # the last working set leaves its room to the next
        method.exchange(self._restricted(after), kept, quad_forms[np.searchsorted(self.candidates, after)])

    def _level(self, quad_forms: np.ndarray) -> np.ndarray:
        """Return what each kernel's quadratic form is measured by: for p = 1 the largest, or that of its group."""
        if self.p == 1:
            return self._largest_in_group(self.candidates, quad_forms)
        return np.full(self.owner.size, LpNorm(self.p).dual_square(quad_forms))

    def _largest_in_group(self, kernels: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return for every kernel the largest of the values, those of ``kernels``, in its group; at least 0."""
        largest = np.zeros(int(self.owner.max()) + 1)
        np.maximum.at(largest, self.owner[kernels], values)
        return largest[self.owner]

    def _first_weights(self, quad_forms: np.ndarray) -> np.ndarray:
        """Return weights for the interior point to start from: equal ones or, with a penalty, of the right size."""
        if self.fixed_tau is None:
            return np.ones(quad_forms.size)
        equal = self.problem.norm.initial_weights(quad_forms.size)
        return cast(np.ndarray, self.problem.norm.weights(equal * np.sqrt(quad_forms)))

    def _restricted(self, chosen: np.ndarray) -> Problem:
        problem = self.problem
        return replace(problem, bank=problem.bank.subset(chosen), norm=problem.norm.take(chosen))

    def _begin(self, start: np.ndarray | None, max_iter: int) -> tuple[Machine, np.ndarray]:
        """Solve roughly with equal weights: its quadratic forms tell which kernels to look at first."""
        problem = self.problem
        if start is None and self.groups is not None:
            # Groups may differ by orders of magnitude: the alternation brings their weights and forms together. It is
            # slow near the optimum, where the weights of a group may be so large that a machine takes long, too.
            enough = max(self.tol, _FIRST_GAP)
            first = group_lasso(problem, tol=enough, max_iter=min(_FIRST_ROUNDS, max_iter), prune=False)
            self.recorder.append(first)
            self.recorder.keep(first.weights, first.machine, first.certificate)
            problem.bank.combine(first.weights, out=self.K)
            return first.machine, problem.quad_forms(first.machine)
        weights = problem.norm.initial_weights(problem.bank.n_kernels) if start is None else start
        machine = self.recorder.solve(problem.bank.combine(weights, out=self.K), None, _FIRST_TARGET)
        quad_forms = problem.quad_forms(machine)
        self.recorder.record(weights, machine, problem.certificate(weights, machine, quad_forms))
        return machine, quad_forms

    def _important(self, quad_forms: np.ndarray, tau: np.ndarray, most: int) -> np.ndarray:
        """Return the candidates that a working set should hold, in order of their place in the bank."""
        every = self._spread(quad_forms)
        if self.groups is not None:
            # A group without any form (constant kernels beside an intercept) can do nothing, and has no level.
            every[self._largest_in_group(self.candidates, quad_forms) < _DEAD * every.max()] = 0.0
        negligible = _NEGLIGIBLE * self.tol
        return important_kernels(self.problem.bank, every, self.p, tau=tau, most=most, negligible=negligible)

    def _certify(self, chosen: np.ndarray, solution: InteriorSolution) -> tuple[float, np.ndarray]:
        """Make a full pass; return the gap over all kernels and the quadratic forms of the candidates."""
        problem = self.problem
        weights = np.zeros(problem.bank.n_kernels)
        weights[chosen] = solution.weights
        certificate, quad_forms = self._examine(weights, solution.machine)
        self.recorder.record(weights, solution.machine, certificate)
        if self.screens and self.tol < certificate.gap < self.screen_below:
            self.screen_below = _SCREEN_AGAIN * certificate.gap
            self.proven_above = max(self.proven_above, certificate.dual)
            try:
                survive = surviving_kernels(
                    problem, weights, solution.machine, quad_forms, certificate.dual, self.candidates
                )
            except LinAlgError:  # rounding leaves no proof
                survive = np.ones(self.candidates.size, dtype=bool)
            # The working set still has weights, so its quadratic forms stay in the certificate.
            survive[np.searchsorted(self.candidates, chosen)] = True
            self.candidates, quad_forms = self.candidates[survive], quad_forms[survive]
        return abs(certificate.gap), quad_forms

    def _examine(self, weights: np.ndarray, machine: Machine) -> tuple[Certificate, np.ndarray]:
        """Make the pass of a round; return the certificate and the quadratic forms of the candidates.

        That screened kernels do not matter is proven for points at least as good as the bound of their proof. Should
        this one be worse, all kernels are looked at again.
        """
        quad_forms = self._pass(machine)
        certificate = self.problem.certificate(weights, machine, self._spread(quad_forms))
        if certificate.dual < self.proven_above and self.candidates.size < self.problem.bank.n_kernels:
            self.candidates = np.arange(self.problem.bank.n_kernels)
            quad_forms = self._pass(machine)
            certificate = self.problem.certificate(weights, machine, quad_forms)
        return certificate, quad_forms

    def _pass(self, machine: Machine) -> np.ndarray:
        """Return the quadratic forms of the candidates: the pass of a round."""
        whole = self.candidates.size == self.problem.bank.n_kernels
        return self.problem.quad_forms(machine, None if whole else self.candidates)

    def _spread(self, quad_forms: np.ndarray) -> np.ndarray:
        """Return quadratic forms for all kernels; those of screened kernels are below the largest, and count as 0."""
        every = np.zeros(self.problem.bank.n_kernels)
        every[self.candidates] = quad_forms
        return every

    def _next_set(self, chosen: np.ndarray, solution: InteriorSolution, quad_forms: np.ndarray) -> np.ndarray:
        """Add what violates its condition; for p = 1, let go of what has lost its weight."""
        forms = quad_forms[np.searchsorted(self.candidates, chosen)]
        tau = self._level(quad_forms)
        if self.fixed_tau is not None and self.p == 1:
            tau = np.full(tau.size, self.fixed_tau)
        elif self.p == 1:
            # At the optimum tau is the largest form of the set; a rough solution's multiplier may be far below it.
            tau = self._largest_in_group(chosen, np.maximum(solution.tau, forms))
        new = np.setdiff1d(self._important(quad_forms, tau, _MOST_NEW), chosen)
        if new.size == 0 and self.p == 1 and self._is_solved(solution):
            # Beside large losses rounding may leave the multiplier far above the forms; those decide.
            new = np.setdiff1d(self._important(quad_forms, self._largest_in_group(chosen, forms), _MOST_NEW), chosen)
        if self.p > 1 or new.size == 0 or solution.certificate.gap > 0.01:
            return np.union1d(chosen, new)
        lost = solution.weights * tau[chosen] < 1e-4 * self._weight_unit(chosen, solution) * (tau[chosen] - forms)
        return np.union1d(chosen[~lost], new)

    def _is_solved(self, solution: InteriorSolution) -> bool:
        """Return whether nothing is left to do on the working set."""
        return solution.certificate.gap <= _LAST_TARGET * self.tol

    def _weight_unit(self, chosen: np.ndarray, solution: InteriorSolution) -> np.ndarray:
        """Return what a weight is measured by: the sum of its group, which is 1 where all are constrained."""
        sums = np.bincount(self.owner[chosen], solution.weights)
        return np.maximum(sums, 1e-300)[self.owner[chosen]]

    def _finish(self, chosen: np.ndarray, method: InteriorPoint) -> None:
        """Put exact zeros where they belong: in the weights, and in the dual coefficients.

        The coefficients stay those of the interior point, put at the bounds to which they tend: where the combined
        kernel is singular, a machine solved anew could be another one, with larger quadratic forms.
        """
        for polish in _POLISH if self.p == 1 else (_LAST_TARGET, *_POLISH):
            solution = method.run(polish * self.tol)
            if not np.all(np.isfinite(solution.weights)):
                return
            weights = np.zeros(self.problem.bank.n_kernels)
            unit = self._weight_unit(chosen, solution)
            vanish = (solution.weights * solution.tau < unit * solution.slack) & (self.p == 1)
            # Where nothing is to be learned (constant targets), all would vanish; penalized weights may.
            whole = vanish.all() and self.fixed_tau is None
            weights[chosen] = np.where(vanish & ~whole, 0.0, solution.weights)
            weights = self.problem.norm.scaled(weights)
            K = self.problem.bank.combine(weights, out=self.K)
            beta = np.array([self.problem.feasible(row, t) for t, row in enumerate(solution.snapped)])
            if self._accept(weights, self.problem.machine(beta, K.product(beta))):
                return
            # What is put at its bound may be missed by what is not quite there: as it is, it may do.
            unpolished = np.zeros(self.problem.bank.n_kernels)
            unpolished[chosen] = solution.weights
            self._accept(unpolished, solution.machine)

    def _accept(self, weights: np.ndarray, machine: Machine) -> bool:
        """Take this for the result if it reaches the tolerance, or else is the best so far."""
        certificate, _ = self._examine(weights, machine)
        accepted = abs(certificate.gap) <= max(self.tol, self.recorder.gap)
        if accepted:
            self.recorder.keep(weights, machine, certificate)
        return accepted and certificate.within(self.tol)

    def _fall_back(self, max_iter: int) -> None:
        """Go on by the closed-form alternation from the best weights, while there are rounds left."""
        most = _LAST_ROUNDS * (1 if self.groups is None else 5)
        rounds = min(most, max_iter - len(self.recorder.trace))
        if rounds < 1:
            return
        result = group_lasso(self.problem, tol=self.tol, max_iter=rounds, start=self.recorder.weights)
        self.recorder.append(result)
        if abs(result.certificate.gap) < self.recorder.gap:
            self.recorder.keep(result.weights, result.machine, result.certificate)
