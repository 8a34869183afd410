"""Predictions with what a model keeps: on the CPU, or on a device where there is one and the work is worth it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from manykernels.banks.device.feature_maps import predict_features_on
from manykernels.banks.device.learned import predict_on
from manykernels.banks.learned import LearnedKernel
from manykernels.compute.gpu import Device, has_device
from manykernels.kernels.feature_maps import FeatureMaps

# Rows whose features are made at once: fewer where each has many, since a block exists two or three times on its way.
_MOST_ROWS, _LEAST_ROWS, _BLOCK_VALUES = 4096, 16, 1 << 20
# From so many kernel values or features on, sending samples to a device and back is little beside computing them.
_MANY_VALUES = 10**7


def predict(
    kernel: LearnedKernel, X: Any, coef: np.ndarray, device: str = "cpu", shares: np.ndarray | None = None
) -> np.ndarray:
    """Return sum_j coef[t, j] k(x_i, kept_j), shape (n_tasks, len(X)).

    ``coef`` is of shape (n_tasks, n_kept), or (n_active, n_tasks, n_kept) where the kernels do not share them. A model
    that was fitted on a GPU predicts on any machine. ``shares`` of shape (n_active, n_tasks) are what each task has of
    each kernel, by default all.
    """
    if coef.ndim == 3:
        return kernel.predict_components(X, coef)
    n_products = 1 if shares is None else coef.shape[0]  # of each kernel value
    if n_products * X.shape[0] * kernel.X.shape[0] * len(kernel.bound) >= _MANY_VALUES and has_device(device):
        return predict_on(Device(device), kernel, X, coef, shares)
    if shares is not None:
        return kernel.predict_components(X, coef, shares)
    return kernel.predict(X, coef)


def predict_from_features(kernel: LearnedKernel, X: Any, vectors: np.ndarray, device: str = "cpu") -> np.ndarray:
    """Return the products of the features of X with vectors of shape (n_tasks, n_columns), shape (n_tasks, len(X))."""
    if kernel.bound and X.shape[0] * vectors.shape[1] >= _MANY_VALUES and has_device(device):
        return predict_features_on(Device(device), maps_of(kernel), X, vectors).T
    out = np.zeros((vectors.shape[0], X.shape[0]))
    for rows, features, _ in features_in_blocks(kernel, X, vectors.shape[1]):
        out[:, rows] = (features @ vectors.T).T
    return out


def maps_of(kernel: LearnedKernel) -> FeatureMaps:
    """Return the feature maps of the kernels of the sum, without their coefficients."""
    return FeatureMaps(kernel.bound, np.ones(len(kernel.bound)), kernel.cosine, 0.0)


def features_in_blocks(kernel: LearnedKernel, X: Any, n_columns: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield some rows of X, their ``n_columns`` features, and where those of each kernel begin, and the end."""
    maps, step = maps_of(kernel), min(max(_BLOCK_VALUES // max(n_columns, 1), _LEAST_ROWS), _MOST_ROWS)
    for low in range(0, X.shape[0] if kernel.bound else 0, step):
        rows = slice(low, min(low + step, X.shape[0]))
        yield rows, *maps.transform(X[rows])
