"""Predictions with a learned kernel on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from manykernels.banks.device.views import apply, is_known, near_one
from manykernels.banks.learned import LearnedKernel
from manykernels.compute.gpu import Device, Tensor
from manykernels.compute.pairwise import dense
from manykernels.kernels.missing import observed
from manykernels.kernels.shared_distances import SharedDistances, by_distances


def predict_on(
    device: Device, kernel: LearnedKernel, X: Any, coef: np.ndarray, shares: np.ndarray | None = None
) -> np.ndarray:
    """Return sum_j coef[t, j] k(x_i, kept_j), shape (n_tasks, len(X)), as :meth:`LearnedKernel.predict`.

    ``shares`` are those of :meth:`LearnedKernel.parts`.

    In double precision, where the device has it. Kernels that the device does not know are computed on the CPU.
    """
    all_shared = [_SharedBlocks(device, shared, kernel, X) for shared in by_distances(kernel.bound)]
    sent, out = device.send(coef), np.zeros((coef.shape[0], X.shape[0]))
    share = None if kernel.share is None else device.send(kernel.share)
    sums = device.send(coef.sum(axis=1))

    def part(_: slice, rows: slice) -> Tensor:
        total = device.zeros(coef.shape[0], rows.stop - rows.start)
        for shared in all_shared:
            for k, block in shared.blocks(rows):
                values = kernel.coefficients[k] * (sent @ block.T)
                if share is not None and kernel.means is not None and kernel.totals is not None:
                    # What centering adds: the total less the means of both sides, for each pair.
                    right = (sent @ device.send(kernel.means[k]))[:, None]
                    level = float(kernel.totals[k]) - block @ share
                    values += kernel.coefficients[k] * (sums[:, None] * level - right)
                total += values if shares is None else device.send(shares[k])[:, None] * values
        return total

    for _, rows, predictions in device.sweep(1, X.shape[0], kernel.X.shape[0], part):
        out[:, rows] = device.fetch(predictions)
    return out


class _SharedBlocks:
    """The blocks of the kernels that share distances, between new samples and those that are kept."""

    def __init__(self, device: Device, shared: SharedDistances, kernel: LearnedKernel, X: Any) -> None:
        self._device, self._shared, self._cosine = device, shared, kernel.cosine
        self._V, self._W = shared.view(X), shared.view(kernel.X)
        self._sides: tuple[Tensor, Tensor] | None = None
        self._unit = 1.0
        whole = observed(self._V) is None and observed(self._W) is None
        if device.has_double and whole and shared.base is not None and all(map(is_known, shared.kernels)):
            V, W = dense(self._V).astype(np.float64), dense(self._W).astype(np.float64)
            if shared.base != "inner":
                (V, _), (W, self._unit) = near_one(V, W), near_one(W)
            self._sides = device.send(V), device.send(W)

    def blocks(self, rows: slice) -> Iterator[tuple[int, Tensor]]:
        """Yield (place in the learned kernel, raw or cosine-normalized block)."""
        for g, block in self._raw(rows):
            if self._cosine:
                left = self._shared.diagonal(g, self._V[rows])
                scale = self._device.send(np.sqrt(left[:, None] * self._shared.diagonal(g, self._W)))
                block = self._device.torch.where(scale > 0, block / scale, 0.0)  # noqa: PLW2901
            yield int(self._shared.indices[g]), block

    def _raw(self, rows: slice) -> Iterator[tuple[int, Tensor]]:
        every = range(len(self._shared.kernels))
        if self._sides is None:
            for g, block in self._shared.blocks(self._V[rows], self._W, every):
                yield g, self._device.send(block)
            return
        left, right = self._sides[0][rows], self._sides[1]
        base = left @ right.T if self._shared.base == "inner" else self._device.squared_distances(left, right)
        for g in every:
            yield g, apply(self._shared.kernels[g], base.clone(), self._unit)
