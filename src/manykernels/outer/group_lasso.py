"""The closed-form alternation for Lp-norm MKL (MKLGL: Xu, Jin, Yang, King and Lyu, 2010, Algorithm 2).

Solves  min over d >= 0, ||d||_p <= 1 of the kernel machine's optimal value with K = sum_k d_k K_k
by alternating

    beta <- the machine with the weights d fixed (one combining pass, one inner solve),
    d_k  <- proportional to a_k^{2 / (1 + p)},  a_k = d_k sqrt(beta' K_k beta)   (equations 8, 9 and 11; one pass).

Both steps lower the jointly convex objective of the paper's equation (10), so
the iteration converges to its optimum for every p in [1, inf]. It stops when
the relative duality gap of :class:`manykernels.problem.Problem` is at most ``tol``.

The weights are multiplied, so one that is exactly 0 stays 0. None is rounded
to 0 on the way; at the end, the smallest are removed only if the certificate
still holds without them.
"""

from __future__ import annotations

import time

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.progress import emit, is_listened_to
from manykernels.core.results import Certificate, Machine, Result, Step
from manykernels.problem import Problem

_FIRST_INNER_TOL = 1e-2
_LEAST_INNER_TOL = 1e-13
# The inner solver's own error may be this part of the gap; else it is asked for more.
_INNER_SHARE = 0.2
_FIRST_GAP = 0.1
_MANY_SAMPLES = 1000


def group_lasso(
    problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None
) -> Result:
    """Run the alternation.

    Parameters
    ----------
    problem : Problem
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most iterations; each makes one combining pass, one inner solve and one pass of quadratic forms.
    start : ndarray of shape (n_kernels,), optional
        Weights to start from; a zero stays zero. Default: equal weights.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.group_lasso import group_lasso
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> bank = KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]).bind(X)
    >>> problem = Problem(bank, Hinge(), LpNorm(2), np.sign(np.sin(3 * X.T)), np.ones((1, 30)))
    >>> group_lasso(problem, tol=1e-4).converged
    True
    """
    with one_blas_thread(problem.bank.n_samples < _MANY_SAMPLES):
        return _run(problem, tol, max_iter, start)


def _run(problem: Problem, tol: float, max_iter: int, start: np.ndarray | None) -> Result:
    state = _State(problem, tol)
    weights = problem.norm.initial_weights(problem.bank.n_kernels) if start is None else start
    try:
        for _ in range(max_iter):
            norms = state.evaluate(weights)
            if state.certificate.gap <= tol:
                break
            weights = problem.norm.weights(norms)
        if state.certificate.gap <= tol and problem.norm.selects:
            state.prune()
    except KeyboardInterrupt:
        # Someone watches and has seen enough: they get the best model so far.
        if not (is_listened_to() and state.best is not None):
            raise
    return state.result()


class _State:
    """The current machine, the combined kernel's memory, the trace, and the best iterate for an early end."""

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self.started = time.perf_counter()
        self.inner_tol = _FIRST_INNER_TOL
        self.trace: list[Step] = []
        self.n_inner_solves = 0
        self.machine: Machine | None = None
        self.K = np.empty((problem.bank.n_samples, problem.bank.n_samples))
        self.best: tuple[np.ndarray, Machine, Certificate] | None = None

    @property
    def certificate(self) -> Certificate:
        """The certificate of the newest iterate."""
        return self._certificate

    def evaluate(self, weights: np.ndarray) -> np.ndarray:
        """Solve for these weights, certify and record; return the component norms a."""
        self._certificate, quad_forms = self._solve(weights)
        self._record(weights)
        return weights * np.sqrt(quad_forms)

    def _solve(self, weights: np.ndarray) -> tuple[Certificate, np.ndarray]:
        """Solve the machine as exactly as the gap asks for, before the pass of quadratic forms is paid for."""
        problem = self.problem
        problem.bank.combine(weights, out=self.K)
        expected = max(self.tol, _INNER_SHARE * self.trace[-1].gap) if self.trace else _FIRST_GAP
        while True:
            self.machine = problem.solve(self.K, self.machine, self.inner_tol)
            self.n_inner_solves += 1
            allowed = _INNER_SHARE * expected * abs(problem.objective(self.machine))
            if problem.inner_gap(self.machine) <= allowed or self.inner_tol <= _LEAST_INNER_TOL:
                break
            self.inner_tol *= 0.1
        quad_forms = problem.quad_forms(self.machine)
        return problem.certificate(weights, self.machine, quad_forms), quad_forms

    def _record(self, weights: np.ndarray) -> None:
        assert self.machine is not None
        if self.best is None or self._certificate.gap < self.best[2].gap:
            self.best = (weights, self.machine, self._certificate)
        step = Step(
            iteration=len(self.trace) + 1,
            seconds=time.perf_counter() - self.started,
            objective=self._certificate.primal,
            gap=self._certificate.gap,
            n_active=int(np.count_nonzero(weights)),
            tol=self.tol,
        )
        self.trace.append(step)
        emit(step)

    def prune(self) -> None:
        """Remove the kernels that together carry next to no weight, if the certificate still holds without them."""
        assert self.best is not None
        weights = self.best[0]
        order = np.argsort(weights)
        carried = np.cumsum(weights[order]) / weights.sum()
        removed = order[carried <= 0.1 * self.tol]
        removed = removed[weights[removed] > 0]
        if removed.size == 0:
            return
        kept = weights.copy()
        kept[removed] = 0.0
        certificate, _ = self._solve(kept)
        if certificate.gap <= self.tol and self.machine is not None:
            self.best = (kept, self.machine, certificate)

    def result(self) -> Result:
        """Return the best iterate."""
        assert self.best is not None
        weights, machine, certificate = self.best
        return Result(
            weights=weights,
            machine=machine,
            certificate=certificate,
            converged=certificate.gap <= self.tol,
            n_iter=len(self.trace),
            n_inner_solves=self.n_inner_solves,
            rounding=self.problem.rounding(self.K, machine) / max(abs(certificate.primal), 1e-300),
            trace=self.trace,
        )
