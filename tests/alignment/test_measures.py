"""Measures of kernels against full centered matrices and explicit feature maps."""

import warnings

import numpy as np
import pytest

from manykernels import AlignedKernel, MKLClassifier, TwoStageMKLClassifier, TwoStageMKLRegressor
from manykernels.alignment import (
    Target,
    alignment,
    alignment_scorer,
    alignments,
    centered_alignment,
    feature_space_measure,
    feature_space_measures,
    feature_space_scorer,
    measures,
)
from manykernels.banks import Placement, bind
from manykernels.kernels import Gaussian, GaussianLadder, KernelBank, Linear, Polynomial
from manykernels.kernels import centered as centering
from tests.alignment import naive
from tests.binding import bind_with

RNG = np.random.default_rng(0)
N = 24
X = RNG.standard_normal((N, 3)) + 0.4
BINARY = np.where(X[:, 0] + 0.3 * RNG.standard_normal(N) > 0.4, 1, -1)
FOUR = np.array(["ash", "birch", "cedar", "dogwood"])[RNG.permutation(np.arange(N) % 4)]
VALUES = X[:, 1] ** 2 + 0.2 * RNG.standard_normal(N)
OUTPUTS = np.column_stack([VALUES, X[:, 2], X[:, 0] * X[:, 1]])
WEIGHT = RNG.integers(1, 4, N).astype(float)
KERNELS = [Linear(columns=[0]), Linear(columns=[1, 2]), Gaussian(0.7), Gaussian(3.0, columns=[1]), Polynomial(2)]
GRAMS = [
    np.outer(X[:, 0], X[:, 0]),
    X[:, 1:] @ X[:, 1:].T,
    naive.gaussian(X, 0.7),
    naive.gaussian(X[:, [1]], 3.0),
    (X @ X.T + 1) ** 2,
]
TARGETS = {
    "two classes": (Target.of_classes, BINARY, naive.same_class(BINARY)),
    "four classes": (Target.of_classes, FOUR, naive.same_class(FOUR)),
    "values": (Target.of_values, VALUES, np.outer(VALUES, VALUES)),
    "three outputs": (Target.of_values, OUTPUTS, OUTPUTS @ OUTPUTS.T),
}
BY_TARGET = pytest.mark.parametrize(("make", "y", "L"), TARGETS.values(), ids=TARGETS)
STORAGES = pytest.mark.parametrize("storage", ["auto", "packed", "factors", "recomputed"])


def bound(kernels=KERNELS, X=X, **options):
    return bind_with(KernelBank(kernels), X, precision="double", **options)


def symmetric(seed, n=N):
    B = np.random.default_rng(seed).standard_normal((n, n))
    return B + B.T


# -- matrices ----------------------------------------------------------------------------------------------


def test_alignment_is_the_cosine_of_two_matrices():
    K, L = GRAMS[2], GRAMS[4]
    expected = sum(K[i, j] * L[i, j] for i in range(N) for j in range(N)) / np.sqrt(np.sum(K**2) * np.sum(L**2))
    assert alignment(K, L) == pytest.approx(expected, rel=1e-13)
    assert alignment(3e5 * K, 1e-7 * L) == pytest.approx(expected, rel=1e-13)
    assert abs(alignment(K + 5.0, L) - expected) > 1e-3
    assert alignment(K, -K) == pytest.approx(-1.0)


def test_alignment_with_zero_is_zero():
    assert alignment(np.zeros((3, 3)), np.eye(3)) == 0.0
    assert alignment(np.eye(3), np.zeros((3, 3))) == 0.0


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("k", range(len(KERNELS)))
def test_centered_alignment_of_two_matrices(k, weight):
    L = naive.same_class(FOUR)
    assert centered_alignment(GRAMS[k], L, weight) == pytest.approx(naive.alignment(GRAMS[k], L, weight), abs=1e-12)
    assert centered_alignment(L, GRAMS[k], weight) == pytest.approx(naive.alignment(GRAMS[k], L, weight), abs=1e-12)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@BY_TARGET
def test_centered_alignment_with_a_target(make, y, L, weight):
    for K in GRAMS:
        assert centered_alignment(K, make(y, weight)) == pytest.approx(naive.alignment(K, L, weight), abs=1e-12)


@BY_TARGET
def test_a_weight_counts_like_copies(make, y, L):
    copies = np.repeat(np.arange(N), WEIGHT.astype(int))
    K = GRAMS[2]
    repeated = centered_alignment(K[np.ix_(copies, copies)], make(y[copies]))
    assert centered_alignment(K, make(y, WEIGHT)) == pytest.approx(repeated, abs=1e-12)
    assert centered_alignment(K, L, WEIGHT) == pytest.approx(repeated, abs=1e-12)
    np.testing.assert_allclose(alignments(bound(), make(y, WEIGHT)), alignments(bound(X=X[copies]), make(y[copies])))


def test_a_weight_of_zero_is_no_sample():
    weight = np.where(np.arange(N) < 5, 0.0, WEIGHT)
    part = centered_alignment(GRAMS[2][5:, 5:], Target.of_classes(FOUR[5:], WEIGHT[5:]))
    assert centered_alignment(GRAMS[2], Target.of_classes(FOUR, weight)) == pytest.approx(part, abs=1e-12)
    np.testing.assert_allclose(alignments(bound(), Target.of_classes(FOUR, weight))[2], part)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_the_weights_is_of_no_account(factor):
    plain, scaled = Target.of_classes(FOUR, WEIGHT), Target.of_classes(FOUR, factor * WEIGHT)
    np.testing.assert_allclose(alignments(bound(), scaled), alignments(bound(), plain), rtol=1e-10)
    assert centered_alignment(GRAMS[2], scaled) == pytest.approx(centered_alignment(GRAMS[2], plain), rel=1e-10)


def test_weights_of_very_different_size():
    weight = np.where(np.arange(N) % 2, 1e-6, 1e6)
    found = alignments(bound(), Target.of_classes(BINARY, weight))
    expected = [naive.alignment(K, naive.same_class(BINARY), weight) for K in GRAMS]
    np.testing.assert_allclose(found, expected, atol=1e-10)


@BY_TARGET
def test_shifts_and_scales_change_nothing(make, y, L):
    target, rows = make(y, WEIGHT), RNG.standard_normal(N)
    plain = centered_alignment(GRAMS[2], target)
    assert centered_alignment(2.5e-4 * GRAMS[2], target) == pytest.approx(plain, rel=1e-12)
    assert centered_alignment(GRAMS[2] + 7.0, target) == pytest.approx(plain, rel=1e-10)
    assert centered_alignment(GRAMS[2] + rows[:, None] + rows, target) == pytest.approx(plain, rel=1e-10)
    assert centered_alignment(GRAMS[2], make(y, 2.0 * WEIGHT)) == pytest.approx(plain, rel=1e-12)


def test_the_alignment_of_a_target_with_itself_is_one():
    for make, y, L in TARGETS.values():
        assert centered_alignment(L, make(y)) == pytest.approx(1.0, abs=1e-12)


# -- targets -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, WEIGHT])
@BY_TARGET
def test_the_parts_of_a_target(make, y, L, weight):
    target, w = make(y, weight), np.ones(N) if weight is None else weight
    T = naive.centered(L, w)
    np.testing.assert_allclose(target.values.T @ target.values, T, atol=1e-12)
    np.testing.assert_allclose(target.values @ w, 0.0, atol=1e-12)
    np.testing.assert_allclose(target.matrix(), np.outer(w, w) * T, atol=1e-11)
    assert target.norm == pytest.approx(np.sqrt(np.sum(np.outer(w, w) * T**2)), rel=1e-12)
    expected = [np.sum(np.outer(w, w) * naive.centered(K, w) * T) for K in GRAMS]
    np.testing.assert_allclose(target.inner_products(bound(normalize=None)), expected, rtol=1e-10)


def test_two_classes_are_labels_of_plus_and_minus_one():
    one_hot, labels = Target.of_classes(BINARY, WEIGHT), Target.of_values(BINARY, WEIGHT)
    np.testing.assert_allclose(alignments(bound(), one_hot), alignments(bound(), labels), rtol=1e-12)
    np.testing.assert_allclose(2.0 * one_hot.matrix(), labels.matrix(), atol=1e-12)


def test_the_names_of_the_classes_are_of_no_account():
    coded = np.unique(FOUR, return_inverse=True)[1]
    for other in (coded, 10.0 - coded, FOUR.astype(object), list(FOUR)):
        np.testing.assert_allclose(Target.of_classes(other).matrix(), Target.of_classes(FOUR).matrix(), atol=1e-12)


def test_one_output_is_a_vector_of_values():
    np.testing.assert_array_equal(Target.of_values(VALUES[:, None]).values, Target.of_values(VALUES).values)


# -- banks -------------------------------------------------------------------------------------------------


@STORAGES
@pytest.mark.parametrize("weight", [None, WEIGHT])
@BY_TARGET
def test_alignments_of_a_bank(make, y, L, weight, storage):
    found = alignments(bound(storage=storage), make(y, weight))
    np.testing.assert_allclose(found, [naive.alignment(K, L, weight) for K in GRAMS], atol=1e-11)


@pytest.mark.parametrize("options", [{"normalize": None}, {"normalize": "trace"}, {"center": True}])
def test_normalization_changes_no_alignment(options):
    expected = [naive.alignment(K, naive.same_class(FOUR)) for K in GRAMS]
    np.testing.assert_allclose(alignments(bound(**options), Target.of_classes(FOUR)), expected, atol=1e-10)


def test_alignments_of_cosines():
    cosines = [K / np.sqrt(np.outer(np.diag(K), np.diag(K))) for K in GRAMS]
    found = alignments(bound(normalize="cosine"), Target.of_classes(FOUR))
    np.testing.assert_allclose(found, [naive.alignment(K, naive.same_class(FOUR)) for K in cosines], atol=1e-11)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_alignments_of_ladders_beside_other_kernels(weight):
    ladders = [GaussianLadder(low=0.2, high=50.0, count=60), GaussianLadder(columns=[1], low=1.0, high=4.0, count=7)]
    found = alignments(bound([*ladders, Linear(columns=[0])]), Target.of_classes(FOUR, weight))
    grams = [GRAMS[0], *(naive.gaussian_minus_one(X, w) for w in np.geomspace(0.2, 50.0, 60))]
    grams += [naive.gaussian_minus_one(X[:, [1]], w) for w in np.geomspace(1.0, 4.0, 7)]
    np.testing.assert_allclose(found, [naive.alignment(K, naive.same_class(FOUR), weight) for K in grams], atol=1e-7)


@STORAGES
@pytest.mark.parametrize(("width", "digits"), [(1e2, 1e-9), (1e4, 1e-7), (1e5, 1e-5)])
def test_very_wide_gaussians_keep_their_digits(width, digits, storage):
    found = alignments(bound([Gaussian(width)], storage=storage), Target.of_classes(FOUR))[0]
    assert found == pytest.approx(
        naive.alignment(naive.gaussian_minus_one(X, width), naive.same_class(FOUR)), abs=digits
    )


def test_very_wide_gaussians_of_a_ladder_keep_their_digits():
    found = alignments(bound([GaussianLadder(low=1.0, high=1e4, count=40)]), Target.of_classes(BINARY))
    grams = [naive.gaussian_minus_one(X, width) for width in np.geomspace(1.0, 1e4, 40)]
    # The widest kernel is constant but for 1e-8: 1e-16 of it is what its values themselves have lost.
    np.testing.assert_allclose(found, [naive.alignment(K, naive.same_class(BINARY)) for K in grams], atol=1e-8)


@pytest.mark.parametrize(("width", "digits"), [(1e2, 1e-7), (1e3, 1e-7), (1e4, 1e-6)])
def test_the_matrix_of_a_very_wide_gaussian_keeps_its_digits(width, digits):
    K, L = naive.gaussian(X, width), naive.same_class(BINARY)
    expected = naive.alignment(naive.gaussian_minus_one(X, width), L)
    assert centered_alignment(K, Target.of_classes(BINARY)) == pytest.approx(expected, abs=digits)
    assert centered_alignment(K, L) == pytest.approx(expected, abs=digits)


def test_a_large_shift_costs_only_its_own_digits():
    """A shift of 1e6 leaves ten digits of the kernel."""
    K, target = naive.gaussian(X, 1.0), Target.of_classes(BINARY)
    assert centered_alignment(K + 1e6, target) == pytest.approx(centered_alignment(K, target), abs=1e-8)


def test_kernels_in_single_precision_are_right_to_its_digits():
    rounded = [K.astype(np.float32) for K in GRAMS]
    bank = bind(KernelBank.from_arrays(rounded), np.arange(N)[:, None], placement=Placement(precision="double"))
    expected = [naive.alignment(K, naive.same_class(FOUR)) for K in GRAMS]
    np.testing.assert_allclose(alignments(bank, Target.of_classes(FOUR)), expected, atol=1e-5)
    found = [centered_alignment(K, Target.of_classes(FOUR)) for K in rounded]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@STORAGES
def test_a_constant_feature_has_alignment_zero(storage):
    V = np.column_stack([X[:, 0], np.full(N, 1 / 3), np.full(N, 7.0)])
    kernels = [Linear(columns=[1]), Gaussian(1.0, columns=[1]), Polynomial(3, columns=[2]), Gaussian(1.0, columns=[0])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for weight in (None, WEIGHT):
            found = alignments(bound(kernels, V, storage=storage), Target.of_classes(FOUR, weight))
            np.testing.assert_array_equal(found[:3], 0.0)
            assert found[3] > 0


def test_a_constant_matrix_has_alignment_zero():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (3, 7, 9, 10, 24, 30):
            y = np.random.default_rng(n).standard_normal(n)
            for value in (0.1, 0.3, 1 / 3, 1e8 / 3):
                assert abs(centered_alignment(np.full((n, n), value), Target.of_values(y))) < 1e-6
                assert abs(centered_alignment(np.full((n, n), value), np.outer(y, y))) < 1e-6


@pytest.mark.parametrize("value", [2.0, 0.1])
def test_a_constant_target_has_alignment_zero(value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(alignments(bound(), Target.of_values(np.full(N, value))), 0.0)


@pytest.mark.parametrize("n", [2, 3])
def test_very_few_samples(n):
    V, y = np.array([[0.0, 1.0], [1.0, 3.0], [5.0, 2.0]])[:n], np.array([0, 1, 1])[:n]
    kernels = [Linear(columns=[0]), Gaussian(1.0, columns=[1])]
    grams = [np.outer(V[:, 0], V[:, 0]), naive.gaussian(V[:, [1]], 1.0)]
    found = alignments(bound(kernels, V), Target.of_classes(y))
    np.testing.assert_allclose(found, [naive.alignment(K, naive.same_class(y)) for K in grams], atol=1e-12)


@pytest.mark.parametrize("size", [None, 500.0, 5000.0])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_norms_and_inner_products_of_centered_kernels(monkeypatch, weight, size):
    """However few bytes a block of rows has."""
    if size is not None:
        monkeypatch.setattr(centering, "_BLOCK_BYTES", size)
    w = np.ones(N) if weight is None else weight
    flat = np.array([naive.flat(K, weight) for K in GRAMS])
    bank = bound(normalize=None)
    np.testing.assert_allclose(centering.inner_matrix(bank, w), flat @ flat.T, rtol=1e-10)
    np.testing.assert_allclose(measures.centered_norms(bank, w), np.linalg.norm(flat, axis=1), rtol=1e-10)


@pytest.mark.parametrize("weight", [np.ones(N), WEIGHT])
def test_centering_one_matrix_is_enough(weight):
    K, L = symmetric(1), symmetric(2)
    M = centering.centered(K, weight)
    expected = naive.flat(K, weight) @ naive.flat(L, weight)
    assert np.vdot(M, L) == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(M.sum(axis=0), 0.0, atol=1e-11)
    np.testing.assert_allclose(M, np.outer(weight, weight) * naive.centered(K, weight), atol=1e-11)


# -- feature space -----------------------------------------------------------------------------------------


def measured(F, y):
    """The spreads along the line between the centers of the classes, over its length, from feature vectors."""
    classes, found = np.unique(y), []
    for i in range(len(classes)):
        for j in range(i):
            one, other = F[y == classes[i]], F[y == classes[j]]
            line = one.mean(axis=0) - other.mean(axis=0)
            length = np.linalg.norm(line)
            spreads = [np.std(part @ line / length, ddof=1) for part in (one, other)]
            found.append(sum(spreads) / length)
    return np.mean(found)


@pytest.mark.parametrize("y", [BINARY, FOUR], ids=["two classes", "four classes"])
def test_feature_space_measure_of_explicit_features(y):
    squares = np.column_stack([X**2, np.sqrt(2) * X[:, [0, 0, 1]] * X[:, [1, 2, 2]]])  # of (x'z)^2
    assert feature_space_measure(X @ X.T, y) == pytest.approx(measured(X, y), rel=1e-10)
    assert feature_space_measure((X @ X.T) ** 2, y) == pytest.approx(measured(squares, y), rel=1e-10)


def test_feature_space_measure_is_invariant_to_shifts_and_scales():
    plain = feature_space_measure(GRAMS[2], FOUR)
    assert feature_space_measure(3e-4 * GRAMS[2] + 2.0, FOUR) == pytest.approx(plain, rel=1e-9)
    assert feature_space_measure((X - 4.0) @ (X - 4.0).T, FOUR) == pytest.approx(measured(X, FOUR), rel=1e-9)


@STORAGES
@pytest.mark.parametrize("y", [BINARY, FOUR], ids=["two classes", "four classes"])
def test_feature_space_measure_of_a_bank(y, storage):
    found = feature_space_measures(bound(storage=storage), y)
    np.testing.assert_allclose(found, [feature_space_measure(K, y) for K in GRAMS], rtol=1e-9)


def test_classes_that_coincide_have_no_finite_measure():
    for n in (7, 9, 10, 11, 13):
        for value in (0.1, 0.3, 1 / 3):
            assert feature_space_measure(np.full((n, n), value), np.arange(n) < 3) == np.inf


# -- scorers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [BINARY, FOUR], ids=["two classes", "four classes"])
def test_scorers_measure_the_kernel_of_a_classifier_on_other_samples(y):
    Z = X + 0.3 * np.random.default_rng(5).standard_normal(X.shape)
    for model in (MKLClassifier(KERNELS), TwoStageMKLClassifier(KERNELS, validation_fraction=None)):
        K = model.fit(X, y).kernel(Z)
        assert alignment_scorer(model, Z, y) == pytest.approx(naive.alignment(K, naive.same_class(y)), abs=1e-10)
        assert feature_space_scorer(model, Z, y) == pytest.approx(-feature_space_measure(K, y), rel=1e-10)


def test_scorers_measure_the_kernel_of_a_regressor():
    model = TwoStageMKLRegressor(KERNELS, validation_fraction=None).fit(X, VALUES)
    expected = naive.alignment(model.kernel(X), np.outer(VALUES, VALUES))
    assert alignment_scorer(model, X, VALUES) == pytest.approx(expected, abs=1e-10)


def test_scorers_measure_the_kernel_of_a_transformer():
    model = AlignedKernel(KERNELS).fit(X, VALUES)
    expected = naive.alignment(model.kernel(X), np.outer(VALUES, VALUES))
    assert alignment_scorer(model, X, VALUES) == pytest.approx(expected, abs=1e-10)


# -- errors ------------------------------------------------------------------------------------------------


def test_errors_name_the_matrix_that_is_wrong():
    with pytest.raises(ValueError, match=r"^K must be a square matrix, got shape \(2, 3\)"):
        alignment(np.ones((2, 3)), np.eye(3))
    with pytest.raises(ValueError, match=r"^L must be a square matrix, got shape \(3,\)"):
        alignment(np.eye(3), np.ones(3))
    with pytest.raises(ValueError, match=r"K and L must have the same shape, got \(2, 2\) and \(3, 3\)"):
        alignment(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match=r"^K must be a square matrix"):
        centered_alignment(np.ones(3), np.eye(3))
    with pytest.raises(ValueError, match=r"^target must be a square matrix, got shape \(3,\)"):
        centered_alignment(np.eye(3), [1, 2, 3])


def test_errors_name_a_target_of_another_size():
    for target in (np.eye(4), Target.of_classes([0, 1, 0, 1])):
        with pytest.raises(ValueError, match="K is for 3 samples, but target is for 4"):
            centered_alignment(np.eye(3), target)


def test_errors_of_the_feature_space_measure_name_y():
    with pytest.raises(ValueError, match="K is for 4 samples, but y has 3"):
        feature_space_measure(np.eye(4), [0, 1, 1])
    for y in ([0, 0, 0, 0], [0, 1, 1, 1]):
        with pytest.raises(ValueError, match="y must have two classes or more, of at least two samples each"):
            feature_space_measure(np.eye(4), y)


def test_a_target_of_another_size_than_the_bank_is_refused():
    """Never try a longer one here: it would corrupt the memory of this process."""
    with pytest.raises(ValueError, match="target"):
        alignments(bound(), Target.of_classes(FOUR[:10]))


def test_labels_of_another_size_than_the_bank_are_refused():
    with pytest.raises(ValueError, match="y has 12"):
        feature_space_measures(bound(), FOUR[:12])


def test_alignment_takes_lists():
    assert alignment([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]) == pytest.approx(1.0)


def test_the_feature_space_measure_takes_lists():
    assert feature_space_measure((X @ X.T).tolist(), BINARY) == pytest.approx(measured(X, BINARY))


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_a_matrix_of_what_are_no_numbers_is_refused(lost):
    K = GRAMS[2].copy()
    K[0, 1] = K[1, 0] = lost
    with pytest.raises(ValueError, match=r"^K must hold finite numbers, got NaN or infinity"):
        centered_alignment(K, Target.of_classes(FOUR))


@pytest.mark.parametrize("weight", [[1.0, 1.0], [1.0, -1.0, 1.0], [0.0, 0.0, 0.0]])
def test_bad_weights_are_named(weight):
    with pytest.raises(ValueError, match="sample_weight"):
        Target.of_values([1.0, 2.0, 4.0], weight)


def test_weights_of_another_size_than_the_matrices_are_named():
    with pytest.raises(ValueError, match="sample_weight"):
        centered_alignment(np.eye(3), np.ones((3, 3)), [1.0, 1.0])
