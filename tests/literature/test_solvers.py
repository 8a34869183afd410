"""Well-known methods as baselines: the same optimum as ours, hostile settings, what they refuse."""

import numpy as np
import pytest

from manykernels import MKLClassifier, MKLRegressor
from manykernels.banks import Placement, Recipe, bind
from manykernels.core.progress import listen
from manykernels.kernels import Gaussian, KernelBank
from manykernels.literature.hessian import hessian
from manykernels.literature.level import level
from manykernels.literature.records import HESSIAN, LEVEL, SILP, SIMPLE, SMO
from manykernels.literature.silp import silp
from manykernels.literature.simple import simple
from manykernels.literature.smo_mkl import smo
from manykernels.losses import EpsilonInsensitive, Hinge, Logistic, Squared, SquaredHinge
from manykernels.norms import LpNorm, LpPenalty, MixedNorm
from manykernels.norms.lp import power_norm
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.newton import newton
from manykernels.problem import Problem
from tests.reference.oracle import certificate, random_problem, solve_dual

LOSSES = [
    (Hinge(), "classification"),
    (SquaredHinge(), "classification"),
    (Logistic(), "classification"),
    (Squared(), "regression"),
    (EpsilonInsensitive(0.1), "regression"),
]
IN_WEIGHTS = [simple, silp, level, hessian]
PAIRS = [(solver, 1.0) for solver in IN_WEIGHTS] + [(silp, 1.05), (silp, 2.0), (smo, 1.05), (smo, 2.0)]
NAMES = [f"{solver.__name__}-{p:g}" for solver, p in PAIRS]


def every_pair(losses):
    """Run a test for each solver with each loss that it takes."""
    cases = [
        pytest.param(solver, p, *own, id=f"{name}-{own[0].name}")
        for (solver, p), name in zip(PAIRS, NAMES, strict=True)
        for own in losses
        if solver is not smo or isinstance(own[0], Hinge)
    ]
    return pytest.mark.parametrize(("solver", "p", "loss", "task"), cases)


def problem_of(grams, y, loss, norm, C=1.0, fit_intercept=True):
    y = np.atleast_2d(y)
    norm = LpNorm(norm) if isinstance(norm, (int, float)) else norm
    bank = bind(
        KernelBank.from_arrays(grams),
        np.arange(y.shape[1])[:, None],
        Recipe(normalize=None),
        Placement(precision="double"),
    )
    return Problem(bank, loss, norm, y, np.full(y.shape, float(C)), fit_intercept)


def assert_certified(problem, grams, result, tol):
    """The gap by the oracle, from weights, coefficients and intercepts alone; the weights are feasible."""
    primal, _, gap = certificate(
        grams,
        problem.y,
        problem.C,
        problem.loss.name,
        problem.norm.p,
        result.weights,
        result.machine.beta,
        result.machine.intercept,
        problem.fit_intercept,
    )
    assert result.converged
    assert result.weights.min() >= 0
    assert power_norm(result.weights, problem.norm.p) == pytest.approx(1.0, abs=1e-9)
    assert -1e-9 <= gap <= 1.01 * tol
    assert result.certificate.primal == pytest.approx(primal, rel=1e-7)


@pytest.mark.parametrize("fit_intercept", [True, False])
@every_pair(LOSSES)
def test_reaches_the_optimum(solver, p, loss, task, fit_intercept):
    grams, y = random_problem(30, 6, seed=1, task=task)
    problem = problem_of(grams, y, loss, p, fit_intercept=fit_intercept)
    result = solver(problem, tol=1e-5)
    assert_certified(problem, grams, result, 1e-5)
    assert result.certificate.primal == pytest.approx(newton(problem, tol=1e-7).certificate.primal, rel=1.2e-5)
    assert result.n_iter == len(result.trace)


@pytest.mark.parametrize(("solver", "p"), PAIRS, ids=NAMES)
def test_the_optimum_is_that_of_the_oracle(solver, p):
    grams, y = random_problem(30, 6, seed=1)
    optimum, _ = solve_dual(grams, y, 1.0, "hinge", p)
    assert solver(problem_of(grams, y, Hinge(), p), tol=1e-6).certificate.primal == pytest.approx(optimum, rel=2e-6)


@pytest.mark.parametrize("solver", [silp, smo])
@pytest.mark.parametrize("p", [1.001, 4 / 3, 8.0, 1000.0, np.inf])
def test_any_p(solver, p):
    grams, y = random_problem(30, 6, seed=3)
    problem = problem_of(grams, y, Hinge(), float(p))
    result = solver(problem, tol=1e-4)
    assert_certified(problem, grams, result, 1e-4)
    assert result.certificate.primal == pytest.approx(group_lasso(problem, tol=1e-4).certificate.primal, rel=2e-4)


@pytest.mark.filterwarnings("ignore:Kernels")
@pytest.mark.parametrize("C", [1e-4, 1e4])
@every_pair([LOSSES[0], LOSSES[3], LOSSES[4]])
def test_hostile_settings(solver, p, loss, task, C):
    """Duplicate kernels, a constant one, tiny and huge C."""
    grams, y = random_problem(40, 6, seed=4, task=task)
    grams = [*grams, grams[0].copy(), np.ones((40, 40)), grams[2].copy()]
    problem = problem_of(grams, y, loss, p, C)
    result = solver(problem, tol=1e-3)
    assert_certified(problem, grams, result, 1e-3)
    # Up to rounding of values of the size of C.
    assert result.certificate.primal == pytest.approx(newton(problem, tol=1e-6).certificate.primal, rel=1.1e-3)


@pytest.mark.parametrize(("solver", "p"), PAIRS, ids=NAMES)
def test_one_kernel(solver, p):
    grams, y = random_problem(30, 1, seed=5)
    result = solver(problem_of(grams, y, Hinge(), p), tol=1e-6)
    assert result.converged
    np.testing.assert_allclose(result.weights, [1.0], rtol=1e-12)


@pytest.mark.filterwarnings("ignore:1 of 5 kernels")
@pytest.mark.parametrize(("solver", "p"), PAIRS, ids=NAMES)
def test_a_kernel_that_is_zero(solver, p):
    grams, y = random_problem(30, 4, seed=5)
    grams = [np.zeros((30, 30)), *grams]
    problem = problem_of(grams, y, Hinge(), p)
    assert_certified(problem, grams, solver(problem, tol=1e-4), 1e-4)


@pytest.mark.parametrize(("solver", "p"), PAIRS, ids=NAMES)
def test_several_tasks_share_their_weights(solver, p):
    grams, Y = random_problem(36, 5, seed=2, n_tasks=3)
    problem = problem_of(grams, Y, Hinge(), p)
    result = solver(problem, tol=1e-5)
    assert_certified(problem, grams, result, 1e-5)
    assert result.certificate.primal == pytest.approx(newton(problem, tol=1e-7).certificate.primal, rel=1.2e-5)


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("solver", IN_WEIGHTS)
def test_kinks(solver, C):
    """With kernels of rank one the machine's beta is not unique, and its value not differentiable in the weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8))
    grams = [np.outer(x, x) for x in X.T]
    problem = problem_of(grams, np.sign(X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=40)), Hinge(), 1.0, C)
    assert_certified(problem, grams, solver(problem, tol=1e-3), 1e-3)


@pytest.mark.parametrize("solver", IN_WEIGHTS)
def test_weights_vanish_exactly(solver):
    grams, y = random_problem(40, 12, seed=6)
    problem = problem_of(grams, y, Hinge(), 1.0)
    active = newton(problem, tol=1e-8).weights > 1e-6
    weights = solver(problem, tol=1e-5).weights
    assert np.count_nonzero(weights) < 12
    assert np.all(weights[~active] < 1e-2)


@pytest.mark.parametrize(("solver", "p"), PAIRS, ids=NAMES)
def test_max_iter_returns_the_best_iterate(solver, p):
    grams, y = random_problem(40, 8, seed=7)
    problem = problem_of(grams, y, Hinge(), p, C=100.0)
    for max_iter in (1, 2):
        result = solver(problem, tol=1e-9, max_iter=max_iter)
        assert result.n_iter == len(result.trace) == max_iter
        assert not result.converged
        assert result.certificate.gap == min(step.gap for step in result.trace)


@pytest.mark.parametrize(("solver", "p"), PAIRS, ids=NAMES)
def test_a_gap_out_of_reach_ends_the_run(solver, p):
    grams, y = random_problem(30, 4, seed=7)
    result = solver(problem_of(grams, y, Hinge(), p), tol=1e-17, max_iter=700)
    assert result.n_iter < 700
    assert result.certificate.gap < 1e-5


@pytest.mark.parametrize(("solver", "p"), PAIRS, ids=NAMES)
def test_a_start_at_the_optimum_is_enough(solver, p):
    grams, y = random_problem(40, 6, seed=8)
    problem = problem_of(grams, y, Hinge(), p)
    best = newton(problem, tol=1e-9)
    result = solver(problem, tol=1e-3, start=7.0 * best.weights)  # the length does not count
    assert result.converged
    assert result.n_iter <= 2
    assert result.n_inner_solves > 0


@pytest.mark.parametrize("solver", IN_WEIGHTS)
def test_every_machine_is_counted(solver, monkeypatch):
    grams, y = random_problem(30, 6, seed=1)
    problem, calls, own = problem_of(grams, y, Hinge(), 1.0), [], Problem.solve

    def counted(self, *args, **kwargs):
        calls.append(1)
        return own(self, *args, **kwargs)

    monkeypatch.setattr(Problem, "solve", counted)
    result = solver(problem, tol=1e-4)
    assert result.n_inner_solves == len(calls) >= result.n_iter


@pytest.mark.parametrize(("solver", "p"), PAIRS, ids=NAMES)
def test_ctrl_c_leaves_the_best_so_far(solver, p):
    grams, y = random_problem(30, 6, seed=13)
    heard = []

    def callback(step):
        heard.append(step)
        if len(heard) == 2:
            raise KeyboardInterrupt

    with listen(callback):
        result = solver(problem_of(grams, y, Hinge(), p, C=100.0), tol=1e-9)
    assert result.interrupted
    assert not result.converged
    assert result.n_iter == len(heard) == 2


class NamedHinge(Squared):
    """The squared loss under the name of another."""

    name = "hinge"


def test_what_does_not_fit_is_refused(monkeypatch):
    grams, y = random_problem(20, 4, seed=12)
    monkeypatch.setattr(Problem, "solve", None)  # before any work
    for norm in (LpNorm(2), LpPenalty(1), MixedNorm(1, list("aabb"))):
        for solver in (SIMPLE, LEVEL, HESSIAN):
            with pytest.raises(TypeError, match=rf"solver='{solver.name}' needs LpNorm\(1\), got "):
                solver(problem_of(grams, y, Hinge(), norm))
    for norm in (LpPenalty(1), MixedNorm(1, list("aabb"))):
        with pytest.raises(TypeError, match=r"solver='silp' needs LpNorm\(p\), got "):
            SILP(problem_of(grams, y, Hinge(), norm))
    for norm in (LpNorm(1), LpPenalty(2)):
        with pytest.raises(TypeError, match=r"solver='smo' needs LpNorm\(p\) with p > 1, got "):
            SMO(problem_of(grams, y, Hinge(), norm))
    for loss in (Logistic(), Squared(), EpsilonInsensitive(0.1), NamedHinge()):
        with pytest.raises(
            TypeError,
            match=r"solver='smo' needs a loss of straight pieces without a tube, such as the hinge loss, got ",
        ):
            SMO(problem_of(grams, y, loss, LpNorm(2)))


# -- through the estimators --------------------------------------------------------------------------------------


def two_moons():
    X = np.random.default_rng(0).normal(size=(80, 3))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize(("solver", "p"), PAIRS, ids=NAMES)
def test_through_the_classifier(solver, p):
    X, y = two_moons()
    kernels = [Gaussian(w, columns=c) for w in (0.5, 1.0, 2.0) for c in ([0, 1], [2])]
    model = MKLClassifier(kernels, norm=p, C=10.0, solver=solver.__name__).fit(X, y)
    expected = MKLClassifier(kernels, norm=p, C=10.0, solver="group_lasso").fit(X, y)
    assert model.converged_
    assert model.gap_ <= 1e-3
    assert model.objective_ == pytest.approx(expected.objective_, rel=2e-3)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("solver", ["simple", "silp", "level", "hessian"])
def test_through_the_regressor(solver):
    X, _ = two_moons()
    model = MKLRegressor([Gaussian(w) for w in (0.5, 1.0, 2.0)], solver=solver).fit(X, X[:, 0] * X[:, 1])
    assert model.converged_


@pytest.mark.parametrize("solver", ["simple", "silp", "level"])
def test_rows_on_demand(solver):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(700, 2))
    y = np.sign(X[:, 0] * X[:, 1])
    model = MKLClassifier([Gaussian(0.5), Gaussian(2.0)], C=0.1, solver=solver, memory_budget=3_000_000, tol=1e-2).fit(
        X, y
    )
    expected = MKLClassifier([Gaussian(0.5), Gaussian(2.0)], C=0.1, tol=1e-2).fit(X, y)
    assert model.objective_ == pytest.approx(expected.objective_, rel=2e-2)
