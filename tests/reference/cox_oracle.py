"""Cox's partial likelihood by its definition, event by event; it shares no code with the library."""

import cvxpy as cp
import numpy as np


def loss(event, time, z, C):
    """Sum over events of C_i (log of the risk of all who are there - z_i), less its least value."""
    total = 0.0
    for t in np.unique(time[event]):
        dead, there = event & (time == t), time >= t
        top = z[there].max()
        risk = np.log(np.sum(C[there] * np.exp(z[there] - top))) + top
        total += C[dead].sum() * (risk - np.log(C[dead].sum())) - C[dead] @ z[dead]
    return total


def slope(event, time, z, C):
    """Its gradient, event by event."""
    out = -np.where(event, C, 0.0)
    for i in np.flatnonzero(event):
        there = time >= time[i]
        chances = C[there] * np.exp(z[there] - z[there].max())
        out[there] += C[i] * chances / chances.sum()
    return out


def hessian(event, time, z, C):
    out = np.zeros((z.size, z.size))
    for i in np.flatnonzero(event):
        chances = np.where(time >= time[i], C * np.exp(z - z.max()), 0.0)
        chances /= chances.sum()
        out += C[i] * (np.diag(chances) - np.outer(chances, chances))
    return out


def solve(grams, event, time, C, p):
    """Optimal value of 1/2 N(a)^2 + loss, over one function for each Gram matrix, by CVXPY and Clarabel."""
    norms, f = [], 0.0
    for gram in grams:
        values, vectors = np.linalg.eigh(gram)
        kept = values > 1e-10 * values[-1]
        v = cp.Variable(int(kept.sum()))
        f = f + (vectors[:, kept] * np.sqrt(values[kept])) @ v
        norms.append(cp.norm(v))
    a = cp.hstack(norms)
    exponent = 2 * p / (1 + p)
    regularizer = 0.5 * cp.square(cp.sum(a) if p == 1 else cp.pnorm(a, exponent))
    total = -cp.sum(cp.multiply(np.where(event, C, 0.0), f))
    for t in np.unique(time[event]):
        dead, there = C[event & (time == t)].sum(), np.flatnonzero(time >= t)
        total = total + dead * (cp.log_sum_exp(f[there] + np.log(C[there])) - np.log(dead))
    problem = cp.Problem(cp.Minimize(regularizer + total))
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return problem.value


def naive_newton(X, event, time, C, ridge):
    """Coefficients of the linear Cox model, minimizing ridge/2 |w|^2 + loss, by dense Newton steps."""
    w = np.zeros(X.shape[1])
    for _ in range(50):
        z = X @ w
        w = w - np.linalg.solve(
            X.T @ hessian(event, time, z, C) @ X + ridge * np.eye(w.size),
            X.T @ slope(event, time, z, C) + ridge * w,
        )
    return w


def concordance(event, time, risk, weight):
    """Harrell's index, pair by pair."""
    better = comparable = 0.0
    for i in np.flatnonzero(event):
        others = (time > time[i]) | ((time == time[i]) & ~event)
        apart = risk[i] - risk[others]
        pairs = weight[i] * weight[others]
        comparable += pairs.sum()
        better += pairs @ np.where(np.abs(apart) <= 1e-8, 0.5, apart > 0)
    return better / comparable


def random_times(n, seed, risk=0.0, ties=True):
    """Random events and times, with many ties."""
    rng = np.random.default_rng(seed)
    time, seen = rng.exponential(size=n) * np.exp(-risk), rng.exponential(1.5, size=n)
    event = time <= seen
    time = np.minimum(time, seen)
    return event, np.ceil(6 * time) if ties else time
