"""The interior point by itself: both forms of its linear system, and kernels that come and go."""

from dataclasses import replace

import numpy as np
import pytest

from manykernels.losses import Hinge
from manykernels.outer.interior_point import InteriorPoint
from manykernels.outer.interior_system import KernelSide, SampleSide
from tests.outer.test_newton import problem_of
from tests.reference.oracle import random_problem, solve_dual


@pytest.mark.parametrize("n_tasks", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_groups", [1, 3])
def test_both_sides_solve_the_same_system(n_tasks, intercept, n_groups):
    rng = np.random.default_rng(0)
    n, m, p = 6, 20, 1.4
    K = rng.standard_normal((n, n))
    K = K @ K.T + np.eye(n)
    diagonal, G = rng.random((n_tasks, n)) + 0.1, rng.standard_normal((n_tasks, m, n))
    bend, power = rng.random(m) + 0.1, rng.random(m)
    P = np.zeros((m, n_groups))
    P[np.arange(m), np.arange(m) % n_groups] = power
    corner = 0.1 * np.eye(n_groups) if n_groups > 1 else np.zeros((1, 1))
    r_d = rng.standard_normal(n_groups)
    right = (rng.standard_normal((n_tasks, n)), rng.standard_normal(m), r_d, rng.standard_normal(n_tasks))
    kernel_side = KernelSide(K.copy(), diagonal, G, bend, P, p, corner, intercept).solve(*right)
    sample_side = SampleSide(K.copy(), diagonal, G, bend, P, p, corner, intercept).solve(*right)
    for one, other in zip(kernel_side, sample_side, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    beta, d, b, tau = kernel_side
    for t in range(n_tasks):
        residual = (K + np.diag(diagonal[t])) @ beta[t] + G[t].T @ d + b[t] - right[0][t]
        np.testing.assert_allclose(residual, 0.0, atol=1e-10)
    np.testing.assert_allclose(2 * np.einsum("tkn,tn->k", G, beta) - bend * d - P @ tau, right[1], atol=1e-10)
    np.testing.assert_allclose(p * P.T @ d - corner @ tau, r_d, atol=1e-10)


def test_kernels_can_be_exchanged_on_the_way():
    """Begun on one half of the kernels, continued on all: the optimum of all."""
    grams, y = random_problem(30, 8, seed=6)
    whole = problem_of(grams, y, Hinge(), 1.0)
    half = replace(whole, bank=whole.bank.subset(np.arange(4)))
    start = half.solve(half.bank.combine(np.full(4, 0.25)))
    method = InteriorPoint(half, 1.0, start, np.full(4, 0.25))
    method.run(1e-2)
    quad_forms = whole.bank.quad_forms(method.beta(method.point.x)).sum(axis=0)
    method.exchange(whole, np.array([0, 1, 2, 3, -1, -1, -1, -1]), quad_forms)
    solution = method.run(1e-8)
    optimum, _ = solve_dual(grams, y, 1.0, "hinge", 1.0)
    assert solution.certificate.gap <= 1e-8
    assert solution.certificate.primal == pytest.approx(optimum, rel=1e-6)
