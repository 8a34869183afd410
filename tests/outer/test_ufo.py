"""UFO-MKL: what its steps reach against a general solver, its certificates, its zeros, hostile data."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pytest

from manykernels.banks import Recipe, bind
from manykernels.banks.pairs import PairValues
from manykernels.kernels import Gaussian, KernelBank, Linear, Nystroem, Polynomial
from manykernels.kernels.feature_maps import FeatureMaps
from manykernels.losses import (
    EpsilonInsensitive,
    Hinge,
    Logistic,
    MulticlassHinge,
    OneVsRest,
    Squared,
    SquaredHinge,
    StructuredHinge,
)
from manykernels.losses.codes import CUSTOM
from manykernels.outer.ufo import largest_alpha, ufo
from manykernels.outer.ufo_feature_theta import FeatureTheta
from manykernels.outer.ufo_sample_theta import SampleTheta
from manykernels.outer.ufo_theta import make_rule
from tests.reference import ufo_oracle as oracle
from tests.reference.oracle import solve_primal

N = 12
SIZES = (3, 1, 2, 5, 1, 8, 2, 4)  # columns of each kernel
PLAIN = {loss.name: loss for loss in (Hinge(), SquaredHinge(), Logistic(), Squared(), EpsilonInsensitive(0.1))}
BOUNDED = ("hinge", "logistic", "epsilon_insensitive", "multiclass_hinge")  # losses with bounded gradients
LARGE = 10**9
every_loss = pytest.mark.parametrize("name", oracle.LOSSES)
every_bounded_loss = pytest.mark.parametrize("name", BOUNDED)
every_count = pytest.mark.parametrize("m", [1, 2, 3, 8])
every_alpha = pytest.mark.parametrize("alpha", [0.0, 0.15])
every_form = pytest.mark.parametrize("form", [SampleTheta, FeatureTheta])
every_weight = pytest.mark.parametrize("weighted", [False, True])
every_cost = pytest.mark.parametrize("cost", [1e-2, 1.0, 100.0])
every_share = pytest.mark.parametrize("share", [0.0, 0.3])  # of the largest alpha


def rows_budget(rows, n_kernels):
    """The least bytes with which so many rows are computed at a time; two more are there while they are turned."""
    return (rows + 2) * 4 * N * n_kernels


@dataclass(frozen=True)
class Case:
    """Linear kernels on blocks of columns, whose values are multiples of 1/256: exact in single precision."""

    name: str
    X: np.ndarray
    columns: list
    y: np.ndarray
    n_outputs: int

    @cached_property
    def grams(self):
        return [self.X[:, columns] @ self.X[:, columns].T for columns in self.columns]

    @property
    def loss(self):
        if self.name == "multiclass_hinge":
            return MulticlassHinge(self.n_outputs)
        return OneVsRest(PLAIN[self.name], self.n_outputs)

    @property
    def targets(self):
        return self.y[:, None].astype(float) if self.name == "multiclass_hinge" else self.y

    def theta(self, C, alpha, *, exact=False, form=SampleTheta, power=None, budget=LARGE, loss=None, **options):
        C, m, loss = costs(C, len(self.y)), len(self.columns), loss or self.loss
        bank = bind(KernelBank([Linear(columns=columns) for columns in self.columns]), self.X, Recipe(normalize=None))
        rule = make_rule(loss, alpha, C.sum(), m, power=power, exact=exact)
        if form is SampleTheta:
            return SampleTheta(PairValues(bank, 0.0, budget), loss, self.targets, C, rule, **options)
        maps = FeatureMaps(bank.bound, np.ones(m), False, 0.0)
        return FeatureTheta(maps, self.X, loss, self.targets, C, rule, **options)

    def naive(self, C, alpha):
        return oracle.NaiveWalk(self.grams, self.y, costs(C, len(self.y)), self.name, alpha, self.n_outputs)


@cache
def case(name, m, n_outputs=1, n=N, seed=0):
    rng = np.random.default_rng(seed)
    ends = np.cumsum((0, *SIZES[:m]))
    X = np.round(16 * rng.standard_normal((n, ends[-1])) / np.sqrt(np.repeat(SIZES[:m], SIZES[:m]))) / 16
    columns = [list(range(ends[k], ends[k + 1])) for k in range(m)]
    signal = X[:, :3].sum(axis=1, keepdims=True) + 0.5 * rng.standard_normal((n, n_outputs))
    if name == "multiclass_hinge":
        return Case(name, X, columns, np.argsort(np.argsort(signal[:, 0])) * 3 // n, 3)
    y = np.where(signal > 0, 1.0, -1.0) if name in ("hinge", "squared_hinge", "logistic") else signal
    return Case(name, X, columns, y, n_outputs)


def costs(C, n):
    return np.array(np.broadcast_to(C, (n,)), dtype=float)


def some_costs(weighted):
    return np.random.default_rng(7).uniform(0.2, 3.0, N) if weighted else np.ones(N)


@cache
def alpha_of(name, share, m=4):
    return share * largest_alpha(case(name, m).theta(1.0, 0.0)) if share else 0.0


@cache
def optimum(name, cost, share, m=4):
    own, C = case(name, m), np.full(N, cost)
    return oracle.optimum(own.grams, own.y, C, name, alpha_of(name, share, m) * C.sum(), own.n_outputs)


def epochs(count, seed=1, n=N):
    """The first epoch visits every sample; the others some twice and some never."""
    rng = np.random.default_rng(seed)
    return [rng.permutation(n), *(rng.integers(0, n, n) for _ in range(count - 1))]


def go(theta, orders):
    for order in orders:
        theta.advance(order)
        theta.settle()
    return theta


def certificate(theta):
    _, norms, _, outputs = theta.predictor()
    return theta.certificate(norms, outputs)


def assert_same_place(theta, naive, tolerance=1e-10):
    _, norms, _, outputs = theta.predictor()
    np.testing.assert_allclose(theta.beta, naive.theta, atol=tolerance)
    np.testing.assert_allclose(norms, naive.norms(), atol=tolerance)
    np.testing.assert_array_equal(norms == 0, naive.norms() == 0)
    np.testing.assert_allclose(outputs, naive.every_output(), atol=tolerance)


@every_share
@every_cost
@every_loss
def test_exact_steps_reach_the_optimum(name, cost, share):
    result = ufo(case(name, 4).theta(cost, alpha_of(name, share), exact=True), max_iter=20_000, tol=5e-5)
    assert result.certificate.primal == pytest.approx(optimum(name, cost, share), rel=1e-4)
    assert result.certificate.dual == pytest.approx(optimum(name, cost, share), rel=1e-4)


@pytest.mark.parametrize("name", PLAIN)
@every_form
def test_exact_steps_reach_the_optimum_of_several_outputs_with_weights(name, form):
    own, C = case(name, 4, n_outputs=3), some_costs(True)
    result = ufo(own.theta(C, 0.05, exact=True, form=form), max_iter=5000, tol=5e-5)
    best = oracle.optimum(own.grams, own.y, C, name, 0.05 * C.sum(), 3)
    assert result.certificate.primal == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("p", [1.05, 4 / 3, 2.0])
@pytest.mark.parametrize("name", ["hinge", "multiclass_hinge"])
def test_exact_steps_reach_the_optimum_for_other_powers(name, p):
    own, C = case(name, 4), np.ones(N)
    result = ufo(own.theta(C, 0.05, exact=True, power=p), max_iter=5000, tol=5e-5)
    best = oracle.optimum(own.grams, own.y, C, name, 0.05 * N, own.n_outputs, p=p)
    assert result.certificate.primal == pytest.approx(best, rel=1e-4)


def test_exact_steps_need_a_loss_that_is_compiled_in():
    with pytest.raises(ValueError, match="Exact steps need a loss that is compiled in"):
        make_rule(OneOfThree(), 0.0, 1.0, 3, exact=True)


@pytest.mark.parametrize("alpha", [0.0, 0.15])
@pytest.mark.parametrize("cost", [0.1, 100.0])
@pytest.mark.parametrize("n_outputs", [1, 3])
@every_form
@pytest.mark.parametrize("name", PLAIN)
def test_a_loss_that_is_not_compiled_in_takes_the_steps_of_the_paper(name, form, n_outputs, cost, alpha):
    """A subclass is not compiled in, whatever its class is. Unbounded gradients are those where the step leads."""
    own, loss = case(name, 3, n_outputs=n_outputs), PLAIN[name]
    same = type("Same", (type(loss),), {})(**loss.parameters())
    assert OneVsRest(same, 1).compiled().code == CUSTOM != OneVsRest(loss, 1).compiled().code
    theta, naive = own.theta(cost, alpha, form=form, loss=OneVsRest(same, n_outputs)), own.naive(cost, alpha)
    for order in epochs(4):
        go(theta, [order])
        assert_same_place(theta, naive.run(order), 1e-6 if name in oracle.UNBOUNDED else 1e-10)


def test_a_subclass_with_other_mathematics_is_not_taken_for_what_it_derives_from():
    """Losses that are three times the hinge loss: of one output, and of the sum over the outputs."""

    class Steep(Hinge):
        def value(self, y, z):
            return 3 * super().value(y, z)

        def conjugate(self, y, beta, C):
            return super().conjugate(y, beta, 3 * C)

        def domain(self, y, C):
            return super().domain(y, 3 * C)

        def dual_pull(self, y, z, C):
            return super().dual_pull(y, z, 3 * C)

    class SteepSum(OneVsRest):
        def descent(self, y, z):
            value, g = super().descent(y, z)
            return 3 * value, 3 * g

    own = case("hinge", 3)
    assert OneVsRest(Steep(), 1).compiled().code == SteepSum(Hinge(), 1).compiled().code == CUSTOM
    steep, expected = (
        ufo(own.theta(C, 0.0, loss=loss), max_iter=20) for C, loss in ((1.0, OneVsRest(Steep(), 1)), (3.0, None))
    )
    assert steep.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-9)
    assert steep.certificate.dual == pytest.approx(expected.certificate.dual, rel=1e-9)


def test_the_optimum_without_alpha_is_that_of_the_other_oracle():
    """||a||_p is the norm of the components for weights with ||d||_{p / (2 - p)} <= 1."""
    own, p = case("hinge", 4), oracle.primal_power(4)
    other = solve_primal(own.grams, own.y[:, 0], 1.0, "hinge", p / (2 - p), fit_intercept=False)
    assert optimum("hinge", 1.0, 0.0) == pytest.approx(other, rel=1e-6)


# --- certificates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["shuffle", "uniform"])
@pytest.mark.parametrize("exact", [False, True])
@every_share
@every_loss
def test_the_certificate_encloses_the_optimum(name, share, exact, sampling):
    best = optimum(name, 1.0, share)
    for form in (SampleTheta, FeatureTheta):
        theta = case(name, 4).theta(1.0, alpha_of(name, share), exact=exact, form=form)
        for seed in range(5):
            found = ufo(theta, max_iter=1, sampling=sampling, random_state=seed).certificate
            assert found.dual <= best * (1 + 1e-7)
            assert found.primal >= best * (1 - 1e-7)


@pytest.mark.parametrize("exact", [False, True])
@every_weight
@every_loss
def test_the_primal_value_is_the_objective_of_the_predictor(name, weighted, exact):
    own, C = case(name, 4), some_costs(weighted)
    theta = own.theta(C, 0.03, exact=exact)
    result = ufo(theta, max_iter=3, sampling="uniform")
    w = [coef * theta.beta for coef in result.coef]
    assert result.certificate.primal == pytest.approx(
        oracle.objective(own.grams, own.y, C, name, w, 0.03 * C.sum()), rel=1e-10
    )
    np.testing.assert_allclose(result.norms, oracle.component_norms(own.grams, w), atol=1e-10)


def test_the_averaged_predictor_has_a_certificate_too():
    own = case("hinge", 4)
    result = ufo(own.theta(1.0, 0.02, average=True), max_iter=8)
    value = oracle.objective(own.grams, own.y, np.ones(N), "hinge", result.components.transpose(2, 0, 1), 0.02 * N)
    assert result.certificate.primal == pytest.approx(value, rel=1e-10)
    assert result.certificate.dual <= oracle.optimum(own.grams, own.y, np.ones(N), "hinge", 0.02 * N) * (1 + 1e-7)


def test_the_walk_stops_at_the_tolerance_and_tells_of_each_epoch():
    result = ufo(case("hinge", 4).theta(1.0, 0.02, exact=True), max_iter=1000, tol=1e-3)
    gaps = [step.gap for step in result.trace]
    assert gaps[-1] <= 1e-3 < min(gaps[:-1])
    assert [step.iteration for step in result.trace] == list(range(1, len(gaps) + 1))
    assert result.trace[-1].n_active == np.count_nonzero(result.norms)


def test_the_bound_of_theorem_2_holds_along_the_way():
    """f(w_{T+1}) - f* <= e L^2 (1 + log T) log F / (lambda delta T), with L = 1 for the hinge loss."""
    rng = np.random.default_rng(3)
    X, n, delta, F = rng.standard_normal((40, 3)), 40, 0.1, 4
    y = np.where(X[:, :1] + 0.5 * rng.standard_normal((n, 1)) > 0, 1.0, -1.0)
    bank = bind(KernelBank([Gaussian(1.0), Gaussian(4.0), Linear(), Polynomial(2)]), X, Recipe(normalize="cosine"))
    loss, C, lam = OneVsRest(Hinge(), 1), np.ones(n), 1.0 / n
    assert PairValues(bank, 0.0, LARGE).diagonals().max() <= 1.0 + 1e-12

    def walk(exact, **options):
        rule = make_rule(loss, 0.01, C.sum(), F, exact=exact)
        return ufo(SampleTheta(PairValues(bank, 0.0, LARGE), loss, y, C, rule), **options)

    best = walk(True, max_iter=5000, tol=1e-8).certificate.dual
    trace = walk(False, max_iter=600, sampling="uniform", random_state=1).trace
    T = n * np.arange(1, len(trace) + 1)
    bounds = np.e * (1 + np.log(T)) * np.log(F) / (lam * delta * T)
    assert bounds[-1] < 1.0  # less than the objective of the predictor 0: the bound says something
    assert np.all(lam * (np.array([step.objective for step in trace]) - best) <= bounds)


@every_weight
@every_loss
def test_largest_alpha_is_the_length_of_the_mean_gradient_at_zero(name, weighted):
    own, C = case(name, 4), some_costs(weighted)
    if name == "multiclass_hinge":  # the mean over the rivals
        steps = 1.5 * np.eye(3)[own.y] - 0.5
    else:
        steps = np.array([oracle.descent(name, y, np.zeros(1)) for y in own.y])
    expected = max(oracle.component_norm(K, C[:, None] * steps) for K in own.grams) / C.sum()
    for form in (SampleTheta, FeatureTheta):
        assert largest_alpha(own.theta(C, 0.0, form=form)) == pytest.approx(expected, rel=1e-10)


@every_cost
@every_loss
def test_above_the_largest_alpha_no_kernel_helps(name, cost):
    own = case(name, 4)
    result = ufo(own.theta(cost, 1.0001 * alpha_of(name, 1.0), exact=True), max_iter=200, tol=1e-9)
    at_zero = cost * sum(oracle.loss_value(name, y, np.zeros(own.n_outputs)) for y in own.y)
    assert np.array_equal(result.norms, np.zeros(4))
    assert result.certificate.primal == pytest.approx(at_zero, rel=1e-12)
    assert result.certificate.gap <= 1e-6


@every_cost
@pytest.mark.parametrize("name", PLAIN)
def test_a_little_below_the_largest_alpha_one_kernel_does(name, cost):
    result = ufo(case(name, 4).theta(cost, 0.97 * alpha_of(name, 1.0), exact=True), max_iter=200, tol=1e-9)
    assert 1 <= np.count_nonzero(result.norms) < 4


@pytest.mark.parametrize("m", [1, 4])
def test_the_largest_alpha_of_several_classes_is_a_bound_within_a_factor_of_two(m):
    """Rivals that are equally bad leave a choice of subgradients, of which another may have a shorter sum."""
    theta = case("multiclass_hinge", m).theta(1.0, alpha_of("multiclass_hinge", 0.5, m), exact=True)
    assert np.any(ufo(theta, max_iter=2000, tol=1e-7).norms > 0)


# --- losses asked in Python --------------------------------------------------------------------------------


class OneOfThree(StructuredHinge):
    """Crammer and Singer's loss as a structured one: labels are unit vectors, and every mistake costs 1."""

    n_outputs = 3

    def embed(self, label):
        return np.eye(3)[label]

    def cost(self, label, other):
        return float(label != other)

    def best(self, z, y=None):
        return max(range(3), key=lambda label: z[label] + (0.0 if y is None else self.cost(y, label)))


@dataclass(frozen=True)
class Structured(Case):
    """The case of three classes with their numbers as labels."""

    @property
    def loss(self):
        return OneOfThree()

    @property
    def targets(self):
        return self.y


@pytest.mark.parametrize("sampling", ["shuffle", "uniform"])
@every_form
@every_alpha
def test_a_structured_loss_walks_like_the_same_loss_compiled(alpha, form, sampling):
    own, C = case("multiclass_hinge", 3), some_costs(True)
    asked = Structured(own.name, own.X, own.columns, own.y, 3)
    thetas = [one.theta(C, alpha, form=form) for one in (own, asked)]
    compiled, python = (ufo(theta, max_iter=4, sampling=sampling) for theta in thetas)
    np.testing.assert_array_equal(thetas[1].beta, thetas[0].beta)
    np.testing.assert_array_equal(python.norms, compiled.norms)
    assert python.certificate.primal == pytest.approx(compiled.certificate.primal, rel=1e-12)
    assert python.certificate.dual == pytest.approx(compiled.certificate.dual, rel=1e-10)


def test_a_structured_walk_goes_on_with_its_dual_value():
    own = case("multiclass_hinge", 3)
    asked = Structured(own.name, own.X, own.columns, own.y, 3)
    first = go(asked.theta(1.0, 0.02), epochs(4))
    again = asked.theta(1.0, 0.02, start=first.state())
    assert certificate(again).dual == pytest.approx(certificate(first).dual, rel=1e-10)


# --- hostile input -----------------------------------------------------------------------------------------


def hostile(name, kind):
    own = case(name, 4)
    X, columns, y = own.X.copy(), own.columns, own.y.copy()
    if kind == "duplicate kernels":
        columns = [*columns[:3], columns[0]]
    elif kind == "a zero kernel":
        X[:, columns[1]] = 0.0
    elif kind == "one sample of a class":
        y[:] = 0 if name == "multiclass_hinge" else -1.0
        y[3] = 1
        if name == "multiclass_hinge":
            y[5] = 2
    elif kind == "a sample twice":
        X[1], y[1] = X[0], y[2]
    return Case(name, X, columns, y, own.n_outputs)


@pytest.mark.filterwarnings("ignore:.*kernels are zero on the training data", "ignore:.*are the same")
@pytest.mark.parametrize("kind", ["duplicate kernels", "a zero kernel", "one sample of a class", "a sample twice"])
@pytest.mark.parametrize("exact", [False, True])
@every_loss
def test_hostile_data_leaves_everything_finite(name, exact, kind):
    own = hostile(name, kind)
    for cost in (1e-4, 1.0, 1e6):
        for p in (None, 1.001):
            for form in (SampleTheta, FeatureTheta):
                result = ufo(own.theta(cost, 0.01, exact=exact, power=p, form=form), max_iter=6)
                assert np.all(np.isfinite(result.norms))
                assert np.all(np.isfinite(result.coef))
                assert np.isfinite([result.certificate.primal, result.certificate.dual]).all()
                assert min(step.gap for step in result.trace) >= -1e-9


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("cost", [1e-4, 1.0, 1e6])
@every_loss
def test_rounded_kernel_values_leave_the_gap_positive(name, cost, exact):
    """Wide Gaussians in single precision: nearly of rank one, and not quite positive semidefinite."""
    X = np.random.default_rng(5).standard_normal((30, 2))
    own = case(name, 3, n=30)
    bank = bind(KernelBank([Gaussian(0.5), Gaussian(50.0), Polynomial(3)]), X)
    C = np.full(30, cost)
    rule = make_rule(own.loss, 0.0, C.sum(), 3, exact=exact)
    result = ufo(SampleTheta(PairValues(bank, 1.0, LARGE), own.loss, own.targets, C, rule), max_iter=20)
    assert np.all(np.isfinite(result.norms))
    assert min(step.gap for step in result.trace) >= -1e-9


@pytest.mark.filterwarnings("ignore:.*kernels are zero on the training data")
def test_a_kernel_without_any_feature_has_norm_zero():
    own = case("hinge", 3)
    kernels = [Linear(columns=[0]), Nystroem(Linear(columns=[1]), np.zeros((2, 1))), Linear(columns=[3, 4])]
    bank = bind(KernelBank(kernels), own.X, Recipe(normalize=None))
    rule, maps = make_rule(own.loss, 0.0, N, 3), FeatureMaps(bank.bound, bank.scale, False, 0.0)
    sums = SampleTheta(PairValues(bank, 0.0, LARGE), own.loss, own.y, np.ones(N), rule)
    vectors = FeatureTheta(maps, own.X, own.loss, own.y, np.ones(N), rule)
    np.testing.assert_allclose(ufo(vectors, max_iter=3).norms, ufo(sums, max_iter=3).norms, atol=1e-10)


def test_the_order_of_samples_decides_the_walk():
    first, second = (ufo(case("hinge", 3).theta(1.0, 0.02), max_iter=3, random_state=4) for _ in range(2))
    np.testing.assert_array_equal(first.norms, second.norms)
    other = ufo(case("hinge", 3).theta(1.0, 0.02), max_iter=3, random_state=5)
    assert not np.array_equal(first.norms, other.norms)
