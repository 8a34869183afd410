"""Ways to hold the kernels of a bank on a device; all give the numbers of :mod:`manykernels.banks.storage`.

matrices   n x n matrices, normalized: each pass reads the memory once
factors    K = F F' with few columns
Gaussians  the distances alone; the kernels of all widths are computed in each pass, faster than they could be read
computed   nothing is held: each pass computes the kernels in blocks again
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.banks.device.distances import DistanceStack
from manykernels.banks.device.views import EVERY, View, apply, is_every, is_known
from manykernels.banks.storage import held_here
from manykernels.compute.gpu import Device, Rows, Tensor, binary_rates
from manykernels.compute.memory import human_bytes
from manykernels.kernels.base import Gaussian
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.shared_distances import BoundKernel, SharedDistances, by_distances


class DeviceStorage:
    """Kernels of which a subclass gives the values, block by block; everything else follows from those.

    Attributes
    ----------
    indices : ndarray of int
        The kernels' places in the bank, rising; ``local`` below counts within the storage.
    computes : bool
        Whether values are computed when asked for, so that it pays to ask for few of them.
    """

    computes = False

    def __init__(self, device: Device, indices: np.ndarray, n: int, dtype: Any) -> None:
        self.device, self.indices, self.n, self.dtype = device, indices, n, dtype

    def values(self, local: np.ndarray, rows: Rows, columns: Rows = EVERY) -> Tensor:
        """Return the normalized kernel values, shape (len(local), len(rows), len(columns)), in ``dtype``."""
        raise NotImplementedError

    def describe(self) -> str:
        """Return words for what is held."""
        raise NotImplementedError

    def taken(self, indices: np.ndarray, local: np.ndarray) -> DeviceStorage:
        """Return a storage of some of the kernels, for a bank in which they stand at ``indices``."""
        raise NotImplementedError

    def tail(self, size: int) -> DeviceStorage:
        """Return a storage of the kernels' values on the last ``size`` samples."""
        raise NotImplementedError

    def subset(self, chosen: np.ndarray) -> DeviceStorage | None:
        """Return a storage of those kernels of the bank that are held here; it counts them anew."""
        places, local = held_here(self.indices, chosen)
        return self.taken(places, local) if places.size else None

    def _samples(self, wanted: np.ndarray) -> np.ndarray | None:
        """Return the samples to compute for, or None for all."""
        return np.flatnonzero(wanted) if self.computes and not np.all(wanted) else None

    def quad_forms(self, beta: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return beta_t' K_k beta_t of the chosen kernels, beta (n_tasks, n), as (n_tasks, len(local))."""
        samples = self._samples(np.any(beta != 0, axis=0))
        sent = self.device.send(beta if samples is None else beta[:, samples])
        columns = EVERY if samples is None else samples
        out = self.device.zeros(local.size, beta.shape[0])

        def part(kernels: slice, rows: slice) -> Tensor:
            V = self.values(local[kernels], rows if samples is None else samples[rows], columns)
            return (self.device.products(V, sent) * sent[:, rows].T).sum(1)

        for kernels, _, forms in self.device.sweep(local.size, sent.shape[1], sent.shape[1], part):
            out[kernels] += forms
        return self.device.fetch(out).T

    def matvecs(self, beta: np.ndarray, local: np.ndarray, on_support: bool) -> np.ndarray:
        """Return K_k beta for the chosen kernels, shape (len(local), n); ``on_support``: 0 where beta is 0."""
        samples = self._samples(beta != 0) if on_support else None
        sent = self.device.send(beta if samples is None else beta[samples])[None]
        columns = EVERY if samples is None else samples
        products = self.device.zeros(local.size, sent.shape[1])

        def part(kernels: slice, rows: slice) -> Tensor:
            V = self.values(local[kernels], rows if samples is None else samples[rows], columns)
            return self.device.products(V, sent)[..., 0]

        for kernels, rows, block in self.device.sweep(local.size, sent.shape[1], sent.shape[1], part):
            products[kernels, rows] = block
        out = np.zeros((local.size, self.n))
        out[:, columns] = self.device.fetch(products)
        return out * (beta != 0) if on_support else out

    def inner_products(self, M: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return the Frobenius inner products of the chosen kernels with a symmetric M of shape (n, n)."""
        sent, out = self.device.send(M), self.device.zeros(local.size)

        def part(kernels: slice, rows: slice) -> Tensor:
            return (self.values(local[kernels], rows).to(self.device.wide) * sent[rows]).sum((1, 2))

        for kernels, _, sums in self.device.sweep(local.size, self.n, self.n, part):
            out[kernels] += sums
        return self.device.fetch(out)

    def centered_squares(self, weight: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return ||K_c||_w^2 of the chosen kernels, see :mod:`manykernels.kernels.centered`."""
        share, w = weight / weight.sum(), self.device.send(weight)
        means = self.device.send(self.matvecs(share, local, False))
        totals, out = means @ self.device.send(share), self.device.zeros(local.size)

        def part(kernels: slice, rows: slice) -> Tensor:
            V = self.values(local[kernels], rows).to(self.device.wide)
            V = V - means[kernels, rows, None] - means[kernels, None, :] + totals[kernels, None, None]
            return (V.square_() * w[rows, None] * w).sum((1, 2))

        for kernels, _, sums in self.device.sweep(local.size, self.n, self.n, part):
            out[kernels] += sums
        return self.device.fetch(out)

    def rows(self, rows: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return rows of the chosen kernels, shape (len(local), len(rows), n)."""
        out = np.empty((local.size, rows.size, self.n))

        def part(kernels: slice, place: slice) -> Tensor:
            return self.values(local[kernels], rows[place])

        for kernels, place, block in self.device.sweep(local.size, rows.size, self.n, part):
            out[kernels, place] = self.device.fetch(block)
        return out

    def add_to(self, out: Tensor, weights: np.ndarray, rows: Rows = EVERY, columns: Rows = EVERY) -> None:
        """Add the weighted sum of the kernels' blocks [rows, columns] to ``out``, in place."""
        local = np.flatnonzero(weights)
        sent, numbers = self.device.send(weights[local], out.dtype), np.arange(self.n)[rows]

        def part(kernels: slice, place: slice) -> Tensor:
            chosen = place if is_every(rows) else numbers[place]
            return self.device.weighted(sent[kernels], self.values(local[kernels], chosen, columns).to(out.dtype))

        for _, place, block in self.device.sweep(local.size, out.shape[0], out.shape[1], part):
            out[place] += block


class Matrices(DeviceStorage):
    """Normalized matrices: kernel ``local`` is ``stack[places[local]]``."""

    def __init__(self, device: Device, indices: np.ndarray, stack: Tensor, places: np.ndarray | None = None) -> None:
        super().__init__(device, indices, stack.shape[-1], stack.dtype)
        self.stack = stack
        self.places = np.arange(indices.size) if places is None else places

    @classmethod
    def fill(cls, source: DeviceStorage) -> DeviceStorage:
        """Compute the matrices of all kernels of the source, once; the source itself if they do not fit."""
        device, n, local = source.device, source.n, np.arange(source.indices.size)
        stack = device.empty_or_none(local.size, n, n, dtype=source.dtype)
        if stack is None:
            return source
        for kernels, rows, block in device.sweep(
            local.size, n, n, lambda kernels, rows: source.values(local[kernels], rows)
        ):
            stack[kernels, rows] = block
        return cls(device, source.indices, stack)

    def describe(self) -> str:
        size = human_bytes(self.stack.element_size() * self.stack.numel())
        return f"{self.indices.size} matrices on {self.device.name} ({size})"

    def values(self, local: np.ndarray, rows: Rows, columns: Rows = EVERY) -> Tensor:
        places = self.places[local]
        if places.size and np.array_equal(places, np.arange(places[0], places[0] + places.size)):
            picked = self.stack[int(places[0]) : int(places[-1]) + 1]  # no copy
        else:
            picked = self.stack.index_select(0, self.device.places(places))
        return picked[:, self.device.places(rows)][:, :, self.device.places(columns)]

    def taken(self, indices: np.ndarray, local: np.ndarray) -> Matrices:
        return Matrices(self.device, indices, self.stack, self.places[local])

    def tail(self, size: int) -> Matrices:
        return Matrices(self.device, self.indices, self.stack[:, -size:, -size:], self.places)


class Factors(DeviceStorage):
    """Factors F_k of shape (n, rank) with K_k = F_k F_k', side by side in one matrix in ``wide``."""

    def __init__(self, device: Device, indices: np.ndarray, columns: Tensor, owner: np.ndarray, dtype: Any) -> None:
        super().__init__(device, indices, columns.shape[0], dtype)
        self.columns, self.owner = columns, owner

    @classmethod
    def of(cls, device: Device, indices: np.ndarray, factors: Sequence[np.ndarray], dtype: Any) -> Factors:
        """Send factors to the device."""
        owner = np.repeat(np.arange(indices.size), [factor.shape[1] for factor in factors])
        return cls(device, indices, device.send(np.hstack(factors)), owner, dtype)

    def describe(self) -> str:
        size = human_bytes(self.columns.element_size() * self.columns.numel())
        return f"{self.indices.size} as factors on {self.device.name} ({size})"

    def taken(self, indices: np.ndarray, local: np.ndarray) -> Factors:
        chosen = np.concatenate([np.flatnonzero(self.owner == k) for k in local])
        ranks = [int(np.sum(self.owner == k)) for k in local]
        columns = self.columns.index_select(1, self.device.places(chosen))
        return Factors(self.device, indices, columns, np.repeat(np.arange(local.size), ranks), self.dtype)

    def tail(self, size: int) -> Factors:
        return Factors(self.device, self.indices, self.columns[-size:], self.owner, self.dtype)

    def values(self, local: np.ndarray, rows: Rows, columns: Rows = EVERY) -> Tensor:
        parts = [self.columns[:, self.device.places(np.flatnonzero(self.owner == k))] for k in local]
        left, right = self.device.places(rows), self.device.places(columns)
        return self.device.torch.stack([(F[left] @ F[right].T).to(self.dtype) for F in parts])

    def quad_forms(self, beta: np.ndarray, local: np.ndarray) -> np.ndarray:
        squares = self.device.fetch((self.device.send(beta) @ self.columns).square_())
        return np.stack([np.bincount(self.owner, row, self.indices.size) for row in squares])[:, local]

    def matvecs(self, beta: np.ndarray, local: np.ndarray, on_support: bool) -> np.ndarray:
        parts = self.columns * (self.device.send(beta) @ self.columns)
        out = self.device.zeros(self.n, self.indices.size)
        out.index_add_(1, self.device.places(self.owner), parts)
        products = self.device.fetch(out).T[local]
        return products * (beta != 0) if on_support else products

    def add_to(self, out: Tensor, weights: np.ndarray, rows: Rows = EVERY, columns: Rows = EVERY) -> None:
        chosen = np.flatnonzero(weights[self.owner])
        if chosen.size == 0:
            return
        F = self.columns.index_select(1, self.device.places(chosen)).to(out.dtype)
        left = F[self.device.places(rows)] * self.device.send(weights[self.owner[chosen]], out.dtype)
        right = F[self.device.places(columns)].T

        def part(_: slice, place: slice) -> Tensor:
            with self.device.exact():
                return left[place] @ right

        for _, place, block in self.device.sweep(1, out.shape[0], out.shape[1], part):
            out[place] += block


class Computed(DeviceStorage):
    """Kernels computed in blocks, anew in each pass: on the device if it knows them, else on the CPU, and sent."""

    computes = True

    def __init__(
        self,
        device: Device,
        bound: Sequence[BoundKernel],
        indices: np.ndarray,
        X: Any,
        normalization: Normalization,
        dtype: Any,
    ) -> None:
        super().__init__(device, indices, X.shape[0], dtype)
        self._bound, self._X, self._normalization = bound, X, normalization
        self._shared = by_distances(bound)
        self._views = [_View(device, shared, X) for shared in self._shared]
        self._shared_by, self._place_of = np.empty(len(bound), np.int64), np.empty(len(bound), np.int64)
        for i, shared in enumerate(self._shared):
            self._shared_by[shared.indices], self._place_of[shared.indices] = i, np.arange(shared.indices.size)

    def describe(self) -> str:
        return f"{self.indices.size} computed on {self.device.name} in each pass"

    def taken(self, indices: np.ndarray, local: np.ndarray) -> DeviceStorage:
        few = [self._bound[k] for k in local]
        return Matrices.fill(Computed(self.device, few, indices, self._X, self._normalization.take(local), self.dtype))

    def tail(self, size: int) -> Computed:
        normalization = self._normalization.tail(size)
        return Computed(self.device, self._bound, self.indices, self._X[-size:], normalization, self.dtype)

    def values(self, local: np.ndarray, rows: Rows, columns: Rows = EVERY) -> Tensor:
        shape = (local.size, np.arange(self.n)[rows].size, np.arange(self.n)[columns].size)
        out = self.device.torch.empty(shape, dtype=self.dtype, device=self.device.where)
        for i in np.unique(self._shared_by[local]):
            places = np.flatnonzero(self._shared_by[local] == i)
            wanted = self._place_of[local[places]]
            for place, block in zip(places, self._views[i].blocks(wanted, rows, columns), strict=True):
                # Centering takes the difference of nearly equal numbers: round after it, not before.
                out[int(place)] = self._normalized(int(local[place]), block, rows, columns)
        return out

    def _normalized(self, k: int, block: Tensor, rows: Rows, columns: Rows) -> Tensor:
        learned, send = self._normalization, self.device.send
        if learned.inverse_norms is not None:
            block = block * send(learned.inverse_norms[k][rows])[:, None] * send(learned.inverse_norms[k][columns])
        if learned.means is not None and learned.totals is not None:
            block = block - send(learned.means[k][rows])[:, None] - send(learned.means[k][columns] - learned.totals[k])
        return block * float(learned.scale[k])


class _View:
    """The raw blocks of kernels that share distances, in ``wide``."""

    def __init__(self, device: Device, shared: SharedDistances, X: Any) -> None:
        self._device, self._shared, self._V = device, shared, shared.view(X)
        self._view: View | None = None
        if shared.base is not None and all(map(is_known, shared.kernels)):
            view = View(device, self._V, shared.base)
            self._view = view if view.mask is None else None

    def blocks(self, wanted: np.ndarray, rows: Rows, columns: Rows) -> list[Tensor]:
        """Return the blocks of the wanted kernels."""
        if self._view is not None:
            base, unit, last = self._view.values(rows, columns), self._view.unit, len(wanted) - 1
            parts = (base if i == last else base.clone() for i in range(len(wanted)))
            return [apply(self._shared.kernels[g], part, unit) for g, part in zip(wanted, parts, strict=True)]
        blocks = self._shared.blocks(self._V[rows], self._V[columns], [int(g) for g in wanted])
        return [self._device.send(block) for _, block in blocks]


class Gaussians(DeviceStorage):
    """Gaussian kernels that are not centered, as functions of distances."""

    computes = True

    def __init__(
        self,
        device: Device,
        indices: np.ndarray,
        stack: DistanceStack,
        owner: np.ndarray,
        rates: np.ndarray,
        scale: np.ndarray,
    ) -> None:
        super().__init__(device, indices, stack.n, stack.dtype)
        self._stack, self._owner, self._rates, self._scale = stack, owner, rates, scale

    @classmethod
    def of(
        cls,
        device: Device,
        bound: Sequence[BoundKernel],
        indices: np.ndarray,
        X: Any,
        scale: np.ndarray,
        dtype: Any,
        hold: bool,
    ) -> Gaussians:
        """Compute the distances that the kernels need; bound and scale are those of ``indices``."""
        all_shared = by_distances(bound)
        stack = DistanceStack(device, [View(device, shared.view(X), "distance") for shared in all_shared], dtype, hold)
        owner = np.empty(len(bound), np.int64)
        for s, shared in enumerate(all_shared):
            owner[shared.indices] = s
        widths = np.array([entry.kernel.width for entry in bound if isinstance(entry.kernel, Gaussian)])
        units = np.array([view.unit for view in stack.views])
        return cls(device, indices, stack, owner, binary_rates(widths, units[owner]), scale)

    def describe(self) -> str:
        sets = len(self._stack.views)
        how = "computed in each pass"
        if self._stack.held is not None:
            how = human_bytes(self._stack.held.element_size() * self._stack.held.numel())
        return f"{self.indices.size} of distances on {sets} column sets on {self.device.name} ({how})"

    def taken(self, indices: np.ndarray, local: np.ndarray) -> Gaussians:
        parts = (self._owner[local], self._rates[local], self._scale[local])
        return Gaussians(self.device, indices, self._stack, *parts)

    def tail(self, size: int) -> Gaussians:
        parts = (self._owner, self._rates, self._scale)
        return Gaussians(self.device, self.indices, self._stack.tail(size), *parts)

    def _sorted(self, local: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the chosen kernels by their sets, and where those of each set start."""
        order = np.argsort(self._owner[local], kind="stable")
        counts = np.bincount(self._owner[local], minlength=len(self._stack.views))
        return order, np.concatenate([[0], np.cumsum(counts)])

    def values(self, local: np.ndarray, rows: Rows, columns: Rows = EVERY) -> Tensor:
        order, first = self._sorted(local)
        rates = self._rates[local][order]
        used = np.flatnonzero(np.diff(first))
        parts = [self._stack.powers(int(s), rates[first[s] : first[s + 1]], rows, columns) for s in used]
        blocks = parts[0] if len(parts) == 1 else self.device.torch.cat(parts)
        blocks *= self.device.send(self._scale[local][order], self.dtype)[:, None, None]
        return blocks if np.all(np.diff(order) > 0) else blocks[self.device.places(np.argsort(order))]

    def quad_forms(self, beta: np.ndarray, local: np.ndarray) -> np.ndarray:
        order, first = self._sorted(local)
        out = np.empty((beta.shape[0], local.size))
        out[:, order] = self._stack.forms(beta, self._rates[local][order], first)
        return out * self._scale[local]

    def inner_products(self, M: np.ndarray, local: np.ndarray) -> np.ndarray:
        order, first = self._sorted(local)
        out = np.empty(local.size)
        out[order] = self._stack.inner_products(M, self._rates[local][order], first)
        return out * self._scale[local]

    def add_to(self, out: Tensor, weights: np.ndarray, rows: Rows = EVERY, columns: Rows = EVERY) -> None:
        local = np.flatnonzero(weights * self._scale)
        if local.size:
            order, first = self._sorted(local)
            chosen = local[order]
            coefficients = weights[chosen] * self._scale[chosen]
            self._stack.add_sum(coefficients, self._rates[chosen], first, out, rows, columns)
