"""Which storage holds which kernel on a device: the plan for its memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.banks.device.storage import Computed, DeviceStorage, Factors, Gaussians, Matrices
from manykernels.banks.layout import SMALL_RANK, STORAGES, KernelsLeft
from manykernels.compute.gpu import Device
from manykernels.core.checks import check_choice
from manykernels.kernels.base import Gaussian
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.shared_distances import BoundKernel, by_distances


def plan_device(
    device: Device,
    bound: Sequence[BoundKernel],
    X: Any,
    normalization: Normalization,
    sample_weight: np.ndarray,
    *,
    storage: str,
    dtype: type,
    budget: int,
) -> list[DeviceStorage]:
    """Choose a storage for each kernel: factors of small rank, distances for Gaussians, then matrices while they fit.

    With ``storage="packed"`` every kernel is a matrix, with "recomputed" nothing is held. Of the budget, bytes of the
    device, room is left for the combined kernel: with "rows" for all of it, else for what is on its way to the CPU.
    """
    check_choice("storage", storage, STORAGES)
    plan = _Plan(device, bound, X, normalization, sample_weight, dtype, budget)
    plan.budget -= plan.matrix if storage == "rows" else device.fill_bytes(X.shape[0])
    if storage in ("auto", "factors", "rows"):
        plan.take_factors(X.shape[0] // 4 if storage == "factors" else min(SMALL_RANK, X.shape[0] // 4))
    if storage != "packed":
        plan.take_gaussians(hold=storage != "recomputed")
    plan.take_rest(hold=storage != "recomputed")
    return plan.storages


class _Plan(KernelsLeft):
    """What has been decided of a bank on a device."""

    def __init__(
        self,
        device: Device,
        bound: Sequence[BoundKernel],
        X: Any,
        normalization: Normalization,
        sample_weight: np.ndarray,
        dtype: type,
        budget: int,
    ) -> None:
        super().__init__(bound, X, normalization, sample_weight, budget)
        self.device, self.dtype = device, device.dtype(dtype)
        self.matrix = np.dtype(dtype).itemsize * X.shape[0] ** 2
        self.storages: list[DeviceStorage] = []

    def take_factors(self, max_rank: int) -> None:
        """Hold the kernels that have an exact factor of at most ``max_rank`` columns as such, while they fit."""
        factors = self.find_factors(max_rank)
        if factors:
            chosen = np.array(sorted(factors))
            self._add(Factors.of(self.device, chosen, [factors[int(k)] for k in chosen], self.dtype))

    def take_gaussians(self, hold: bool) -> None:
        """Hold the distances of Gaussian kernels, of as many column sets as fit; centered ones need more digits."""
        if self.normalization.means is not None:
            return
        chosen = [k for k in self.rest.tolist() if type(self.bound[k].kernel) is Gaussian]
        all_shared = by_distances(self.bound, chosen)
        fit = min(len(all_shared), max(self.budget, 0) // self.matrix) if hold else 0
        for chosen_sets, holds in ((all_shared[:fit], True), (all_shared[fit:], False)):
            if chosen_sets:
                self._add_gaussians(np.sort(np.concatenate([shared.indices for shared in chosen_sets])), holds)
        self.budget -= fit * self.matrix

    def _add_gaussians(self, indices: np.ndarray, hold: bool) -> None:
        bound, scale = [self.bound[k] for k in indices], self.normalization.scale[indices]
        self._add(Gaussians.of(self.device, bound, indices, self.X, scale, self.dtype, hold))

    def take_rest(self, hold: bool) -> None:
        """Hold the matrices of the first kernels that are left, and compute the others anew in each pass."""
        fit = max(self.budget, 0) // self.matrix if hold else 0
        for indices, is_held in ((self.rest[:fit], True), (self.rest[fit:], False)):
            if indices.size:
                bound = [self.bound[k] for k in indices]
                source = Computed(self.device, bound, indices, self.X, self.normalization.take(indices), self.dtype)
                self._add(Matrices.fill(source) if is_held else source)

    def _add(self, storage: DeviceStorage) -> None:
        self.storages.append(storage)
        self.rest = np.setdiff1d(self.rest, storage.indices)
