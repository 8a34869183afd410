"""Finite feature maps: their inner products are the kernels, alone and side by side."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from manykernels import MKLClassifier
from manykernels.banks import Placement, Recipe, bind
from manykernels.banks.pairs import PairValues
from manykernels.kernels import Dirichlet, Gaussian, KernelBank, Linear, Nystroem, Overlap, Polynomial, RandomFourier
from manykernels.kernels.feature_maps import FeatureKernel, FeatureMaps, have_features
from tests.kernels import naive


def rows(n, n_columns, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, n_columns)) * (rng.random((n, n_columns)) < 0.8)


def assert_inner_products(kernel, X, Z, tolerance=1e-11):
    np.testing.assert_allclose(kernel.features(X) @ kernel.features(Z).T, kernel.compute(X, Z), atol=tolerance)


# --- kernels that have features by themselves ----------------------------------------------------------------

EXACT = [
    *((Linear(), naive.linear(), n_columns) for n_columns in (1, 4)),
    *(
        (Polynomial(degree, coef0), naive.polynomial(degree, coef0), n_columns)
        for degree in (1, 2, 3)
        for coef0 in (0.0, 1.0, 0.3)
        for n_columns in (1, 4)
    ),
    (Overlap(3), naive.overlap(3), 4),
    *((Dirichlet(frequency), naive.dirichlet(frequency), 1) for frequency in (0.0, 2.0)),
]
every_exact = pytest.mark.parametrize(
    ("kernel", "function", "n_columns"), EXACT, ids=[f"{kernel!r}-{count}" for kernel, _, count in EXACT]
)


@every_exact
def test_inner_products_of_features_are_the_kernel(kernel, function, n_columns):
    X, Z = rows(9, n_columns), rows(5, n_columns, seed=1)
    expected = naive.gram(function, X, Z)
    np.testing.assert_allclose(kernel.features(X) @ kernel.features(Z).T, expected, rtol=1e-11, atol=1e-11)
    assert_inner_products(kernel, X, Z)


@every_exact
def test_features_of_sparse_and_whole_numbers_are_the_same(kernel, function, n_columns):
    X = np.round(3 * rows(9, n_columns))
    for form in (sp.csr_matrix(X), X.astype(int), X.astype(np.float32)):
        features = kernel.features(form)
        assert isinstance(features, np.ndarray)
        assert features.dtype == np.float64
        np.testing.assert_allclose(features, kernel.features(X), atol=1e-11)


@every_exact
def test_features_map_each_row_by_itself_and_leave_it_alone(kernel, function, n_columns):
    X = rows(8, n_columns)
    before = X.copy()
    features = kernel.features(X)
    np.testing.assert_allclose(np.vstack([kernel.features(X[i : i + 1]) for i in range(8)]), features, atol=1e-13)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("far", [1e5, 1e9, 1e30])
def test_waves_far_from_the_origin_map_each_row_by_itself(far):
    kernel, near = RandomFourier(0.3, n_components=6), rows(9, 5)
    X = far * np.array([1.0, -1.0, 1.0, -1.0, 0.0]) + near  # terms of phases that cancel
    wide = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)
    for laid_out in (X, np.asfortranarray(X), wide[::2, ::2], sp.csr_matrix(X)):
        whole = kernel.features(laid_out)
        alone = np.vstack([kernel.features(laid_out[[i]]) for i in range(9)])
        np.testing.assert_array_equal(alone, whole)


def test_the_number_of_monomials():
    X = rows(3, 4)
    assert Polynomial(2).features(X).shape == (3, 15)  # of degree 2 at most, in 4 columns
    assert Polynomial(2, coef0=0.0).features(X).shape == (3, 10)
    assert Polynomial(3).features(X[:, :1]).shape == (3, 4)


def test_kernels_without_a_finite_map_say_so():
    X = rows(3, 40)
    assert Gaussian(1.0).features(X) is None
    assert Dirichlet(1.0).features(X[:, :2]) is None
    assert Polynomial(3).features(X) is None  # 12,341 monomials


def test_a_feature_kernel_of_ones_own():
    class Signs(FeatureKernel):
        def features(self, X):
            return np.sign(X)

    X = rows(6, 3)
    np.testing.assert_array_equal(Signs().compute(X, X), np.sign(X) @ np.sign(X).T)
    np.testing.assert_array_equal(Signs().diagonal(X), np.sum(np.sign(X) ** 2, axis=1))
    assert Signs().trusted


# --- random waves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_columns", [1, 4])
@pytest.mark.parametrize("n_components", [2, 50])
def test_random_waves_are_the_inner_product_of_their_features(n_components, n_columns):
    kernel, X, Z = RandomFourier(1.5, n_components), rows(9, n_columns), rows(5, n_columns, seed=1)
    assert kernel.features(X).shape == (9, n_components)
    assert_inner_products(kernel, X, Z, 1e-13)
    np.testing.assert_allclose(np.sum(kernel.features(X) ** 2, axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(kernel.diagonal(X), np.ones(9))
    np.testing.assert_allclose(kernel.features(sp.csr_matrix(X)), kernel.features(X), atol=1e-13)


@pytest.mark.parametrize("width", [0.5, 2.0])
def test_the_error_of_random_waves_falls_like_the_root_of_their_number(width):
    X = rows(40, 3)
    exact = Gaussian(width).compute(X, X)

    def error(n_components):
        kernels = [RandomFourier(width, n_components, seed=seed) for seed in range(8)]
        return np.sqrt(np.mean([(kernel.compute(X, X) - exact) ** 2 for kernel in kernels]))

    few, many = error(50), error(5000)
    assert few < 0.25
    assert many == pytest.approx(few / 10, rel=0.4)


def test_the_mean_over_seeds_of_random_waves_is_the_gaussian():
    X = rows(15, 2)
    mean = np.mean([RandomFourier(1.0, 200, seed=seed).compute(X, X) for seed in range(100)], axis=0)
    assert np.abs(mean - Gaussian(1.0).compute(X, X)).max() < 0.05


def test_random_waves_depend_on_the_seed_alone():
    X = rows(5, 3)
    np.testing.assert_array_equal(
        RandomFourier(1.0, 10, seed=3).features(X), RandomFourier(1.0, 10, seed=3).features(X)
    )
    assert not np.array_equal(RandomFourier(1.0, 10).features(X), RandomFourier(1.0, 10, seed=1).features(X))


# --- landmarks ---------------------------------------------------------------------------------------------

APPROXIMATED = [Gaussian(1.0), Gaussian(20.0), Linear(), Polynomial(2), RandomFourier(1.0, 10)]
every_approximated = pytest.mark.parametrize("kernel", APPROXIMATED, ids=repr)


@every_approximated
def test_landmarks_are_exact_where_they_are(kernel):
    X = rows(30, 3)
    approximation = Nystroem(kernel, X[:8])
    np.testing.assert_allclose(approximation.compute(X, X[:8]), kernel.compute(X, X[:8]), rtol=1e-5, atol=1e-5)
    assert_inner_products(approximation, X, X[:5])
    assert approximation.features(X).shape[1] <= 8


@every_approximated
def test_all_samples_as_landmarks_give_the_kernel_itself(kernel):
    X = rows(12, 3)
    np.testing.assert_allclose(Nystroem(kernel, X).compute(X, X), kernel.compute(X, X), rtol=1e-5, atol=1e-5)


@every_approximated
def test_landmarks_never_exceed_the_kernel(kernel):
    """What they leave out is positive semidefinite, so that the diagonal is never larger."""
    X = rows(30, 3)
    approximation = Nystroem.from_data(kernel, X, n_components=6)
    missing = kernel.compute(X, X) - approximation.compute(X, X)
    assert np.linalg.eigvalsh(missing).min() >= -1e-6 * kernel.diagonal(X).max()
    np.testing.assert_allclose(approximation.diagonal(X), approximation.compute(X, X).diagonal(), atol=1e-10)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear(), Polynomial(2)], ids=repr)
def test_landmarks_that_repeat_change_nothing(kernel):
    X = rows(20, 3)
    once, twice = Nystroem(kernel, X[:5]), Nystroem(kernel, np.vstack([X[:5], X[:5], X[2:3]]))
    assert twice.features(X).shape[1] <= 5
    np.testing.assert_allclose(twice.compute(X, X), once.compute(X, X), atol=1e-7)


def test_landmarks_of_low_rank_make_few_features():
    X = rows(20, 2)
    approximation = Nystroem(Linear(), X)
    assert approximation.features(X).shape == (20, 2)
    np.testing.assert_allclose(approximation.compute(X, X), X @ X.T, atol=1e-12)


def test_landmarks_where_the_kernel_is_zero_make_no_feature():
    X = rows(6, 2)
    approximation = Nystroem(Linear(), np.zeros((3, 2)))
    assert approximation.features(X).shape == (6, 0)
    np.testing.assert_array_equal(approximation.compute(X, X), np.zeros((6, 6)))
    np.testing.assert_array_equal(approximation.diagonal(X), np.zeros(6))


def test_landmarks_are_chosen_among_the_rows():
    X = rows(30, 3)
    kernel = Nystroem.from_data(Gaussian(1.0, columns=[2, 0], group="blood", label="two"), X, n_components=7)
    assert kernel.landmarks.shape == (7, 2)
    assert {tuple(row) for row in kernel.landmarks} <= {tuple(row) for row in X[:, [2, 0]]}
    assert (kernel.columns, kernel.group, kernel.label) == ([2, 0], "blood", "two")
    assert Nystroem.from_data(Gaussian(1.0), X, n_components=1000).landmarks.shape == (30, 3)
    other = Nystroem.from_data(Gaussian(1.0), X, n_components=7, random_state=1)
    assert not np.array_equal(other.landmarks[:, [2, 0]], kernel.landmarks)


def test_landmarks_from_a_table_with_names_and_from_a_sparse_matrix():
    X = rows(30, 3)
    table = pd.DataFrame(X, columns=["age", "income", "height"])
    from_table = Nystroem.from_data(Gaussian(1.0, columns=["height", "age"]), table, n_components=7)
    from_array = Nystroem.from_data(Gaussian(1.0, columns=[2, 0]), X, n_components=7)
    from_sparse = Nystroem.from_data(Gaussian(1.0, columns=[2, 0]), sp.csr_matrix(X), n_components=7)
    np.testing.assert_array_equal(from_table.landmarks, from_array.landmarks)
    np.testing.assert_array_equal(from_sparse.landmarks, from_array.landmarks)
    V = X[:, [2, 0]]
    np.testing.assert_allclose(from_array.features(sp.csr_matrix(V)), from_array.features(V), atol=1e-10)


def test_landmarks_from_a_table_do_not_look_at_columns_of_words():
    table = pd.DataFrame({"age": [1.0, 2.0, 3.0], "city": ["Bern", "Rome", "Oslo"]})
    assert Nystroem.from_data(Gaussian(1.0, columns=["age"]), table).landmarks.shape == (3, 1)


def test_landmarks_survive_a_pickle_and_the_callers_changes():
    X = rows(10, 2)
    landmarks = X[:4].copy()
    kernel = Nystroem(Gaussian(1.0), landmarks)
    expected = kernel.features(X)
    landmarks[:] = 0.0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel)).features(X), expected)
    np.testing.assert_array_equal(kernel.landmarks, X[:4])


def test_names_that_people_can_read():
    assert RandomFourier(2.0, 50).name("age") == "RandomFourier(width=2, n_components=50) on age"
    kernel = Nystroem(Gaussian(0.5, columns=[0]), np.zeros((7, 1)))
    assert kernel.name("x0") == "Nystroem(Gaussian(width=0.5), 7 landmarks) on x0"
    assert "array of shape (7, 1)" in repr(kernel)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: RandomFourier(0.0), "width"),
        (lambda: RandomFourier(np.inf), "width"),
        (lambda: RandomFourier("wide"), "width"),
        (lambda: RandomFourier(1.0, 0), "n_components"),
        (lambda: RandomFourier(1.0, 3), "n_components"),
        (lambda: RandomFourier(1.0, 4.5), "n_components"),
        (lambda: RandomFourier(1.0, None), "n_components"),
        (lambda: RandomFourier(1.0, 4, seed=-1), "seed"),
        (lambda: RandomFourier(1.0, 4, seed="x"), "seed"),
        (lambda: Nystroem("Gaussian", np.eye(2)), "kernel"),
        (lambda: Nystroem(Linear(), np.ones(3)), "landmarks"),
        (lambda: Nystroem(Linear(), np.ones((0, 2))), "landmarks"),
        (lambda: Nystroem(Linear(), [[np.nan, 1.0]]), "landmarks"),
        (lambda: Nystroem(Linear(), [[np.inf, 1.0]]), "landmarks"),
    ],
)
def test_bad_parameters_are_named(make, named):
    with pytest.raises((ValueError, TypeError), match=f"^{named} must"):
        make()


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: RandomFourier(1.0, 4, seed=1.5), "seed"),
        (lambda: Nystroem.from_data(Linear(), np.eye(3), n_components=-1), "n_components"),
        (lambda: Nystroem.from_data(Linear(), np.eye(3), n_components=0), "n_components"),
        (lambda: Nystroem.from_data(Linear(), np.eye(3), n_components=1.5), "n_components"),
    ],
)
def test_bad_numbers_are_named(make, named):
    with pytest.raises((ValueError, TypeError), match=f"^{named} must"):
        make()


# --- maps side by side -------------------------------------------------------------------------------------

X4 = rows(25, 4)


def some_kernels():
    return [
        Linear(columns=[0, 2]),
        Polynomial(2, columns=[1, 3]),
        Polynomial(3, coef0=0.0, columns=[2]),
        Dirichlet(1.5, columns=[3]),
        RandomFourier(1.0, 6),
        Nystroem.from_data(Gaussian(1.0, columns=[0, 1]), X4, n_components=5),
    ]


def grams(maps, X, Z):
    """The inner products of each kernel's features, (n_kernels, n, l)."""
    (left, first), right = maps.transform(X), maps.transform(Z)[0]
    spans = [slice(low, high) for low, high in pairwise(first)]
    return np.array([left[:, span] @ right[:, span].T for span in spans])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bias", [0.0, 1.0, 0.5])
@pytest.mark.parametrize("normalize", ["mean_diag", "trace", "cosine", None])
def test_maps_side_by_side_reproduce_the_pair_values(normalize, bias, sparse):
    X = sp.csr_matrix(X4) if sparse else X4
    bank = bind(KernelBank(some_kernels()), X, Recipe(normalize=normalize), Placement(precision="double"))
    pairs = PairValues(bank, bias, 10**9)
    maps = FeatureMaps(bank.bound, bank.scale, bank.is_cosine, bias)
    values = pairs.rows(np.arange(25)).reshape(25, 25, 6).transpose(2, 0, 1)
    np.testing.assert_allclose(grams(maps, X, X), values, rtol=1e-6, atol=1e-6)
    diagonals = np.sum(maps.transform(X)[0] ** 2, axis=1)
    np.testing.assert_allclose(diagonals, pairs.diagonals().sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("normalize", ["mean_diag", "cosine", None])
def test_pair_values_are_the_kernels_of_the_bank(normalize):
    kernels = [*some_kernels(), Gaussian(2.0), Gaussian(0.5, columns=[1])]
    bank = bind(KernelBank(kernels), X4, Recipe(normalize=normalize))
    pairs, every = PairValues(bank, 0.0, 10**9), np.arange(25)
    expected = np.array([bank.combine(one).array for one in np.eye(8)])
    values = pairs.rows(every).reshape(25, 25, 8)
    np.testing.assert_allclose(values.transpose(2, 0, 1), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(pairs.diagonals().T, [K.diagonal() for K in expected], rtol=1e-5, atol=1e-5)
    some = np.array([7, 3, 7])
    np.testing.assert_allclose(pairs.rows(some).reshape(3, 25, 8), values[some], atol=1e-6)


def test_maps_of_new_samples_are_scaled_as_learned():
    bank = bind(KernelBank(some_kernels()), X4, placement=Placement(precision="double"))
    maps = FeatureMaps(bank.bound, bank.scale, False, 0.0)
    Z = rows(7, 4, seed=3)
    for k, entry in enumerate(bank.bound):
        expected = bank.scale[k] * entry.kernel.compute(Z[:, entry.positions], X4[:, entry.positions])
        np.testing.assert_allclose(grams(maps, Z, X4)[k], expected, atol=1e-9)


def test_a_row_that_lacks_a_view_has_no_features_there():
    X = X4.copy()
    X[:4, 1] = X[:4, 3] = np.nan
    kernels = [Linear(columns=[0, 2]), Polynomial(2, columns=[1, 3]), RandomFourier(1.0, 4, columns=[1])]
    kernels += [Nystroem(Gaussian(1.0, columns=[3]), X4[:3, 3:])]
    bank = bind(KernelBank(kernels), X, Recipe(normalize="cosine"), Placement(precision="double"))
    maps = FeatureMaps(bank.bound, bank.scale, True, 0.0)
    features, first = maps.transform(X)
    assert not np.any(features[:4, first[1] :])
    assert np.all(np.any(features[4:, first[1] :], axis=1))
    np.testing.assert_allclose(maps.transform(X[:2])[0], features[:2], atol=1e-12)
    values = PairValues(bank, 0.0, 10**9).rows(np.arange(25)).reshape(25, 25, 4)
    np.testing.assert_allclose(grams(maps, X, X), values.transpose(2, 0, 1), atol=1e-7)


def test_a_zero_row_stays_zero_as_a_cosine():
    X = X4.copy()
    X[0] = 0.0
    bank = bind(KernelBank([Linear()]), X, Recipe(normalize="cosine"))
    features = FeatureMaps(bank.bound, bank.scale, True, 0.0).transform(X)[0]
    np.testing.assert_array_equal(features[0], np.zeros(4))
    np.testing.assert_allclose(np.sum(features[1:] ** 2, axis=1), 1.0)


def test_which_banks_have_features():
    bound = bind(KernelBank([*some_kernels(), Gaussian(1.0)]), X4).bound
    assert have_features(bound[:6], X4)
    assert have_features(bound[:6], sp.csr_matrix(X4))
    assert not have_features(bound, X4)


# --- in an estimator ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_a_classifier_learns_with_waves_and_landmarks(sparse):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 > 1.5, "far", "near")
    landmarks = Nystroem.from_data(Gaussian(1.0, columns=[0, 1]), X, n_components=20)
    form = sp.csr_matrix(X) if sparse else X
    model = MKLClassifier([RandomFourier(1.0, 50), RandomFourier(3.0, 50), landmarks, Linear()]).fit(form[:60], y[:60])
    assert model.converged_
    assert model.score(form[60:], y[60:]) >= 0.8
    assert model.weights_[2] > model.weights_[3]  # a circle is not linear


def test_a_classifier_with_landmarks_at_every_sample_is_that_of_the_kernel():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, 0)
    kernels = [Gaussian(0.7), Gaussian(1.5)]
    plain = MKLClassifier(kernels, tol=1e-5).fit(X, y)
    landmarks = MKLClassifier([Nystroem(kernel, X) for kernel in kernels], tol=1e-5).fit(X, y)
    assert landmarks.objective_ == pytest.approx(plain.objective_, rel=1e-4)
    np.testing.assert_allclose(landmarks.decision_function(X), plain.decision_function(X), atol=0.02)


def test_a_classifier_with_waves_takes_a_table_with_names():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.standard_normal((40, 3)), columns=["a", "b", "c"])
    y = np.where(table["a"] > 0, 1, 0)
    kernels = [RandomFourier(1.0, 20, columns=["a"]), Nystroem.from_data(Linear(columns=["b", "c"]), table, 5)]
    model = MKLClassifier(kernels).fit(table, y)
    assert model.score(table, y) >= 0.9
    assert model.kernel_names_[0] == "RandomFourier(width=1, n_components=20) on a"
