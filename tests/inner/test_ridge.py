"""Kernel ridge regression against one dense linear system with the intercept as an unknown."""

import numpy as np
import pytest

from manykernels.inner.ridge import solve
from tests.reference import oracle


def problem(n=40, n_tasks=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 2)
    return K, rng.standard_normal((n_tasks, n)) + 5.0, rng.uniform(0.1, 20.0, n)


def dense_solution(K, y, C, intercept):
    """Solve the bordered system [[K + 1/C, 1], [1', 0]] on the samples that have a weight."""
    used = np.flatnonzero(C > 0)
    size = used.size
    system = np.zeros((size + 1, size + 1))
    system[:size, :size] = K[np.ix_(used, used)] + np.diag(1 / C[used])
    system[:size, size] = system[size, :size] = 1.0
    right = np.append(y[used], 0.0)
    found = (
        np.linalg.solve(system, right) if intercept else np.append(np.linalg.solve(system[:-1, :-1], right[:-1]), 0.0)
    )
    beta = np.zeros(len(y))
    beta[used] = found[:size]
    return beta, found[size]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("zeros", [False, True])
def test_against_a_dense_solve(intercept, zeros):
    K, Y, C = problem()
    if zeros:
        C[::4] = 0.0
    beta, b = solve(K, Y, C, intercept=intercept)
    for t in range(3):
        expected, expected_b = dense_solution(K, Y[t], C, intercept)
        np.testing.assert_allclose(beta[t], expected, rtol=1e-9, atol=1e-10)
        assert b[t] == pytest.approx(expected_b, rel=1e-9, abs=1e-12)
        assert np.all(beta[t][C == 0] == 0.0)
        if intercept:
            assert abs(beta[t].sum()) <= 1e-12 * np.abs(beta[t]).sum()


@pytest.mark.parametrize("C", [1e-6, 1e8])
@pytest.mark.parametrize("intercept", [True, False])
def test_weights_far_from_one_have_no_gap(C, intercept):
    """Primal and dual value, from the definitions, meet."""
    K, Y, _ = problem(n_tasks=1)
    beta, b = solve(K, Y, np.full(40, C), intercept=intercept)
    _, _, gap = oracle.certificate([K], Y, C, "squared", np.inf, [1.0], beta, b, fit_intercept=intercept)
    assert gap <= 1e-6


def test_inputs_are_left_alone():
    K, Y, C = problem()
    copies = K.copy(), Y.copy(), C.copy()
    solve(K, Y, C)
    for array, before in zip((K, Y, C), copies, strict=True):
        np.testing.assert_array_equal(array, before)


def test_a_singular_kernel_is_fine():
    Y = np.array([[1.0, 2.0, 6.0]])
    beta, b = solve(np.zeros((3, 3)), Y, np.array([1.0, 1.0, 2.0]))
    assert b[0] == pytest.approx(np.average([1.0, 2.0, 6.0], weights=[1, 1, 2]))
    np.testing.assert_allclose(beta[0], np.array([1.0, 1.0, 2.0]) * (Y[0] - b[0]))
