"""What is not a kernel: what a quick look sees, what only the full check sees, and what neither may refuse."""

import re
import warnings

import numpy as np
import pytest
from numpy.linalg import eigvalsh

from manykernels import (
    AlignedKernel,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    TwoStageMKLClassifier,
    TwoStageMKLRegressor,
    UFOMKLClassifier,
    UFOMKLRegressor,
)
from manykernels.banks import Placement, bind
from manykernels.banks.definiteness import check_combination
from manykernels.compute.quick_look import look_at
from manykernels.kernels import Kernel, KernelBank, Precomputed
from tests.binding import bind_with

N = 300
RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((N, 3))
NUMBERS = np.arange(N)[:, None]
SQUARES = ((POINTS[:, None] - POINTS[None]) ** 2).sum(axis=2)
Y = np.where(POINTS[:, 0] + 0.5 * RNG.standard_normal(N) > 0, 1, -1)


def gaussian(width=1.0):
    return np.exp(-SQUARES / (2 * width**2))


def orthogonal(n=N, seed=1):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]


def with_eigenvalues(values, seed=1):
    Q = orthogonal(len(values), seed)
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


def one_negative(size):
    """Eigenvalues between 1 and 2 and one that is -size: no small block of the matrix is indefinite."""
    return with_eigenvalues(np.r_[-size, np.linspace(1.0, 2.0, N - 1)])


def hidden(size):
    """A Gaussian kernel of many small eigenvalues with one direction turned down by a little."""
    values, Q = np.linalg.eigh(gaussian(0.3))
    values[N // 2] = -size
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


SMALL_PAIR = np.eye(N)
SMALL_PAIR[3, 200] = SMALL_PAIR[200, 3] = 1.5
NEGATIVE = gaussian()
NEGATIVE[7, 7] = -0.1
INDEFINITE = {
    "a negative diagonal": NEGATIVE,
    "a 2 x 2 minor": SMALL_PAIR,
    "one eigenvalue": one_negative(0.5),
    "a distance": -np.sqrt(SQUARES) + 1.0,
    "a sigmoid": np.tanh(POINTS @ POINTS.T - 1.0),
    "a little everywhere": gaussian(2.0) - 0.002 * np.eye(N),
    "a lot": -gaussian(),
}
DEFINITE = {
    "Gaussian": gaussian(),
    "wide": gaussian(1e3),
    "low rank": POINTS @ POINTS.T,
    "rank one": np.outer(POINTS[:, 0], POINTS[:, 0]),
    "zero": np.zeros((N, N)),
    "ones": np.ones((N, N)),
    "blocks": np.kron(np.eye(3), np.ones((N // 3, N // 3))),
    "large": 1e200 * gaussian(),
    "small": 1e-200 * gaussian(),
    "uneven": gaussian() * np.outer(10.0 ** np.linspace(-6, 6, N), 10.0 ** np.linspace(-6, 6, N)),
    "identity": np.eye(N),
}


def bind_both(K, check, **options):
    bank = KernelBank.from_arrays([gaussian(5.0), K], names=["good", "bad"])
    return bind_with(bank, NUMBERS, check_kernels=check, **options)


@pytest.mark.parametrize("check", ["quick", "full"])
@pytest.mark.parametrize("case", INDEFINITE)
def test_both_refuse_what_is_no_kernel_with_the_same_words(case, check):
    least = eigvalsh(INDEFINITE[case])[0]
    level = np.abs(INDEFINITE[case].diagonal()).mean()
    words = (
        f"The kernel 'bad' is not positive semidefinite: its smallest eigenvalue on the training data is {least:.3g} "
        f"(mean diagonal {level:.3g})."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        bind_both(INDEFINITE[case], check)


def test_the_full_check_sees_what_a_quick_look_does_not():
    """One eigenvalue among many that are as small: what is documented."""
    K = hidden(5e-3)
    assert eigvalsh(K)[0] < -1e-6 * N
    bind_both(K, "quick")
    with pytest.raises(ValueError, match=r"'bad' is not positive semidefinite: .* is -0\.005 "):
        bind_both(K, "full")


@pytest.mark.parametrize("check", ["quick", "full"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", DEFINITE)
@pytest.mark.filterwarnings("ignore:1 of 2 kernels")
def test_rounding_is_never_refused(case, dtype, check):
    """Neither that of float32 nor eigenvalues of a low rank that are negative by rounding."""
    if dtype is np.float32 and case in ("large", "small"):
        pytest.skip("beyond the range of float32")
    K = DEFINITE[case].astype(dtype)
    bind_both(K, check)
    assert not look_at(np.ascontiguousarray(K), 1e-6).suspect


@pytest.mark.parametrize("place", [5, 870])
def test_a_matrix_larger_than_a_cache_is_looked_at_all_over(place):
    """Its leading part by Lanczos' method, everything else by its minors, its diagonal and K s."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((900, 4))
    K = points @ points.T
    assert not look_at(K, 1e-6).suspect
    u = rng.choice([-1.0, 1.0], 900) / 30.0
    assert look_at(K + np.eye(900) - 50.0 * np.outer(u, u), 1e-6).suspect
    K[place, (place + 20) % 900] = K[(place + 20) % 900, place] = 1e3
    assert look_at(K, 1e-6).suspect
    K[place, (place + 20) % 900] += 1.0
    assert look_at(K, 1e-6).skew == pytest.approx(1.0)


def test_the_bad_one_among_many_is_named():
    stack = [gaussian(1.0 + k) for k in range(20)]
    stack[13] = INDEFINITE["a little everywhere"]
    bank = KernelBank.from_arrays(stack)
    assert [kernel.look.suspect for kernel in bank] == [k == 13 for k in range(20)]
    with pytest.raises(ValueError, match=r"^The kernel 'kernel 13' is not positive semidefinite"):
        bind_with(bank, NUMBERS)


def test_noise_of_float32_that_is_not_symmetric_is_let_pass():
    K = gaussian().astype(np.float32)
    K += 1e-7 * np.random.default_rng(0).standard_normal(K.shape).astype(np.float32)
    for check in ("quick", "full"):
        bind_both(K, check)


@pytest.mark.parametrize("size", [1e-3, 1e-5])
def test_a_single_pair_that_differs_is_seen(size):
    K = gaussian()
    K[250, 13] += size
    with pytest.raises(ValueError, match=r"^K of 'bad' must be symmetric, but .* differ by up to " + f"{size:.3g}"):
        bind_both(K, "quick")


def test_a_skew_matrix_is_seen():
    skew = np.triu(RNG.standard_normal((N, N)), 1)
    with pytest.raises(ValueError, match="must be symmetric"):
        Precomputed(gaussian() + 1e-5 * (skew - skew.T))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (299, 3), (17, 298)])
def test_a_single_value_that_is_no_number_is_seen(bad, place):
    K = gaussian()
    K[place] = bad
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        KernelBank.from_arrays([K])


def test_values_too_large_to_be_summed_are_looked_at_closely():
    """Finite, though sums of them are not."""
    bank = KernelBank.from_arrays([1e308 * gaussian()])
    assert bank[0].look.finite


@pytest.mark.parametrize("layout", ["F", "strided", "matrix of a list"])
def test_any_layout_is_looked_at(layout):
    wide = np.zeros((2 * N, 2 * N))
    wide[::2, ::2] = INDEFINITE["one eigenvalue"]
    given = {
        "F": np.asfortranarray(INDEFINITE["one eigenvalue"]),
        "strided": wide[::2, ::2],
        "matrix of a list": INDEFINITE["one eigenvalue"].tolist(),
    }[layout]
    bank = KernelBank.from_arrays([given])
    with pytest.raises(ValueError, match="not positive semidefinite"):
        bind(bank, NUMBERS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_stack_is_not_copied(dtype):
    stack = np.stack([gaussian(), gaussian(2.0)]).astype(dtype)
    bank = KernelBank.from_arrays(stack)
    assert all(np.shares_memory(kernel.K, stack) for kernel in bank)
    assert stack.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        bank[0].K[0, 0] = 1.0


@pytest.mark.parametrize("order", ["as given", "shuffled", "some"])
@pytest.mark.parametrize("options", [{}, {"normalize": None}, {"normalize": "cosine"}, {"center": True}], ids=repr)
def test_triangles_are_those_of_the_matrix(order, options):
    """Against indexing, normalized by hand."""
    rows = {"as given": np.arange(N), "shuffled": RNG.permutation(N), "some": np.array([5, 3, 250, 4, 17])}[order]
    K = 3.0 * gaussian()
    bound = bind_with(KernelBank.from_arrays([K]), rows[:, None], storage="packed", precision="double", **options)
    own = K[np.ix_(rows, rows)]
    if options.get("normalize") == "cosine":
        own = own / 3.0
    if options.get("center"):
        H = np.eye(rows.size) - 1 / rows.size
        own = H @ own @ H
    if "normalize" not in options:
        own = own / own.diagonal().mean()
    np.testing.assert_allclose(bound.combine(np.ones(1)).array, own, rtol=0, atol=1e-12)


def test_matrices_with_the_same_mark_are_compared():
    """A mark is short: only equal matrices are duplicates."""
    one, other = Precomputed(gaussian(), label="one"), Precomputed(gaussian(2.0), label="other")
    other.look = other.look._replace(mark=one.look.mark)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bind(KernelBank([one, other]), NUMBERS)


# -- the learned combination ---------------------------------------------------------------------------------


class Similarity(Kernel):
    """A function that is not a kernel."""

    def __init__(self, size, columns=None, label=None):
        super().__init__(columns, label=label)
        self.size = size

    def compute(self, X, Z):
        return hidden(self.size)[np.ix_(np.asarray(X)[:, 0].astype(int), np.asarray(Z)[:, 0].astype(int))]


@pytest.mark.parametrize("kind", ["matrix", "function"])
def test_an_indefinite_combination_names_its_kernel(kind):
    """A quick look lets it pass; with all the weight it is caught."""
    bad = Precomputed(hidden(5e-3), label="bad") if kind == "matrix" else Similarity(5e-3, label="bad")
    bank = bind(
        KernelBank([Precomputed(gaussian(), label="good"), bad]), NUMBERS, placement=Placement(precision="double")
    )
    with pytest.raises(ValueError, match=r"The kernel '.*bad.*' is not positive semidefinite: .* is -0\.005 "):
        check_combination(bank, np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match=r"'.*bad"):
        check_combination(bank, np.array([1e-9, 1.0]))


def test_a_combination_that_is_definite_is_harmless():
    bank = bind(
        KernelBank([Precomputed(np.eye(N)), Precomputed(hidden(5e-3))]),
        NUMBERS,
        placement=Placement(precision="double"),
    )
    check_combination(bank, np.array([0.5, 0.5]))
    check_combination(bank, np.array([1.0, 0.0]))


@pytest.mark.parametrize("options", [{}, {"center": True}, {"normalize": "cosine"}, {"storage": "rows"}], ids=repr)
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("case", ["wide", "low rank", "ones", "uneven"])
@pytest.mark.filterwarnings("ignore:1 of 2 kernels")
def test_combinations_of_kernels_are_never_refused(case, precision, options):
    bound = bind_both(DEFINITE[case].astype(np.float32), "quick", precision=precision, **options)
    for weights in ([0.5, 0.5], [0.0, 1.0], [1e-12, 1.0]):
        check_combination(bound, np.array(weights))


ESTIMATORS = {
    "classifier": MKLClassifier,
    "regressor": MKLRegressor,
    "classifier, CV": lambda kernels, **own: MKLClassifierCV(kernels, Cs=[1.0], norms=[1.0], cv=2, **own),
    "regressor, CV": lambda kernels, **own: MKLRegressorCV(kernels, Cs=[1.0], norms=[1.0], cv=2, **own),
    "UFO classifier": UFOMKLClassifier,
    "UFO regressor": UFOMKLRegressor,
    "two-stage classifier": TwoStageMKLClassifier,
    "two-stage regressor": TwoStageMKLRegressor,
    "aligned": AlignedKernel,
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_checks_in_full_when_asked_to(name):
    bank = KernelBank.from_arrays([hidden(5e-3)], names=["bad"])
    with pytest.raises(ValueError, match="'bad' is not positive semidefinite"):
        ESTIMATORS[name](bank, check_kernels="full").fit(NUMBERS, Y)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_estimator_checks_what_it_learned(name):
    """Whatever the check, a model with an indefinite kernel alone is not returned."""
    bank = KernelBank.from_arrays([hidden(5e-3)], names=["bad"])
    model = ESTIMATORS[name](bank)
    with pytest.raises(ValueError, match="'bad' is not positive semidefinite"):
        model.fit(NUMBERS, Y)
    assert not hasattr(model, "weights_")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_check_kernels_must_be_one_of_two(name):
    with pytest.raises(ValueError, match=r"check_kernels must be one of 'quick', 'full', got 'thorough'\."):
        ESTIMATORS[name](KernelBank.from_arrays([gaussian()]), check_kernels="thorough").fit(NUMBERS, Y)


def test_bind_takes_one_of_two():
    with pytest.raises(ValueError, match="check_kernels must be one of 'quick', 'full', got 'no'"):
        bind_both(gaussian(), "no")
