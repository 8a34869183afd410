"""Newton's method for smooth losses against SciPy's trust region in another parametrization, and hostile problems."""

import numpy as np
import pytest
from scipy.linalg import cholesky
from scipy.optimize import minimize

from manykernels.inner import newton_cg
from manykernels.inner.newton import solve
from manykernels.losses import Logistic, Squared, SquaredHinge
from tests.reference import oracle

LOSSES = [Logistic(), SquaredHinge()]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
with_and_without_intercept = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])


def problem(n=40, seed=0, noise=1.0):
    """A kernel with condition number about 1e4 and labels that overlap (noise > 0) or not."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 2) + 1e-3 * np.eye(n)
    return K, np.where(X[:, 0] + noise * rng.standard_normal(n) > 0, 1.0, -1.0)


def value(K, y, C, loss, beta, b):
    return 0.5 * beta @ K @ beta + float(np.sum(C * loss.value(y, K @ beta + b)))


def scipy_value(K, y, C, loss, intercept):
    """The optimum over w with K = L L', f = L w, by a trust region with the exact Hessian."""
    n = len(y)
    A = np.column_stack([cholesky(K, lower=True), np.ones(n) if intercept else np.zeros(n)])
    ridge = np.append(np.ones(n), 0.0)
    unit = max(C.max(), 1.0)

    def f(w):
        return (0.5 * w @ (ridge * w) + C @ loss.value(y, A @ w)) / unit

    def slope(w):
        return (ridge * w + A.T @ (C * loss.derivative(y, A @ w))) / unit

    def bend(w):
        return (np.diag(ridge) + (A.T * (C * loss.curvature(y, A @ w))) @ A + 1e-300 * np.eye(n + 1)) / unit

    found = minimize(
        f, np.zeros(n + 1), jac=slope, hess=bend, method="trust-exact", options={"gtol": 1e-12, "maxiter": 2000}
    )
    return unit * found.fun


@every_loss
@with_and_without_intercept
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e6])
@pytest.mark.parametrize("noise", [1.0, 0.0], ids=["overlapping", "separable"])
def test_against_scipy(loss, intercept, C, noise):
    K, y = problem(noise=noise)
    costs = np.full(len(y), C)
    solution = solve(K, y, costs, loss, intercept=intercept, tol=1e-10)
    assert solution.converged
    found = value(K, y, costs, loss, solution.beta, solution.intercept)
    assert found == pytest.approx(scipy_value(K, y, costs, loss, intercept), rel=1e-6)
    np.testing.assert_allclose(solution.decision, K @ solution.beta, atol=1e-9 * (1 + np.abs(solution.decision).max()))


@every_loss
@with_and_without_intercept
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
def test_stationary(loss, intercept, C):
    """beta = -C loss'(z), and it sums to 0 when there is an intercept."""
    K, y = problem(seed=1)
    costs = C * np.random.default_rng(2).uniform(0.2, 5.0, len(y))
    solution = solve(K, y, costs, loss, intercept=intercept, tol=1e-14)
    z = K @ solution.beta + solution.intercept
    size = np.abs(solution.beta).max()
    np.testing.assert_allclose(solution.beta, -costs * loss.derivative(y, z), atol=1e-5 * size)
    if intercept:
        assert abs(solution.beta.sum()) <= 1e-8 * np.abs(solution.beta).sum()
    else:
        assert solution.intercept == 0.0


@every_loss
@with_and_without_intercept
def test_samples_of_weight_zero_take_no_part(loss, intercept):
    K, y = problem(seed=3)
    costs = np.where(np.arange(len(y)) % 4 == 0, 0.0, 2.0)
    used = costs > 0
    whole = solve(K, y, costs, loss, intercept=intercept, tol=1e-12)
    alone = solve(K[np.ix_(used, used)], y[used], costs[used], loss, intercept=intercept, tol=1e-12)
    assert np.all(whole.beta[~used] == 0.0)
    np.testing.assert_allclose(whole.beta[used], alone.beta, atol=1e-6)


@every_loss
@with_and_without_intercept
@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
def test_a_start_where_the_curvature_underflows(loss, intercept, scale):
    """From far out on the wrong side the logistic curvature is 0 in floating point; the method comes back."""
    K, y = problem(seed=4)
    costs = np.ones(len(y))
    cold = solve(K, y, costs, loss, intercept=intercept, tol=1e-12)
    start = (-scale * y, 0.5 * scale if intercept else 0.0)
    warm = solve(K, y, costs, loss, start=start, intercept=intercept, tol=1e-12)
    expected = value(K, y, costs, loss, cold.beta, cold.intercept)
    assert value(K, y, costs, loss, warm.beta, warm.intercept) == pytest.approx(expected, rel=1e-8)
    assert warm.converged


@every_loss
def test_a_solution_is_its_own_best_start(loss):
    K, y = problem(seed=5)
    costs = np.full(len(y), 3.0)
    cold = solve(K, y, costs, loss, tol=1e-12)
    start = (cold.beta, cold.intercept)
    before = cold.beta.copy()
    again = solve(K, y, costs, loss, start=start, tol=1e-8)
    assert again.n_iter == 1
    np.testing.assert_array_equal(cold.beta, before)
    np.testing.assert_allclose(again.beta, cold.beta, atol=1e-6)


@every_loss
@pytest.mark.parametrize("C", [1.0, 1e6])
def test_one_rare_sample(loss, C):
    """A single positive among forty, also with a large weight: the gap closes."""
    K, _ = problem(seed=6)
    y = np.where(np.arange(40) == 7, 1.0, -1.0)
    solution = solve(K, y, np.full(40, C), loss, tol=1e-12)
    found = value(K, y, C, loss, solution.beta, solution.intercept)
    optimum = scipy_value(K, y, np.full(40, C), loss, True)
    assert found == pytest.approx(optimum, rel=1e-6)


def test_labels_without_features():
    """K = 0: only the intercept is left, the log-odds of the classes."""
    y = np.array([1.0, 1.0, 1.0, -1.0])
    solution = solve(np.zeros((4, 4)), y, np.ones(4), Logistic(), tol=1e-14)
    assert solution.intercept == pytest.approx(np.log(3.0))


def test_the_squared_loss_takes_one_step():
    K, _ = problem(seed=7)
    y = np.random.default_rng(8).standard_normal(40)
    costs = np.full(40, 2.0)
    solution = solve(K, y, costs, Squared(), tol=1e-12)
    assert solution.n_iter <= 2
    _, _, gap = oracle.certificate([K], y, 2.0, "squared", np.inf, [1.0], solution.beta, solution.intercept)
    assert gap <= 1e-9


def test_max_iter_is_kept():
    K, y = problem(seed=9)
    solution = solve(K, y, np.full(40, 1e6), Logistic(), tol=1e-15, max_iter=2)
    assert solution.n_iter == 2
    assert not solution.converged


def test_predictions_that_are_best_from_the_start_get_the_coefficients_that_prove_it():
    """X'y = 0, so that no slope helps: beta = -l'(0) all the same."""
    X, y = np.array([[3.0, 2, 3, 0, 2, -1, -1]]).T, np.array([-1.0, 1, -1, -1, 1, -1, -1])
    K, C, loss = X @ X.T, np.full(7, 2.0), Logistic()
    for solution in (
        solve(K, y, C, loss, intercept=False, tol=1e-12),
        newton_cg.solve(lambda V: V @ K, K.diagonal(), y, C, loss, intercept=False, tol=1e-12),
    ):
        assert solution.converged
        np.testing.assert_allclose(solution.beta, -C * loss.derivative(y, np.zeros(7)), atol=1e-12)
