"""The problem by itself: its certificate at any weights and dual points, by the oracle and by hand."""

from dataclasses import replace

import numpy as np
import pytest

from manykernels.banks import Placement, Recipe, bind
from manykernels.core.results import Machine
from manykernels.kernels import KernelBank
from manykernels.losses import EpsilonInsensitive, Hinge, Logistic, Squared, SquaredHinge
from manykernels.norms import LpNorm, LpPenalty, MixedNorm, Penalty
from manykernels.problem import Problem
from tests.reference import oracle

N, M = 24, 5
GROUPS = ["a", "b", "b", "a", "c"]
LOSSES = [Hinge(), SquaredHinge(), Logistic(), Squared(), EpsilonInsensitive(0.1)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
every_intercept = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])


def problem_of(loss, norm, fit_intercept=True, n_tasks=1, C=2.0):
    """A problem with a cost of its own for each sample, and its kernels."""
    task = "regression" if loss.regression else "classification"
    grams, Y = oracle.random_problem(N, M, seed=3, task=task, n_tasks=n_tasks)
    Y = np.atleast_2d(Y)
    bank = bind(
        KernelBank.from_arrays(grams), np.arange(N)[:, None], Recipe(normalize=None), Placement(precision="double")
    )
    costs = C * np.random.default_rng(0).uniform(0.5, 2.0, Y.shape)
    return Problem(bank, loss, norm, Y, costs, fit_intercept), grams


def some_machine(problem, weights, seed=1):
    """A machine at a dual point that nobody has optimized."""
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=problem.y.shape) * problem.C
    beta = np.array([problem.feasible(row, t) for t, row in enumerate(beta)])
    return problem.machine(beta, beta @ problem.bank.combine(weights).array)


def certificate_of(problem, weights, machine):
    return problem.certificate(weights, machine, problem.quad_forms(machine))


@every_intercept
@pytest.mark.parametrize("p", [1, 4 / 3, 2.0, np.inf])
@every_loss
def test_the_certificate_is_that_of_the_oracle_at_any_point(loss, p, fit_intercept):
    problem, grams = problem_of(loss, LpNorm(p), fit_intercept)
    for seed in range(4):
        weights = problem.norm.scaled(np.random.default_rng(seed).uniform(0.1, 1.0, M))
        machine = some_machine(problem, weights, seed)
        found = certificate_of(problem, weights, machine)
        primal, dual, _ = oracle.certificate(
            grams, problem.y, problem.C, loss.name, p, weights, machine.beta, machine.intercept, fit_intercept
        )
        assert (found.primal, found.dual) == pytest.approx((primal, dual), rel=1e-9)


@pytest.mark.parametrize("q", [0.75, 1, 2, np.inf])
@every_loss
def test_the_certificate_with_groups_is_that_of_the_oracle(loss, q):
    problem, grams = problem_of(loss, MixedNorm(q, GROUPS))
    weights = problem.norm.scaled(np.random.default_rng(0).uniform(0.1, 1.0, M))
    machine = some_machine(problem, weights)
    found = certificate_of(problem, weights, machine)
    primal, dual, _ = oracle.mixed_certificate(
        grams, problem.y, problem.C, loss.name, q, GROUPS, weights, machine.beta, machine.intercept
    )
    assert (found.primal, found.dual) == pytest.approx((primal, dual), rel=1e-9)


@pytest.mark.parametrize(
    "norm", [LpNorm(1), LpNorm(2.0), LpPenalty(1, 0.5), LpPenalty(2.0), MixedNorm(2, GROUPS)], ids=repr
)
@every_loss
def test_every_certificate_encloses_what_every_other_machine_reaches(loss, norm):
    """A dual value at one place is below the primal value at any other."""
    problem, _ = problem_of(loss, norm)
    found = []
    for seed in range(6):
        weights = norm.scaled(np.random.default_rng(seed).uniform(0.0, 1.0, M))
        solved = problem.solve(problem.bank.combine(weights), tol=1e-6)
        found += [
            certificate_of(problem, weights, machine) for machine in (some_machine(problem, weights, seed), solved)
        ]
    lowest = min(certificate.primal for certificate in found)
    assert max(certificate.dual for certificate in found) <= lowest * (1 + 1e-12)


@every_intercept
@every_loss
def test_the_nearest_feasible_coefficients_are_feasible_and_stay(loss, fit_intercept):
    problem, _ = problem_of(loss, LpNorm(1), fit_intercept)
    lower, upper = loss.domain(problem.y[0], problem.C[0])
    for seed in range(5):
        beta = problem.feasible(5.0 * np.random.default_rng(seed).normal(size=N), 0)
        slack = 1e-12 * np.abs(beta).sum()
        assert np.all((beta >= lower - slack) & (beta <= upper + slack))
        if fit_intercept:
            assert abs(beta.sum()) <= slack
        np.testing.assert_allclose(problem.feasible(beta, 0), beta, atol=1e-9)


@every_loss
def test_the_intercepts_of_a_machine_are_best(loss):
    problem, _ = problem_of(loss, LpNorm(1))
    machine = some_machine(problem, np.full(M, 1 / M))
    for step in (-1e-3, 1e-3):
        moved = np.sum(problem.C * loss.value(problem.y, machine.decision + machine.intercept[:, None] + step))
        assert machine.losses <= moved * (1 + 1e-12)
    assert machine.losses == pytest.approx(
        np.sum(problem.C * loss.value(problem.y, machine.decision + machine.intercept[:, None]))
    )


def test_tasks_add_up():
    problem, grams = problem_of(Hinge(), LpNorm(1.5), n_tasks=3)
    weights = problem.norm.initial_weights(M)
    machine = some_machine(problem, weights)
    forms = np.einsum("ti,kij,tj->k", machine.beta, grams, machine.beta)
    np.testing.assert_allclose(problem.quad_forms(machine), forms, rtol=1e-10)
    np.testing.assert_allclose(problem.quad_forms(machine, np.array([3, 0])), forms[[3, 0]], rtol=1e-10)
    found = certificate_of(problem, weights, machine)
    primal, dual, _ = oracle.certificate(
        grams, problem.y, problem.C, "hinge", 1.5, weights, machine.beta, machine.intercept
    )
    assert (found.primal, found.dual) == pytest.approx((primal, dual), rel=1e-9)


def test_the_tail_is_the_problem_of_the_last_samples():
    problem, grams = problem_of(Logistic(), LpNorm(2.0))
    tail, weights = problem.tail(9), np.full(M, 0.4)
    np.testing.assert_array_equal(tail.y, problem.y[:, -9:])
    np.testing.assert_array_equal(tail.C, problem.C[:, -9:])
    expected = np.tensordot(weights, grams, axes=1)[-9:, -9:]
    np.testing.assert_allclose(tail.bank.combine(weights).array, expected, rtol=1e-12)


class Quartic(Penalty):
    """A penalty whose conjugate nobody knows."""

    def value(self, weights):
        return float(np.sum(weights**4))

    def gradient(self, weights):
        return 4 * weights**3


def test_without_a_conjugate_there_is_a_primal_value_alone():
    problem, _ = problem_of(Hinge(), Quartic())
    found = certificate_of(problem, np.full(M, 0.5), some_machine(problem, np.full(M, 0.5)))
    assert np.isfinite(found.primal)
    assert np.isnan(found.dual)
    assert np.isnan(found.gap)


@pytest.mark.parametrize("part", ["losses", "conjugates"])
def test_what_overflows_certifies_nothing(part):
    problem, _ = problem_of(Squared(), LpNorm(1))
    weights = problem.norm.initial_weights(M)
    machine = some_machine(problem, weights)
    huge = replace(machine, **{part: np.inf})
    assert isinstance(huge, Machine)
    found = certificate_of(problem, weights, huge)
    assert (found.primal if part == "losses" else -found.dual) == np.inf
    assert not found.within(1.0)
