"""What every bank keeps: each storage gives the numbers of a naive dense computation, up to rounding."""

import sys
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from manykernels.compute.gpu import has_device
from manykernels.kernels import Dirichlet, Gaussian, Kernel, KernelBank, Linear, Polynomial, Precomputed
from tests.kernels import naive

STORAGES = ["auto", "packed", "factors", "recomputed"]
# The same on a device: torch's own CPU device, so that this runs anywhere.
STORAGES += [
    pytest.param(f"torch:cpu {name}", marks=pytest.mark.skipif(not has_device("torch:cpu"), reason="needs torch"))
    for name in STORAGES
]
NORMALIZATIONS = ["mean_diag", "trace", "cosine", None]
TOLERANCE = {"single": 1e-6, "double": 1e-12}

every_storage = pytest.mark.parametrize("storage", STORAGES)
every_precision = pytest.mark.parametrize("precision", TOLERANCE)
centered_or_not = pytest.mark.parametrize("center", [False, True], ids=["raw", "centered"])


class Laplacian(Kernel):
    """A kernel of a user's own; it can only do what :class:`Kernel` does by itself."""

    def __init__(self, scale, columns=None):
        super().__init__(columns)
        self.scale = scale

    def compute(self, X, Z):
        X, Z = (A.toarray() if sp.issparse(A) else A for A in (X, Z))
        return np.exp(-cdist(X, Z, "cityblock") / self.scale)


N_TRAIN, N_TEST, N_FEATURES = 17, 6, 4
NUMBERS = N_FEATURES  # the column of sample numbers, beside the features
FEATURES = list(range(N_FEATURES))


def samples(n, seed=0):
    """Features, some of them zero, and a last column that counts the samples."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, N_FEATURES)) * (rng.random((n, N_FEATURES)) < 0.8)
    return np.column_stack([X, np.arange(n)])


def own_matrix(n=N_TRAIN + N_TEST):
    A = np.random.default_rng(5).standard_normal((n, 5))
    return A @ A.T


# Kernels on the same columns do not stand side by side, so that groups and places in the bank differ.
BANK = [
    (Gaussian(0.7, columns=FEATURES), naive.gaussian(0.7)),
    (Linear(columns=[0]), naive.linear()),
    (Polynomial(2, columns=[1]), naive.polynomial(2)),
    (Precomputed(own_matrix(), columns=[NUMBERS]), naive.lookup(own_matrix())),
    (Polynomial(3, coef0=0.5, columns=[0]), naive.polynomial(3, 0.5)),
    (Gaussian(2.0, columns=[2]), naive.gaussian(2.0)),
    (Linear(columns=FEATURES), naive.linear()),
    (Dirichlet(1.3, columns=[1]), naive.dirichlet(1.3)),
    (Laplacian(1.5, columns=FEATURES), naive.laplacian(1.5)),
    (Gaussian(2.5, columns=FEATURES), naive.gaussian(2.5)),
    (Polynomial(2, coef0=0.0, columns=FEATURES), naive.polynomial(2, 0.0)),
]
M = len(BANK)
WEIGHTS = np.random.default_rng(8).uniform(0.1, 1.0, M) * (np.arange(M) % 3 != 2)  # a third is zero


def kernels():
    return [kernel for kernel, _ in BANK]


def train_and_test():
    X = samples(N_TRAIN + N_TEST)
    return X[:N_TRAIN], X[N_TRAIN:]


@cache
def naive_stack(normalize, center, weighted=False, of_test=False):
    """(n_kernels, rows, n_train): the naive normalized kernels of the training or the test rows."""
    X, Z = train_and_test()
    weight = sample_weight() if weighted else np.ones(N_TRAIN)
    rows = Z if of_test else X
    return np.array(
        [naive.normalized(f, rows[:, k.columns], X[:, k.columns], normalize, center, weight) for k, f in BANK]
    )


def sample_weight():
    return np.random.default_rng(9).uniform(0.2, 3.0, N_TRAIN)


def bind(storage, normalize, center, precision, X=None, **settings):
    X = train_and_test()[0] if X is None else X
    return KernelBank(kernels()).bind(
        X, normalize=normalize, center=center, precision=precision, **where(storage), **settings
    )


def where(storage):
    """Settings for a storage, on a device if it is named before the storage."""
    device, _, name = storage.rpartition(" ")
    return {"device": device or "cpu", "storage": name}


def repeatable(storage, precision):
    """How exactly a number comes out again: on a device, sums of float32 depend on what is summed beside them."""
    return precision if " " in storage else "double"


def assert_close(found, expected, precision, size=None):
    """Equal up to the rounding of the precision, kernel by kernel, relative to the size of its numbers."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == np.float64
    for k in range(len(expected)):
        error = np.abs(found[k] - expected[k]).max()
        scale = np.abs(expected[k] if size is None else size[k]).max()
        assert error <= TOLERANCE[precision] * scale, f"kernel {k}: off by {error:.2e} beside {scale:.2e}"


SUBSETS = (None, [M - 1, 0, 3], [4], np.arange(M)[::-1])


def normalized_banks(storage, center, precision):
    """(bank, naive stack) for each normalization."""
    for normalize in NORMALIZATIONS:
        yield bind(storage, normalize, center, precision), naive_stack(normalize, center)


def every_setting(test):
    """Run a test for each storage, raw and centered, in each precision."""
    return every_storage(centered_or_not(every_precision(test)))


def some_beta(n_tasks=3):
    """Dual coefficients; most of the last task's are zero."""
    beta = np.random.default_rng(1).standard_normal((n_tasks, N_TRAIN))
    beta[-1, 3:] = 0.0
    return beta


@every_setting
def test_combine(storage, center, precision):
    for bank, stack in normalized_banks(storage, center, precision):
        for weights in (WEIGHTS, np.ones(M), *np.eye(M), np.zeros(M)):
            K, size = bank.combine(weights), np.tensordot(weights, np.abs(stack), axes=1)
            assert_close([K], [np.tensordot(weights, stack, axes=1)], precision, [size])
            assert np.array_equal(K, K.T)


@every_setting
def test_quad_forms(storage, center, precision):
    """Of one vector, of several, and of zero."""
    beta = some_beta()
    for bank, stack in normalized_banks(storage, center, precision):
        found = bank.quad_forms(beta)
        size = np.einsum("ti,kij,tj->kt", np.abs(beta), np.abs(stack), np.abs(beta))
        assert_close(found.T, np.einsum("ti,kij,tj->kt", beta, stack, beta), precision, size)
        assert_close(bank.quad_forms(beta[1])[:, None], found[1][:, None], repeatable(storage, precision), size)
        assert np.all(bank.quad_forms(np.zeros(N_TRAIN)) == 0.0)
        for subset in SUBSETS[1:]:
            again = bank.quad_forms(beta, subset).T
            assert_close(again, found[:, subset].T, repeatable(storage, precision), size[subset])
            assert bank.quad_forms(beta[0], subset).shape == (len(subset),)


@every_setting
def test_matvecs(storage, center, precision):
    for bank, stack in normalized_banks(storage, center, precision):
        for beta in some_beta():
            for subset in SUBSETS:
                chosen = stack if subset is None else stack[subset]
                assert_close(bank.matvecs(beta, subset), chosen @ beta, precision, np.abs(chosen) @ np.abs(beta))
                on_support = bank.matvecs(beta, subset, on_support=True)
                assert_close(on_support, (chosen @ beta) * (beta != 0), precision, np.abs(chosen) @ np.abs(beta))


@every_setting
def test_inner_products(storage, center, precision):
    """<K_k, M> for a full symmetric M, for one of rank one, and for one that vanishes on most samples."""
    beta = some_beta()
    for bank, stack in normalized_banks(storage, center, precision):
        for M_ in (beta.T @ beta, np.outer(beta[1], beta[1]), np.outer(beta[2], beta[2]), np.zeros((N_TRAIN, N_TRAIN))):
            for subset in SUBSETS:
                chosen = stack if subset is None else stack[subset]
                expected, size = np.tensordot(chosen, M_), np.tensordot(np.abs(chosen), np.abs(M_))
                assert_close(bank.inner_products(M_, subset)[:, None], expected[:, None], precision, size[:, None])


@every_setting
def test_a_subset_is_a_bank(storage, center, precision):
    """A few kernels, in another order, as a bank of their own."""
    chosen = np.array([M - 1, 0, 4, 3, 1])
    weights, beta = np.array([0.3, 0.0, 0.5, 0.1, 0.1]), some_beta(1)[0]
    for bank, stack in normalized_banks(storage, center, precision):
        part, few = bank.subset(chosen), stack[chosen]
        assert part.names == [bank.names[k] for k in chosen]
        assert part.n_kernels == len(chosen)
        size = np.tensordot(weights, np.abs(few), axes=1)
        assert_close([part.combine(weights)], [np.tensordot(weights, few, axes=1)], precision, [size])
        assert_close(part.matvecs(beta), few @ beta, precision, np.abs(few) @ np.abs(beta))
        forms = np.abs(beta) @ np.abs(few) @ np.abs(beta)
        assert_close(part.quad_forms(beta)[:, None], (beta @ few @ beta)[:, None], precision, forms[:, None])
        assert_close(part.diagonal(), np.einsum("kii->ki", few), precision, few)


@every_setting
def test_rows(storage, center, precision):
    indices = [0, N_TRAIN - 1, 5, 5]
    for bank, stack in normalized_banks(storage, center, precision):
        for subset in SUBSETS:
            chosen = stack if subset is None else stack[subset]
            assert_close(bank.rows(indices, subset), chosen[:, indices], precision, chosen)


@every_setting
def test_diagonal(storage, center, precision):
    for bank, stack in normalized_banks(storage, center, precision):
        diagonals = np.einsum("kii->ki", stack)
        assert_close(bank.diagonal(), diagonals, precision, stack)
        assert_close(bank.diagonal([3, 1]), diagonals[[3, 1]], precision, stack[[3, 1]])


@centered_or_not
@every_precision
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_cross(normalize, center, precision):
    """On the training samples it is the training kernel; on others, the factors learned in training apply."""
    X, Z = train_and_test()
    bank = bind("auto", normalize, center, precision)
    for rows, of_test in ((X, False), (Z, True)):
        stack = naive_stack(normalize, center, of_test=of_test)
        for weights in (WEIGHTS, *np.eye(M)):
            size = np.tensordot(weights, np.abs(stack), axes=1)
            assert_close([bank.cross(rows, weights)], [np.tensordot(weights, stack, axes=1)], precision, [size])


@every_setting
def test_sparse_equals_dense(storage, center, precision):
    X, Z = train_and_test()
    for normalize in NORMALIZATIONS:
        dense = bind(storage, normalize, center, precision)
        sparse = bind(storage, normalize, center, precision, X=sp.csr_matrix(X))
        stack = naive_stack(normalize, center)
        size = [np.tensordot(WEIGHTS, np.abs(stack), axes=1)]
        assert_close([sparse.combine(WEIGHTS)], [dense.combine(WEIGHTS)], precision, size)
        assert_close(sparse.diagonal(), dense.diagonal(), precision, stack)
        assert_close([sparse.cross(sp.csr_matrix(Z), WEIGHTS)], [dense.cross(Z, WEIGHTS)], precision, size)
        beta = some_beta(1)[0]
        forms = np.abs(beta) @ np.abs(stack) @ np.abs(beta)
        assert_close(sparse.quad_forms(beta)[:, None], dense.quad_forms(beta)[:, None], precision, forms[:, None])


@every_storage
@centered_or_not
def test_sample_weights_count_like_copies(storage, center):
    """Means and traces are weighted."""
    for normalize in NORMALIZATIONS:
        bank = bind(storage, normalize, center, "double", sample_weight=sample_weight())
        stack = naive_stack(normalize, center, weighted=True)
        size = np.tensordot(WEIGHTS, np.abs(stack), axes=1)
        assert_close([bank.combine(WEIGHTS)], [np.tensordot(WEIGHTS, stack, axes=1)], "double", [size])


@pytest.fixture
def tiny_blocks(monkeypatch):
    """Passes cut into blocks of one or two rows."""
    for name, module in list(sys.modules.items()):
        if name.startswith("manykernels."):
            for constant in ("BLOCK_ENTRIES", "_BLOCK_ENTRIES"):
                if hasattr(module, constant):
                    monkeypatch.setattr(module, constant, 1)


@every_storage
@centered_or_not
@pytest.mark.usefixtures("tiny_blocks")
def test_many_blocks_give_the_same_numbers(storage, center):
    bank, stack = bind(storage, "mean_diag", center, "single"), naive_stack("mean_diag", center)
    beta, Z = some_beta(1), train_and_test()[1]
    assert_close([bank.combine(WEIGHTS)], [np.tensordot(WEIGHTS, stack, axes=1)], "single")
    forms = np.abs(beta[0]) @ np.abs(stack) @ np.abs(beta[0])
    assert_close(bank.quad_forms(beta[0])[:, None], (beta[0] @ stack @ beta[0])[:, None], "single", forms[:, None])
    cross = np.tensordot(WEIGHTS, naive_stack("mean_diag", center, of_test=True), axes=1)
    assert_close(bank.learned(WEIGHTS).predict(Z, beta), beta @ cross.T, "single", [np.abs(cross) @ np.abs(beta[0])])


@every_storage
@pytest.mark.parametrize("n", [1, 2, 3, 70])
def test_few_samples_and_many(storage, n):
    """From one sample to several blocks a thread."""
    X = samples(n, seed=6)[:, :N_FEATURES] + 0.1
    functions = [naive.gaussian(1.0), naive.linear(), naive.polynomial(2)]
    bank = KernelBank([Gaussian(1.0), Linear(), Polynomial(2)]).bind(X, normalize=None, **where(storage))
    stack = [naive.gram(function, X, X) for function in functions]
    beta = np.linspace(-1, 1, n) if n > 1 else np.ones(1)
    for k, K in enumerate(stack):
        assert_close([bank.combine(np.eye(3)[k])], [K], "single")
    expected = np.array([beta @ K @ beta for K in stack])
    np.testing.assert_allclose(bank.quad_forms(beta), expected, rtol=2e-6, atol=1e-5)
    assert_close(bank.rows([0, n - 1]), [K[[0, n - 1]] for K in stack], "single")


# -- single findings -----------------------------------------------------------------------------------------


@every_storage
@every_precision
@pytest.mark.parametrize("width", [64.0, 1000.0])
def test_centering_a_wide_kernel_keeps_its_digits(storage, precision, width):
    """A wide Gaussian is 1 minus something tiny; centered and scaled, that something is the whole kernel."""
    X = train_and_test()[0][:, :N_FEATURES]
    bank = KernelBank([Gaussian(width)]).bind(X, center=True, precision=precision, **where(storage))
    squares = np.array([[np.sum((a - b) ** 2) for b in X] for a in X])
    away = -np.expm1(-squares / (2 * width**2))  # 1 - K, to full precision
    H = np.eye(N_TRAIN) - 1 / N_TRAIN
    expected = -H @ away @ H
    expected /= np.trace(expected) / N_TRAIN
    tolerance = 1e-6 if precision == "single" else 1e-8  # 1 - K itself is known to 1e-16 / (1 - K)
    assert np.abs(bank.combine(np.ones(1)) - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("frequency", [1.0, 1e3])
@every_storage
def test_fast_waves_do_not_depend_on_the_storage(storage, frequency):
    """A phase of thousands of radians needs the distance in double precision, whatever is held afterwards."""
    X = train_and_test()[0][:, :1] * 3.0
    bank = KernelBank([Dirichlet(frequency)]).bind(X, normalize=None, **where(storage))
    assert_close([bank.combine(np.ones(1))], [naive.gram(naive.dirichlet(frequency), X, X)], "single")


@every_storage
def test_a_kernel_may_stand_twice_in_a_subset(storage):
    bank, stack = bind(storage, None, False, "double"), naive_stack(None, False)
    beta = np.random.default_rng(2).standard_normal(N_TRAIN)
    for k in (0, 1):
        assert_close(bank.matvecs(beta, [k, k]), [stack[k] @ beta] * 2, "double")
        assert_close(bank.rows([2], [k, k]), [stack[k][[2]]] * 2, "double")


@pytest.mark.parametrize("subset", [[M], [-M - 1], [0, 99]])
def test_a_subset_outside_the_bank_is_refused(subset):
    """It must not return memory that nobody wrote."""
    bank = bind("packed", None, False, "single")
    for ask in (lambda: bank.matvecs(np.ones(N_TRAIN), subset), lambda: bank.rows([0], subset)):
        with pytest.raises((ValueError, IndexError)):
            ask()


def test_combine_writes_to_the_memory_that_is_given():
    bank = bind("auto", "mean_diag", False, "single")
    out = np.full((N_TRAIN, N_TRAIN), np.nan)
    assert bank.combine(WEIGHTS, out=out) is out
    assert np.array_equal(out, bank.combine(WEIGHTS))


@pytest.mark.parametrize("weights", [np.ones(M - 1), -np.eye(M)[0], np.full(M, np.nan), np.ones((M, 1))])
def test_bad_weights_are_refused(weights):
    bank = bind("auto", "mean_diag", False, "single")
    for use in (bank.combine, bank.learned, lambda w: bank.cross(train_and_test()[1], w)):
        with pytest.raises(ValueError, match=r"^weights must"):
            use(weights)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"storage": "disk"}, "storage"),
        ({"precision": "half"}, "precision"),
        ({"normalize": "max"}, "normalize"),
        ({"memory_budget": "much"}, "memory_budget"),
    ],
)
def test_bad_settings_are_named(settings, named):
    with pytest.raises(ValueError, match=f"^{named} must"):
        KernelBank([Linear()]).bind(np.eye(3), **settings)


@every_setting
def test_tail(storage, center, precision):
    """The last samples, normalized as all of them."""
    size = 7
    beta = some_beta()[0, -size:]
    for bank, stack in normalized_banks(storage, center, precision):
        part, few = bank.tail(size), stack[:, -size:, -size:]
        assert part.n_samples == size
        assert_close([part.combine(WEIGHTS)], [np.tensordot(WEIGHTS, few, 1)], precision)
        assert_close(part.quad_forms(beta), beta @ few @ beta, precision, np.abs(beta) @ np.abs(few) @ np.abs(beta))
        assert_close(part.matvecs(beta), few @ beta, precision, np.abs(few) @ np.abs(beta))
        assert_close(
            part.subset([3, 1]).matvecs(beta), few[[3, 1]] @ beta, precision, np.abs(few)[[3, 1]] @ np.abs(beta)
        )
        assert_close(part.diagonal(), np.diagonal(few, axis1=1, axis2=2), precision, few)


def test_capabilities_are_methods():
    bank = bind("auto", "mean_diag", False, "single")
    assert all(callable(getattr(bank, capability)) for capability in bank.capabilities)
    assert bank.unit_roundoff == 2.0**-24
    assert bind("auto", "mean_diag", False, "double").unit_roundoff == 2.0**-53
