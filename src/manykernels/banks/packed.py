"""Kernels held by storages: packed triangles, factors, or recomputed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from manykernels.banks.argument_checks import check_length, check_matrix, checked_places
from manykernels.banks.factor_storage import FactorStorage
from manykernels.banks.listed import ListedBank
from manykernels.banks.offers import LISTS, MATRICES
from manykernels.banks.packed_storage import PackedStorage
from manykernels.banks.room import Room
from manykernels.banks.storage import BLOCK_ENTRIES, FACTOR_ROWS, Storage, held_here
from manykernels.compute.batches import HostBatches
from manykernels.compute.threads import parallel
from manykernels.compute.triangles import balanced_blocks, mirror, row_offset, write_rows
from manykernels.kernels.base import Linear
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.shared_distances import BoundKernel, by_distances

# Kernels of no more features than this are kept as factors.
FACTOR_COLUMNS = 32


def bank_of_features(
    bound: Sequence[BoundKernel],
    columns: np.ndarray,
    scale: np.ndarray,
    first: np.ndarray,
    largest: np.ndarray,
    dtype: type = np.float64,
) -> PackedBank:
    """Return the bank of kernels that are the inner products of features of their own.

    They are factors where features are few, and written out where they are many.

    Parameters
    ----------
    bound : sequence of BoundKernel
        For the names and groups.
    columns : ndarray of shape (n_samples, n_columns)
        The features, to which the scale is not yet applied.
    scale, largest : ndarrays of shape (n_kernels,)
    first : ndarray of shape (n_kernels + 1,)
        Where the features of each kernel begin, and the end.
    dtype : float32 or float64
        Of kernels that are written out.
    """
    places, ranks, n = list(pairwise(first.tolist())), np.diff(first), len(columns)

    def factors(kernels: np.ndarray) -> Iterator[np.ndarray]:
        for k in kernels:
            factor = columns[:, first[k] : first[k + 1]].astype(np.float64)
            factor *= np.sqrt(scale[k])
            yield factor

    few, many = np.flatnonzero(ranks <= FACTOR_COLUMNS), np.flatnonzero(ranks > FACTOR_COLUMNS)
    storages: list[Storage] = []
    if few.size:
        storages.append(FactorStorage(few, factors(few), ranks[few]))
    if many.size:
        storages.append(PackedStorage.of_factors(many, factors(many), n, dtype))
    linear = [
        replace(entry, kernel=Linear(), positions=np.arange(low, high))
        for entry, (low, high) in zip(bound, places, strict=True)
    ]
    normalization = Normalization(scale, None, None, None, largest)
    precision = "double" if dtype == np.float64 else "single"
    return PackedBank(linear, columns, normalization, np.ones(n), storages, precision)


class PackedBank(ListedBank):
    """Kernels bound to training data: what an outer optimizer works with.

    Made by ``bind``. The kernels are normalized; none needs to be in memory as a full matrix. Attributes are those of
    :class:`ListedBank`.
    """

    can = LISTS | MATRICES

    def __init__(
        self,
        bound: Sequence[BoundKernel],
        X: Any,
        normalization: Normalization,
        sample_weight: np.ndarray,
        storages: list[Storage],
        precision: str,
        room: Room | None = None,
    ) -> None:
        super().__init__(bound, X, normalization, sample_weight, precision, room)
        self.storages = storages

    def subset(self, indices: np.ndarray) -> PackedBank:
        """Return the bank of a few of the kernels, held in memory while they fit; what is held already is shared."""
        indices = self._chosen(indices)
        return PackedBank(
            [self.bound[int(k)] for k in indices],
            self.X,
            self.normalization.take(indices),
            self.sample_weight,
            [subset for storage in self.storages for subset in storage.subset(indices, self.room)],
            self.precision,
            self.room,
        )

    def tail(self, size: int) -> PackedBank:
        """Return the kernels on the last ``size`` samples, normalized as here; what is held in memory is shared."""
        tail = PackedBank(
            self.bound,
            self.X[-size:],
            self.normalization.tail(size),
            self.sample_weight[-size:],
            [storage.tail(size) for storage in self.storages],
            self.precision,
            self.room,
        )
        tail.spare = self.spare_beside_tail(size)
        return tail

    def describe_storage(self) -> str:
        """Return words for how the kernels are held.

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels.banks import bind
        >>> from manykernels.kernels import standard_bank
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> bind(standard_bank(X), X).describe_storage()
        '6 as factors (7.2 kB), 33 packed (168 kB)'
        """
        return ", ".join(storage.describe() for storage in self.storages)

    def fill(self, weights: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write sum_k weights[k] K_k, for weights of any sign, to ``out``: symmetric, of shape (n, n)."""
        adders = [s.adder(weights[s.indices]) for s in self.storages if np.any(weights[s.indices])]

        def block_sum(block: tuple[int, int]) -> None:
            first, last = row_offset(block[0], self.n_samples), row_offset(block[1], self.n_samples)
            segment = np.zeros(last - first)
            for add in adders:
                add(*block, segment)
            write_rows(segment, *block, out)

        wide = any(storage.is_wide for storage in self.storages)
        entries = max(BLOCK_ENTRIES, FACTOR_ROWS * self.n_samples) if wide else BLOCK_ENTRIES
        parallel(block_sum, balanced_blocks(self.n_samples, entries))
        return mirror(out)

    def inner_products(self, M: np.ndarray, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return the Frobenius inner products <K_k, M> with a symmetric M of shape (n, n), shape (len(subset),)."""
        check_matrix(M, self.n_samples)
        return self._gather(subset, lambda storage, local: storage.inner_products(M, local), ())

    def centered_squares(self, weight: np.ndarray) -> np.ndarray:
        """Return ||K_c||_w^2 of all kernels, see ``manykernels.kernels.centered``."""
        check_length(weight, self.n_samples, "weight")
        return self._gather(None, lambda storage, local: storage.centered_squares(weight, local), ())

    def quad_forms(self, beta: np.ndarray, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return beta' K_k beta of the kernels of the subset (default: all).

        Of shape (len(subset),), or (n_tasks, len(subset)) for beta of shape (n_tasks, n).
        """
        rows = np.ascontiguousarray(np.atleast_2d(beta), dtype=np.float64)
        self._check_length(rows)
        chosen = self._chosen(subset)
        out = np.empty((rows.shape[0], chosen.size))
        for storage in self.storages:
            places, local = held_here(storage.indices, chosen)
            if places.size:
                out[:, places] = storage.quad_forms(rows, local)
        np.maximum(out, 0.0, out=out)  # rounding can leave a tiny negative value where the form vanishes
        return out if beta.ndim == 2 else out[0]

    def matvecs(
        self, beta: np.ndarray, subset: Sequence[int] | np.ndarray | None = None, *, on_support: bool = False
    ) -> np.ndarray:
        """Return K_k beta for the kernels of the subset (default: all), shape (len(subset), n).

        With ``on_support``, the values where beta is 0 are not asked for and returned as 0, which saves their cost.
        """
        self._check_length(beta)
        return self._gather(subset, lambda storage, local: storage.matvecs(beta, local, on_support), (self.n_samples,))

    def rows(self, indices: Sequence[int] | np.ndarray, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return the given rows of the kernels of the subset, shape (len(subset), len(indices), n)."""
        rows = checked_places(indices, self.n_samples, "indices")
        return self._gather(subset, lambda storage, local: storage.rows(rows, local), (rows.size, self.n_samples))

    def matrix(self, k: int) -> np.ndarray:
        """Return kernel k, shape (n, n)."""
        for storage in self.storages:
            places, local = held_here(storage.indices, np.array([k]))
            if places.size:
                return storage.rows(np.arange(self.n_samples), local)[0]
        raise IndexError(f"k must be from 0 to {self.n_kernels - 1}, got {k}.")

    def batches(self) -> Any:
        """Return where many small problems are solved at once: where the kernels are."""
        return HostBatches(self.room.left)

    def kernel_products(self, k: int, vectors: Any) -> Any:
        """Return K_k times each of the vectors, (n_vectors, n), which are where :meth:`batches` says."""
        return vectors @ self.matrix(k)

    def combined(self, weights: np.ndarray) -> Any:
        """Return sum_k weights[k] K_k, (n, n), to be overwritten: it is where :meth:`batches` says."""
        return self.fill(weights, np.empty((self.n_samples, self.n_samples)))

    def _gather(self, subset: Any, compute: Any, shape: tuple[int, ...]) -> np.ndarray:
        chosen = self._chosen(subset)
        out = np.empty((chosen.size, *shape))
        for storage in self.storages:
            places, local = held_here(storage.indices, chosen)
            if places.size:
                out[places] = compute(storage, local)
        return out

    def on(self, X: Any) -> PackedBank:
        """Return the kernels, scaled as here, on other samples; centered ones depend on theirs."""
        normalization = self.normalization.on_other_samples(by_distances(self.bound), X)
        return PackedBank(self.bound, X, normalization, np.ones(X.shape[0]), [], self.precision)
