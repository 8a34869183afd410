"""The bank on workers keeps the contract of every bank."""

import numpy as np
import pytest
import scipy.sparse as sp

from manykernels.distributed import bind
from manykernels.distributed.shards import assign
from manykernels.kernels import Gaussian, GaussianLadder, KernelBank, Linear
from manykernels.kernels.bound import CAPABILITIES, BoundBank
from tests.contracts import test_banks as contract

CONTRACT = [
    contract.test_combine,
    contract.test_quad_forms,
    contract.test_matvecs,
    contract.test_inner_products,
    contract.test_a_subset_is_a_bank,
    contract.test_rows,
    contract.test_diagonal,
    contract.test_tail,
]


@pytest.fixture
def on_workers(threads, monkeypatch):
    """The contract's banks on workers."""

    def bound(storage, normalize, center, precision, X=None, **settings):
        X = contract.train_and_test()[0] if X is None else X
        bank = KernelBank(contract.kernels())
        return bind(bank, X, threads, normalize=normalize, center=center, precision=precision, **settings)

    monkeypatch.setattr(contract, "bind", bound)
    monkeypatch.setattr(contract, "NORMALIZATIONS", ["mean_diag", "cosine"])
    return bound


@pytest.mark.parametrize(("center", "precision"), [(False, "single"), (True, "double")])
@pytest.mark.parametrize("test", CONTRACT, ids=lambda test: test.__name__)
@pytest.mark.usefixtures("on_workers")
def test_contract(test, center, precision):
    test("auto", center, precision)


def test_sample_weights_and_new_data(on_workers):
    for center in (False, True):
        bank = on_workers(None, "cosine", center, "double", sample_weight=contract.sample_weight())
        stack = contract.naive_stack("cosine", center, weighted=True)
        expected = np.tensordot(contract.WEIGHTS, stack, axes=1)
        contract.assert_close([bank.combine(contract.WEIGHTS).array], [expected], "double")
        contract.assert_close([bank.cross(bank.X, contract.WEIGHTS)], [expected], "double")


def test_sparse_data(on_workers):
    X = contract.train_and_test()[0]
    dense, sparse = (on_workers(None, "mean_diag", False, "double", X=data) for data in (X, sp.csr_matrix(X)))
    contract.assert_close([sparse.combine(contract.WEIGHTS).array], [dense.combine(contract.WEIGHTS).array], "double")


@pytest.mark.parametrize("center", [False, True])
def test_a_working_set_on_the_driver_gives_the_same_numbers(on_workers, center):
    """With memory for them, the kernels of a subset are computed where the solver is."""
    chosen, beta = np.array([6, 0, 3, 9]), np.linspace(-1, 1, contract.N_TRAIN)
    there = on_workers(None, "cosine", center, "double").subset(chosen)
    here = on_workers(None, "cosine", center, "double", driver_bytes=10**7).subset(chosen)
    assert type(here) is BoundBank
    assert type(there) is not BoundBank
    contract.assert_close(here.matvecs(beta), there.matvecs(beta), "double")
    contract.assert_close([here.combine(np.ones(4)).array], [there.combine(np.ones(4)).array], "double")
    contract.assert_close(here.subset([2, 0]).diagonal(), there.subset([2, 0]).diagonal(), "double")


def test_sums_do_not_depend_on_who_makes_them(threads):
    """The order of a sum is that of the shards: the same to the last bit, time after time."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    bank = bind(KernelBank([Gaussian(w) for w in np.geomspace(0.5, 8, 12)]), X, threads, n_shards=5)
    weights = np.random.default_rng(1).uniform(size=12)
    first = bank.combine(weights).array
    assert all(np.array_equal(first, bank.combine(weights).array) for _ in range(3))


def test_every_capability_is_a_method(on_workers):
    bank = on_workers(None, None, False, "single")
    assert bank.capabilities == CAPABILITIES
    assert all(callable(getattr(bank, capability)) for capability in bank.capabilities)
    assert bank.describe_storage() == "11 in 3 shards on 3 Dask workers"
    np.testing.assert_array_equal(bank.matrix(3), bank.rows(np.arange(contract.N_TRAIN), [3])[0])
    local = KernelBank(contract.kernels()).bind(bank.X, normalize=None)
    np.testing.assert_allclose(bank.centered_squares(bank.sample_weight), local.centered_squares(bank.sample_weight))


def test_kernels_of_one_view_share_a_shard():
    kernels = [Gaussian(w, columns=[c]) for w in (1.0, 2.0, 4.0) for c in (0, 1, 2)]
    bound = KernelBank(kernels).resolve(np.zeros((4, 3)))
    assert [members.tolist() for members in assign(bound, 3)] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert len(assign(bound, 100)) == 9


def test_bad_input_is_refused(threads):
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(TypeError, match="written_out"):
        bind(KernelBank([GaussianLadder(low=1.0, high=4.0, count=3)]), X, threads)
    with pytest.raises(ValueError, match=r"^precision must"):
        bind(KernelBank([Linear()]), X, threads, precision="half")
    with pytest.raises(ValueError, match=r"^normalize must"):
        bind(KernelBank([Linear()]), X, threads, normalize="max")
    bank = bind(KernelBank([Linear(), Gaussian(1.0)]), X, threads)
    with pytest.raises(ValueError, match=r"^weights must"):
        bank.combine(-np.ones(2))
    with pytest.raises(ValueError, match=r"^subset must"):
        bank.matvecs(np.ones(10), [2])
    with pytest.raises(ValueError, match=r"^beta must"):
        bank.quad_forms(np.ones(9))
    with pytest.warns(UserWarning, match="zero on the training data"):
        bind(KernelBank([Linear(columns=[0]), Gaussian(1.0)]), X * [0.0, 1.0], threads)
