"""Inner products and distances against loops, and what cancellation may not do."""

import numpy as np
import pytest
import scipy.sparse as sp

from manykernels.compute.pairwise import inner_products, row_square_norms, squared_distances


def pairs(d, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((7, d)) + shift, rng.standard_normal((4, d)) + shift


def naive_distances(X, Z):
    return np.array([[sum((s - t) ** 2 for s, t in zip(x, z, strict=True)) for z in Z] for x in X])


@pytest.mark.parametrize("d", [1, 2, 9])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["array", "matrix", "sparse array"])
def test_against_loops(d, form):
    X, Z = pairs(d)
    np.testing.assert_allclose(squared_distances(form(X), form(Z)), naive_distances(X, Z), atol=1e-13)
    np.testing.assert_allclose(inner_products(form(X), form(Z)), X @ Z.T, atol=1e-13)
    np.testing.assert_allclose(row_square_norms(form(X)), np.sum(X**2, axis=1))
    for result in (squared_distances(form(X), form(Z)), inner_products(form(X), form(Z)), row_square_norms(form(X))):
        assert type(result) is np.ndarray


def test_dense_and_sparse_mix():
    X, Z = pairs(3)
    np.testing.assert_allclose(squared_distances(sp.csr_matrix(X), Z), naive_distances(X, Z), atol=1e-13)
    np.testing.assert_allclose(squared_distances(X, sp.csr_matrix(Z)), naive_distances(X, Z), atol=1e-13)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("shift", [1e4, -1e7])
def test_far_from_the_origin(d, shift):
    X, Z = pairs(d, shift=shift)
    np.testing.assert_allclose(squared_distances(X, Z), naive_distances(X, Z), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["array", "sparse"])
def test_never_negative(form):
    X = np.repeat(pairs(6, seed=1)[0] * 1e3, 3, axis=0)
    assert squared_distances(form(X), form(X)).min() >= 0.0


def test_inputs_are_left_alone():
    X, Z = pairs(3)
    before = X.copy(), Z.copy()
    squared_distances(X, Z)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Z, before[1])
