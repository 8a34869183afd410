"""Kernels of so many samples that not even one matrix of them fits: rows are computed when they are asked for.

Two things are kept. The *products* F_k = K_k beta of every kernel with the last beta, shape (n_kernels, n): they give
the quadratic forms beta' F_k, and K_d beta = sum_k d_k F_k whatever the weights d, so that after a change of the
weights a solver goes on from its last beta without computing anything; a new beta costs the rows where it changed. And
a cache of rows of the combined kernel, on the columns of the samples that may still move.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from manykernels.banks.combining import CombinesByWeights, WeighedKernel, coarse_samples
from manykernels.banks.offers import ROWS
from manykernels.banks.packed import PackedBank
from manykernels.banks.placement import PRECISIONS
from manykernels.banks.room import Room
from manykernels.banks.storage import Storage
from manykernels.compute.rowcache import RowCache
from manykernels.compute.triangles import triangle_size

_COARSE_MATRICES = 3
# Sums and differences of coefficients this much larger have cost the products their digits: they are made anew.
_WORN = 1e-4


class OnDemandBank(CombinesByWeights, PackedBank):
    """A bank whose combined kernel is not a matrix but rows on demand.

    Parameters
    ----------
    bank : PackedBank
    cache_bytes : int
        Memory for rows of the combined kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.banks.on_demand import OnDemandBank
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> bank = OnDemandBank(bind(KernelBank([Gaussian(1.0), Gaussian(2.0)]), X), cache_bytes=10**6)
    >>> beta = np.ones((1, 50))
    >>> K = bank.combine(np.array([0.5, 0.5]))
    >>> np.allclose(K.product(beta), 0.5 * bank.rows(range(50)).sum(axis=0) @ np.ones(50))
    True
    """

    can = ROWS
    concurrent = False  # it remembers its last problem, and uses all cores by itself

    def __init__(self, bank: PackedBank, cache_bytes: int) -> None:
        super().__init__(
            bank.bound, bank.X, bank.normalization, bank.sample_weight, bank.storages, bank.precision, bank.room
        )
        self._cache_bytes = cache_bytes
        self._beta: np.ndarray | None = None
        self._products: list[np.ndarray] = []
        self._largest = 0.0

    def workspace(self) -> Any:
        """Return what :meth:`combine` writes to."""
        return CombinedRows(self, self._cache_bytes)

    def products(self, beta: np.ndarray) -> list[np.ndarray]:
        """Return K_k beta_t for beta of shape (n_tasks, n): for each storage an array (n_tasks, n_held, n).

        The arrays are overwritten by the next call.
        """
        size = float(np.abs(beta).max(initial=0.0))
        last = self._beta
        if last is None or last.shape != beta.shape or size < _WORN * self._largest:
            last, self._largest = np.zeros_like(beta), 0.0
            self._products = [np.zeros((beta.shape[0], s.indices.size, self.n_samples)) for s in self.storages]
        change = beta - last
        rows = np.flatnonzero(np.any(change != 0, axis=0))
        self._beta = None  # should Ctrl-C come now, the products are those of no beta
        if rows.size:
            changes = np.ascontiguousarray(change[:, rows])
            for storage, held in zip(self.storages, self._products, strict=True):
                storage.add_products(rows, changes, held)
        self._beta, self._largest = beta.copy(), max(self._largest, size)
        return self._products

    def combined_product(self, weights: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Return sum_k weights[k] K_k beta_t, shape (n_tasks, n)."""
        parts = zip(self.storages, self.products(beta), strict=True)
        return np.sum([np.einsum("k,tkn->tn", weights[s.indices], held) for s, held in parts], axis=0)

    def quad_forms(self, beta: np.ndarray, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return beta' K_k beta of the kernels of the subset, as :meth:`PackedBank.quad_forms`."""
        rows = np.ascontiguousarray(np.atleast_2d(beta), dtype=np.float64)
        forms = np.empty((rows.shape[0], self.n_kernels))
        for storage, held in zip(self.storages, self.products(rows), strict=True):
            forms[:, storage.indices] = np.einsum("tkn,tn->tk", held, rows)
        forms = np.maximum(forms[:, self._chosen(subset)], 0.0)
        return forms if beta.ndim == 2 else forms[0]

    @property
    def coarse_size(self) -> int:  # type: ignore[override]
        """How many samples a problem may have that is solved in memory for a first guess of the weights."""
        # For each pair of samples the triangles, of which half are made, and the matrices of a solver.
        pair = self.n_kernels * np.dtype(PRECISIONS[self.precision]).itemsize + _COARSE_MATRICES * 8
        fit = int(np.sqrt(self._cache_bytes / pair))
        return min(fit, coarse_samples(self.n_samples))

    def spare_beside_tail(self, size: int) -> int | None:
        """Return the bytes that a solver may take besides the bank and ``tail(size)``: no row is in the cache yet."""
        if self.spare is None:
            return None
        held = self.n_kernels * np.dtype(PRECISIONS[self.precision]).itemsize * triangle_size(size)
        return self.spare + max(self._cache_bytes - held, 0)

    def tail(self, size: int) -> PackedBank:
        """Return the kernels on the last ``size`` samples, held in memory."""
        tail = super().tail(size)
        tail.room = Room(self._cache_bytes)
        held = tail.subset(np.arange(self.n_kernels))
        held.spare = tail.spare
        return held


class CombinedRows(WeighedKernel):
    """The combined kernel of an :class:`OnDemandBank`."""

    can = frozenset({"rows"})

    def __init__(self, bank: OnDemandBank, cache_bytes: int) -> None:
        super().__init__(bank)
        # The cache refers to the weights, which change in place, and not to this: both go when this does.
        self.cache = RowCache(partial(_add_rows, bank.storages, self._weights), cache_bytes)

    def _renew(self) -> None:
        self.cache.clear()

    def product(self, beta: np.ndarray) -> np.ndarray:
        """Return K beta_t for beta of shape (n_tasks, n); only rows where beta is not the last one are computed."""
        if not np.any(beta):
            return np.zeros(beta.shape)
        return self._bank.combined_product(self._weights, beta)


def _add_rows(
    storages: Sequence[Storage], weights: np.ndarray, rows: np.ndarray, columns: np.ndarray, out: np.ndarray
) -> None:
    for storage in storages:
        storage.add_rows(rows, columns, weights[storage.indices], out)
