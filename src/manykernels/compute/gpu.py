"""The same primitives on a GPU, through torch.

torch is imported here and nowhere else, when a device is first asked for. "torch:cpu" runs this code on torch's own CPU
device: for tests, not for speed.

How numbers are summed. In single precision, products of a matrix with a vector are summed in float32 over at most
``_SUM_COLUMNS`` columns and in float64 from there on; so are the weighted exponentials of :func:`exp_forms`. A sum of
terms t_i is then wrong by a few 2^-24 sum_i |t_i| at most, and by far less where the signs of the errors differ. In
double precision everything is float64. TensorFloat-32, which has three digits, is never used.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from manykernels.compute.memory import available_bytes, human_bytes
from manykernels.compute.pairwise import gaussian_rates
from manykernels.compute.triangles import mirror
from manykernels.core.notices import warn

Tensor = Any
Rows = Any  # a slice, or an array of int

_SUM_COLUMNS = 4096
_BLOCK_ENTRIES = 1 << 22  # of a block on torch's CPU device
_DEVICE_ENTRIES = 1 << 28  # and on a GPU: 1 GB in float32, far more than its caches
_SHARE_OF_BLOCK = 64  # a block takes at most this part of the free memory: it is copied a few times, in float64
_FEWEST_ENTRIES = 1 << 10
_LOG2_E = float(np.log2(np.e))
_LARGEST_RATE = 1e37
_HELD_SHARE = 0.8  # of the free memory
_TORCH_NAMES = re.compile(r"cuda(:\d+)?|mps|torch:cpu")
_PANEL = 1024  # columns of a matrix that are mirrored at a time
_PINNED = 1 << 16, 1 << 25  # entries of what comes back through memory that does not move
# As in compute/pairwise.py.
_CANCELS = 2.0**-6
# From this number of entries on, one block of threads per piece of the matrix is enough to fill a GPU.
_MANY_ENTRIES = 1 << 20


def is_device(name: object) -> bool:
    """Return whether the name is one of a device: "cpu", "cuda", "cuda:1", "mps", or "torch:cpu".

    Examples
    --------
    >>> from manykernels.compute.gpu import is_device
    >>> is_device("cuda:1"), is_device("abacus")
    (True, False)
    """
    return isinstance(name, str) and (name == "cpu" or _TORCH_NAMES.fullmatch(name) is not None)


def load_torch(name: str) -> Any:
    """Return the module torch, or say what to install for the device of this name."""
    try:
        import torch  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise ImportError(f'device={name!r} needs torch: pip install "manykernels[gpu]"') from error
    return torch


def check_device(name: object) -> None:
    """Raise if the name is not that of a device, if torch is not installed, or if there is no such device."""
    if not is_device(name):
        raise ValueError(f"device must be 'cpu', 'cuda', 'cuda:0', ... or 'mps', got {name!r}.")
    if name != "cpu" and not _exists(str(name)):
        raise ValueError(f"device={name!r} was asked for, but torch finds no such device on this machine.")


def has_double(name: str) -> bool:
    """Return whether "cpu" or a device, which is opened, has numbers in double precision.

    Examples
    --------
    >>> from manykernels.compute.gpu import has_double
    >>> has_double("cpu")
    True
    """
    return name == "cpu" or Device(name).has_double


def device_budget(device: Device) -> int:
    """Return the bytes of a device that values may be held in; the rest is for blocks in flight and other programs."""
    return int(_HELD_SHARE * device.free_bytes())


def has_device(name: str) -> bool:
    """Return whether torch is installed and finds the device; False for "cpu", which needs no torch."""
    try:
        return name != "cpu" and is_device(name) and _exists(name)
    except ImportError:
        return False


def _exists(name: str) -> bool:
    torch = load_torch(name)
    if name == "torch:cpu":
        return True
    if name == "mps":
        return bool(torch.backends.mps.is_available())
    return bool(torch.cuda.is_available()) and int(name.partition(":")[2] or 0) < torch.cuda.device_count()


class Device:
    """A device with its memory: sends arrays there and back, and cuts work into blocks that fit.

    Parameters
    ----------
    name : str
        "cuda", "cuda:1", "mps" or "torch:cpu".
    fuses : bool, default True
        Use the fused kernels of :mod:`manykernels.compute.fused` where they run.

    Attributes
    ----------
    entries : int
        Entries of a block; halved each time that the memory does not suffice.
    wide : torch.dtype
        For sums: float64, or float32 on a device that has no other.

    Examples
    --------
    With torch installed, ``Device("torch:cpu").fetch(Device("torch:cpu").send([1.0, 2.0]))`` is the array [1, 2].
    """

    def __init__(self, name: str, *, fuses: bool = True) -> None:
        check_device(name)
        self.name, self.torch = name, load_torch(name)
        self.where = self.torch.device("cpu" if name == "torch:cpu" else name)
        self.has_double = self.where.type != "mps"
        self.wide = self.torch.float64 if self.has_double else self.torch.float32
        most = _BLOCK_ENTRIES if self.where.type == "cpu" else _DEVICE_ENTRIES
        self.entries = max(1, min(most, self.free_bytes() // _SHARE_OF_BLOCK))
        self._fuses = fuses

    # -- memory -------------------------------------------------------------------------------------------------

    def free_bytes(self) -> int:
        """Return the memory that is free on the device, with what torch keeps for itself."""
        cuda, mps = self.torch.cuda, self.torch.mps
        if self.where.type == "cuda":
            kept = cuda.memory_reserved(self.where) - cuda.memory_allocated(self.where)
            return int(cuda.mem_get_info(self.where)[0] + kept)
        if self.where.type == "mps":
            return int(mps.recommended_max_memory() - mps.current_allocated_memory())
        return available_bytes() // 2

    def is_out_of_memory(self, error: RuntimeError) -> bool:
        """Return whether an error says that the device has no memory left."""
        words = str(error).lower()
        return (
            isinstance(error, self.torch.cuda.OutOfMemoryError)
            or "out of memory" in words
            or "can't allocate memory" in words
        )

    def shrink(self, error: RuntimeError) -> None:
        """Go on with blocks of half the size, or raise MemoryError where they are tiny already."""
        if self.entries <= _FEWEST_ENTRIES:
            free = human_bytes(self.free_bytes())
            raise MemoryError(f"the device {self.name!r} has {free} left, not enough for the smallest block") from error
        self.entries //= 2
        self.release()

    def release(self) -> None:
        """Give memory that torch keeps for itself back to the device."""
        if self.where.type == "cuda":
            self.torch.cuda.empty_cache()
        elif self.where.type == "mps":
            self.torch.mps.empty_cache()

    def zeros(self, *shape: int, dtype: Any = None) -> Tensor:
        """Return zeros on the device, by default in ``wide``."""
        return self.torch.zeros(shape, dtype=self.wide if dtype is None else dtype, device=self.where)

    def empty_or_none(self, *shape: int, dtype: Any) -> Tensor | None:
        """Return memory on the device, or None if there is not enough."""
        try:
            return self.torch.empty(shape, dtype=dtype, device=self.where)
        except RuntimeError as error:
            if not self.is_out_of_memory(error):
                raise
            self.release()
            return None

    def sweep(
        self, count: int, n_rows: int, row_entries: int, compute: Callable[[slice, slice], Any]
    ) -> Iterator[tuple[slice, slice, Any]]:
        """Yield (kernels, rows, compute(kernels, rows)) for blocks of ``count`` matrices of n_rows rows that fit.

        Where the memory does not suffice, the block is tried again at half the size, and so are those that follow.
        What ``compute`` returns is whole: it must not add to anything by itself.
        """
        k = row = 0
        while k < count and n_rows > 0:
            whole = self.entries // max(n_rows * row_entries, 1) if row == 0 else 0
            kernels = slice(k, min(k + max(whole, 1), count))
            last = n_rows if whole else min(row + max(self.entries // max(row_entries, 1), 1), n_rows)
            try:
                block = compute(kernels, slice(row, last))
            except RuntimeError as error:
                if not self.is_out_of_memory(error):
                    raise
                self.shrink(error)
                continue
            yield kernels, slice(row, last), block
            k, row = (kernels.stop, 0) if last == n_rows else (k, last)

    # -- there and back -----------------------------------------------------------------------------------------

    def dtype(self, precision: type) -> Any:
        """Return torch's name for float32 or float64."""
        return self.torch.float32 if precision == np.float32 else self.torch.float64

    def send(self, array: Any, dtype: Any = None) -> Tensor:
        """Return the array on the device, by default in ``wide``."""
        host = np.asarray(array)
        host = host if host.flags.c_contiguous and host.flags.writeable else np.array(host)
        tensor, dtype = self.torch.from_numpy(host), self.wide if dtype is None else dtype
        if not self.has_double:
            tensor = tensor.to(dtype)  # a device without float64 does not even take it to round it
        return tensor.to(self.where, dtype)

    def sent(self, values: Any, dtype: Any) -> Tensor:
        """Return values on the device, where they may lie already."""
        return values.to(dtype) if self.torch.is_tensor(values) else self.send(values, dtype)

    def places(self, rows: Rows) -> Rows:
        """Return what tensors on the device are indexed with: a slice as it is, numbers as a tensor."""
        return rows if isinstance(rows, slice) else self.send(rows, self.torch.int64)

    def fetch(self, tensor: Tensor) -> np.ndarray:
        """Return a tensor as an array of float64."""
        wide = tensor.to(self.wide)
        if self.where.type == "cuda" and _PINNED[0] <= wide.numel() <= _PINNED[1]:
            # Memory that does not move is written several times faster; torch keeps it for the next time.
            host = self.torch.empty(wide.shape, dtype=self.wide, pin_memory=True)
            return host.copy_(wide).numpy()
        return wide.cpu().numpy().astype(np.float64, copy=False)

    def fetch_into(self, tensor: Tensor, out: np.ndarray) -> np.ndarray:
        """Write a tensor to an array and return it."""
        if out.flags.c_contiguous and tensor.dtype == self.torch.float64:
            self.torch.from_numpy(out).copy_(tensor)
        else:
            out[...] = tensor.cpu().numpy()
        return out

    # -- symmetric matrices -------------------------------------------------------------------------------------

    def fill_symmetric(self, out: np.ndarray, add: Callable[[Tensor, Rows], None]) -> np.ndarray:
        """Write a symmetric matrix to ``out`` and return it, in blocks of rows that fit on the device.

        ``add(block, rows)`` adds rows of the matrix to zeros. Its upper triangle counts: blocks of rows may differ in
        the last digit from those of columns.
        """
        n = out.shape[0]

        def part(_: slice, rows: slice) -> Tensor:
            block = self.zeros(rows.stop - rows.start, n)
            if block.shape[0] < n:
                add(block, rows)
                return block
            add(block, slice(None))
            return self.mirrored(block)

        first = 0
        for _, rows, block in self.sweep(1, n, n, part):
            self.fetch_into(block, out[rows])
            first = rows.start
        return mirror(out) if first else out

    def fill_bytes(self, n: int) -> int:
        """Return the bytes that :meth:`fill_symmetric` takes of the device: the matrix, or two blocks of rows."""
        return 8 * min(n * n, 2 * self.entries)

    def mirrored(self, K: Tensor) -> Tensor:
        """Return K with the upper triangle written to the lower one."""
        for low in range(0, K.shape[0], _PANEL):
            high = low + _PANEL
            square = K[low:high, low:high]
            square.copy_(square.triu() + square.triu(1).T)
            K[high:, low:high] = K[low:high, high:].T
        return K

    @contextmanager
    def exact(self) -> Iterator[None]:
        """Multiply float32 matrices in float32, whatever the user has allowed elsewhere."""
        _exact_products.begin(self.torch)
        try:
            yield
        finally:
            _exact_products.end(self.torch)

    # -- products and distances ---------------------------------------------------------------------------------

    def products(self, values: Tensor, vectors: Tensor) -> Tensor:
        """Return values @ vectors.T for values (..., r, n) and vectors (t, n), shape (..., r, t), in ``wide``."""
        if values.dtype == self.wide:
            return self.torch.matmul(values, vectors.to(self.wide).T)
        right, total = vectors.to(values.dtype).T, None
        is_one = right.shape[1] == 1
        right = right[:, 0] if is_one else right
        with self.exact():
            for low in range(0, max(right.shape[0], 1), _SUM_COLUMNS):
                part = self.torch.matmul(values[..., low : low + _SUM_COLUMNS], right[low : low + _SUM_COLUMNS])
                total = part.to(self.wide) if total is None else total.add_(part)
        return total[..., None] if is_one and total is not None else total

    def squared_distances(self, left: Tensor, right: Tensor) -> Tensor:
        """Return |x_i - z_j|^2 of the rows, shape (n, l); where |x|^2 + |z|^2 - 2 x'z cancels, by differences."""
        if left.shape[1] == 1:
            return (left - right.T).square_()
        squares = left.square().sum(1)[:, None] + right.square().sum(1)[None, :]
        D = self.torch.addmm(squares, left, right.T, alpha=-2.0)
        i, j = self.torch.nonzero(squares.mul_(_CANCELS).gt(D), as_tuple=True)
        step = max(1, self.entries // left.shape[1])
        for low in range(0, i.shape[0], step):
            rows, columns = i[low : low + step], j[low : low + step]
            D[rows, columns] = (left[rows] - right[columns]).square_().sum(1)
        return D

    # -- many Gaussian kernels of the same distances ------------------------------------------------------------

    def fused(self, dtype: Any) -> Any:
        """Return the module of fused kernels where it runs for numbers of this type, else None."""
        if not self._fuses or self.where.type != "cuda" or dtype != self.torch.float32:
            return None
        return _fused_kernels(str(self.where))

    def exp_forms(
        self, D: Tensor, left: Tensor, right: Tensor, rates: Any, first: np.ndarray, *, symmetric: bool
    ) -> Tensor:
        """Return sum_rc left[t, r] right[t, c] 2^(rates[k] D[s, r, c]) for the kernels k of every set s.

        Parameters
        ----------
        D : tensor of shape (n_sets, n_rows, n_columns)
        left, right : tensors of shape (n_tasks, n_rows) and (n_tasks, n_columns)
        rates : ndarray or tensor of shape (n_kernels,)
        first : ndarray of shape (n_sets + 1,)
            The kernels of set s are ``first[s]`` to ``first[s + 1]``.
        symmetric : bool
            Whether D and the weights are symmetric, so that half of them will do.

        Returns
        -------
        tensor of shape (n_tasks, n_kernels), in ``wide``
        """
        sent_rates, fused = self.sent(rates, D.dtype), self.fused(D.dtype)
        left, right = left.to(self.wide), right.to(self.wide)
        if fused is not None:
            sides = zip(left.to(D.dtype), right.to(D.dtype), strict=True)
            return self.torch.stack([fused.forms(self, D, a, b, sent_rates, first, symmetric) for a, b in sides])
        out = self.zeros(left.shape[0], int(first[-1]))
        for s in range(D.shape[0]):

            def part(kernels: slice, rows: slice, s: int = s) -> Tensor:
                E = self._powers(D[s, rows], sent_rates[first[s] : first[s + 1]][kernels])
                return (self.products(E, right) * left[:, rows].T).sum(1).T

            for kernels, _, forms in self.sweep(int(first[s + 1] - first[s]), D.shape[1], D.shape[2], part):
                out[:, first[s] + kernels.start : first[s] + kernels.stop] += forms
        return out

    def exp_sum(self, D: Tensor, coefficients: np.ndarray, rates: np.ndarray, first: np.ndarray, out: Tensor) -> None:
        """Add sum_k coefficients[k] 2^(rates[k] D[s_k]) to ``out`` of shape (n_rows, n_columns), in place.

        Parameters are those of :meth:`exp_forms`.
        """
        sent_rates, fused = self.send(rates, D.dtype), self.fused(D.dtype)
        if fused is not None and out.is_contiguous():
            small = D[0].numel() < _MANY_ENTRIES
            fused.add_sum(self, D, self.send(coefficients, D.dtype), sent_rates, first, out, splits=small)
            return
        weights = self.send(coefficients, out.dtype)
        for s in range(D.shape[0]):

            def part(kernels: slice, rows: slice, s: int = s) -> Tensor:
                chosen = slice(first[s] + kernels.start, first[s] + kernels.stop)
                E = self._powers(D[s, rows], sent_rates[chosen]).to(out.dtype)
                return self.weighted(weights[chosen], E)

            for _, rows, sums in self.sweep(int(first[s + 1] - first[s]), D.shape[1], D.shape[2], part):
                out[rows] += sums

    def weighted(self, weights: Tensor, values: Tensor) -> Tensor:
        """Return sum_k weights[k] values[k], in the type of both."""
        with self.exact():
            return (weights @ values.reshape(values.shape[0], -1)).reshape(values.shape[1:])

    def _powers(self, D: Tensor, rates: Tensor) -> Tensor:
        return (rates[:, None, None] * D).exp2_()


class _ExactProducts:
    """Torch's setting for products of float32 matrices, which is the process's: exact while anyone asks for it.

    The first to come makes it so, the last to leave restores what the user has set.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._before = "highest"

    def begin(self, torch: Any) -> None:
        with self._lock:
            if self._holders == 0:
                self._before = torch.get_float32_matmul_precision()
                self._set(torch, "highest")
            self._holders += 1

    def end(self, torch: Any) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._set(torch, self._before)

    def _set(self, torch: Any, precision: str) -> None:
        if self._before != "highest":
            torch.set_float32_matmul_precision(precision)


_exact_products = _ExactProducts()


def binary_rates(widths: np.ndarray, unit: float | np.ndarray = 1.0) -> np.ndarray:
    """Return the rates for which 2^(rate D) are the Gaussian kernels of these widths, of squared distances in a unit.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.gpu import binary_rates
    >>> bool(np.isclose(2.0 ** (binary_rates(np.array([2.0])) * 8.0), np.exp(-1.0))[0])
    True
    """
    # Within float32, so that the rate times a distance of 0 is 0, and times an infinite one infinite.
    return -np.clip(_LOG2_E * gaussian_rates(widths, unit), 1.0 / _LARGEST_RATE, _LARGEST_RATE)


@lru_cache(maxsize=8)
def _fused_kernels(where: str) -> Any:
    """Return the fused kernels if they run on the device and give the numbers of the plain ones, else None."""
    try:
        from manykernels.compute import fused  # noqa: PLC0415 - it needs Triton
    except ImportError:
        return None
    plain = Device(where, fuses=False)
    rng = np.random.default_rng(0)
    D, beta = plain.send(rng.random((2, 100, 100)), plain.torch.float32), plain.send(rng.normal(size=(1, 100)))
    D = D + D.transpose(1, 2)
    rates, first = -rng.random(5), np.array([0, 2, 5])
    try:
        expected = plain.exp_forms(D, beta, beta, rates, first, symmetric=True)
        single = beta[0].float()
        computed = fused.forms(plain, D, single, single, plain.send(rates, D.dtype), first, True)
        # The compiler that Triton calls may be missing, or not fit: then plain torch does the work.
    except Exception as error:
        warn(f"Fused kernels do not run on {where!r}, so passes take longer: {type(error).__name__}: {error}")
        return None
    size = float(beta.abs().sum() ** 2)
    return fused if bool(((computed - expected[0]).abs() < 1e-5 * size).all()) else None
