"""A bank whose kernels live on Dask workers: what an outer optimizer works with, by the same names as a local bank.

The kernels are cut into *shards*, one for each worker. A shard is a task: it binds its kernels to the training data,
of which every worker has a copy, and learns their normalization, which concerns one kernel at a time. When a worker
dies, the scheduler computes its shard anew on another one. With n samples, m kernels and W workers

    quad_forms   sends beta to each worker, and m numbers come back
    combine      sends m weights; triangles of n (n + 1) / 2 numbers are added up along a tree of the shards, W - 1 of
                 them travel between workers and one comes to the driver
    subset       moves nothing: the driver computes the few kernels of a working set from its own copy of the data, or
                 leaves them where they are if they do not fit into its memory

so the bytes of an iteration do not grow with m, but for the m numbers and m weights themselves. The driver holds the
data, the combined kernel and vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manykernels.banks.argument_checks import check_matrix, checked_places, checked_weights
from manykernels.banks.cluster import shard as on_shard
from manykernels.banks.cluster.shards import Holding, Shards
from manykernels.banks.cluster.workers import Workers
from manykernels.banks.combining import put_together
from manykernels.banks.layout import plan_storages
from manykernels.banks.learned import Terms
from manykernels.banks.listed import ListedBank
from manykernels.banks.offers import LISTS
from manykernels.banks.packed import PackedBank
from manykernels.banks.placement import PRECISIONS, Data, Placement, Recipe
from manykernels.compute.memory import budget_bytes
from manykernels.compute.triangles import packed, triangle_size
from manykernels.kernels.kernel_bank import KernelBank
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.shared_distances import BoundKernel

# While a working set changes, the old one and the new one are there.
_SETS_AT_ONCE = 2
_ENOUGH = 1 << 62  # bytes, where it is known that they fit


def bind_on_workers(
    kernels: KernelBank, data: Data, recipe: Recipe, placement: Placement, n_shards: int | None = None
) -> DaskBank:
    """Bind kernels to training data on the workers of a cluster.

    Parameters
    ----------
    kernels : KernelBank
        Without ladders.
    data : Data
    recipe : Recipe
    placement : Placement
        Its budget is for the kernels of a working set on the driver; if it is too small, they stay on the workers.
    n_shards : int, optional
        Default: one for each worker.
    """
    kernels.require_plain("cluster='dask'")
    if kernels.ladders:
        raise TypeError(
            f"cluster='dask' needs kernels one by one (see KernelBank.written_out), got {kernels.ladders[0]!r}."
        )
    X, weight, bound = data.X, data.weights, kernels.resolve(data.table)
    kernels.check_views(X, data.table)
    options = {"recipe": recipe, "precision": placement.precision}
    shards = Shards(Workers(placement.client), bound, X, weight, options, n_shards)
    learned = shards.persistent(
        lambda: shards.gather([shards.submit(s, on_shard.learned_scales) for s in range(len(shards.members))])
    )
    scale, largest = np.empty(len(bound)), np.empty(len(bound))
    for members, (scales, peaks, _) in zip(shards.members, learned, strict=True):
        scale[members], largest[members] = scales, peaks
    held = "single" if any(part[2] == "single" for part in learned) else "double"
    return DaskBank(
        shards,
        [Holding(s, None, members) for s, members in enumerate(shards.members)],
        bound,
        X,
        weight,
        Normalization(scale, None, None, None, largest),
        (recipe.normalize == "cosine", recipe.center),
        held,
        budget_bytes(placement.budget),
    )


class DaskBank(ListedBank):
    """Kernels on Dask workers; made by :func:`bind_on_workers`. Attributes are those of ``ListedBank``.

    Parameters
    ----------
    shards : Shards
    holdings : sequence of Holding
        Which shard holds which kernel.
    bound, X, sample_weight, precision
        As for ``ListedBank``.
    scales : Normalization
        The scale and the largest diagonal entry of each kernel; whatever else was learned stays on the workers.
    kind : (bool, bool)
        Whether the kernels are normalized to cosines, and whether they are centered.
    driver_bytes : int
        Memory for the kernels of a working set on the driver.
    """

    can = LISTS
    concurrent = False  # each problem has all workers

    def __init__(
        self,
        shards: Shards,
        holdings: Sequence[Holding],
        bound: Sequence[BoundKernel],
        X: Any,
        sample_weight: np.ndarray,
        scales: Normalization,
        kind: tuple[bool, bool],
        precision: str,
        driver_bytes: int,
    ) -> None:
        super().__init__(bound, X, scales, sample_weight, precision)
        self._shards, self._holdings, self._kind, self.driver_bytes = shards, list(holdings), kind, driver_bytes

    @property
    def is_cosine(self) -> bool:  # type: ignore[override]
        """Whether the kernels are normalized to cosines."""
        return self._kind[0]

    @property
    def is_centered(self) -> bool:  # type: ignore[override]
        """Whether the kernels are centered."""
        return self._kind[1]

    def describe_storage(self) -> str:
        """Return words for where the kernels are."""
        return f"{self.n_kernels} in {len(self._holdings)} shards on {len(self._shards.workers)} Dask workers"

    # -- sums over the kernels ------------------------------------------------------------------------------------

    def fill(self, weights: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write sum_k weights[k] K_k to ``out``: symmetric, of shape (n, n)."""
        used = [holding for holding in self._holdings if np.any(weights[holding.places])]
        if not used:
            out.fill(0.0)
            return out

        def ask() -> np.ndarray:
            parts = [
                (h.shard, self._shards.submit(h.shard, on_shard.weighted_sum, weights[h.places], h.local)) for h in used
            ]
            return self._shards.workers.tree(on_shard.add, parts).result()

        return on_shard.unpacked(self._shards.persistent(ask), self.n_samples, out)

    def quad_forms(self, beta: np.ndarray, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return beta' K_k beta of the kernels of the subset (default: all).

        Of shape (len(subset),), or (n_tasks, len(subset)) for beta of shape (n_tasks, n).
        """
        self._check_length(beta)
        return self._each(subset, np.shape(beta)[:-1], (), on_shard.ask, "quad_forms", (np.asarray(beta),))

    def inner_products(self, M: np.ndarray, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return the Frobenius inner products <K_k, M> with a symmetric M of shape (n, n), shape (len(subset),)."""
        check_matrix(M, self.n_samples)
        triangle = packed(np.ascontiguousarray(M, dtype=np.float64))
        return self._each(subset, (), (), on_shard.inner_products, Sent(triangle))

    def centered_squares(self, weight: np.ndarray) -> np.ndarray:
        """Return ||K_c||_w^2 of all kernels, see ``manykernels.kernels.centered``."""
        return self._each(None, (), (), on_shard.centered_squares, weight)

    def matvecs(
        self, beta: np.ndarray, subset: Sequence[int] | np.ndarray | None = None, *, on_support: bool = False
    ) -> np.ndarray:
        """Return K_k beta for the kernels of the subset (default: all), shape (len(subset), n)."""
        self._check_length(beta)
        return self._each(subset, (), (self.n_samples,), on_shard.matvecs, np.asarray(beta), on_support)

    def rows(self, indices: Sequence[int] | np.ndarray, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return the given rows of the kernels of the subset, shape (len(subset), len(indices), n)."""
        rows = checked_places(indices, self.n_samples, "indices")
        return self._each(subset, (), (rows.size, self.n_samples), on_shard.ask, "rows", (rows,))

    def matrix(self, k: int) -> np.ndarray:
        """Return kernel k, shape (n, n)."""
        if not 0 <= k < self.n_kernels:
            raise IndexError(f"k must be from 0 to {self.n_kernels - 1}, got {k}.")
        return self.rows(np.arange(self.n_samples), [k])[0]

    def diagonal(self, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return the diagonals of the kernels of the subset, shape (len(subset), n)."""
        return self._each(subset, (), (self.n_samples,), on_shard.ask, "diagonal", ())

    def _each(
        self,
        subset: Sequence[int] | np.ndarray | None,
        lead: tuple[int, ...],
        trail: tuple[int, ...],
        function: Callable,
        *arguments: Any,
    ) -> np.ndarray:
        """Return what the shards say of the kernels of the subset, of shape (*lead, len(subset), *trail)."""
        holdings, size = self._of(subset)

        def ask() -> list:
            sent = [self._shards.workers.send(a.data) if isinstance(a, Sent) else a for a in arguments]
            return self._shards.gather([self._shards.submit(h.shard, function, *sent, h.local) for h in holdings])

        pieces = zip([holding.places for holding in holdings], self._shards.persistent(ask), strict=True)
        return put_together(size, pieces, lead, trail)

    def _of(self, subset: Sequence[int] | np.ndarray | None) -> tuple[list[Holding], int]:
        """Return who holds which kernels of the subset, and its size."""
        if subset is None:
            return self._holdings, self.n_kernels
        chosen = self._chosen(subset)
        parts = [holding.chosen(chosen) for holding in self._holdings]
        return [holding for holding in parts if holding is not None], chosen.size

    # -- a few kernels ----------------------------------------------------------------------------------------------

    def subset(self, indices: Sequence[int] | np.ndarray) -> PackedBank | DaskBank:
        """Return the bank of a few of the kernels: on the driver if they fit into its memory, else where they are."""
        chosen = self._chosen(indices)
        # Each shard has the digits that its kernels need, and so has a working set.
        fits_single = self.normalization.take(chosen).fits_single
        precision = self.precision if fits_single else "double"
        dtype = PRECISIONS[precision]
        need = chosen.size * triangle_size(self.n_samples) * np.dtype(dtype).itemsize
        if _SETS_AT_ONCE * need > self.driver_bytes or chosen.size == 0:
            return self._view(chosen)
        bound, norms = [self.bound[int(k)] for k in chosen], self._learned_of(chosen)
        storages, _ = plan_storages(
            bound, self.X, norms, self.sample_weight, budget=_ENOUGH, storage="auto", dtype=dtype
        )
        return PackedBank(bound, self.X, norms, self.sample_weight, storages, precision)

    def _view(self, chosen: np.ndarray) -> DaskBank:
        """Return the bank of a few of the kernels, where they are."""
        return DaskBank(
            self._shards,
            self._of(chosen)[0],
            [self.bound[int(k)] for k in chosen],
            self.X,
            self.sample_weight,
            self.normalization.take(chosen),
            self._kind,
            self.precision,
            self.driver_bytes,
        )

    def tail(self, size: int) -> DaskBank:
        """Return the kernels on the last ``size`` samples, normalized as here; the workers' memory is shared."""
        tail = DaskBank(
            self._shards.tail(size),
            self._holdings,
            self.bound,
            self.X[-size:],
            self.sample_weight[-size:],
            self.normalization,
            self._kind,
            self.precision,
            self.driver_bytes,
        )
        tail.spare = self.spare_beside_tail(size)
        return tail

    def _learned_of(self, chosen: np.ndarray) -> Normalization:
        """Return all that the workers learned of a few kernels."""
        normalization = self.normalization.take(chosen)
        if not (self.is_cosine or self.is_centered):
            return normalization
        holdings, _ = self._of(chosen)
        learned = self._shards.persistent(
            lambda: self._shards.gather(
                [self._shards.submit(h.shard, on_shard.normalization, h.local) for h in holdings]
            )
        )

        def put(part: str, shape: tuple[int, ...]) -> np.ndarray:
            out = np.empty(shape)
            for holding, normalizations in zip(holdings, learned, strict=True):
                out[holding.places] = getattr(normalizations, part)
            return out

        square = (chosen.size, self.n_samples)
        return Normalization(
            normalization.scale,
            put("inverse_norms", square) if self.is_cosine else None,
            put("means", square) if self.is_centered else None,
            put("totals", square[:1]) if self.is_centered else None,
            normalization.largest,
        )

    def terms(self, weights: np.ndarray) -> Terms:
        """Return the combined kernel as a sum of the kernels with a positive weight."""
        weights = checked_weights(weights, self.n_kernels)
        active = np.flatnonzero(weights)
        learned = self._learned_of(active)
        bound = [self.bound[int(k)] for k in active]
        return Terms(bound, weights[active] * learned.scale, learned.means, learned.totals)


@dataclass(frozen=True)
class Sent:
    """An argument that is large: sent once, and passed on from worker to worker."""

    data: np.ndarray
