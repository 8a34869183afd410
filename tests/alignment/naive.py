"""Alignment by its definition, with full centered matrices, and its maximum by other people's solvers.

Nothing here imports the library.
"""

import cvxpy as cp
import numpy as np
from scipy.optimize import nnls


def gaussian(X, width):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * width**2))


def gaussian_minus_one(X, width):
    """A Gaussian kernel up to a constant, which centering takes away, with all digits however wide it is."""
    return np.expm1(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * width**2))


def of_mean_diagonal_one(K, weight=None):
    return K / np.average(np.diag(K), weights=weight)


def centered(K, weight=None):
    """H K H' with H = I - 1 w' / sum(w)."""
    weight = np.ones(len(K)) if weight is None else np.asarray(weight, float)
    H = np.eye(len(K)) - np.outer(np.ones(len(K)), weight) / weight.sum()
    return H @ K @ H.T


def same_class(y):
    """The sum of the outer products of the one-hot columns."""
    return np.equal.outer(y, y).astype(float)


def flat(K, weight=None):
    """A centered matrix as a vector, so that <K, L>_w is a product of two vectors."""
    root = np.ones(len(K)) if weight is None else np.sqrt(np.asarray(weight, float))
    return (centered(K, weight) * np.outer(root, root)).ravel()


def alignment(K, L, weight=None):
    a, b = flat(K, weight), flat(L, weight)
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


def best(matrices, L, weight=None):
    """The best alignment of a non-negative combination and its weights, by SciPy's non-negative least squares."""
    columns = np.array([flat(K, weight) for K in matrices]).T
    norms = np.linalg.norm(columns, axis=0)
    d = nnls(columns / norms, flat(L, weight), maxiter=50 * len(norms))[0] / norms
    return alignment(np.tensordot(d, matrices, 1), L, weight), d / d.sum()


def on_the_unit_ball(matrices, L, weight=None):
    """Problem 2.11: maximize b't subject to t'Gt <= 1 and t >= 0, by CVXPY."""
    A, b = _factor(matrices, L, weight)
    t = cp.Variable(len(matrices), nonneg=True)
    return _solved(cp.Problem(cp.Maximize(b @ t), [cp.norm(A @ t) <= 1]), t)


def with_a_price(matrices, L, C, weight=None):
    """Problem 2.12: minimize C m'Gm - b'm subject to m >= 0, by CVXPY."""
    A, b = _factor(matrices, L, weight)
    mu = cp.Variable(len(matrices), nonneg=True)
    return _solved(cp.Problem(cp.Minimize(C * cp.sum_squares(A @ mu) - b @ mu)), mu)


def _factor(matrices, L, weight):
    """A with A'A = G, and b, for a target of norm 1."""
    target = flat(L, weight)
    columns = np.array([flat(K, weight) for K in matrices]).T
    Q, R = np.linalg.qr(columns)
    return R, R.T @ (Q.T @ target) / np.linalg.norm(target)


def _solved(problem, weights):
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert problem.status in ("optimal", "optimal_inaccurate")
    return np.maximum(weights.value, 0.0)
