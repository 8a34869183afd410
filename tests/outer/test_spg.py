"""Spectral projected gradient and its baseline: the optima of the oracle and the others, and each of its parts."""

import numpy as np
import pytest

from manykernels.losses import EpsilonInsensitive, Hinge, Logistic, Squared
from manykernels.norms import LpNorm, LpPenalty, Penalty
from manykernels.outer.automatic import automatic
from manykernels.outer.group_lasso import GROUP_LASSO, group_lasso
from manykernels.outer.newton import newton
from manykernels.outer.spg import Options, ProjectedGradient, spg
from manykernels.problem import Problem
from tests.outer.test_newton import problem_of, sonar_like
from tests.reference.oracle import random_problem, solve_dual, solve_penalized

LOSSES = [
    (Hinge(), "classification"),
    (Logistic(), "classification"),
    (Squared(), "regression"),
    (EpsilonInsensitive(0.1), "regression"),
]


def penalized(norm, loss=None, task="classification", C=1.0, seed=1):
    grams, y = random_problem(30, 6, seed=seed, task=task)
    problem = problem_of(grams, y, loss or Hinge(), 1.0, C)
    return grams, Problem(problem.bank, problem.loss, norm, problem.y, problem.C)


# With p = 1 the alternation nears the optimum too slowly for six digits.
SOLVERS = [(spg, 1.0), (newton, 1.0), *((solver, p) for solver in (spg, newton, group_lasso) for p in (1.33, 2.0))]


@pytest.mark.parametrize(("solver", "p"), SOLVERS, ids=[f"{solver.__name__}-{p:g}" for solver, p in SOLVERS])
@pytest.mark.parametrize("strength", [0.2, 5.0])
@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=[loss.name for loss, _ in LOSSES])
def test_penalties_against_the_oracle(loss, task, p, strength, solver):
    grams, problem = penalized(LpPenalty(p, strength), loss, task)
    result = solver(problem, tol=3e-6, max_iter=20_000)
    optimum = solve_penalized(grams, problem.y, 1.0, loss.name, p, strength)
    assert result.converged
    assert result.certificate.primal == pytest.approx(optimum, rel=1e-5)
    assert result.certificate.dual <= optimum * (1 + 1e-7) + 1e-9


@pytest.mark.parametrize("p", [1.0, 1.1, 1.5, 2.0, 3.0])
def test_the_optimum_of_the_constraint(p):
    grams, problem = penalized(LpNorm(p))
    result = spg(problem, tol=3e-6, max_iter=20_000)
    optimum, _ = solve_dual(grams, problem.y, 1.0, "hinge", p)
    assert result.converged
    assert result.certificate.primal == pytest.approx(optimum, rel=1e-5)


@pytest.mark.parametrize("p", [1.0, 4 / 3])
def test_same_objective_as_the_other_solvers(p):
    bank, y = sonar_like(n=60)
    problem = Problem(bank, Hinge(), LpNorm(p), y, np.full(y.shape, 100.0))
    first, second = spg(problem, tol=1e-4, max_iter=5000), automatic(problem, tol=1e-4)
    assert first.converged
    assert first.certificate.primal == pytest.approx(second.certificate.primal, rel=2e-4)


@pytest.mark.parametrize("part", ["spectral", "non_monotone", "tune_precision", "proximal"])
def test_each_part_can_be_switched_off(part):
    _, problem = penalized(LpPenalty(1.33))
    every = spg(problem, tol=1e-4)
    without = spg(problem, tol=1e-4, max_iter=20_000, options=Options(**{part: False}))
    assert without.converged
    assert without.certificate.primal == pytest.approx(every.certificate.primal, rel=2e-4)
    assert not np.array_equal(without.weights, every.weights)


def test_the_inner_tolerance_never_grows(monkeypatch):
    seen = []
    original = ProjectedGradient.evaluate
    monkeypatch.setattr(
        ProjectedGradient, "evaluate", lambda self, *a: seen.append(self.inner_tol) or original(self, *a)
    )
    spg(penalized(LpPenalty(1.0))[1], tol=1e-5)
    assert seen[0] == 0.1
    assert np.all(np.diff(seen) <= 0)
    assert seen[-1] < 1e-2


def test_starts():
    _, problem = penalized(LpPenalty(2.0))
    one, again = spg(problem, tol=1e-5), spg(problem, tol=1e-5)
    np.testing.assert_array_equal(one.weights, again.weights)
    random = spg(problem, tol=1e-5, random_state=3)
    assert not np.array_equal(random.weights, one.weights)
    assert random.certificate.primal == pytest.approx(one.certificate.primal, rel=2e-5)
    warm = spg(problem, tol=1e-5, start=one.weights)
    assert warm.n_iter < one.n_iter


class Quartic(Penalty):
    """Neither conjugate nor proximal map."""

    def value(self, weights):
        return float(np.sum(weights**4) + np.sum(weights))

    def gradient(self, weights):
        return 4 * weights**3 + 1


class QuarticWithDual(Quartic):
    """The conjugate by maximizing u d - d^4 - d: d = ((u - 1) / 4)^(1/3)."""

    def conjugate(self, slopes):
        d = np.cbrt(np.maximum(slopes - 1, 0) / 4)
        return float(np.sum((slopes - 1) * d - d**4))


def test_a_penalty_of_ones_own():
    """Without a gap it stops by the gradient, at the point that the gap certifies when there is one."""
    _, problem = penalized(QuarticWithDual())
    certified = automatic(problem, tol=1e-6)
    assert certified.converged
    assert certified.certificate.gap <= 1e-6
    _, problem = penalized(Quartic())
    result = automatic(problem, tol=1e-5, max_iter=5000)
    assert result.converged
    assert np.isnan(result.certificate.gap)
    assert result.certificate.primal == pytest.approx(certified.certificate.primal, rel=1e-4)


def test_the_alternation_needs_a_closed_form():
    with pytest.raises(TypeError, match="closed form"):
        GROUP_LASSO(penalized(Quartic())[1])


class LinearWithWeights(Penalty):
    """r(d) = 3 sum_k d_k, with the d that minimizes a^2 / (2 d) + 3 d; conjugate or not, that is the question."""

    def value(self, weights):
        return 3.0 * float(np.sum(weights))

    def gradient(self, weights):
        return np.full(weights.shape, 3.0)

    def weights(self, norms):
        return norms / np.sqrt(6.0)


class LinearWithDual(LinearWithWeights):
    def conjugate(self, slopes):
        return 0.0 if slopes.max(initial=0.0) <= 3.0 * (1 + 1e-12) else np.inf

    def dual_limit(self, quad_forms):
        return LpPenalty(1, 3.0).dual_limit(quad_forms)


def test_best_weights_for_given_components_are_a_closed_form():
    grams, problem = penalized(LinearWithDual())
    expected = solve_penalized(grams, problem.y[0], problem.C[0, 0], "hinge", 1.0, 3.0)
    for solver in (group_lasso, automatic):
        result = solver(problem, tol=1e-4, max_iter=5000)
        assert result.converged
        assert result.certificate.primal == pytest.approx(expected, rel=2e-4)


def test_a_closed_form_without_a_gap_is_left_to_the_gradient():
    _, problem = penalized(LinearWithWeights())
    assert automatic(problem, tol=1e-4, max_iter=5000).converged
    with pytest.raises(TypeError, match="no conjugate"):
        GROUP_LASSO(problem)


def test_several_tasks():
    grams, Y = random_problem(36, 5, seed=2, n_tasks=3)
    targets = np.where(Y.argmax(axis=0) == np.arange(3)[:, None], 1.0, -1.0)
    problem = problem_of(grams, targets, Hinge(), 1.0)
    problem = Problem(problem.bank, problem.loss, LpPenalty(1.5), problem.y, problem.C)
    result = spg(problem, tol=3e-6, max_iter=5000)
    assert result.certificate.primal == pytest.approx(solve_penalized(grams, targets, 1.0, "hinge", 1.5, 1.0), rel=1e-5)
