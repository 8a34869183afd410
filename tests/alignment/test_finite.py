"""Weights of a list by alignment: against CVXPY, SciPy and the definitions."""

import warnings

import cvxpy as cp
import numpy as np
import pytest

from manykernels.alignment import Target
from manykernels.alignment.finite import (
    aligned,
    combined_alignment,
    independent,
    nonnegative,
    quadratic,
    uniform,
    upper_bound,
)
from manykernels.kernels import Gaussian, GaussianLadder, KernelBank, NystroemFeatures
from tests.alignment import naive
from tests.alignment.samples import BINARY, BY_TARGET, KERNELS, TARGETS, THREE, VALUES, WEIGHT, N, X
from tests.binding import bind_with

RAW = [
    *(np.outer(X[:, j], X[:, j]) for j in range(4)),
    *(naive.gaussian(X[:, [j, (j + 1) % 4]], w) for j in range(4) for w in (0.5, 2.0)),
    (X @ X.T + 1) ** 2,
]
GRAMS = [naive.of_mean_diagonal_one(K) for K in RAW]


def bound(kernels=KERNELS, X=X, **options):
    return bind_with(KernelBank(kernels), X, precision="double", **options)


def precomputed(grams, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of kernels that are there twice
        bank = KernelBank.from_arrays(grams)
        return bind_with(bank, np.arange(len(grams[0]))[:, None], normalize=None, precision="double", **options)


def of_weights(weights, L, grams=GRAMS, weight=None):
    """The alignment of weights from full matrices."""
    return naive.alignment(np.tensordot(weights, grams, 1), L, weight)


def random_weights(count, m, seed=0):
    rng = np.random.default_rng(seed)
    return rng.exponential(size=(count, m)) * (rng.random((count, m)) < rng.random((count, 1))) + 1e-12


# -- the quadratic program ---------------------------------------------------------------------------------


@BY_TARGET
def test_quadratic_solves_the_problem_on_the_unit_ball(make, y, L):
    found, theta = quadratic(bound(), make(y)), naive.on_the_unit_ball(GRAMS, L)
    np.testing.assert_allclose(found.weights, theta / theta.sum(), atol=1e-5)
    assert found.alignment == pytest.approx(of_weights(theta, L), abs=1e-7)
    assert found.alignment == pytest.approx(of_weights(found.weights, L), abs=1e-10)
    assert found.weights.sum() == pytest.approx(1.0)
    assert np.all(found.weights >= 0)


@pytest.mark.parametrize("C", [1e-3, 0.5, 1.0, 50.0])
@BY_TARGET
def test_quadratic_has_the_direction_of_the_problem_with_any_price(make, y, L, C):
    found, mu = quadratic(bound(), make(y)), naive.with_a_price(GRAMS, L, C)
    np.testing.assert_allclose(found.weights, mu / mu.sum(), atol=1e-5)
    assert found.alignment == pytest.approx(of_weights(mu, L), abs=1e-7)


@BY_TARGET
def test_quadratic_with_sample_weights(make, y, L):
    grams = [naive.of_mean_diagonal_one(K, WEIGHT) for K in RAW]
    found = quadratic(bound(sample_weight=WEIGHT), make(y, WEIGHT))
    theta = naive.on_the_unit_ball(grams, L, WEIGHT)
    np.testing.assert_allclose(found.weights, theta / theta.sum(), atol=1e-5)
    assert found.alignment == pytest.approx(of_weights(theta, L, grams, WEIGHT), abs=1e-7)
    copies = np.repeat(np.arange(N), WEIGHT.astype(int))
    repeated = quadratic(bound(X=X[copies]), make(y[copies]))
    np.testing.assert_allclose(found.weights, repeated.weights, atol=1e-8)
    assert found.bound == pytest.approx(repeated.bound, abs=1e-8)


def test_a_weight_of_zero_is_no_sample():
    found = quadratic(bound(), Target.of_classes(THREE, np.where(np.arange(N) < 5, 0.0, WEIGHT)))
    expected, weights = naive.best([K[5:, 5:] for K in GRAMS], naive.same_class(THREE[5:]), WEIGHT[5:])
    assert found.alignment == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(found.weights, weights, atol=1e-7)


@BY_TARGET
def test_no_weights_exceed_the_bound_which_is_all_but_reached(make, y, L):
    found = quadratic(bound(), make(y))
    reached = [of_weights(w, L) for w in random_weights(300, len(GRAMS))]
    assert max(reached) <= found.bound
    assert naive.best(GRAMS, L)[0] <= found.bound + 1e-12
    assert -1e-14 <= found.bound - found.alignment <= 1e-7


@pytest.mark.parametrize("seed", range(4))
def test_quadratic_on_random_kernels_of_low_rank(seed):
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((12, 15, 2))
    grams, y = list(factors @ factors.transpose(0, 2, 1)), rng.standard_normal(15)
    found = quadratic(precomputed(grams), Target.of_values(y))
    expected, weights = naive.best(grams, np.outer(y, y))
    assert found.alignment == pytest.approx(expected, abs=1e-10)
    np.testing.assert_allclose(found.weights, weights, atol=1e-8)
    assert 0 <= found.bound - found.alignment + 1e-14 < 1e-7


def test_the_weights_do_not_depend_on_the_storage():
    plain = quadratic(bound(), Target.of_classes(THREE))
    for storage in ("packed", "factors", "recomputed"):
        found = quadratic(bound(storage=storage), Target.of_classes(THREE))
        np.testing.assert_allclose(found.weights, plain.weights, atol=1e-8)


def test_a_ladder_has_the_weights_of_its_kernels():
    ladder = GaussianLadder(low=0.3, high=20.0, count=30)
    grams = [naive.gaussian(X, w) for w in np.geomspace(0.3, 20.0, 30)]
    found = quadratic(bound([ladder]), Target.of_classes(BINARY))
    L = naive.same_class(BINARY)
    assert found.alignment == pytest.approx(naive.best(grams, L)[0], abs=1e-7)
    assert found.alignment == pytest.approx(of_weights(found.weights, L, grams), abs=1e-7)


def test_duplicates_share_a_weight_and_change_no_alignment():
    plain = quadratic(precomputed(GRAMS), Target.of_classes(BINARY))
    twice = quadratic(precomputed([*GRAMS, *GRAMS]), Target.of_classes(BINARY))
    assert twice.alignment == pytest.approx(plain.alignment, abs=1e-9)
    np.testing.assert_allclose(twice.weights.reshape(2, -1).sum(axis=0), plain.weights, atol=1e-6)
    assert twice.bound - twice.alignment < 1e-6


def test_nearly_equal_kernels_change_no_alignment():
    rng = np.random.default_rng(3)
    near = [K * (1 + 1e-9 * rng.random()) for K in GRAMS for _ in range(5)]
    plain, many = (quadratic(precomputed(g), Target.of_values(VALUES)) for g in (GRAMS, near))
    assert many.alignment == pytest.approx(plain.alignment, abs=1e-7)


def test_constant_kernels_have_no_weight():
    grams = [np.full((N, N), 1 / 3), *GRAMS[:6], np.full((N, N), 7.0)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = quadratic(precomputed(grams), Target.of_classes(BINARY))
    np.testing.assert_array_equal(found.weights[[0, -1]], 0.0)
    np.testing.assert_allclose(
        found.weights[1:-1], quadratic(precomputed(GRAMS[:6]), Target.of_classes(BINARY)).weights
    )


def orthogonal():
    """Kernels whose alignment with the classes is 0, and the classes."""
    signs = np.array([[1.0, -1, 1, -1], [1, -1, -1, 1]])
    return [np.outer(v, v) for v in signs], [1, 1, 0, 0]


def test_all_kernels_are_weighed_alike_if_none_points_to_the_target():
    grams, y = orthogonal()
    found = quadratic(precomputed(grams), Target.of_classes(y))
    np.testing.assert_allclose(found.weights, 0.5)
    assert found.alignment == pytest.approx(0.0, abs=1e-15)


def test_the_bound_is_known_if_no_kernel_points_to_the_target():
    grams, y = orthogonal()
    assert quadratic(precomputed(grams), Target.of_classes(y)).bound == pytest.approx(0.0, abs=1e-12)


def test_one_kernel_has_all_the_weight():
    for K in (GRAMS[0], GRAMS[6]):
        found = quadratic(precomputed([K]), Target.of_values(VALUES))
        np.testing.assert_array_equal(found.weights, [1.0])
        assert found.alignment == pytest.approx(naive.alignment(K, np.outer(VALUES, VALUES)), abs=1e-10)
        assert found.bound == pytest.approx(found.alignment, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_more_kernels_than_entries_of_a_matrix(seed):
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((60, 5, 2))
    grams, y = list(factors @ factors.transpose(0, 2, 1)), np.array([0, 1, 0, 1, 2])
    found = quadratic(precomputed(grams), Target.of_classes(y))
    assert found.alignment == pytest.approx(naive.best(grams, naive.same_class(y))[0], abs=1e-8)
    assert found.bound >= naive.best(grams, naive.same_class(y))[0] - 1e-12
    assert found.bound - found.alignment < 1e-6


@pytest.mark.parametrize("n", [2, 3])
def test_very_few_samples(n):
    V, y = np.array([[0.0, 1.0], [1.0, 3.0], [5.0, 2.0]])[:n], np.array([0, 1, 1])[:n]
    grams = [np.outer(V[:, 0], V[:, 0]), naive.gaussian(V[:, [1]], 1.0), np.outer(V[:, 1], V[:, 1])]
    found = quadratic(precomputed(grams), Target.of_classes(y))
    assert found.alignment == pytest.approx(naive.best(grams, naive.same_class(y))[0], abs=1e-10)
    assert found.bound == pytest.approx(found.alignment, abs=1e-8)


@pytest.mark.parametrize("scales", [[1e-100, 1.0, 1e100], [1e-9, 1e-9, 1e-9], [1e12, 1e12, 1e-12]])
def test_the_scale_of_a_kernel_only_divides_its_weight(scales):
    grams = [GRAMS[0], GRAMS[5], GRAMS[6]]
    found = quadratic(precomputed([s * K for s, K in zip(scales, grams, strict=True)]), Target.of_values(VALUES))
    expected, weights = naive.best(grams, np.outer(VALUES, VALUES))
    scaled = found.weights * scales
    assert found.alignment == pytest.approx(expected, abs=1e-10)
    np.testing.assert_allclose(scaled / scaled.sum(), weights, atol=1e-8)
    assert found.bound - found.alignment < 1e-7


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_sample_weights_is_of_no_account(factor):
    plain, scaled = (quadratic(bound(), Target.of_classes(THREE, c * WEIGHT)) for c in (1.0, factor))
    np.testing.assert_allclose(scaled.weights, plain.weights, atol=1e-9)
    assert scaled.bound == pytest.approx(plain.bound, abs=1e-9)


def test_kernels_in_single_precision_have_about_the_same_alignment():
    rounded = precomputed([K.astype(np.float32) for K in GRAMS])
    found = quadratic(rounded, Target.of_classes(BINARY))
    assert found.alignment == pytest.approx(naive.best(GRAMS, naive.same_class(BINARY))[0], abs=1e-6)


def test_very_wide_gaussians_are_weighed_by_all_their_digits():
    widths = [0.5, 1.0, 1e2, 1e4]
    found = quadratic(bound([Gaussian(w) for w in widths]), Target.of_values(VALUES))
    grams = [naive.gaussian_minus_one(X, w) for w in widths]
    assert found.alignment == pytest.approx(naive.best(grams, np.outer(VALUES, VALUES))[0], abs=1e-7)


# -- non-negative minimization -----------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [20, 12, 5, 1])
@pytest.mark.parametrize("seed", range(3))
def test_nonnegative_against_cvxpy(seed, rank):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rank, 20)) * 10.0 ** rng.uniform(-3, 3, 20)
    b = A.T @ rng.standard_normal(rank)
    d = nonnegative(A.T @ A, b)
    scale = np.linalg.norm(A, axis=0)
    v = cp.Variable(20, nonneg=True)
    objective = 0.5 * cp.sum_squares((A / scale) @ v) - (b / scale) @ v
    cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert np.all(d >= 0)
    assert 0.5 * np.sum((A @ d) ** 2) - b @ d == pytest.approx(float(objective.value), rel=1e-7, abs=1e-7)
    gradient = (A.T @ (A @ d) - b) / scale
    assert gradient.min() > -1e-7
    np.testing.assert_allclose(gradient * (d > 0), 0.0, atol=1e-7)


def test_nonnegative_is_zero_where_nothing_is_gained():
    G = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_array_equal(nonnegative(G, np.array([-1.0, -2.0])), 0.0)
    np.testing.assert_array_equal(nonnegative(G, np.zeros(2)), 0.0)


def test_nonnegative_solves_the_equations_where_all_weights_are_positive():
    G = np.array([[2.0, 0.5], [0.5, 3.0]])
    np.testing.assert_allclose(nonnegative(G, np.array([1.0, 2.0])), np.linalg.solve(G, [1.0, 2.0]), rtol=1e-12)


# -- other weights -----------------------------------------------------------------------------------------


@BY_TARGET
def test_independent_weights_are_the_alignments(make, y, L):
    for weight in (None, WEIGHT):
        grams = [naive.of_mean_diagonal_one(K, weight) for K in RAW]
        found = independent(bound(sample_weight=weight), make(y, weight))
        own = np.array([naive.alignment(K, L, weight) for K in grams])
        np.testing.assert_allclose(found.weights, own / own.sum(), atol=1e-10)
        assert found.alignment == pytest.approx(of_weights(own, L, grams, weight), abs=1e-10)
        assert np.isnan(found.bound)


@BY_TARGET
def test_uniform_weights_are_all_alike(make, y, L):
    found = uniform(bound(), make(y))
    np.testing.assert_allclose(found.weights, 1 / len(GRAMS))
    assert found.alignment == pytest.approx(of_weights(np.ones(len(GRAMS)), L), abs=1e-10)


@pytest.mark.parametrize("weigh", [uniform, independent])
def test_constant_kernels_have_no_weight_of_their_own(weigh):
    found = weigh(precomputed([np.full((N, N), 1 / 3), GRAMS[0], GRAMS[6]]), Target.of_classes(BINARY))
    assert found.weights[0] == 0.0
    assert np.all(found.weights[1:] > 0)
    assert found.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("weigh", [uniform, independent, quadratic])
def test_only_constant_kernels_are_weighed_alike(weigh):
    """All of them have alignment 0, and there is no NaN."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = weigh(precomputed([np.full((4, 4), 2.0), np.full((4, 4), 0.5)]), Target.of_classes([0, 1, 0, 1]))
    np.testing.assert_allclose(found.weights, 0.5)
    assert found.alignment == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    "weigh",
    [
        uniform,
        quadratic,
        pytest.param(independent),
    ],
)
def test_a_constant_target_is_no_error(weigh):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = weigh(bound(), Target.of_values(np.full(N, 2.0)))
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.alignment == 0.0


def test_the_optimum_is_no_worse_than_other_weights():
    for make, y, L in TARGETS.values():
        found = quadratic(bound(), make(y))
        assert found.alignment >= max(weigh(bound(), make(y)).alignment for weigh in (uniform, independent)) - 1e-12
        assert found.alignment >= max(naive.alignment(K, L) for K in GRAMS) - 1e-12


# -- parts -------------------------------------------------------------------------------------------------


def at_best_length(weights, L, grams):
    """Weights of unit kernels where their sum is closest to L, the sum minus L, and the unit kernels; as vectors."""
    unit = np.array([naive.flat(K) / np.linalg.norm(naive.flat(K)) for K in grams])
    K, T = weights @ unit, naive.flat(L)
    weights = weights * (K @ T) / (K @ K)
    return weights, T - weights @ unit, unit


@BY_TARGET
def test_the_bound_holds_for_weights_that_are_far_from_the_best(make, y, L):
    target, highest = make(y), naive.best(GRAMS, L)[0]
    for start in random_weights(50, len(GRAMS), seed=2):
        _, rest, unit = at_best_length(start, L, GRAMS)
        reached = of_weights(start / np.linalg.norm([naive.flat(K) for K in GRAMS], axis=1), L)
        value = upper_bound(reached, float((unit @ rest).max()), np.sqrt(len(GRAMS)) * target.norm, target)
        assert reached <= value <= 1.0
        assert highest <= value + 1e-12


def test_the_bound_is_for_the_radius_that_is_given():
    L = naive.same_class(BINARY)
    target, start = Target.of_classes(BINARY), np.ones(len(GRAMS))
    weights, rest, unit = at_best_length(start, L, GRAMS)
    reached = 1.0 - np.sum(rest**2) / target.norm**2
    for radius in (0.5 * weights.sum(), 2.0 * weights.sum()):
        value = upper_bound(np.sqrt(reached), float((unit @ rest).max()), radius, target)
        for other in random_weights(200, len(GRAMS), seed=4):
            own = at_best_length(other, L, GRAMS)
            if own[0].sum() <= radius:
                assert 1.0 - np.sum(own[1] ** 2) / target.norm**2 <= value**2 + 1e-12


def test_the_bound_of_an_optimum_is_its_alignment():
    target = Target.of_classes(BINARY)
    assert upper_bound(0.3, 0.0, 5.0, target) == pytest.approx(0.3)
    assert upper_bound(0.3, -2.0, 5.0, target) == pytest.approx(0.3)
    assert upper_bound(0.3, 1e9, 5.0, target) == 1.0


def test_the_alignment_of_weights_from_inner_products_and_from_the_kernel():
    flat, T = np.array([naive.flat(K) for K in GRAMS]), naive.flat(naive.same_class(THREE))
    target, weights = Target.of_classes(THREE), random_weights(1, len(GRAMS))[0]
    expected = of_weights(weights, naive.same_class(THREE))
    assert aligned(weights, flat @ flat.T, flat @ T, target) == pytest.approx(expected, rel=1e-10)
    assert combined_alignment(bound(), weights, target) == pytest.approx(expected, rel=1e-10)
    assert aligned(np.zeros(len(GRAMS)), flat @ flat.T, flat @ T, target) == 0.0


@pytest.mark.parametrize("weigh", [uniform, independent])
def test_very_wide_gaussians_are_combined_with_all_their_digits(weigh):
    widths = [1e3, 3e3, 1e4]
    found = weigh(bound([Gaussian(w) for w in widths]), Target.of_values(VALUES))
    grams = [naive.gaussian_minus_one(X, w) for w in widths]
    assert found.alignment == pytest.approx(of_weights(found.weights, np.outer(VALUES, VALUES), grams), abs=1e-6)


def test_a_combined_kernel_that_is_no_matrix_is_written_out():
    features = bind_with(KernelBank(KERNELS), X, approximation=NystroemFeatures(N), random_state=0)
    K = features.combine(np.ones(features.n_kernels))
    assert "array" not in K.can
    found = combined_alignment(features, np.ones(features.n_kernels), Target.of_classes(BINARY))
    assert found == pytest.approx(naive.alignment(K.product(np.eye(N)), naive.same_class(BINARY)), rel=1e-6)
