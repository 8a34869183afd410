"""Banks: how they are made, what they refuse, what they warn of, and how memory decides the storage."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from manykernels import MKLClassifier
from manykernels.banks import Placement, Recipe, bind
from manykernels.banks.factor_storage import FactorStorage
from manykernels.compute.triangles import triangle_size
from manykernels.kernels import (
    Dirichlet,
    Gaussian,
    Kernel,
    KernelBank,
    Linear,
    Polynomial,
    Precomputed,
    standard_bank,
)
from tests.binding import bind_with

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 3))
NUMBERS = np.arange(30)[:, None]


class Raw(Kernel):
    """A kernel from any function of two arrays, right or wrong."""

    def __init__(self, function, label=None):
        super().__init__(label=label)
        self.function = function

    def compute(self, X, Z):
        return self.function(X, Z)


def gram(width=1.0):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * width**2))


# -- making ------------------------------------------------------------------------------------------------


def test_a_bank_is_a_sequence():
    kernels = [Linear(), Gaussian(1.0), Gaussian(2.0)]
    bank = KernelBank(iter(kernels))
    assert len(bank) == 3
    assert list(bank) == kernels
    assert bank[1] is kernels[1]
    assert repr(bank) == "KernelBank of 3 kernels"


def test_banks_are_flattened():
    bank = KernelBank([KernelBank([Linear(), Gaussian(1.0)]), Gaussian(2.0)])
    assert [type(kernel) for kernel in bank] == [Linear, Gaussian, Gaussian]


@pytest.mark.parametrize(
    ("kernels", "error"),
    [
        ([], ValueError),
        (Linear(), TypeError),
        ("standard", TypeError),
        (3, TypeError),
        ([Linear(), 3], TypeError),
        ([Linear], TypeError),
    ],
    ids=["empty", "one kernel", "text", "number", "not a kernel", "a class"],
)
def test_what_is_no_list_of_kernels_is_refused(kernels, error):
    with pytest.raises(error, match=r"^kernels (must|is empty)"):
        KernelBank(kernels)


@pytest.mark.parametrize("n_features", [1, 2, 60])
def test_standard_bank_counts(n_features):
    """13 kernels on all features, and 13 on each; a single feature is all features."""
    expected = 13 * (n_features + 1) if n_features > 1 else 13
    assert len(standard_bank(np.zeros((5, n_features)))) == expected
    assert len(standard_bank(sp.csr_matrix((5, n_features)))) == expected


def test_standard_bank_of_a_table_has_its_names():
    table = pd.DataFrame(X, columns=["age", "income", "height"])
    names = bind(standard_bank(table), table).names
    assert len(names) == 52
    assert names[0] == "Gaussian(width=0.125) on all features"
    assert names[-1] == "Polynomial(degree=3) on height"
    assert len(set(names)) == len(names)


def test_standard_bank_options():
    bank = standard_bank(X, widths=[1, 2], degrees=(2,), per_feature=False)
    assert [kernel.title for kernel in bank] == ["Gaussian(width=1)", "Gaussian(width=2)", "Polynomial(degree=2)"]


# -- precomputed stacks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_list", [False, True])
def test_from_arrays(as_list):
    stack = np.stack([gram(), gram(3.0)])
    bank = KernelBank.from_arrays(list(stack) if as_list else stack)
    bound = bind(bank, NUMBERS, Recipe(normalize=None), Placement(precision="double"))
    assert bound.names == bound.groups == ["kernel 0", "kernel 1"]
    np.testing.assert_allclose(bound.combine(np.array([0.3, 0.7])).array, 0.3 * stack[0] + 0.7 * stack[1], atol=1e-15)
    some = bind(bank, NUMBERS[[4, 9, 2]], Recipe(normalize=None), Placement(precision="double"))
    np.testing.assert_allclose(some.combine(np.array([1.0, 0.0])).array, stack[0][np.ix_([4, 9, 2], [4, 9, 2])])


@pytest.mark.parametrize("numbers", [np.arange(4, 20), np.arange(1, 25, 3), np.random.default_rng(0).permutation(25)])
def test_matrices_are_packed_for_samples_in_any_order(numbers):
    K, n = np.cov(np.random.default_rng(1).normal(size=(25, 40))), numbers.size
    out = np.empty(n - 2 + n - 3, np.float32)
    Precomputed(K).pack_numbers(numbers, 2, 4, 0.5, out)
    expected = 0.5 * K[np.ix_(numbers, numbers)]
    np.testing.assert_allclose(out, np.r_[expected[2, 2:], expected[3, 3:]], rtol=1e-6)


def test_from_arrays_with_names_and_groups():
    bank = KernelBank.from_arrays([gram(), gram(3.0)], names=["genes", "image"], groups=["lab", "scan"])
    bound = bind(bank, NUMBERS)
    assert bound.names == ["genes", "image"]
    assert bound.groups == ["lab", "scan"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"stack": [np.eye(2), np.eye(3)]}, "stack must hold kernels of one shape"),
        ({"stack": [np.eye(2)], "names": ["a", "b"]}, "names has 2 entries, but stack has 1 kernels"),
        ({"stack": [np.eye(2)], "groups": []}, "groups has 0 entries, but stack has 1 kernels"),
        ({"stack": np.eye(3)}, r"'kernel 0' must be a square matrix, got shape \(3,\)"),
        ({"stack": []}, "kernels is empty: at least one kernel is needed"),
        ({"stack": [np.array([[1.0, 2.0], [0.0, 1.0]])], "names": ["skewed"]}, "'skewed' must be symmetric"),
    ],
    ids=["shapes", "names", "groups", "one matrix", "empty", "skew"],
)
def test_bad_stacks_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        KernelBank.from_arrays(**arguments)


def test_sample_numbers_beside_features():
    """The column of numbers is one among others, in a table and in an array."""
    both = np.column_stack([X, NUMBERS])
    table = pd.DataFrame(both, columns=["a", "b", "c", "sample"])
    by_position = [Precomputed(gram(), columns=[3], label="graph"), Linear(columns=[0, 1, 2])]
    by_name = [Precomputed(gram(), columns=["sample"], label="graph"), Linear(columns=["a", "b", "c"])]
    expected = 0.4 * gram() + 0.6 * X @ X.T
    for kernels, data in ((by_position, both), (by_name, table), (by_position, sp.csr_matrix(both))):
        bank = bind(KernelBank(kernels), data, Recipe(normalize=None), Placement(precision="double"))
        assert bank.names[0] == "graph"
        np.testing.assert_allclose(bank.combine(np.array([0.4, 0.6])).array, expected, atol=1e-12)


# -- what is not a kernel -------------------------------------------------------------------------------------

HALF = np.arange(30) % 2 == 0
WRONG = {
    "indefinite": (lambda A, B: -np.abs(A[:, :1] - B[:, :1].T) + 1.0, r"not positive semidefinite.*-\d"),
    "negative diagonal": (lambda A, B: -(A @ B.T), "not positive semidefinite"),
    "skew": (lambda A, B: A @ B.T + 0.1 * (A[:, :1] - B[:, :1].T), r"not symmetric.*differ by 0\.\d"),
    "nan": (lambda A, B: np.where(A[:, :1] > 1.5, np.nan, 1.0) * (A @ B.T), "NaN or infinite"),
    "infinite": (lambda A, B: np.full((len(A), len(B)), np.inf), "NaN or infinite"),
    "shape": (lambda A, B: np.ones((len(A), 2)), r"array of shape \(30, 30\), got \(30, 2\)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_functions_that_are_no_kernels_are_refused(case):
    """The sentence names the kernel and says by how much."""
    function, words = WRONG[case]
    with pytest.raises(ValueError, match=f"'Raw.* on culprit'.*{words}"):
        bind(KernelBank([Linear(), Raw(function, label="culprit")]), X)


def test_an_indefinite_matrix_is_refused_by_name():
    K = gram() - 0.5 * np.ones((30, 30))
    least = np.linalg.eigvalsh(K)[0]
    bank = KernelBank.from_arrays([gram(), K], names=["good", "bad"])
    with pytest.raises(ValueError, match=f"'bad' is not positive semidefinite.*{re.escape(f'{least:.3g}')}"):
        bind(bank, NUMBERS)


def test_rounding_is_no_reason_to_refuse():
    """Float32 noise, and eigenvalues that are negative by rounding."""
    wide = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 2e6).astype(np.float32)
    bind(KernelBank.from_arrays([wide, np.outer(X[:, 0], X[:, 0])]), NUMBERS)


def test_a_matrix_that_is_definite_on_the_training_samples_is_fine():
    """Only the training samples count: the kernel of the others is not looked at."""
    K = np.eye(30)
    K[28, 29] = K[29, 28] = -5.0
    bind(KernelBank.from_arrays([K]), NUMBERS[:28])
    with pytest.raises(ValueError, match="not positive semidefinite"):
        bind(KernelBank.from_arrays([K]), NUMBERS)


def test_dirichlet_on_several_columns_is_checked():
    """It is a kernel on one column only."""
    grid = np.array([[np.cos(t), np.sin(t)] for t in np.linspace(0, 2 * np.pi, 12, endpoint=False)])
    bind(KernelBank([Dirichlet(3.0)]), grid[:, :1])
    with pytest.raises(ValueError, match=r"Dirichlet.*not positive semidefinite"):
        bind(KernelBank([Dirichlet(3.0)]), grid)


def test_a_kernel_that_overflows_says_what_to_do():
    with pytest.raises(ValueError, match=r"'Polynomial\(degree=3\) on all features' overflows.*StandardScaler"):
        bind(KernelBank([Polynomial(3)]), X * 1e120)


@pytest.mark.parametrize("scale", [1e13, 1e-13], ids=["above", "below"])
@pytest.mark.parametrize("storage", ["packed", "recomputed"])
def test_values_outside_the_range_of_float32(storage, scale):
    """Without normalization, a cube of large features leaves float32's range while the double is fine."""
    kernels = [Polynomial(3, coef0=0.0), Gaussian(1.0)]
    bank = bind(KernelBank(kernels), X * scale, Recipe(normalize=None), Placement(storage=storage))
    expected = ((X * scale) @ (X * scale).T) ** 3
    assert np.abs(bank.combine(np.array([1.0, 0.0])).array - expected).max() <= 1e-6 * np.abs(expected).max()


# -- zero kernels and duplicates ---------------------------------------------------------------------------


def with_constants():
    """Features, a column of zeros and a column of ones."""
    return np.column_stack([X, np.zeros(30), np.ones(30)])


@pytest.mark.parametrize("normalize", ["mean_diag", "trace", "cosine", None])
@pytest.mark.parametrize("storage", ["auto", "packed", "recomputed"])
def test_zero_kernels_warn_and_stay_zero(normalize, storage):
    bank = KernelBank([Linear(columns=[0]), Linear(columns=[3]), Gaussian(1.0)])
    with pytest.warns(UserWarning, match="1 of 3 kernels are zero on the training data and get weight 0: Linear on x3"):
        bound = bind(bank, with_constants(), Recipe(normalize=normalize), Placement(storage=storage))
    np.testing.assert_array_equal(bound.combine(np.array([0.0, 1.0, 0.0])).array, np.zeros((30, 30)))
    assert bound.quad_forms(X[:, 0])[1] == 0.0
    assert np.all(bound.diagonal()[1] == 0.0)


@pytest.mark.parametrize(
    "kernel", [Linear(columns=[4]), Gaussian(1.0, columns=[4]), Polynomial(2, columns=[3])], ids=repr
)
def test_constant_kernels_are_zero_once_centered(kernel):
    with pytest.warns(UserWarning, match="1 of 2 kernels are zero"):
        bound = bind(KernelBank([kernel, Gaussian(1.0, columns=[0])]), with_constants(), Recipe(center=True))
    np.testing.assert_array_equal(bound.combine(np.array([1.0, 0.0])).array, np.zeros((30, 30)))


def test_a_zero_kernel_gets_weight_zero():
    y = np.sign(X[:, 0])
    with pytest.warns(UserWarning, match="zero on the training data"):
        model = MKLClassifier([Linear(columns=[0]), Linear(columns=[3]), Gaussian(1.0)], norm=2).fit(
            with_constants(), y
        )
    assert model.weights_[1] == 0.0
    assert 1 not in model.active_


def test_nothing_but_zero_kernels_is_an_error():
    with pytest.raises(ValueError, match="Every kernel is zero"):
        bind(KernelBank([Linear(columns=[3]), Polynomial(1, coef0=0.0, columns=[3])]), with_constants())


DUPLICATES = [
    [Gaussian(1.0), Linear(), Gaussian(1.0)],
    [Gaussian(1.0, columns=[0, 1]), Gaussian(1.0, columns=slice(0, 2))],
    [Gaussian(1.0), Gaussian(1.0, group="again", label="other words")],
    [Polynomial(2, columns=-1), Polynomial(2, columns=[2])],
]


@pytest.mark.parametrize("kernels", DUPLICATES, ids=["same", "same columns", "other label", "other sign"])
def test_duplicates_warn(kernels):
    with pytest.warns(UserWarning, match=rf"Kernels 0 and {len(kernels) - 1} are the same"):
        bind(KernelBank(kernels), X)


def test_duplicate_matrices_warn():
    """Two equal precomputed matrices are one kernel twice, whoever holds the memory."""
    K = gram()
    with pytest.warns(UserWarning, match="Kernels 0 and 1 are the same"):
        bind(KernelBank.from_arrays([K, K.copy()]), NUMBERS)


def test_different_kernels_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bind(KernelBank([Gaussian(1.0), Gaussian(1.0 + 1e-12), Linear(), Polynomial(2), Polynomial(2, coef0=0.0)]), X)
        bind(KernelBank.from_arrays([gram(), gram(2.0)]), NUMBERS)


# -- memory ------------------------------------------------------------------------------------------------

FIVE = [Gaussian(0.5), Gaussian(1.0), Gaussian(2.0, columns=[1]), Polynomial(2), Gaussian(4.0)]
EACH = 4 * triangle_size(30)  # bytes of one packed kernel


@pytest.mark.parametrize("held", range(6))
def test_the_budget_decides_what_is_held(held):
    bank = bind(KernelBank(FIVE), X, placement=Placement(budget=held * EACH + 10))
    counts = {storage.describe().split(" ", 1)[1].split(" ")[0]: len(storage.indices) for storage in bank.storages}
    expected = {"packed": held, "recomputed": 5 - held}
    assert counts == {kind: count for kind, count in expected.items() if count}


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("held", range(5))
def test_values_do_not_depend_on_the_budget(held, center):
    """Held or computed anew: the numbers are rounded alike."""
    rich = bind(KernelBank(FIVE), X, Recipe(center=center))
    poor = bind(KernelBank(FIVE), X, Recipe(center=center), Placement(budget=held * EACH + 10))
    beta, weights = RNG.standard_normal(30), np.array([0.2, 0.0, 0.3, 0.1, 0.4])
    np.testing.assert_allclose(poor.combine(weights).array, rich.combine(weights).array, rtol=2e-7, atol=2e-7)
    np.testing.assert_allclose(poor.quad_forms(beta), rich.quad_forms(beta), rtol=1e-6)
    np.testing.assert_allclose(poor.matvecs(beta), rich.matvecs(beta), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("normalize", ["mean_diag", "trace", "cosine", None])
@pytest.mark.parametrize("center", [False, True])
def test_gaussians_of_one_column_become_factors_where_triangles_do_not_fit(center, normalize):
    """Their error is stated, no entry is further off than the rounding of float32, and everything works on them."""
    rng = np.random.default_rng(2)
    Z = np.column_stack([rng.standard_normal(300), rng.integers(0, 9, 300), rng.standard_cauchy(300)])
    kernels = [Gaussian(width, columns=[j]) for j in range(3) for width in (0.3, 1.0, 8.0)] + [Gaussian(1.0)]
    options = {"center": center, "normalize": normalize}
    exact = bind_with(KernelBank(kernels), Z, precision="double", **options)
    bank = bind_with(KernelBank(kernels), Z, memory_budget=3 * 4 * triangle_size(300), **options)
    held = {type(storage).__name__: storage.indices.size for storage in bank.storages}
    assert held["FactorStorage"] >= 5
    assert held["PackedStorage"] >= 1
    assert not any(isinstance(storage, FactorStorage) for storage in exact.storages)
    beta, weights = rng.standard_normal(300), rng.random(10)
    for k in range(10):
        one = np.eye(10)[k]
        error = np.abs(bank.combine(one).array - exact.combine(one).array).max()
        assert error <= 2.0**-22 * exact.normalization.largest[k] * (4 if center else 1)
    np.testing.assert_allclose(bank.combine(weights).array, exact.combine(weights).array, atol=1e-6)
    scale = np.abs(beta).sum() ** 2 * exact.normalization.largest.max()
    np.testing.assert_allclose(bank.quad_forms(beta), exact.quad_forms(beta), atol=1e-7 * scale)
    np.testing.assert_allclose(bank.matvecs(beta, [3, 0]), exact.matvecs(beta, [3, 0]), atol=1e-7 * scale)
    M = np.outer(beta, beta) + np.eye(300)
    np.testing.assert_allclose(bank.inner_products(M), exact.inner_products(M), atol=1e-7 * scale)
    np.testing.assert_allclose(bank.tail(40).combine(weights).array, exact.tail(40).combine(weights).array, atol=1e-6)
    few = np.array([8, 2])
    np.testing.assert_allclose(bank.subset(few).quad_forms(beta), exact.subset(few).quad_forms(beta), atol=1e-7 * scale)


def test_factors_come_first_and_count():
    """A kernel of small rank is held as its factor: 30 x 1 numbers in double precision."""
    bank = bind(
        KernelBank([Gaussian(1.0), Linear(columns=[0]), Polynomial(2, columns=[1])]),
        X,
        placement=Placement(budget=10_000),
    )
    assert bank.describe_storage() == "2 as factors (960 B), 1 packed (1.86 kB)"
    bank = bind(KernelBank([Gaussian(1.0), Linear(columns=[0])]), X, placement=Placement(budget=100))
    assert bank.describe_storage() == "2 recomputed in each pass"


def test_double_precision_takes_twice_the_memory():
    bank = bind(KernelBank(FIVE), X, placement=Placement(budget=4 * EACH, precision="double"))
    assert bank.describe_storage() == "2 packed (7.44 kB), 3 recomputed in each pass"


def test_a_model_does_not_depend_on_the_budget():
    y = np.sign(X[:, 0] * X[:, 1])
    models = [MKLClassifier(FIVE, norm=2, memory_budget=budget).fit(X, y) for budget in ("1GB", 27_000)]
    np.testing.assert_allclose(models[1].weights_, models[0].weights_, rtol=1e-5)
    np.testing.assert_allclose(models[1].decision_function(X), models[0].decision_function(X), atol=1e-4)


def test_a_fit_that_cannot_be_held_says_so_in_numbers():
    with pytest.raises((MemoryError, ValueError), match=r"memory_budget is 2 kB.*30 samples.*need \d+(\.\d+)? kB"):
        MKLClassifier(FIVE, memory_budget="2kB").fit(X, np.sign(X[:, 0]))


@pytest.mark.parametrize("settings", [{}, {"approximation": "nystroem"}, {"approximation": "fourier"}], ids=str)
def test_a_row_that_lacks_a_part_of_a_view_is_named(settings):
    gaps = np.random.default_rng(0).normal(size=(20, 3))
    gaps[7, 1] = np.nan
    with pytest.raises(ValueError, match="row 7 lacks 1 of the 2 columns that Gaussian"):
        bind_with([Gaussian(1.0, columns=[0, 1])], gaps, **settings)
