"""The second-order engine: the same optimum as the oracle and as the alternation, exact zeros, hostile settings."""

import numpy as np
import pytest

from manykernels.banks import Placement, Recipe, bind
from manykernels.kernels import Gaussian, KernelBank, Linear, standard_bank
from manykernels.losses import EpsilonInsensitive, Hinge, Logistic, Squared, SquaredHinge
from manykernels.norms import LpNorm
from manykernels.outer.automatic import automatic
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.newton import NEWTON, newton
from manykernels.problem import Problem
from tests.reference.oracle import certificate, random_problem, solve_dual

LOSSES = [
    (Hinge(), "classification"),
    (SquaredHinge(), "classification"),
    (Logistic(), "classification"),
    (Squared(), "regression"),
    (EpsilonInsensitive(0.1), "regression"),
]


def problem_of(grams, y, loss, p, C=1.0, fit_intercept=True):
    y = np.atleast_2d(y)
    bank = bind(
        KernelBank.from_arrays(grams),
        np.arange(y.shape[1])[:, None],
        Recipe(normalize=None),
        Placement(precision="double"),
    )
    return Problem(bank, loss, LpNorm(p), y, np.full(y.shape, float(C)), fit_intercept)


def naive_gap(problem, grams, result):
    """The gap by the oracle, from weights, coefficients and intercepts alone."""
    return certificate(
        grams,
        problem.y,
        problem.C,
        problem.loss.name,
        problem.norm.p,
        result.weights,
        result.machine.beta,
        result.machine.intercept,
        problem.fit_intercept,
    )[2]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", [1.0, 1.001, 1.1, 4 / 3, 2.0, 4.0])
@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=[loss.name for loss, _ in LOSSES])
def test_reaches_the_optimum(loss, task, p, fit_intercept):
    grams, y = random_problem(30, 6, seed=1, task=task)
    problem = problem_of(grams, y, loss, p, fit_intercept=fit_intercept)
    result = newton(problem, tol=1e-7)
    optimum, _ = solve_dual(grams, y, 1.0, loss.name, p, fit_intercept)
    assert result.converged
    assert result.certificate.primal == pytest.approx(optimum, rel=1e-6)
    assert abs(naive_gap(problem, grams, result)) <= 1.1e-7


@pytest.mark.parametrize("C", [1e-4, 1e6])
@pytest.mark.parametrize("p", [1.0, 1.001, 2.0])
@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=[loss.name for loss, _ in LOSSES])
def test_hostile_settings(loss, task, p, C):
    """Duplicate kernels, a constant one, tiny and huge C: the Hessian is singular or the box never binds."""
    grams, y = random_problem(40, 6, seed=4, task=task)
    grams = [*grams, grams[0].copy(), np.ones((40, 40)), grams[2].copy()]
    problem = problem_of(grams, y, loss, p, C)
    result = newton(problem, tol=1e-4)
    assert result.converged
    assert -1e-9 <= naive_gap(problem, grams, result) <= 1.01e-4


@pytest.mark.parametrize(
    ("loss", "p", "seeds"),
    [
        (EpsilonInsensitive(0.1), 1.001, (4, 16, 18)),
        (EpsilonInsensitive(0.1), 1.01, (2, 4, 13, 16)),
        (Hinge(), 1.001, (5, 14)),
        (Hinge(), 1.01, (5, 8, 15)),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_heavy_kernel_joins_late(loss, p, seeds):
    """With p just above 1 a kernel may take a third of the weight when the iterate is at its bounds already."""
    task = "classification" if isinstance(loss, Hinge) else "regression"
    for seed in seeds:
        grams, y = random_problem(40, 6, seed=seed, task=task)
        grams = [*grams, grams[0].copy(), np.ones((40, 40)), grams[2].copy()]
        problem = problem_of(grams, y, loss, p, 1e6)
        result = newton(problem, tol=1e-4)
        assert result.converged, seed
        assert -1e-9 <= naive_gap(problem, grams, result) <= 1.01e-4


@pytest.mark.parametrize("C", [1e6, 1e8])
def test_steps_do_not_go_round_in_a_circle(C):
    """A predictor of which a twentieth can be made has a second-order error that is not that of the step."""
    grams, y = random_problem(40, 6, seed=22)
    grams = [*grams, grams[0].copy(), np.ones((40, 40)), grams[2].copy()]
    result = newton(problem_of(grams, y, Hinge(), 2.0, C), tol=1e-4)
    assert result.converged
    assert result.n_inner_solves < 80


def test_several_tasks_share_their_weights():
    grams, Y = random_problem(36, 5, seed=2, n_tasks=3)
    targets = np.where(Y.argmax(axis=0) == np.arange(3)[:, None], 1.0, -1.0)
    for p in (1.0, 1.5):
        result = newton(problem_of(grams, targets, Hinge(), p), tol=1e-7)
        optimum, _ = solve_dual(grams, targets, 1.0, "hinge", p)
        assert result.certificate.primal == pytest.approx(optimum, rel=1e-6)


def sonar_like(n=120, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.sign(X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * X[:, 2] * X[:, 3] + 0.3 * rng.standard_normal(n))
    bank = bind(standard_bank(X), X, Recipe(normalize="trace"), Placement(precision="double"))
    return bank, y[None, :]


@pytest.mark.parametrize("C", [1.0, 100.0, 1000.0])
def test_same_objective_as_the_alternation(C):
    bank, y = sonar_like()
    problem = Problem(bank, Hinge(), LpNorm(1.1), y, np.full(y.shape, C))
    first, second = newton(problem, tol=1e-6), group_lasso(problem, tol=1e-6, max_iter=5000)
    assert first.converged
    assert second.converged
    assert first.certificate.primal == pytest.approx(second.certificate.primal, rel=2e-6)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_exact_zeros(C):
    """Few kernels and few coefficients are left, and the machine on the chosen kernels is optimal over all."""
    bank, y = sonar_like()
    problem = Problem(bank, Hinge(), LpNorm(1.0), y, np.full(y.shape, C))
    result = newton(problem, tol=1e-6)
    assert result.converged
    assert np.count_nonzero(result.weights) <= 40
    assert result.weights.sum() == pytest.approx(1.0)
    quad_forms = problem.quad_forms(result.machine)
    active = result.weights > 1e-6
    np.testing.assert_allclose(quad_forms[active], quad_forms.max(), rtol=1e-4)
    if C > 1:
        assert np.count_nonzero(result.machine.beta) < y.size


def test_few_full_passes(monkeypatch):
    bank, y = sonar_like()
    passes = []
    original = type(bank).quad_forms
    monkeypatch.setattr(
        type(bank), "quad_forms", lambda self, beta, subset=None: passes.append(1) or original(self, beta, subset)
    )
    problem = Problem(bank, Hinge(), LpNorm(1.0), y, np.full(y.shape, 100.0))
    assert newton(problem, tol=1e-6).converged
    assert len(passes) < 15


def test_warm_start_keeps_the_optimum():
    bank, y = sonar_like()
    problem = Problem(bank, Hinge(), LpNorm(1.0), y, np.full(y.shape, 10.0))
    cold = newton(problem, tol=1e-6)
    warm = newton(problem, tol=1e-6, start=cold.weights)
    assert warm.converged
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-6)


def test_out_of_rounds_is_said():
    bank, y = sonar_like()
    problem = Problem(bank, Hinge(), LpNorm(1.0), y, np.full(y.shape, 100.0))
    result = newton(problem, tol=1e-9, max_iter=1)
    assert not result.converged
    assert result.certificate.gap > 1e-9


def test_infinite_p_is_refused_and_auto_takes_care():
    bank, y = sonar_like(n=40)
    problem = Problem(bank, Hinge(), LpNorm(np.inf), y, np.ones(y.shape))
    with pytest.raises(TypeError, match="finite p"):
        NEWTON(problem)
    assert automatic(problem).converged


def test_one_kernel():
    X = np.linspace(-1, 1, 20)[:, None]
    bank = bind(KernelBank([Gaussian(1.0)]), X)
    problem = Problem(bank, Hinge(), LpNorm(1.0), np.sign(X.T + 0.01), np.ones((1, 20)))
    result = newton(problem, tol=1e-6)
    assert result.converged
    assert result.weights == pytest.approx([1.0])


def test_few_kernels_even_where_equal_weights_would_do():
    """A tiny C: the first iterate is within the tolerance, yet p = 1 ends with few kernels."""
    bank, y = sonar_like(n=60)
    problem = Problem(bank, Hinge(), LpNorm(1.0), y, np.full(y.shape, 1e-6))
    result = newton(problem, tol=1e-3)
    assert result.converged
    assert np.count_nonzero(result.weights) < 10


def test_a_set_of_one_kernel_is_not_exchanged_for_another_and_back():
    """Started with all weight on one of two kernels, the multiplier of the first rough solution says nothing yet."""
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(40, 3))
    X[X < 0.6] = 0
    y = (4 * rng.uniform(size=40)).astype(int)
    for out in (slice(0, 14), slice(14, 27), slice(27, 40)):
        Z, target = np.delete(X, out, axis=0), np.delete(y, out).astype(float)
        bank = bind(KernelBank([Linear(), Gaussian(1.0)]), Z)
        problem = Problem(bank, Squared(), LpNorm(1.0), target[None, :], np.full((1, target.size), 10.0))
        for start in (np.array([1.0, 1e-6]), np.array([1e-6, 1.0])):
            assert newton(problem, tol=1e-3, max_iter=20, start=start).converged
