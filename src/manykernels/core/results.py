"""What solvers return: frozen records, always of the same shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

# The dual value of a problem that has no dual.
UNKNOWN = math.nan
# The message where numbers leave the range of doubles.
OVERFLOWS = (
    "The objective overflows: its terms cannot be represented; scale the targets, normalize the kernels, or lower C "
    "and the sample weights."
)
_USELESS = 100.0
# Rounding that moves the objective by more than this part of the tolerance: kernels in single precision are too coarse.
ROUNDING_SHARE = 0.1
# Rounding that a certificate leaves unsaid, and how far below the tolerance one stays that is to be within it.
_UNSAID, _LAST_BITS = 1e-5, 1e-12


@dataclass(frozen=True)
class Iterate:
    """Coefficients and intercepts of the tasks: where an inner solver begins, and the first part of its machine.

    Attributes
    ----------
    beta : ndarray of shape (n_tasks, n_samples)
        Signed dual coefficients.
    decision : ndarray of shape (n_tasks, n_samples)
        ``K beta``: the predictions on the training samples without the intercept.
    intercept : ndarray of shape (n_tasks,)
    """

    beta: Any
    decision: Any
    intercept: np.ndarray


@dataclass(frozen=True)
class Machine(Iterate):
    """A kernel machine for each task, with the kernel fixed, and its primal and dual values.

    ``beta`` is feasible for the dual problem. Where the samples are on workers, ``beta`` and ``decision`` are what is
    known of them on the driver.

    Attributes
    ----------
    quadratic : float
        beta' K beta, summed over the tasks like the other values.
    losses : float
        The weighted losses of the predictions.
    conjugates_at : function of float
        The conjugates at t beta, for t from 0 to 1, or an upper bound of them.
    conjugates : float
        The conjugates at beta itself.
    """

    quadratic: float
    losses: float
    conjugates_at: Callable[[float], float]
    conjugates: float

    @property
    def objective(self) -> float:
        """The primal value of the problem with the kernel fixed."""
        return 0.5 * self.quadratic + self.losses

    @property
    def dual_objective(self) -> float:
        """The dual value of the problem with the kernel fixed: a lower bound of its optimum."""
        return -0.5 * self.quadratic - self.conjugates

    @property
    def gap(self) -> float:
        """The inner solver's own error: primal minus dual value of the problem with the kernel fixed.

        It needs no pass over the kernels, since beta' K beta is beta' decision.
        """
        return self.quadratic + self.losses + self.conjugates


@dataclass(frozen=True)
class Certificate:
    """Values that enclose the optimum: ``dual <= optimum <= primal``.

    Values that are not finite enclose nothing: their gap is infinite. Where a problem has no dual, ``dual`` is
    ``UNKNOWN`` (NaN), and so is the gap. ``rounding`` is how far rounding may move the values, relative to their size,
    where that is worth saying: the gap does not claim more digits than are known.

    Examples
    --------
    >>> from manykernels.core.results import UNKNOWN, Certificate
    >>> Certificate(primal=10.0, dual=9.0).gap
    0.1
    >>> Certificate(primal=float("nan"), dual=9.0).gap, Certificate(primal=10.0, dual=UNKNOWN).gap
    (inf, nan)
    """

    primal: float
    dual: float
    rounding: float = 0.0

    @property
    def gap(self) -> float:
        """The relative duality gap, |primal - dual| / max(|primal|, |dual|), and what rounding may add to it.

        A dual value above the primal value is due to rounding, and shows its size.
        """
        if not math.isfinite(self.primal) or math.isinf(self.dual):
            return math.inf
        if math.isnan(self.dual):
            return UNKNOWN
        scale = max(abs(self.primal), abs(self.dual))
        relative = abs(float(self.primal) - float(self.dual)) / scale if scale > 0 else 0.0
        return relative + self.rounding

    def within(self, tol: float) -> bool:
        """Return whether the gap is at most ``tol``."""
        return bool(self.gap <= tol)

    def rounded(self, rounding: float, tol: float) -> Certificate:
        """Return this certificate with what rounding may add to the gap; below 1e-5, and a tenth of tol, it is unsaid.

        Rounding within the tolerance does not take the gap out of it: both together are stated as ``tol`` at most.

        Examples
        --------
        >>> from manykernels.core.results import Certificate
        >>> known = Certificate(10.0, 9.998)
        >>> [round(known.rounded(rounding, 1e-3).gap, 6) for rounding in (1e-5, 5e-5, 9e-4, 2e-3)]
        [0.0002, 0.00025, 0.001, 0.0022]
        """
        known = replace(self, rounding=0.0)
        if rounding <= (min(ROUNDING_SHARE * tol, _UNSAID) if known.within(tol) else _UNSAID):
            return known
        if rounding <= tol and known.within(tol):
            rounding = min(rounding, max((1.0 - _LAST_BITS) * tol - known.gap, 0.0))
        return replace(self, rounding=rounding)

    def lacks_digits(self, tol: float) -> bool:
        """Return whether rounding alone keeps the gap above ``tol``, so that more iterations are in vain.

        Examples
        --------
        >>> from manykernels.core.results import Certificate
        >>> Certificate(10.0, 9.99, rounding=0.01).lacks_digits(1e-2), Certificate(10.0, 9.0).lacks_digits(1e-2)
        (True, False)
        """
        return not self.within(tol) and replace(self, rounding=0.0).within(tol)

    def improves(self, other: Certificate | None) -> bool:
        """Return whether this certificate is better than another one: whether its gap is smaller.

        The gap of a useless iterate is hardly more than 1, however large its primal value is. So a certificate whose
        primal value is a large multiple of the other's is never better.
        """
        if not math.isfinite(self.primal):
            return False
        if other is None or math.isnan(self.dual) or not math.isfinite(other.primal):
            return True
        if max(self.primal, other.primal) > _USELESS * min(abs(self.primal), abs(other.primal)):
            return self.primal < other.primal
        return self.gap < other.gap


def total(certificates: Sequence[Certificate]) -> Certificate:
    """Return the certificate of several problems together, in which their rounding counts by their size.

    Examples
    --------
    >>> from manykernels.core.results import Certificate, total
    >>> total([Certificate(30.0, 29.0, rounding=0.5), Certificate(10.0, 10.0)])
    Certificate(primal=40.0, dual=39.0, rounding=0.375)
    """
    primal, dual = sum(c.primal for c in certificates), sum(c.dual for c in certificates)
    size = max(abs(primal), abs(dual), 1e-300)
    shares = (max(abs(c.primal), abs(c.dual)) / size for c in certificates)
    return Certificate(primal, dual, sum(c.rounding * share for c, share in zip(certificates, shares, strict=True)))


@dataclass(frozen=True)
class Step:
    """One line of a trace: what an outer iteration reached."""

    iteration: int
    seconds: float
    objective: float
    gap: float
    n_active: int
    tol: float


def joined(first: list[Step], second: list[Step]) -> list[Step]:
    """Return the trace of a run that went on where another ended: iterations and seconds count on."""
    before, seconds = (first[-1].iteration, first[-1].seconds) if first else (0, 0.0)
    return first + [replace(s, iteration=s.iteration + before, seconds=s.seconds + seconds) for s in second]


@dataclass(frozen=True)
class Result:
    """The outcome of an outer optimizer.

    ``weights`` (n_kernels,), ``machine`` (the predictor with these weights),
    ``certificate``, whether the gap fell below the tolerance, the number of
    outer iterations and of inner solves, how far the rounding of stored kernel
    values may move the objective, relative to it, whether Ctrl-C ended the run
    early, and the trace. ``exact`` is False where the dual value rests on a search that may have missed the best
    kernel: the gap is then a lower bound of the true one. Where tasks with weights of their
    own were learned together, ``weights`` is (n_tasks, n_kernels), the certificate is that of their sum, and ``gaps``
    has the gap of each.
    """

    weights: np.ndarray
    machine: Machine
    certificate: Certificate
    converged: bool
    n_iter: int
    n_inner_solves: int
    rounding: float
    interrupted: bool = False
    exact: bool = True
    trace: list[Step] = field(default_factory=list)
    gaps: np.ndarray | None = None


@dataclass(frozen=True)
class SeparateTasks:
    """What was learned of many tasks, each with kernel weights of its own.

    Attributes
    ----------
    weights : ndarray of shape (n_tasks, n_kernels)
    beta : ndarray of shape (n_tasks, n_samples)
    intercept, primal, dual : ndarrays of shape (n_tasks,)
    rounding : ndarray of shape (n_tasks,)
        How far rounding may move the values of each, relative to them.
    n_iter : int
        The most for a task.
    """

    weights: np.ndarray
    beta: np.ndarray
    intercept: np.ndarray
    primal: np.ndarray
    dual: np.ndarray
    rounding: np.ndarray
    n_iter: int

    @property
    def gaps(self) -> np.ndarray:
        """The relative duality gap of each task; infinite where its values are not finite."""
        scale = np.maximum(np.abs(self.primal), np.abs(self.dual))
        with np.errstate(invalid="ignore", divide="ignore"):
            gaps = np.where(scale > 0, np.abs(self.primal - self.dual) / scale, 0.0)
        return np.where(np.isfinite(self.primal) & np.isfinite(self.dual), gaps, np.inf)

    def put(self, task: int, result: Result) -> None:
        """Replace what was learned of a task, in place."""
        self.weights[task], self.beta[task] = result.weights, result.machine.beta[0]
        self.intercept[task], self.rounding[task] = result.machine.intercept[0], result.rounding
        self.primal[task], self.dual[task] = result.certificate.primal, result.certificate.dual
