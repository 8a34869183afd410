"""Sequential minimal optimization for the box-constrained quadratic program of kernel machines.

    minimize over beta    1/2 beta' K beta - y' beta + epsilon * sum_i |beta_i|
    subject to            lower_i <= beta_i <= upper_i,  and 1' beta = 0 when there is an intercept.

With signed coefficients one program serves the support vector machine
(epsilon = 0, the box of a sample is [0, C_i] or [-C_i, 0]) and
epsilon-insensitive regression (the box is [-C_i, C_i]) without doubling the
variables: the kink of |beta_i| at 0 is one more point where a step stops.

Stopping rule. With the gradient g = K beta - y, the sample i can go *up* at
the rate u_i = g_i + epsilon * (1 if beta_i >= 0 else -1) if beta_i < upper_i,
and *down* at v_i = g_i + epsilon * (1 if beta_i > 0 else -1) if
beta_i > lower_i. With an intercept the solution is optimal up to ``tol`` when
max_up(-u) - min_down(-v) <= tol; without one, when no sample can gain at a
rate above ``tol / 2``.

Pairs are chosen by second-order gain (Fan, Chen and Lin, 2005). Samples that
sit at a bound with a clear margin are set aside, and the rest is copied to a
small contiguous matrix: the loop then runs in the cache. When it is done, the
gradient of all samples is rebuilt and checked before the solver returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from manykernels.compute.compiled import njit
from manykernels.compute.given_sums import balanced, sums_to_zero
from manykernels.compute.linalg import copy_block
from manykernels.compute.threads import parallel

_FAST = {"reassoc", "contract", "nsz", "arcp", "nnan"}
_TINY_CURVATURE = 1e-12
_NEVER = -1e300
_CHUNK = 64
# The gradient is computed anew after more steps than this for each coefficient that is not 0, and so often at most.
_FEW_STEPS, _ROUNDS = 4, 5
# So it is where it has become this part of what it was: the rounding of what it was is still in it.
_WORN = 1e-3


@dataclass(frozen=True)
class BoxSolution:
    """What the program's solver returns: coefficients, gradient ``K beta - y``, iterations, optimality."""

    beta: np.ndarray
    gradient: np.ndarray
    n_iter: int
    converged: bool


@njit(cache=True, nogil=True, fastmath=_FAST)
def _rise_offset(beta, upper, epsilon):
    """Return what is added to -g to get the rate of going up; very negative when the bound forbids it."""
    if beta >= upper:
        return _NEVER
    return -epsilon if beta >= 0.0 else epsilon


@njit(cache=True, nogil=True, fastmath=_FAST)
def _fall_offset(beta, lower, epsilon):
    """Return what is added to -g to get the rate of going down; very positive when the bound forbids it."""
    if beta <= lower:
        return -_NEVER
    return -epsilon if beta > 0.0 else epsilon


def offsets(beta, lower, upper, epsilon):
    """Return what is added to -g to get the rates of going up and down."""
    rise, fall = np.empty(beta.size), np.empty(beta.size)
    _survey(beta, beta, lower, upper, epsilon, True, 0.0, rise, fall, np.empty(beta.size, np.int64))
    return rise, fall


@njit(cache=True, nogil=True, fastmath=_FAST)
def _survey(g, beta, lower, upper, epsilon, intercept, slack, rise, fall, keep):
    """Write the offsets to rise and fall, and to keep the samples that may still move: see :func:`movable`.

    Returns the largest rate up, the lowest rate down, and the number of samples that may move.
    """
    high, low = 2 * _NEVER, -2 * _NEVER
    for k in range(g.size):
        rise[k] = _rise_offset(beta[k], upper[k], epsilon)
        fall[k] = _fall_offset(beta[k], lower[k], epsilon)
        high = max(high, rise[k] - g[k])
        low = min(low, fall[k] - g[k])
    # Going up is of use only against some partner's going down, and the other way round.
    top, bottom = (high + slack, low - slack) if intercept else (slack, -slack)
    count = 0
    for k in range(g.size):
        if rise[k] - g[k] > bottom or fall[k] - g[k] < top or lower[k] < beta[k] < upper[k]:
            keep[count] = k
            count += 1
    return high, low, count


# The loops below run in chunks: first the chunk's extreme value, which the compiler turns into
# vector instructions, and only for the best chunk a scan for the place where it is attained.


@njit(cache=True, nogil=True, fastmath=_FAST)
def _step_and_choose(g, row_i, row_j, step, rise):
    """Add step * (row_i - row_j) to g in place; return the sample with the largest rate up, and the rate."""
    best_chunk, rate = 0, 2 * _NEVER
    for low in range(0, g.size, _CHUNK):
        high = min(low + _CHUNK, g.size)
        gc, ic, jc, rc = g[low:high], row_i[low:high], row_j[low:high], rise[low:high]
        top = 2 * _NEVER
        for k in range(high - low):
            value = gc[k] + step * (ic[k] - jc[k])
            gc[k] = value
            top = max(top, rc[k] - value)
        if top > rate:
            best_chunk, rate = low, top
    for k in range(best_chunk, min(best_chunk + _CHUNK, g.size)):
        if rise[k] - g[k] >= rate:
            return k, rate
    return best_chunk, rate


@njit(cache=True, nogil=True, fastmath=_FAST)
def _best_partner(row, diagonal, g, fall, i, rate_up):
    """Return the sample whose going down with i up gains most, and the lowest rate of all that can go down."""
    best_chunk, best_gain, lowest = 0, 0.0, -2 * _NEVER
    curvature = diagonal[i]
    for low in range(0, g.size, _CHUNK):
        high = min(low + _CHUNK, g.size)
        gc, rc, dc, fc = g[low:high], row[low:high], diagonal[low:high], fall[low:high]
        top, bottom = 0.0, -2 * _NEVER
        for k in range(high - low):
            value = fc[k] - gc[k]
            bottom = min(bottom, value)
            slope = max(rate_up - value, 0.0)
            top = max(top, slope * slope / max(curvature + dc[k] - 2.0 * rc[k], _TINY_CURVATURE))
        lowest = min(lowest, bottom)
        if top > best_gain:
            best_chunk, best_gain = low, top
    best, best_gain = -1, 0.0
    for k in range(best_chunk, min(best_chunk + _CHUNK, g.size)):
        slope = max(rate_up - (fall[k] - g[k]), 0.0)
        gain = slope * slope / max(curvature + diagonal[k] - 2.0 * row[k], _TINY_CURVATURE)
        if gain > best_gain:
            best, best_gain = k, gain
    return best, lowest


@njit(cache=True, nogil=True, fastmath=_FAST)
def _ceiling(value, upper, epsilon):
    """Return how high a coefficient may go in one step: to its bound or to the kink at 0."""
    return 0.0 if epsilon > 0.0 and value < 0.0 and upper > 0.0 else upper


@njit(cache=True, nogil=True, fastmath=_FAST)
def _floor(value, lower, epsilon):
    return 0.0 if epsilon > 0.0 and value > 0.0 and lower < 0.0 else lower


@njit(cache=True, nogil=True, fastmath=_FAST)
def _move_pair(beta, i, j, step, ceiling, floor):
    """Raise beta_i and lower beta_j by ``step`` or as far as both can go; returns the step made.

    A coefficient that reaches its end is put there exactly, so that no rounding keeps it free.
    """
    room_i, room_j = ceiling - beta[i], beta[j] - floor
    if step < room_i and step < room_j:
        beta[i] += step
        beta[j] -= step
        return step
    if room_i <= room_j:
        beta[i] = ceiling
        beta[j] = floor if room_i == room_j else beta[j] - room_i
        return room_i
    beta[j] = floor
    beta[i] += room_j
    return room_j


@njit(cache=True, nogil=True, fastmath=_FAST)
def _pair_loop(K, diagonal, g, beta, lower, upper, rise, fall, epsilon, tol, max_iter):
    """Pair steps with 1' beta kept; changes g and beta in place, and the offsets of both rates.

    Returns the iterations and the violation, infinite where they were not enough.
    """
    i, rate_up = _step_and_choose(g, g, g, 0.0, rise)
    for iteration in range(max_iter):
        row_i = K[i]
        j, lowest = _best_partner(row_i, diagonal, g, fall, i, rate_up)
        violation = rate_up - lowest
        if violation <= tol or j < 0:
            return iteration, max(violation, 0.0)
        row_j = K[j]
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * row_i[j], _TINY_CURVATURE)
        step = _move_pair(
            beta,
            i,
            j,
            (rate_up - (fall[j] - g[j])) / curvature,
            _ceiling(beta[i], upper[i], epsilon),
            _floor(beta[j], lower[j], epsilon),
        )
        rise[i] = _rise_offset(beta[i], upper[i], epsilon)
        fall[i] = _fall_offset(beta[i], lower[i], epsilon)
        rise[j] = _rise_offset(beta[j], upper[j], epsilon)
        fall[j] = _fall_offset(beta[j], lower[j], epsilon)
        i, rate_up = _step_and_choose(g, row_i, row_j, step, rise)
    return max_iter, np.inf


@njit(cache=True, nogil=True, fastmath=_FAST)
def _single_rate(gradient, beta, lower, upper, epsilon):
    """Return the signed rate at which one coefficient gains: > 0 by going up, < 0 by going down, 0 if neither."""
    if beta < upper:
        rate = -gradient - epsilon if beta >= 0.0 else -gradient + epsilon
        if rate > 0.0:
            return rate
    if beta > lower:
        rate = -gradient - epsilon if beta > 0.0 else -gradient + epsilon
        if rate < 0.0:
            return rate
    return 0.0


@njit(cache=True, nogil=True, fastmath=_FAST)
def _single_loop(K, diagonal, g, beta, lower, upper, epsilon, tol, max_iter):
    """Single-coefficient steps, for a problem without intercept; in place. Returns what ``_pair_loop`` does."""
    n = g.shape[0]
    for iteration in range(max_iter):
        best, best_gain, violation = -1, 0.0, 0.0
        for k in range(n):
            rate = _single_rate(g[k], beta[k], lower[k], upper[k], epsilon)
            if rate != 0.0:
                violation = max(violation, abs(rate))
                gain = rate * rate / max(diagonal[k], _TINY_CURVATURE)
                if gain > best_gain:
                    best, best_gain = k, gain
        if 2.0 * violation <= tol or best < 0:
            return iteration, 2.0 * violation
        rate = _single_rate(g[best], beta[best], lower[best], upper[best], epsilon)
        target = beta[best] + rate / max(diagonal[best], _TINY_CURVATURE)
        if rate > 0.0:
            target = min(target, _ceiling(beta[best], upper[best], epsilon))
        else:
            target = max(target, _floor(beta[best], lower[best], epsilon))
        step = target - beta[best]
        beta[best] = target
        row = K[best]
        for k in range(n):
            g[k] += step * row[k]
    return max_iter, np.inf


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_products(K, change, g):
    """Add K @ change to g, reading only the rows where something changed."""
    for k in range(change.size):
        if change[k] != 0.0:
            row = K[k]
            step = change[k]
            for t in range(g.size):
                g[t] += step * row[t]


# What follows calls the loops, a few times a solve. It is not compiled: a function that compiled ones call is compiled
# once more into each of them.


class _WorkingSet:
    """The samples that are worked on, and what they gain by going up and down.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    diagonal, g, beta, lower, upper : ndarrays of shape (n,)
        g and beta are changed in place.
    epsilon : float
    intercept : bool
    """

    def __init__(self, K, diagonal, g, beta, lower, upper, epsilon, intercept):
        self.K, self.diagonal, self.g, self.beta, self.lower, self.upper = K, diagonal, g, beta, lower, upper
        self.epsilon, self.intercept = epsilon, intercept
        self.rise, self.fall, self.keep = np.empty(g.size), np.empty(g.size), np.empty(g.size, np.int64)

    def look(self, slack=0.0):
        """Return by how much the optimality conditions are violated, and the samples that may still move."""
        high, low, count = _survey(
            self.g,
            self.beta,
            self.lower,
            self.upper,
            self.epsilon,
            self.intercept,
            slack,
            self.rise,
            self.fall,
            self.keep,
        )
        worst = max(high - low, 0.0) if self.intercept else 2.0 * max(high, -low, 0.0)
        return worst, self.keep[:count]

    def burst(self, tol, max_iter):
        """Make so many steps at most, after :meth:`look`; return how many, and the violation or infinity."""
        arrays = self.K, self.diagonal, self.g, self.beta, self.lower, self.upper
        if self.intercept:
            return _pair_loop(*arrays, self.rise, self.fall, self.epsilon, tol, max_iter)
        return _single_loop(*arrays, self.epsilon, tol, max_iter)

    def only(self, keep):
        """Return the kept samples alone, in compact copies."""
        K = np.empty((keep.size, keep.size))
        copy_block(self.K, keep, K)
        diagonal, g, beta = self.diagonal[keep], self.g[keep], self.beta[keep]
        return _WorkingSet(K, diagonal, g, beta, self.lower[keep], self.upper[keep], self.epsilon, self.intercept)


def movable(g, beta, lower, upper, epsilon, intercept, slack):
    """Return the samples that may still move: all but those at a bound that pushes them back by ``slack`` or more."""
    return _WorkingSet(None, None, g, beta, lower, upper, epsilon, intercept).look(slack)[1]


def violation(g, beta, lower, upper, epsilon, intercept):
    """Return by how much the optimality conditions are violated, in the unit of y."""
    return _WorkingSet(None, None, g, beta, lower, upper, epsilon, intercept).look()[0]


def _solve_shrunk(everybody, keep, tol, max_iter):
    """Solve on the kept samples alone, in a compact copy that is shrunk again as samples settle.

    Changes beta and g (of all samples) in place; returns the iterations.
    """
    before, done, few = everybody.beta.copy(), 0, everybody.only(keep)
    few.look()
    while done < max_iter:
        used, worst = few.burst(tol, min(max(keep.size, 200), max_iter - done))
        done += used
        everybody.beta[keep] = few.beta
        if worst <= tol:
            break
        inner = few.look()[1]
        if 10 * inner.size < 7 * keep.size and inner.size > 1:
            few, keep = few.only(inner), keep[inner]
            few.look()
    _add_products(everybody.K, everybody.beta - before, everybody.g)
    return done


def solve_in_place(K, diagonal, g, beta, lower, upper, epsilon, tol, max_iter, intercept):
    """Alternate bursts on all samples with solves on those that may still move; in place."""
    everybody, done = _WorkingSet(K, diagonal, g, beta, lower, upper, epsilon, intercept), 0
    # The first shrunken solves are rough, so that little is lost when the guess of who moves was wrong.
    worst, keep = everybody.look()
    while worst > tol and done < max_iter:
        if g.size > _CHUNK and 2 * keep.size <= g.size and keep.size > 1:  # a few samples are one step of the loops
            used = _solve_shrunk(everybody, keep.copy(), max(tol, 0.1 * worst), max_iter - done)
        else:
            used, _ = everybody.burst(tol, min(max(g.size // 2, 100), max_iter - done))
        done += used
        before, (worst, keep) = worst, everybody.look()
        if used == 0 and worst >= before:
            break  # rounding: no step left that a float64 can take
    return done, worst


def solve_box(
    K: np.ndarray,
    y: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    epsilon: float = 0.0,
    start: np.ndarray | None = None,
    intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int | None = None,
) -> BoxSolution:
    """Solve the box-constrained quadratic program of the module's docstring.

    Parameters
    ----------
    K : ndarray of shape (n, n), float64, C-contiguous, symmetric positive semidefinite
    y, lower, upper : ndarrays of shape (n,)
        ``lower <= 0 <= upper``.
    epsilon : float
        Weight of ``sum |beta|``.
    start : ndarray of shape (n,) or None
        Where to start; it is clipped to the box, and to 1' beta = 0 by :func:`balanced`.
    intercept : bool
        Keep 1' beta = 0.
    tol : float
        Largest violation of the optimality conditions, in the unit of y.
    max_iter : int or None
        Most steps to take; None is 1,000 a sample and 100,000 more, after which a step gains next to nothing.

    Returns
    -------
    BoxSolution

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.inner.smo import solve_box
    >>> y = np.array([1.0, -1.0])
    >>> solve_box(np.eye(2), y, np.minimum(0, 5 * y), np.maximum(0, 5 * y)).beta
    array([ 1., -1.])
    """
    beta = feasible_start(start, lower, upper, intercept)
    gradient = _product(K, beta) - y if np.any(beta) else -y.astype(np.float64)
    diagonal = K.diagonal().copy()
    max_iter = 1000 * y.size + 100_000 if max_iter is None else max_iter
    n_iter = 0
    for _ in range(_ROUNDS):
        before = np.abs(gradient).max()
        done, worst = solve_in_place(
            K, diagonal, gradient, beta, lower, upper, float(epsilon), float(tol), max_iter - n_iter, intercept
        )
        n_iter += done
        is_worn = np.abs(gradient).max() < _WORN * before
        if intercept and not sums_to_zero(beta):  # left of a start that was far larger
            beta, is_worn = balanced(beta, lower, upper), True
        if n_iter <= _FEW_STEPS * np.count_nonzero(beta) and not is_worn:
            break
        # Each step has left its rounding in the gradient; anew, that costs a small part of the steps.
        gradient = _product(K, beta) - y
        worst = violation(gradient, beta, lower, upper, float(epsilon), intercept)
        if worst <= tol or n_iter >= max_iter:
            break
    return BoxSolution(beta, gradient, n_iter, bool(worst <= tol))


def feasible_start(start: np.ndarray | None, lower: np.ndarray, upper: np.ndarray, intercept: bool) -> np.ndarray:
    """Return a feasible point near ``start``: in the box, and with 1' beta = 0 where there is an intercept."""
    if start is None or not np.any(start):
        return np.zeros(lower.size)
    beta = np.clip(start, lower, upper)
    return balanced(beta, lower, upper) if intercept else beta


@njit(cache=True, nogil=True, fastmath=_FAST)
def _row_products(K, beta, low, high, out):
    for i in range(low, high):
        row = K[i]
        total = 0.0
        for k in range(beta.size):
            total += row[k] * beta[k]
        out[i] = total


def _product(K: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return K @ beta; it reads the rows of the support vectors alone when they are few."""
    out = np.zeros(beta.size)
    if 2 * np.count_nonzero(beta) < beta.size:
        _add_products(K, beta, out)
    else:
        cuts = np.linspace(0, beta.size, 2 + beta.size // 500).astype(int)
        parallel(lambda cut: _row_products(K, beta, cut[0], cut[1], out), pairwise(cuts))
    return out
