"""Which storage holds which kernel: the memory plan of a bank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.banks.factor_storage import FactorStorage
from manykernels.banks.packed_storage import PackedStorage
from manykernels.banks.recomputed_storage import RecomputedStorage
from manykernels.banks.room import Room
from manykernels.banks.storage import Storage
from manykernels.compute.memory import human_bytes
from manykernels.compute.triangles import triangle_size
from manykernels.core.checks import check_choice
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.shared_distances import BoundKernel, by_distances

STORAGES = ("auto", "packed", "factors", "recomputed", "rows")
# Up to this rank, a matrix product with the factors costs no more than reading the packed triangle.
SMALL_RANK = 8
# Kernels in float32 are rounded by this much, beside a diagonal of 1; approximate factors may be as wrong, not more.
_ROUNDING = 2.0**-25
# A decomposition moves two samples at a time, and needs their rows; float32.
_LEAST_ROWS, _ROW_ENTRY = 2, 4


def plan_storages(
    bound: Sequence[BoundKernel],
    X: Any,
    normalization: Normalization,
    sample_weight: np.ndarray,
    *,
    budget: int,
    storage: str,
    dtype: type,
    reserve: int = 0,
) -> tuple[list[Storage], Room]:
    """Choose a storage for each kernel: factors of small rank, then triangles while they fit, then none.

    Where not all triangles fit, Gaussian kernels of a single column become factors of a moderate rank, exact to the
    rounding of float32, and room is left for ``reserve`` triangles: a solver holds those it works on. With rows on
    demand, half of the budget is left for them. What is left of the budget is the room of working sets.
    """
    check_choice("storage", storage, STORAGES)
    n, asked = X.shape[0], storage == "factors"
    budget = _beside_rows(budget, n) if storage == "rows" else budget
    plan = _Plan(bound, X, normalization, sample_weight, budget, dtype)
    if storage in ("auto", "factors", "rows"):
        plan.take_factors(n // 4 if asked else min(SMALL_RANK, n // 4), exact=True)
    if dtype == np.float32 and (asked or storage == "rows" or (storage == "auto" and not plan.rest_fits())):
        most = n // 4 if asked else n // 8
        # A factor and what it is made of must fit beside the others, where the rows will be.
        most = min(most, max(budget // (2 * 8 * n), 1)) if storage == "rows" else most
        plan.take_factors(most, exact=False, leave=0 if asked else min(reserve * plan.triangle, budget // 2))
    fit = plan.rest.size if plan.rest_fits() else max(max(plan.budget, 0) // plan.triangle - reserve, 0)
    plan.take_triangles({"auto": fit, "packed": plan.rest.size, "factors": plan.rest.size}.get(storage, 0))
    return plan.storages, Room(max(plan.budget, 0))


def _beside_rows(budget: int, n: int) -> int:
    """Return the bytes that factors may take besides a cache of rows: half, since without rows nothing is learned."""
    need = 2 * _LEAST_ROWS * _ROW_ENTRY * n
    if budget < need:
        raise MemoryError(
            f"memory_budget is {human_bytes(budget)}, but factors and rows of {n} samples need {human_bytes(need)}."
        )
    return budget // 2


class KernelsLeft:
    """The kernels of a bank that have no storage yet, and the bytes that are left for them."""

    def __init__(
        self, bound: Sequence[BoundKernel], X: Any, normalization: Normalization, sample_weight: np.ndarray, budget: int
    ) -> None:
        self.bound, self.X, self.normalization, self.sample_weight = bound, X, normalization, sample_weight
        self.budget, self.rest = budget, np.arange(len(bound))

    def find_factors(self, max_rank: int, error: float | None = None, leave: int = 0) -> dict[int, np.ndarray]:
        """Return the normalized factors of at most ``max_rank`` columns, by kernel, while they leave some bytes.

        They are exact, or have an error of at most ``error``.
        """
        factors = {}
        for shared in by_distances(self.bound, self.rest):
            view = shared.view(self.X)
            if view.shape[1] > max_rank:
                continue  # a factor has at least as many columns as the kernel sees: do not even ask for it
            for k, factor in zip(shared.indices, shared.factors(view, error, max_rank), strict=True):
                if factor is not None and factor.shape[1] <= max_rank and factor.nbytes <= self.budget - leave:
                    factors[int(k)] = self.normalization.apply_factor(k, factor, self.sample_weight)
                    self.budget -= factor.nbytes
        return factors


class _Plan(KernelsLeft):
    """What has been decided of a bank in memory."""

    def __init__(
        self,
        bound: Sequence[BoundKernel],
        X: Any,
        normalization: Normalization,
        sample_weight: np.ndarray,
        budget: int,
        dtype: type,
    ) -> None:
        super().__init__(bound, X, normalization, sample_weight, budget)
        self.dtype = dtype
        self.triangle = np.dtype(dtype).itemsize * triangle_size(X.shape[0])
        self.storages: list[Storage] = []

    def rest_fits(self) -> bool:
        """Return whether the triangles of all kernels that are left fit."""
        return self.rest.size * self.triangle <= max(self.budget, 0)

    def take_factors(self, max_rank: int, exact: bool, leave: int = 0) -> None:
        """Hold the kernels that have a factor of at most ``max_rank`` columns as such, while they leave some bytes."""
        factors = self.find_factors(max_rank, None if exact else _ROUNDING, leave)
        if factors:
            chosen = np.array(sorted(factors))
            ranks = [factors[k].shape[1] for k in chosen]
            self.storages.append(FactorStorage(chosen, (factors.pop(k) for k in chosen), ranks))
            self.rest = np.setdiff1d(self.rest, chosen)

    def take_triangles(self, n_held: int) -> None:
        """Hold the triangles of the first kernels that are left, and compute the others anew in each pass."""
        for indices, is_held in ((self.rest[:n_held], True), (self.rest[n_held:], False)):
            if indices.size:
                source = RecomputedStorage(self.bound, indices, self.X, self.normalization, self.dtype)
                self.storages.append(PackedStorage.fill(source) if is_held else source)
        self.budget -= self.triangle * self.rest[:n_held].size
