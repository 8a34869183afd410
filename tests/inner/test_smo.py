"""The box-constrained solver against scikit-learn's libsvm, CVXPY, and the optimality conditions themselves."""

import numpy as np
import pytest
from sklearn.svm import SVC, SVR

from manykernels.inner import smo
from manykernels.losses import EpsilonInsensitive, Hinge
from tests.reference import oracle

TIGHT = 1e-9  # of libsvm; its objective is then exact to far below 1e-6


def points(n, seed=0, n_features=4):
    return np.random.default_rng(seed).standard_normal((n, n_features))


def gaussian(X, width):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * width**2))


KERNELS = {
    "narrow": lambda X: gaussian(X, 0.3),
    "wide": lambda X: gaussian(X, 5.0),
    "linear": lambda X: X @ X.T,
    "rank one": lambda X: np.outer(X[:, 0], X[:, 0]),
    "constant": lambda X: np.ones((len(X), len(X))),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def noisy_labels(X, share=0.5, seed=0):
    """Labels -1 and 1 that overlap; ``share`` of them positive."""
    score = X[:, 0] + np.sin(2 * X[:, 1]) + 0.7 * np.random.default_rng(seed).standard_normal(len(X))
    return np.where(score > np.quantile(score, 1 - share), 1.0, -1.0)


def regression_target(X, seed=0):
    return X[:, 0] + np.sin(2 * X[:, 1]) + 0.2 * np.random.default_rng(seed).standard_normal(len(X))


def solve(loss, K, y, C, tol=1e-3, **options):
    """Return the machine of a loss whose dual is a box, as the library's own rule for matrices asks for it."""
    box = loss.box(y, C)
    return smo.solve_box(K, box.linear, box.lower, box.upper, epsilon=box.epsilon, tol=tol * box.unit, **options)


def box_of(y, C):
    return np.minimum(0.0, y * C), np.maximum(0.0, y * C)


def svr_value(K, y, beta, epsilon):
    return float(y @ beta - epsilon * np.abs(beta).sum() - 0.5 * beta @ K @ beta)


def violation(K, y, lower, upper, beta, epsilon=0.0, intercept=True):
    """How far beta is from optimal, straight from the optimality conditions, one sample at a time.

    Some b makes 0 a subgradient: g_i + eps * sign + b >= 0 where beta_i can rise, <= 0 where it can fall.
    """
    g = K @ beta - y
    at_least, at_most = [], []  # bounds on b
    for i in range(len(y)):
        if beta[i] < upper[i]:
            at_least.append(-(g[i] + (epsilon if beta[i] >= 0 else -epsilon)))
        if beta[i] > lower[i]:
            at_most.append(-(g[i] + (epsilon if beta[i] > 0 else -epsilon)))
    if intercept:
        return max(0.0, max(at_least, default=-np.inf) - min(at_most, default=np.inf))
    return max(0.0, max(at_least, default=0.0), -min(at_most, default=0.0))


def assert_feasible(beta, lower, upper, intercept=True):
    assert np.all(beta >= lower)
    assert np.all(beta <= upper)
    if intercept:
        assert abs(beta.sum()) <= 1e-13 * max(np.abs(beta).sum(), 1e-300) * beta.size


def assert_consistent(solution, K, y):
    """The gradient that comes back is that of the coefficients that come back."""
    scale = np.abs(K) @ np.abs(solution.beta) + np.abs(y)
    assert np.all(np.abs(solution.gradient - (K @ solution.beta - y)) <= 1e-9 * scale)


# -- hinge -------------------------------------------------------------------------------------------------


def libsvm_beta(K, y, C):
    """The signed coefficients of scikit-learn's SVC; C (n,)."""
    reference = SVC(C=1.0, kernel="precomputed", tol=TIGHT).fit(K, y, sample_weight=C)
    beta = np.zeros(len(y))
    beta[reference.support_] = reference.dual_coef_[0]
    return beta


@every_kernel
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
def test_hinge_reaches_libsvm(kernel, C):
    X = points(80)
    K, y, costs = KERNELS[kernel](X), noisy_labels(X), np.full(80, C)
    solution = solve(Hinge(), K, y, costs, tol=1e-6)
    assert solution.converged
    expected = oracle.svm_dual_value(K, y, costs, libsvm_beta(K, y, costs))
    assert oracle.svm_dual_value(K, y, costs, solution.beta) == pytest.approx(expected, rel=1e-6)
    assert_feasible(solution.beta, *box_of(y, costs))
    assert violation(K, y, *box_of(y, costs), solution.beta) <= 1.01e-6 + 1e-12 * C
    assert_consistent(solution, K, y)


@pytest.mark.parametrize("share", [0.5, 0.1, 1 / 90])
def test_hinge_with_a_weight_for_each_sample_and_rare_classes(share):
    X = points(90, seed=1)
    y = noisy_labels(X, share)
    K, costs = gaussian(X, 1.0), np.random.default_rng(2).uniform(0.01, 30.0, 90)
    solution = solve(Hinge(), K, y, costs, tol=1e-6)
    expected = oracle.svm_dual_value(K, y, costs, libsvm_beta(K, y, costs))
    assert oracle.svm_dual_value(K, y, costs, solution.beta) == pytest.approx(expected, rel=1e-6)
    assert_feasible(solution.beta, *box_of(y, costs))
    assert violation(K, y, *box_of(y, costs), solution.beta) <= 1.01e-6


def test_samples_of_weight_zero_take_no_part():
    X = points(60, seed=3)
    y, K = noisy_labels(X), gaussian(X, 1.0)
    costs = np.where(np.arange(60) % 3 == 0, 0.0, 2.0)
    used = costs > 0
    solution = solve(Hinge(), K, y, costs, tol=1e-8)
    alone = solve(Hinge(), np.ascontiguousarray(K[np.ix_(used, used)]), y[used], costs[used], tol=1e-8)
    assert np.all(solution.beta[~used] == 0.0)
    np.testing.assert_allclose(solution.beta[used], alone.beta, atol=1e-6)


@pytest.mark.parametrize("y", [np.ones(5), -np.ones(5)], ids=["positive", "negative"])
def test_one_class_has_nothing_to_balance(y):
    solution = solve(Hinge(), np.eye(5), y, np.ones(5))
    assert np.all(solution.beta == 0.0)
    assert solution.converged


# -- epsilon-insensitive -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["narrow", "wide", "linear"])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_epsilon_insensitive_reaches_libsvm(kernel, C, epsilon):
    X = points(70, seed=4)
    K, y = KERNELS[kernel](X), regression_target(X)
    reference = SVR(C=C, epsilon=epsilon, kernel="precomputed", tol=1e-8).fit(K, y)
    expected_beta = np.zeros(70)
    expected_beta[reference.support_] = reference.dual_coef_[0]
    solution = solve(EpsilonInsensitive(epsilon), K, y, np.full(70, C), tol=1e-7)
    assert solution.converged
    expected = svr_value(K, y, expected_beta, epsilon)
    assert svr_value(K, y, solution.beta, epsilon) == pytest.approx(expected, rel=1e-6)
    assert_feasible(solution.beta, np.full(70, -C), np.full(70, C))
    assert violation(K, y, np.full(70, -C), np.full(70, C), solution.beta, epsilon) <= 1e-7 * np.std(y) * 1.01
    assert_consistent(solution, K, y)


def test_a_tube_wider_than_the_data_needs_no_support_vector():
    X = points(30)
    solution = solve(EpsilonInsensitive(100.0), gaussian(X, 1.0), regression_target(X), np.ones(30))
    assert np.all(solution.beta == 0.0)
    assert solution.converged


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_the_target_does_not_matter(unit):
    X = points(50, seed=5)
    K, y, C = gaussian(X, 1.0), regression_target(X), np.full(50, 2.0)
    base = solve(EpsilonInsensitive(0.1), K, y, C, tol=1e-8)
    scaled = solve(EpsilonInsensitive(0.1 * unit), K, unit * y, unit * C, tol=1e-8)
    np.testing.assert_allclose(scaled.beta, unit * base.beta, atol=1e-6 * unit)


def test_a_constant_target_is_the_intercept():
    solution = solve(EpsilonInsensitive(0.0), np.eye(6), np.full(6, 3.0), np.ones(6))
    assert np.all(solution.beta == 0.0)


# -- without intercept -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("kernel", ["narrow", "wide", "linear"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_without_intercept_against_cvxpy(loss, kernel, C):
    X = points(40, seed=6)
    K, costs = KERNELS[kernel](X), np.full(40, C)
    y = noisy_labels(X) if loss == "hinge" else regression_target(X)
    expected, _ = oracle.solve_dual([K], y, C, loss, np.inf, fit_intercept=False)
    if loss == "hinge":
        solution, box, epsilon = solve(Hinge(), K, y, costs, intercept=False, tol=1e-7), box_of(y, costs), 0.0
    else:
        solution = solve(EpsilonInsensitive(0.1), K, y, costs, intercept=False, tol=1e-7)
        box, epsilon = (-costs, costs), 0.1
    assert solution.converged
    assert svr_value(K, y, solution.beta, epsilon) == pytest.approx(expected, rel=1e-6)
    assert_feasible(solution.beta, *box, intercept=False)
    assert violation(K, y, *box, solution.beta, epsilon, intercept=False) <= 1e-6
    assert_consistent(solution, K, y)


def test_without_intercept_against_projected_gradient():
    """Thousands of naive projected gradient steps end at the same value."""
    X = points(30, seed=7)
    K, y, costs = gaussian(X, 1.0), noisy_labels(X), np.full(30, 1.0)
    lower, upper = box_of(y, costs)
    beta, step = np.zeros(30), 1 / np.linalg.eigvalsh(K)[-1]
    for _ in range(5000):
        beta = np.clip(beta - step * (K @ beta - y), lower, upper)
    solution = solve(Hinge(), K, y, costs, intercept=False, tol=1e-9)
    assert svr_value(K, y, solution.beta, 0.0) == pytest.approx(svr_value(K, y, beta, 0.0), rel=1e-9)


# -- many samples: shrinking -----------------------------------------------------------------------------------


def many(n=600):
    X = points(n, seed=8, n_features=5)
    return X, gaussian(X, 2.0), noisy_labels(X)


@pytest.mark.parametrize("intercept", [True, False])
def test_shrinking(intercept):
    """With most samples settled at a bound, the solver works on the rest, and still returns for all of them."""
    _, K, y = many()
    costs = np.full(600, 10.0)
    solution = solve(Hinge(), K, y, costs, intercept=intercept, tol=1e-6)
    box = box_of(y, costs)
    still_moving = smo.movable(solution.gradient, solution.beta, *box, 0.0, intercept, 0.0)
    assert solution.n_iter > 600  # more than the bursts on all samples that come first
    assert 2 * len(still_moving) <= 600  # so that the last rounds ran on the small matrix
    assert solution.converged
    assert violation(K, y, *box, solution.beta, intercept=intercept) <= 1.01e-6
    assert_consistent(solution, K, y)
    assert_feasible(solution.beta, *box, intercept=intercept)
    if intercept:
        expected = oracle.svm_dual_value(K, y, costs, libsvm_beta(K, y, costs))
        assert oracle.svm_dual_value(K, y, costs, solution.beta) == pytest.approx(expected, rel=1e-6)


def test_shrinking_with_a_tube():
    X, K, _ = many()
    y, costs = regression_target(X), np.full(600, 5.0)
    solution = solve(EpsilonInsensitive(0.3), K, y, costs, tol=1e-6)
    assert solution.converged
    assert violation(K, y, -costs, costs, solution.beta, 0.3) <= 1.01e-6 * np.std(y)
    assert_consistent(solution, K, y)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_shrunken_solve_updates_the_gradient_of_everybody(intercept):
    """Only the kept samples move; beta and gradient of all 600 agree afterwards."""
    _, K, y = many()
    lower, upper = box_of(y, np.full(600, 10.0))
    beta, gradient = np.zeros(600), -y
    keep = np.arange(0, 600, 4)
    everybody = smo._WorkingSet(K, K.diagonal().copy(), gradient, beta, lower, upper, 0.0, intercept)
    used = smo._solve_shrunk(everybody, keep, 1e-3, 10_000)
    assert used > 0
    assert np.all(np.delete(beta, keep) == 0.0)
    assert np.any(beta != 0)
    np.testing.assert_allclose(gradient, K @ beta - y, atol=1e-9)


# -- warm starts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "tube"])
@pytest.mark.parametrize("begin", ["other C", "random", "outside the box", "one-sided"])
def test_warm_start_ends_where_a_cold_start_ends(loss, intercept, begin):
    X = points(80, seed=9)
    K, costs = gaussian(X, 1.0), np.full(80, 3.0)
    y = noisy_labels(X) if loss == "hinge" else regression_target(X)
    box = box_of(y, costs) if loss == "hinge" else (-costs, costs)
    epsilon = 0.0 if loss == "hinge" else 0.1
    settings = {"epsilon": epsilon, "intercept": intercept, "tol": 1e-8}
    cold = smo.solve_box(K, y, *box, **settings)
    rng = np.random.default_rng(10)
    start = {
        "other C": smo.solve_box(K, y, 0.3 * box[0], 0.3 * box[1], **settings).beta,
        "random": rng.uniform(*box),
        "outside the box": 100.0 * rng.standard_normal(80),
        "one-sided": box[1].copy(),
    }[begin]
    before = start.copy()
    warm = smo.solve_box(K, y, *box, start=start, **settings)
    np.testing.assert_array_equal(start, before)
    assert warm.converged
    assert_feasible(warm.beta, *box, intercept=intercept)
    assert svr_value(K, y, warm.beta, epsilon) == pytest.approx(svr_value(K, y, cold.beta, epsilon), rel=1e-7)
    assert_consistent(warm, K, y)


def test_a_solution_is_its_own_best_start():
    X = points(80, seed=9)
    K, y, costs = gaussian(X, 1.0), noisy_labels(X), np.full(80, 3.0)
    cold = solve(Hinge(), K, y, costs, tol=1e-6)
    again = solve(Hinge(), K, y, costs, start=cold.beta, tol=1e-5)
    assert again.n_iter == 0
    np.testing.assert_allclose(again.beta, cold.beta, atol=1e-12)


def test_a_start_far_larger_than_the_solution_leaves_none_of_its_rounding():
    """Steps from 1e-3 to 1e-30 leave 1e-19 in the sum of the coefficients, beside which the solution is nothing."""
    X = points(6, seed=5)
    K, y = 1e30 * (X @ X.T + 0.1 * np.eye(6)), np.array([1.0, -1.0, -1.0, -1.0, -1.0, -1.0])
    costs = np.full(6, 100.0)
    solution = solve(Hinge(), K, y, costs, start=1e-3 * np.array([1.0, -0.5, -0.1, -0.2, -0.17, -0.03]), tol=1e-6)
    assert 0 < np.abs(solution.beta).max() < 1e-28
    assert abs(solution.beta.sum()) <= 1e-12 * np.abs(solution.beta).sum()


def test_max_iter_is_kept_and_leaves_a_feasible_point():
    _, K, y = many(200)
    costs = np.full(200, 100.0)
    for max_iter in (1, 37, 250):
        solution = smo.solve_box(K, y, *box_of(y, costs), tol=1e-10, max_iter=max_iter)
        assert solution.n_iter <= max_iter
        assert not solution.converged
        assert_feasible(solution.beta, *box_of(y, costs))
        assert_consistent(solution, K, y)


# -- balanced ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_balanced_sums_to_zero_inside_the_box(seed):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], 40)
    lower, upper = box_of(y, rng.uniform(0.1, 5, 40))
    beta = smo.balanced(rng.uniform(lower, upper), lower, upper)
    assert_feasible(beta, lower, upper)
    assert np.any(beta != 0)


def test_balanced_leaves_a_balanced_point_alone():
    beta = np.array([1.0, -0.25, -0.75, 0.0])
    np.testing.assert_array_equal(smo.balanced(beta, -np.ones(4), np.ones(4)), beta)
    np.testing.assert_array_equal(smo.balanced(np.zeros(3), -np.ones(3), np.ones(3)), np.zeros(3))


def test_hostile_scales():
    """Kernels and weights many orders of magnitude from one still meet the optimality conditions."""
    X = points(40, seed=11)
    y = noisy_labels(X)
    for unit in (1e-8, 1e8):
        K, costs = unit * gaussian(X, 1.0), np.full(40, 1 / unit)
        solution = solve(Hinge(), K, y, costs, tol=1e-6)
        assert solution.converged
        assert violation(K, y, *box_of(y, costs), solution.beta) <= 1e-5
