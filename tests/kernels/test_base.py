"""Each kernel against a naive loop, and what the base class promises."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from manykernels import MKLClassifier
from manykernels.kernels import Dirichlet, Gaussian, Kernel, KernelBank, Linear, Overlap, Polynomial, Precomputed
from tests.kernels import naive

# (kernel, the same by its definition)
PAIRS = [
    (Linear(), naive.linear()),
    (Overlap(3), naive.overlap(3)),
    (Polynomial(1), naive.polynomial(1)),
    (Polynomial(2), naive.polynomial(2)),
    (Polynomial(3, coef0=0.0), naive.polynomial(3, 0.0)),
    (Polynomial(5, coef0=2.5), naive.polynomial(5, 2.5)),
    (Polynomial(6, coef0=0.25), naive.polynomial(6, 0.25)),
    (Gaussian(0.125), naive.gaussian(0.125)),
    (Gaussian(3.0), naive.gaussian(3.0)),
    (Gaussian(64.0), naive.gaussian(64.0)),
    (Dirichlet(0.0), naive.dirichlet(0.0)),
    (Dirichlet(2.0), naive.dirichlet(2.0)),
]
every_kernel = pytest.mark.parametrize(("kernel", "function"), PAIRS, ids=[repr(kernel) for kernel, _ in PAIRS])
every_shape = pytest.mark.parametrize("n_columns", [1, 4])


def rows(n, n_columns, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, n_columns)) * (rng.random((n, n_columns)) < 0.7)


@every_kernel
@every_shape
def test_compute_is_the_definition(kernel, function, n_columns):
    X, Z = rows(9, n_columns), rows(5, n_columns, seed=1)
    expected = naive.gram(function, X, Z)
    np.testing.assert_allclose(kernel.compute(X, Z), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel.compute(sp.csr_matrix(X), sp.csr_matrix(Z)), expected, rtol=1e-12, atol=1e-12)


@every_kernel
@every_shape
def test_compute_leaves_its_input_alone(kernel, function, n_columns):
    """Kernels are applied in place, on a copy: X is the caller's."""
    X = rows(6, n_columns)
    before = X.copy()
    kernel.compute(X, X)
    kernel.diagonal(X)
    kernel.factor(X)
    np.testing.assert_array_equal(X, before)


@every_kernel
@every_shape
def test_diagonal(kernel, function, n_columns):
    X = rows(150, n_columns)
    for form in (X, sp.csr_matrix(X)):
        np.testing.assert_allclose(kernel.diagonal(form), [function(x, x) for x in X], rtol=1e-12)


@every_kernel
@every_shape
def test_factor(kernel, function, n_columns):
    """Where there is a factor F of few columns, F F' is the kernel."""
    X = rows(12, n_columns)
    for form in (X, sp.csr_matrix(X)):
        factor = kernel.factor(form)
        if factor is not None:
            assert factor.dtype == np.float64
            np.testing.assert_allclose(factor @ factor.T, naive.gram(function, X, X), rtol=1e-11, atol=1e-11)


def test_which_kernels_have_factors():
    """On one column, polynomials and waves have a small rank; Gaussians never."""
    one, many = rows(12, 1), rows(12, 3)
    assert Linear().factor(many).shape == (12, 3)
    assert Polynomial(3).factor(one).shape == (12, 4)
    assert Polynomial(3, coef0=0.0).factor(one).shape == (12, 1)
    assert Dirichlet(1.0).factor(one).shape == (12, 3)
    assert Polynomial(3).factor(many) is None
    assert Dirichlet(1.0).factor(many) is None
    assert Gaussian(1.0).factor(one) is None


@every_kernel
@every_shape
def test_whole_numbers_are_numbers(kernel, function, n_columns):
    """Integer data gives the same values as the same data in floating point."""
    rng = np.random.default_rng(4)
    X, Z = rng.integers(-3, 4, (5, n_columns)), rng.integers(-3, 4, (3, n_columns))
    np.testing.assert_allclose(kernel.compute(X, Z), naive.gram(function, X, Z), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), [function(x, x) for x in X], rtol=1e-12)


def test_overlap_is_the_share_of_categories_that_agree():
    codes = np.random.default_rng(5).integers(0, 3, (8, 2))
    one_hot = np.hstack([np.eye(3)[codes[:, j]] for j in range(2)])
    agreement = np.array([[np.mean(a == b) for b in codes] for a in codes])
    np.testing.assert_array_equal(Overlap(2).compute(one_hot, one_hot), agreement)
    assert Overlap(2).name("city") == "Overlap on city"


def test_distances_survive_an_offset():
    """Data a million units away from the origin (a year, a coordinate) keep their distances."""
    X = rows(20, 3) + 1e6
    exact = np.array([[np.sum((a - b) ** 2) for b in X] for a in X])
    np.testing.assert_allclose(Gaussian(1.0).compute(X, X), np.exp(-exact / 2), atol=1e-9)


def test_a_gaussian_never_exceeds_one():
    X = np.repeat(rows(10, 5, seed=3) * 1e4, 2, axis=0)
    K = Gaussian(0.1).compute(X, X)
    assert K.max() <= 1.0
    assert K.min() >= 0.0


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Gaussian(0.0), "width"),
        (lambda: Gaussian(-1.0), "width"),
        (lambda: Gaussian(np.nan), "width"),
        (lambda: Gaussian(np.inf), "width"),
        (lambda: Gaussian("wide"), "width"),
        (lambda: Gaussian(None), "width"),
        (lambda: Polynomial(0), "degree"),
        (lambda: Polynomial(1.5), "degree"),
        (lambda: Polynomial("cubic"), "degree"),
        (lambda: Polynomial(np.nan), "degree"),
        (lambda: Polynomial(2, coef0=-1), "coef0"),
        (lambda: Polynomial(2, coef0=np.nan), "coef0"),
        (lambda: Polynomial(2, coef0="one"), "coef0"),
        (lambda: Overlap(0), "count"),
        (lambda: Overlap(1.5), "count"),
        (lambda: Dirichlet(-1.0), "frequency"),
        (lambda: Dirichlet(np.inf), "frequency"),
        (lambda: Dirichlet("fast"), "frequency"),
    ],
)
def test_bad_parameters_are_named(make, named):
    with pytest.raises((ValueError, TypeError), match=f"^{named} must"):
        make()


def test_names_that_people_can_read():
    assert repr(Gaussian(0.125)) == "Gaussian(width=0.125)"
    assert repr(Linear(columns=[0, 1], group="blood")) == "Linear(columns=[0, 1], group='blood')"
    assert Gaussian(2.0).name("age") == "Gaussian(width=2) on age"
    assert Polynomial(3).name("all features") == "Polynomial(degree=3) on all features"
    assert Polynomial(3, coef0=0.5).title == "Polynomial(degree=3, coef0=0.5)"
    assert Linear().name("x0") == "Linear on x0"
    assert Dirichlet(1.5).title == "Dirichlet(frequency=1.5)"
    assert Precomputed(np.eye(2)).name("x0") == "Precomputed"
    assert Precomputed(np.eye(2), label="graph").name("x0") == "graph"
    assert repr(Precomputed(np.eye(3))) == "Precomputed(K=<array of shape (3, 3)>)"


@pytest.mark.parametrize("kernel", [Gaussian(2.0, columns=[1]), Precomputed(np.eye(3), label="graph")], ids=repr)
def test_kernels_copy_clone_and_pickle(kernel):
    """A kernel does not change, so that a copy is the kernel itself: no precomputed matrix is doubled."""
    assert copy.deepcopy(kernel) is kernel
    assert clone(MKLClassifier([kernel])).kernels[0] is kernel
    again = pickle.loads(pickle.dumps(kernel))
    assert repr(again) == repr(kernel)
    np.testing.assert_array_equal(
        again.compute(np.eye(2)[:, :1], np.eye(2)[:, :1]), kernel.compute(np.eye(2)[:, :1], np.eye(2)[:, :1])
    )


# -- precomputed ---------------------------------------------------------------------------------------------


def some_matrix(n=6):
    A = np.random.default_rng(2).standard_normal((n, n))
    return A @ A.T


def test_precomputed_looks_up_pairs():
    K = some_matrix()
    kernel = Precomputed(K)
    np.testing.assert_array_equal(
        kernel.compute(np.array([[4], [0]]), np.array([[1], [4], [4]])), K[[4, 0]][:, [1, 4, 4]]
    )
    np.testing.assert_array_equal(kernel.diagonal(np.array([[2.0], [5.0]])), K.diagonal()[[2, 5]])
    sparse = sp.csr_matrix(np.array([[0.0], [3.0]]))
    np.testing.assert_array_equal(kernel.compute(sparse, sparse), K[np.ix_([0, 3], [0, 3])])


def test_precomputed_keeps_a_copy_that_nobody_can_change():
    K = some_matrix()
    kernel, first = Precomputed(K), K[0, 0]
    K[0, 0] = 99.0
    assert kernel.K[0, 0] == first
    with pytest.raises(ValueError, match="read-only"):
        kernel.K[0, 0] = 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool])
def test_precomputed_takes_any_real_numbers(dtype):
    kernel = Precomputed(np.eye(3, dtype=dtype))
    assert kernel.compute(np.array([[0]]), np.array([[0], [1]])).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    "numbers",
    [[[6.0]], [[-1.0]], [[0.5]], [[1e30]], [[0.0], [7.0]]],
    ids=["high", "negative", "half", "huge", "one of two"],
)
def test_sample_numbers_outside_the_matrix_are_refused(numbers):
    with pytest.raises(ValueError, match="sample numbers from 0 to 5"):
        Precomputed(some_matrix()).compute(np.array(numbers), np.array([[0.0]]))


def test_precomputed_wants_one_column():
    with pytest.raises(ValueError, match=r"one column, got 2 columns.*columns="):
        Precomputed(some_matrix()).compute(np.zeros((1, 2)), np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("K", "problem"),
    [
        (np.ones((2, 3)), "square matrix, got shape"),
        (np.ones(4), "square matrix, got shape"),
        (np.ones((0, 0)), "square matrix, got shape"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "NaN or infinity"),
        (np.array([[1.0, np.inf], [np.inf, 1.0]]), "NaN or infinity"),
        (np.array([[1.0, 0.5], [0.2, 1.0]]), "symmetric.*differ by up to 0.3"),
    ],
    ids=["rectangular", "flat", "empty", "nan", "infinite", "skew"],
)
def test_matrices_that_are_no_kernel_are_refused(K, problem):
    """At once, naming the kernel by its label."""
    with pytest.raises(ValueError, match=f"^K .*{problem}"):
        Precomputed(K)
    with pytest.raises(ValueError, match=f"^K of 'graph' .*{problem}"):
        Precomputed(K, label="graph")


# -- a kernel of one's own -----------------------------------------------------------------------------------


class Closeness(Kernel):
    """How many entries of two rows are equal: ten lines are enough for a kernel."""

    def __init__(self, power=1):
        super().__init__()
        self.power = power

    def compute(self, X, Z):
        return (X[:, None, :] == Z[None, :, :]).mean(axis=2) ** self.power


def test_a_kernel_of_ones_own_from_fit_to_predict():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (90, 6)).astype(float)
    y = np.where(X[:, 0] == X[:, 1], "same", "other")
    X[:, 2] = (X[:, 0] == X[:, 1]) * 1.0
    model = MKLClassifier([Closeness(), Closeness(power=3), Gaussian(1.0)], norm=2, C=10.0).fit(X[:60], y[:60])
    assert model.kernel_names_[:2] == ["Closeness(power=1) on all features", "Closeness(power=3) on all features"]
    assert model.converged_
    assert model.score(X[60:], y[60:]) > 0.9
    raw = (X[60:, None] == X[None, :60]).mean(axis=2)
    distances = ((X[60:, None] - X[None, :60]) ** 2).sum(axis=2)
    stack = [raw, raw**3, np.exp(-distances / 2)]  # each has ones on its diagonal: normalization changes nothing
    np.testing.assert_allclose(model.kernel(X[60:], X[:60]), np.tensordot(model.weights_, stack, axes=1), atol=1e-12)


def test_defaults_of_the_base_class():
    """diagonal() goes by compute(), in blocks; there is no factor; the kernel is not trusted."""
    X = np.random.default_rng(1).integers(0, 2, (130, 3)).astype(float)
    kernel = Closeness(power=2)
    np.testing.assert_array_equal(kernel.diagonal(X), np.ones(130))
    assert kernel.factor(X) is None
    assert not kernel.trusted
    assert kernel.parameters() == {"power": 2}
    assert len(KernelBank([kernel])) == 1


def test_a_kernel_needs_compute():
    class Nothing(Kernel):
        pass

    with pytest.raises(TypeError, match="compute"):
        Nothing()
