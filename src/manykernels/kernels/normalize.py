"""Normalization and centering of kernels, learned on the training data and applied to any other.

A normalized kernel is

    scale * (k(x, z) c(x) c(z) - r(x) - r(z) + t)

with c(x) = 1 / sqrt(k(x, x)) for "cosine" and 1 otherwise; r(x) the mean
of k(x, x_i) c(x) c(x_i) over the training samples and t the mean of r over
them when centered, 0 otherwise; and a scale that makes the (centered) training
matrix have mean diagonal 1 ("mean_diag") or trace 1 ("trace"). All means and
traces use the sample weights, so that a sample of weight 2 counts like two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manykernels.compute.compiled import njit
from manykernels.compute.threads import parallel
from manykernels.compute.triangles import row_blocks, segment_matvec
from manykernels.kernels.base import Kernel
from manykernels.kernels.missing import CENTER_NEEDS_ALL, observed
from manykernels.kernels.shared_distances import BoundKernel, SharedDistances, by_distances, make_views

KINDS = ("mean_diag", "trace", "cosine", None)
# A centered diagonal this small beside the raw one is rounding: the kernel is constant.
_CONSTANT = 1e-12
# Its inverse, and products with it, are numbers.
LEAST_LEVEL = 1e-290
# Powers and products of values below this may vanish.
_TINY_VALUES = 1e-50
_BLOCK_ENTRIES = 1 << 16


@dataclass(frozen=True)
class Normalization:
    """What was learned: ``scale`` and the ``largest`` diagonal entry (n_kernels,); else None or one row per kernel."""

    scale: np.ndarray
    inverse_norms: np.ndarray | None
    means: np.ndarray | None
    totals: np.ndarray | None
    largest: np.ndarray
    raw_level: np.ndarray | None = None  # of the mean diagonal, before centering

    @property
    def centering_errors(self) -> np.ndarray | None:
        """About how far the values of each kernel are off since larger numbers were subtracted; None: not centered."""
        if self.totals is None or self.raw_level is None:
            return None
        # Four numbers of the size of the raw ones, each rounded by itself, make one value.
        return 2.0**-52 * self.scale * self.raw_level

    @property
    def fits_single(self) -> bool:
        """Whether the kernel values lie well inside the range of float32."""
        return fit_single(self.largest)

    def take(self, indices: np.ndarray) -> Normalization:
        """Return what was learned for the chosen kernels."""

        def rows(part: np.ndarray | None) -> np.ndarray | None:
            return None if part is None else part[indices]

        return Normalization(
            self.scale[indices],
            rows(self.inverse_norms),
            rows(self.means),
            rows(self.totals),
            self.largest[indices],
            rows(self.raw_level),
        )

    def tail(self, size: int) -> Normalization:
        """Return what was learned for the last ``size`` samples."""
        return replace(
            self,
            inverse_norms=None if self.inverse_norms is None else self.inverse_norms[:, -size:],
            means=None if self.means is None else self.means[:, -size:],
        )

    def on_other_samples(self, all_shared: Sequence[SharedDistances], X: Any) -> Normalization:
        """Return the same scales for other samples, whose lengths are learned anew for cosines."""
        if self.means is not None:
            raise ValueError("Centered kernels are bound to the samples that they were centered on.")
        if self.inverse_norms is None:
            return self
        inverse_norms = np.ones((self.scale.size, X.shape[0]))
        for shared in all_shared:
            view = shared.view(X)
            for g, k in enumerate(shared.indices):
                inverse_norms[k] = _inverse_root(shared.diagonal(g, view))
        return replace(self, inverse_norms=inverse_norms)

    def apply_segment(self, k: int, segment: np.ndarray, start: int, stop: int, rows: np.ndarray | None) -> None:
        """Normalize packed rows of training kernel k in place; ``rows`` are the samples, if not all of them."""
        if self.inverse_norms is not None:
            inverse = self.inverse_norms[k] if rows is None else self.inverse_norms[k][rows]
            _scale_segment(segment, start, stop, inverse)
        if self.means is not None and self.totals is not None:
            means = self.means[k] if rows is None else self.means[k][rows]
            _center_segment(segment, start, stop, means, self.totals[k])
        segment *= segment.dtype.type(self.scale[k])

    def apply_rows(
        self, k: int, block: np.ndarray, rows: np.ndarray, columns: np.ndarray | slice = slice(None)
    ) -> np.ndarray:
        """Normalize a raw block of training kernel k, shape (len(rows), len(columns)), in place and return it."""
        if self.inverse_norms is not None:
            block *= self.inverse_norms[k][rows, None]
            block *= self.inverse_norms[k][columns]
        if self.means is not None and self.totals is not None:
            block -= self.means[k][rows, None]
            block -= self.means[k][columns] - self.totals[k]
        block *= block.dtype.type(self.scale[k])
        return block

    def apply_factor(self, k: int, factor: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the factor of the normalized training kernel k."""
        if self.inverse_norms is not None:
            factor = factor * self.inverse_norms[k][:, None]
        if self.means is not None:
            factor = factor - (weights @ factor) / weights.sum()
        return factor * np.sqrt(self.scale[k])


@njit(cache=True, nogil=True)
def _scale_segment(segment, start, stop, inverse):
    position = 0
    for i in range(start, stop):
        for j in range(i, inverse.size):
            segment[position] *= inverse[i] * inverse[j]
            position += 1


@njit(cache=True, nogil=True)
def _center_segment(segment, start, stop, means, total):
    position = 0
    for i in range(start, stop):
        for j in range(i, means.size):
            segment[position] += total - means[i] - means[j]
            position += 1


def learn_normalization(
    bound: Sequence[BoundKernel],
    X: Any,
    *,
    kind: str | None,
    center: bool,
    sample_weight: np.ndarray,
) -> Normalization:
    """Learn the factors of the module's docstring on the training data X; the scale of a zero kernel is 0."""
    n, m = X.shape[0], len(bound)
    share = sample_weight / sample_weight.sum()
    learned = Normalization(
        scale=np.ones(m),
        inverse_norms=np.ones((m, n)) if kind == "cosine" else None,
        means=np.zeros((m, n)) if center else None,
        totals=np.zeros(m) if center else None,
        largest=np.zeros(m),
        raw_level=np.zeros(m),
    )
    all_shared = by_distances(bound)
    views = make_views(all_shared, X)
    means = learned.means
    if means is not None:
        parallel(lambda i: _learn_means(all_shared[i], views[i], share, kind, means), range(len(views)))
    for shared, view in zip(all_shared, views, strict=True):
        mask = observed(view)
        if mask is not None and center:
            raise ValueError(CENTER_NEEDS_ALL)
        # The mean is over the samples that have the view, so that it does not count more for being rare.
        present = 1.0 if mask is None else max(float(share @ mask), 1e-300)
        counted = {"mean_diag": share / present, "trace": sample_weight}.get(kind or "")
        diagonals = shared.diagonals(view)
        at_once = max(_BLOCK_ENTRIES // n, 1)
        for low in range(0, shared.indices.size, at_once):
            places = shared.indices[low : low + at_once]
            names = [bound[k].name for k in places]
            with np.errstate(over="ignore", invalid="ignore"):
                rows = np.array([next(diagonals) for _ in places], dtype=np.float64)
            _check(rows, names)
            rows = _learn_levels(learned, places, rows, share, names, view)
            _learn_scales(learned, places, rows, share, names, counted)
    return learned


def _learn_levels(
    learned: Normalization, places: np.ndarray, rows: np.ndarray, share: np.ndarray, names: list[str], view: Any
) -> np.ndarray:
    """Learn lengths, mean diagonals and means of the kernels at these places, whose diagonals are the rows.

    Returns the diagonals with them taken off.
    """
    assert learned.raw_level is not None
    if learned.inverse_norms is not None:
        small = (rows > 0) & (rows < LEAST_LEVEL)
        if np.any(small):
            g = int(np.argmax(small.any(axis=1)))
            raise too_small(names[g], float(rows[g][rows[g] > 0].min()))
        inverse = _inverse_root(rows)
        learned.inverse_norms[places] = inverse
        rows = rows * inverse * inverse
    level = _means(rows, share)
    learned.raw_level[places] = level
    if np.any(level == 0.0) and _underflows(view):
        raise too_small(names[int(np.argmax(level == 0.0))], 0.0)
    if learned.means is not None and learned.totals is not None:
        learned.totals[places] = _means(learned.means[places], share)
        rows = rows - 2 * learned.means[places] + learned.totals[places, None]
    return rows


def _learn_scales(
    learned: Normalization,
    places: np.ndarray,
    rows: np.ndarray,
    share: np.ndarray,
    names: list[str],
    counted: np.ndarray | None,
) -> None:
    """Learn the scales that make ``counted`` @ diagonal 1, and the largest entries then; that of a zero kernel is 0."""
    assert learned.raw_level is not None
    level = _means(rows, share)
    is_zero = (level <= _CONSTANT * learned.raw_level[places]) | (level == 0.0)
    if np.any(~is_zero & (level < LEAST_LEVEL)):
        g = int(np.argmax(~is_zero & (level < LEAST_LEVEL)))
        raise too_small(names[g], float(level[g]))
    sums = np.ones(places.size) if counted is None else _means(rows, counted)
    learned.scale[places] = np.where(is_zero, 0.0, 1.0 / np.where(is_zero, 1.0, sums))
    learned.largest[places] = learned.scale[places] * rows.max(axis=1)


def _means(rows: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return rows @ share: of equal rows, whatever is around them, the same to the last bit."""
    return np.array([row @ share for row in rows])


def fit_single(largest: np.ndarray) -> bool:
    """Return whether kernels with these largest diagonal entries lie well inside the range of float32.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.normalize import fit_single
    >>> fit_single(np.array([0.0, 1.0])), fit_single(np.array([1e-35]))
    (True, False)
    """
    values = largest[largest > 0]
    return bool(np.all((values > 1e-30) & (values < 1e30)))


def too_small(name: str, value: float) -> ValueError:
    """Return the error for a kernel whose diagonal is at the end of the range of doubles."""
    return ValueError(
        f"The kernel {name!r} is too small on this data to be scaled: its diagonal is {value:.3g}; scale the "
        "features, e.g. by StandardScaler."
    )


def _underflows(view: Any) -> bool:
    """Return whether products of the values may be 0 although the values are not."""
    values = view.data if hasattr(view, "indptr") else np.asarray(view)
    values = values[np.isfinite(values)]
    return 0.0 < float(np.abs(values).max(initial=0.0)) < _TINY_VALUES


def _learn_means(shared: SharedDistances, view: Any, share: np.ndarray, kind: str | None, means: np.ndarray) -> None:
    """Write the mean of each row of each kernel to ``means``, after cosine normalization if asked for."""
    inverse = (
        [_inverse_root(shared.diagonal(g, view)) for g in range(len(shared.kernels))] if kind == "cosine" else None
    )
    for block in row_blocks(share.size, _BLOCK_ENTRIES):
        for g, segment in shared.segments(view, *block, range(len(shared.kernels)), np.float64):
            if inverse is not None:
                _scale_segment(segment, *block, inverse[g])
            segment_matvec(segment, share, *block, means[shared.indices[g]])


def _inverse_root(diagonal: np.ndarray) -> np.ndarray:
    positive = diagonal > 0
    return np.where(positive, 1.0 / np.sqrt(np.where(positive, diagonal, 1.0)), 0.0)


def checked_diagonal(kernel: Kernel, X: Any, name: str) -> np.ndarray:
    """Return the diagonal of a kernel; raise ValueError if it overflows or has an entry below 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        diagonal = np.asarray(kernel.diagonal(X), dtype=np.float64)
    _check(diagonal[None], [name])
    return diagonal


def _check(rows: np.ndarray, names: list[str]) -> None:
    """Raise ValueError for the first diagonal that overflows or has an entry below 0."""
    if np.all((rows >= 0) & (rows < np.inf)):
        return
    for row, name in zip(rows, names, strict=True):
        if not np.all(np.isfinite(row)):
            raise ValueError(f"The kernel {name!r} overflows on this data: scale the features, e.g. by StandardScaler.")
        if row.min(initial=0.0) < 0:
            raise ValueError(
                f"The kernel {name!r} is not positive semidefinite: its diagonal has the entry {row.min():.3g}."
            )
