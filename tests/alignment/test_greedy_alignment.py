"""Alignment by one kernel after the other, against the optimum of lists, dense grids of widths, and differences."""

import warnings
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from manykernels.alignment import Target
from manykernels.alignment.finite import quadratic
from manykernels.alignment.greedy_alignment import GREEDY_METHODS, _Selection, greedy
from manykernels.banks import Data, Placement, Recipe, bind, bind_family
from manykernels.core.progress import listen
from manykernels.kernels import Gaussian, GaussianFamily, GaussianLadder, KernelBank, Linear, ProductKernels
from tests.alignment import naive
from tests.alignment.samples import BINARY, BY_TARGET, KERNELS, TARGETS, THREE, VALUES, WEIGHT, N, X
from tests.binding import bind_with

BY_METHOD = pytest.mark.parametrize("method", GREEDY_METHODS)
# What is reached of the optimum, and after how many steps.
STEPS = {"corrective": (1e-6, 50), "stagewise": (1e-3, 300), "frank_wolfe": (1e-3, 300)}
GRAMS = [
    naive.of_mean_diagonal_one(K)
    for K in (
        *(np.outer(X[:, j], X[:, j]) for j in range(4)),
        *(naive.gaussian(X[:, [j, (j + 1) % 4]], w) for j in range(4) for w in (0.5, 2.0)),
        (X @ X.T + 1) ** 2,
    )
]


def bound(kernels=KERNELS, X=X, **options):
    return bind_with(KernelBank(kernels), X, precision="double", **options)


def precomputed(grams):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of kernels that are there twice
        bank = KernelBank.from_arrays(grams)
        return bind(bank, np.arange(len(grams[0]))[:, None], Recipe(normalize=None), Placement(precision="double"))


def of_weights(weights, L, grams=GRAMS, weight=None):
    return naive.alignment(np.tensordot(weights, grams, 1), L, weight)


def unit(grams, weight=None):
    """Kernels as centered vectors of norm 1."""
    flat = np.array([naive.flat(K, weight) for K in grams])
    return flat / np.linalg.norm(flat, axis=1)[:, None]


# -- lists -------------------------------------------------------------------------------------------------


@BY_METHOD
@BY_TARGET
def test_every_method_comes_to_the_optimum_of_a_list(make, y, L, method):
    share, max_iter = STEPS[method]
    found = greedy(bound(), make(y), method=method, tol=1e-9, max_iter=max_iter)
    highest = quadratic(bound(), make(y)).alignment
    assert found.alignment == pytest.approx(highest, abs=share)
    assert highest == pytest.approx(naive.best(GRAMS, L)[0], abs=1e-9)
    assert found.alignment == pytest.approx(of_weights(found.weights, L), abs=1e-9)
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.bank.n_kernels == len(GRAMS)
    assert found.exact


@BY_TARGET
def test_correction_gives_the_weights_and_the_bound_of_the_optimum(make, y, L):
    found = greedy(bound(), make(y), tol=1e-9)
    np.testing.assert_allclose(found.weights, naive.best(GRAMS, L)[1], atol=1e-7)
    assert found.converged
    assert -1e-14 <= found.bound - found.alignment <= 1e-8


@BY_METHOD
@BY_TARGET
def test_no_step_lowers_the_alignment_and_the_trace_tells_all(make, y, L, method):
    found = greedy(bound(), make(y), method=method, tol=1e-6, max_iter=30)
    objectives = np.array([step.objective for step in found.trace])
    assert np.all(np.diff(objectives) <= 1e-13)
    assert found.n_iter == len(objectives)
    assert [step.iteration for step in found.trace] == list(range(1, len(objectives) + 1))
    assert objectives[-1] == pytest.approx(1.0 - found.alignment, abs=1e-14)
    assert found.trace[-1].gap == pytest.approx(found.bound - found.alignment, abs=1e-14)
    assert found.trace[-1].n_active == np.count_nonzero(found.weights)


@BY_METHOD
@pytest.mark.parametrize("max_iter", [1, 2, 5, 20])
def test_no_weights_exceed_the_bound_at_any_stage(method, max_iter):
    for make, y, L in TARGETS.values():
        found = greedy(bound(), make(y), method=method, tol=1e-12, max_iter=max_iter)
        assert found.alignment <= found.bound + 1e-13
        assert naive.best(GRAMS, L)[0] <= found.bound + 1e-12


@BY_TARGET
def test_sample_weights_count_like_copies(make, y, L):
    copies = np.repeat(np.arange(N), WEIGHT.astype(int))
    found = greedy(bound(sample_weight=WEIGHT), make(y, WEIGHT), tol=1e-9)
    repeated = greedy(bound(X=X[copies]), make(y[copies]), tol=1e-9)
    np.testing.assert_allclose(found.weights, repeated.weights, atol=1e-7)
    assert found.alignment == pytest.approx(repeated.alignment, abs=1e-9)
    assert found.bound == pytest.approx(repeated.bound, abs=1e-9)


@pytest.mark.parametrize("method", ["stagewise", "frank_wolfe"])
def test_sample_weights_count_like_copies_at_every_step(method):
    copies = np.repeat(np.arange(N), WEIGHT.astype(int))
    for make, y, _ in TARGETS.values():
        for max_iter in (1, 4):
            options = {"method": method, "tol": 1e-9, "max_iter": max_iter}
            found = greedy(bound(sample_weight=WEIGHT), make(y, WEIGHT), **options)
            repeated = greedy(bound(X=X[copies]), make(y[copies]), **options)
            np.testing.assert_allclose(found.weights, repeated.weights, atol=1e-7)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_sample_weights_is_of_no_account(factor):
    for kernels in (bound(), bind_family(GaussianFamily(0.3, 20.0), X)):
        plain, scaled = (greedy(kernels, Target.of_classes(THREE, c * WEIGHT), tol=1e-6) for c in (1.0, factor))
        assert scaled.alignment == pytest.approx(plain.alignment, abs=1e-7)
        assert scaled.bound == pytest.approx(plain.bound, abs=1e-5)


@BY_METHOD
def test_a_weight_of_zero_is_no_sample(method):
    weight = np.where(np.arange(N) < 5, 0.0, WEIGHT)
    share, max_iter = STEPS[method]
    found = greedy(bound(), Target.of_classes(THREE, weight), method=method, tol=1e-9, max_iter=max_iter)
    highest = naive.best([K[5:, 5:] for K in GRAMS], naive.same_class(THREE[5:]), WEIGHT[5:])[0]
    assert found.alignment == pytest.approx(highest, abs=share)


def test_a_ladder_beside_other_kernels():
    kernels = [GaussianLadder(low=0.3, high=20.0, count=80), Linear(columns=[0]), Linear(columns=[2])]
    found = greedy(bound(kernels), Target.of_classes(BINARY), tol=1e-8)
    grams = [np.outer(X[:, 0], X[:, 0]), np.outer(X[:, 2], X[:, 2])]
    grams = [naive.of_mean_diagonal_one(K) for K in grams] + [naive.gaussian(X, w) for w in np.geomspace(0.3, 20, 80)]
    L = naive.same_class(BINARY)
    assert found.alignment == pytest.approx(naive.best(grams, L)[0], abs=1e-6)
    assert found.alignment == pytest.approx(of_weights(found.weights, L, grams), abs=1e-7)
    assert naive.best(grams, L)[0] <= found.bound + 1e-9


def test_more_kernels_than_entries_of_a_matrix():
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((200, 5, 2))
    grams, y = list(factors @ factors.transpose(0, 2, 1)), np.array([0, 1, 0, 1, 2])
    found = greedy(precomputed(grams), Target.of_classes(y), tol=1e-9)
    assert found.alignment == pytest.approx(naive.best(grams, naive.same_class(y))[0], abs=1e-7)


@BY_METHOD
def test_a_long_list_is_searched_in_parts_and_yet_exactly(method):
    """Of 700 kernels, only those are looked at that may be the best; the bound and the steps are those of all."""
    rng = np.random.default_rng(5)
    factors = rng.standard_normal((700, 10, 2))
    grams, y = factors @ factors.transpose(0, 2, 1), rng.standard_normal(10)
    vectors, T = unit(grams), naive.flat(np.outer(y, y))
    highest = naive.best(grams, np.outer(y, y))[0]
    for max_iter in (1, 2, 3, 7, 15):
        found = greedy(precomputed(list(grams)), Target.of_values(y), method=method, tol=1e-12, max_iter=max_iter)
        K = naive.flat(np.tensordot(found.weights, grams, 1))
        K *= (K @ T) / (K @ K)
        value = np.sqrt(found.alignment**2 + 2.0 * np.sqrt(700) * np.max(vectors @ (T - K)) / np.linalg.norm(T))
        assert found.bound == pytest.approx(min(1.0, value), rel=1e-6)
        assert highest <= found.bound + 1e-9
    assert found.alignment == pytest.approx(highest, abs=1e-6 if method == "corrective" else 0.2)


@BY_METHOD
def test_duplicates_and_constant_kernels_change_nothing(method):
    share, max_iter = STEPS[method]
    grams = [np.full((N, N), 1 / 3), *GRAMS, *GRAMS[4:8], np.full((N, N), 5.0)]
    found = greedy(precomputed(grams), Target.of_classes(BINARY), method=method, tol=1e-9, max_iter=max_iter)
    assert found.alignment == pytest.approx(naive.best(GRAMS, naive.same_class(BINARY))[0], abs=share)
    np.testing.assert_array_equal(found.weights[[0, -1]], 0.0)


@BY_METHOD
@pytest.mark.parametrize("scales", [[1e-100, 1.0, 1e100], [1e-9, 1e-9, 1e-9], [1e12, 1e12, 1e-12]])
def test_kernels_of_a_list_are_compared_at_equal_norm(scales, method):
    share, max_iter = STEPS[method]
    grams = [GRAMS[0], GRAMS[5], GRAMS[6]]
    bank = precomputed([s * K for s, K in zip(scales, grams, strict=True)])
    found = greedy(bank, Target.of_values(VALUES), method=method, tol=1e-9, max_iter=max_iter)
    assert found.alignment == pytest.approx(naive.best(grams, np.outer(VALUES, VALUES))[0], abs=share)


@BY_METHOD
def test_one_kernel_has_all_the_weight(method):
    found = greedy(precomputed([GRAMS[6]]), Target.of_classes(BINARY), method=method)
    np.testing.assert_array_equal(found.weights, [1.0])
    assert found.alignment == pytest.approx(naive.alignment(GRAMS[6], naive.same_class(BINARY)), abs=1e-12)
    assert found.bound == pytest.approx(found.alignment, abs=1e-10)


@BY_METHOD
def test_only_constant_kernels_are_weighed_alike(method):
    bank = precomputed([np.full((4, 4), 2.0), np.full((4, 4), 0.5)])
    found = greedy(bank, Target.of_classes([0, 1, 0, 1]), method=method)
    np.testing.assert_allclose(found.weights, 0.5)
    assert found.alignment == 0.0


@BY_METHOD
def test_kernels_that_point_nowhere_are_weighed_alike(method):
    signs = np.array([[1.0, -1, 1, -1], [1, -1, -1, 1]])
    found = greedy(precomputed([np.outer(v, v) for v in signs]), Target.of_classes([1, 1, 0, 0]), method=method)
    np.testing.assert_allclose(found.weights, 0.5)
    assert found.alignment == pytest.approx(0.0, abs=1e-15)
    assert found.bound == pytest.approx(0.0, abs=1e-12)


@BY_METHOD
@pytest.mark.parametrize("seed", [0, 7, 8])
def test_kernels_that_say_little_are_weighed_by_what_they_say(seed, method):
    """Noise: the best combination of four kernels has an alignment of 0.02 to 0.04."""
    V = np.random.default_rng(0).normal(size=(30, 4))
    y = np.random.default_rng(seed).normal(size=30)
    found = greedy(bound([Linear(columns=[j]) for j in range(4)], V), Target.of_values(y), method=method, tol=1e-9)
    highest = naive.best([np.outer(v, v) for v in V.T], np.outer(y, y))[0]
    assert found.bound >= highest - 1e-12
    assert found.alignment == pytest.approx(highest, abs=1e-3)


@pytest.mark.parametrize("seed", [2, 5, 6])
def test_a_family_that_says_little_is_searched_for_what_it_says(seed):
    """Noise: the best widths have an alignment of 0.17 to 0.2, and the kernel that is taken has 0.01 to 0.08."""
    rng = np.random.default_rng(seed)
    V, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    found = greedy(bind_family(GaussianFamily(0.5, 20.0), V), Target.of_values(y), tol=1e-8)
    highest = naive.best([naive.gaussian(V, w) for w in np.geomspace(0.5, 20.0, 100)], np.outer(y, y))[0]
    assert found.alignment == pytest.approx(highest, abs=1e-4)
    assert found.bound >= found.alignment


def test_the_bound_of_a_family_that_says_little_is_not_below_its_alignment():
    """Neighbors are of different classes."""
    found = greedy(
        bind_family(GaussianFamily(1.0, 10.0), np.arange(12.0)[:, None]), Target.of_classes(np.arange(12) % 2)
    )
    assert found.bound >= found.alignment > 0


@pytest.mark.parametrize(
    ("n", "classes"),
    [
        (2, [0, 1]),
        (3, [0, 1, 2]),
        (3, [0, 1, 1]),
        (4, [0, 0, 1, 1]),
    ],
)
def test_very_few_samples(n, classes):
    """With a class for each sample, the target is the centered identity itself."""
    V = np.array([[0.0, 1.0], [1.0, 3.0], [5.0, 2.0], [4.0, 2.5]])[:n]
    grams = [np.outer(V[:, 0], V[:, 0]), naive.gaussian(V[:, [1]], 1.0), naive.gaussian(V, 1.0)]
    found = greedy(precomputed(grams), Target.of_classes(classes), tol=1e-9)
    highest = naive.best(grams, naive.same_class(np.array(classes)))[0]
    assert found.alignment == pytest.approx(highest, abs=1e-8)
    assert found.bound >= highest - 1e-10


def wide(width):
    """Kernels of two columns, some of them all but constant, and their matrices up to a constant."""
    places = [(j, w) for j in range(2) for w in (1.0, 3.0, width, 2.0 * width)]
    kernels = [Gaussian(w, columns=[j]) for j, w in places]
    return bound(kernels), [naive.gaussian_minus_one(X[:, [j]], w) for j, w in places]


@pytest.mark.parametrize(("width", "digits"), [(30.0, 1e-8), (1e3, 1e-7), (1e4, 1e-7), (1e5, 1e-5)])
def test_very_wide_gaussians_are_weighed_by_all_their_digits(width, digits):
    bank, grams = wide(width)
    for make, y, L in TARGETS.values():
        found = greedy(bank, make(y), tol=1e-9)
        highest = naive.best(grams, L)[0]
        assert found.alignment == pytest.approx(highest, abs=digits)
        assert found.alignment == pytest.approx(of_weights(found.weights, L, grams), abs=digits)
        assert found.bound >= highest - digits


@pytest.mark.parametrize("width", [30.0, 1e3, 1e4])
def test_the_bound_of_very_wide_gaussians_is_close(width):
    bank, _ = wide(width)
    for make, y, _ in TARGETS.values():
        found = greedy(bank, make(y), tol=1e-9)
        assert found.bound - found.alignment < 1e-6


def test_kernels_in_single_precision():
    bank = precomputed([K.astype(np.float32) for K in GRAMS])
    found = greedy(bank, Target.of_classes(BINARY), tol=1e-8)
    assert found.alignment == pytest.approx(naive.best(GRAMS, naive.same_class(BINARY))[0], abs=1e-6)


# -- steps -------------------------------------------------------------------------------------------------


def steepest(K, T, directions):
    """The largest derivative of the alignment of K, at its best length, toward some kernels, by differences."""
    K = K * (K @ T) / (K @ K)
    h = 1e-5 * np.linalg.norm(K) / np.linalg.norm(directions, axis=1)

    def angle(vector):
        return vector @ T / (np.linalg.norm(vector) * np.linalg.norm(T))

    slopes = [(angle(K + s * v) - angle(K - s * v)) / (2 * s) for s, v in zip(h, directions, strict=True)]
    return np.max(slopes) * np.linalg.norm(K) * np.linalg.norm(T)


@pytest.mark.parametrize("method", ["stagewise", "frank_wolfe"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@BY_TARGET
def test_the_bound_tells_the_derivative_of_the_alignment(make, y, L, weight, method):
    """It is A^2 + 2 sqrt(m) v / ||T||, where v / (||K|| ||T||) is the derivative toward the best kernel of norm 1."""
    found = greedy(bound(sample_weight=weight), make(y, weight), method=method, tol=1e-12, max_iter=6)
    T = naive.flat(L, weight)
    grams = [naive.of_mean_diagonal_one(K, weight) for K in GRAMS]
    v = steepest(naive.flat(np.tensordot(found.weights, grams, 1), weight), T, unit(GRAMS, weight))
    told = (found.bound**2 - found.alignment**2) * np.linalg.norm(T) / (2.0 * np.sqrt(len(GRAMS)))
    assert found.bound < 1.0
    assert told == pytest.approx(v, rel=1e-6, abs=1e-9)


def test_the_bound_of_a_family_tells_the_derivative_of_the_alignment():
    """Here the kernels are as they are, and the radius is ten times the total of the weights."""
    grid = np.array([naive.flat(naive.gaussian(X, w)) for w in np.geomspace(0.2, 30.0, 600)])
    for make, y, L in TARGETS.values():
        found = greedy(bind_family(GaussianFamily(0.2, 30.0), X), make(y), tol=1e-12, max_iter=1)
        T = naive.flat(L)
        K = found.weights @ [naive.flat(naive.gaussian(X, entry.kernel.width)) for entry in found.bank.bound]
        total = (K @ T) / (K @ K)
        told = (found.bound**2 - found.alignment**2) * (T @ T) / (20.0 * total)
        assert told == pytest.approx(steepest(K, T, grid), rel=1e-3, abs=1e-7 * (T @ T))


@pytest.mark.parametrize("max_iter", [1, 2, 4])
@BY_TARGET
def test_stagewise_takes_the_best_step_to_the_best_kernel(make, y, L, max_iter):
    now, after = (
        greedy(bound(), make(y), method="stagewise", tol=1e-12, max_iter=steps) for steps in (max_iter, max_iter + 1)
    )
    vectors, T = unit(GRAMS), naive.flat(L)
    norms = np.linalg.norm([naive.flat(K) for K in GRAMS], axis=1)
    own = now.weights * norms
    K = own @ vectors
    scale = (K @ T) / (K @ K)
    K, own = scale * K, scale * own
    k = int(np.argmax(vectors @ (T - K)))

    def negative(eta):
        step = K + eta * vectors[k]
        return -(step @ T) / np.linalg.norm(step)

    best = minimize_scalar(negative, bounds=(0.0, 50.0 * np.linalg.norm(K)), method="bounded", options={"xatol": 1e-10})
    own[k] += best.x
    np.testing.assert_allclose(after.weights, own / norms / np.sum(own / norms), atol=1e-5)
    assert after.alignment == pytest.approx(-best.fun / np.linalg.norm(T), abs=1e-10)


def test_stagewise_replaces_what_there_is_by_a_kernel_that_is_better_alone():
    """The first kernel is best beside the identity, but the target is a positive multiple of the second."""
    y = np.array([1.0, 1.0, -1.0, -1.0])
    other = np.array([1.0, -1.0, 1.0, -1.0])
    grams = [np.outer(y, y), np.outer(y, y) + np.outer(other, other)]
    found = greedy(precomputed(grams), Target.of_values(y), method="stagewise", tol=1e-9)
    np.testing.assert_allclose(found.weights, [1.0, 0.0], atol=1e-9)
    assert found.alignment == pytest.approx(1.0)


@pytest.mark.parametrize("largest", [0.02, 0.3])
def test_the_longest_step_of_stagewise_is_relative_to_what_there_is(largest):
    norms = np.linalg.norm([naive.flat(K) for K in GRAMS], axis=1)
    runs = [
        greedy(bound(), Target.of_classes(BINARY), method="stagewise", tol=1e-12, max_iter=t, largest_step=largest)
        for t in range(1, 8)
    ]
    for now, after in pairwise(runs):
        one, two = now.weights * norms, after.weights * norms
        kept = np.flatnonzero(one)
        scale = np.min(two[kept] / one[kept])
        step = two / scale - one
        assert np.count_nonzero(step > 1e-9) <= 1
        assert step.sum() <= largest * np.linalg.norm(one @ unit(GRAMS)) * (1 + 1e-9)
        assert after.alignment >= now.alignment


def test_the_steps_of_frank_wolfe_are_exact_minima(monkeypatch):
    seen, move = [], _Selection._move

    def watched(self, places):
        before = self.weights.copy()
        move(self, places)
        seen.append((list(self.kernels.chosen), before, self.weights.copy(), self.corner, places[0]))

    monkeypatch.setattr(_Selection, "_move", watched)
    make, y, L = TARGETS["three classes"]
    greedy(bound(), make(y), method="frank_wolfe", tol=1e-12, max_iter=25)
    vectors, T = unit(GRAMS), naive.flat(L)
    for chosen, before, after, corner, k in seen:
        own = vectors[chosen]
        to_kernel = own[k] @ (T - before @ own) > 0
        direction = -before + (corner * np.eye(len(chosen))[k] if to_kernel else 0.0)

        def distance(step, before=before, direction=direction, own=own):
            return np.sum(((before + step * direction) @ own - T) ** 2)

        best = minimize_scalar(distance, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12})
        np.testing.assert_allclose(after, before + best.x * direction, atol=1e-5 * corner)
        assert np.sum((after @ own - T) ** 2) <= best.fun * (1 + 1e-12)
        assert np.all(after >= 0)
        assert after.sum() <= corner * (1 + 1e-12)
    assert len(seen) == 25


@BY_METHOD
def test_a_search_makes_no_noise(method):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert greedy(bound(), Target.of_classes(BINARY), method=method).n_iter > 1


# -- families ----------------------------------------------------------------------------------------------


@BY_METHOD
@BY_TARGET
def test_gaussians_of_all_widths_against_a_dense_grid(make, y, L, method):
    max_iter, share = {"corrective": (50, 1e-5), "stagewise": (60, 1e-3), "frank_wolfe": (60, 3e-3)}[method]
    grid = np.geomspace(0.2, 30.0, 150)
    grams = [naive.gaussian(X, w) for w in grid]
    highest = naive.best(grams, L)[0]
    found = greedy(bind_family(GaussianFamily(0.2, 30.0), X), make(y), method=method, tol=1e-6, max_iter=max_iter)
    assert highest - share <= found.alignment <= highest + 2e-5
    assert highest <= found.bound + 1e-7
    widths = [entry.kernel.width for entry in found.bank.bound]
    assert found.alignment == pytest.approx(
        of_weights(found.weights, L, [naive.gaussian(X, w) for w in widths]), abs=1e-8
    )
    assert np.all(found.weights > 0)
    assert found.weights.sum() == pytest.approx(1.0)


def test_a_dense_grid_solved_by_the_library_is_no_better():
    target = Target.of_classes(THREE)
    found = greedy(bind_family(GaussianFamily(0.2, 30.0), X), target, tol=1e-7)
    listed = quadratic(bound([Gaussian(w) for w in np.geomspace(0.2, 30.0, 100)]), target)
    assert found.alignment >= listed.alignment - 1e-6


@BY_METHOD
@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_no_weights_of_ten_times_the_total_exceed_the_bound_of_a_family(method, max_iter):
    grid = np.geomspace(0.2, 30.0, 60)
    vectors = np.array([naive.flat(naive.gaussian(X, w)) for w in grid])
    for make, y, L in TARGETS.values():
        found = greedy(bind_family(GaussianFamily(0.2, 30.0), X), make(y), method=method, tol=1e-12, max_iter=max_iter)
        T = naive.flat(L)
        K = found.weights @ [naive.flat(naive.gaussian(X, entry.kernel.width)) for entry in found.bank.bound]
        total = 10.0 * (K @ T) / (K @ K)
        d = naive.best([v.reshape(N, N) for v in vectors], L)[1]
        rng = np.random.default_rng(0)
        for own in (d, *(rng.exponential(size=(40, 60)) * (rng.random((40, 60)) < 0.1) + 1e-9)):
            other = own @ vectors
            if own.sum() * (other @ T) / (other @ other) <= total:
                assert other @ T / np.sqrt((other @ other) * (T @ T)) <= found.bound + 1e-7


def test_sample_weights_of_a_family_count_like_copies():
    copies = np.repeat(np.arange(N), WEIGHT.astype(int))
    family = GaussianFamily(0.2, 30.0)
    found = greedy(bind_family(family, Data(X, weight=WEIGHT)), Target.of_classes(THREE, WEIGHT), tol=1e-8)
    repeated = greedy(bind_family(family, X[copies]), Target.of_classes(THREE[copies]), tol=1e-8)
    assert found.alignment == pytest.approx(repeated.alignment, abs=1e-6)
    assert found.bound == pytest.approx(repeated.bound, abs=1e-5)


def test_sample_weights_of_a_family_count_like_copies_at_every_step():
    copies, family = np.repeat(np.arange(N), WEIGHT.astype(int)), GaussianFamily(0.2, 30.0)
    for make, y, _ in TARGETS.values():
        for max_iter in (1, 2, 3):
            found = greedy(bind_family(family, Data(X, weight=WEIGHT)), make(y, WEIGHT), max_iter=max_iter)
            repeated = greedy(bind_family(family, X[copies]), make(y[copies]), max_iter=max_iter)
            assert found.alignment == pytest.approx(repeated.alignment, abs=1e-7)


def multisets(base, degree):
    return [
        np.prod([base[j] for j in key], axis=0)
        for d in range(1, degree + 1)
        for key in combinations_with_replacement(range(len(base)), d)
    ]


@BY_TARGET
@pytest.mark.parametrize("degree", [2, 3])
def test_products_against_the_list_of_all(make, y, L, degree):
    for kernels, base in (
        ([Linear(columns=[j]) for j in range(3)], [np.outer(X[:, j], X[:, j]) for j in range(3)]),
        ([Gaussian(1.5, columns=[j]) for j in range(3)], [naive.gaussian(X[:, [j]], 1.5) for j in range(3)]),
    ):
        every = multisets([naive.of_mean_diagonal_one(K) for K in base], degree)
        highest = naive.best(every, L)[0]
        found = greedy(bind_family(ProductKernels(kernels, degree), X), make(y), tol=1e-7)
        assert highest - 1e-5 <= found.alignment <= highest + 1e-7
        assert highest <= found.bound + 1e-7


def test_the_bound_is_exact_where_all_products_are_looked_at():
    found = greedy(
        bind_family(ProductKernels([Linear(columns=[j]) for j in range(4)], 2), X), Target.of_classes(BINARY)
    )
    assert found.exact


@pytest.mark.parametrize("make_y", [(Target.of_classes, BINARY), (Target.of_values, VALUES)])
def test_a_width_for_each_feature_is_no_worse_than_one(make_y):
    make, y = make_y
    one = greedy(bind_family(GaussianFamily(0.3, 20.0), X), make(y), max_iter=3)
    many = greedy(bind_family(GaussianFamily(0.3, 20.0, per_feature=True, n_starts=0), X), make(y), max_iter=3)
    assert many.alignment >= one.alignment - 1e-3
    assert not many.exact
    widths = np.array([np.sqrt(0.5 / np.array(entry.kernel.scales)) for entry in many.bank.bound])
    K = [np.exp(-np.sum((X[:, None] - X[None]) ** 2 / (2 * w**2), axis=2)) for w in widths]
    L = naive.same_class(y) if make is Target.of_classes else np.outer(y, y)
    assert many.alignment == pytest.approx(of_weights(many.weights, L, K), abs=1e-8)


def test_the_derivatives_of_a_value_in_the_widths():
    family, M = GaussianFamily(0.3, 20.0, per_feature=True), naive.centered(np.outer(VALUES, VALUES))
    widths = np.array([0.7, 1.5, 3.0, 6.0])

    def value(w):
        return np.sum(M * np.exp(-np.sum((X[:, None] - X[None]) ** 2 / (2 * w**2), axis=2)))

    known, gradient = family.value_and_gradient(M, X, widths)
    steps = 1e-5 * np.eye(4)
    assert known == pytest.approx(value(widths), rel=1e-10)
    np.testing.assert_allclose(gradient, [(value(widths + s) - value(widths - s)) / 2e-5 for s in steps], rtol=1e-5)


@pytest.mark.parametrize("shrinkage", [0.0, 0.3, 7.0])
def test_the_penalty_is_the_squared_coefficient_of_variation(shrinkage):
    family = GaussianFamily(0.1, 50.0, per_feature=True, shrinkage=shrinkage)
    for widths in np.random.default_rng(0).uniform(0.1, 50.0, size=(5, 4)):
        value, gradient = family.penalty(widths)
        assert value == pytest.approx(shrinkage * (np.std(widths) / np.mean(widths)) ** 2, abs=1e-12)
        steps = 1e-5 * np.eye(4)
        differences = [(family.penalty(widths + s)[0] - family.penalty(widths - s)[0]) / 2e-5 for s in steps]
        np.testing.assert_allclose(gradient, differences, atol=1e-8 * (1 + shrinkage), rtol=1e-6)
    assert family.penalty(np.full(4, 3.0))[0] == pytest.approx(0.0, abs=1e-14)
    assert family.shrunk(0.5).penalty(np.array([1.0, 3.0]))[0] == pytest.approx(0.5 * 0.25)


def test_a_huge_shrinkage_gives_equal_widths():
    def widths(shrinkage):
        family = GaussianFamily(0.3, 20.0, per_feature=True, n_starts=1, shrinkage=shrinkage)
        found = greedy(bind_family(family, X), Target.of_classes(BINARY), max_iter=2)
        return np.array([np.sqrt(0.5 / np.array(entry.kernel.scales)) for entry in found.bank.bound])

    assert np.max(np.ptp(widths(1e6), axis=1) / widths(1e6).mean(axis=1)) < 0.02
    assert np.max(np.ptp(widths(0.0), axis=1) / widths(0.0).mean(axis=1)) > 0.5


def test_a_family_on_constant_features_has_alignment_zero():
    family = bind_family(GaussianFamily(0.1, 10.0), np.ones((6, 2)))
    for method in GREEDY_METHODS:
        for seed in range(5):
            found = greedy(family, Target.of_values(np.random.default_rng(seed).normal(size=6)), method=method)
            assert found.weights.sum() == pytest.approx(1.0)
            assert found.alignment == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("size", [1e-2, 1e-3, 1e-4, 1e-5])
def test_features_that_are_small_beside_the_widths(size):
    """The best kernel is the narrowest, which is all but constant."""
    for make, y, L in TARGETS.values():
        found = greedy(bind_family(GaussianFamily(0.1, 100.0), size * X), make(y), tol=1e-6)
        assert found.alignment == pytest.approx(naive.alignment(naive.gaussian_minus_one(size * X, 0.1), L), abs=1e-6)


# -- the rest ----------------------------------------------------------------------------------------------


def test_an_unknown_method_is_named():
    with pytest.raises(ValueError, match=r"method must be one of .*'frank_wolfe'.*, got 'fast'"):
        greedy(bound(), Target.of_classes(BINARY), method="fast")


@BY_METHOD
def test_few_steps_are_not_said_to_converge(method):
    found = greedy(
        bind_family(GaussianFamily(0.2, 30.0), X), Target.of_classes(BINARY), method=method, tol=1e-12, max_iter=1
    )
    assert not found.converged
    assert found.n_iter == 1
    assert not found.interrupted


@pytest.mark.parametrize("iteration", [1, 2, 3])
def test_an_interrupt_leaves_weights_with_their_alignment(iteration):
    def stop(step):
        if step.iteration == iteration:
            raise KeyboardInterrupt

    with listen(stop):
        found = greedy(bound(), Target.of_classes(BINARY), method="frank_wolfe", tol=1e-9)
    assert found.interrupted
    assert found.alignment == pytest.approx(of_weights(found.weights, naive.same_class(BINARY)), abs=1e-9)


def test_an_interrupt_that_nobody_listens_to_is_raised(monkeypatch):
    def stop(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(_Selection, "_report", stop)
    with pytest.raises(KeyboardInterrupt):
        greedy(bound(), Target.of_classes(BINARY))
