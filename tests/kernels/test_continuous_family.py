"""Kernels with parameters in a box: the best against dense grids of exact values, draws against their densities."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.integrate import quad, trapezoid
from scipy.stats import kstest, truncnorm

from manykernels.banks import Data, Recipe, bind_family
from manykernels.banks.collection import Collection
from manykernels.kernels import ContinuousFamily, DirichletFamily, Gaussian, GaussianFamily, Kernel

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 3))


def distances(X):
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


def values_on_grid(X, M, widths):
    D = distances(X)
    return np.array([np.sum(M * np.exp(-D / (2 * w**2))) for w in widths])


def matrix(kind, n, seed):
    rng = np.random.default_rng(seed)
    beta = rng.standard_normal(n)
    if kind == "centered":
        beta -= beta.mean()
    if kind == "one sample":
        beta = np.eye(n)[3]
    if kind == "two samples":
        beta = np.eye(n)[3] - np.eye(n)[5]
    if kind == "indefinite":
        B = rng.standard_normal((n, n))
        return B + B.T
    if kind == "rank 4":
        B = rng.standard_normal((n, 4))
        return (B - B.mean(axis=0)) @ (B - B.mean(axis=0)).T
    return np.outer(beta, beta)


KINDS = ["centered", "one sample", "two samples", "indefinite", "rank 4"]
SETS = {
    "normal": X,
    "one feature": RNG.uniform(-1, 1, (20, 1)),
    "duplicated": np.repeat(RNG.standard_normal((5, 3)), 4, axis=0),
    "clusters": np.repeat([[0.0], [100.0]], 10, axis=0) + 0.01 * RNG.standard_normal((20, 1)),
}


# -- one width ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("box", [(1e-4, 1e4), (0.5, 2.0)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", ["duplicated", "clusters"])
def test_the_best_width_is_that_of_a_dense_grid(data, kind, box):
    V, M = SETS[data], matrix(kind, 20, 1)
    on_grid = values_on_grid(V, M, np.geomspace(*box, 400)).max()
    best = bind_family(GaussianFamily(*box), V).best(M)
    (width,) = best.member.key
    slack = 1e-7 * np.abs(M).sum()
    assert box[0] <= width <= box[1]
    assert best.value == pytest.approx(values_on_grid(V, M, [width])[0], abs=slack)
    assert best.value >= on_grid - 1e-5 * abs(on_grid) - slack
    assert best.bound >= on_grid - 1e-12 * np.abs(M).sum()
    assert best.bound >= best.value


@pytest.mark.parametrize("box", [(1.0, 1.001), (0.01, 0.1), (50.0, 1e3)], ids=str)
def test_a_narrow_range_is_searched_too(box):
    M = matrix("centered", 20, 1)
    assert bind_family(GaussianFamily(*box), np.ones((20, 2))).best(M).value == pytest.approx(0.0, abs=1e-9)
    on_grid = values_on_grid(X, M, np.geomspace(*box, 400)).max()
    best = bind_family(GaussianFamily(*box), X).best(M)
    assert box[0] <= best.member.key[0] <= box[1]
    assert best.value >= on_grid * (1 - 1e-5)
    assert best.bound >= on_grid


def test_of_several_peaks_the_highest_is_found():
    """Scales that lie decades apart make a function with several peaks."""
    rng = np.random.default_rng(0)
    V = (10.0 ** rng.uniform(-3, 3, 20) * rng.choice([-1, 1], 20))[:, None]
    beta = rng.standard_normal(20)
    M = np.outer(beta - beta.mean(), beta - beta.mean())
    best = bind_family(GaussianFamily(1e-4, 1e4), V).best(M)
    on_grid = values_on_grid(V, M, np.geomspace(1e-4, 1e4, 2000)).max()
    assert best.value >= on_grid * (1 - 1e-5)
    assert best.bound >= on_grid


def test_the_bound_holds_where_the_widest_kernel_is_best():
    """Without an intercept beta need not sum to 0, and the constant kernel may be the best."""
    M = np.ones((20, 20))
    best = bind_family(GaussianFamily(1e-4, 1e4), X).best(M)
    assert best.bound >= values_on_grid(X, M, [1e4])[0]


def test_the_bound_holds_for_data_in_small_units():
    rng = np.random.default_rng(11)
    V = 1e-5 * rng.normal(size=(12, 1))
    V[1] = V[0] + 1e-9
    beta = rng.normal(size=12)
    M = np.outer(beta - beta.mean(), beta - beta.mean())
    best = bind_family(GaussianFamily(1e-10, 1.0), V).best(M)
    assert best.bound >= values_on_grid(V, M, np.geomspace(1e-9, 1e-2, 6000)).max()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("normalize", ["mean_diag", "trace", None])
def test_normalization_scales_values_and_members(normalize, form):
    M, weight = matrix("centered", 20, 2), RNG.integers(1, 3, 20).astype(float)
    family = bind_family(GaussianFamily(0.1, 10.0), Data(form(X), weight=weight), Recipe(normalize=normalize))
    best = family.best(M)
    factor = 1 / weight.sum() if normalize == "trace" else 1.0
    assert best.member.scale == pytest.approx(factor)
    assert best.value == pytest.approx(factor * values_on_grid(X, M, best.member.key)[0])
    collection = Collection(family, "double")
    K = np.exp(-distances(X) / (2 * best.member.key[0] ** 2))
    np.testing.assert_allclose(collection.matrix(collection.place(best.member)), factor * K, rtol=1e-9)


def test_a_family_sees_its_columns():
    M = matrix("centered", 20, 2)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    family = bind_family(GaussianFamily(0.1, 10.0, columns=["a", "c"]), Data(X, table))
    best = family.best(M)
    assert best.value == pytest.approx(values_on_grid(X[:, [0, 2]], M, best.member.key)[0])
    assert best.member.kernel.name.endswith("on a, c")
    np.testing.assert_array_equal(best.member.kernel.positions, [0, 2])


# -- a width for each feature ------------------------------------------------------------------------------


def scaled_value(X, M, widths):
    return np.sum(M * np.exp(-distances(X / np.asarray(widths)) / 2))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("widths", [[1.0, 2.0, 0.5], [0.3, 0.3, 0.3], [5.0, 0.7, 50.0]])
def test_derivatives_in_the_widths_by_differences(widths, form):
    M, widths = matrix("indefinite", 20, 1), np.array(widths)
    value, gradient = GaussianFamily(0.1, 100.0, per_feature=True).value_and_gradient(M, form(X), widths)
    assert value == pytest.approx(scaled_value(X, M, widths))
    for j in range(3):
        e = 1e-6 * widths[j] * np.eye(3)[j]
        slope = (scaled_value(X, M, widths + e) - scaled_value(X, M, widths - e)) / (2e-6 * widths[j])
        assert gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ["centered", "indefinite"])
def test_widths_of_their_own_are_never_worse_than_a_common_one(kind, seed):
    M = matrix(kind, 20, seed)
    common, own = (bind_family(GaussianFamily(0.1, 10.0, per_feature=each), X).best(M) for each in (False, True))
    assert own.value >= common.value - 1e-6 * abs(common.value)
    assert own.value == pytest.approx(scaled_value(X, M, own.member.key))
    assert own.bound > own.value + 1e-6 * abs(own.value)  # the search is not exact, and does not say so
    assert all(0.1 <= width <= 10.0 for width in own.member.key)


def test_widths_of_their_own_find_the_features_that_matter():
    rng = np.random.default_rng(0)
    V = rng.standard_normal((80, 3))
    beta = np.sin(3 * V[:, 1])
    M = np.outer(beta - beta.mean(), beta - beta.mean())
    widths = bind_family(GaussianFamily(0.05, 100.0, per_feature=True), V).best(M).member.key
    assert widths[1] < 1 < min(widths[0], widths[2])


def test_the_kernel_of_widths_of_their_own():
    family = bind_family(GaussianFamily(0.1, 10.0, per_feature=True), X, Recipe(normalize="trace"))
    collection = Collection(family, "double")
    K = collection.matrix(collection.place(family.member(np.array([0.5, 1.0, 2.0]))))
    np.testing.assert_allclose(K, np.exp(-distances(X / [0.5, 1.0, 2.0]) / 2) / 20, rtol=1e-9)


def test_with_a_single_feature_both_searches_agree():
    V, M = SETS["one feature"], matrix("centered", 20, 3)
    common, own = (bind_family(GaussianFamily(0.01, 10.0, per_feature=each), V).best(M) for each in (False, True))
    assert own.value == pytest.approx(common.value, rel=1e-5)


# -- Dirichlet ---------------------------------------------------------------------------------------------


def dirichlet_values(x, M, frequencies):
    return np.array([np.sum(M * (1 + 2 * np.cos(f * np.abs(x[:, None] - x)))) for f in frequencies])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("box", [(0.0, 20.0), (3.0, 3.5), (0.0, 0.01)], ids=str)
def test_the_best_frequency_is_that_of_a_dense_grid(box, kind):
    x, M = RNG.uniform(-3, 3, 20), matrix(kind, 20, 4)
    best = bind_family(DirichletFamily(*box), x[:, None], Recipe(normalize=None)).best(M)
    on_grid = dirichlet_values(x, M, np.linspace(*box, 1500)).max()
    (frequency,) = best.member.key
    slack = 1e-9 * np.abs(M).sum()
    assert box[0] <= frequency <= box[1]
    assert best.value == pytest.approx(dirichlet_values(x, M, [frequency])[0], abs=slack)
    assert best.value >= on_grid - 1e-5 * abs(on_grid) - slack
    if kind != "indefinite":
        assert best.bound >= on_grid


def test_a_frequency_is_found_again():
    x = np.random.default_rng(0).uniform(-10, 10, 100)
    beta = np.sin(7.3 * x)
    best = bind_family(DirichletFamily(0, 20), x[:, None]).best(np.outer(beta, beta))
    assert best.member.key[0] == pytest.approx(7.3, abs=0.02)
    assert best.member.scale == pytest.approx(1 / 3)


def test_the_best_frequency_of_data_in_large_units():
    rng = np.random.default_rng(0)
    x, beta = 1e5 * rng.uniform(-10, 10, 20), rng.standard_normal(20)
    M = np.outer(beta - beta.mean(), beta - beta.mean())
    best = bind_family(DirichletFamily(0, 2e-4), x[:, None], Recipe(normalize=None)).best(M)
    assert best.bound >= dirichlet_values(x, M, np.linspace(0, 2e-4, 8000)).max()


def test_dirichlet_kernels_are_for_one_column():
    with pytest.raises(ValueError, match="single column"):
        bind_family(DirichletFamily(), X).best(np.eye(20))
    assert bind_family(DirichletFamily(columns=[1]), X).best(np.eye(20)).member.kernel.positions.tolist() == [1]


# -- draws -------------------------------------------------------------------------------------------------


def cut_normal(center, low, high):
    """The normal around a center, as wide as it is large, cut to an interval."""
    return truncnorm((low - center) / center, (high - center) / center, loc=center, scale=center)


@pytest.mark.parametrize(
    ("family", "V"),
    [(GaussianFamily(0.1, 5.0), X), (DirichletFamily(0.5, 8.0), X[:, :1])],
    ids=["gaussian", "dirichlet"],
)
def test_draws_follow_the_cut_normal_around_the_best(family, V):
    M = matrix("centered", 20, 6)
    bound = bind_family(family, V)
    low, high = bound.low[0], bound.high[0]
    law, rng = cut_normal(bound.best(M).member.key[0], low, high), np.random.default_rng(1)
    drawn = [bound.sample(M, rng) for _ in range(100)]
    parameters = np.array([draw.member.key[0] for draw in drawn])
    assert low <= parameters.min()
    assert parameters.max() <= high
    np.testing.assert_allclose([draw.probability for draw in drawn], law.pdf(parameters), rtol=1e-6)
    assert quad(law.pdf, low, high)[0] == pytest.approx(1.0)
    assert kstest(parameters, law.cdf).pvalue > 1e-4
    for draw in drawn[:5]:
        assert draw.value == pytest.approx(bound.value(M, np.array(draw.member.key)))


@pytest.mark.parametrize("center", [0.1, 2.0, 5.0])
def test_the_stated_density_integrates_to_one(center):
    """By the density of the draws themselves: the mean of 1 / density is the length of the interval."""
    bound, rng = bind_family(GaussianFamily(0.1, 5.0), X), np.random.default_rng(0)
    pairs = [bound.near(np.array([center]), rng) for _ in range(200)]
    places, densities = np.array([p[0] for p, _ in pairs]), np.array([density for _, density in pairs])
    np.testing.assert_allclose(densities, cut_normal(center, 0.1, 5.0).pdf(places), rtol=1e-9)
    order = np.argsort(places)
    assert trapezoid(densities[order], places[order]) == pytest.approx(1.0, abs=0.1)


def test_uniform_draws_are_uniform_in_the_box():
    bound, rng, M = bind_family(GaussianFamily(0.5, 4.5), X), np.random.default_rng(0), matrix("centered", 20, 0)
    drawn = [bound.sample(M, rng, "uniform") for _ in range(300)]
    assert {draw.probability for draw in drawn} == {0.25}
    assert kstest([draw.member.key[0] for draw in drawn], "uniform", args=(0.5, 4.0)).pvalue > 1e-4


def test_uniform_draws_of_many_widths():
    bound, rng = bind_family(GaussianFamily(0.5, 2.5, per_feature=True), X), np.random.default_rng(0)
    draw = bound.sample(matrix("centered", 20, 0), rng, "uniform")
    assert len(draw.member.key) == 3
    assert draw.probability == pytest.approx(1 / 8)


def test_widths_are_drawn_one_after_the_other_given_those_before():
    """Algorithm 4: the density is the product, each factor around the best width for M times the kernels before.

    That width is found to a few percent, which is far less than the draws are apart.
    """
    M, family = matrix("centered", 20, 8), GaussianFamily(0.1, 6.0, per_feature=True)
    draw = bind_family(family, X).sample(M, np.random.default_rng(3))
    density, A = 1.0, M
    for j, width in enumerate(draw.member.key):
        column = X[:, [j]]
        center = bind_family(GaussianFamily(0.1, 6.0), column).best(A).member.key[0]
        density *= cut_normal(center, 0.1, 6.0).pdf(width)
        A = A * np.exp(-distances(column) / (2 * width**2))
    assert draw.probability == pytest.approx(density, rel=0.05)
    assert draw.value == pytest.approx(A.sum(), rel=1e-6)
    assert all(0.1 <= width <= 6.0 for width in draw.member.key)


def test_the_estimate_of_an_integral_is_unbiased():
    """The mean of value / density is the integral of the values over the box."""
    M, bound = matrix("centered", 20, 2), bind_family(GaussianFamily(0.5, 1.5), X)
    rng = np.random.default_rng(0)
    ratios = [draw.value / draw.probability for draw in (bound.sample(M, rng) for _ in range(200))]
    exact = quad(lambda w: values_on_grid(X, M, [w])[0], 0.5, 1.5)[0]
    assert abs(np.mean(ratios) - exact) <= 4 * np.std(ratios) / np.sqrt(200)


# -- families of a user's own ------------------------------------------------------------------------------


class Rational(Kernel):
    """Of mean diagonal 1 whatever its parameters."""

    def __init__(self, width, power, columns=None, group=None, label=None):
        super().__init__(columns, group, label)
        self.width, self.power = width, power

    def compute(self, X, Z):
        return (1 + ((X[:, None] - Z[None]) ** 2).sum(axis=2) / self.width**2) ** -self.power


class OneWidth(ContinuousFamily):
    def __init__(self, low=0.05, high=20.0):
        super().__init__(low, high)

    def kernel(self, parameters):
        return Rational(float(parameters[0]), 1.0)


class TwoParameters(ContinuousFamily):
    def __init__(self):
        super().__init__([0.05, 0.5], [20.0, 3.0])

    def kernel(self, parameters):
        return Rational(*map(float, parameters))


class WithDerivatives(TwoParameters):
    def value_and_gradient(self, M, V, parameters):
        width, power = parameters
        ratio = distances(V) / width**2
        K = (1 + ratio) ** -power
        slopes = [2 * power * ratio / width * K / (1 + ratio), -np.log1p(ratio) * K]
        return float(np.sum(M * K)), np.array([np.sum(M * slope) for slope in slopes])


@pytest.mark.parametrize("kind", ["centered", "indefinite"])
def test_an_own_family_of_one_parameter(kind):
    M = matrix(kind, 20, 3)
    best = bind_family(OneWidth(), X).best(M)
    on_grid = max(np.sum(M * Rational(w, 1.0).compute(X, X)) for w in np.geomspace(0.05, 20, 600))
    assert best.value >= on_grid - 1e-5 * abs(on_grid)
    assert best.bound == np.inf


@pytest.mark.parametrize("family", [TwoParameters(), WithDerivatives()], ids=["differences", "derivatives"])
@pytest.mark.parametrize("seed", range(2))
def test_an_own_family_of_two_parameters(family, seed):
    M = matrix("centered", 20, seed)
    best = bind_family(family, X).best(M)
    grid = [(w, p) for w in np.geomspace(0.05, 20, 60) for p in np.linspace(0.5, 3.0, 20)]
    assert best.value >= max(np.sum(M * Rational(*own).compute(X, X)) for own in grid) * (1 - 1e-3)
    assert best.value == pytest.approx(np.sum(M * Rational(*best.member.key).compute(X, X)))


def test_draws_from_an_own_family():
    bound, rng = bind_family(TwoParameters(), X), np.random.default_rng(0)
    M = matrix("centered", 20, 1)
    draw, center = bound.sample(M, rng), bound.best(M).member.key
    expected = np.prod(
        [
            cut_normal(c, low, high).pdf(s)
            for c, low, high, s in zip(center, bound.low, bound.high, draw.member.key, strict=True)
        ]
    )
    assert draw.probability == pytest.approx(expected, rel=1e-3)
    assert np.all((bound.low <= draw.member.key) & (draw.member.key <= bound.high))
    assert draw.value == pytest.approx(np.sum(M * Rational(*draw.member.key).compute(X, X)))


class Mixture(Kernel):
    """Its diagonal depends on its parameters, so that normalization changes which is best."""

    def __init__(self, a, b, columns=None, group=None, label=None):
        super().__init__(columns, group, label)
        self.a, self.b = a, b

    def compute(self, X, Z):
        return self.a * (X @ Z.T) + self.b * (X @ Z.T) ** 2


class Mixtures(ContinuousFamily):
    def __init__(self):
        super().__init__([0.01, 0.01], [1.0, 1.0])

    def kernel(self, parameters):
        return Mixture(*map(float, parameters))


class MixturesWithDerivatives(Mixtures):
    def value_and_gradient(self, M, V, parameters):
        slopes = np.array([np.sum(M * (V @ V.T)), np.sum(M * (V @ V.T) ** 2)])
        return float(slopes @ parameters), slopes


@pytest.mark.parametrize(
    "family",
    [
        Mixtures(),
        pytest.param(
            MixturesWithDerivatives(),
        ),
    ],
    ids=["differences", "derivatives"],
)
def test_the_best_is_that_of_normalized_kernels(family):
    M = matrix("centered", 20, 1)
    corners = [Mixture(a, b).compute(X, X) for a, b in [(1.0, 0.01), (0.01, 1.0), (1.0, 1.0)]]
    largest = max(np.sum(M * K) / np.mean(np.diag(K)) for K in corners)
    assert bind_family(family, X).best(M).value >= largest * (1 - 1e-4)


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GaussianFamily(0.0, 1.0), "low must be a finite number above 0"),
        (lambda: GaussianFamily("narrow", 1.0), "low"),
        (lambda: GaussianFamily(2.0, 1.0), "high must be a finite number above 2, the value of low"),
        (lambda: GaussianFamily(1.0, 1.0), "high"),
        (lambda: GaussianFamily(1.0, np.inf), "high"),
        (lambda: GaussianFamily(np.nan, 1.0), "low"),
        (lambda: GaussianFamily(shrinkage=0.1), "shrinkage=0.1 needs per_feature=True"),
        (lambda: GaussianFamily(per_feature=True, shrinkage=-1.0), "shrinkage must be a finite number of at least 0"),
        (lambda: GaussianFamily(per_feature=True, shrinkage="some"), "or 'auto', got 'some'"),
        (
            lambda: bind_family(GaussianFamily(per_feature=True, shrinkage="auto"), X),
            r"shrinkage='auto'\) is for TwoStageMKLClassifier",
        ),
        (lambda: DirichletFamily(-1.0, 1.0), "low"),
        (lambda: DirichletFamily(2.0, 1.0), "high must be"),
        (lambda: DirichletFamily(0.0, np.inf), "high"),
        pytest.param(lambda: DirichletFamily(0.0, "high"), "high must"),
        (lambda: OneWidth(3.0, [4.0, 5.0]), "low must lie below high"),
        (lambda: OneWidth([1.0, 2.0], [4.0, 2.0]), "low must lie below high"),
        pytest.param(
            lambda: bind_family(GaussianFamily(per_feature=True, n_starts=-1), X).best(np.eye(20)), "n_starts"
        ),
        (lambda: bind_family(GaussianFamily(columns=[7]), X), "column 7"),
    ],
)
def test_errors_name_the_argument(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("family", [GaussianFamily(), GaussianFamily(per_feature=True), OneWidth()])
def test_cosine_is_refused_at_once(family):
    with pytest.raises(ValueError, match="normalize='cosine'"):
        bind_family(family, X, Recipe(normalize="cosine"))


def test_a_family_says_what_it_is():
    assert repr(GaussianFamily(0.1, 100.0, per_feature=True)) == "GaussianFamily(0.1, 100, per_feature=True)"
    assert repr(DirichletFamily(0, 20)) == "DirichletFamily(0, 20)"
    assert isinstance(GaussianFamily().kernel(np.array([2.0])), Gaussian)


def test_a_label_and_a_group_of_a_family():
    family = GaussianFamily(0.1, 10.0, columns=[0, 1], group="first", label="two of them")
    entry = bind_family(family, X).best(np.eye(20)).member.kernel
    assert entry.group == "first"
    assert entry.name.endswith("on two of them")
    assert repr(family) == "GaussianFamily(0.1, 10, columns=[0, 1], group='first', label='two of them')"
