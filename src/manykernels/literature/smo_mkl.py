"""SMO-MKL: the dual of Lp-norm MKL by pairs of coefficients (Vishwanathan, Sun, Theera-Ampornpunt and Varma, 2010).

With 1/p + 1/p* = 1 the dual of the hinge loss, here as a minimum, is differentiable for p > 1:

    minimize over beta   1/2 ||q||_{p*} - y'beta,    q_k = beta' K_k beta,    0 <= y_i beta_i <= C_i,   1'beta = 0

(Any other piecewise linear loss without a tube has the same dual, with a box and a linear term of its own.)
Its gradient is sum_k d_k K_k beta - y with d_k = (q_k / ||q||_{p*})^(p*-1): that of a support vector machine with the
weights d, for which ||d||_p = 1. Along a pair, beta_i up and beta_j down by x, every form is a parabola,

    q_k(x) = q_k + 2 x l_k + x^2 a_k,    l_k = (K_k beta)_i - (K_k beta)_j,   a_k = K_k,ii + K_k,jj - 2 K_k,ij

and Newton's method in a bracket finds where the derivative sum_k d_k(x) (l_k + x a_k) - (y_i - y_j) is 0. There is no
machine to solve. The pairs that violate the optimality conditions most are taken, in sets of a few samples whose rows
of all kernels are fetched together. (The paper has the squared norm in the dual, since it penalizes the weights.)
"""

from __future__ import annotations

from typing import cast

import numpy as np

from manykernels.compute.compiled import njit
from manykernels.compute.threads import one_blas_thread
from manykernels.core.results import Machine, Result
from manykernels.inner.smo import offsets, violation
from manykernels.literature.records import CACHE_BYTES, SET_SIZE
from manykernels.losses import Loss
from manykernels.outer.recorder import Recorder
from manykernels.outer.reduced_newton import exponent
from manykernels.problem import Problem

_EASED = 0.1  # share of the violation that may be left in a set
_HALVED = 0.5  # an iteration ends when this share of the violation is left, or after so many sets or steps
_MOST_SETS, _MOST_STEPS = 30, 5000
_STEPS = 200  # pair steps for each sample of a set, at most
_LINE = 1e-3  # share of the derivative at 0 that may be left at the end of a line search
_NEWTON_STEPS = 60
# An iteration gains too little if all that are left, at its rate, would close no more than the first part of the gap,
# or if it closes no more than the second part itself; more than so many in a row end the run.
_LEAST_SHARE, _LEAST_RISE, _PATIENCE = 1e-2, 1e-9, 10


def smo(problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None) -> Result:
    """Run the method.

    Parameters
    ----------
    problem : Problem
        Its norm is LpNorm(p) with p > 1, its loss the hinge loss, or another with a box and no tube.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most iterations; each halves the violation of the optimality conditions, or makes a few thousand steps.
    start : ndarray of shape (n_kernels,), optional
        Weights whose machine gives the first beta. Default: beta = 0.

    Returns
    -------
    Result
        ``n_inner_solves`` is 0, or what the start took.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.literature.smo_mkl import smo
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]), X)
    >>> problem = Problem(bank, Hinge(), LpNorm(2), np.sign(np.sin(3 * X.T)), np.ones((1, 30)))
    >>> smo(problem).converged
    True
    """
    with one_blas_thread():
        run = PairSteps(problem, exponent(problem.norm), tol)
        with run.recorder.interruptible():
            run.solve(max_iter, start)
        best = run.recorder.weights
        assert best is not None
        return run.recorder.result(problem.bank.combine(best))


class PairSteps:
    """One run.

    Attributes
    ----------
    beta : ndarray of shape (n_tasks, n)
    products : ndarray of shape (n_tasks, n_kernels, n)
        K_k beta_t.
    forms : ndarray of shape (n_kernels,)
        q, summed over the tasks.
    """

    def __init__(self, problem: Problem, p: float, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self.exponent = 0.0 if np.isinf(p) else 1.0 / (p - 1.0)  # p* - 1
        self.recorder, self.rows = Recorder(problem, tol), _Rows(problem)
        loss = cast(Loss, problem.loss)
        boxes = [loss.box(y, C) for y, C in zip(problem.y, problem.C, strict=True)]
        self.linear, self.lower, self.upper = (
            np.array([getattr(box, name) for box in boxes]) for name in ("linear", "lower", "upper")
        )
        self.set_beta(np.zeros(problem.y.shape))

    def set_beta(self, beta: np.ndarray) -> None:
        """Go on from a feasible beta."""
        n_tasks, n = beta.shape
        self.beta = beta
        self.products = np.zeros((n_tasks, self.problem.bank.n_kernels, n))
        for t in np.flatnonzero(np.any(beta, axis=1)):
            self.products[t] = self.problem.bank.matvecs(beta[t])
        self._set_forms()

    def _set_forms(self) -> None:
        self.forms = np.maximum(np.einsum("tkn,tn->k", self.products, self.beta), 0.0)

    def solve(self, max_iter: int, start: np.ndarray | None) -> None:
        """Make iterations until the gap is reached, or no step is left."""
        problem, recorder = self.problem, self.recorder
        if start is not None:
            K = problem.bank.combine(problem.norm.scaled(start))
            self.set_beta(recorder.solve(K, None, max(self.tol, 1e-2)).beta)
        dual, n_idle = -np.inf, 0
        for left in reversed(range(max_iter)):
            moved = self._iterate()
            weights = self.weights() if self.forms.any() else problem.norm.initial_weights(self.forms.size)
            certificate = problem.certificate(weights, self._machine(weights), self.forms)
            recorder.record(weights, self._machine(weights), certificate)
            rise, dual = certificate.dual - dual, certificate.dual
            too_little = max(_LEAST_SHARE / max(left, 1), _LEAST_RISE)
            n_idle = n_idle + 1 if rise <= too_little * (certificate.primal - dual) else 0
            if certificate.within(self.tol) or not moved or n_idle > _PATIENCE or recorder.is_stuck:
                break

    def _machine(self, weights: np.ndarray) -> Machine:
        return self.problem.machine(self.beta.copy(), np.einsum("k,tkn->tn", weights, self.products))

    def weights(self) -> np.ndarray:
        """Return d; all 0 where all forms are 0."""
        out = np.empty(self.forms.size)
        _weigh(self.forms, self.exponent, out)
        return out

    def gradient(self, t: int) -> np.ndarray:
        """Return the gradient of the dual, as a minimum, in the coefficients of a task."""
        return self.weights() @ self.products[t] - self.linear[t]

    def _iterate(self) -> bool:
        """Work on one set after the other until the violation is halved; return whether a coefficient changed."""
        moved, first, n_steps = False, np.inf, 0
        for _ in range(_MOST_SETS):
            gradients = [self.gradient(t) for t in range(self.beta.shape[0])]
            worst = [self._violation(t, g) for t, g in enumerate(gradients)]
            t = int(np.argmax(worst))
            if not worst[t] > (_HALVED * first if np.isfinite(first) else 0.0):
                break
            first = min(first, worst[t])
            changed, steps = self._work(t, self._choose(t, gradients[t]), _EASED * worst[t])
            moved, n_steps = moved or changed, n_steps + steps
            if not changed or n_steps > _MOST_STEPS:
                break
        return moved

    def _violation(self, t: int, gradient: np.ndarray) -> float:
        beta, lower, upper = self.beta[t], self.lower[t], self.upper[t]
        return float(violation(gradient, beta, lower, upper, 0.0, self.problem.fit_intercept))

    def _choose(self, t: int, gradient: np.ndarray) -> np.ndarray:
        """Return the samples that can go up, and those that can go down, with the largest rates."""
        rise, fall = offsets(self.beta[t], self.lower[t], self.upper[t], 0.0)
        half = SET_SIZE // 2
        return np.union1d(np.argsort(gradient - rise)[:half], np.argsort(fall - gradient)[:half])

    def _work(self, t: int, chosen: np.ndarray, target: float) -> tuple[bool, int]:
        """Make pair steps among the chosen samples; return whether a coefficient has changed, and how many steps."""
        rows = self.rows.of(chosen)
        beta = self.beta[t, chosen]
        n_steps = pair_steps(
            np.array([row[:, chosen].T for row in rows]),
            np.ascontiguousarray(self.products[t][:, chosen].T),
            self.forms,
            self.exponent,
            self.linear[t, chosen],
            beta,
            self.lower[t, chosen],
            self.upper[t, chosen],
            target,
            self.problem.fit_intercept,
        )
        changes = beta - self.beta[t, chosen]
        for row, change in zip(rows, changes, strict=True):
            if change != 0.0:
                self.products[t] += change * row
        self.beta[t, chosen] = beta
        self._set_forms()
        return bool(changes.any()), n_steps


class _Rows:
    """Rows of all kernels, each of shape (n_kernels, n); the last ones that were asked for are held."""

    def __init__(self, problem: Problem) -> None:
        self.bank = problem.bank
        self.most = SET_SIZE + CACHE_BYTES // (8 * self.bank.n_kernels * self.bank.n_samples)
        self.held: dict[int, np.ndarray] = {}

    def of(self, samples: np.ndarray) -> list[np.ndarray]:
        """Return the rows of a few samples."""
        missing = [i for i in samples.tolist() if i not in self.held]
        new = {}
        if missing:
            fetched = self.bank.rows(np.array(missing))
            new = {i: np.ascontiguousarray(fetched[:, place]) for place, i in enumerate(missing)}
        asked = {i: new[i] if i in new else self.held.pop(i) for i in samples.tolist()}
        self.held.update(asked)  # at the end: the oldest are dropped first
        while len(self.held) > self.most:
            del self.held[next(iter(self.held))]
        return list(asked.values())


@njit(cache=True, nogil=True)
def _weigh(forms, exponent, out):
    """Write d_k = (q_k / ||q||)^(p*-1) to out and return ||q||, scaled so that no power overflows."""
    largest = np.max(forms)
    if not largest > 0.0:
        out[:] = 0.0
        return 0.0
    total = 0.0
    for k in range(forms.size):
        ratio = max(forms[k], 0.0) / largest
        out[k] = ratio**exponent
        total += ratio * out[k]
    share = total ** (1.0 / (1.0 + exponent))
    for k in range(forms.size):
        out[k] /= share**exponent
    return largest * share


@njit(cache=True, nogil=True)
def line_derivatives(x, forms, linear, square, exponent, rate, q, d):
    """Return the first and second derivative of 1/2 ||q(x)|| - rate x; q and d are written to."""
    for k in range(forms.size):
        q[k] = max(forms[k] + x * (2.0 * linear[k] + x * square[k]), 0.0)
    norm = _weigh(q, exponent, d)
    slope, curvature, spread = 0.0, 0.0, 0.0
    for k in range(forms.size):
        half = linear[k] + x * square[k]
        slope += d[k] * half
        curvature += d[k] * square[k]
        # (beta' K v)^2 <= q v' K v, whatever the rounding.
        ratio = min(half * half / q[k], square[k]) if q[k] > 0.0 else square[k]
        spread += d[k] * ratio
    if norm > 0.0:
        curvature += 2.0 * exponent * max(spread - slope * slope / norm, 0.0)
    return slope - rate, curvature


@njit(cache=True, nogil=True)
def _line_search(room, forms, linear, square, exponent, rate, q, d):
    """Return the x in [0, room] with the lowest value; q and d hold their values at x."""
    slope, curvature = line_derivatives(0.0, forms, linear, square, exponent, rate, q, d)
    enough = _LINE * abs(slope)
    low, high = 0.0, room
    x = min(room, -slope / curvature) if curvature > 0.0 else room
    for _ in range(_NEWTON_STEPS):
        slope, curvature = line_derivatives(x, forms, linear, square, exponent, rate, q, d)
        if abs(slope) <= enough or (x == room and slope < 0.0):
            break
        if slope < 0.0:
            low = x
        else:
            high = x
        after = x - slope / curvature if curvature > 0.0 else high
        if high == room and after >= room:
            after = room
        elif not low < after < high:
            after = 0.5 * (low + high)
        if after == x:
            break
        x = after
    return x


@njit(cache=True, nogil=True)
def _violating_pair(g, beta, lower, upper):
    """Return the sample with the largest rate up, the one with the largest rate down, and the sum of the rates."""
    up, down, high, low = -1, -1, -np.inf, np.inf
    for s in range(g.size):
        if beta[s] < upper[s] and -g[s] > high:
            up, high = s, -g[s]
        if beta[s] > lower[s] and -g[s] < low:
            down, low = s, -g[s]
    return up, down, high - low if up >= 0 and down >= 0 else 0.0


@njit(cache=True, nogil=True)
def _violating_single(g, beta, lower, upper):
    """Return the same for a problem without intercept: one of the two samples is -1."""
    up, down, rate = -1, -1, 0.0
    for s in range(g.size):
        if beta[s] < upper[s] and -g[s] > rate:
            up, down, rate = s, -1, -g[s]
        if beta[s] > lower[s] and g[s] > rate:
            up, down, rate = -1, s, g[s]
    return up, down, 2.0 * rate


@njit(cache=True, nogil=True)
def _parabolas(blocks, products, y, beta, lower, upper, up, down, linear, square):
    """Write l and a of the pair to linear and square; return y_up - y_down and how far the pair can go."""
    linear[:] = 0.0
    square[:] = 0.0
    rate, room = 0.0, np.inf
    if up >= 0:
        linear += products[up]
        square += blocks[up, up]
        rate, room = y[up], upper[up] - beta[up]
    if down >= 0:
        linear -= products[down]
        square += blocks[down, down]
        rate, room = rate - y[down], min(room, beta[down] - lower[down])
    if up >= 0 and down >= 0:
        square -= 2.0 * blocks[up, down]
    np.maximum(square, 0.0, square)
    return rate, room


@njit(cache=True, nogil=True)
def _change(blocks, products, beta, i, x, end):
    """Move one coefficient by x, but not beyond its end, and the products with it. Return whether it has changed."""
    before = beta[i]
    beta[i] = min(before + x, end) if x > 0.0 else max(before + x, end)
    for s in range(beta.size):
        products[s] += x * blocks[i, s]
    return beta[i] != before


@njit(cache=True, nogil=True)
def pair_steps(blocks, products, forms, exponent, y, beta, lower, upper, target, intercept):
    """Step among a few samples until the violation is at most ``target``; beta, products and forms change in place.

    ``blocks`` has shape (s, s, n_kernels), ``products`` (s, n_kernels). Returns the number of steps.
    """
    size, m = products.shape
    d, q, g = np.empty(m), np.empty(m), np.empty(size)
    linear, square = np.empty(m), np.empty(m)
    _weigh(forms, exponent, d)
    for step in range(_STEPS * size):
        for s in range(size):
            g[s] = np.sum(d * products[s]) - y[s]
        if intercept:
            up, down, worst = _violating_pair(g, beta, lower, upper)
        else:
            up, down, worst = _violating_single(g, beta, lower, upper)
        if not worst > target:
            return step
        rate, room = _parabolas(blocks, products, y, beta, lower, upper, up, down, linear, square)
        x = _line_search(room, forms, linear, square, exponent, rate, q, d)
        if not x > 0.0:
            return step
        forms[:] = q
        has_moved = False
        if up >= 0:
            has_moved |= _change(blocks, products, beta, up, x, upper[up])
        if down >= 0:
            has_moved |= _change(blocks, products, beta, down, -x, lower[down])
        if not has_moved:  # the step is below rounding: it would be repeated forever
            return step
    return _STEPS * size
