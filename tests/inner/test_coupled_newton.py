"""Newton's method for losses that couple the samples, by the optimality conditions and the gap."""

import numpy as np
import pytest

from manykernels.compute.combined import CombinedMatrix
from manykernels.core.censored_times import Survival
from manykernels.core.results import Iterate
from manykernels.inner import coupled_newton
from manykernels.inner.solve import solve
from manykernels.losses import Cox
from tests.inner.test_smo import KERNELS, points
from tests.reference import cox_oracle

N = 60
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_cost = pytest.mark.parametrize("C", [1e-4, 1.0, 1e3, 1e6])


def case(kernel, C, seed=0):
    X = points(N, seed)
    event, time = cox_oracle.random_times(N, seed, X[:, 0])
    return KERNELS[kernel](X), event, time, Survival(event, time).ranks()[1], np.full(N, C)


class Products(CombinedMatrix):
    """A kernel that is known by its products alone."""

    can = frozenset({"block"})


@every_cost
@every_kernel
@pytest.mark.parametrize("kind", [CombinedMatrix, Products])
def test_reaches_its_gap(kernel, C, kind):
    """The primal value is that of the definition; the conjugate has tests of its own."""
    K, event, time, y, costs = case(kernel, C)
    machine = solve(kind(K), Cox(), y[None], costs[None], intercept=True, tol=1e-8)
    # By products alone, the last digits of a huge C are lost.
    assert machine.gap <= (1e-5 if kind is Products and C == 1e6 else 1e-8) * machine.objective
    beta = machine.beta[0]
    np.testing.assert_allclose(machine.decision[0], K @ beta, atol=1e-11 * (np.abs(K) @ np.abs(beta)).max())
    assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
    assert machine.objective == pytest.approx(0.5 * beta @ K @ beta + cox_oracle.loss(event, time, K @ beta, costs))


def test_beta_is_minus_the_slope_at_the_optimum():
    K, event, time, y, costs = case("wide", 3.0)
    machine = solve(CombinedMatrix(K), Cox(), y[None], costs[None], intercept=True, tol=1e-13)
    slope = cox_oracle.slope(event, time, K @ machine.beta[0], costs)
    np.testing.assert_allclose(machine.beta[0], -slope, atol=1e-5)


@every_kernel
def test_warm_start_needs_no_step_and_a_bad_one_does_no_harm(kernel):
    K, _, _, y, costs = case(kernel, 10.0)
    cold = solve(CombinedMatrix(K), Cox(), y[None], costs[None], intercept=True, tol=1e-8)
    again = solve(CombinedMatrix(K), Cox(), y[None], costs[None], intercept=True, tol=1e-6, start=cold)
    assert again.objective == pytest.approx(cold.objective, rel=1e-6)
    far = Iterate(1e5 * np.random.default_rng(0).standard_normal((1, N)), None, np.zeros(1))
    machine = solve(CombinedMatrix(K), Cox(), y[None], costs[None], intercept=True, tol=1e-8, start=far)
    assert machine.gap <= 1e-8 * machine.objective


def test_an_event_of_nobody_else_teaches_nothing():
    """The last one alone at risk: any prediction is as good, and the best has no norm."""
    y, K = np.array([-0.0, -0.0, 1.0]), np.eye(3)
    solution = coupled_newton.solve(K.dot, coupled_newton.factored(K), y, np.ones(3), Cox())
    assert solution.converged
    assert solution.objective == 0.0
    assert np.all(solution.beta == 0.0)


def test_equal_samples_and_ties_of_all_events():
    """All events at one time: half of the samples die, and the two kinds are told apart."""
    y, K = np.array([1.0, 1.0, -1.0, -1.0]), np.kron(np.eye(2), np.ones((2, 2)))
    machine = solve(CombinedMatrix(K), Cox(), y[None], np.full((1, 4), 5.0), intercept=True, tol=1e-10)
    assert machine.beta[0, 0] == pytest.approx(machine.beta[0, 1])
    assert machine.decision[0, 0] > machine.decision[0, 2]
    assert machine.intercept[0] == pytest.approx(-machine.decision[0].mean())
