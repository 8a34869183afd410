"""A bank of kernels of small rank with its features on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from manykernels.banks.device.feature_maps import DeviceMaps
from manykernels.banks.features import CombinedFeatures, FeatureBank
from manykernels.banks.placement import PRECISIONS
from manykernels.banks.planning import device_holds
from manykernels.compute.device_table import DeviceFeatureTable
from manykernels.compute.gpu import Device, Tensor


class DeviceFeatureBank(FeatureBank):
    """Kernels as features of the training data, on a device.

    Made by ``bind`` with a device and an approximation in its placement. Landmarks are chosen on the CPU, from a part
    of the rows. Where double precision is needed and the device has none, the features are on the CPU.

    Parameters
    ----------
    device : Device
    *rest, **options
        As for :class:`FeatureBank`; what does not fit on the device is computed in each pass.
    """

    def __init__(self, device: Device, *rest: Any, **options: Any) -> None:
        self.device = device
        super().__init__(*rest, **options)

    def _make_table(self, budget: int) -> Any:
        if not device_holds(self.device.has_double, self.precision, is_centered=False):
            return super()._make_table(budget)
        maps, X = DeviceMaps(self.device, self._maps), self.X

        def compute(rows: Any) -> Tensor:
            samples = X[rows]
            return maps.transform(samples if hasattr(samples, "tocsr") else np.asarray(samples, dtype=np.float64))

        return DeviceFeatureTable(
            self.device,
            compute,
            self.n_samples,
            int(self.first[-1]),
            PRECISIONS[self.precision],
            self.sample_weight if self.is_centered else None,
        )

    def workspace(self) -> CombinedFeatures:
        """Return what :meth:`combine` writes to."""
        return super().workspace() if self.held_on == "cpu" else DeviceCombinedFeatures(self)


class DeviceCombinedFeatures(CombinedFeatures):
    """The combined kernel, with blocks of it made on the device of features."""

    can = frozenset({"features", "block"})

    def __init__(self, bank: DeviceFeatureBank) -> None:
        super().__init__(bank)
        self._device = bank.device

    def block(self, rows: np.ndarray) -> np.ndarray:
        """Return the block of these rows and columns, shape (len(rows), len(rows))."""
        features = self._some_columns(rows)
        with self._device.exact():
            return self._device.fetch(features @ features.T)

    def columns_product(self, columns: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Return K[:, columns] @ change, shape (n,)."""
        beta = np.zeros((1, self.n_samples))
        beta[0, columns] = change
        return self.product(beta)[0]

    def _some_columns(self, rows: np.ndarray) -> Tensor:
        """Return the rows of X = Z sqrt(columns) on the columns in use."""
        factors = self.columns
        used = np.flatnonzero(factors)
        Z = self.table.rows(rows)[:, self._device.places(used)]
        return Z * self._device.send(np.sqrt(factors[used]), Z.dtype)
