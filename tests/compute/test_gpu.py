"""The primitives of a device, on torch's own CPU device, against NumPy; what happens without torch or memory."""

import builtins
import importlib.util
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from manykernels.compute.gpu import Device, binary_rates, check_device, has_device

needs_torch = pytest.mark.skipif(not has_device("torch:cpu"), reason="needs torch")


@pytest.fixture
def device():
    return Device("torch:cpu")


class Lacking:
    """A step that finds no memory for more than ``most`` entries, as a GPU does."""

    def __init__(self, device, most):
        self.device, self.most, self.sizes = device, most, []

    def __call__(self, kernels, rows):
        size = (kernels.stop - kernels.start) * (rows.stop - rows.start)
        self.sizes.append(size)
        if size > self.most:
            raise self.device.torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 7 GB")
        return size


@needs_torch
@pytest.mark.parametrize("most", [64, 2**11, 2**12])
@pytest.mark.parametrize(("count", "n_rows"), [(1, 100_000), (3000, 40), (7, 5000)])
def test_blocks_become_smaller_until_they_fit(device, count, n_rows, most):
    device.entries = 2**16
    step = Lacking(device, max(most, 2**10))
    done = np.zeros((count, n_rows), int)
    for kernels, rows, size in device.sweep(count, n_rows, 1, step):
        done[kernels, rows] += 1
        assert size <= step.most
    assert np.all(done == 1)
    assert device.entries <= step.most


@needs_torch
def test_memory_for_nothing_is_an_error_in_words(device):
    step = Lacking(device, 0)
    with pytest.raises(MemoryError, match="not enough for the smallest block"):
        list(device.sweep(1, 100, 1, step))


@needs_torch
def test_other_errors_are_not_taken_for_a_lack_of_memory(device):
    def step(kernels, rows):
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes"):
        list(device.sweep(1, 100, 1, step))


@needs_torch
def test_memory_that_is_not_there_is_none(device, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(device.torch, "empty", refuse)
    assert device.empty_or_none(3, 3, dtype=device.wide) is None


@needs_torch
def test_products_are_exact_to_a_few_roundings(device):
    """The error of sums of float32 numbers, beside the sum of the absolute values of their terms."""
    rng = np.random.default_rng(0)
    V, b = rng.random((3, 50, 9000)).astype(np.float32), rng.normal(size=(2, 9000))
    found = device.products(device.send(V, device.torch.float32), device.send(b)).numpy()
    expected = V.astype(float) @ b.T
    assert found.dtype == np.float64
    assert np.abs(found - expected).max() <= 4 * 2.0**-24 * (V @ np.abs(b).T).max()
    double = device.products(device.send(V), device.send(b)).numpy()
    assert np.abs(double - expected).max() <= 1e-12 * (V @ np.abs(b).T).max()


@needs_torch
def test_tensor_float_is_never_used(device):
    device.torch.set_float32_matmul_precision("medium")
    try:
        with device.exact():
            assert device.torch.get_float32_matmul_precision() == "highest"
        assert device.torch.get_float32_matmul_precision() == "medium"
    finally:
        device.torch.set_float32_matmul_precision("highest")


@needs_torch
def test_a_thread_that_leaves_takes_no_digits_from_another(device):
    """The setting of torch is that of the process: the last one restores it."""
    entered, leave = threading.Event(), threading.Event()

    def first():
        with device.exact():
            entered.set()
            assert leave.wait(60)

    device.torch.set_float32_matmul_precision("high")
    thread = threading.Thread(target=first)
    try:
        thread.start()
        assert entered.wait(60)
        with Device("torch:cpu").exact():
            leave.set()
            thread.join(60)
            assert device.torch.get_float32_matmul_precision() == "highest"
        assert device.torch.get_float32_matmul_precision() == "high"
    finally:
        leave.set()
        device.torch.set_float32_matmul_precision("highest")


@needs_torch
def test_distances_far_from_the_origin_and_of_one_column(device):
    rng = np.random.default_rng(1)
    for d in (1, 4):
        X, Z = rng.normal(size=(20, d)), rng.normal(size=(7, d))
        found = device.squared_distances(device.send(X), device.send(Z)).numpy()
        np.testing.assert_allclose(found, ((X[:, None] - Z) ** 2).sum(-1), rtol=1e-12, atol=1e-13)
        assert device.squared_distances(device.send(X), device.send(X)).min() >= 0.0


def some_exponentials(n_rows, n_columns, symmetric, seed=0):
    rng = np.random.default_rng(seed)
    D = 30.0 * rng.random((3, n_rows, n_columns))
    D = D + D.transpose(0, 2, 1) if symmetric else D
    first = np.array([0, 4, 4, 9])  # the second set has no kernel
    left = rng.normal(size=(2, n_rows))
    right = left if symmetric else rng.normal(size=(2, n_columns))
    return D, left, right, binary_rates(np.geomspace(0.3, 30.0, 9)), first


@needs_torch
@pytest.mark.parametrize("entries", [1, 500, 10**6])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize(("n_rows", "n_columns", "symmetric"), [(1, 300, False), (30, 30, True), (9, 40, False)])
def test_exponentials(device, n_rows, n_columns, symmetric, precision, entries):
    device.entries = entries
    D, left, right, rates, first = some_exponentials(n_rows, n_columns, symmetric)
    tensor = device.send(D, device.dtype(precision))
    powers = 2.0 ** (rates[:, None, None] * np.repeat(D, np.diff(first), axis=0))
    tolerance = 1e-6 if precision is np.float32 else 1e-13
    forms = device.exp_forms(tensor, device.send(left), device.send(right), rates, first, symmetric=symmetric)
    expected = np.einsum("tr,krc,tc->tk", left, powers, right)
    size = np.einsum("tr,krc,tc->tk", np.abs(left), powers, np.abs(right))
    assert np.all(np.abs(forms.numpy() - expected) <= tolerance * size)
    weights = np.random.default_rng(2).normal(size=rates.size)
    out = device.zeros(n_rows, n_columns) + 1.0
    device.exp_sum(tensor, weights, rates, first, out)
    expected = 1.0 + np.tensordot(weights, powers, 1)
    assert np.abs(out.numpy() - expected).max() <= tolerance * np.abs(weights).sum()


_FUSED = """
import numpy as np
from manykernels.compute import fused
from manykernels.compute.gpu import Device
from tests.compute.test_gpu import some_exponentials

device = Device("torch:cpu")
for n_rows, n_columns, symmetric in ((1, 1500, False), (70, 70, True), (40, 200, False)):
    D, left, right, rates, first = some_exponentials(n_rows, n_columns, symmetric)
    D, own = device.send(D, device.torch.float32), device.send(rates, device.torch.float32)
    sides = device.send(left), device.send(right)
    expected = device.exp_forms(D, *sides, rates, first, symmetric=symmetric).numpy()
    for t in range(2):
        found = fused.forms(device, D, sides[0][t].float(), sides[1][t].float(), own, first, symmetric).numpy()
        size = np.abs(left[t]).sum() * np.abs(right[t]).sum()
        assert np.abs(found - expected[t]).max() < 1e-6 * size, (found, expected[t])
    weights = np.linspace(-1.0, 2.0, rates.size)
    for splits in (False, True):
        plain, other = device.zeros(n_rows, n_columns), device.zeros(n_rows, n_columns)
        device.exp_sum(D, weights, rates, first, plain)
        fused.add_sum(device, D, device.send(weights, D.dtype), own, first, other, splits=splits)
        assert float((plain - other).abs().max()) < 2e-6
"""


@needs_torch
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
def test_fused_kernels_give_the_same_numbers():
    """In Triton's interpreter, which needs no GPU."""
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", _FUSED], check=True, env=environment)


@pytest.fixture
def no_torch(monkeypatch):
    own = builtins.__import__

    def refuse(name, *rest, **options):
        if name.partition(".")[0] == "torch":
            raise ImportError(name)
        return own(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)


@pytest.mark.usefixtures("no_torch")
def test_without_torch_the_extra_is_named():
    with pytest.raises(ImportError, match=r'pip install "manykernels\[gpu\]"'):
        check_device("cuda")
    assert not has_device("cuda")
    check_device("cpu")


@needs_torch
def test_a_device_that_is_not_there():
    with pytest.raises(ValueError, match="device='cuda:97' was asked for"):
        check_device("cuda:97")
    assert not has_device("cuda:97")


@pytest.mark.parametrize("name", ["gpu", "cuda:", "torch", 0, None])
def test_unknown_devices(name):
    with pytest.raises(ValueError, match="device must be"):
        check_device(name)
