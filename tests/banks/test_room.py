"""Working sets share what memory is left: they are held while they fit, and give the same numbers where they do not."""

import gc

import numpy as np
import pytest

from manykernels.banks import Placement, bind
from manykernels.banks.factor_storage import FactorStorage
from manykernels.banks.packed_storage import PackedStorage
from manykernels.banks.recomputed_storage import RecomputedStorage
from manykernels.banks.room import Room
from manykernels.compute.triangles import triangle_size
from manykernels.kernels import Gaussian, GaussianLadder, KernelBank, Linear, Polynomial

N = 60
X = np.random.default_rng(0).normal(size=(N, 4))
TRIANGLE = 4 * triangle_size(N)
PLAIN = [Gaussian(w, columns=[j, (j + 1) % 4]) for j in range(4) for w in (0.5, 1.0, 2.0)]


def naive(kernels):
    """Return the kernel matrices with a mean diagonal of 1, one by one."""
    grams = []
    for kernel in kernels:
        V = X if kernel.columns is None else X[:, np.atleast_1d(kernel.columns)]
        K = kernel.compute(V, V)
        grams.append(K / np.mean(np.diag(K)))
    return np.array(grams)


def held(bank):
    return sum(s.indices.size for s in bank.storages if isinstance(s, PackedStorage))


@pytest.mark.parametrize("room", [0, 1, 3, 5, 100])
def test_a_subset_holds_what_fits(room):
    bank = bind(KernelBank(PLAIN), X, placement=Placement(storage="recomputed", budget=max(room * TRIANGLE, 1)))
    chosen = np.array([0, 2, 5, 7, 11])
    part = bank.subset(chosen)
    assert held(part) == min(room, 5)
    assert sum(s.indices.size for s in part.storages) == 5
    grams, beta = naive(PLAIN)[chosen], np.random.default_rng(1).normal(size=N)
    np.testing.assert_allclose(part.matvecs(beta), grams @ beta, atol=1e-4)
    np.testing.assert_allclose(part.quad_forms(beta), np.einsum("i,kij,j->k", beta, grams, beta), rtol=1e-5)
    weights = np.arange(5.0)
    np.testing.assert_allclose(part.combine(weights).array, np.tensordot(weights, grams, 1), atol=1e-5)
    M = np.outer(beta, beta) + np.eye(N)
    np.testing.assert_allclose(part.inner_products(M), np.einsum("kij,ij->k", grams, M), rtol=1e-5)


def test_room_is_there_again_when_a_working_set_is_gone():
    bank = bind(KernelBank(PLAIN), X, placement=Placement(storage="recomputed", budget=4 * TRIANGLE))
    first = bank.subset(np.arange(4))
    assert held(first) == 4
    assert held(bank.subset(np.arange(4, 8))) == 0
    del first
    gc.collect()
    assert held(bank.subset(np.arange(4, 8))) == 4


def test_a_subset_of_a_subset_counts_its_kernels_anew():
    bank = bind(KernelBank(PLAIN), X, placement=Placement(storage="recomputed", budget=1))
    part = bank.subset(np.array([1, 4, 6, 9])).subset(np.array([1, 3]))
    assert [type(s) for s in part.storages] == [RecomputedStorage]
    np.testing.assert_allclose(part.combine(np.array([1.0, 2.0])).array, naive(PLAIN)[[4, 9]].T @ [1.0, 2.0], atol=1e-5)
    tail = part.tail(20)
    np.testing.assert_allclose(
        tail.combine(np.array([1.0, 2.0])).array, (naive(PLAIN)[[4, 9]].T @ [1.0, 2.0])[-20:, -20:], atol=1e-5
    )


@pytest.mark.parametrize("room", [0, 10**6])
def test_factors_are_copied_where_there_is_room_and_shared_where_there_is_none(room):
    kernels = [Linear(columns=[j]) for j in range(4)] + [Polynomial(2, columns=[j]) for j in range(4)]
    bank = bind(KernelBank(kernels), X, placement=Placement(storage="factors"))
    bank.room = Room(room)
    chosen = np.array([0, 1, 3, 6])
    part = bank.subset(chosen)
    (storage,) = part.storages
    assert isinstance(storage, FactorStorage)
    assert np.shares_memory(storage.columns, bank.storages[0].columns) == (room == 0)
    grams, beta = naive(kernels)[chosen], np.random.default_rng(1).normal(size=(2, N))
    np.testing.assert_allclose(part.quad_forms(beta), np.einsum("ti,kij,tj->tk", beta, grams, beta), rtol=1e-9)
    np.testing.assert_allclose(part.matvecs(beta[0]), grams @ beta[0], atol=1e-9)
    np.testing.assert_allclose(part.combine(np.arange(4.0)).array, np.tensordot(np.arange(4.0), grams, 1), atol=1e-9)
    np.testing.assert_allclose(part.inner_products(np.eye(N)), np.einsum("kii->k", grams), rtol=1e-9)
    np.testing.assert_allclose(part.tail(7).combine(np.ones(4)).array, grams.sum(axis=0)[-7:, -7:], atol=1e-9)
    whole = bank.subset(np.arange(8))
    assert np.shares_memory(whole.storages[0].columns, bank.storages[0].columns)


def test_few_factors_at_a_time_give_the_same(monkeypatch):
    """Where the chosen factors do not lie side by side, they are gathered in pieces."""
    kernels = [Linear(columns=[j]) for j in range(4)] + [Polynomial(3, columns=[j]) for j in range(4)]
    bank = bind(KernelBank(kernels), X, placement=Placement(storage="factors"))
    bank.room = Room(0)
    monkeypatch.setattr("manykernels.banks.factor_storage._GATHERED", 8 * N * 5)
    monkeypatch.setattr("manykernels.banks.factor_storage._KEPT", 0)
    monkeypatch.setattr(FactorStorage._pieces, "__defaults__", (8 * N * 5,))
    part, grams = bank.subset(np.array([0, 2, 4, 5, 7])), naive(kernels)[[0, 2, 4, 5, 7]]
    beta = np.random.default_rng(1).normal(size=N)
    np.testing.assert_allclose(part.quad_forms(beta), np.einsum("i,kij,j->k", beta, grams, beta), rtol=1e-9)
    weights = np.array([1.0, 0.0, 2.0, 0.5, 3.0])
    np.testing.assert_allclose(part.combine(weights).array, np.tensordot(weights, grams, 1), atol=1e-9)
    M = np.outer(beta, beta)
    np.testing.assert_allclose(part.inner_products(M), np.einsum("kij,ij->k", grams, M), rtol=1e-9)
    out = np.zeros((3, N), np.float32)
    (storage,) = part.storages
    storage.add_rows(np.array([5, 1, 9]), np.arange(N), weights, out)
    np.testing.assert_allclose(out, np.tensordot(weights, grams, 1)[[5, 1, 9]], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("budget", [1, 70, 200])
def test_a_ladder_holds_nodes_and_working_set_within_its_budget(budget):
    """In triangles: half of the budget at most is for the working set."""
    ladder = GaussianLadder(count=300)
    bank = bind(KernelBank([ladder]), X, placement=Placement(budget=budget * TRIANGLE, reserve=60))
    nodes = held(bank._nodes)
    assert nodes * TRIANGLE + bank.room.left <= budget * TRIANGLE
    part = bank.subset(np.arange(0, 300, 5))
    assert (nodes + held(part)) <= budget
    beta = np.random.default_rng(1).normal(size=N)
    np.testing.assert_allclose(part.quad_forms(beta), bank.quad_forms(beta)[::5], rtol=1e-4)
    np.testing.assert_allclose(bank.matvecs(beta, np.array([0, 10])), part.matvecs(beta, np.array([0, 2])), rtol=1e-6)


def test_working_sets_of_plain_kernels_and_ladders_keep_within_the_room_of_both():
    kernels = KernelBank([*PLAIN, GaussianLadder(count=300)])
    bank = bind(kernels, X, placement=Placement(budget=30 * TRIANGLE, reserve=4))
    part = bank.subset(np.array([0, 3, 50, 100, 200, 300]))
    left = max(of_part.room.left for of_part in bank.parts)
    assert part.room.left == left < 6 * TRIANGLE
    few = part.subset(np.arange(6))
    assert part.room.left >= 0
    beta = np.random.default_rng(1).normal(size=N)
    np.testing.assert_allclose(few.quad_forms(beta), part.quad_forms(beta), rtol=1e-9)


def test_storages_say_what_they_take():
    kernels = [Linear(columns=[0]), *PLAIN]
    bank = bind(KernelBank(kernels), X, placement=Placement(budget=10**6))
    assert {type(storage): storage.nbytes for storage in bank.storages} == {
        FactorStorage: 8 * N,
        PackedStorage: len(PLAIN) * TRIANGLE,
    }
    assert sum(storage.nbytes for storage in bank.subset(np.array([0, 4, 5])).storages) == 8 * N + 2 * TRIANGLE
    computed = bind(KernelBank(kernels), X, placement=Placement(storage="recomputed"))
    assert [storage.nbytes for storage in computed.storages] == [0]


def test_room_is_taken_by_many_at_once_and_never_twice():
    room = Room(1000)
    assert [room.take(3, 300), room.take(1, 100), room.take(1, 1)] == [3, 1, 0]
    assert Room(None).take(10**9, 10**9) == 10**9
