"""The compiled steps of UFO-MKL: everything that happens once for each sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manykernels.compute.compiled import njit
from manykernels.losses.codes import HINGE, LOGISTIC, MULTICLASS_HINGE, SQUARED, SQUARED_HINGE


class Rule(NamedTuple):
    """What the steps are told: the regularizer's alpha, lambda and dual power q, the loss with its parameter.

    ``exact`` steps go to the maximum of the dual in the coefficients of the sample. They know no t: alpha and lambda
    are then those of the problem divided by lambda, so that lambda is 1, and the clock stands at 1.
    """

    alpha: float
    lam: float
    power: float
    loss: int
    epsilon: float
    exact: bool


class Walk(NamedTuple):
    """Where the walk stands.

    ``squared`` (m,) are the ||theta_k||^2 and ``coef`` (m,) the factors w_k = coef_k theta_k. ``clock`` holds the steps
    taken so far, t, and the t that ``coef`` was made for, 0 if theta has moved since. ``totals`` are the sums over the
    steps of the loss, of the loss's part of the dual and of the regularizer, and the regularizer now. ``area`` (m,)
    sums ``coef``, for the average.
    """

    squared: np.ndarray
    coef: np.ndarray
    clock: np.ndarray
    totals: np.ndarray
    area: np.ndarray


NOW, MADE_FOR = 0, 1
LOSS, OFFSET, REGULARIZER, LAST_REGULARIZER = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def refresh(rule, walk):
    """Make ``coef`` the gradient of the conjugate at theta / t; return the regularizer's value there.

    With v_k = (||theta_k|| - alpha t)_+ it is coef_k = v_k^{q-1} / (||v||_q^{q-2} ||theta_k|| lambda t).
    """
    squared, coef, t = walk.squared, walk.coef, walk.clock[NOW]
    walk.clock[MADE_FOR] = t
    if t == 0.0:
        for k in range(coef.size):
            coef[k] = 0.0
        return 0.0
    largest = 0.0
    for k in range(squared.size):
        coef[k] = max(np.sqrt(max(squared[k], 0.0)) - rule.alpha * t, 0.0)
        largest = max(largest, coef[k])
    if largest == 0.0:
        return 0.0
    total, one_norm = 0.0, 0.0
    for k in range(squared.size):
        if coef[k] > 0.0:
            ratio = coef[k] / largest
            power = 1.0 if rule.power == 2.0 else np.exp((rule.power - 2.0) * np.log(ratio))
            total += power * ratio * ratio
            one_norm += power * coef[k]
            coef[k] *= power / np.sqrt(squared[k])
    factor = total ** (2.0 / rule.power - 1.0) / (rule.lam * t)
    for k in range(squared.size):
        coef[k] *= factor
    p_norm = largest * total ** (1.0 / rule.power) / (rule.lam * t)
    return 0.5 * rule.lam * p_norm * p_norm + rule.alpha * factor * one_norm


@njit(cache=True, nogil=True)
def outputs(scores, coef, z):
    """Write z_c = sum_k coef_k scores[c, k]."""
    for c in range(z.size):
        total = 0.0
        for k in range(coef.size):
            total += coef[k] * scores[c, k]
        z[c] = total


@njit(cache=True, nogil=True)
def descent(rule, y, z, g):
    """Write minus a subgradient to g; return the loss and the loss's part of the dual, loss(z) + g'z."""
    loss, offset = 0.0, 0.0
    if rule.loss == MULTICLASS_HINGE:
        label, rival = int(y[0]), -1
        for c in range(z.size):
            g[c] = 0.0
            if c != label and (rival < 0 or z[c] > z[rival]):
                rival = c
        if 1.0 - z[label] + z[rival] > 0.0:
            g[label], g[rival] = 1.0, -1.0
            loss, offset = 1.0 - z[label] + z[rival], 1.0
        return loss, offset
    for c in range(z.size):
        g[c] = 0.0
        if rule.loss == HINGE:
            short = 1.0 - y[c] * z[c]
            if short > 0.0:
                g[c] = y[c]
                loss += short
                offset += 1.0
        elif rule.loss == LOGISTIC:
            margin = y[c] * z[c]
            far = np.exp(-abs(margin))
            value = np.log1p(far) + max(-margin, 0.0)
            g[c] = y[c] * (far / (1.0 + far) if margin > 0.0 else 1.0 / (1.0 + far))
            loss += value
            offset += value + g[c] * z[c]
        else:
            short = y[c] - z[c]
            if abs(short) > rule.epsilon:
                g[c] = np.sign(short)
                loss += abs(short) - rule.epsilon
                offset += g[c] * y[c] - rule.epsilon
    return loss, offset


@njit(cache=True, nogil=True)
def move(walk, scores, squares, g):
    """Update the ||theta_k||^2 for theta += g phi(x); return whether that moves anything."""
    moved = False
    for c in range(g.size):
        if g[c] != 0.0:
            moved = True
            for k in range(squares.size):
                walk.squared[k] += g[c] * (2.0 * scores[c, k] + g[c] * squares[k])
    if moved:
        walk.clock[MADE_FOR] = 0.0
    return moved


@njit(cache=True, nogil=True)
def look(rule, walk, scores, z):
    """Bring ``coef`` up to date, write the outputs for these scores to z, and add up what a certificate needs."""
    made_for, t = walk.clock[MADE_FOR], walk.clock[NOW]
    if made_for > 0.0 and rule.alpha == 0.0:
        # Only t has grown: coef falls like 1 / t, and the regularizer with its square.
        for k in range(walk.coef.size):
            walk.coef[k] *= made_for / t
        walk.totals[LAST_REGULARIZER] *= (made_for / t) ** 2
        walk.clock[MADE_FOR] = t
    else:
        walk.totals[LAST_REGULARIZER] = refresh(rule, walk)
    walk.totals[REGULARIZER] += walk.totals[LAST_REGULARIZER]
    outputs(scores, walk.coef, z)
    for k in range(walk.area.size):
        walk.area[k] += walk.coef[k]


@njit(cache=True, nogil=True)
def count(walk, loss, offset, gain, g):
    """Add up the loss and its part of the dual, multiply the step by the sample's gain, and let t grow."""
    walk.totals[LOSS] += gain * loss
    walk.totals[OFFSET] += gain * offset
    walk.clock[NOW] += 1.0
    for c in range(g.size):
        g[c] *= gain


# -- exact steps ----------------------------------------------------------------------------------------------------

_TRIALS, _FLAT, _LEAST_SHARE = 10, 0.1, 1e-12
_PAIRS, _EQUAL = 5, 1e-12


@njit(cache=True, nogil=True)
def trial_output(rule, walk, trial, along, squares, step):
    """Return the output along a direction after a step of this length: sum_k coef_k (along_k + step squares_k)."""
    for k in range(squares.size):
        trial.squared[k] = walk.squared[k] + step * (2.0 * along[k] + step * squares[k])
    refresh(rule, trial)
    total = 0.0
    for k in range(squares.size):
        total += trial.coef[k] * (along[k] + step * squares[k])
    return total


@njit(cache=True, nogil=True)
def longest_ascent(rule, walk, trial, along, squares, sign, rise, bend, limit):
    """Return a step length in [0, limit] near the maximum of the dual along a direction, and not beyond it.

    The direction is ``along`` times a sign. The derivative of the dual at a step s is rise - bend s - output(s); it
    falls.
    """
    slope = rise - sign * trial_output(rule, walk, trial, along, squares, 0.0)
    if slope <= _EQUAL * max(1.0, abs(rise)) or limit <= 0.0:
        return 0.0
    stiff = bend
    for k in range(squares.size):
        stiff += trial.coef[k] * squares[k]
    low, slope_low, high, slope_high, side = 0.0, slope, -1.0, 0.0, 0
    step = min(limit, slope / stiff) if stiff > 0.0 else limit
    for _ in range(_TRIALS):
        slope_at_step = rise - bend * step - sign * trial_output(rule, walk, trial, along, squares, sign * step)
        if slope_at_step >= 0.0:
            if step == limit or slope_at_step <= _FLAT * slope:
                return step
            low, slope_low = step, slope_at_step
            if side > 0:
                slope_high *= 0.5  # the Illinois rule: an end that stays is trusted less and less
            side = 1
        else:
            high, slope_high = step, slope_at_step
            if side < 0:
                slope_low *= 0.5
            side = -1
        step = low + (high - low) * slope_low / (slope_low - slope_high) if high >= 0.0 else min(limit, 4.0 * step)
    return low


@njit(cache=True, nogil=True)
def logistic_ascent(rule, walk, trial, along, squares, y, beta, C):
    """Return the step to the maximum of the dual of the logistic loss, whose derivative is infinite at its ends.

    With beta = y C s(v), s the sigmoid, the maximum is where -v - y output(v) vanishes; that falls at least like -v,
    so that from any v the root lies within its value. The end of that bracket which is nearer to the start is taken.
    """
    share = min(max(y * beta / C, _LEAST_SHARE), 1.0 - _LEAST_SHARE)
    v = np.log(share / (1.0 - share))
    first = -v - y * trial_output(rule, walk, trial, along, squares, y * C * share - beta)
    near, at_near, far, at_far = v, first, v + first, np.nan
    for trials in range(2 * _TRIALS):
        bisect = not np.isfinite(at_far) or trials % 3 == 2
        v = 0.5 * (near + far) if bisect else near + (far - near) * at_near / (at_near - at_far)
        at_v = -v - y * trial_output(rule, walk, trial, along, squares, y * C / (1.0 + np.exp(-v)) - beta)
        if at_v * first >= 0.0:
            near, at_near = v, at_v
            if abs(at_v) <= 1e-3 * min(abs(first), 1.0):
                break
        else:
            far, at_far = v, at_v
        if abs(far - near) <= 1e-12 * (1.0 + abs(v)):
            break
    # The near end lies between the start and the maximum.
    return y * C / (1.0 + np.exp(-near)) - beta


@njit(cache=True, nogil=True)
def ascend_output(rule, walk, trial, y, C, beta, along, squares):
    """Return the exact step of one output: the change of its coefficient."""
    if rule.loss == LOGISTIC:
        return logistic_ascent(rule, walk, trial, along, squares, y, beta, C)
    z = 0.0
    for k in range(squares.size):
        z += walk.coef[k] * along[k]
    rise, bend, low, high = y, 0.0, -C, C
    if rule.loss == HINGE:
        low, high = min(0.0, y * C), max(0.0, y * C)
    elif rule.loss == SQUARED:
        rise, bend, low, high = y - beta / C, 1.0 / C, -np.inf, np.inf
    elif rule.loss == SQUARED_HINGE:
        rise, bend = y - 0.5 * beta / C, 0.5 / C
        low, high = (0.0, np.inf) if y > 0.0 else (-np.inf, 0.0)
    else:
        sign = np.sign(beta) if beta != 0.0 else np.sign(y - z)
        rise = y - sign * rule.epsilon
        if beta == 0.0 and sign * (rise - z) <= 0.0:
            return 0.0
        low, high = min(0.0, sign * C), max(0.0, sign * C)
    if rise > z:
        return longest_ascent(rule, walk, trial, along, squares, 1.0, rise, bend, high - beta)
    return -longest_ascent(rule, walk, trial, along, squares, -1.0, -rise, bend, beta - low)


@njit(cache=True, nogil=True)
def ascend_pairs(rule, walk, trial, label, C, given_beta, given_scores, squares, z, g):
    """Write the exact steps of the multiclass hinge loss at a sample to g: the worst pair of classes, a few times.

    Moving along e_s - e_r raises the dual by z_r - z_s, where all but the own class count 1 more.
    """
    moved = False
    beta, scores = given_beta.copy(), given_scores.copy()
    along, doubled = np.empty(squares.size), np.empty(squares.size)
    for _ in range(_PAIRS):
        r, s, high, low = -1, -1, -np.inf, np.inf
        for c in range(z.size):
            level = z[c] + (0.0 if c == label else 1.0)
            if level > high and (c != label or beta[c] > 0.0):
                r, high = c, level
            if level < low and (beta[c] < C if c == label else beta[c] < 0.0):
                s, low = c, level
        if r < 0 or s < 0 or high - low <= _EQUAL:
            break
        limit = min(np.inf if r != label else beta[r], C - beta[s] if s == label else -beta[s])
        rise = (1.0 if s == label else 0.0) - (1.0 if r == label else 0.0)
        for k in range(squares.size):
            along[k], doubled[k] = scores[s, k] - scores[r, k], 2.0 * squares[k]
        step = longest_ascent(rule, walk, trial, along, doubled, 1.0, rise, 0.0, limit)
        if step == 0.0:
            break
        moved = True
        for c, change in ((s, step), (r, -step)):
            g[c] += change
            # What is left over from a bound is rounding.
            beta[c] = 0.0 if abs(beta[c] + change) <= 1e-14 * C else beta[c] + change
            for k in range(squares.size):
                walk.squared[k] += change * (2.0 * scores[c, k] + change * squares[k])
                scores[c, k] += change * squares[k]
        refresh(rule, walk)
        outputs(scores, walk.coef, z)
    walk.clock[MADE_FOR] = 0.0
    return moved


@njit(cache=True, nogil=True, inline="always")
def ascend(rule, walk, trial, y, C, beta, scores, squares, z, g):
    """Write the exact step at a sample to g: one output after the other, or one pair of classes."""
    for c in range(g.size):
        g[c] = 0.0
    if rule.loss == MULTICLASS_HINGE:
        return ascend_pairs(rule, walk, trial, int(y[0]), C, beta, scores, squares, z, g)
    moved = False
    for c in range(z.size):
        if c > 0 and moved:
            refresh(rule, walk)
        step = ascend_output(rule, walk, trial, y[c], C, beta[c], scores[c], squares)
        if step != 0.0:
            g[c] = step
            moved = True
            for k in range(squares.size):
                walk.squared[k] += step * (2.0 * scores[c, k] + step * squares[k])
            walk.clock[MADE_FOR] = 0.0
    return moved


@njit(cache=True, nogil=True)
def foresee(rule, walk, trial, y, gain, scores, squares, z, g):
    """Write minus the gradient of a squared loss to g, taken where the step leads, not where it starts.

    That gradient is not bounded: with the first steps, which are long, it would grow without end. The loss is half the
    squared residual, or twice that where the residual has the sign of y, and 0 elsewhere: the squared hinge.
    """
    loss, offset = 0.0, 0.0
    is_hinge = rule.loss == SQUARED_HINGE
    curvature = 2.0 if is_hinge else 1.0
    trial.clock[NOW] = walk.clock[NOW] + 1.0
    for c in range(z.size):
        step, bend, short = 0.0, 1.0 / (curvature * gain), y[c] - z[c]
        if not is_hinge or y[c] > 0.0:
            step = longest_ascent(rule, walk, trial, scores[c], squares, 1.0, y[c], bend, np.inf)
        if step == 0.0 and (not is_hinge or y[c] < 0.0):
            step = -longest_ascent(rule, walk, trial, scores[c], squares, -1.0, -y[c], bend, np.inf)
        g[c] = step / gain
        if not is_hinge or short * y[c] > 0.0:
            loss += 0.5 * curvature * short**2
        offset += g[c] * y[c] - 0.5 * g[c] * g[c] / curvature
    return loss, offset


@njit(cache=True, nogil=True)
def trial_walk(walk):
    """Return room for the trials of an exact step."""
    return Walk(np.empty_like(walk.squared), np.empty_like(walk.coef), np.array([1.0, 0.0]), walk.totals, walk.area)


@njit(cache=True, nogil=True, inline="always")
def step_at(rule, walk, trial, scores, squares, y, gain, beta, z, g):
    """Take a step at a sample with these scores: write it to g, and return whether it moves anything."""
    look(rule, walk, scores, z)
    if rule.exact:
        return ascend(rule, walk, trial, y, gain, beta, scores, squares, z, g)
    if rule.loss in (SQUARED, SQUARED_HINGE):
        loss, offset = foresee(rule, walk, trial, y, gain, scores, squares, z, g)
    else:
        loss, offset = descent(rule, y, z, g)
    count(walk, loss, offset, gain, g)
    return move(walk, scores, squares, g)


# -- theta as a sum over samples ------------------------------------------------------------------------------------


class Scores(NamedTuple):
    """The scores of samples with theta, and what they have not heard of yet.

    ``scores`` (n, n_outputs, m) with ``seen`` (n,), the number of entries of the log that they include; ``beta``
    (n, n_outputs) and ``visits`` (n,), the sum and the number of the steps at a sample; the log's ``samples`` and
    ``steps`` (length, n_outputs) and ``length`` (1,); ``debt`` (n, n_outputs, m) sums step times area, for the average.
    """

    scores: np.ndarray
    seen: np.ndarray
    beta: np.ndarray
    visits: np.ndarray
    samples: np.ndarray
    steps: np.ndarray
    length: np.ndarray
    debt: np.ndarray


@njit(cache=True, nogil=True)
def pair(i, j, n, place):
    """Return the row of the values that holds the pair: of a triangle, or of whole rows from ``place`` on."""
    if place >= 0:
        return place * n + j
    if i > j:
        i, j = j, i
    return i * n - i * (i - 1) // 2 + j - i


@njit(cache=True, nogil=True)
def catch_up(s, values, i, place):
    """Let the scores of sample i hear of the steps since they were last looked at."""
    n = s.beta.shape[0]
    for u in range(s.seen[i], s.length[0]):
        row = values[pair(i, s.samples[u], n, place)]
        for c in range(s.beta.shape[1]):
            g = s.steps[u, c]
            if g != 0.0:
                scores = s.scores[i, c]
                for k in range(row.size):
                    scores[k] += g * row[k]
    s.seen[i] = s.length[0]


@njit(cache=True, nogil=True)
def catch_up_all(s, values, chosen, places):
    """Do so for several samples."""
    for index in range(chosen.size):
        catch_up(s, values, chosen[index], places[index])


@njit(cache=True, nogil=True)
def enter(walk, s, i, g):
    """Enter a step at sample i in the log."""
    u = s.length[0]
    s.samples[u] = i
    s.length[0] = u + 1
    for c in range(g.size):
        s.steps[u, c] = g[c]
        s.beta[i, c] += g[c]
    if walk.area.size:
        for c in range(g.size):
            for k in range(walk.area.size):
                s.debt[i, c, k] += g[c] * walk.area[k]


@njit(cache=True, nogil=True)
def walk_samples(rule, walk, s, values, squares, y, gain, order, places):
    """Take a step at each sample of ``order``; ``gain`` (n,) multiplies its loss."""
    z, g, trial = np.empty(s.beta.shape[1]), np.empty(s.beta.shape[1]), trial_walk(walk)
    for index in range(order.size):
        i = order[index]
        catch_up(s, values, i, places[index])
        s.visits[i] += 1.0
        if step_at(rule, walk, trial, s.scores[i], squares[i], y[i], gain[i], s.beta[i], z, g):
            enter(walk, s, i, g)


@njit(cache=True, nogil=True)
def add_norms(values, beta, support, rows, out):
    """Add sum_c beta_ic beta_jc k_k(i, j) over the pairs i in ``rows``, j <= i of the support to out (m,)."""
    n = beta.shape[0]
    for a in rows:
        i = support[a]
        for b in range(a + 1):
            j = support[b]
            total = 0.0
            for c in range(beta.shape[1]):
                total += beta[i, c] * beta[j, c]
            if total != 0.0:
                total *= 1.0 if a == b else 2.0
                row = values[pair(i, j, n, -1)]
                for k in range(out.size):
                    out[k] += total * row[k]


@njit(cache=True, nogil=True)
def add_components(values, W, chosen, places, out):
    """Add the scores with the components W (n, n_outputs, m) to out, shaped alike, for the chosen samples."""
    n = W.shape[0]
    for index in range(chosen.size):
        i = chosen[index]
        for j in range(n):
            row = values[pair(i, j, n, places[index])]
            for c in range(W.shape[1]):
                for k in range(row.size):
                    out[i, c, k] += W[j, c, k] * row[k]


# -- theta as a vector ----------------------------------------------------------------------------------------------


class Vector(NamedTuple):
    """theta (n_outputs, n_features), where each kernel's features begin, and, for the average, step times area."""

    theta: np.ndarray
    first: np.ndarray
    debt: np.ndarray


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def project(v, phi, scores, squares):
    """Write the inner products of theta_k and of phi_k with phi_k, for every kernel."""
    for k in range(squares.size):
        low, high = v.first[k], v.first[k + 1]
        total = 0.0
        for d in range(low, high):
            total += phi[d] * phi[d]
        squares[k] = total
        for c in range(v.theta.shape[0]):
            total = 0.0
            for d in range(low, high):
                total += v.theta[c, d] * phi[d]
            scores[c, k] = total


@njit(cache=True, nogil=True)
def add_features(walk, v, phi, g):
    """Add g phi to theta."""
    for c in range(g.size):
        if g[c] != 0.0:
            for d in range(phi.size):
                v.theta[c, d] += g[c] * phi[d]
            if walk.area.size:
                for k in range(v.first.size - 1):
                    for d in range(v.first[k], v.first[k + 1]):
                        v.debt[c, d] += g[c] * walk.area[k] * phi[d]


@njit(cache=True, nogil=True)
def walk_features(rule, walk, v, phi, y, gain, order, beta, visits, remembers):
    """Take a step at each row of phi, sample ``order[row]``; ``beta`` and ``visits`` keep it if asked to."""
    n_outputs, m = v.theta.shape[0], v.first.size - 1
    scores, squares = np.empty((n_outputs, m)), np.empty(m)
    z, g, trial = np.empty(n_outputs), np.empty(n_outputs), trial_walk(walk)
    for row in range(phi.shape[0]):
        i = order[row]
        project(v, phi[row], scores, squares)
        moved = step_at(rule, walk, trial, scores, squares, y[i], gain[i], beta[i if remembers else 0], z, g)
        if remembers:
            for c in range(n_outputs):
                beta[i, c] += g[c]
            visits[i] += 1.0
        if moved:
            add_features(walk, v, phi[row], g)
