"""Feature maps of kernels on a device: landmarks and waves are computed there, other maps on the CPU and sent."""

from __future__ import annotations

from typing import Any

import numpy as np

from manykernels.banks.device.views import apply, is_known, near_one
from manykernels.compute.gpu import Device, Tensor
from manykernels.compute.pairwise import dense
from manykernels.kernels.feature_maps import FeatureMaps, Nystroem, RandomFourier
from manykernels.kernels.missing import observed, seen_rows

_ROW_COPIES = 4


class DeviceMaps:
    """The maps of :class:`manykernels.kernels.feature_maps.FeatureMaps`, without a bias, on a device.

    Parameters
    ----------
    device : Device
    maps : FeatureMaps
    """

    def __init__(self, device: Device, maps: FeatureMaps) -> None:
        self._device, self._maps = device, maps
        # What the maps of the landmarks and waves need there, by the number of the kernel.
        self._parts: dict[int, Any] = {}
        for k, entry in enumerate(maps.bound if device.has_double else ()):
            if isinstance(entry.kernel, Nystroem) and is_known(entry.kernel.kernel):
                self._parts[k] = _Landmarks(device, entry.kernel)
            elif isinstance(entry.kernel, RandomFourier):
                self._parts[k] = _Waves(device, entry.kernel)

    def transform(self, X: Any) -> Tensor:
        """Return the features of the rows of X, an array or CSR matrix, shape (len(X), n_features), in ``wide``."""
        return self._device.torch.cat([self._part(k, X) for k in range(len(self._maps.bound))], 1)

    def _part(self, k: int, X: Any) -> Tensor:
        device, maps = self._device, self._maps
        if k not in self._parts:
            return device.send(maps.part(k, X))
        positions = maps.bound[k].positions
        V = dense(X if np.array_equal(positions, np.arange(X.shape[1])) else X[:, positions])
        mask = observed(V)
        if self._parts[k].depends_on_order(seen_rows(V, mask)):  # a model predicts single rows on the CPU
            return device.send(maps.part(k, X))
        features = self._parts[k].features(device.send(V if mask is None else np.where(mask[:, None], V, 0.0)))
        if mask is not None:
            features[~device.send(mask, device.torch.bool)] = 0.0
        if maps.cosine:
            length = features.square().sum(1, keepdim=True).sqrt_()
            features = device.torch.where(length > 0, features / length, 0.0)
        return features.mul_(float(np.sqrt(maps.scale[k])))


class _Landmarks:
    def __init__(self, device: Device, kernel: Nystroem) -> None:
        self._device, self._kernel = device, kernel.kernel
        base = getattr(kernel.kernel, "base", "inner")
        landmarks, self._unit, self._shift = kernel.landmarks, 1.0, None
        if base != "inner":
            self._shift = device.send(landmarks.mean(axis=0))
            landmarks, self._unit = near_one(np.asarray(landmarks, dtype=np.float64))
        self._landmarks = device.send(landmarks)
        self._root = device.send(kernel.root)

    def depends_on_order(self, V: np.ndarray) -> bool:
        """Return False: their values and roots lose no more digits in one order than in another."""
        return False

    def features(self, V: Tensor) -> Tensor:
        if self._shift is None:
            base = V @ self._landmarks.T
        else:
            base = self._device.squared_distances((V - self._shift) / self._unit, self._landmarks)
        return apply(self._kernel, base, self._unit) @ self._root


class _Waves:
    def __init__(self, device: Device, kernel: RandomFourier) -> None:
        self._device, self._kernel = device, kernel
        self.depends_on_order = kernel.depends_on_order

    def features(self, V: Tensor) -> Tensor:
        torch, kernel = self._device.torch, self._kernel
        phases = V @ self._device.send(kernel.frequencies(V.shape[1]))
        return torch.cat([phases.cos(), phases.sin_()], 1).mul_(float(np.sqrt(2.0 / kernel.n_components)))


def predict_features_on(device: Device, maps: FeatureMaps, X: Any, vectors: np.ndarray) -> np.ndarray:
    """Return the products of the features of the rows of X with vectors (n_tasks, n_features): (len(X), n_tasks)."""
    sent, on_device = device.send(vectors), DeviceMaps(device, maps)
    out = np.zeros((X.shape[0], vectors.shape[0]))

    def part(_: slice, rows: slice) -> Tensor:
        return on_device.transform(X[rows]) @ sent.T

    for _, rows, products in device.sweep(1, X.shape[0], _ROW_COPIES * vectors.shape[1], part):
        out[rows] = device.fetch(products)
    return out
