"""Newton's method by products with the kernel against the one that factors it."""

import numpy as np
import pytest

from manykernels.inner import newton, newton_cg, ridge
from manykernels.losses import Logistic, Squared, SquaredHinge
from tests.inner.test_smo import KERNELS, noisy_labels, points


def solve(K, y, C, loss, **options):
    return newton_cg.solve(lambda V: V @ K, K.diagonal(), y, C, loss, **options)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), Squared()], ids=repr)
def test_it_reaches_the_factorization(loss, kernel, C, intercept):
    X = points(100)
    K, y = KERNELS[kernel](X), noisy_labels(X)
    weights = C * np.random.default_rng(0).uniform(0.5, 2.0, 100)
    expected = newton.solve(K, y, weights, loss, intercept=intercept, tol=1e-12)
    found = solve(K, y, weights, loss, intercept=intercept, tol=1e-10)
    values = [0.5 * s.beta @ s.decision + weights @ loss.value(y, s.decision + s.intercept) for s in (expected, found)]
    assert values[1] == pytest.approx(values[0], rel=1e-7)
    assert np.allclose(found.decision, K @ found.beta, rtol=0, atol=1e-9 * np.abs(found.beta).sum())
    if intercept:
        assert abs(found.beta.sum()) <= 1e-9 * np.abs(found.beta).sum()


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()], ids=repr)
def test_the_last_step_squares_the_error(loss):
    # What an outer solver compares are differences of such values, far below the tolerance asked for.
    X = points(100)
    K, y, C = KERNELS["narrow"](X), noisy_labels(X), np.ones(100)
    best = newton.solve(K, y, C, loss, tol=1e-15)
    found = solve(K, y, C, loss, tol=1e-7)
    values = [0.5 * s.beta @ s.decision + C @ loss.value(y, s.decision + s.intercept) for s in (best, found)]
    assert values[1] == pytest.approx(values[0], rel=1e-12)


def test_samples_of_weight_zero_take_no_part():
    X = points(100)
    K, y, C = KERNELS["narrow"](X), noisy_labels(X), np.ones(100)
    C[::3] = 0.0
    found = solve(K, y, C, Squared(), tol=1e-14)
    beta, b = ridge.solve(K, y[None], C)
    np.testing.assert_allclose(found.beta, beta[0], rtol=0, atol=1e-6)
    assert np.all(found.beta[::3] == 0.0)
    assert found.intercept == pytest.approx(b[0], abs=1e-6)


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()], ids=repr)
def test_from_any_start(loss):
    X = points(100)
    K, y, C = KERNELS["narrow"](X), noisy_labels(X), np.ones(100)
    expected = solve(K, y, C, loss, tol=1e-12)
    for start in (expected.beta, 100.0 * np.ones(100), 1e6 * y):
        found = solve(K, y, C, loss, start=(start, 3.0), tol=1e-12)
        np.testing.assert_allclose(found.decision + found.intercept, expected.decision + expected.intercept, atol=1e-3)


def test_a_start_at_the_solution_costs_few_products():
    X = points(100)
    K, y, C = KERNELS["narrow"](X), noisy_labels(X), np.ones(100)
    first = solve(K, y, C, Logistic(), tol=1e-10)
    assert solve(K, y, C, Logistic(), start=(first.beta, first.intercept), tol=1e-6).n_iter == 1
