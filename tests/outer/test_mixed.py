"""Mixed norms by every method that solves them, against CVXPY; groups of one, without signal, and hostile settings."""

from dataclasses import replace

import numpy as np
import pytest

import manykernels.outer.newton as engine
from manykernels.banks import Placement, Recipe, bind
from manykernels.core.progress import listen
from manykernels.kernels import KernelBank, standard_bank
from manykernels.losses import EpsilonInsensitive, Hinge, Logistic, Squared, SquaredHinge
from manykernels.norms import LpNorm, LpPenalty, MixedNorm
from manykernels.outer.automatic import automatic
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.mirror import MIRROR, mirror
from manykernels.outer.newton import newton
from manykernels.outer.spg import SPG
from manykernels.problem import Problem
from tests.reference.oracle import mixed_certificate, random_problem, solve_mixed

LOSSES = [
    (Hinge(), "classification"),
    (SquaredHinge(), "classification"),
    (Logistic(), "classification"),
    (Squared(), "regression"),
    (EpsilonInsensitive(0.1), "regression"),
]
UNBALANCED = ["a", "b", "b", "b", "b", "b"]
SINGLE = ["a", "a", "a", "b", "b", "c"]


def problem_of(grams, y, loss, norm, C=1.0, fit_intercept=True):
    y = np.atleast_2d(y)
    bank = bind(
        KernelBank.from_arrays(grams),
        np.arange(y.shape[1])[:, None],
        Recipe(normalize=None),
        Placement(precision="double"),
    )
    return Problem(bank, loss, norm, y, np.full(y.shape, float(C)), fit_intercept)


def naive_gap(problem, grams, result):
    return mixed_certificate(
        grams,
        problem.y,
        problem.C,
        problem.loss.name,
        problem.norm.q,
        problem.norm.groups,
        result.weights,
        result.machine.beta,
        result.machine.intercept,
    )[2]


@pytest.mark.parametrize("groups", [UNBALANCED, ["a", "a", "a", "b", "b", "b"]], ids=["unbalanced", "halves"])
@pytest.mark.parametrize("q", [0.5, 0.75, 1, 1.5, 2, 3, np.inf])
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e3])
def test_newton_reaches_the_optimum(q, groups, C):
    grams, y = random_problem(30, 6, seed=1)
    problem = problem_of(grams, y, Hinge(), MixedNorm(q, groups), C)
    result = newton(problem, tol=1e-6)
    assert result.converged
    assert result.certificate.primal == pytest.approx(solve_mixed(grams, y, C, "hinge", q, groups), rel=1e-5)
    assert abs(naive_gap(problem, grams, result)) <= 1.1e-6


@pytest.mark.parametrize("q", [0.75, 1, 2, np.inf])
@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=[loss.name for loss, _ in LOSSES])
def test_every_loss(loss, task, q):
    grams, y = random_problem(30, 6, seed=2, task=task)
    problem = problem_of(grams, y, loss, MixedNorm(q, UNBALANCED))
    result = automatic(problem, tol=1e-6)
    assert result.converged
    assert result.certificate.primal == pytest.approx(solve_mixed(grams, y, 1.0, loss.name, q, UNBALANCED), rel=1e-5)


@pytest.mark.parametrize("q", [0.75, 1, 2, 3])
def test_a_group_of_one_low_rank_kernel(q):
    grams, y = random_problem(30, 6, seed=1)  # the last kernel has rank one
    problem = problem_of(grams, y, Hinge(), MixedNorm(q, SINGLE))
    result = newton(problem, tol=1e-6)
    assert result.converged
    assert result.certificate.primal == pytest.approx(solve_mixed(grams, y, 1.0, "hinge", q, SINGLE), rel=1e-5)


def ill_posed(n=40, seed=7):
    """Groups of low rank: a kernel of rank one alone, duplicates, few distinct values, and one zero kernel."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    y = np.sign(X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.standard_normal(n))
    steps = np.round(X[:, 2])
    near = np.exp(-((X[:, 1, None] - X[None, :, 1]) ** 2))
    coarse = [np.exp(-((steps[:, None] - steps[None, :]) ** 2) / (2 * w**2)) for w in (0.5, 2.0)]
    grams = [np.outer(X[:, 3], X[:, 3]), near, near, *coarse, np.zeros((n, n)), (1 + X @ X.T) ** 2]
    return grams, y, ["line", "twins", "twins", "coarse", "coarse", "none", "all"]


@pytest.mark.parametrize("q", [1.001, 1.5, 3, 50, np.inf])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e2, 1e4])
def test_ill_posed_groups(q, C):
    grams, y, groups = ill_posed()
    problem = problem_of(grams, y, Hinge(), MixedNorm(q, groups), C)
    result = newton(problem, tol=1e-4)
    # A weight of 1e6 on a kernel of rank one leaves few digits beside C = 1e4: that counts against it, but not here.
    assert replace(result.certificate, rounding=0.0).within(1e-4)
    assert abs(naive_gap(problem, grams, result)) <= 1.01e-4
    # The same problem without the second twin and the zero kernel, which are of no use.
    plain = [k for k in range(len(grams)) if k not in (2, 5)]
    optimum = solve_mixed([grams[k] for k in plain], y, C, "hinge", q, [groups[k] for k in plain])
    assert optimum * (1 - 1e-6) <= result.certificate.primal <= optimum * (1 + 1.1e-4)
    assert result.n_iter < 30
    assert result.n_inner_solves < 120


@pytest.mark.parametrize("n", [200, 187])  # diagonals of mean 1 to the last bit, and nearly
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("q", [3, np.inf])
def test_many_samples_and_groups_of_few_distinct_values(q, C, n):
    """Each column of its own group has a kernel matrix of low rank: some groups end at the apex of their cones."""
    rng = np.random.default_rng(0)
    X = np.round(2 * rng.standard_normal((n, 6)))
    X[:, 0] += 0.1 * rng.standard_normal(n)
    y = np.sign(X[:, 0] * X[:, 1] + X[:, 2] + rng.standard_normal(n))
    bank = bind(standard_bank(X), X, placement=Placement(precision="double"))
    problem = Problem(bank, Hinge(), MixedNorm(q).bind(bank.groups), y[None], np.full((1, n), C))
    result = automatic(problem, tol=1e-4)
    assert result.converged
    assert result.n_iter < 30
    assert result.n_inner_solves < 150


@pytest.mark.parametrize("q", [0.75, 1, 2, 3, np.inf])
def test_a_group_without_signal(q):
    """Kernels of pure noise in a group of their own."""
    grams, y = random_problem(30, 4, seed=3)
    Z = np.random.default_rng(0).standard_normal((30, 3))
    distances = np.sum((Z[:, None] - Z[None, :]) ** 2, axis=2)
    grams = [*grams[:2], *(np.exp(-distances / (2 * w**2)) for w in (0.5, 2.0))]
    groups = ["signal", "signal", "noise", "noise"]
    problem = problem_of(grams, y, Hinge(), MixedNorm(q, groups))
    result = newton(problem, tol=1e-6)
    assert result.converged
    assert result.certificate.primal == pytest.approx(solve_mixed(grams, y, 1.0, "hinge", q, groups), rel=1e-5)


@pytest.mark.parametrize("q", [0.75, 1, 2, np.inf])
@pytest.mark.parametrize("useless", [np.zeros((30, 30)), np.ones((30, 30))], ids=["zero", "constant"])
def test_a_group_that_can_do_nothing(q, useless):
    """A zero kernel, and a constant one beside an intercept: the others' optimum."""
    grams, y = random_problem(30, 4, seed=4)
    groups = ["a", "a", "b", "b"]
    result = newton(problem_of([*grams, useless], y, Hinge(), MixedNorm(q, [*groups, "none"])), tol=1e-5)
    assert result.converged
    assert result.certificate.primal == pytest.approx(solve_mixed(grams, y, 1.0, "hinge", q, groups), rel=2e-5)


@pytest.mark.parametrize("solver", [newton, group_lasso, mirror])
@pytest.mark.parametrize("max_iter", [1, 3000])
@pytest.mark.parametrize("q", [1, 2, np.inf])
@pytest.mark.parametrize("useless", [np.zeros((30, 30)), np.ones((30, 30))], ids=["zero", "constant"])
def test_kernels_that_can_do_nothing_have_weight_zero(useless, q, max_iter, solver):
    """In a group of their own and beside others; the certificate is that of the weights returned."""
    grams, y = random_problem(30, 4, seed=4)
    grams = [*grams, useless, 2.0 * useless]
    problem = problem_of(grams, y, Hinge(), MixedNorm(q, ["a", "a", "b", "b", "b", "none"]), C=10.0)
    result = solver(problem, tol=1e-2, max_iter=max_iter)
    assert np.all(result.weights[4:] == 0.0)
    assert np.any(result.weights[:4] > 0.0)
    assert naive_gap(problem, grams, result) == pytest.approx(result.certificate.gap, abs=1e-7)


@pytest.mark.parametrize("q", [0.75, 1, 2, 3, np.inf])
def test_the_alternation_converges_to_the_same(q):
    grams, y = random_problem(30, 6, seed=5)
    problem = problem_of(grams, y, Hinge(), MixedNorm(q, ["a", "a", "a", "b", "b", "b"]))
    slow, fast = group_lasso(problem, tol=1e-4, max_iter=3000), newton(problem, tol=1e-6)
    assert slow.converged
    assert slow.certificate.primal == pytest.approx(fast.certificate.primal, rel=1.1e-4)


def test_one_group_is_l1_mkl_and_one_kernel_a_group_the_plain_machine():
    grams, y = random_problem(30, 6, seed=9)
    for q in (0.75, 1, 2, np.inf):
        one = newton(problem_of(grams, y, Hinge(), MixedNorm(q, ["all"] * 6)), tol=1e-7)
        l1 = newton(problem_of(grams, y, Hinge(), LpNorm(1)), tol=1e-7)
        assert one.certificate.primal == pytest.approx(l1.certificate.primal, rel=1e-6)
        assert one.weights == pytest.approx(l1.weights, abs=1e-3)
    alone = newton(problem_of(grams, y, Hinge(), MixedNorm(1, list("abcdef"))), tol=1e-7)
    assert alone.weights == pytest.approx(np.ones(6), rel=1e-6)


def test_duplicate_kernels_and_several_tasks():
    grams, Y = random_problem(30, 5, seed=10, n_tasks=3)
    grams, groups = [*grams, grams[0]], ["a", "a", "b", "b", "b", "a"]
    for q in (0.75, 2, np.inf):
        problem = problem_of(grams, Y, Hinge(), MixedNorm(q, groups))
        result = newton(problem, tol=1e-6)
        assert result.converged
        assert abs(naive_gap(problem, grams, result)) <= 1.1e-6


def test_more_kernels_than_samples():
    grams, y = random_problem(12, 60, seed=11)
    groups = [str(k % 4) for k in range(60)]
    for q in (0.75, 2):
        problem = problem_of(grams, y, Hinge(), MixedNorm(q, groups))
        result = newton(problem, tol=1e-6)
        assert result.converged
        assert result.certificate.primal == pytest.approx(solve_mixed(grams, y, 1.0, "hinge", q, groups), rel=1e-5)


@pytest.mark.parametrize("max_iter", [1, 3, 14])
def test_max_iter_counts_the_rounds_of_the_alternation(max_iter):
    grams, y = random_problem(30, 6, seed=13)
    problem = problem_of(grams, y, Hinge(), MixedNorm(2, UNBALANCED))
    result = newton(problem, tol=1e-15, max_iter=max_iter)
    assert result.n_iter == len(result.trace) <= max_iter
    K = problem.bank.combine(result.weights)
    expected = problem.rounding(K, result.machine) / result.certificate.primal
    assert result.rounding == pytest.approx(expected, rel=0.5)


def test_the_last_alternation_has_the_rounds_that_are_left(monkeypatch):
    grams, y = random_problem(30, 6, seed=13)
    problem = problem_of(grams, y, Hinge(), MixedNorm(2, UNBALANCED), C=1e4)
    monkeypatch.setattr(engine, "_LAST_ROUNDS", 1000)
    assert newton(problem, tol=1e-15, max_iter=40).n_iter <= 40


@pytest.mark.parametrize("count", [2, 30])
def test_ctrl_c_ends_the_run_also_in_the_alternation(count):
    grams, y = random_problem(30, 6, seed=13)
    problem = problem_of(grams, y, Hinge(), MixedNorm(2, UNBALANCED), C=1e4)
    heard = []

    def callback(step):
        heard.append(step)
        if len(heard) == count:
            raise KeyboardInterrupt

    with listen(callback):
        result = newton(problem, tol=1e-17)  # which is never reached
    assert result.interrupted
    assert result.n_iter == len(heard) == count


def test_what_does_not_fit_is_refused():
    grams, y = random_problem(20, 4, seed=12)
    with pytest.raises(TypeError, match="needs weights that can be projected"):
        SPG(problem_of(grams, y, Hinge(), MixedNorm(2, list("aabb"))))
    for norm in (MixedNorm(0.75, list("aabb")), LpNorm(2), LpPenalty(1)):
        with pytest.raises(TypeError, match="solver='mirror' needs MixedNorm"):
            MIRROR(problem_of(grams, y, Hinge(), norm))
