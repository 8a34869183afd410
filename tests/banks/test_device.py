"""Banks on a device, on torch's own CPU device, beside those on the CPU; the contract tests have the single numbers."""

import numpy as np
import pytest

from manykernels.banks import Placement, Recipe, bind
from manykernels.banks.device import distances
from manykernels.banks.device.feature_maps import DeviceMaps
from manykernels.banks.device.learned import predict_on
from manykernels.banks.device.packed import DeviceBank, DeviceRowsBank
from manykernels.banks.device.storage import Computed, Factors, Gaussians, Matrices
from manykernels.compute.gpu import Device, has_device
from manykernels.kernels import Gaussian, GaussianLadder, KernelBank, Linear, Overlap, Polynomial, RandomFourier
from manykernels.kernels.feature_maps import FeatureMaps
from manykernels.kernels.shared_distances import BoundKernel
from tests.binding import bind_with
from tests.contracts.truth import Laplacian

pytestmark = pytest.mark.skipif(not has_device("torch:cpu"), reason="needs torch")
N = 90


def data(n=N, d=4):
    return np.random.default_rng(0).normal(size=(n, d))


def some_kernels():
    widths = [Gaussian(w, columns=c) for w in (0.5, 2.0, 8.0) for c in (None, [0], [1, 2])]
    return [*widths, Linear(), Overlap(2), Polynomial(2, columns=[3]), Laplacian(1.0)]


def both(kernels=None, n=N, **options):
    bank, X = KernelBank(kernels or some_kernels()), data(n)
    return bind_with(bank, X, **options), bind_with(bank, X, device="torch:cpu", **options)


def some_beta(n=N, n_tasks=2, zeros=0.5):
    rng = np.random.default_rng(1)
    return rng.normal(size=(n_tasks, n)) * (rng.random((n_tasks, n)) > zeros)


def size_of(bank, beta):
    return np.abs(beta).sum(axis=1)[:, None] ** 2 * bank.largest_diagonals(np.arange(bank.n_kernels))


def test_what_is_held_how():
    _, bank = both()
    assert [type(storage) for storage in bank.storages] == [Factors, Gaussians, Matrices]
    assert bank.storages[1].indices.size == 9
    assert "3 column sets" in bank.describe_storage()
    _, centered = both(center=True)
    assert Gaussians not in [type(storage) for storage in centered.storages]  # their digits are needed
    _, computed = both(storage="recomputed")
    assert [type(storage) for storage in computed.storages] == [Gaussians, Computed]


@pytest.mark.parametrize("few", [0, 1500], ids=["squares", "pairs"])
@pytest.mark.parametrize("storage", ["auto", "recomputed"])
@pytest.mark.parametrize("zeros", [0.0, 0.4, 0.8, 1.0])
def test_quadratic_forms_by_pairs_and_by_squares(monkeypatch, storage, zeros, few):
    monkeypatch.setattr(distances, "_FEW_SAMPLES", few)
    here, there = both(storage=storage, precision="single")
    beta = some_beta(zeros=zeros)
    error = np.abs(there.quad_forms(beta) - here.quad_forms(beta))
    assert np.all(error <= 1e-6 * size_of(here, beta))
    M = beta.T @ beta
    assert np.all(np.abs(there.inner_products(M) - here.inner_products(M)) <= 1e-6 * size_of(here, beta).sum(axis=0))


def test_the_error_of_a_form_in_single_precision():
    """A few 2^-24 of the sum of the absolute values of its terms, also where these nearly cancel."""
    rng = np.random.default_rng(3)
    X, n = rng.normal(size=(2000, 5)), 2000
    beta = np.where(np.arange(n) % 2, 1.0, -1.0) * rng.uniform(0.5, 1.0, n)
    beta -= beta.mean()
    kernels = [Gaussian(w) for w in (0.5, 2.0, 64.0)]
    found = bind(KernelBank(kernels), X, placement=Placement(device="torch:cpu")).quad_forms(beta)
    squares = ((X[:, None] - X) ** 2).sum(-1)
    for k, kernel in enumerate(kernels):
        K = np.exp(-squares / (2 * kernel.width**2))
        terms = np.abs(beta) @ K @ np.abs(beta)
        assert abs(found[k] - beta @ K @ beta) <= 2.0**-24 * terms


def test_missing_views():
    X = data()
    X[::4, 1:3] = np.nan
    bank = KernelBank(
        [Gaussian(w, columns=[1, 2]) for w in (1.0, 3.0)] + [Linear(columns=[1, 2]), Gaussian(1.0, columns=[0])]
    )
    beta, weights = some_beta(), np.array([0.2, 0.3, 0.1, 0.4])
    for storage in ("auto", "packed", "recomputed"):
        for precision, tolerance in (("single", 1e-6), ("double", 1e-12)):
            here = bind(bank, X, placement=Placement(precision="double"))
            there = bind(bank, X, placement=Placement(device="torch:cpu", storage=storage, precision=precision))
            np.testing.assert_allclose(
                there.combine(weights).array, here.combine(weights).array, rtol=0, atol=3 * tolerance
            )
            error = np.abs(there.quad_forms(beta) - here.quad_forms(beta))
            assert np.all(error <= tolerance * size_of(here, beta))


def test_a_subset_is_on_the_cpu_for_few_samples_only():
    _, bank = both()
    assert not isinstance(bank.subset([3, 1]), DeviceBank)
    _, bank = both([Gaussian(1.0), Gaussian(2.0), Laplacian(1.0)], n=600)
    part = bank.subset([2, 1])
    assert isinstance(part, DeviceBank)
    assert part.names == [bank.names[2], bank.names[1]]
    np.testing.assert_allclose(part.combine(np.array([0.0, 1.0])).array, bank.matrix(1), rtol=0, atol=1e-7)
    again = part.subset([1])
    np.testing.assert_allclose(again.matvecs(np.ones(600))[0], bank.matrix(1).sum(axis=0), rtol=1e-6)


def test_memory_that_does_not_suffice_means_smaller_blocks_and_less_that_is_held(monkeypatch):
    """The device has little memory, and says so at every block that is not small."""
    expected = both()[0]
    own_sweep, own_empty = Device.sweep, Device.empty_or_none

    def sweep(self, count, n_rows, row_entries, compute):
        def step(kernels, rows):
            if (kernels.stop - kernels.start) * (rows.stop - rows.start) * row_entries > 3000:
                raise self.torch.cuda.OutOfMemoryError("CUDA out of memory")
            return compute(kernels, rows)

        return own_sweep(self, count, n_rows, row_entries, step)

    def empty(self, *shape, dtype):
        return None if np.prod(shape) > N * N else own_empty(self, *shape, dtype=dtype)

    monkeypatch.setattr(Device, "sweep", sweep)
    monkeypatch.setattr(Device, "empty_or_none", empty)
    monkeypatch.setattr(distances, "_FEW_SAMPLES", 50)
    bank = both()[1]
    assert "computed" in bank.describe_storage()
    weights, beta = np.linspace(0.0, 1.0, bank.n_kernels), some_beta(zeros=0.2)
    np.testing.assert_allclose(bank.combine(weights).array, expected.combine(weights).array, rtol=0, atol=1e-5)
    assert np.all(np.abs(bank.quad_forms(beta) - expected.quad_forms(beta)) <= 1e-6 * size_of(expected, beta))
    np.testing.assert_allclose(bank.matvecs(beta[0]), expected.matvecs(beta[0]), rtol=0, atol=1e-4)


@pytest.mark.parametrize("fits", [True, False], ids=["held", "in blocks"])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_the_combined_kernel_on_a_device(monkeypatch, fits, precision):
    tolerance = {"single": 1e-6, "double": 1e-13}[precision]
    here = both(precision=precision)[0]
    bank = bind(
        KernelBank(some_kernels()), data(), placement=Placement(device="torch:cpu", storage="rows", precision=precision)
    )
    assert isinstance(bank, DeviceRowsBank)
    if not fits:
        monkeypatch.setattr(Device, "empty_or_none", lambda self, *shape, dtype: None)
    weights, K = np.linspace(0.0, 0.1, bank.n_kernels), bank.workspace()
    for own in (weights, weights[::-1].copy()):
        bank.combine(own, out=K)
        expected, beta = here.combine(own).array, some_beta()
        size = np.abs(expected).max() * np.abs(beta).sum(axis=1).max()
        np.testing.assert_allclose(K.product(beta), beta @ expected, rtol=0, atol=tolerance * size)
        np.testing.assert_allclose(K.diagonal(), expected.diagonal(), rtol=1e-6)
        rows = np.array([5, 80, 3])
        np.testing.assert_allclose(K.block(rows), expected[np.ix_(rows, rows)], rtol=0, atol=2 * tolerance)
        moved = K.columns_product(rows, np.array([1.0, -2.0, 0.5]))
        np.testing.assert_allclose(moved, expected[:, rows] @ [1.0, -2.0, 0.5], rtol=0, atol=8 * tolerance)
    assert np.all(K.product(np.zeros((1, N))) == 0.0)


# -- ladders ---------------------------------------------------------------------------------------------------------


LADDERS = [
    GaussianLadder(low=0.25, high=16.0, count=300, columns=[0]),
    GaussianLadder(low=0.5, high=32.0, count=200),
    GaussianLadder(low=0.1, high=1.0, count=100, columns=[0]),
]


@pytest.mark.parametrize("normalize", ["mean_diag", "trace", "cosine", None])
def test_every_kernel_of_a_ladder_is_the_true_one(normalize):
    X, beta = data(), some_beta()
    bank = bind(KernelBank(LADDERS), X, Recipe(normalize=normalize), Placement(device="torch:cpu"))
    exact = bind(KernelBank(LADDERS).written_out(), X, Recipe(normalize=normalize), Placement(precision="double"))
    assert list(bank.names[:3]) == list(exact.names[:3])
    error = np.abs(bank.quad_forms(beta) - exact.quad_forms(beta))
    assert np.all(error <= 1e-6 * size_of(exact, beta))
    subset = np.array([599, 3, 350, 301])
    np.testing.assert_allclose(bank.quad_forms(beta[0], subset), bank.quad_forms(beta)[0, subset], rtol=1e-5)
    M = beta.T @ beta
    for chosen in (None, subset):
        inner = bank.inner_products(M, chosen)
        expected = exact.inner_products(M, chosen)
        assert np.all(np.abs(inner - expected) <= 1e-6 * np.abs(M).sum())
    few, many = np.zeros(600), np.random.default_rng(4).random(600)
    few[[2, 400]] = 0.5
    for weights in (few, many, np.zeros(600)):
        scale = exact.scale.max() * (weights.sum() + 1.0)
        np.testing.assert_allclose(bank.combine(weights).array, exact.combine(weights).array, rtol=0, atol=1e-6 * scale)


def test_ladders_in_double_precision_beside_plain_kernels_and_on_few_samples():
    X, beta = data(), some_beta()
    kernels = [Linear(), Gaussian(1.0, columns=[0]), *LADDERS]
    bank = bind(KernelBank(kernels), X, placement=Placement(device="torch:cpu", precision="double"))
    exact = bind(KernelBank(kernels).written_out(), X, placement=Placement(precision="double"))
    assert bank.n_kernels == exact.n_kernels == 602
    np.testing.assert_allclose(bank.quad_forms(beta), exact.quad_forms(beta), rtol=0, atol=1e-11)
    part, few = bank.tail(20), exact.tail(20)
    np.testing.assert_allclose(part.quad_forms(beta[:, -20:]), few.quad_forms(beta[:, -20:]), rtol=0, atol=1e-11)
    chosen = np.array([601, 0, 5])
    np.testing.assert_allclose(bank.subset(chosen).matvecs(beta[0]), exact.subset(chosen).matvecs(beta[0]), atol=1e-11)
    weights = np.random.default_rng(5).random(602)
    np.testing.assert_allclose(bank.combine(weights).array, exact.combine(weights).array, rtol=0, atol=1e-10)


# -- predictions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"center": True}, {"normalize": "cosine"}], ids=str)
def test_predictions(settings):
    bank, Z = both(**settings)[0], data(33) + 0.1
    kernel, coef = bank.kernel(np.linspace(0.0, 1.0, bank.n_kernels)), some_beta()
    device = Device("torch:cpu")
    device.entries = 500
    np.testing.assert_allclose(predict_on(device, kernel, Z, coef), kernel.predict(Z, coef), rtol=0, atol=1e-10)


def test_waves_far_from_the_origin_are_those_that_single_rows_have_on_the_cpu():
    kernel, X = RandomFourier(0.3, n_components=6), 1e12 + data(9)
    maps = FeatureMaps([BoundKernel(kernel, np.arange(4), "waves", "all")], np.ones(1), False, 0.0)
    device = Device("torch:cpu")
    np.testing.assert_array_equal(device.fetch(DeviceMaps(device, maps).transform(X)), maps.transform(X)[0])


# -- little memory on the device -------------------------------------------------------------------------------------


def with_memory(monkeypatch, free):
    """Let devices say that so many bytes are free, and refuse tensors of more."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Refusing(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            is_new = hasattr(result, "element_size") and not result._is_view()
            if is_new and result.numel() * result.element_size() > free:
                raise RuntimeError("CUDA out of memory")
            return result

    monkeypatch.setattr(Device, "free_bytes", lambda self: free)
    return Refusing()


@pytest.mark.parametrize(
    "kernels", [some_kernels(), LADDERS, [*some_kernels(), *LADDERS]], ids=["list", "ladders", "both"]
)
def test_a_combined_kernel_that_does_not_fit_on_the_device_is_written_in_blocks(monkeypatch, kernels):
    weights = np.linspace(0.0, 0.1, len(KernelBank(kernels)))
    expected = both(kernels)[0].combine(weights).array
    with with_memory(monkeypatch, 8 * N * N - 1):
        K = both(kernels)[1].combine(weights).array
    np.testing.assert_allclose(K, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    assert np.array_equal(K, K.T)


@pytest.mark.parametrize("storage", ["auto", "packed", "recomputed", "rows"])
def test_a_bank_leaves_room_for_the_combined_kernel(monkeypatch, storage):
    """Whatever the storage, what is held and the matrix that is filled fit into what is there to hold things in."""
    free = 200_000  # five matrices in single precision
    monkeypatch.setattr(Device, "free_bytes", lambda self: free)
    bank = both([Laplacian(w) for w in np.geomspace(0.5, 5.0, 12)], storage=storage)[1]
    held = sum(part.stack.numel() * part.stack.element_size() for part in bank.storages if isinstance(part, Matrices))
    combined = 4 * N * N if storage == "rows" else Device("torch:cpu").fill_bytes(N)
    assert held + combined <= 0.8 * free
    assert (held > 0) == (storage != "recomputed")


def test_plain_kernels_leave_half_of_the_device_to_ladders(monkeypatch):
    monkeypatch.setattr(Device, "free_bytes", lambda self: 500_000)
    plain = [Laplacian(w) for w in np.geomspace(0.5, 5.0, 30)]
    parts = both([*plain, GaussianLadder(low=0.25, high=16.0, count=300, columns=[0])])[1].parts
    held = sum(
        part.stack.numel() * part.stack.element_size() for part in parts[0].storages if isinstance(part, Matrices)
    )
    assert 0 < held <= 200_000
    alone = both(plain)[1]
    assert sum(part.indices.size for part in alone.storages if isinstance(part, Matrices)) > held // (4 * N * N)


def test_a_working_set_that_comes_back_takes_the_room_that_there_is():
    triangle = 4 * N * (N + 1) // 2
    kernels = [*some_kernels(), GaussianLadder(low=0.25, high=16.0, count=300, columns=[0])]
    bank, exact = both(kernels, memory_budget=2 * 5 * triangle)[1], both(kernels)[0]
    chosen = np.array([12, 3, 0, 9, 1, 2, 4])
    part = bank.parts[0].subset(chosen)
    assert part.describe_storage() == f"5 packed ({5 * triangle / 1000:.3g} kB), 2 recomputed in each pass"
    assert bank.parts[0].room.left == 0
    beta = some_beta()
    error = np.abs(part.quad_forms(beta) - exact.parts[0].quad_forms(beta, chosen))
    assert np.all(error <= 1e-6 * size_of(part, beta))
    del part
    assert bank.parts[0].room.left == 5 * triangle
