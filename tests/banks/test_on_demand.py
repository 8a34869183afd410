"""Banks with rows on demand against the same kernels as matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from manykernels.banks import Placement, bind
from manykernels.kernels import Gaussian, GaussianLadder, KernelBank, Linear, Polynomial
from tests.binding import bind_with

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 5)) * (RNG.random((90, 5)) < 0.7)
KERNELS = [
    Gaussian(0.7),
    Linear(columns=[0]),
    Gaussian(1.5, columns=[1, 2]),
    Polynomial(2),
    Gaussian(2.0),
    Gaussian(1.0, columns=[3]),
]
WEIGHTS = np.array([0.3, 0.2, 0.0, 0.1, 0.4, 0.5])
SETTINGS = [
    {},
    {"center": True},
    {"normalize": "cosine"},
    {"normalize": "trace", "center": True, "precision": "double"},
]


def banks(data=X, **settings):
    bank = KernelBank(KERNELS)
    return bind_with(bank, data, storage="rows", memory_budget=10**6, **settings), bind_with(
        bank, data, storage="packed", **settings
    )


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_products_and_forms_are_those_of_the_matrices(settings, sparse):
    rows, packed = banks(sp.csr_matrix(X) if sparse else X, **settings)
    K = rows.combine(WEIGHTS)
    dense = packed.combine(WEIGHTS).array
    K.cache.restrict(np.arange(0, 90, 2))
    wanted = np.array([5, 17, 80, 3])
    assert np.allclose(K.cache.values[K.cache.places(wanted)], dense[wanted][:, ::2], atol=2e-6 * np.abs(dense).max())
    assert np.allclose(K.diagonal(), dense.diagonal(), rtol=1e-6)
    for beta in RNG.standard_normal((3, 2, 90)) * (RNG.random((3, 2, 90)) < 0.3):
        assert np.allclose(K.product(beta), beta @ dense, atol=1e-5 * np.abs(dense).max())
        assert np.allclose(rows.quad_forms(beta), packed.quad_forms(beta), rtol=2e-5, atol=1e-6)
        assert np.allclose(rows.quad_forms(beta, [4, 1]), packed.quad_forms(beta, [4, 1]), rtol=2e-5, atol=1e-6)
        assert np.allclose(rows.derivative_forms(WEIGHTS, beta), packed.quad_forms(beta), rtol=2e-5, atol=1e-6)


def test_only_changes_are_computed():
    rows, _ = banks()
    counted = []
    for storage in rows.storages:
        add = storage.add_products
        storage.add_products = lambda r, c, out, add=add: (counted.append(r.tolist()), add(r, c, out))
    beta = np.zeros((1, 90))
    beta[0, [3, 40]] = 1.0
    rows.quad_forms(beta)
    beta[0, 40] = 2.0
    rows.combine(WEIGHTS).product(beta)
    rows.quad_forms(beta[0])
    assert counted == [[3, 40]] * len(rows.storages) + [[40]] * len(rows.storages)


def test_products_keep_their_digits_after_huge_coefficients():
    """As on a path from C = 1e6 back to 1e-4."""
    rows, packed = banks(precision="double")
    rows.quad_forms(1e8 * RNG.standard_normal((1, 90)))
    small = 1e-4 * RNG.standard_normal((1, 90))
    assert np.allclose(rows.quad_forms(small), packed.quad_forms(small), rtol=1e-9, atol=0)


def test_an_interrupted_pass_leaves_nothing_behind():
    rows, packed = banks()
    beta = RNG.standard_normal((1, 90))
    rows.quad_forms(beta)
    storage = rows.storages[-1]
    add = storage.add_products

    def interrupted(r, c, out):
        add(r, c, out)
        raise KeyboardInterrupt

    storage.add_products = interrupted
    with pytest.raises(KeyboardInterrupt):
        rows.quad_forms(2 * beta)
    storage.add_products = add
    assert np.allclose(rows.quad_forms(beta), packed.quad_forms(beta), rtol=2e-5, atol=1e-5)


def test_other_weights_forget_the_rows_and_not_the_products():
    rows, packed = banks()
    K = rows.combine(WEIGHTS)
    K.cache.restrict(np.arange(90))
    K.cache.places(np.array([7]))
    other = WEIGHTS[::-1].copy()
    assert rows.combine(other, out=K) is K
    assert np.allclose(K.cache.values[K.cache.places(np.array([7]))], packed.combine(other).array[[7]], atol=1e-6)
    computed = K.cache.n_computed
    rows.combine(other, out=K).cache.places(np.array([7]))
    assert K.cache.n_computed == computed


def test_the_diagonal_is_computed_once_for_given_weights(monkeypatch):
    rows, packed = banks()
    asked = []
    diagonal = rows.diagonal
    monkeypatch.setattr(rows, "diagonal", lambda subset: (asked.append(len(subset)), diagonal(subset))[1])
    K = rows.combine(WEIGHTS)
    for _ in range(3):
        K.diagonal()
        rows.combine(WEIGHTS.copy(), out=K)
    assert asked == [5]
    rows.combine(WEIGHTS[::-1].copy(), out=K)
    assert np.allclose(K.diagonal(), packed.combine(WEIGHTS[::-1]).array.diagonal(), rtol=1e-6)


def test_the_tail_is_a_bank_in_memory():
    rows, packed = banks()
    assert np.allclose(rows.tail(20).combine(WEIGHTS).array, packed.combine(WEIGHTS).array[-20:, -20:], atol=1e-6)


def test_ladders_are_refused():
    with pytest.raises(TypeError, match="storage='rows' needs kernels one by one"):
        bind(KernelBank([GaussianLadder(count=50)]), X, placement=Placement(storage="rows"))


def test_factors_leave_half_of_the_memory_to_the_rows():
    many = KernelBank([Linear(columns=[j]) for j in range(5)] + [Polynomial(2, columns=[j]) for j in range(5)])
    budget = 20 * 90 * 4
    bank = bind(many, X, placement=Placement(storage="rows", budget=budget))
    assert bank.workspace().cache.n_bytes >= budget // 2


def test_a_budget_without_room_for_rows_is_refused_in_numbers():
    with pytest.raises(MemoryError, match=r"^memory_budget is 1 kB, but .* rows of 90 samples need 1.44 kB\.$"):
        bind(KernelBank(KERNELS), X, placement=Placement(storage="rows", budget=1000))
