"""Learning from families of kernels: greedy and stochastic against the finite solvers on lists of all their kernels."""

from dataclasses import replace

import numpy as np
import pytest

from manykernels.banks import Placement, Recipe, bind, bind_family
from manykernels.banks.collection import Collection
from manykernels.core.progress import listen
from manykernels.kernels import Gaussian, GaussianFamily, KernelBank, Linear, ProductKernels
from manykernels.kernels.family import NEEDS_BEST, NEEDS_SAMPLE, BoundFamily
from manykernels.losses import EpsilonInsensitive, Hinge, Logistic, Squared
from manykernels.norms import LpNorm, LpPenalty
from manykernels.outer.automatic import automatic
from manykernels.outer.family import FamilyProblem
from manykernels.outer.family_choice import CKL
from manykernels.outer.greedy import GREEDY, _Selection, greedy
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.stochastic_mirror import STOCHASTIC_MIRROR, MirrorWalk, stochastic_mirror
from manykernels.problem import Problem

RNG = np.random.default_rng(0)
N, R = 30, 6
X = RNG.standard_normal((N, R))
SIGNAL = X[:, 0] * X[:, 1] + 0.7 * X[:, 2] - 0.4 * X[:, 3] ** 2 + 0.2 * RNG.standard_normal(N)
REGRESSION, CLASSIFICATION = (SIGNAL - SIGNAL.mean())[None], np.sign(SIGNAL - np.median(SIGNAL) + 1e-9)[None]
LOSSES = [
    (Squared(), REGRESSION),
    (EpsilonInsensitive(0.1), REGRESSION),
    (Hinge(), CLASSIFICATION),
    (Logistic(), CLASSIFICATION),
]
BY_LOSS = pytest.mark.parametrize(("loss", "y"), LOSSES, ids=[loss.name for loss, _ in LOSSES])
PRODUCTS = ProductKernels([Linear(columns=[j]) for j in range(R)], 2)


def problem_of(family, loss, y, C=1.0, p=1, fit_intercept=True):
    return FamilyProblem(family, loss, LpNorm(p), y, np.full(y.shape, float(C)), fit_intercept)


def products(loss, y, C=1.0, p=1, precision="single", **options):
    family = bind_family(PRODUCTS, X, placement=Placement(precision=precision))
    return replace(problem_of(family, loss, y, C, p, **options), precision=precision)


def enumerated(problem):
    """The same problem with a list of all products, as plain matrices."""
    base = [np.outer(X[:, j], X[:, j]) / np.mean(X[:, j] ** 2) for j in range(R)]
    grams = base + [base[i] * base[j] for i in range(R) for j in range(i + 1)]
    bank = bind(
        KernelBank.from_arrays(grams), np.arange(N)[:, None], Recipe(normalize=None), Placement(precision="double")
    )
    return Problem(bank, problem.loss, problem.norm, problem.y, problem.C, problem.fit_intercept)


def optimum(problem, solver=automatic):
    certificate = solver(enumerated(problem), tol=1e-6).certificate
    return certificate.primal, certificate.dual


def recomputed(problem, found):
    """The objective from weights, coefficients and intercepts alone."""
    bank, result = found.bank, found.result
    K = bank.combine(result.weights).array
    beta = result.machine.beta
    z = beta @ K + result.machine.intercept[:, None]
    q = np.array([np.sum(beta * (beta @ bank.combine(e).array)) for e in np.eye(len(result.weights))])
    return problem.norm.regularizer(result.weights, q) + np.sum(problem.C * problem.loss.value(problem.y, z))


# -- greedy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@BY_LOSS
def test_greedy_reaches_the_optimum_of_the_list(loss, y, C):
    problem = products(loss, y, C, precision="double")  # at the largest C, single precision lacks the digits for tol
    upper, lower = optimum(problem)
    found = greedy(problem)
    primal, dual = found.result.certificate.primal, found.result.certificate.dual
    assert found.result.converged
    assert found.result.exact
    assert lower * (1 - 1e-5) <= primal <= upper * (1 + 1e-3)
    assert dual <= upper * (1 + 1e-5)
    assert found.result.certificate.gap <= 1e-3
    assert primal == pytest.approx(recomputed(problem, found), rel=1e-5)
    trace = found.result.trace
    assert len(trace) == found.result.n_iter
    assert trace[-1].gap == pytest.approx(found.result.certificate.gap)
    assert trace[-1].gap < trace[0].gap or len(trace) == 1


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@BY_LOSS
def test_moving_by_a_line_search_comes_near_the_optimum_of_the_list(loss, y, C):
    """Without correction it is the method of Frank and Wolfe, whose gap falls like 1 / k."""
    problem = products(loss, y, C)
    upper, lower = optimum(problem)
    found = greedy(problem, corrective=False, max_iter=8)
    primal, dual = found.result.certificate.primal, found.result.certificate.dual
    share = 1e-3 if found.result.converged else 0.1 * max(C, 1.0)
    assert lower * (1 - 1e-5) <= primal <= upper * (1 + share)
    assert dual <= upper * (1 + 1e-5)
    assert primal == pytest.approx(recomputed(problem, found), rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "y", "C"),
    [(*LOSSES[0], 0.1), (*LOSSES[0], 1.0), (*LOSSES[3], 0.1), (*LOSSES[3], 1.0)],
    ids=["squared 0.1", "squared 1", "logistic 0.1", "logistic 1"],
)
def test_line_search_reaches_the_optimum(loss, y, C):
    problem = products(loss, y, C)
    assert greedy(problem, corrective=False).result.certificate.primal <= optimum(problem)[0] * (1 + 1e-3)


def test_line_search_does_not_stop_before_its_time():
    result = greedy(products(Squared(), REGRESSION, 1.0), corrective=False).result
    assert result.converged or result.n_iter == 1000


def test_certificates_enclose_the_optimum_at_every_stage():
    for loss, y in (LOSSES[0], LOSSES[2]):
        problem = products(loss, y, 2.0)
        upper, lower = optimum(problem)
        for max_iter in (1, 3):
            result = greedy(problem, max_iter=max_iter).result
            assert result.exact
            assert result.certificate.dual <= upper * (1 + 1e-5)
            assert result.certificate.primal >= lower * (1 - 1e-5)


@BY_LOSS
def test_a_line_search_never_raises_the_objective(loss, y):
    result = greedy(products(loss, y, 1.0), corrective=False, max_iter=15).result
    objectives = np.array([step.objective for step in result.trace])
    assert np.all(np.diff(objectives) <= 1e-3 * objectives[:-1])
    assert result.trace[-1].gap < result.trace[0].gap


@pytest.mark.parametrize("tol", [1e-7])
def test_a_tighter_tolerance_is_reached(tol):
    problem = products(Squared(), REGRESSION, 1.0)
    found = greedy(replace(problem, precision="double"), tol=tol)
    assert found.result.converged
    assert found.result.certificate.primal <= optimum(problem)[0] * (1 + 1.01 * tol) + 1e-12


def test_without_an_intercept():
    problem = products(Hinge(), CLASSIFICATION, 1.0, fit_intercept=False)
    found = greedy(problem)
    assert found.result.certificate.primal <= optimum(problem)[0] * (1 + 1e-3)
    assert np.all(found.result.machine.intercept == 0)


def test_several_tasks_share_their_kernels():
    labels = np.digitize(SIGNAL, np.quantile(SIGNAL, [1 / 3, 2 / 3]))
    y = np.where(labels == np.arange(3)[:, None], 1.0, -1.0)
    for loss in (Hinge(), Squared()):
        problem = products(loss, y, 0.5)
        upper, found = optimum(problem)[0], greedy(problem)
        assert found.result.converged
        assert found.result.machine.beta.shape == (3, N)
        assert found.result.certificate.primal <= upper * (1 + 1e-3)
        assert found.result.certificate.dual <= upper * (1 + 1e-5)


def test_weights_of_the_samples():
    """C of its own for each sample."""
    C = np.random.default_rng(1).uniform(0.1, 3.0, (1, N))
    problem = FamilyProblem(bind_family(PRODUCTS, X), Squared(), LpNorm(1), REGRESSION, C)
    assert greedy(problem).result.certificate.primal <= optimum(problem)[0] * (1 + 1e-3)


def test_only_selected_kernels_are_left():
    found = greedy(products(Squared(), REGRESSION, 1.0))
    assert np.all(found.result.weights > 0)
    assert found.result.weights.sum() == pytest.approx(1.0)
    assert len(found.bank.names) == len(found.result.weights) < 15
    assert found.bank.names[int(found.result.weights.argmax())] == "x0 * x1"


@pytest.mark.parametrize(("loss", "y"), [LOSSES[0], LOSSES[2]], ids=["squared", "hinge"])
@pytest.mark.parametrize("C", [20.0])
def test_a_continuum_is_no_worse_than_a_fine_grid(loss, y, C):
    problem = problem_of(bind_family(GaussianFamily(0.1, 30.0), X[:, :2]), loss, y, C)
    widths = np.geomspace(0.1, 30.0, 200)
    bank = bind(KernelBank([Gaussian(width) for width in widths]), X[:, :2])
    grid = automatic(Problem(bank, loss, LpNorm(1), y, problem.C), tol=1e-4).certificate
    result = greedy(problem).result
    assert result.converged
    assert result.exact
    assert result.certificate.primal <= grid.primal * (1 + 1e-3)
    assert result.certificate.dual <= grid.primal * (1 + 1e-5)


def test_a_width_for_each_feature_is_no_worse_than_a_common_one():
    y, V = REGRESSION, X[:, :2]
    common, own = (
        greedy(problem_of(bind_family(GaussianFamily(0.1, 30.0, per_feature=each), V), Squared(), y, 1.0)).result
        for each in (False, True)
    )
    assert own.certificate.primal <= common.certificate.primal * (1 + 1e-3)
    assert common.exact
    assert not own.exact


def test_a_search_that_misses_makes_no_exact_certificate(monkeypatch):
    monkeypatch.setattr("manykernels.kernels.product_family._BEAM", 1)
    V = np.random.default_rng(3).standard_normal((30, 12))
    y = (V[:, 0] * V[:, 1] * V[:, 2])[None]
    family = bind_family(ProductKernels([Linear(columns=[j]) for j in range(12)], 3), V)
    result = greedy(problem_of(family, Squared(), y - y.mean(), 10.0), max_iter=3).result
    assert not result.exact


# -- stochastic --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize(("loss", "y"), [LOSSES[0], LOSSES[2], LOSSES[3]], ids=["squared", "hinge", "logistic"])
def test_drawn_kernels_learned_anew_come_near_the_optimum_of_the_list(loss, y, C):
    problem = products(loss, y, C, p=2)
    best = group_lasso(enumerated(problem), tol=1e-5).certificate
    # With a large C the gradient is that of few kernels, and the others are met late: there all are drawn alike.
    draw = "uniform" if C > 1 else "gradient"
    found = stochastic_mirror(replace(problem, precision="double"), max_iter=120, draw=draw)
    certificate = found.result.certificate
    assert best.dual * (1 - 1e-5) <= certificate.primal <= best.primal * 1.01
    assert certificate.dual <= best.primal * (1 + 1e-5)
    assert certificate.primal == pytest.approx(recomputed(problem, found), rel=1e-5)


def test_the_mean_of_the_steps_comes_near_the_optimum_of_the_list():
    problem = products(Squared(), REGRESSION, 1.0, p=2)
    best = group_lasso(enumerated(problem), tol=1e-5).certificate
    certificate = stochastic_mirror(problem, max_iter=1000, corrective=False).result.certificate
    assert best.dual * (1 - 1e-5) <= certificate.primal <= best.primal * 1.01
    assert certificate.dual <= best.primal * (1 + 1e-5)


@pytest.mark.parametrize("draw", ["gradient", "uniform"])
def test_weights_lie_in_the_ball_and_all_kernels_are_drawn(draw):
    found = stochastic_mirror(products(Squared(), REGRESSION, 1.0, p=2), max_iter=60, draw=draw, corrective=False)
    assert np.linalg.norm(found.result.weights) == pytest.approx(1.0)
    assert np.all(found.result.weights > 0)
    assert len(set(found.bank.names)) == len(found.bank.names) > 5
    assert found.result.n_iter == len(found.result.trace) == 60


def test_several_tasks_with_drawn_kernels():
    labels = np.digitize(SIGNAL, np.quantile(SIGNAL, [1 / 3, 2 / 3]))
    y = np.where(labels == np.arange(3)[:, None], 1.0, -1.0)
    problem = products(Squared(), y, 1.0, p=2)
    best = group_lasso(enumerated(problem), tol=1e-5).certificate
    certificate = stochastic_mirror(problem, max_iter=150).result.certificate
    assert certificate.dual <= best.primal * (1 + 1e-5)
    assert certificate.primal <= best.primal * 1.01


@pytest.mark.parametrize("solver", [greedy, stochastic_mirror])
def test_the_same_seed_gives_the_same_model(solver):
    problem = products(Squared(), REGRESSION, 1.0, p=1 if solver is greedy else 2)
    first, second = (solver(problem, max_iter=20) for _ in range(2))
    assert list(first.bank.names) == list(second.bank.names)
    np.testing.assert_array_equal(first.result.weights, second.result.weights)
    np.testing.assert_array_equal(first.result.machine.beta, second.result.machine.beta)


def test_another_seed_gives_other_draws():
    problem = products(Squared(), REGRESSION, 1.0, p=2)
    first, second = (stochastic_mirror(problem, max_iter=8, random_state=seed) for seed in (1, 2))
    assert list(first.bank.names) != list(second.bank.names)


def test_a_target_that_needs_no_kernel():
    problem = products(Squared(), np.zeros((1, N)), 1.0, p=2)
    with np.errstate(all="ignore"):
        found = stochastic_mirror(problem, max_iter=5)
    assert found.result.certificate.primal == pytest.approx(0.0, abs=1e-12)


def test_a_target_that_needs_no_kernel_by_the_greedy_method():
    result = greedy(products(Squared(), np.zeros((1, N)))).result
    assert result.certificate.primal == pytest.approx(0.0, abs=1e-12)
    assert result.converged


def test_a_bound_of_the_norm_is_not_called_exact():
    V = np.random.default_rng(0).standard_normal((30, 25))
    family = bind_family(ProductKernels([Linear(columns=[j]) for j in range(25)], 3), V)
    y = (V[:, 0] * V[:, 1])[None]
    assert not stochastic_mirror(problem_of(family, Squared(), y, p=2), max_iter=5).result.exact


def test_a_continuum_has_no_exact_certificate():
    problem = problem_of(bind_family(GaussianFamily(0.1, 30.0), X[:, :2]), Squared(), REGRESSION, p=2)
    result = stochastic_mirror(problem, max_iter=20).result
    assert not result.exact
    assert result.certificate.gap > 0


def test_widths_can_be_drawn():
    problem = problem_of(bind_family(GaussianFamily(0.1, 30.0), X[:, :2]), Squared(), REGRESSION, 10.0, p=2)
    found = stochastic_mirror(problem, max_iter=30)
    assert found.result.certificate.primal == pytest.approx(recomputed(problem, found), rel=1e-5)
    assert len(found.bank.names) > 10


# -- Ctrl-C ------------------------------------------------------------------------------------------------


def interrupting(count):
    heard = []

    def callback(step):
        heard.append(step)
        if len(heard) == count:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize(
    ("solver", "options"),
    [(greedy, {}), (greedy, {"corrective": False}), (stochastic_mirror, {})],
    ids=["greedy", "ckl", "stochastic"],
)
def test_ctrl_c_keeps_the_model_so_far_if_someone_listens(solver, options):
    problem = products(Squared(), REGRESSION, 10.0, p=1 if solver is greedy else 2)
    with listen(interrupting(3)):
        found = solver(problem, **options)
    assert found.result.interrupted
    assert found.result.n_iter == 3
    assert len(found.bank.names) == len(found.result.weights) <= 3
    assert found.result.certificate.primal == pytest.approx(recomputed(problem, found), rel=1e-5)


def interrupted_search(count):
    """The family, with a search that is interrupted when it is called for the count-th time."""
    family, calls = bind_family(PRODUCTS, X), []
    original = family.best

    def best(M):
        calls.append(1)
        if len(calls) == count:
            raise KeyboardInterrupt
        return original(M)

    family.best = best
    return family


@pytest.mark.parametrize("count", [1, 4])
def test_ctrl_c_ends_the_run_if_no_one_listens(count):
    with pytest.raises(KeyboardInterrupt):
        greedy(problem_of(interrupted_search(count), Squared(), REGRESSION, 10.0))


@pytest.mark.parametrize("corrective", [True, False])
def test_the_certificate_is_of_the_model_when_a_search_is_interrupted(corrective):
    problem = problem_of(interrupted_search(4), Squared(), REGRESSION, 10.0)
    with listen(lambda _: None):
        found = greedy(problem, corrective=corrective)
    assert found.result.interrupted
    assert found.result.certificate.primal == pytest.approx(recomputed(problem, found), rel=1e-5)


def test_weights_and_machine_belong_together_when_a_solve_is_interrupted(monkeypatch):
    calls, original = [], _Selection._solve

    def solve(self):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        original(self)

    monkeypatch.setattr(_Selection, "_solve", solve)
    with listen(lambda _: None):
        found = greedy(products(Squared(), REGRESSION, 10.0), corrective=False)
    machine = found.result.machine
    np.testing.assert_allclose(
        machine.beta @ found.bank.combine(found.result.weights).array, machine.decision, atol=1e-5
    )


# -- what a solver asks for --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solver", "norm", "words"),
    [
        (GREEDY, LpNorm(2), "solver='greedy' needs norm=1"),
        (GREEDY, LpPenalty(1.0), "solver='greedy' needs norm=1"),
        (STOCHASTIC_MIRROR, LpNorm(1), "solver='stochastic_mirror' needs norm=2"),
        (STOCHASTIC_MIRROR, LpNorm(1.5), "solver='stochastic_mirror' needs norm=2"),
    ],
)
def test_a_wrong_norm_is_refused(solver, norm, words):
    problem = FamilyProblem(bind_family(PRODUCTS, X), Squared(), norm, REGRESSION, np.ones((1, N)))
    with pytest.raises(TypeError, match=words):
        solver(problem)


class OnlyDraws(BoundFamily):
    """A family that cannot do everything."""

    can = frozenset()

    def best(self, M):
        raise NotImplementedError

    def sample(self, M, rng, how="gradient"):
        raise NotImplementedError


@pytest.mark.parametrize(("solver", "p", "missing"), [(GREEDY, 1, NEEDS_BEST), (STOCHASTIC_MIRROR, 2, NEEDS_SAMPLE)])
def test_what_a_family_does_not_offer_is_named(solver, p, missing):
    with pytest.raises(TypeError, match=f"solver='{solver.name}' needs kernels that offer {missing}; these do not"):
        solver(problem_of(OnlyDraws(), Squared(), REGRESSION, p=p))


def test_an_unknown_way_to_draw_is_named():
    with pytest.raises(ValueError, match="draw must be one of"):
        stochastic_mirror(products(Squared(), REGRESSION, p=2), draw="gradiant")


# -- collections -------------------------------------------------------------------------------------------


def test_a_collection_is_a_bank_that_grows():
    family = bind_family(PRODUCTS, X)
    collection = Collection(family, "double")
    keys = [(0,), (0, 1), (3, 3), (2,)]
    assert [collection.place(family.member(key)) for key in [*keys, (1, 0), (0,)]] == [0, 1, 2, 3, 1, 0]
    assert len(collection) == 4
    assert list(collection.bank().names) == ["x0", "x0 * x1", "x3^2", "x2"]
    every, chosen = collection.bank(), collection.bank(np.array([3, 1]))
    assert list(chosen.names) == ["x2", "x0 * x1"]
    weights = np.array([0.3, 0.5])
    expected = 0.3 * collection.matrix(3) + 0.5 * collection.matrix(1)
    np.testing.assert_allclose(chosen.combine(weights).array, expected, rtol=1e-12)
    np.testing.assert_allclose(every.combine(np.array([0, 0.5, 0, 0.3])).array, expected, rtol=1e-12)


@pytest.mark.parametrize("precision", ["single", "double"])
def test_the_bank_of_a_collection_can_do_what_banks_do(precision):
    family = bind_family(PRODUCTS, X)
    collection = Collection(family, precision)
    for key in [(0,), (0, 1), (3, 3)]:
        collection.place(family.member(key))
    bank, beta = collection.bank(), np.random.default_rng(0).standard_normal((2, N))
    grams = [collection.matrix(k) for k in range(3)]
    tolerance = 1e-5 if precision == "single" else 1e-10
    expected = np.array([[b @ K @ b for K in grams] for b in beta])
    np.testing.assert_allclose(bank.quad_forms(beta), expected, rtol=tolerance)
    np.testing.assert_allclose(bank.inner_products(beta.T @ beta), expected.sum(axis=0), rtol=tolerance)
    np.testing.assert_allclose(bank.largest_diagonals(np.arange(3)), [K.diagonal().max() for K in grams], rtol=1e-5)
    assert bank.precision == precision


def test_steps_of_fixed_length_keep_the_bound_of_the_corollary():
    """The mean of T steps of length 1 / sqrt(B T) is within sqrt(B / T) of the best, in expectation."""
    problem, steps = replace(products(Squared(), REGRESSION, 0.05, p=2), precision="double"), 150
    best = optimum(problem)[0]
    # The 1-norm of the gradient: it is largest without any kernel, where beta = C (y - mean).
    family = problem.family
    beta = problem.first_machine().beta
    B = 0.5 * (0.5 * family.sums(beta.T @ beta).sum()) ** 2
    objectives = []
    for seed in range(10):
        found = stochastic_mirror(problem, max_iter=steps, B=B, corrective=False, random_state=seed)
        assert found.result.n_iter == steps
        objectives.append(recomputed(problem, found))
    assert 0.0 < np.mean(objectives) - best <= np.sqrt(B / steps)


def test_steps_end_when_nothing_changes():
    problem = products(Squared(), REGRESSION, 1.0, p=2)
    loose, tight = (stochastic_mirror(problem, max_iter=400, tol=tol).result.n_iter for tol in (0.5, 1e-9))
    assert loose <= 100
    assert tight == 400


def test_steps_of_fixed_length_and_their_mean_are_those_of_the_algorithm():
    problem, length = products(Squared(), REGRESSION, 0.05, p=2), 0.02
    walk = MirrorWalk(replace(problem, precision="double"), "gradient", np.random.default_rng(3), length)
    rng, weights, means = np.random.default_rng(3), {}, []
    for _ in range(4):
        drawn = problem.family.sample(walk.machine.beta.T @ walk.machine.beta, rng)
        weights[drawn.member.key] = weights.get(drawn.member.key, 0.0) + length * 0.5 * drawn.value / drawn.probability
        norm = max(1.0, np.linalg.norm(list(weights.values())))
        weights = {key: value / norm for key, value in weights.items()}
        means.append(dict(weights))
        walk.step()
        own = {member.key: w for member, w in zip(walk.collection.members, walk.scale * walk.weights, strict=True)}
        assert own == pytest.approx(weights)
    expected = [np.mean([mean.get(member.key, 0.0) for mean in means]) for member in walk.collection.members]
    np.testing.assert_allclose(walk.mean, expected)


@pytest.mark.parametrize("B", [0.0, -1.0, np.nan])
def test_a_bound_of_the_estimates_is_positive(B):
    with pytest.raises(ValueError, match="B must be a finite number above 0 or None"):
        stochastic_mirror(products(Squared(), REGRESSION, p=2), B=B)


def test_families_keep_to_their_memory():
    big = np.random.default_rng(0).normal(size=(300, 2))
    with pytest.raises(
        MemoryError, match=r"ProductKernels\(1 kernels, degree=5\): 5 kernels on 300 samples needs 15.8 MB"
    ):
        bind_family(ProductKernels([Linear()], 5), big, placement=Placement(budget="10MB"))
    bound = bind_family(GaussianFamily(1e-3, 1e3), big, placement=Placement(budget="20MB"))
    best = bound.best(np.outer(big[:, 0], big[:, 0]))
    assert bound.remembered.stack is None
    held = bind_family(GaussianFamily(1e-3, 1e3), big)
    assert held.best(np.outer(big[:, 0], big[:, 0])).value == pytest.approx(best.value)
    assert held.remembered.stack is not None


@pytest.mark.parametrize(
    ("solver", "p"), [(GREEDY, 1), (CKL, 1), (STOCHASTIC_MIRROR, 2)], ids=["greedy", "ckl", "draw"]
)
def test_a_certificate_states_what_rounding_may_add(solver, p):
    """Whoever calls a solver reads as much of rounding as whoever asks an estimator."""
    result = solver(products(Squared(), REGRESSION, C=1e4, p=p), tol=1e-4, max_iter=5).result
    assert result.rounding > 1e-4
    assert result.certificate.rounding == result.rounding
    assert result.certificate.gap >= result.rounding
    assert not result.converged
