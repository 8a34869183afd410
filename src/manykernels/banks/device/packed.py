"""Kernels bound to training data on a device: the capabilities of :class:`manykernels.banks.packed.PackedBank`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.banks.combining import CombinesByWeights, WeighedKernel, coarse_samples
from manykernels.banks.device.storage import DeviceStorage
from manykernels.banks.offers import ROWS
from manykernels.banks.packed import PackedBank
from manykernels.banks.packed_storage import PackedStorage
from manykernels.banks.placement import PRECISIONS
from manykernels.banks.recomputed_storage import RecomputedStorage
from manykernels.banks.room import Room
from manykernels.banks.storage import Storage, held_here
from manykernels.compute.batches import DeviceBatches
from manykernels.compute.gpu import Device, Rows, Tensor
from manykernels.compute.triangles import pack_block, triangle_size
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.shared_distances import BoundKernel

# With fewer samples, a pass over a few kernels is over on the CPU before a device has begun.
_FEW_SAMPLES = 512


class DeviceBank(PackedBank):
    """A bank whose kernels lie on a device; what it returns are arrays.

    Made by ``bind`` with ``Placement(device="cuda")``. The combined kernel comes back as an array, for an inner solver
    on the CPU; a few kernels of a small problem do, too (:meth:`subset`).

    Parameters
    ----------
    bound, X, normalization, sample_weight, precision
        As for :class:`PackedBank`.
    device : Device
    storages : list of DeviceStorage
    comes_back : bool
        Whether a subset is always on the CPU.
    room : Room
        Of the CPU, for such subsets.

    Examples
    --------
    With torch installed, ``bind([Gaussian(1.0)], X, placement=Placement(device="cuda")).quad_forms(beta)`` is what it
    is without a placement, up to rounding.
    """

    concurrent = False

    def __init__(
        self,
        bound: Sequence[BoundKernel],
        X: Any,
        normalization: Normalization,
        sample_weight: np.ndarray,
        device: Device,
        storages: Sequence[DeviceStorage],
        precision: str,
        comes_back: bool = False,
        room: Room | None = None,
    ) -> None:
        super().__init__(bound, X, normalization, sample_weight, [], precision, room)
        self.device, self._comes_back = device, comes_back
        # They offer what the bank asks for; the packed rows that only blocks on the CPU need, they do not.
        self.storages: Any = list(storages)

    @property
    def held_on(self) -> str:  # type: ignore[override]
        """The name of the device."""
        return self.device.name

    def fill(self, weights: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write sum_k weights[k] K_k for weights of any sign to ``out``."""

        def add(block: Tensor, rows: Rows) -> None:
            for storage in self.storages:
                storage.add_to(block, weights[storage.indices], rows)

        return self.device.fill_symmetric(out, add)

    def subset(self, indices: np.ndarray) -> PackedBank:
        """Return the bank of a few of the kernels: on the device, or on the CPU where samples are few."""
        indices = self._chosen(indices)
        bound = [self.bound[int(k)] for k in indices]
        normalization = self.normalization.take(indices)
        arguments = bound, self.X, normalization, self.sample_weight
        if self._comes_back or self.n_samples <= _FEW_SAMPLES:
            dtype, every = PRECISIONS[self.precision], np.arange(indices.size)
            count = self.room.take(indices.size, np.dtype(dtype).itemsize * triangle_size(self.n_samples))
            parts: list[Storage] = [self._fetched(indices[:count])] if count else []
            if count < indices.size:
                parts.append(RecomputedStorage(bound, every[count:], self.X, normalization, dtype))
            return PackedBank(*arguments, parts, self.precision, self.room)
        storages = [storage.subset(indices) for storage in self.storages]
        held = [storage for storage in storages if storage is not None]
        return DeviceBank(*arguments, self.device, held, self.precision, room=self.room)

    def batches(self) -> Any:
        """Return the device."""
        return DeviceBatches(self.device)

    def kernel_products(self, k: int, vectors: Any) -> Any:
        """Return K_k times each of the vectors, (n_vectors, n), which are on the device, in double precision."""
        for storage in self.storages:
            places, local = held_here(storage.indices, np.array([k]))
            if places.size:
                return vectors @ storage.values(local, slice(None))[0].to(self.device.wide)
        raise IndexError(f"k must be from 0 to {self.n_kernels - 1}, got {k}.")

    def combined(self, weights: np.ndarray) -> Tensor:
        """Return sum_k weights[k] K_k, (n, n), on the device."""
        K = self.device.zeros(self.n_samples, self.n_samples)
        for storage in self.storages:
            storage.add_to(K, weights[storage.indices], slice(None))
        return self.device.mirrored(K)

    def _fetched(self, indices: np.ndarray) -> Storage:
        """Return the triangles of kernels, in memory on the CPU; room for them was taken."""
        n, device = self.n_samples, self.device
        stack: np.ndarray = np.empty((indices.size, triangle_size(n)), PRECISIONS[self.precision])
        for storage in self.storages:
            places, local = held_here(storage.indices, indices)

            def values(kernels: slice, rows: slice, storage: Any = storage, local: np.ndarray = local) -> Tensor:
                return storage.values(local[kernels], rows)

            for kernels, rows, blocks in device.sweep(local.size, n, n, values):
                for place, block in zip(places[kernels], blocks, strict=True):
                    pack_block(block.cpu().numpy(), rows.start, stack[place])
        return PackedStorage(np.arange(indices.size), self.room.guard(stack), n)

    def tail(self, size: int) -> DeviceBank:
        """Return the kernels on the last ``size`` samples, normalized as here."""
        tail = DeviceBank(
            self.bound,
            self.X[-size:],
            self.normalization.tail(size),
            self.sample_weight[-size:],
            self.device,
            [storage.tail(size) for storage in self.storages],
            self.precision,
            self._comes_back,
            self.room,
        )
        tail.spare = self.spare_beside_tail(size)
        return tail


class DeviceRowsBank(CombinesByWeights, DeviceBank):
    """A bank of many samples, whose combined kernel stays on the device."""

    can = ROWS

    def workspace(self) -> Any:
        """Return what :meth:`combine` writes to."""
        return DeviceKernel(self)

    @property
    def coarse_size(self) -> int:  # type: ignore[override]
        """How many samples a problem may have that is solved on the CPU for a first guess of the weights."""
        return coarse_samples(self.n_samples)


class DeviceKernel(WeighedKernel):
    """The combined kernel of a :class:`DeviceRowsBank` for solvers that need products and blocks.

    Where the matrix does not fit on the device, its rows are computed in blocks when they are asked for.
    """

    can = frozenset({"block"})

    def __init__(self, bank: DeviceRowsBank) -> None:
        super().__init__(bank)
        self._device = bank.device
        self._dtype = bank.device.dtype(PRECISIONS[bank.precision])
        self._K = bank.device.empty_or_none(self.n_samples, self.n_samples, dtype=self._dtype)
        if self._K is not None:
            self._K.zero_()

    def _renew(self) -> None:
        if self._K is not None:
            self._add_to(self._K.zero_())

    def _add_to(self, out: Tensor, rows: Any = slice(None), columns: Any = slice(None)) -> Tensor:
        for storage in self._bank.storages:
            storage.add_to(out, self._weights[storage.indices], rows, columns)
        return out

    def _block(self, rows: Any, columns: Any = slice(None)) -> Tensor:
        """Return the block [rows, columns] on the device."""
        device = self._device
        if self._K is not None:
            return self._K[device.places(rows)][:, device.places(columns)]
        every = np.arange(self.n_samples)
        shape = (every[rows].size, every[columns].size)
        return self._add_to(device.zeros(*shape, dtype=self._dtype), every[rows], columns)

    def product(self, beta: np.ndarray) -> np.ndarray:
        """Return K beta_t for beta of shape (n_tasks, n)."""
        if not np.any(beta):
            return np.zeros(beta.shape)
        device, sent = self._device, self._device.send(beta)
        out = device.zeros(self.n_samples, beta.shape[0])
        # A block of a matrix that lies there is not a copy, so it need not be small.
        size = 1 if self._K is not None else self.n_samples
        for _, rows, products in device.sweep(
            1, self.n_samples, size, lambda _, rows: device.products(self._block(rows), sent)
        ):
            out[rows] = products
        return device.fetch(out).T.copy()

    def block(self, rows: np.ndarray) -> np.ndarray:
        """Return the block of these rows and columns, shape (len(rows), len(rows))."""
        device = self._device
        if self._K is None:
            return device.fetch(self._block(rows, rows))
        places = device.places(rows)
        return device.fetch(self._K[places[:, None], places])

    def columns_product(self, columns: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Return K[:, columns] @ change, shape (n,)."""
        device, out = self._device, self._device.zeros(self.n_samples)
        sent = device.send(change)

        def part(_: slice, rows: slice) -> Tensor:
            block = self._block(columns[rows])
            with device.exact():
                return (sent[rows].to(block.dtype) @ block).to(device.wide)

        for _, _, products in device.sweep(1, columns.size, self.n_samples, part):
            out += products
        return device.fetch(out)
