"""What every combined kernel keeps: the same products and diagonal, and what it can do besides, whatever it is."""

import numpy as np
import pytest

from manykernels.core.protocols import ArrayKernel, BlockKernel, Features, FeaturesKernel, RowsKernel, SumsKernel
from tests.contracts.making import (
    KINDS,
    dual_of,
    every_kind,
    features_on_workers,
    marked,
    matrix_of,
    members_of,
)
from tests.contracts.truth import N_TRAIN, truth_of

HERE = [name for name in KINDS if not name.startswith("dask")]
PROTOCOLS = {
    "array": ArrayKernel,
    "rows": RowsKernel,
    "features": FeaturesKernel,
    "block": BlockKernel,
    "sums": SumsKernel,
}


def every_ability(ability):
    """Run a test for each kind whose combined kernel can do this."""
    return pytest.mark.parametrize("kind", [marked(kind) for kind in KINDS.values() if ability in kind.combined])


def bank_of(make_bank, kind):
    """A bank in double precision, its truth, weights, and the allowed error."""
    own = {} if kind.computes_in_double else {"precision": "double"}
    bank = make_bank(kind, normalize="mean_diag", **own)
    return bank, truth_of(kind, "mean_diag", False), kind.kernels.weights, kind.allowed("double")


def other_weights(kind):
    return np.random.default_rng(3).uniform(0.0, 2.0, kind.kernels.size)


def some_beta():
    """Dual coefficients of three tasks; one is mostly zero, and one is nothing else."""
    beta = np.random.default_rng(1).standard_normal((3, N_TRAIN))
    beta[1, 3:] = 0.0
    beta[2] = 0.0
    return beta


def assert_is_kernel(K, truth, weights, allowed):
    """Products with it and its diagonal are those of the sum with these weights."""
    beta, expected, size = some_beta(), truth.combined(weights), truth.size(weights).max()
    product, diagonal = K.product(beta), K.diagonal()
    assert product.shape == beta.shape
    assert diagonal.shape == (N_TRAIN,)
    assert product.dtype == diagonal.dtype == np.float64
    # Products that go on from the last ones are known to a part of the largest coefficients of all tasks.
    assert np.abs(product - beta @ expected).max() <= allowed * size * np.abs(beta).sum(axis=1).max()
    assert np.abs(diagonal - expected.diagonal()).max() <= allowed * size


@every_kind()
def test_it_has_all_that_its_protocols_ask(make_bank, kind):
    """Blocks of features are asked where the kernel has no blocks of its own."""
    K = make_bank(kind).workspace()
    for ability in kind.combined:
        assert not {name for name in members_of(PROTOCOLS[ability]) if not hasattr(K, name)}
    if "features" in kind.combined:
        asked = members_of(Features) - ({"blocks", "block"} if "block" in kind.combined else set())
        assert not {name for name in asked if not hasattr(K.table, name)}


@every_kind(among=HERE)
def test_products_and_diagonal(make_bank, kind):
    bank, truth, weights, allowed = bank_of(make_bank, kind)
    assert_is_kernel(bank.combine(weights), truth, weights, allowed)
    assert_is_kernel(bank.combine(np.eye(weights.size)[-1]), truth, np.eye(weights.size)[-1], allowed)


@every_kind(among=HERE)
def test_a_workspace_forgets_the_last_weights(make_bank, kind):
    """It is filled in place, again and again, also by weights that were changed in place."""
    bank, truth, weights, allowed = bank_of(make_bank, kind)
    K, changing = bank.workspace(), weights.copy()
    for _ in range(2):
        assert bank.combine(changing, out=K) is K
        assert_is_kernel(K, truth, changing, allowed)
        changing *= -0.5
        changing += 0.6 * other_weights(kind) + 0.5 * weights.max()
    nothing = np.zeros(weights.size)
    if kind.set != "gaussians":
        bank.combine(nothing, out=K)
        assert np.all(K.product(some_beta()) == 0.0)
        assert np.all(K.diagonal() == 0.0)


@every_kind(among=HERE)
def test_two_workspaces_of_a_bank_know_their_own_weights(make_bank, kind):
    bank, truth, weights, allowed = bank_of(make_bank, kind)
    first, second = bank.combine(weights), bank.combine(other_weights(kind))
    assert_is_kernel(first, truth, weights, allowed)
    assert_is_kernel(second, truth, other_weights(kind), allowed)
    assert_is_kernel(first, truth, weights, allowed)


@every_kind(among=HERE)
def test_a_product_is_the_caller_s_own(make_bank, kind):
    """It stays as it is, whatever is asked next, and coefficients may change in place."""
    bank, truth, weights, _ = bank_of(make_bank, kind)
    K, beta = bank.combine(weights), some_beta()
    first = K.product(beta)
    before = first.copy()
    beta *= 2.0
    second = K.product(beta)
    np.testing.assert_array_equal(first, before)
    np.testing.assert_allclose(second, 2.0 * before, rtol=1e-9, atol=1e-9 * np.abs(before).max())
    if "quad_forms" in kind.can:
        quadratic = np.sum(second * beta, axis=1)
        forms = bank.quad_forms(beta) @ weights
        np.testing.assert_allclose(forms, quadratic, rtol=1e-5, atol=1e-6 * truth.size(weights).max())


@every_kind(among=HERE)
def test_coefficients_that_move_a_little(make_bank, kind):
    """As a solver asks: a few entries change at a time, and come back."""
    bank, truth, weights, allowed = bank_of(make_bank, kind)
    K, expected, size = bank.combine(weights), truth.combined(weights), truth.size(weights).max()
    beta = np.zeros((1, N_TRAIN))
    for place, value in ((3, 1.0), (11, -2.0), (3, 0.0), (5, 1e4), (5, 0.0), (16, 0.5)):
        beta[0, place] = value
        found = K.product(beta)
        # What was there may have been much larger.
        assert np.abs(found - beta @ expected).max() <= allowed * size * max(np.abs(beta).sum(), 1e4)


# --- what some can do besides ----------------------------------------------------------------------------------


@every_ability("array")
def test_an_array_is_symmetric_and_its_own(make_bank, kind):
    bank, _, weights, _ = bank_of(make_bank, kind)
    out = bank.workspace()
    K = matrix_of(bank.combine(weights, out=out))
    assert K is out.array
    assert K.dtype == np.float64
    assert np.array_equal(K, K.T)
    assert np.array_equal(K, matrix_of(bank.combine(weights)))
    assert not np.shares_memory(K, matrix_of(bank.combine(weights)))


@every_ability("block")
def test_blocks_and_products_of_columns(make_bank, kind):
    bank, truth, weights, allowed = bank_of(make_bank, kind)
    K, expected, size = bank.combine(weights), truth.combined(weights), truth.size(weights).max()
    for rows in (np.array([4]), np.array([11, 0, 5]), np.arange(N_TRAIN)):
        block = K.block(rows)
        assert block.shape == (rows.size, rows.size)
        assert np.abs(block - expected[np.ix_(rows, rows)]).max() <= allowed * size
        change = np.linspace(-1.0, 2.0, rows.size)
        found = K.columns_product(rows, change)
        assert found.shape == (N_TRAIN,)
        assert np.abs(found - expected[:, rows] @ change).max() <= allowed * size * np.abs(change).sum()
    bank.combine(other_weights(kind), out=K)
    expected, size = truth.combined(other_weights(kind)), truth.size(other_weights(kind)).max()
    rows = np.array([2, 9])
    assert np.abs(K.block(rows) - expected[np.ix_(rows, rows)]).max() <= allowed * size


@every_ability("rows")
def test_rows_in_a_cache(make_bank, kind):
    """Rows on the columns in play, in single precision; other weights empty the cache."""
    bank, truth, weights, _ = bank_of(make_bank, kind)
    K = bank.workspace()
    for w in (weights, other_weights(kind)):
        bank.combine(w, out=K)
        expected, size = truth.combined(w), truth.size(w).max()
        for columns in (np.arange(N_TRAIN), np.arange(0, N_TRAIN, 2)):
            K.cache.restrict(columns)
            rows = np.array([5, 16, 0])
            assert np.abs(K.cache.values[K.cache.places(rows)] - expected[np.ix_(rows, columns)]).max() <= 2e-7 * size


@every_ability("rows")
def test_rows_are_computed_once(make_bank, kind):
    bank, _, weights, _ = bank_of(make_bank, kind)
    K = bank.combine(weights)
    K.cache.restrict(np.arange(N_TRAIN))
    K.cache.places(np.array([1, 2]))
    counted = K.cache.n_computed
    assert counted == 2 * N_TRAIN
    bank.combine(weights, out=K)  # the same again
    K.cache.places(np.array([2, 1]))
    assert K.cache.n_computed == counted


@every_ability("features")
def test_features(make_bank, kind):
    """K = Z diag(columns) Z', with w = Z' beta."""
    bank, truth, weights, allowed = bank_of(make_bank, kind)
    K, beta = bank.combine(weights), some_beta()
    Z = K.table.times(np.eye(K.table.n_columns)).T
    size = truth.size(weights).max()
    assert K.columns.shape == (K.table.n_columns,)
    assert np.abs((Z * K.columns) @ Z.T - truth.combined(weights)).max() <= allowed * size
    np.testing.assert_allclose(K.vectors(beta), beta @ Z, rtol=1e-10, atol=1e-10 * np.abs(Z).max())
    np.testing.assert_allclose(K.table.row_squares(K.columns), K.diagonal(), rtol=1e-10)
    unused = np.repeat(weights == 0, np.diff(bank.first))
    assert np.array_equal(K.columns == 0, unused)


@every_ability("sums")
def test_sums_over_rows_that_are_elsewhere(make_bank, kind):
    """With w = Z' beta of the rows on workers, q_k and beta' K beta are those of the matrices."""
    bank, truth, weights, allowed = bank_of(make_bank, kind)
    K, beta = bank.workspace(), some_beta()
    for w in (weights, other_weights(kind)):
        assert bank.combine(w, out=K) is K
        vectors = bank.vectors(dual_of(bank, beta))
        expected = np.einsum("ti,ij,tj->t", beta, truth.combined(w), beta)
        size = truth.size(w).max() * np.abs(beta).sum(axis=1) ** 2
        assert np.all(np.abs(vectors**2 @ K.columns - expected) <= allowed * size)
        np.testing.assert_allclose(bank.quad_forms(dual_of(bank, beta)) @ w, vectors**2 @ K.columns, rtol=1e-10)
    np.testing.assert_allclose(vectors, beta @ features_on_workers(bank), rtol=1e-12, atol=1e-12)
