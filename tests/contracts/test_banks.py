"""What every bank keeps: whatever holds its kernels, the numbers are those of a naive dense computation."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from manykernels.banks import Placement, Recipe, bind
from manykernels.compute.gpu import Device, has_device
from manykernels.core.protocols import Bank
from manykernels.core.solver import Solver
from manykernels.kernels import Dirichlet, Gaussian, KernelBank, Linear, Polynomial
from manykernels.losses import Hinge
from manykernels.norms import LpNorm
from manykernels.problem import Problem
from tests.binding import bind_with, features_of
from tests.contracts.making import (
    FINITE,
    KINDS,
    LISTS,
    dual_of,
    every_kind,
    every_setting,
    make,
    marked,
    matrix_of,
    matrix_on_workers,
    members_of,
)
from tests.contracts.truth import (
    FEATURES,
    N_FEATURES,
    N_TRAIN,
    NORMALIZATIONS,
    SETS,
    naive_stack,
    sample_weight,
    samples,
    train_and_test,
    truth_of,
)
from tests.kernels import naive

HERE = [name for name in KINDS if not name.startswith("dask")]
LISTS_HERE = [name for name in LISTS if name in HERE]
TOLERANCE = {"single": 1e-6, "double": 1e-12}


def assert_close(found, expected, allowed, size=None):
    """Equal up to a part ``allowed`` of the size of the numbers, kernel by kernel."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == np.float64
    for k in range(len(expected)):
        error = np.abs(found[k] - expected[k]).max()
        scale = np.abs(expected[k] if size is None else size[k]).max()
        assert error <= allowed * scale, f"kernel {k}: off by {error:.2e} beside {scale:.2e}"


def every(make_bank, kind, center, precision):
    """(bank, truth, allowed error) for each normalization."""
    centered = {"center": True} if center == "centered" else {}
    own = {} if kind.computes_in_double else {"precision": precision}
    for normalize in kind.normalizations:
        bank = make_bank(kind, normalize=normalize, **centered, **own)
        yield bank, truth_of(kind, normalize, center == "centered"), kind.allowed(precision)


def one(make_bank, kind, **settings):
    """A bank in double precision with its truth and the allowed error."""
    own = {} if kind.computes_in_double else {"precision": "double"}
    normalize = settings.pop("normalize", "mean_diag")
    bank = make_bank(kind, normalize=normalize, **own, **settings)
    center, weighted = settings.get("center", False), "sample_weight" in settings
    return bank, truth_of(kind, normalize, center, weighted), kind.allowed("double")


def some_beta(n_tasks=3):
    """Dual coefficients; most of the last task's are zero."""
    beta = np.random.default_rng(1).standard_normal((n_tasks, N_TRAIN))
    beta[-1, 3:] = 0.0
    return beta


def subsets(m):
    """A few kernels in any order, one, and all of them backwards."""
    return [m - 1, 0, m // 2], [m // 3], np.arange(m)[::-1]


def forms_of(stack, beta):
    """(n_kernels, n_tasks): the quadratic forms of each kernel, and how large the numbers are that make them up."""
    forms = np.einsum("ti,kij,tj->kt", beta, stack, beta)
    return forms, np.einsum("ti,kij,tj->kt", np.abs(beta), np.abs(stack), np.abs(beta))


def combined_matrix(bank, K):
    return matrix_on_workers(bank, K) if "sums" in K.can else matrix_of(K)


# --- what it is ------------------------------------------------------------------------------------------------


@every_kind()
def test_names_groups_and_sizes_are_those_of_the_kernels_one_by_one(make_bank, kind):
    bank = make_bank(kind)
    single = KernelBank(kind.kernels.given).written_out().resolve(train_and_test()[0])
    assert list(bank.names) == [entry.name for entry in single]
    if kind.set != "gaussians":
        assert list(bank.groups) == [entry.group for entry in single]
    assert len(bank.groups) == bank.n_kernels == kind.kernels.size
    assert bank.n_samples == N_TRAIN
    assert bank.names[-1] == single[-1].name


@every_kind()
def test_what_it_offers(make_bank, kind):
    """No more and no less than stands in the table; all of it can be called, and a problem refuses the rest."""
    bank = make_bank(kind)
    assert bank.can == kind.can
    assert all(callable(getattr(bank, capability)) for capability in kind.can - {"coefficients"})
    assert bank.workspace().can == kind.combined
    problem = Problem(bank, Hinge(), LpNorm(1), np.ones((1, N_TRAIN)), np.ones((1, N_TRAIN)))
    Solver("any", None, kind.can).require(problem)
    for capability in FINITE - kind.can:
        with pytest.raises(TypeError, match=f"'any' needs kernels that offer {capability}; these do not"):
            Solver("any", None, frozenset({capability})).require(problem)


@every_kind()
def test_it_has_all_that_the_protocol_asks(make_bank, kind):
    """All of it, but for what it does not say that it can do."""
    bank = make_bank(kind)
    missing = {name for name in members_of(Bank) - (FINITE - kind.can) if not hasattr(bank, name)}
    assert not missing
    assert bank.scale.shape == (bank.n_kernels,)


@every_setting()
def test_the_stated_precision_is_that_of_the_values(make_bank, kind, center, precision):
    """In the units of the stated rounding, no kernel value is off by more than a few."""
    for bank, truth, _ in every(make_bank, kind, center, precision):
        assert bank.precision in (precision, "double")  # small tables of features are held in double precision anyway
        held = 2.0 ** {"single": -24, "double": -53}[bank.precision]
        assert bank.unit_roundoff == held or (kind.is_interpolated and bank.unit_roundoff == max(held, 2e-14))
        if center == "raw" and kind.set not in ("small", "gaussians"):
            weights = kind.kernels.weights
            error = np.abs(combined_matrix(bank, bank.combine(weights)) - truth.combined(weights))
            assert error.max() <= 16 * bank.unit_roundoff * truth.size(weights).max()


@pytest.mark.parametrize("factor", [1e-12, 1e25])
@every_kind("combine", among=[name for name in LISTS if name != "dask kernels"])
def test_what_leaves_the_range_of_single_precision_is_held_in_double(make_bank, kind, factor):
    X = factor**2 * (train_and_test()[0] + 1.0)
    bank = make_bank(kind, [Linear(columns=[0]), Linear(columns=[1, 2])], X, normalize=None)
    assert bank.precision == "double"
    assert bank.unit_roundoff == 2.0**-53
    expected = X[:, [1, 2]] @ X[:, [1, 2]].T
    np.testing.assert_allclose(matrix_of(bank.combine(np.array([0.0, 1.0]))), expected, rtol=1e-12, atol=0)


# --- all of the kernels ----------------------------------------------------------------------------------------


@every_setting("combine")
def test_combine(make_bank, kind, center, precision):
    weights, m = kind.kernels.weights, kind.kernels.size
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        for w in (weights, np.ones(m), *np.eye(m)[[0, m // 2, m - 1]], np.zeros(m)):
            K = combined_matrix(bank, bank.combine(w))
            assert_close([K], [truth.combined(w)], allowed, [truth.size(w)])
            if kind.combined == {"array"}:
                assert np.array_equal(K, K.T)
            else:
                assert np.abs(K - K.T).max() <= allowed * truth.size(w).max()


@every_setting("quad_forms")
def test_quad_forms(make_bank, kind, center, precision):
    """Of one vector, of several, and of zero; of all kernels, and of some."""
    beta, zero = some_beta(), np.zeros((2, N_TRAIN))
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        expected, size = forms_of(truth.stack, beta)
        found = bank.quad_forms(dual_of(bank, beta))
        assert_close(found.T, expected, allowed, size)
        assert np.all(found >= 0.0)
        assert np.all(bank.quad_forms(dual_of(bank, zero)) == 0.0)
        for subset in subsets(bank.n_kernels):
            again = bank.quad_forms(dual_of(bank, beta), np.asarray(subset))
            # On a device, sums of float32 depend on what is summed beside them.
            assert_close(again.T, found[:, subset].T, allowed if "device" in kind.name else 1e-12, size[subset])
        if kind.takes_arrays:
            assert_close(bank.quad_forms(beta[1])[:, None], expected[:, [1]], allowed, size[:, [1]])
            assert bank.quad_forms(beta[0], [1, 0]).shape == (2,)


@every_setting("derivative_forms")
def test_derivative_forms(make_bank, kind, center, precision):
    """beta' (dK/dd_k) beta at some weights; by differences where the kernels are not summed."""
    beta, weights = some_beta(), kind.kernels.weights
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        expected, size = forms_of(truth.derivatives(weights), beta)
        found = bank.derivative_forms(weights, dual_of(bank, beta))
        assert_close(found.T, expected, max(allowed, 1e-8 * kind.computes_in_double), size)


@every_setting("matvecs")
def test_matvecs(make_bank, kind, center, precision):
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        for beta in some_beta():
            for subset in (None, *subsets(bank.n_kernels)):
                chosen = truth.stack if subset is None else truth.stack[subset]
                size = np.abs(chosen) @ np.abs(beta)
                assert_close(bank.matvecs(beta, subset), chosen @ beta, allowed, size)
                on_support = bank.matvecs(beta, subset, on_support=True)
                assert_close(on_support, (chosen @ beta) * (beta != 0), allowed, size)


@every_setting("inner_products")
def test_inner_products(make_bank, kind, center, precision):
    """<K_k, M> for a full symmetric M, for one of rank one, and for one that vanishes on most samples."""
    beta = some_beta()
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        for M in (beta.T @ beta, np.outer(beta[1], beta[1]), np.outer(beta[2], beta[2]), np.zeros((N_TRAIN, N_TRAIN))):
            for subset in (None, *subsets(bank.n_kernels)):
                chosen = truth.stack if subset is None else truth.stack[subset]
                expected, size = np.tensordot(chosen, M), np.tensordot(np.abs(chosen), np.abs(M))
                assert_close(bank.inner_products(M, subset)[:, None], expected[:, None], allowed, size[:, None])


@every_setting("kernel_products")
def test_kernel_products(make_bank, kind, center, precision):
    """Of a kernel with several vectors, wherever they are."""
    beta = some_beta()
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        at = bank.batches()
        for k in range(bank.n_kernels):
            products = at.fetch(bank.kernel_products(k, at.send(beta)))
            assert_close(products, beta @ truth.stack[k], allowed, np.abs(beta) @ np.abs(truth.stack[k]))
        K, weights = at.fetch(bank.combined(kind.kernels.weights)), kind.kernels.weights
        assert_close(K, np.tensordot(weights, truth.stack, 1), allowed, np.tensordot(weights, np.abs(truth.stack), 1))
        with pytest.raises(IndexError):
            bank.kernel_products(bank.n_kernels, at.send(beta))


@every_setting("centered_squares")
@pytest.mark.parametrize("weight", [np.ones(N_TRAIN), sample_weight()], ids=["plain", "weighted"])
def test_centered_squares(make_bank, kind, center, precision, weight):
    """||K_c||^2 with sample weights, of each kernel."""
    H = np.eye(N_TRAIN) - weight / weight.sum()
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        centered = H @ truth.stack @ H.T
        expected = np.einsum("i,kij,j->k", weight, centered**2, weight)
        size = np.einsum("i,kij,j->k", weight, truth.stack**2, weight)
        assert_close(bank.centered_squares(weight)[:, None], expected[:, None], 2 * allowed, size[:, None])


@every_kind()
def test_importances_divide_the_weight_of_a_kernel_over_its_columns(make_bank, kind):
    bank, m, n_features = make_bank(kind), kind.kernels.size, train_and_test()[0].shape[1]
    for k in (0, m // 2, m - 1):
        found = bank.importances(0.5 * np.eye(m)[k], n_features)
        columns = kind.kernels.single[k][0].columns
        assert found.shape == (n_features,)
        assert np.flatnonzero(found).tolist() == sorted(columns)
        if kind.set != "gaussians":
            np.testing.assert_allclose(found[columns], 0.5 / len(columns), rtol=1e-12)
    weights = kind.kernels.weights
    parts = [w * bank.importances(row, n_features) for w, row in zip(weights, np.eye(m), strict=True)]
    np.testing.assert_allclose(bank.importances(weights, n_features), np.sum(parts, axis=0), rtol=1e-12)


# --- some of the kernels, or of the samples --------------------------------------------------------------------


@every_setting("rows")
def test_rows(make_bank, kind, center, precision):
    indices = [0, N_TRAIN - 1, 5, 5]
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        for subset in (None, *subsets(bank.n_kernels)):
            chosen = truth.stack if subset is None else truth.stack[subset]
            assert_close(bank.rows(indices, subset), chosen[:, indices], allowed, chosen)
        assert bank.rows([], [0]).shape == (1, 0, N_TRAIN)


@every_setting("diagonal")
def test_diagonal(make_bank, kind, center, precision):
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        for subset in (None, *subsets(bank.n_kernels)):
            chosen = truth.stack if subset is None else truth.stack[subset]
            assert_close(bank.diagonal(subset), np.einsum("kii->ki", chosen), allowed, chosen)


@every_setting("largest_diagonals")
def test_largest_diagonals_are_upper_bounds(make_bank, kind, center, precision):
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        for subset in subsets(bank.n_kernels):
            found = bank.largest_diagonals(np.asarray(subset))
            largest = np.einsum("kii->ki", truth.stack[subset]).max(axis=1)
            assert found.shape == largest.shape
            assert np.all(np.isfinite(found))
            assert np.all(found >= largest * (1 - allowed))


@every_kind("peaks")
def test_peaks(make_bank, kind):
    """Places in order, and every kernel that is left out has a neighbor that is no worse."""
    bank, m = make_bank(kind), kind.kernels.size
    for seed in range(5):
        values = np.random.default_rng(seed).standard_normal(m)
        found = bank.peaks(values)
        assert np.all(np.diff(found) > 0)
        for k in np.setdiff1d(np.arange(m), found):
            assert values[k] <= values[max(k - 1, 0) : k + 2].max()
            assert type(kind.kernels.single[k][0]) is Gaussian
        best = [max(part, key=lambda k: values[k]) for part in parts_of(kind)]
        assert set(best) <= set(found.tolist())


def parts_of(kind):
    """The places of each ladder, and of each plain kernel by itself."""
    given = kind.kernels.given
    parts = [1] * sum(1 for kernel in given if not hasattr(kernel, "widths"))
    parts += [len(kernel) for kernel in given if hasattr(kernel, "widths")]
    ends = np.cumsum(parts)
    return [range(end - size, end) for end, size in zip(ends, parts, strict=True)]


def assert_is_bank_of(bank, stack, allowed, size=None):
    """It gives the numbers of these matrices, up to a part of the size of each kernel."""
    m, n = stack.shape[:2]
    size = np.abs(stack).max(axis=(1, 2)) if size is None else size
    weights, beta = np.linspace(0.0, 1.0, m), some_beta(2)[:, -n:]
    total = np.abs(beta).sum(axis=1)
    assert (bank.n_kernels, bank.n_samples, len(bank.names)) == (m, n, m)
    expected = np.tensordot(weights, stack, axes=1)
    assert_close([matrix_of(bank.combine(weights))], [expected], allowed, [weights @ size])
    assert_close(bank.quad_forms(beta).T, forms_of(stack, beta)[0], allowed, np.outer(size, total**2))
    largest = np.einsum("kii->ki", stack).max(axis=1)
    assert np.all(bank.largest_diagonals(np.arange(m)) >= largest - allowed * size)
    if bank.can >= {"matvecs", "rows", "diagonal"}:
        assert_close(bank.matvecs(beta[0]), stack @ beta[0], allowed, total[0] * size)
        assert_close(bank.diagonal(), np.einsum("kii->ki", stack), allowed, size)
        assert_close(bank.rows([n - 1]), stack[:, [n - 1]], allowed, size)


@every_setting("subset")
def test_a_subset_is_a_bank(make_bank, kind, center, precision):
    """A few kernels in any order, a few of these, and the last samples of them."""
    m = kind.kernels.size
    chosen = np.array([m - 1, 0, m // 2, 3, 1])
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        part, few = bank.subset(chosen), truth.stack[chosen]
        assert list(part.names) == [bank.names[k] for k in chosen]
        assert list(part.groups) == [bank.groups[k] for k in chosen]
        assert_is_bank_of(part, few, allowed)
        assert_is_bank_of(part.subset(np.array([3, 0])), few[[3, 0]], allowed)
        assert_is_bank_of(part.tail(5), few[:, -5:, -5:], allowed, np.abs(few).max(axis=(1, 2)))


@every_setting("tail")
def test_a_tail_is_a_bank(make_bank, kind, center, precision):
    """The last samples, normalized as all of them."""
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        for size in (7, 1, N_TRAIN):
            few = truth.stack[:, -size:, -size:]
            # What is small at these samples may be a difference of numbers that are not.
            assert_is_bank_of(bank.tail(size), few, allowed, np.abs(truth.stack).max(axis=(1, 2)))
        assert list(bank.tail(3).names) == list(bank.names)


@every_setting(among=["dask rows"])
def test_a_sample_of_rows_on_workers_is_a_bank(make_bank, kind, center, precision):
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        part, y, C = bank.coarse(N_TRAIN, bank.unknown, bank.unknown)  # all of them, in order
        assert_is_bank_of(part, truth.stack, allowed)
        assert list(part.names) == list(bank.names)
        np.testing.assert_array_equal(y, [np.arange(N_TRAIN) % 2])
        np.testing.assert_array_equal(C, np.ones((1, N_TRAIN)))


@every_kind()
def test_a_bank_with_a_coarse_size_has_a_part_for_a_first_guess(make_bank, kind):
    bank, _, _ = one(make_bank, kind)
    if bank.coarse_size is None:
        return
    y, C = np.arange(N_TRAIN)[None] % 2.0, np.ones((1, N_TRAIN))
    part, targets, costs = bank.coarse(6, y, C)
    assert part.n_samples == 6
    assert targets.shape == costs.shape == (1, 6)
    assert np.all(np.isin(targets, [0.0, 1.0]))
    assert np.array_equal(costs, np.ones((1, 6)))


@every_setting("tail", "subset")
def test_a_subset_of_a_tail_is_a_bank(make_bank, kind, center, precision):
    for bank, truth, allowed in every(make_bank, kind, center, precision):
        part, few = bank.tail(7).subset(np.array([3, 1])), truth.stack[[3, 1]]
        assert_is_bank_of(part, few[:, -7:, -7:], allowed, np.abs(few).max(axis=(1, 2)))


@every_kind("matvecs")
def test_a_kernel_may_stand_twice_in_a_subset(make_bank, kind):
    bank, truth, allowed = one(make_bank, kind)
    beta, m = some_beta(1)[0], bank.n_kernels
    for k in (0, 1, m - 1):
        size = np.abs(truth.stack[[k, k]]) @ np.abs(beta)
        assert_close(bank.matvecs(beta, [k, k]), [truth.stack[k] @ beta] * 2, allowed, size)
        assert_close(bank.rows([2], [k, k]), [truth.stack[k][[2]]] * 2, allowed, truth.stack[[k, k]])


# --- data ------------------------------------------------------------------------------------------------------


@every_setting("combine", among=[*LISTS_HERE, "ladder", "device ladder", "composite", "nystroem", "product"])
def test_sparse_equals_dense(make_bank, kind, center, precision):
    X, Z = train_and_test()
    centered = {"center": True} if center == "centered" else {}
    own = {} if kind.computes_in_double else {"precision": precision}
    weights, beta = kind.kernels.weights, some_beta(1)
    for normalize in kind.normalizations:
        truth, allowed = truth_of(kind, normalize, bool(centered)), kind.allowed(precision)
        bank = make_bank(kind, X=sp.csr_matrix(X), normalize=normalize, **centered, **own)
        assert_close([matrix_of(bank.combine(weights))], [truth.combined(weights)], allowed, [truth.size(weights)])
        if "quad_forms" in kind.can:
            expected, size = forms_of(truth.stack, beta)
            assert_close(bank.quad_forms(beta).T, expected, allowed, size)
        if kind.set == "list":
            stack = naive_stack(kind.set, normalize, bool(centered), of_test=True)
            size = [np.tensordot(weights, np.abs(stack), axes=1)]
            cross = np.tensordot(weights, stack, axes=1)
            assert_close([bank.kernel(weights).cross(sp.csr_matrix(Z))], [cross], allowed, size)


@every_kind()
@pytest.mark.parametrize("center", [False, True], ids=["raw", "centered"])
def test_sample_weights_count_like_copies(make_bank, kind, center):
    """Means and traces are weighted."""
    if center and not kind.centers:
        with pytest.raises(ValueError, match="cannot be centered"):
            make_bank(kind, center=True)
        return
    for normalize in kind.normalizations:
        settings = {"center": True} if center else {}
        bank, truth, allowed = one(make_bank, kind, normalize=normalize, sample_weight=sample_weight(), **settings)
        weights = kind.kernels.weights
        K = combined_matrix(bank, bank.combine(weights))
        assert_close([K], [truth.combined(weights)], allowed, [truth.size(weights)])


@pytest.mark.parametrize("center", [False, True], ids=["raw", "centered"])
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_cross(make_bank, normalize, center, precision):
    """On the training samples it is the training kernel; on others, the factors learned in training apply."""
    X, Z = train_and_test()
    bank = make_bank(KINDS["auto"], normalize=normalize, center=center, precision=precision)
    m = bank.n_kernels
    for rows, of_test in ((X, False), (Z, True)):
        stack = naive_stack("list", normalize, center, of_test=of_test)
        for weights in (SETS["list"].weights, *np.eye(m)):
            size = np.tensordot(weights, np.abs(stack), axes=1)
            expected = [np.tensordot(weights, stack, axes=1)]
            assert_close([bank.kernel(weights).cross(rows)], expected, TOLERANCE[precision], [size])


@pytest.fixture
def tiny_blocks(monkeypatch):
    """Passes cut into blocks of one or two rows."""
    for name, module in list(sys.modules.items()):
        if name.startswith("manykernels."):
            for constant in ("BLOCK_ENTRIES", "_BLOCK_ENTRIES", "_BLOCK_BYTES"):
                if hasattr(module, constant):
                    monkeypatch.setattr(module, constant, 1)


CENTERED_OR_NOT = [(KINDS[name], center) for name in HERE for center in (False, True)[: 1 + KINDS[name].centers]]


@pytest.mark.parametrize(
    ("kind", "center"), [marked(kind, "centered" if center else "raw") for kind, center in CENTERED_OR_NOT]
)
@pytest.mark.usefixtures("tiny_blocks")
def test_many_blocks_give_the_same_numbers(make_bank, kind, center):
    center = center == "centered"
    settings = {"center": True} if center else {}
    bank, truth, allowed = one(make_bank, kind, X=train_and_test()[0], **settings)
    weights, beta = kind.kernels.weights, some_beta()
    assert_close([matrix_of(bank.combine(weights))], [truth.combined(weights)], allowed, [truth.size(weights)])
    expected, size = forms_of(truth.derivatives(weights), beta)
    forms = bank.derivative_forms(weights, beta).T
    assert_close(forms, expected, max(allowed, 1e-8 * kind.computes_in_double), size)
    if kind.set == "list":
        cross = np.tensordot(weights, naive_stack("list", "mean_diag", center, of_test=True), axes=1)
        found = bank.kernel(weights).predict(train_and_test()[1], beta[:1])
        assert_close(found, beta[:1] @ cross.T, 1e-11, [np.abs(cross) @ np.abs(beta[0])])


@every_kind("rows", among=LISTS_HERE)
@pytest.mark.parametrize("n", [1, 2, 3, 70])
def test_few_samples_and_many(make_bank, kind, n):
    """From one sample to several blocks a thread."""
    X = samples(n, seed=6)[:, :N_FEATURES] + 0.1
    functions = [naive.gaussian(1.0), naive.linear(), naive.polynomial(2)]
    bank = make_bank(kind, [Gaussian(1.0), Linear(), Polynomial(2)], X, normalize=None)
    stack = [naive.gram(function, X, X) for function in functions]
    beta = np.linspace(-1, 1, n) if n > 1 else np.ones(1)
    for k, K in enumerate(stack):
        assert_close([matrix_of(bank.combine(np.eye(3)[k]))], [K], 1e-6)
    expected = np.array([beta @ K @ beta for K in stack])
    np.testing.assert_allclose(bank.quad_forms(beta), expected, rtol=2e-6, atol=1e-5)
    assert_close(bank.rows([0, n - 1]), [K[[0, n - 1]] for K in stack], 1e-6)


# --- single findings -------------------------------------------------------------------------------------------


@every_kind(among=LISTS_HERE)
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("width", [64.0, 1000.0])
def test_centering_a_wide_kernel_keeps_its_digits(make_bank, kind, precision, width):
    """A wide Gaussian is 1 minus something tiny; centered and scaled, that something is the whole kernel."""
    X = train_and_test()[0][:, :N_FEATURES]
    bank = make_bank(kind, [Gaussian(width)], X, center=True, precision=precision)
    squares = np.array([[np.sum((a - b) ** 2) for b in X] for a in X])
    away = -np.expm1(-squares / (2 * width**2))  # 1 - K, to full precision
    H = np.eye(N_TRAIN) - 1 / N_TRAIN
    expected = -H @ away @ H
    expected /= np.trace(expected) / N_TRAIN
    tolerance = 1e-6 if precision == "single" else 1e-8  # 1 - K itself is known to 1e-16 / (1 - K)
    assert np.abs(matrix_of(bank.combine(np.ones(1))) - expected).max() <= tolerance * np.abs(expected).max()


@every_kind(among=LISTS_HERE)
@pytest.mark.parametrize("frequency", [1.0, 1e3])
def test_fast_waves_do_not_depend_on_the_storage(make_bank, kind, frequency):
    """A phase of thousands of radians needs the distance in double precision, whatever is held afterwards."""
    X = train_and_test()[0][:, :1] * 3.0
    bank = make_bank(kind, [Dirichlet(frequency)], X, normalize=None)
    expected = naive.gram(naive.dirichlet(frequency), X, X)
    assert_close([matrix_of(bank.combine(np.ones(1)))], [expected], 1e-6)


# --- what is refused -------------------------------------------------------------------------------------------


def wrong_subsets(m):
    return [m], [-m - 1], [-1], [0, 99]


@every_kind("quad_forms")
def test_a_subset_outside_the_bank_is_refused(make_bank, kind):
    """It must not return memory that nobody wrote."""
    bank, beta = make_bank(kind), some_beta(1)
    questions = {
        "quad_forms": lambda subset: bank.quad_forms(dual_of(bank, beta), subset),
        "matvecs": lambda subset: bank.matvecs(beta[0], subset),
        "rows": lambda subset: bank.rows([0], subset),
        "diagonal": lambda subset: bank.diagonal(subset=subset),
        "inner_products": lambda subset: bank.inner_products(np.eye(N_TRAIN), subset),
        "subset": lambda subset: bank.subset(np.array(subset)),
    }
    for name in kind.can & set(questions):
        for subset in wrong_subsets(bank.n_kernels):
            with pytest.raises((ValueError, IndexError)):
                pytest.fail(f"{name} of {subset}: {questions[name](subset)}")


@every_kind("rows")
def test_rows_outside_the_samples_are_refused(make_bank, kind):
    bank = make_bank(kind)
    for rows in ([N_TRAIN], [-N_TRAIN - 1], [0, 99]):
        with pytest.raises((ValueError, IndexError)):
            pytest.fail(f"{rows}: {bank.rows(rows, [0])}")


@every_kind(among=HERE)
def test_vectors_of_a_wrong_length_are_refused(make_bank, kind):
    bank, m = make_bank(kind), kind.kernels.size
    questions = {
        "quad_forms": lambda n: bank.quad_forms(np.ones(n)),
        "derivative_forms": lambda n: bank.derivative_forms(np.ones(m), np.ones((1, n))),
        "matvecs": lambda n: bank.matvecs(np.ones(n)),
        "inner_products": lambda n: bank.inner_products(np.ones((n, n))),
    }
    for name in kind.can & set(questions):
        for n in (N_TRAIN - 1, N_TRAIN + 1):
            with pytest.raises((ValueError, IndexError)):
                pytest.fail(f"{name} of {n} samples: {questions[name](n)}")


@every_kind()
def test_bad_weights_are_refused(make_bank, kind):
    bank, m = make_bank(kind), kind.kernels.size
    for weights in (np.ones(m - 1), np.ones(m + 1), np.ones(1), -np.eye(m)[0], np.full(m, np.nan), np.ones((m, 1))):
        with pytest.raises(ValueError, match=r"^weights must"):
            pytest.fail(f"combine with weights of shape {weights.shape}: {bank.combine(weights)}")


@every_kind(among=["auto", "rows", "dask kernels"])
def test_bad_weights_of_a_prediction_are_refused(make_bank, kind):
    bank, m = make_bank(kind), kind.kernels.size
    for weights in (np.ones(m - 1), -np.eye(m)[0], np.full(m, np.nan), np.ones((m, 1))):
        for use in (bank.kernel, lambda w: bank.kernel(w).cross(train_and_test()[1])):
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
        bind_with(KernelBank([Linear()]), np.eye(3), **settings)


@every_kind()
def test_an_unknown_normalization_is_refused(make_bank, kind):
    with pytest.raises(ValueError, match=r"^normalize must"):
        make_bank(kind, normalize="nonsense")


def test_every_set_of_kernels_is_tested():
    """The sets hold ladders beside plain kernels, and a kernel of a user's own."""
    assert {kind.set for kind in KINDS.values()} == set(SETS)
    assert set(FEATURES) == set(range(N_FEATURES))


@every_kind()
@pytest.mark.parametrize("center", [False, True], ids=["raw", "centered"])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_bank_says_what_became_of_its_kernels(make_bank, kind, precision, center):
    """Where they are and with how many digits, not what was wished for."""
    if center and not kind.centers:
        pytest.skip("a kernel that is not a sum is not centered")
    settings = {"center": True} if center else {}
    bank = make_bank(kind, precision=precision, **settings)
    where, _, how = kind.name.rpartition(" ")
    # The means of centered ladders are interpolated, on the CPU; plain kernels beside them stay on the device.
    is_there = where == "device" and not (center and how == "ladder")
    assert bank.placement.device == bank.held_on == ("torch:cpu" if is_there else "cpu")
    assert bank.placement.precision == bank.precision
    assert bank.placement.spare == bank.spare
    assert (bank.placement.client is not None) == (where == "dask")
    assert (bank.placement.approximation is not None) == (how in ("nystroem", "fourier") or kind.name == "dask rows")
    if precision == "double":
        assert bank.precision == "double"


@pytest.mark.parametrize("device", ["cpu", "torch:cpu"])
def test_one_kernel_with_parameters_is_in_double_precision_on_the_cpu(device):
    if device != "cpu" and not has_device(device):
        pytest.skip("needs torch")
    place = Placement(10**8, device, client="never asked", precision="single")
    found = bind([Gaussian(1.0), Gaussian(2.0)], train_and_test()[0], Recipe(combination="product"), place).placement
    assert (found.precision, found.device, found.client) == ("double", "cpu", None)


@every_kind(among=[name for name in KINDS if name.startswith("device")])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_device_without_double_precision_hands_what_needs_it_to_the_cpu(kind, precision, monkeypatch):
    own = Device.__init__

    def poor(self, *rest, **options):
        own(self, *rest, **options)
        self.has_double, self.wide = False, self.torch.float32

    monkeypatch.setattr(Device, "__init__", poor)
    bank = make(kind, precision=precision)
    assert bank.placement.precision == bank.precision
    assert bank.placement.device == ("cpu" if bank.precision == "double" else "torch:cpu")
    assert bank.placement.why.startswith("'torch:cpu' lacks the double") == (bank.placement.device == "cpu")


@every_kind()
def test_several_problems_at_once_are_for_banks_that_have_no_device_and_no_memory_of_the_last(make_bank, kind):
    where, _, how = kind.name.rpartition(" ")
    alone = where in ("device", "dask") or how in ("rows", "nystroem", "fourier")
    assert make_bank(kind).concurrent == (not alone)


@every_kind("tail", among=[name for name in HERE if name != "product"])
def test_what_a_solver_may_take_is_what_the_plan_says_and_beside_a_tail_no_more(kind):
    """None where nobody counts; of features it is what the table leaves of the budget."""
    where, _, how = kind.name.rpartition(" ")
    options = {"device": "torch:cpu"} if where else {}
    counts_itself = how in ("nystroem", "fourier")
    if counts_itself:
        options["approximation"] = features_of(how, 64)
    storage = how if how in ("packed", "factors", "recomputed", "rows") else "auto"
    for spare in (None, 10**7):
        place = Placement(10**8, storage=storage, spare=spare, **options)
        bank = bind(KernelBank(kind.kernels.given), train_and_test()[0], Recipe(), place, 0)
        assert counts_itself or bank.spare == spare
        assert bank.placement.spare == bank.spare
        assert bank.tail(20).spare == bank.spare_beside_tail(20)
    assert 0 < bank.spare_beside_tail(20) <= (10**8 if counts_itself else 10**7 + 10**8)
    if how not in ("rows", "nystroem", "fourier"):
        assert bank.spare_beside_tail(20) == bank.spare
