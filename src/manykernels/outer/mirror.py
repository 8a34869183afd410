"""Mirror descent for kernels in groups (mirrorVSKL: Aflalo, Ben-Tal, Bhattacharyya, Nath and Raman, 2011, Algorithm 3).

With the mixed norm of q >= 1 the problem is to minimize over lambda, one simplex for each group of kernels,

    G(lambda) = max over beta and gamma   -sum_i conj_i(beta_i) - 1/2 sum_j 1/gamma_j sum_(k in j) lambda_k q_k(beta)

where ||gamma||_q* <= 1, q* = q / (q - 1). For given lambda the maximum is found by turns (Algorithm 2): the machine
with the weights lambda_k / gamma_j, then the gamma that is best for its quadratic forms, in closed form. G is convex,
and -q_k / (2 gamma_j) is a subgradient. With the entropy of each simplex as distance, a step of length

    A sqrt(log n_max) / (max_k |G'_k| sqrt(t))         (the pragmatic choice of the paper, n_max = the largest group)

multiplies lambda_k by exp(-length G'_k) and divides by the sum of the group. It is done with logarithms: nothing
overflows, and a weight that has become tiny can return.

A step is not a descent step; the best iterate is kept. It stops by the relative duality gap or, to compare with the
paper, when the value of G changes by less than a given part.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from manykernels.compute.threads import one_blas_thread
from manykernels.core.results import OVERFLOWS, Certificate, Machine, Result
from manykernels.core.solver import Solver
from manykernels.losses import TotalLoss
from manykernels.norms import MixedNorm, Norm
from manykernels.outer.needs import for_inner_solver
from manykernels.outer.recorder import Recorder
from manykernels.problem import Problem

_STEP = 1.0  # A
# Relative change of the value at which the turns end: this part of the gap, or that if it is more.
_ORACLE_SHARE, _ORACLE_TOL = 0.02, 1e-4
_MOST_TURNS = 50
_FIRST_GAP = 0.1
_LEAST_START = 1e-3  # of the largest in the group: from less, the steps would take long to come back


def mirror(
    problem: Problem,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    start: np.ndarray | None = None,
    step: float = _STEP,
    relative_change: float | None = None,
) -> Result:
    """Run the method.

    Parameters
    ----------
    problem : Problem
        Its norm is a MixedNorm with q >= 1, or LpNorm(1), which is one group.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most steps; each asks the oracle, which solves a few machines.
    start : ndarray of shape (n_kernels,), optional
        Weights to start from; the part of each kernel in its group counts, and those that are next to 0 are raised
        a little, since multiplied they would stay there. Default: equal weights.
    step : float
        The constant A of the step length.
    relative_change : float, optional
        Stop, whatever the gap, when the best value of G falls by less than this part in a step: the paper's 1e-4.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import MixedNorm
    >>> from manykernels.outer.mirror import mirror
    >>> from manykernels.problem import Problem
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> bank = bind(KernelBank([Gaussian(w, columns=[j]) for j in (0, 1) for w in (0.3, 1.0, 3.0)]), X)
    >>> norm = MixedNorm(q=2).bind(bank.groups)
    >>> problem = Problem(bank, Hinge(), norm, np.sign(X[:, :1] * X[:, 1:]).T, np.ones((1, 40)))
    >>> mirror(problem, tol=1e-2).converged
    True
    """
    levels = problem.norm.levels()
    norm = None if levels is None else levels.groups
    if norm is None:
        norm = MixedNorm(1, ["all"] * problem.bank.n_kernels)
    with one_blas_thread():
        run = MirrorDescent(problem, norm, tol)
        with run.recorder.interruptible():
            run.solve(max_iter, start, step, relative_change)
        return run.recorder.result(run.K)


def _refuses(norm: Norm, loss: TotalLoss) -> str | None:
    levels = norm.levels()
    fits = levels is not None and (
        levels.groups.q >= 1 if levels.groups is not None else levels.is_plain and levels.p == 1
    )
    return None if fits else f"needs MixedNorm(q) with q >= 1 or LpNorm(1), got {norm!r}."


MIRROR = Solver(
    name="mirror",
    run=mirror,
    needs=frozenset({"combine", "quad_forms"}),
    refuses=_refuses,
    need=for_inner_solver,
)


class MirrorDescent:
    """One run.

    Attributes
    ----------
    turns : list of int
        How often the oracle alternated in each step.
    settled : bool
        Whether the run ended by the relative change.
    """

    def __init__(self, problem: Problem, norm: MixedNorm, tol: float) -> None:
        self.problem, self.norm, self.tol = problem, norm, tol
        self.recorder = Recorder(problem, tol)
        self.K = problem.bank.workspace()
        self.turns: list[int] = []
        self.settled = False
        self.eta = np.ones(norm.n_groups)  # 1 / gamma
        self.machine: Machine | None = None

    def solve(self, max_iter: int, start: np.ndarray | None, step: float, relative_change: float | None) -> None:
        """Step until the stopping rule holds."""
        norm, n_kernels = self.norm, self.problem.bank.n_kernels
        begin = norm.initial_weights(n_kernels) if start is None else self._positive(start)
        logs = self._normalized(np.log(begin))
        self.eta = norm.sums(norm.initial_weights(n_kernels))
        width = np.sqrt(np.log(max(2.0, float(norm.sums(np.ones(n_kernels)).max()))))
        best = np.inf
        for t in range(1, max_iter + 1):
            shares = np.exp(logs)
            certificate, quad_forms, value = self._ask(shares)
            if certificate.within(self.tol):
                break
            if relative_change is not None and best - value < relative_change * abs(value) and t > 1:
                self.settled = True
                break
            best = min(best, value)
            if self.recorder.is_stuck:
                break
            slopes = 0.5 * quad_forms * self.eta[norm.owner]
            largest = float(slopes.max())
            if not 0.0 < largest < np.inf:
                break  # nothing to learn, or forms that overflow
            logs = self._normalized(logs + step * width / (largest * np.sqrt(t)) * slopes)

    def _positive(self, weights: np.ndarray) -> np.ndarray:
        largest = self.norm.largest(weights)
        return np.maximum(weights, _LEAST_START * np.where(largest > 0, largest, 1.0)[self.norm.owner])

    def _normalized(self, logs: np.ndarray) -> np.ndarray:
        """Return the logarithms of shares that sum to 1 in each group."""
        owner = self.norm.owner
        totals = np.array([logsumexp(logs[owner == j]) for j in range(self.norm.n_groups)])
        return logs - totals[owner]

    def _ask(self, shares: np.ndarray) -> tuple[Certificate, np.ndarray, float]:
        """Ask the oracle: return certificate, quadratic forms and the value of G at these shares (Algorithm 2)."""
        problem, norm, value, turns = self.problem, self.norm, -np.inf, 0
        expected = max(self.tol, 0.1 * min(self.recorder.gap, _FIRST_GAP))
        rest = max(_ORACLE_TOL, _ORACLE_SHARE * min(self.recorder.gap, 1.0))
        while True:
            turns += 1
            weights = shares * self.eta[norm.owner]
            K = problem.bank.combine(weights, out=self.K)
            machine = self.machine = self.recorder.solve(K, self.machine, expected)
            quad_forms = problem.quad_forms(machine)
            # gamma is best for these forms, so the value with it is the maximum over gamma at this beta.
            self.eta = norm.group_weights(norm.sums(shares * quad_forms))
            if not np.all(np.isfinite(self.eta)):
                raise ValueError(OVERFLOWS)
            before, value = value, self._value(machine, shares, quad_forms)
            at_rest = norm.q == 1 or norm.n_groups == 1 or value - before <= rest * abs(value)
            if at_rest or turns == _MOST_TURNS or self.recorder.is_stuck:
                break
        self.turns.append(turns)
        certificate = problem.certificate(weights, machine, quad_forms)
        self.recorder.record(weights, machine, certificate)
        return certificate, quad_forms, value

    def _value(self, machine: Machine, shares: np.ndarray, quad_forms: np.ndarray) -> float:
        """Return -sum conj - 1/2 sum_j eta_j D_j at the machine and the eta that is best for it."""
        quadratic = float(self.eta @ self.norm.sums(shares * quad_forms))
        return machine.dual_objective + 0.5 * machine.quadratic - 0.5 * quadratic
