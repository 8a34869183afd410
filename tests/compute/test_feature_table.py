"""Tables of features, in memory and on torch's own CPU device: the same numbers as NumPy gives."""

import numpy as np
import pytest

from manykernels.compute.device_table import DeviceFeatureTable
from manykernels.compute.feature_table import FeatureTable
from manykernels.compute.gpu import Device, has_device

needs_torch = pytest.mark.skipif(not has_device("torch:cpu"), reason="needs torch")
N, FIRST = 500, np.array([0, 3, 4, 11])
Z = np.random.default_rng(0).normal(size=(N, 11)) + 0.5
WEIGHT = np.random.default_rng(1).random(N)


def in_memory(dtype, weight, share):
    budget = 10**9 if share == 1 else 50_000
    return FeatureTable(lambda low, high: Z[low:high], N, 11, dtype, budget, weight)


def on_device(dtype, weight, share):
    device = Device("torch:cpu")
    device.entries = 2000
    free = device.free_bytes() if share == 1 else int(share * Z.size * np.dtype(dtype).itemsize / 0.7) + 1
    device.free_bytes = lambda: free
    table = DeviceFeatureTable(device, lambda rows: device.send(Z[rows]), N, 11, dtype, weight)
    assert table.has_all == (share == 1)
    assert ("of which 40% are kept" in table.describe()) == (share == 0.4)
    device.free_bytes = lambda: 10**9
    return table


@pytest.fixture(params=[np.float32, np.float64], ids=["single", "double"])
def dtype(request):
    return request.param


@pytest.fixture(params=[None, WEIGHT], ids=["plain", "centered"])
def weight(request):
    return request.param


@pytest.fixture(params=[in_memory, pytest.param(on_device, marks=needs_torch)])
def kind(request):
    return request.param


@pytest.fixture(params=[1, 0.4, 0], ids=["held", "partly held", "not held"])
def table(kind, dtype, weight, request):
    return kind(dtype, weight, request.param)


@pytest.fixture
def rows(weight):
    """The table as it should be."""
    return Z - (0.0 if weight is None else np.average(Z, axis=0, weights=weight))


@pytest.fixture
def close(dtype):
    return {"rtol": 0, "atol": 2e-4 if dtype is np.float32 else 1e-11}


def test_products(table, rows, close):
    rng = np.random.default_rng(2)
    left, right = rng.normal(size=(2, N)), rng.normal(size=(3, 11))
    np.testing.assert_allclose(table.mean, (Z - rows)[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(table.times(right), right @ rows.T, **close)
    np.testing.assert_allclose(table.transposed_times(left), left @ rows, **close)
    np.testing.assert_allclose(table.squares_times(left), left @ rows**2, **close)
    np.testing.assert_allclose(table.row_squares(right[0]), rows**2 @ right[0], **close)
    np.testing.assert_allclose(table.tail(7), rows[-7:], **close)
    assert table.transposed_times(left).flags.c_contiguous


def test_squares_of_parts(table, rows, close):
    sums, largest = table.squares_by_part(FIRST, WEIGHT)
    squares = np.add.reduceat(rows**2, FIRST[:-1], axis=1)
    np.testing.assert_allclose(sums, WEIGHT @ squares, **close)
    np.testing.assert_allclose(largest, squares.max(axis=0), **close)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("used", [11, 5])
def test_bordered_systems(table, rows, intercept, used):
    rng = np.random.default_rng(3)
    factors, curvature = rng.random(11) * (np.arange(11) < used), rng.random(N) * (np.arange(N) % 3 > 0)
    right = rng.normal(size=12)
    X = np.column_stack([rows * np.sqrt(factors), np.full(N, float(intercept))])
    A = X.T @ (curvature[:, None] * X) + np.diag([1.0] * 11 + [0.0 if intercept else 1.0])
    expected = np.linalg.solve(A, np.where(np.append(factors > 0, True), right, 0.0))
    assert table.can_factor(11)
    np.testing.assert_allclose(table.bordered_solver(curvature, factors, intercept)(right), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(table.tail(N), rows, rtol=0, atol=1e-6)  # nothing was changed


def test_a_singular_system_is_solved_about(kind):
    # All rows are alike and none bends the objective but through the intercept: rounding may not break it.
    table = kind(np.float64, None, 1)
    solve = table.bordered_solver(np.full(N, 1e-300), np.full(11, 1e-300), True)
    assert np.all(np.isfinite(solve(np.append(np.ones(11), 0.0))))


@needs_torch
def test_rows_by_number():
    for share in (1, 0.4):
        found = on_device(np.float64, WEIGHT, share).rows(np.array([499, 3]))
        np.testing.assert_allclose(found.numpy(), (Z - np.average(Z, axis=0, weights=WEIGHT))[[499, 3]], atol=1e-12)


@needs_torch
@pytest.mark.parametrize("share", [1, 0.4, 0], ids=["held", "partly held", "not held"])
def test_products_that_find_no_memory_are_tried_again_with_fewer_rows(monkeypatch, share):
    table, products = on_device(np.float64, WEIGHT, share), Device.products

    def refusing(self, values, vectors):
        if max(values.shape) > 150:
            raise RuntimeError("CUDA out of memory")
        return products(self, values, vectors)

    table._device.entries = 8000
    monkeypatch.setattr(Device, "products", refusing)
    rng = np.random.default_rng(2)
    left, right, rows = rng.normal(size=(2, N)), rng.normal(size=(3, 11)), Z - np.average(Z, axis=0, weights=WEIGHT)
    np.testing.assert_allclose(table.times(right), right @ rows.T, rtol=0, atol=1e-11)
    np.testing.assert_allclose(table.transposed_times(left), left @ rows, rtol=0, atol=1e-11)
