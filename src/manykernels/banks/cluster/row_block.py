"""What runs on a worker that holds rows: their features, and sums over them that are as long as the features.

Coefficients and predictions of the rows are never sent. They follow from a vector u of the features and an intercept b,
z = Z u + b and beta = -C loss'(y, z), and are computed where the rows are; so a block has no state, and one that is
lost is computed anew from its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import vstack

from manykernels.banks.features import traces_of
from manykernels.compute.column_units import ColumnMoments, ColumnScales
from manykernels.core.samples import LEAST_WEIGHT
from manykernels.core.targets import Targets
from manykernels.kernels.feature_maps import FeatureMaps
from manykernels.kernels.shared_distances import BoundKernel
from manykernels.kernels.standard import filled_counts, is_wide_and_sparse
from manykernels.losses import Loss

_ROWS = 4096  # at a time, so that what is made of them stays small
_REMEMBERED = 4  # products Z u that a block keeps


@dataclass(frozen=True)
class RawBlock:
    """Rows as they came: X (n, n_features) in double precision, y (n,), sample weights (n,)."""

    X: Any
    y: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class FeaturePlan:
    """The kernels with finite features, how these are held, and the tasks for C = 1."""

    maps: FeatureMaps
    dtype: type
    targets: Targets


class FeatureBlock:
    """Rows as features.

    Parameters
    ----------
    Z : ndarray of shape (n, n_columns)
    y, costs : ndarrays of shape (n_tasks, n)
        The targets, and the weights of their losses for C = 1: C comes with each question, and may change.
    weight : ndarray of shape (n,)
    """

    def __init__(self, Z: np.ndarray, y: np.ndarray, costs: np.ndarray, weight: np.ndarray) -> None:
        self.Z, self.y, self.costs, self.weight = Z, y, costs, weight
        self._products: dict[bytes, np.ndarray] = {}

    def __sizeof__(self) -> int:
        return self.Z.nbytes + self.y.nbytes + self.costs.nbytes

    def __getstate__(self) -> dict:
        return {**vars(self), "_products": {}}

    def chunks(self) -> list[slice]:
        """Return slices of some rows each."""
        return [slice(low, low + _ROWS) for low in range(0, self.Z.shape[0], _ROWS)]

    def times(self, u: np.ndarray) -> np.ndarray:
        """Return Z u; the last few are remembered, since one u is asked about several times."""
        key = u.tobytes()
        if key not in self._products:
            product = np.empty(self.Z.shape[0])
            vector = u.astype(self.Z.dtype)
            for rows in self.chunks():
                product[rows] = self.Z[rows] @ vector
            while len(self._products) >= _REMEMBERED:
                self._products.pop(next(iter(self._products)))
            self._products[key] = product
        return self._products[key]

    def transposed_times(self, values: np.ndarray) -> np.ndarray:
        """Return Z' values, summed in double precision."""
        out = np.zeros(self.Z.shape[1])
        for rows in self.chunks():
            out += values[rows].astype(self.Z.dtype) @ self.Z[rows]
        return out

    def squares_times(self, values: np.ndarray) -> np.ndarray:
        """Return sum_i values_i z_i^2, entry by entry."""
        out = np.zeros(self.Z.shape[1])
        for rows in self.chunks():
            out += values[rows].astype(self.Z.dtype) @ (self.Z[rows] ** 2)
        return out


# -- from rows to features --------------------------------------------------------------------------------------


def raw_block(X_parts: list, y_parts: list, weight_parts: list | None, allow_nan: bool) -> RawBlock:
    """Put parts of the data side by side, as arrays, and check them."""
    rows = [part.tocsr() if hasattr(part, "tocsr") else np.asarray(part, dtype=np.float64) for part in X_parts]
    X = stacked(rows)
    y = np.concatenate([np.asarray(part).reshape(-1) for part in y_parts])
    if y.shape[0] != X.shape[0]:
        raise ValueError(f"X and y must have the same chunks of rows, got {X.shape[0]} and {y.shape[0]} in one.")
    values = X.data if hasattr(X, "tocsr") else X
    if np.any(np.isinf(values)) or (not allow_nan and np.any(np.isnan(values))):
        raise ValueError("Input X contains NaN or infinity: impute them, or drop the rows.")
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        raise ValueError("Input y contains NaN or infinity.")
    weight = np.ones(X.shape[0])
    if weight_parts is not None:
        weight = np.concatenate([np.asarray(part, dtype=np.float64).reshape(-1) for part in weight_parts])
        if weight.shape != y.shape or not np.all(np.isfinite(weight)) or np.any(weight < 0):
            raise ValueError("sample_weight must hold a finite number of at least 0 for each row, in chunks as X.")
    weight[weight < LEAST_WEIGHT] = 0.0
    return RawBlock(X, y, weight)


def stacked(parts: Sequence[Any]) -> Any:
    """Return rows below one another: an array, or a CSR matrix of sparse parts."""
    return vstack(parts).tocsr() if hasattr(parts[0], "tocsr") else np.concatenate(parts)


def shape_of(raw: RawBlock) -> tuple[int, int]:
    """Return the number of rows and of columns."""
    return raw.X.shape


def classes_of(raw: RawBlock) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of the rows with a positive weight, and the weight of each."""
    used = raw.weight > 0
    classes, codes = np.unique(raw.y[used], return_inverse=True)
    return classes, np.bincount(codes, raw.weight[used], minlength=classes.size)


def column_moments(raw: RawBlock) -> ColumnMoments:
    """Return the moments of the columns."""
    return ColumnMoments.of(raw.X, raw.weight)


def filled(raw: RawBlock) -> np.ndarray | None:
    """Return in how many rows each column has an entry; None where rows are dense or narrow."""
    return filled_counts(raw.X) if is_wide_and_sparse(raw.X) else None


def in_units(raw: RawBlock, scales: ColumnScales) -> RawBlock:
    """Return the rows in units of the columns."""
    return replace(raw, X=scales.of(raw.X))


def moments_of(raw: RawBlock) -> np.ndarray:
    """Return the sums of the weights, of the weighted targets and of their squares."""
    y = raw.y.astype(np.float64)
    return np.array([raw.weight.sum(), raw.weight @ y, raw.weight @ y**2])


def least_cost(raw: RawBlock, targets: Targets) -> float:
    """Return the smallest positive weight of a loss, 0 where there is none."""
    costs = targets.tasks(raw.y, raw.weight)[1]
    return float(np.min(costs, initial=np.inf, where=costs > 0)) if np.any(costs > 0) else 0.0


def check_views(raw: RawBlock, kernels: Any, table: Any) -> None:
    """Raise ValueError if a row is NaN in some but not all of the columns that a kernel sees."""
    kernels.check_views(raw.X, table)


def take(raw: RawBlock, rows: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return some rows: X, y and weights."""
    return raw.X[rows], raw.y[rows], raw.weight[rows]


def feature_block(raw: RawBlock, plan: FeaturePlan) -> FeatureBlock:
    """Compute the features of the rows."""
    maps, n = plan.maps, raw.X.shape[0]
    Z = np.empty((n, int(maps.transform(raw.X[:1])[1][-1])), plan.dtype)
    for low in range(0, n, _ROWS):
        Z[low : low + _ROWS] = maps.transform(raw.X[low : low + _ROWS])[0]
    return FeatureBlock(Z, *plan.targets.tasks(raw.y, raw.weight), raw.weight)


def traces(raw: RawBlock, exact: Sequence[BoundKernel], is_cosine: bool, is_centered: bool) -> np.ndarray:
    """Return what is learned of the traces of kernels on these rows, (3, n_kernels)."""
    return traces_of(exact, raw.X, raw.weight, is_cosine, is_centered)


def means(block: FeatureBlock) -> np.ndarray:
    """Return the weighted sum of the features."""
    return block.transposed_times(block.weight)


def centered(block: FeatureBlock, mean: np.ndarray) -> FeatureBlock:
    """Return the rows with the mean features subtracted."""
    return FeatureBlock(block.Z - mean.astype(block.Z.dtype), block.y, block.costs, block.weight)


def squares(block: FeatureBlock) -> np.ndarray:
    """Return the weighted sum of the squared features."""
    return block.squares_times(block.weight)


def largest(block: FeatureBlock, first: np.ndarray) -> np.ndarray:
    """Return the largest diagonal entry of each kernel."""
    none: np.ndarray = np.zeros(first.size - 1)
    peaks = [none, *(np.add.reduceat(block.Z[rows] ** 2, first[:-1], axis=1).max(axis=0) for rows in block.chunks())]
    return np.max(peaks, axis=0).astype(np.float64)


# -- what a bundle asks for -------------------------------------------------------------------------------------


def plane(block: FeatureBlock, task: int, u: np.ndarray, b: float, loss: Loss, C: float) -> np.ndarray:
    """Return minus the conjugates, the sum and Z' beta, shape (2 + n_columns,), of the slopes at Z u + b."""
    y, costs, z = block.y[task], C * block.costs[task], block.times(u) + b
    # The minimizer of the inequality of Fenchel and Young is -C times a slope of the loss.
    _, beta = loss.dual_pull(y, z, costs)
    return np.concatenate([[-loss.conjugate(y, beta, costs).sum(), beta.sum()], block.transposed_times(beta)])


def losses_along(
    block: FeatureBlock,
    task: int,
    u: np.ndarray,
    du: np.ndarray,
    intercepts: np.ndarray,
    lengths: np.ndarray,
    loss: Loss,
    C: float,
) -> np.ndarray:
    """Return the sum of the losses of the predictions Z (u + length du) + intercept, for pairs of the two."""
    y, costs, z = block.y[task], C * block.costs[task], block.times(u)
    change = block.times(du) if np.any(du) else np.zeros_like(z)
    return np.array([costs @ loss.value(y, z + t * change + b) for t, b in zip(lengths, intercepts, strict=True)])
