"""Products of base kernels: everything against lists of all multisets and plain Hadamard products."""

from collections import Counter
from itertools import combinations_with_replacement, permutations
from math import comb

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import chi2

from manykernels.banks import Data, Recipe, bind_family
from manykernels.banks.collection import Collection
from manykernels.kernels import Gaussian, KernelBank, Linear, Polynomial, ProductKernels
from manykernels.kernels.product_family import KernelProduct, orders

RNG = np.random.default_rng(0)
X = RNG.standard_normal((14, 4)) + 0.3
LINEAR = [Linear(columns=[j]) for j in range(4)]
GAUSSIAN = [Gaussian(0.5 + j, columns=[j]) for j in range(4)]
MIXED = [Linear(columns=[0]), Gaussian(1.0, columns=[1, 2]), Polynomial(2, columns=[3]), Gaussian(2.0)]
BASES = {"linear": LINEAR, "gaussian": GAUSSIAN, "mixed": MIXED}
PRIOR = [1.0, 3.0, 0.5]


def naive_base(base, X, normalize="mean_diag", weight=None):
    """The normalized matrices of the base kernels, from the definitions."""
    weight = np.ones(len(X)) if weight is None else weight
    out = []
    for kernel in base:
        V = X if kernel.columns is None else X[:, kernel.columns]
        if isinstance(kernel, Gaussian):
            K = np.exp(-((V[:, None] - V[None]) ** 2).sum(axis=2) / (2 * kernel.width**2))
        else:
            K = V @ V.T if isinstance(kernel, Linear) else (V @ V.T + kernel.coef0) ** kernel.degree
        total = weight @ np.diag(K)
        out.append(K * {"mean_diag": weight.sum() / total, "trace": 1 / total, None: 1.0}[normalize])
    return out


def naive(base, X, degree, prior=None, **options):
    """Every multiset with its matrix, divided by the prior."""
    grams = naive_base(base, X, **options)
    prior = np.ones(degree) if prior is None else prior
    return {
        key: np.prod([grams[j] for j in key], axis=0) / prior[d - 1]
        for d in range(1, degree + 1)
        for key in combinations_with_replacement(range(len(grams)), d)
    }


def n_orders(key):
    return len(set(permutations(key)))


def psd(n, seed, rank=1):
    B = np.random.default_rng(seed).standard_normal((n, rank))
    return B @ B.T


def inner(M, K):
    return float(np.sum(M * K))


def rank_one_features(r, n, seed):
    """Features whose linear kernels have mean diagonal 1 already."""
    V = np.random.default_rng(seed).standard_normal((n, r))
    return V / np.sqrt(np.mean(V**2, axis=0))


# -- sampling ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["gradient", "uniform"])
def draws(request):
    """1500 draws, and what each product's value and probability should be."""
    family, M = bind_family(ProductKernels(LINEAR, 3, prior=PRIOR), X), psd(14, 1)
    values = {key: inner(M, K) for key, K in naive(LINEAR, X, 3, PRIOR).items()}
    if request.param == "uniform":
        probabilities = dict.fromkeys(values, 1 / len(values))
    else:
        total = sum(n_orders(key) * value for key, value in values.items())
        probabilities = {key: n_orders(key) * value / total for key, value in values.items()}
    rng = np.random.default_rng(7)
    return [family.sample(M, rng, request.param) for _ in range(1500)], values, probabilities


def test_frequencies_are_those_of_the_enumerated_distribution(draws):
    drawn, _, probabilities = draws
    assert sum(probabilities.values()) == pytest.approx(1.0)
    counts = Counter(draw.member.key for draw in drawn)
    assert counts.keys() <= probabilities.keys()
    expected = {key: p * len(drawn) for key, p in probabilities.items()}
    # Products that are rarer than chi-square allows for are counted as one.
    often = [key for key in expected if expected[key] >= 5]
    rest = sum(expected[key] for key in expected if expected[key] < 5)
    pairs = [(counts[key], expected[key]) for key in often] + [(len(drawn) - sum(counts[key] for key in often), rest)]
    pairs = [(seen, due) for seen, due in pairs if due > 0]
    statistic = sum((seen - due) ** 2 / due for seen, due in pairs)
    assert statistic < chi2.isf(1e-4, len(pairs) - 1)


def test_each_draw_states_its_value_and_its_probability(draws):
    drawn, values, probabilities = draws
    for draw in drawn[:300]:
        assert draw.value == pytest.approx(values[draw.member.key], rel=1e-5, abs=1e-9)
        assert draw.probability == pytest.approx(probabilities[draw.member.key], rel=1e-5, abs=1e-12)


def test_the_gradient_estimate_is_unbiased(draws):
    drawn, values, probabilities = draws
    sums, n = Counter(), len(drawn)
    for draw in drawn:
        sums[draw.member.key] += draw.value / draw.probability
    for key, value in values.items():
        p = probabilities[key]
        error = value * np.sqrt((1 / p - 1) / n)  # of value / p with probability p, else 0
        assert abs(sums[key] / n - value) <= 4 * error + 1e-12


def test_draws_with_a_matrix_of_higher_rank():
    family, M = bind_family(ProductKernels(MIXED, 2), X), psd(14, 3, rank=5)
    values = {key: inner(M, K) for key, K in naive(MIXED, X, 2).items()}
    total = sum(n_orders(key) * value for key, value in values.items())
    rng = np.random.default_rng(0)
    for _ in range(50):
        draw = family.sample(M, rng)
        assert draw.value == pytest.approx(values[draw.member.key], rel=1e-5)
        assert draw.probability == pytest.approx(n_orders(draw.member.key) * draw.value / total, rel=1e-5)


def test_draws_follow_the_seed():
    family, M = bind_family(ProductKernels(LINEAR, 3), X), psd(14, 1)
    first, second = (
        [family.sample(M, rng).member.key for _ in range(20)] for rng in map(np.random.default_rng, [5, 5])
    )
    assert first == second


@pytest.mark.parametrize(
    "how",
    ["gradient", "uniform"],
)
def test_a_draw_for_a_matrix_of_zeros_has_a_value_of_zero(how):
    draw = bind_family(ProductKernels(LINEAR, 2), X).sample(np.zeros((14, 14)), np.random.default_rng(0), how)
    assert draw.value == 0.0
    assert draw.probability >= 0.0


def test_an_unknown_way_to_draw_is_refused():
    with pytest.raises(ValueError, match="how"):
        bind_family(ProductKernels(LINEAR, 2), X).sample(psd(14, 0), np.random.default_rng(0), "gradiant")


# -- sums and the best -------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [None, PRIOR])
@pytest.mark.parametrize("base", BASES)
def test_sums_are_values_times_orders(base, prior):
    M, every = psd(14, 2, rank=2), naive(BASES[base], X, 3, prior)
    sums = bind_family(ProductKernels(BASES[base], 3, prior), X).sums(M)
    for d in (1, 2, 3):
        expected = sum(n_orders(key) * inner(M, K) for key, K in every.items() if len(key) == d)
        assert sums[d - 1] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("key", [(0,), (0, 0), (0, 1), (0, 1, 1), (0, 1, 2), (2, 2, 2), (0, 0, 1, 1)])
def test_orders_are_distinct_permutations(key):
    assert orders(key) == n_orders(key)


@pytest.mark.parametrize("prior", [None, PRIOR])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("base", BASES)
def test_the_best_is_the_enumerated_one_on_small_families(base, seed, prior):
    M = psd(14, seed, rank=1 + seed)
    values = {key: inner(M, K) for key, K in naive(BASES[base], X, 3, prior).items()}
    best = bind_family(ProductKernels(BASES[base], 3, prior), X).best(M)
    assert best.value == pytest.approx(max(values.values()), rel=1e-5)
    assert values[best.member.key] == pytest.approx(best.value, rel=1e-5)
    assert best.bound >= max(values.values()) * (1 - 1e-6)


def is_exact(best):
    """Whether the bound says that no kernel is better, to six digits."""
    return best.bound <= best.value + 1e-6 * abs(best.value)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("r", [12, 40])
def test_the_bound_is_one_also_where_the_beam_is_narrow(r, seed):
    V, M = rank_one_features(r, 10, seed), psd(10, seed + 20)
    base = [Linear(columns=[j]) for j in range(r)]
    best = bind_family(ProductKernels(base, 3), V).best(M)
    values = [inner(M, K) for K in naive(base, V, 3).values()]
    assert best.value <= max(values) * (1 + 1e-5)
    assert best.bound >= max(values) * (1 - 1e-6)
    assert not is_exact(best) or best.value >= max(values) * (1 - 1e-5)


def test_the_bound_holds_where_the_beam_misses(monkeypatch):
    """With a beam of one the best product, of factors that are worth nothing alone, is not found."""
    monkeypatch.setattr("manykernels.kernels.product_family._BEAM", 1)
    missed = 0
    for seed in range(12):
        V, M = rank_one_features(9, 12, seed), psd(12, seed + 50)
        base = [Linear(columns=[j]) for j in range(9)]
        best = bind_family(ProductKernels(base, 3), V).best(M)
        largest = max(inner(M, K) for K in naive(base, V, 3).values())
        assert best.bound >= largest * (1 - 1e-6)
        assert not (is_exact(best) and best.value < largest * (1 - 1e-5))
        missed += best.value < largest * (1 - 1e-5)
    assert missed > 0


def test_few_members_make_an_exact_search():
    best = bind_family(ProductKernels(LINEAR, 2), X).best(psd(14, 1))
    assert is_exact(best)
    assert best.bound >= best.value


@pytest.mark.parametrize("r", [4, 30])
def test_the_norm_of_all_values_is_bounded(r):
    V, M = rank_one_features(r, 12, 0), psd(12, 9)
    base = [Linear(columns=[j]) for j in range(r)]
    exact = np.sqrt(sum(inner(M, K) ** 2 for K in naive(base, V, 3).values()))
    found = bind_family(ProductKernels(base, 3), V).norm_bound(M)[0]
    assert found >= exact * (1 - 1e-6)
    if r == 4:
        assert found == pytest.approx(exact, rel=1e-5)


# -- members -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("normalize", ["mean_diag", "trace", None])
@pytest.mark.parametrize("base", BASES)
def test_matrices_of_members_are_the_naive_products(base, normalize, form):
    family = bind_family(ProductKernels(BASES[base], 3, PRIOR), form(X), Recipe(normalize=normalize))
    collection = Collection(family, "double")
    M = psd(14, 4)
    for key, K in list(naive(BASES[base], X, 3, PRIOR, normalize=normalize).items())[::2]:
        member = family.member(key)
        np.testing.assert_allclose(collection.matrix(collection.place(member)), K, rtol=1e-9, atol=1e-10)
        assert family.value(M, member) == pytest.approx(inner(M, K), rel=1e-4, abs=1e-4 * np.abs(M * K).sum())
    assert len(collection) == (len(family) + 1) // 2


def test_sample_weights_count_in_the_normalization():
    weight = np.random.default_rng(1).integers(1, 4, 14).astype(float)
    family = bind_family(ProductKernels(MIXED, 2), Data(X, weight=weight))
    collection = Collection(family, "double")
    for key, K in naive(MIXED, X, 2, weight=weight).items():
        np.testing.assert_allclose(collection.matrix(collection.place(family.member(key))), K, rtol=1e-9, atol=1e-10)


def test_the_prior_divides_the_values():
    M = psd(14, 4)
    plain, divided = (bind_family(ProductKernels(LINEAR, 3, prior), X) for prior in (None, PRIOR))
    for key in [(0,), (1, 2), (0, 1, 3)]:
        expected = plain.value(M, plain.member(key)) / PRIOR[len(key) - 1]
        assert divided.value(M, divided.member(key)) == pytest.approx(expected)
        assert divided.member(key).scale == pytest.approx(plain.member(key).scale / PRIOR[len(key) - 1])


def test_permuted_indices_are_one_member():
    family = bind_family(ProductKernels(LINEAR, 3), X)
    collection = Collection(family)
    places = {collection.place(family.member(key)) for key in permutations((2, 0, 3))}
    assert places == {0}
    assert len(collection) == 1
    assert family.member((3, 0, 2)).key == (0, 2, 3)


@pytest.mark.parametrize(
    ("key", "name"),
    [((0,), "x0"), ((0, 1), "x0 * x1"), ((1, 0), "x0 * x1"), ((0, 0), "x0^2"), ((0, 2, 2), "x0 * x2^2")],
)
def test_names_are_readable(key, name):
    assert bind_family(ProductKernels(LINEAR, 3), X).member(key).kernel.name == name


def test_names_are_those_of_the_table():
    table = pd.DataFrame(X, columns=["age", "income", "height", "weight"])
    family = bind_family(ProductKernels([Linear(columns=name) for name in table], 2), Data(X, table))
    assert family.member((0, 1)).kernel.name == "age * income"
    assert family.member((2, 2)).kernel.name == "height^2"


def test_names_of_other_kernels_keep_their_parameters():
    name = bind_family(ProductKernels(MIXED, 2), X).member((0, 1)).kernel.name
    assert name == "x0 * Gaussian(width=1) on x1, x2"


def test_a_product_computes_its_factors_on_their_columns():
    kernel = KernelProduct([Linear(), Gaussian(1.0), Linear()], [[0], [1, 2], [0]])
    grams = naive_base([Linear(columns=[0]), Gaussian(1.0, columns=[1, 2])], X, normalize=None)
    np.testing.assert_allclose(kernel.compute(X, X), grams[0] ** 2 * grams[1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(grams[0] ** 2 * grams[1]), rtol=1e-9)


def test_constant_and_empty_features():
    V = np.column_stack([X[:, 0], np.ones(14), np.zeros(14)])
    base, M = [Linear(columns=[j]) for j in range(3)], psd(14, 1)
    with pytest.warns(match="x2"):
        family = bind_family(ProductKernels(base, 2), V)
    assert family.value(M, family.member((0, 2))) == 0.0
    assert family.value(M, family.member((0, 1))) == pytest.approx(family.value(M, family.member((0,))), rel=1e-5)
    rng = np.random.default_rng(0)
    assert all(2 not in family.sample(M, rng).member.key for _ in range(100))


def test_precomputed_matrices_can_be_multiplied():
    grams = naive_base(MIXED, X)
    family = bind_family(
        ProductKernels(KernelBank.from_arrays(grams), 2), np.arange(14)[:, None], Recipe(normalize=None)
    )
    collection = Collection(family, "double")
    np.testing.assert_allclose(
        collection.matrix(collection.place(family.member((0, 3)))), grams[0] * grams[3], rtol=1e-9, atol=1e-12
    )


# -- size --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("r", "degree"), [(1, 1), (1, 4), (4, 3), (6, 2), (300, 6)])
def test_the_length_counts_all_multisets(r, degree):
    family = ProductKernels([Linear(columns=[j]) for j in range(r)], degree)
    assert len(family) == comb(r + degree, degree) - 1
    if r <= 6:
        assert len(bind_family(family, np.random.default_rng(0).standard_normal((5, r))).every()) == len(family)


def test_a_family_of_a_trillion_is_never_listed(monkeypatch):
    r, V = 300, rank_one_features(300, 15, 0)
    monkeypatch.setattr(
        "manykernels.kernels.product_family.combinations_with_replacement", lambda *_: pytest.fail("it was listed")
    )
    family = bind_family(ProductKernels([Linear(columns=[j]) for j in range(r)], 6), V)
    assert len(family) > 1e12
    M, rng = psd(15, 0), np.random.default_rng(0)
    for how in ("gradient", "uniform"):
        draw = family.sample(M, rng, how)
        K = np.prod([np.outer(V[:, j], V[:, j]) for j in draw.member.key], axis=0)
        assert draw.value == pytest.approx(inner(M, K), rel=1e-3)
        assert 0 < draw.probability < 1
    best = family.best(M)
    assert best.bound >= best.value > 0
    assert np.isfinite(family.norm_bound(M)[0])


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"degree": 0}, "degree"),
        ({"degree": 1.5}, "degree"),
        ({"degree": True}, "degree"),
        ({"degree": 2, "prior": [1.0]}, "hold 2 positive"),
        ({"degree": 2, "prior": [1.0, 0.0]}, "prior"),
        ({"degree": 2, "prior": [1.0, np.inf]}, "prior"),
        pytest.param(
            {"degree": 2, "prior": ["a", "b"]},
            "prior",
        ),
    ],
)
def test_errors_name_the_argument(arguments, words):
    with pytest.raises(ValueError, match=words):
        ProductKernels(LINEAR, **arguments)


@pytest.mark.parametrize("base", [[], [3]])
def test_bases_that_are_none_are_refused(base):
    with pytest.raises((TypeError, ValueError), match="kernels"):
        ProductKernels(base, 2)


def test_cosine_is_refused():
    with pytest.raises(ValueError, match="normalize='cosine'"):
        bind_family(ProductKernels(LINEAR, 2), X, Recipe(normalize="cosine"))


def test_columns_that_are_not_there_are_said():
    with pytest.raises(ValueError, match="column"):
        bind_family(ProductKernels([Linear(columns=[9])], 2), X)


def test_products_of_linear_kernels_are_held_as_columns():
    family = bind_family(ProductKernels(LINEAR, 3), X)
    collection = Collection(family)
    for key in [(0,), (0, 1, 1), (2, 3)]:
        collection.place(family.member(key))
    bank = collection.bank()
    assert bank.describe_storage().startswith("3 as factors")
    base = naive_base(LINEAR, X)
    np.testing.assert_allclose(bank.matrix(1), base[0] * base[1] ** 2)
    np.testing.assert_allclose(collection.matrix(2), base[2] * base[3])


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_the_factor_of_a_product(base):
    big = np.vstack([X] * 6)
    member = bind_family(ProductKernels(base, 2), big).member((0, 3))
    factor = member.kernel.kernel.factor(big[:, member.kernel.positions])
    if base is LINEAR:
        V = big[:, member.kernel.positions]
        np.testing.assert_allclose(factor @ factor.T, member.kernel.kernel.compute(V, V))
    else:
        assert factor is None


def test_an_even_prior_gives_each_degree_the_weight_of_the_first():
    family = ProductKernels(LINEAR, 3, prior="even")
    assert family.prior.tolist() == [1.0, 10 / 4, 20 / 4]
    with pytest.raises(ValueError, match="'even'"):
        ProductKernels(LINEAR, 3, prior="odd")
