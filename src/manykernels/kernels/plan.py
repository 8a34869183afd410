"""Which storage holds which kernel: the memory plan of a bank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.compute.packed import triangle_size
from manykernels.kernels.groups import BoundKernel, make_groups
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.storage import FactorStorage, PackedStorage, RecomputedStorage, Storage

STORAGES = ("auto", "packed", "factors", "recomputed")
# Up to this rank, a matrix product with the factors costs no more than reading the packed triangle.
_SMALL_RANK = 8


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
) -> list[Storage]:
    """Choose a storage for each kernel: factors of small rank, then triangles while they fit, then none.

    Where not all triangles fit, room is left for ``reserve`` of them: a solver holds those it works on.
    """
    if storage not in STORAGES:
        raise ValueError(f"storage must be one of {STORAGES}, got {storage!r}.")
    rest = np.arange(len(bound))
    storages: list[Storage] = []
    if storage in ("auto", "factors"):
        limit = X.shape[0] // 4 if storage == "factors" else min(_SMALL_RANK, X.shape[0] // 4)
        factors = _factors(bound, X, normalization, sample_weight, limit, budget)
        if factors is not None:
            rest = np.setdiff1d(rest, factors.indices)
            budget -= factors.columns.nbytes
            storages.append(factors)
    each = np.dtype(dtype).itemsize * triangle_size(X.shape[0])
    fit = max(budget, 0) // each
    fit = fit if fit >= rest.size else max(fit - reserve, 0)
    n_held = {"auto": fit, "packed": rest.size, "factors": rest.size}.get(storage, 0)
    for indices, is_held in ((rest[:n_held], True), (rest[n_held:], False)):
        if indices.size:
            source = RecomputedStorage(bound, indices, X, normalization, dtype)
            storages.append(PackedStorage.fill(source) if is_held else source)
    return storages


def _factors(
    bound: Sequence[BoundKernel],
    X: Any,
    normalization: Normalization,
    sample_weight: np.ndarray,
    max_rank: int,
    budget: int,
) -> FactorStorage | None:
    """Return the kernels that have a factor of at most ``max_rank`` columns, while they fit."""
    found = {}
    for group in make_groups(bound):
        view = group.view(X)
        # A factor has at least as many columns as the kernel sees: do not even ask for a large one.
        for g, k in enumerate(group.indices if view.shape[1] <= max_rank else ()):
            factor = group.kernels[g].factor(view)
            if factor is not None and factor.shape[1] <= max_rank and factor.nbytes <= budget:
                found[int(k)] = normalization.apply_factor(k, factor, sample_weight)
                budget -= factor.nbytes
    chosen = sorted(found)
    return FactorStorage(np.array(chosen), [found[k] for k in chosen]) if chosen else None
