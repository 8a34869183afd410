"""Kernels on workers: what they have beyond the contract of every bank."""

import numpy as np
import pytest
import scipy.sparse as sp

from manykernels.banks import Data, Placement, Recipe, bind
from manykernels.banks.cluster import bind_on_workers
from manykernels.banks.cluster.shards import assign
from manykernels.banks.offers import LISTS
from manykernels.banks.packed import PackedBank
from manykernels.kernels import Gaussian, GaussianLadder, KernelBank, Linear, Polynomial
from tests.binding import bind_with
from tests.contracts import truth
from tests.contracts.test_banks import assert_close

WEIGHTS = truth.SETS["list"].weights


@pytest.fixture
def on_workers(threads):
    """The contract's kernels on workers."""

    def bound(normalize, center, precision, X=None, **settings):
        X = truth.train_and_test()[0] if X is None else X
        kernels = KernelBank(truth.SETS["list"].given)
        options = {"client": threads, "normalize": normalize, "center": center, "precision": precision}
        return bind_with(kernels, X, **{"memory_budget": 1, **options, **settings})

    return bound


def test_sample_weights_and_new_data(on_workers):
    for center in (False, True):
        bank = on_workers("cosine", center, "double", sample_weight=truth.sample_weight())
        stack = truth.naive_stack("list", "cosine", center, weighted=True)
        expected = np.tensordot(WEIGHTS, stack, axes=1)
        assert_close([bank.combine(WEIGHTS).array], [expected], 1e-12)
        assert_close([bank.kernel(WEIGHTS).cross(bank.X)], [expected], 1e-12)


def test_sparse_data(on_workers):
    X = truth.train_and_test()[0]
    dense, sparse = (on_workers("mean_diag", False, "double", X=data) for data in (X, sp.csr_matrix(X)))
    assert_close([sparse.combine(WEIGHTS).array], [dense.combine(WEIGHTS).array], 1e-12)


@pytest.mark.parametrize("center", [False, True])
def test_a_working_set_on_the_driver_gives_the_same_numbers(on_workers, center):
    """With memory for them, the kernels of a subset are computed where the solver is."""
    chosen, beta = np.array([6, 0, 3, 9]), np.linspace(-1, 1, truth.N_TRAIN)
    there = on_workers("cosine", center, "double").subset(chosen)
    here = on_workers("cosine", center, "double", memory_budget=10**7).subset(chosen)
    assert type(here) is PackedBank
    assert type(there) is not PackedBank
    assert_close(here.matvecs(beta), there.matvecs(beta), 1e-12)
    assert_close([here.combine(np.ones(4)).array], [there.combine(np.ones(4)).array], 1e-12)
    assert_close(here.subset([2, 0]).diagonal(), there.subset([2, 0]).diagonal(), 1e-12)


def test_a_working_set_on_the_driver_has_the_digits_that_its_kernels_need(threads):
    """As the shards have, each for its kernels: some leave the range of single precision."""
    X = 1e20 * np.random.default_rng(0).normal(size=(30, 3))
    kernels = [Linear(columns=[0]), Polynomial(2, columns=[1]), *(Gaussian(w, columns=[2]) for w in (1e19, 1e20, 1e21))]
    bank = bind_with(kernels, X, client=threads, normalize=None, memory_budget=10**7)
    local = bind_with(kernels, X, normalize=None, precision="double")
    assert bank.precision == "single"
    beta = np.linspace(-1.0, 1.0, 30)
    for chosen in (np.array([1, 3]), np.array([4, 2])):
        few = bank.subset(chosen)
        assert few.precision == ("double" if 1 in chosen else "single")
        products, expected = few.matvecs(beta), local.matvecs(beta, chosen)
        assert np.all(np.abs(products - expected) <= 1e-5 * np.abs(expected).max(axis=1, keepdims=True))


def test_sums_do_not_depend_on_who_makes_them(threads):
    """The order of a sum is that of the shards: the same to the last bit, time after time."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    bank = bind_on_workers(
        KernelBank([Gaussian(w) for w in np.geomspace(0.5, 8, 12)]), Data(X, X), Recipe(), Placement(client=threads), 5
    )
    weights = np.random.default_rng(1).uniform(size=12)
    first = bank.combine(weights).array
    assert all(np.array_equal(first, bank.combine(weights).array) for _ in range(3))


def test_every_capability_is_a_method(on_workers):
    bank = on_workers(None, False, "single")
    assert bank.can == LISTS
    assert all(callable(getattr(bank, capability)) for capability in bank.can - {"coefficients"})
    assert bank.describe_storage() == "11 in 3 shards on 3 Dask workers"
    np.testing.assert_array_equal(bank.matrix(3), bank.rows(np.arange(truth.N_TRAIN), [3])[0])
    local = bind(KernelBank(truth.SETS["list"].given), bank.X, Recipe(normalize=None))
    np.testing.assert_allclose(bank.centered_squares(bank.sample_weight), local.centered_squares(bank.sample_weight))


def test_kernels_of_one_view_share_a_shard():
    kernels = [Gaussian(w, columns=[c]) for w in (1.0, 2.0, 4.0) for c in (0, 1, 2)]
    bound = KernelBank(kernels).resolve(np.zeros((4, 3)))
    assert [members.tolist() for members in assign(bound, 3)] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert len(assign(bound, 100)) == 9


def test_bad_input_is_refused(threads):
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(TypeError, match="written_out"):
        bind_with([GaussianLadder(low=1.0, high=4.0, count=3)], X, client=threads)
    with pytest.raises(ValueError, match=r"^precision must"):
        bind_with([Linear()], X, client=threads, precision="half")
    with pytest.raises(ValueError, match=r"^normalize must"):
        bind_with([Linear()], X, client=threads, normalize="max")
    bank = bind_with([Linear(), Gaussian(1.0)], X, client=threads)
    with pytest.raises(ValueError, match=r"^weights must"):
        bank.combine(-np.ones(2))
    with pytest.raises(ValueError, match=r"^subset must"):
        bank.matvecs(np.ones(10), [2])
    with pytest.raises(ValueError, match=r"^beta must"):
        bank.quad_forms(np.ones(9))
    with pytest.warns(UserWarning, match="zero on the training data"):
        bind_with([Linear(columns=[0]), Gaussian(1.0)], X * [0.0, 1.0], client=threads)
