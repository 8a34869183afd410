"""Naive reference oracles for multiple kernel learning, written from the definitions.

Nothing here imports the library. Speed does not matter; being obviously right does.

    primal: minimize  1/2 N(a)^2 + sum_i C_i loss(y_i, f(x_i) + b),   a_k = ||f_k||,  f = sum_k f_k
    dual:   maximize  -sum_i conj_i(beta_i) - 1/2 N*(sqrt(q))^2,      q_k = beta' K_k beta
            subject to 1'beta = 0 when there is an intercept

N is the r-norm with r = 2p/(1+p), and N*(sqrt(q))^2 is the p/(p-1)-norm of q. With several tasks, ``y``
and ``beta`` have shape (t, n), the losses are summed over tasks, and so are q_k and a_k^2.
"""

import warnings

import cvxpy as cp
import numpy as np
from scipy.special import xlogy

LOSSES = (
    "hinge",
    "squared_hinge",
    "logistic",
    "squared",
    "epsilon_insensitive",
    "absolute",
    "quantile",
    "huber",
)
# Of the quantile loss and of Huber's, with the defaults of the library.
SHARE, DELTA = 0.5, 1.0

_BOX_SLACK = 1e-9
_TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
_LOOSE = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-8, "tol_feas": 1e-8}
# At these tolerances Clarabel often stalls; the same problem in another numerical form usually does not.
_ATTEMPTS = (
    _TIGHT,
    {**_TIGHT, "use_quad_obj": False},
    {**_TIGHT, "max_step_fraction": 0.9},
    {**_TIGHT, "use_quad_obj": False, "max_step_fraction": 0.9},
    {**_TIGHT, "static_regularization_constant": 1e-7},
    {**_TIGHT, "static_regularization_constant": 1e-7, "use_quad_obj": False},
    {**_TIGHT, "use_quad_obj": False, "equilibrate_enable": False},
    _LOOSE,
    {**_LOOSE, "static_regularization_constant": 1e-7},
    {**_LOOSE, "use_quad_obj": False},
)


# ---------------------------------------------------------------------------------------------------------
# losses


def loss_value(name, y, z, epsilon=0.1):
    """Loss of each sample at the decision value ``z`` (without the factor C)."""
    y, z = np.asarray(y, dtype=float), np.asarray(z, dtype=float)
    size = np.abs(y - z)
    return {
        "hinge": lambda: np.maximum(0.0, 1.0 - y * z),
        "squared_hinge": lambda: np.maximum(0.0, 1.0 - y * z) ** 2,
        "logistic": lambda: np.logaddexp(0.0, -y * z),
        "squared": lambda: 0.5 * (y - z) ** 2,
        "epsilon_insensitive": lambda: np.maximum(0.0, size - epsilon),
        "absolute": lambda: size,
        "quantile": lambda: np.where(y > z, SHARE, 1.0 - SHARE) * size,
        "huber": lambda: np.where(size <= DELTA, 0.5 * size**2, DELTA * (size - 0.5 * DELTA)),
        "one_class": lambda: np.maximum(0.0, -z) + 0.0 * y,
    }[name]()


def conjugate(name, y, beta, C, epsilon=0.1):
    """Value of sup_z(-beta z - C loss(y, z)) of each sample; infinite outside the domain.

    The domain is widened by 1e-9 C on each side. A sample with C = 0 has no loss: only beta = 0 is finite.
    """
    y, beta, C = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (y, beta, C)))
    present = C > 0
    cost = np.where(present, C, 1.0)
    slack = _BOX_SLACK * cost
    if name == "hinge":
        value = -y * beta
        inside = (y * beta >= -slack) & (y * beta <= cost + slack)
    elif name == "squared_hinge":
        value = -y * beta + beta**2 / (4.0 * cost)
        inside = y * beta >= -slack
    elif name == "logistic":
        s = np.clip(y * beta / cost, 0.0, 1.0)
        value = cost * (xlogy(s, s) + xlogy(1.0 - s, 1.0 - s))
        inside = (y * beta >= -slack) & (y * beta <= cost + slack)
    elif name == "squared":
        value = -y * beta + beta**2 / (2.0 * cost)
        inside = np.isfinite(beta)
    elif name == "epsilon_insensitive":
        value = -y * beta + epsilon * np.abs(beta)
        inside = np.abs(beta) <= cost + slack
    elif name == "absolute":
        value = -y * beta
        inside = np.abs(beta) <= cost + slack
    elif name == "quantile":
        value = -y * beta
        inside = (beta <= SHARE * cost + slack) & (beta >= -(1.0 - SHARE) * cost - slack)
    elif name == "huber":
        value = -y * beta + beta**2 / (2.0 * cost)
        inside = np.abs(beta) <= DELTA * cost + slack
    elif name == "one_class":
        value = np.zeros(beta.shape)
        inside = (beta >= -slack) & (beta <= cost + slack)
    else:
        raise ValueError(f"unknown loss {name!r}")
    value = np.where(inside, value, np.inf)
    return np.where(present, value, np.where(beta == 0, 0.0, np.inf))


# ---------------------------------------------------------------------------------------------------------
# norms


def primal_norm(a, p):
    """N(a) = ||a||_r with r = 2p/(1+p), for a nonnegative vector ``a``."""
    r = 2.0 if np.isinf(p) else 2.0 * p / (1.0 + p)
    return _vector_norm(a, r)


def dual_penalty(q, p):
    """N*(sqrt(q))^2 = ||q||_{p/(p-1)}, for a nonnegative vector ``q``."""
    return _vector_norm(q, _conjugate_exponent(p))


def _conjugate_exponent(p):
    """Exponent p/(p-1), with the two limits."""
    if p == 1:
        return np.inf
    return 1.0 if np.isinf(p) else p / (p - 1.0)


def _vector_norm(x, s):
    """s-norm of a nonnegative vector, divided by its largest entry first so that powers do not overflow."""
    x = np.asarray(x, dtype=float)
    top = x.max()
    if top == 0 or np.isinf(s):
        return float(top)
    return float(top * np.sum((x / top) ** s) ** (1.0 / s))


# ---------------------------------------------------------------------------------------------------------
# certificate


def certificate(grams, y, C, loss, p, weights, beta, intercept, fit_intercept=True, epsilon=0.1):
    """Primal value, dual value and relative gap of a candidate solution, from the definitions.

    Any weights >= 0, any intercept and any feasible beta give valid bounds: dual <= optimum <= primal. A beta
    outside the domain of the conjugate gives (primal, -inf, inf).
    """
    Y, B = np.atleast_2d(np.asarray(y, dtype=float)), np.atleast_2d(np.asarray(beta, dtype=float))
    weights = np.asarray(weights, dtype=float)
    assert Y.shape == B.shape, (Y.shape, B.shape)
    assert len(weights) == len(grams), (len(weights), len(grams))
    assert np.all(weights >= 0), "a weight is negative"
    n_tasks = len(Y)
    costs = np.broadcast_to(np.asarray(C, dtype=float), Y.shape)
    b = np.broadcast_to(np.asarray(intercept, dtype=float), (n_tasks,))
    if fit_intercept:
        for t in range(n_tasks):
            imbalance, size = abs(B[t].sum()), np.abs(B[t]).sum()
            assert imbalance <= 1e-7 * size, f"task {t}: |sum beta| = {imbalance}, sum |beta| = {size}"
    else:
        assert np.all(b == 0), "an intercept without fit_intercept"

    q = np.zeros(len(grams))
    decision = np.zeros(Y.shape)
    for k, K in enumerate(grams):
        for t in range(n_tasks):
            K_beta = K @ B[t]
            q[k] += B[t] @ K_beta
            decision[t] += weights[k] * K_beta
    q = np.maximum(q, 0.0)
    a = weights * np.sqrt(q)

    primal = 0.5 * primal_norm(a, p) ** 2
    dual = -0.5 * dual_penalty(q, p)
    for t in range(n_tasks):
        primal += float(np.sum(costs[t] * loss_value(loss, Y[t], decision[t] + b[t], epsilon)))
        dual -= float(np.sum(conjugate(loss, Y[t], B[t], costs[t], epsilon)))
    return primal, dual, _relative_gap(primal, dual)


def _relative_gap(primal, dual):
    """(primal - dual) / max(|primal|, |dual|); infinite for an infeasible candidate, 0 for 0 and 0."""
    if not (np.isfinite(primal) and np.isfinite(dual)):
        return np.inf
    scale = max(abs(primal), abs(dual))
    return (primal - dual) / scale if scale > 0 else 0.0


def one_class_certificate(grams, weight, nu, p, weights, a, rho):
    """(primal, dual, relative gap) of the one-class problem, from the definitions; a must be feasible.

    primal: minimize  1/2 N(norms)^2 + sum_i s_i max(0, rho - f(x_i)) - nu rho sum_i s_i
    dual:   maximize  -1/2 N*(sqrt(q))^2,   0 <= a <= s,   1'a = nu 1's
    """
    a, weight = np.asarray(a, dtype=float), np.asarray(weight, dtype=float)
    assert np.all(a >= 0), a.min()
    assert np.all(a <= weight * (1 + 1e-12)), (a - weight).max()
    assert abs(a.sum() - nu * weight.sum()) <= 1e-9 * a.sum(), (a.sum(), nu * weight.sum())
    q = np.array([max(a @ K @ a, 0.0) for K in grams])
    scores = sum(d * (K @ a) for d, K in zip(weights, grams, strict=True))
    size = primal_norm(np.asarray(weights) * np.sqrt(q), p)
    primal = 0.5 * size**2 + float(weight @ np.maximum(0.0, rho - scores)) - nu * rho * weight.sum()
    dual = -0.5 * dual_penalty(q, p)
    return primal, dual, _relative_gap(primal, dual)


def svm_dual_value(K, y, C, beta):
    """Hinge dual of one kernel, y'beta - 1/2 beta'K beta; -inf when beta is outside the box."""
    y, beta = np.asarray(y, dtype=float), np.asarray(beta, dtype=float)
    if not np.all(np.isfinite(conjugate("hinge", y, beta, C))):
        return -np.inf
    return float(y @ beta - 0.5 * (beta @ (K @ beta)))


# ---------------------------------------------------------------------------------------------------------
# convex programs


def solve_dual(grams, y, C, loss, p, fit_intercept=True, epsilon=0.1):
    """Optimal (value, beta) of the dual, by CVXPY and Clarabel; beta has the shape of ``y``.

    With g_k >= ||L_k'beta|| = sqrt(q_k), the penalty ||q||_{p/(p-1)} is the square of ||g||_{2p/(p-1)}. The
    variable of the program is beta / unit and its objective is divided by unit, to have numbers near 1.
    """
    Y, costs = _tasks(y, C)
    unit = costs.mean() if loss == "logistic" else min(1.0, costs.mean())
    s = cp.Variable(Y.shape)
    g = cp.Variable(len(grams), nonneg=True)
    constraints = [_frobenius(s @ _factor(K)) <= g[k] for k, K in enumerate(grams)]
    norm, norm_constraints = _dual_norm_expression(g, p)
    conj, domain = _conjugate_expression(loss, Y, s, costs / unit, epsilon)
    constraints += norm_constraints + domain
    if fit_intercept:
        constraints.append(cp.sum(s, axis=1) == 0)
    value = _solve(cp.Problem(cp.Maximize(-conj - 0.5 * unit * cp.square(norm)), constraints))
    beta = _into_domain(loss, Y, unit * s.value, costs)
    return float(unit * value), beta.reshape(np.shape(y))


def solve_one_class(grams, weight, nu, p):
    """Optimal value of the one-class problem, from its dual; the variable of the program sums to 1."""
    weight = np.asarray(weight, dtype=float)
    total = nu * weight.sum()
    s, g = cp.Variable((1, weight.size)), cp.Variable(len(grams), nonneg=True)
    constraints = [_frobenius(s @ _factor(K)) <= g[k] for k, K in enumerate(grams)]
    norm, norm_constraints = _dual_norm_expression(g, p)
    constraints += [*norm_constraints, s >= 0, s <= weight[None] / total, cp.sum(s) == 1]
    return float(total**2 * _solve(cp.Problem(cp.Maximize(-0.5 * cp.square(norm)), constraints)))


def solve_penalized(grams, y, C, loss, p, strength, fit_intercept=True, epsilon=0.1):
    """Optimal value with the weights penalized by strength/p sum d^p, from the dual.

    The conjugate of the penalty at q/2 is strength/p* sum_k (q_k / (2 strength))^p*, for p = 1 the constraint
    q_k <= 2 strength; with g_k >= ||L_k'beta|| = sqrt(q_k).
    """
    Y, costs = _tasks(y, C)
    beta = cp.Variable(Y.shape)
    g = cp.Variable(len(grams), nonneg=True)
    unit = np.sqrt(2 * strength)
    constraints = [_frobenius(beta @ _factor(K)) <= unit * g[k] for k, K in enumerate(grams)]
    conj, domain = _conjugate_expression(loss, Y, beta, costs, epsilon)
    constraints += domain + ([cp.sum(beta, axis=1) == 0] if fit_intercept else [])
    if p == 1:
        return float(_solve(cp.Problem(cp.Maximize(-conj), [*constraints, g <= 1])))
    dual = p / (p - 1)
    penalty = strength / dual * cp.sum(cp.power(g, 2 * dual))
    return float(_solve(cp.Problem(cp.Maximize(-conj - penalty), constraints)))


def solve_primal(grams, y, C, loss, p, fit_intercept=True, epsilon=0.1):
    """Optimal value of the primal, over the component functions."""
    return primal_solution(grams, y, C, loss, p, fit_intercept, epsilon)[0]


def primal_solution(grams, y, C, loss, p, fit_intercept=True, epsilon=0.1):
    """Optimal (value, norms a (m,), intercept (t,)) of the primal.

    The component f_k takes the values L_k w_k on the samples, K_k = L_k L_k', and has norm ||w_k||.
    """
    return _primal(grams, y, C, loss, lambda a: _primal_norm_expression(a, p), fit_intercept, epsilon)


def solve_mixed(grams, y, C, loss, q, groups, fit_intercept=True, epsilon=0.1):
    """Optimal value of the primal with the mixed norm (sum_j (sum of a in group j)^2q)^(1/2q)."""
    member = np.array([[own == name for own in groups] for name in sorted(set(groups))], dtype=float)
    s = 2.0 * q

    def norm_expression(a):
        sums = member @ a
        plain = {1.0: cp.sum, 2.0: lambda x: cp.norm(x, 2), np.inf: cp.max}.get(s)
        return (plain(sums), []) if plain else _power_cone_norm(sums, s)

    return _primal(grams, y, C, loss, norm_expression, fit_intercept, epsilon)[0]


def mixed_certificate(grams, y, C, loss, q, groups, weights, beta, intercept, epsilon=0.1):
    """(primal, dual, relative gap) of the mixed norm, from weights, beta (t, n) and intercepts alone."""
    Y, costs = _tasks(y, C)
    beta = np.atleast_2d(beta)
    forms = np.array([sum(b @ K @ b for b in beta) for K in grams])
    names = sorted(set(groups))
    norms = np.asarray(weights) * np.sqrt(np.maximum(forms, 0.0))
    sums = np.array([sum(norms[k] for k in range(len(grams)) if groups[k] == name) for name in names])
    largest = np.array([max(forms[k] for k in range(len(grams)) if groups[k] == name) for name in names])
    size = sums.max() if np.isinf(q) else np.sum(sums ** (2 * q)) ** (1 / (2 * q))
    conjugate_power = 1.0 if np.isinf(q) else np.inf if q == 0.5 else 2 * q / (2 * q - 1)
    dual_size = _vector_norm(np.sqrt(np.maximum(largest, 0.0)), conjugate_power)
    decision = beta @ sum(w * K for w, K in zip(weights, grams, strict=True)) + np.asarray(intercept)[:, None]
    primal = 0.5 * size**2 + np.sum(costs * loss_value(loss, Y, decision, epsilon))
    dual = -np.sum(conjugate(loss, Y, beta, costs, epsilon)) - 0.5 * dual_size**2
    return primal, dual, _relative_gap(primal, dual)


def _primal(grams, y, C, loss, norm_expression, fit_intercept, epsilon):
    Y, costs = _tasks(y, C)
    unit = min(1.0, costs.mean())
    a = cp.Variable(len(grams), nonneg=True)
    b = cp.Variable((len(Y), 1))
    constraints = [] if fit_intercept else [b == 0]
    decision = b @ np.ones((1, Y.shape[1]))
    for k, K in enumerate(grams):
        L = _factor(K)
        w = cp.Variable((len(Y), L.shape[1]))
        constraints.append(_frobenius(w) <= a[k])
        decision = decision + w @ L.T
    norm, norm_constraints = norm_expression(a)
    losses = _loss_expression(loss, Y, decision, epsilon)
    objective = 0.5 / unit * cp.square(norm) + cp.sum(cp.multiply(costs / unit, losses))
    value = _solve(cp.Problem(cp.Minimize(objective), constraints + norm_constraints))
    return float(unit * value), np.maximum(a.value, 0.0), b.value.ravel()


def _tasks(y, C):
    """Targets and costs as (t, n) arrays."""
    Y = np.atleast_2d(np.asarray(y, dtype=float))
    costs = np.array(np.broadcast_to(np.asarray(C, dtype=float), Y.shape))
    assert np.all(costs > 0), "the convex programs need C > 0: drop the samples without weight"
    return Y, costs


def _factor(K):
    """L (n, rank) with K = L L', leaving out eigenvalues at the level of rounding."""
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    floor = len(K) * np.finfo(float).eps * max(values[-1], 0.0)
    assert values[0] >= -100 * floor, "a Gram matrix is not positive semidefinite"
    kept = values > floor
    if not np.any(kept):
        return np.zeros((len(K), 1))
    return vectors[:, kept] * np.sqrt(values[kept])


def _into_domain(name, Y, beta, costs):
    """Remove what the solver's tolerance leaves outside the domain of the conjugate."""
    if name in ("hinge", "logistic"):
        return Y * np.clip(Y * beta, 0.0, costs)
    if name == "squared_hinge":
        return Y * np.maximum(Y * beta, 0.0)
    if name in ("epsilon_insensitive", "absolute"):
        return np.clip(beta, -costs, costs)
    if name == "quantile":
        return np.clip(beta, -(1.0 - SHARE) * costs, SHARE * costs)
    if name == "huber":
        return np.clip(beta, -DELTA * costs, DELTA * costs)
    return beta


def _solve(problem):
    """Value by the first attempt that Clarabel calls optimal; if there is none, that is an error."""
    statuses = []
    for settings in _ATTEMPTS:
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Solution may be inaccurate")
                problem.solve(solver=cp.CLARABEL, warm_start=False, max_iter=500, **settings)
            statuses.append(problem.status)
        except cp.error.SolverError:
            statuses.append("failed")
        if statuses[-1] == cp.OPTIMAL:
            return float(problem.value)
    raise RuntimeError(f"Clarabel found no optimum, statuses {statuses}, last value {problem.value}")


def _frobenius(matrix):
    """Square root of the sum of the squared entries of a CVXPY matrix."""
    return cp.norm(cp.vec(matrix, order="C"), 2)


def _power_cone_norm(x, s):
    """Epigraph variable T >= ||x||_s of a nonnegative vector, for any finite s > 1, and its constraints.

    x_k <= v_k^(1/s) T^(1-1/s) and sum_k v_k <= T give sum_k (x_k/T)^s <= 1.
    """
    T = cp.Variable(nonneg=True)
    if x.size == 1:  # CVXPY before 1.7 takes no cone of shape (1,), and the norm of one number is that number
        return T, [cp.sum(x) <= T]
    v = cp.Variable(x.shape, nonneg=True)
    cone = cp.PowCone3D(v, T * np.ones(x.shape), x, np.full(x.shape, 1.0 / s))
    return T, [cone, cp.sum(v) <= T]


def _dual_norm_expression(g, p):
    """||g||_{2p/(p-1)} as (expression, constraints): CVXPY's own norms where exact, else power cones."""
    if p == 1:
        return cp.max(g), []
    if np.isinf(p):
        return cp.norm(g, 2), []
    exponent = 2.0 * _conjugate_exponent(p)
    for exact in (8.0, 4.0, 8.0 / 3.0):
        if np.isclose(exponent, exact, rtol=1e-12, atol=0):
            return cp.pnorm(g, exact), []
    return _power_cone_norm(g, exponent)


def _primal_norm_expression(a, p):
    """||a||_r with r = 2p/(1+p) as (expression, constraints), by power cones between the limits."""
    if p == 1:
        return cp.sum(a), []
    if np.isinf(p):
        return cp.norm(a, 2), []
    return _power_cone_norm(a, 2.0 * p / (1.0 + p))


def _loss_expression(name, Y, z, epsilon):
    """CVXPY expression of the losses, entry by entry."""
    margin = cp.multiply(Y, z)
    return {
        "hinge": lambda: cp.pos(1 - margin),
        "squared_hinge": lambda: cp.square(cp.pos(1 - margin)),
        "logistic": lambda: cp.logistic(-margin),
        "squared": lambda: 0.5 * cp.square(Y - z),
        "epsilon_insensitive": lambda: cp.pos(cp.abs(Y - z) - epsilon),
        "absolute": lambda: cp.abs(Y - z),
        "quantile": lambda: SHARE * cp.pos(Y - z) + (1 - SHARE) * cp.pos(z - Y),
        "huber": lambda: 0.5 * cp.huber(Y - z, DELTA),
    }[name]()


def _conjugate_expression(name, Y, beta, costs, epsilon):
    """CVXPY (sum of the conjugates, domain constraints)."""
    signed = cp.multiply(Y, beta)
    linear = -cp.sum(signed)

    def squares(factor):
        return linear + cp.sum(cp.multiply(1.0 / (factor * costs), cp.square(beta)))

    def entropies():
        s = cp.multiply(1.0 / costs, signed)
        return -cp.sum(cp.multiply(costs, cp.entr(s) + cp.entr(1 - s)))

    return {
        "hinge": lambda: (linear, [signed >= 0, signed <= costs]),
        "squared_hinge": lambda: (squares(4.0), [signed >= 0]),
        "logistic": lambda: (entropies(), []),
        "squared": lambda: (squares(2.0), []),
        "epsilon_insensitive": lambda: (linear + epsilon * cp.sum(cp.abs(beta)), [cp.abs(beta) <= costs]),
        "absolute": lambda: (linear, [cp.abs(beta) <= costs]),
        "quantile": lambda: (linear, [beta <= SHARE * costs, beta >= -(1 - SHARE) * costs]),
        "huber": lambda: (squares(2.0), [cp.abs(beta) <= DELTA * costs]),
    }[name]()


# ---------------------------------------------------------------------------------------------------------
# problems


def random_problem(n, m, seed, task="classification", n_tasks=1):
    """Random (grams, y): m Gram matrices of mean diagonal 1; targets (n,), or (n_tasks, n) if n_tasks > 1.

    The kernels are m - 2 Gaussians from narrow to wide, then a linear one, then a rank-one one (m = 1: a
    Gaussian; m = 2: a Gaussian and the linear one). Classification targets are balanced: two halves for one
    task, n_tasks classes one-vs-rest otherwise. Deterministic in its arguments.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    distances = np.sum((X[:, None, :] - X[None, :, :]) ** 2, axis=2)
    n_gaussians = max(m - 2, 1)
    widths = np.geomspace(0.7, 4.0, n_gaussians) if n_gaussians > 1 else [1.5]
    grams = [np.exp(-distances / (2.0 * width**2)) for width in widths]
    extras = [X @ X.T, np.outer(X[:, 0], X[:, 0])]
    grams += extras[: m - n_gaussians]
    grams = [_mean_diagonal_one(K) for K in grams]

    signal = X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.5 * X[:, 2] * X[:, 3]
    if task == "classification":
        score = signal + 0.5 * rng.standard_normal(n)
        rank = np.argsort(np.argsort(score))
        n_classes = max(n_tasks, 2)
        labels = rank * n_classes // n
        if n_tasks == 1:
            return grams, np.where(labels == 1, 1.0, -1.0)
        return grams, np.array([np.where(labels == c, 1.0, -1.0) for c in range(n_classes)])
    if task == "regression":
        mix = rng.standard_normal((n_tasks, 1))
        Y = signal + mix * np.cos(X[:, 4]) + 0.3 * rng.standard_normal((n_tasks, n))
        return grams, Y[0] if n_tasks == 1 else Y
    raise ValueError(f"unknown task {task!r}")


def _mean_diagonal_one(K):
    """Symmetric copy of ``K`` scaled to trace n."""
    K = 0.5 * (K + K.T)
    return K * (len(K) / np.trace(K))
