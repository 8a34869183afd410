"""The kernel that was learned: a weighted sum of normalized kernels, as a function of any two samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from manykernels.compute.linalg import row_sums
from manykernels.kernels.shared_distances import BoundKernel, by_distances

_BLOCK_ENTRIES = 1 << 19  # entries of a block of the cross kernel: 4 MB in float64, and a few such blocks at a time


@dataclass(frozen=True)
class LearnedKernel:
    """sum_k coefficient_k * normalized k_k(x, z), on the active kernels only (or on the nodes of a ladder).

    Attributes
    ----------
    bound : tuple of BoundKernel
        The active kernels.
    coefficients : ndarray of shape (n_active,)
        Weight times normalization scale; nodes of a ladder may have negative ones.
    cosine : bool
    X : array or CSR matrix of shape (n_kept, n_features)
        The training samples that predictions need: the support vectors, or
        all when the kernels are centered.
    means : ndarray of shape (n_active, n_kept) or None
        Mean of each kernel's row over the training samples (centered kernels).
    totals : ndarray of shape (n_active,) or None
    share : ndarray of shape (n_kept,) or None
        Weight of each training sample in those means.
    """

    bound: tuple[BoundKernel, ...]
    coefficients: np.ndarray
    cosine: bool
    X: Any
    means: np.ndarray | None = None
    totals: np.ndarray | None = None
    share: np.ndarray | None = None

    def cross(self, X: Any) -> np.ndarray:
        """Return the kernel of the rows of X with the kept training samples, shape (len(X), n_kept)."""
        out = np.zeros((X.shape[0], self.X.shape[0]))
        for k, block in self.blocks(X, self.X):
            out += np.multiply(self._centered(k, block), self.coefficients[k], out=block)
        return out

    def pairwise(self, X: Any, Z: Any) -> np.ndarray:
        """Return the kernel of the rows of X with those of Z, shape (len(X), len(Z))."""
        out = np.zeros((X.shape[0], Z.shape[0]))
        left = self._means_of(X)
        right = left if Z is X else self._means_of(Z)
        for k, block in self.blocks(X, Z):
            if left is not None and right is not None:
                self._center(k, block, left[k], right[k])
            out += np.multiply(block, self.coefficients[k], out=block)
        return out

    def predict(self, X: Any, coef: np.ndarray) -> np.ndarray:
        """Return sum_j coef[t, j] k(x_i, kept_j), shape (n_tasks, len(X)), in blocks of rows."""
        step = max(1, _BLOCK_ENTRIES // max(1, self.X.shape[0]))
        parts = [coef @ self.cross(X[i : i + step]).T for i in range(0, X.shape[0], step)]
        return np.concatenate(parts, axis=1)

    def predict_components(self, X: Any, coef: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
        """Return the same where each active kernel has coefficients of its own or shares: see :meth:`parts`."""
        out = np.zeros((coef.shape[-2], X.shape[0]))
        for _, rows, values in self.parts(X, coef, shares):
            out[:, rows] += values
        return out

    def parts(
        self, X: Any, coef: np.ndarray, shares: np.ndarray | None = None
    ) -> Iterator[tuple[int, slice, np.ndarray]]:
        """Yield what each active kernel adds to the predictions: its place, some rows of X, and (n_tasks, n_rows).

        ``coef`` is of shape (n_tasks, n_kept), or (n_active, n_tasks, n_kept) where kernels have their own. ``shares``
        of shape (n_active, n_tasks) multiply them.
        """
        step = max(1, _BLOCK_ENTRIES // max(1, self.X.shape[0]))
        for low in range(0, X.shape[0], step):
            rows = slice(low, min(low + step, X.shape[0]))
            for k, block in self.blocks(X[rows], self.X):
                kernel_coef = coef if coef.ndim == 2 else coef[k]
                values = self.coefficients[k] * (kernel_coef @ self._centered(k, block).T)
                yield k, rows, values if shares is None else shares[k][:, None] * values

    def blocks(self, X: Any, Z: Any, places: Iterable[int] | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (place, raw or cosine-normalized block) for each active kernel, or for those at ``places``."""
        for shared in by_distances(self.bound, places):
            V, W = shared.view(X), shared.view(Z)
            for g, block in shared.blocks(V, W, range(len(shared.kernels))):
                if self.cosine:
                    left, right = shared.diagonal(g, V), shared.diagonal(g, W)
                    scale = np.sqrt(left)[:, None] * np.sqrt(right)[None, :]
                    block = np.divide(block, scale, out=np.zeros_like(block), where=scale > 0)  # noqa: PLW2901
                yield int(shared.indices[g]), block

    def _centered(self, k: int, block: np.ndarray) -> np.ndarray:
        """Return a block with the kept samples as it is centered, in its place.

        What is left may be tiny beside the means, whose last bits then matter: they must not depend on how many rows
        the block has.
        """
        if self.means is not None and self.share is not None:
            self._center(k, block, row_sums(block, self.share), self.means[k])
        return block

    def _center(self, k: int, block: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
        """Take the means of the rows and the columns off a block, in place; the total comes back."""
        if self.totals is not None:
            block -= (left - self.totals[k])[:, None]
            block -= right

    def _means_of(self, X: Any) -> np.ndarray | None:
        """Return the mean over the training samples of each kernel's row, (n_active, len(X)); None if not centered."""
        if self.share is None:
            return None
        out = np.empty((len(self.bound), X.shape[0]))
        for k, block in self.blocks(X, self.X):
            out[k] = row_sums(block, self.share)
        return out


class Terms(NamedTuple):
    """A kernel as a sum: bound kernels, their coefficients, and row means and totals where they are centered."""

    bound: Sequence[BoundKernel]
    coefficients: np.ndarray
    means: np.ndarray | None
    totals: np.ndarray | None


@dataclass(frozen=True)
class Kept:
    """What a model keeps of a fit: the kernel that was learned, and the predictors of the tasks on it.

    Attributes
    ----------
    kernel : LearnedKernel
    coef : ndarray of shape (n_tasks, n_kept)
    intercept : ndarray of shape (n_tasks,)
    kept : ndarray of int, shape (n_kept,)
        The training samples that predictions need; none where the kernels are features.
    vectors : ndarray of shape (n_tasks, n_columns) or None
        The predictors on the features of the kernels with a positive weight.
    mean : ndarray of shape (n_columns,) or None
        Of these features over the training samples, where the kernels are centered; their part of the predictions is
        in the intercept.
    """

    kernel: LearnedKernel
    coef: np.ndarray
    intercept: np.ndarray
    kept: np.ndarray
    vectors: np.ndarray | None = None
    mean: np.ndarray | None = None
