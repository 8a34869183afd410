"""The oracles against brute force, closed forms and each other."""

import numpy as np
import pytest

from tests.reference.oracle import (
    LOSSES,
    SHARE,
    certificate,
    conjugate,
    dual_penalty,
    loss_value,
    primal_norm,
    primal_solution,
    random_problem,
    solve_dual,
    solve_primal,
    svm_dual_value,
)

EPSILON = 0.1
NORMS = (1, 4 / 3, 2, 4, np.inf)
CLASSIFICATION = ("hinge", "squared_hinge", "logistic")


def _problem(loss, n=20, m=4, seed=0, n_tasks=1):
    task = "classification" if loss in CLASSIFICATION else "regression"
    return random_problem(n, m, seed, task, n_tasks)


def _q(grams, beta):
    return np.array([sum(row @ K @ row for row in np.atleast_2d(beta)) for K in grams])


def _candidate(grams, y, C, loss, p):
    """Weights, beta and intercept from the two convex programs: a_k = d_k sqrt(q_k)."""
    _, beta = solve_dual(grams, y, C, loss, p, epsilon=EPSILON)
    _, norms, intercept = primal_solution(grams, y, C, loss, p, epsilon=EPSILON)
    return norms / np.sqrt(_q(grams, beta)), beta, intercept


# --- losses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hinge", [3.0, 0.5, 0.0]),
        ("squared_hinge", [9.0, 0.25, 0.0]),
        ("logistic", [np.log1p(np.exp(2.0)), np.log1p(np.exp(-0.5)), np.log1p(np.exp(-4.0))]),
        ("squared", [4.5, 0.125, 4.5]),
        ("epsilon_insensitive", [2.9, 0.4, 2.9]),
        ("absolute", [3.0, 0.5, 3.0]),
        ("quantile", [1.5, 0.25, 1.5]),
        ("huber", [2.5, 0.125, 2.5]),
    ],
)
def test_loss_by_hand(name, expected):
    y, z = np.array([1.0, 1.0, -1.0]), np.array([-2.0, 0.5, -4.0])
    np.testing.assert_allclose(loss_value(name, y, z, EPSILON), expected, rtol=1e-14)


@pytest.mark.parametrize("C", [0.3, 2.0])
@pytest.mark.parametrize("name", LOSSES)
def test_conjugate_is_the_supremum_over_a_grid(name, C):
    z = np.linspace(-40.0, 40.0, 400_001)
    targets = (-1.0, 1.0) if name in CLASSIFICATION else (-1.3, 0.0, 0.7)
    reach = SHARE if name == "quantile" else 1.0
    for y in targets:
        for s in (0.001, 0.1, 0.5, 0.9, 0.999):
            signs = (y,) if name in CLASSIFICATION else (-1.0, 1.0)
            for sign in signs:
                beta = sign * s * reach * C
                brute = np.max(-beta * z - C * loss_value(name, y, z, EPSILON))
                value = float(conjugate(name, y, beta, C, EPSILON))
                assert brute == pytest.approx(value, abs=1e-6 * max(1.0, C)), (y, beta)
                assert brute <= value + 1e-12


@pytest.mark.parametrize(
    ("name", "beta", "feasible"),
    [
        ("hinge", -0.01, False),
        ("hinge", 2.01, False),
        ("hinge", 2.0 + 1e-10, True),
        ("hinge", -1e-10, True),
        ("squared_hinge", -0.01, False),
        ("squared_hinge", 50.0, True),
        ("logistic", -0.01, False),
        ("logistic", 2.01, False),
        ("logistic", 0.0, True),
        ("logistic", 2.0, True),
        ("squared", -50.0, True),
        ("epsilon_insensitive", -2.01, False),
        ("epsilon_insensitive", 2.01, False),
        ("epsilon_insensitive", -2.0, True),
        ("absolute", 2.01, False),
        ("absolute", -2.0, True),
        ("quantile", -1.01, False),
        ("quantile", 1.0, True),
        ("huber", 2.01, False),
        ("huber", -2.0, True),
    ],
)
def test_conjugate_domain(name, beta, feasible):
    C = 2.0
    z = np.array([-1e7, 1e7])
    value = float(conjugate(name, 1.0, beta, C, EPSILON))
    assert np.isfinite(value) == feasible
    if not feasible:
        assert np.max(-beta * z - C * loss_value(name, 1.0, z, EPSILON)) > 1e4


@pytest.mark.parametrize("name", LOSSES)
def test_conjugate_of_a_sample_without_weight(name):
    value = conjugate(name, np.ones(2), np.array([0.0, 0.1]), 0.0)
    assert value.tolist() == [0.0, np.inf]


# --- norms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [*NORMS, 1.001, 3.0])
def test_norms_are_dual_to_each_other(p):
    """sup_a of a'g - 1/2 N(a)^2 is 1/2 N*(g)^2: never above it, and attained at a_k = d_k g_k."""
    rng = np.random.default_rng(0)
    q = rng.uniform(0.1, 3.0, size=4)
    best = 0.5 * dual_penalty(q, p)
    for _ in range(200):
        a = rng.exponential(size=4) * rng.uniform(0.1, 3.0)
        assert a @ np.sqrt(q) - 0.5 * primal_norm(a, p) ** 2 <= best + 1e-12
    if p == 1:
        d = (q == q.max()).astype(float)
    elif np.isinf(p):
        d = np.ones(4)
    else:
        d = (q / dual_penalty(q, p)) ** (1.0 / (p - 1.0))
    a = d * np.sqrt(q)
    assert a @ np.sqrt(q) - 0.5 * primal_norm(a, p) ** 2 == pytest.approx(best, rel=1e-10)
    assert np.linalg.norm(d, ord=p) == pytest.approx(1.0, rel=1e-10)


# --- convex programs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_strong_duality(loss, p, fit_intercept):
    grams, y = _problem(loss)
    primal = solve_primal(grams, y, 1.0, loss, p, fit_intercept, EPSILON)
    dual, beta = solve_dual(grams, y, 1.0, loss, p, fit_intercept, EPSILON)
    assert dual == pytest.approx(primal, rel=1e-6)

    by_definition = -0.5 * dual_penalty(_q(grams, beta), p) - conjugate(loss, y, beta, 1.0, EPSILON).sum()
    assert by_definition == pytest.approx(dual, rel=1e-6)
    if fit_intercept:
        assert abs(beta.sum()) <= 1e-7 * np.abs(beta).sum()


@pytest.mark.parametrize("p", [1.001, 1.1, 3.0, 20.0])
@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_strong_duality_at_other_exponents(loss, p):
    grams, y = _problem(loss, seed=1)
    primal = solve_primal(grams, y, 1.0, loss, p, True, EPSILON)
    assert solve_dual(grams, y, 1.0, loss, p, True, EPSILON)[0] == pytest.approx(primal, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_strong_duality_with_costs_per_sample(loss):
    grams, y = _problem(loss, seed=2)
    C = np.random.default_rng(5).uniform(0.05, 4.0, size=len(y))
    for p in (1, 2):
        primal = solve_primal(grams, y, C, loss, p, True, EPSILON)
        assert solve_dual(grams, y, C, loss, p, True, EPSILON)[0] == pytest.approx(primal, rel=1e-6)


@pytest.mark.parametrize("C", [1e-3, 100.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_strong_duality_at_extreme_costs(loss, C):
    grams, y = _problem(loss, seed=3)
    primal = solve_primal(grams, y, C, loss, 2, True, EPSILON)
    assert solve_dual(grams, y, C, loss, 2, True, EPSILON)[0] == pytest.approx(primal, rel=1e-6)


@pytest.mark.parametrize("p", [1, 2, np.inf])
@pytest.mark.parametrize("loss", LOSSES)
def test_strong_duality_with_tasks(loss, p):
    grams, y = _problem(loss, n=15, seed=4, n_tasks=3)
    primal = solve_primal(grams, y, 1.0, loss, p, True, EPSILON)
    dual, beta = solve_dual(grams, y, 1.0, loss, p, True, EPSILON)
    assert beta.shape == y.shape == (3, 15)
    assert dual == pytest.approx(primal, rel=1e-6)


def test_one_row_of_tasks_is_one_task():
    grams, y = _problem("hinge")
    one = solve_dual(grams, y, 1.0, "hinge", 2)[0]
    assert solve_dual(grams, y[None, :], 1.0, "hinge", 2)[0] == pytest.approx(one, rel=1e-7)


@pytest.mark.parametrize("p", NORMS)
def test_squared_loss_of_one_kernel_in_closed_form(p):
    """Kernel ridge: the optimum is 1/2 y'(K + I/C)^-1 y, and every norm of one kernel is the same."""
    grams, y = _problem("squared", m=1)
    C = 0.7
    beta = np.linalg.solve(grams[0] + np.eye(len(y)) / C, y)
    optimum = 0.5 * y @ beta
    value, solved = solve_dual(grams, y, C, "squared", p, fit_intercept=False)
    assert value == pytest.approx(optimum, rel=1e-7)
    np.testing.assert_allclose(solved, beta, atol=1e-3 * np.abs(beta).max())
    assert solve_primal(grams, y, C, "squared", p, fit_intercept=False) == pytest.approx(optimum, rel=1e-7)
    primal, dual, gap = certificate(grams, y, C, "squared", p, [1.0], beta, 0.0, fit_intercept=False)
    assert primal == pytest.approx(optimum, rel=1e-12)
    assert dual == pytest.approx(optimum, rel=1e-12)
    assert abs(gap) < 1e-12


def test_hinge_of_two_samples_in_closed_form():
    """x = (-1, 1), y = (-1, 1), linear kernel, large C: f(x) = x, beta = y/2 and the optimum is 1/2."""
    x = np.array([-1.0, 1.0])
    value, beta = solve_dual([np.outer(x, x)], x, 10.0, "hinge", 1)
    assert value == pytest.approx(0.5, rel=1e-7)
    np.testing.assert_allclose(beta, 0.5 * x, atol=1e-4)
    assert svm_dual_value(np.outer(x, x), x, 10.0, 0.5 * x) == pytest.approx(0.5, rel=1e-14)
    assert svm_dual_value(np.outer(x, x), x, 0.4, 0.5 * x) == -np.inf
    assert svm_dual_value(np.outer(x, x), x, 10.0, -0.5 * x) == -np.inf


@pytest.mark.parametrize("p", NORMS)
def test_value_is_the_best_kernel_machine_over_the_ball(p):
    """No weights in the unit ball of the p-norm give a machine below the optimum; the best ones reach it."""
    grams, y = _problem("hinge", seed=6)
    value = solve_dual(grams, y, 1.0, "hinge", p)[0]

    def machine(d):
        K = sum(weight * gram for weight, gram in zip(d, grams, strict=True))
        return solve_dual([K], y, 1.0, "hinge", 1)[0]

    d, beta, _ = _candidate(grams, y, 1.0, "hinge", p)
    assert np.linalg.norm(d, ord=p) == pytest.approx(1.0, abs=1e-3)
    assert machine(d / np.linalg.norm(d, ord=p)) == pytest.approx(value, rel=1e-5)
    K = sum(weight * gram for weight, gram in zip(d, grams, strict=True))
    assert svm_dual_value(K, y, 1.0, beta) == pytest.approx(value, rel=1e-4)
    rng = np.random.default_rng(0)
    for _ in range(3):
        other = rng.exponential(size=len(grams))
        assert machine(other / np.linalg.norm(other, ord=p)) >= value * (1 - 1e-7)


# --- certificate -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_certificate_closes_at_the_optimum_and_opens_away_from_it(loss, p):
    grams, y = _problem(loss, seed=7)
    d, beta, b = _candidate(grams, y, 1.0, loss, p)
    optimum = solve_primal(grams, y, 1.0, loss, p, True, EPSILON)

    def certify(d, beta, b):
        primal, dual, gap = certificate(grams, y, 1.0, loss, p, d, beta, b, epsilon=EPSILON)
        assert dual <= optimum * (1 + 1e-6)
        assert primal >= optimum * (1 - 1e-6)
        return gap

    assert -1e-9 <= certify(d, beta, b) <= 1e-4
    assert certify(d, 0.8 * beta, b) > 1e-3
    assert certify(d, beta, b + 0.5) > 1e-3
    assert certify(0.5 * d, beta, b) > 1e-3
    shuffled = np.random.default_rng(1).permutation(beta)
    assert certify(d, shuffled, b) > 1e-2


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_certificate_with_tasks(loss):
    grams, y = _problem(loss, n=15, seed=8, n_tasks=3)
    d, beta, b = _candidate(grams, y, 1.0, loss, 2)
    assert b.shape == (3,)
    assert -1e-9 <= certificate(grams, y, 1.0, loss, 2, d, beta, b, epsilon=EPSILON)[2] <= 1e-4
    assert certificate(grams, y, 1.0, loss, 2, d, 0.8 * beta, b, epsilon=EPSILON)[2] > 1e-3


def test_certificate_rejects_what_is_not_feasible():
    grams, y = _problem("hinge")
    d, beta, b = _candidate(grams, y, 1.0, "hinge", 2)
    primal, dual, gap = certificate(grams, y, 1.0, "hinge", 2, d, 3.0 * beta, b)
    assert np.isfinite(primal)
    assert (dual, gap) == (-np.inf, np.inf)
    unbalanced = beta.copy()
    unbalanced[np.argmax(np.abs(beta))] *= 0.5
    with pytest.raises(AssertionError, match="sum beta"):
        certificate(grams, y, 1.0, "hinge", 2, d, unbalanced, b)
    with pytest.raises(AssertionError, match="negative"):
        certificate(grams, y, 1.0, "hinge", 2, -d, beta, b)
    with pytest.raises(AssertionError, match="without fit_intercept"):
        certificate(grams, y, 1.0, "hinge", 2, d, beta, 1.0, fit_intercept=False)


# --- problems --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 4, 7])
@pytest.mark.parametrize("n_tasks", [1, 3])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_random_problem(task, n_tasks, m):
    grams, y = random_problem(12, m, 0, task, n_tasks)
    again, y_again = random_problem(12, m, 0, task, n_tasks)
    other, _ = random_problem(12, m, 1, task, n_tasks)
    assert len(grams) == m
    assert y.shape == ((12,) if n_tasks == 1 else (3, 12))
    np.testing.assert_array_equal(y, y_again)
    assert not np.allclose(grams[0], other[0])
    for K, K_again in zip(grams, again, strict=True):
        np.testing.assert_array_equal(K, K_again)
        np.testing.assert_array_equal(K, K.T)
        assert np.linalg.eigvalsh(K)[0] >= -1e-12 * len(K)
        assert np.trace(K) == pytest.approx(12.0)
    if m >= 3:
        assert np.linalg.matrix_rank(grams[-1]) == 1
    if task == "classification":
        assert set(np.unique(y)) == {-1.0, 1.0}
        if n_tasks == 1:
            assert y.sum() == 0
        else:
            np.testing.assert_array_equal((y == 1).sum(axis=0), 1)
            np.testing.assert_array_equal((y == 1).sum(axis=1), 4)
