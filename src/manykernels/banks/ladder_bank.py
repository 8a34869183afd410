"""Ladders bound to training data: what all their kernels are asked for, at the cost of a few nodes.

:mod:`manykernels.kernels.ladder` has the mathematics.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from manykernels.banks.argument_checks import checked_places, checked_weights
from manykernels.banks.combining import CombinesToMatrix
from manykernels.banks.layout import plan_storages
from manykernels.banks.learned import Terms
from manykernels.banks.offers import LISTS
from manykernels.banks.packed import PackedBank
from manykernels.banks.placement import PRECISIONS
from manykernels.banks.recomputed_storage import RecomputedStorage
from manykernels.banks.room import Room
from manykernels.compute.triangles import triangle_size
from manykernels.kernels.base import Gaussian
from manykernels.kernels.centered import inner_factor
from manykernels.kernels.ladder import GaussianLadder, lagrange_basis
from manykernels.kernels.lazy_names import LazyNames
from manykernels.kernels.missing import observed
from manykernels.kernels.normalize import Normalization, learn_normalization
from manykernels.kernels.shared_distances import BoundKernel

# Of interpolated values in double precision: C times the weights may multiply it.
_FINE_ERROR = 2e-14


class LadderBank(CombinesToMatrix):
    """Ladders bound to training data: the finite bank's capabilities, at the cost of the nodes.

    Parameters
    ----------
    ladders : list of GaussianLadder
    places : list of (positions, where, group)
        The columns of each ladder, and words for them.
    X, sample_weight : the training data
    normalize, center, budget, storage, precision, reserve
        As for ``Recipe`` and ``Placement``.
    """

    can = LISTS

    def __init__(
        self,
        ladders: Sequence[GaussianLadder],
        places: Sequence[tuple[np.ndarray, str, str]],
        X: Any,
        sample_weight: np.ndarray,
        *,
        normalize: str | None,
        center: bool,
        budget: int,
        storage: str,
        precision: str,
        reserve: int = 0,
    ) -> None:
        # Double precision is asked for where digits count: then the interpolation has to give them, too.
        self.ladders = [ladder.refined(_FINE_ERROR) if precision == "double" else ladder for ladder in ladders]
        self.places, self.X, self.sample_weight = list(places), X, sample_weight
        self.n_samples, self.precision = X.shape[0], precision
        self.first = np.concatenate([[0], np.cumsum([len(ladder) for ladder in ladders])])
        self.n_kernels = int(self.first[-1])
        triangle = (4 if precision == "single" else 8) * triangle_size(X.shape[0])
        # The kernels of a working set are not among the nodes: they take room of their own, at most half of it.
        room = min(reserve * triangle, budget // 2)
        self._nodes = self._bind_nodes(center, budget - room, storage, precision)
        self.room = Room(room + (self._nodes.room.left or 0))
        self._first_node = np.concatenate([[0], np.cumsum([ladder.nodes.size for ladder in self.ladders])])
        self._bases = self._make_bases()
        self.is_cosine = normalize == "cosine"
        self.scale = self._learn_scale(normalize)
        self.names: Sequence[str] = LadderNames(self.ladders, self.places, self.first, "name")
        self.groups: Sequence[str] = LadderNames(self.ladders, self.places, self.first, "group")

    def _bind_nodes(self, center: bool, budget: int, storage: str, precision: str) -> PackedBank:
        """Bind the node kernels, centered but not scaled, in one bank that plans their storage."""
        bound = [
            BoundKernel(Gaussian(width), positions, f"{ladder.title} on {where}", group)  # all by the ladder's name
            for ladder, (positions, where, group) in zip(self.ladders, self.places, strict=True)
            for width in ladder.nodes
        ]
        normalization = learn_normalization(bound, self.X, kind=None, center=center, sample_weight=self.sample_weight)
        dtype = np.float32 if precision == "single" else np.float64
        # float32 triangles of centered kernels are rounded after centering, as everywhere.
        storages, room = plan_storages(
            bound, self.X, normalization, self.sample_weight, budget=budget, storage=storage, dtype=dtype
        )
        return PackedBank(bound, self.X, normalization, self.sample_weight, storages, precision, room)

    def _learn_scale(self, normalize: str | None) -> np.ndarray:
        present = self._weight_present()
        share = self.sample_weight / self.sample_weight.sum()
        level = self._interpolate(self._nodes.diagonal() @ share) if self.is_centered else np.ones(self.n_kernels)
        level = np.where((level > 1e-12) & (present > 0), level, np.inf)  # constant or absent columns: weight 0
        if normalize in (None, "cosine"):
            return np.where(np.isfinite(level), 1.0, 0.0)  # a Gaussian kernel is its own cosine
        return 1.0 / level if normalize == "mean_diag" else 1.0 / (level * np.maximum(present, 1e-300))

    def _weight_present(self) -> np.ndarray:
        """Return for each kernel the weight of the samples that have its columns."""
        masks = [observed(self.X[:, positions]) for positions, _, _ in self.places]
        sums = [self.sample_weight.sum() if mask is None else self.sample_weight @ mask for mask in masks]
        return np.repeat(sums, np.diff(self.first))

    # -- interpolation ------------------------------------------------------------------------------------------

    def _interpolate(self, node_values: np.ndarray) -> np.ndarray:
        """Return the values of all kernels, (..., n_kernels), from those of the nodes, (..., n_nodes)."""
        out = np.empty((*node_values.shape[:-1], self.n_kernels))
        for basis, members in self._bases:
            at_nodes = np.stack([node_values[..., self._first_node[f] : self._first_node[f + 1]] for f in members])
            for f, values in zip(members, at_nodes @ basis.T, strict=True):
                out[..., self.first[f] : self.first[f + 1]] = values
        return out

    def _make_bases(self) -> list[tuple[np.ndarray, list[int]]]:
        """Return (basis, its ladders): ladders with the same widths share one, and one matrix product serves all."""
        members: dict[tuple, list[int]] = {}
        for f, ladder in enumerate(self.ladders):
            members.setdefault((ladder.low, ladder.high, ladder.count, ladder.nodes.size), []).append(f)
        return [
            (lagrange_basis(np.geomspace(low, high, count), low, high, n_nodes), ladders)
            for (low, high, count, n_nodes), ladders in members.items()
        ]

    def _basis_of(self, f: int) -> np.ndarray:
        return next(basis for basis, members in self._bases if f in members)

    def _to_nodes(self, weights: np.ndarray) -> np.ndarray:
        """Return the signed node weights of the same combined kernel."""
        scaled = weights * self.scale
        out = np.empty(self._nodes.n_kernels)
        for basis, members in self._bases:
            ladder_weights = np.stack([scaled[self.first[f] : self.first[f + 1]] for f in members])
            for f, values in zip(members, ladder_weights @ basis, strict=True):
                out[self._first_node[f] : self._first_node[f + 1]] = values
        return out

    def _rows_of(self, chosen: np.ndarray) -> list[tuple[np.ndarray, int, np.ndarray]]:
        """Return (places in chosen, ladder, rows of its basis) for each ladder that is meant."""
        ladder = np.searchsorted(self.first, chosen, side="right") - 1
        return [
            (where, int(f), chosen[where] - self.first[f])
            for f in np.unique(ladder)
            for where in [np.flatnonzero(ladder == f)]
        ]

    # -- the capabilities of a finite bank ------------------------------------------------------------------------

    @property
    def unit_roundoff(self) -> float:  # type: ignore[override]
        """Error of the kernel values: of those that are held, or of the interpolation."""
        return max(self._nodes.unit_roundoff, *(ladder.error for ladder in self.ladders))

    @property
    def centering_errors(self) -> np.ndarray | None:
        """About how far centering has moved the values of each kernel; None where they are not centered."""
        return self.unit_roundoff * self.scale if self.is_centered else None

    @property
    def is_centered(self) -> bool:  # type: ignore[override]
        """Whether the kernels are centered."""
        return self._nodes.is_centered

    def describe_storage(self) -> str:
        """Return words for how the kernels are held."""
        return f"{self.n_kernels} kernels on {self._nodes.n_kernels} nodes: {self._nodes.describe_storage()}"

    def fill(self, weights: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write sum_k weights[k] K_k to ``out``; exact when few weights are not 0, else by the nodes."""
        active = np.flatnonzero(weights)
        if active.size <= self._nodes.n_kernels // 2:
            return self._computed(active).fill(weights[active], out)
        return self._nodes.fill(self._to_nodes(weights), out)

    def quad_forms(self, beta: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray:
        """Return beta' K_k beta of the kernels of the subset (default: all)."""
        values = self._interpolate(self._nodes.quad_forms(beta)) * self.scale
        np.maximum(values, 0.0, out=values)
        return values if subset is None else values[..., checked_places(subset, self.n_kernels)]

    def inner_products(self, M: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray:
        """Return the Frobenius inner products <K_k, M>."""
        values = self._interpolate(self._nodes.inner_products(M)) * self.scale
        return values if subset is None else values[checked_places(subset, self.n_kernels)]

    def centered_squares(self, weight: np.ndarray) -> np.ndarray:
        """Return ||K_c||_w^2 of all kernels, from the inner products of the nodes of each ladder."""
        out = np.empty(self.n_kernels)
        for f in range(len(self.ladders)):
            kernels, basis = slice(self.first[f], self.first[f + 1]), self._basis_of(f)
            # Wide kernels, nearly constant, are what is left of nodes whose own norms are far larger.
            R = inner_factor(self._nodes, weight, np.arange(self._first_node[f], self._first_node[f + 1]))
            out[kernels] = self.scale[kernels] ** 2 * np.sum((basis @ R.T) ** 2, axis=1)
        return out

    def matvecs(self, beta: np.ndarray, subset: np.ndarray | None = None, *, on_support: bool = False) -> np.ndarray:
        """Return K_k beta for the kernels of the subset (default: all), shape (len(subset), n)."""
        return self._few(subset, lambda bank: bank.matvecs(beta, on_support=on_support))

    def rows(self, indices: Any, subset: np.ndarray | None = None) -> np.ndarray:
        """Return the given rows of the kernels of the subset, shape (len(subset), len(indices), n)."""
        return self._few(subset, lambda bank: bank.rows(indices))

    def diagonal(self, subset: np.ndarray | None = None) -> np.ndarray:
        """Return the diagonals of the kernels of the subset, shape (len(subset), n)."""
        return self._few(subset, lambda bank: bank.diagonal())

    def _few(self, subset: np.ndarray | None, compute: Any) -> np.ndarray:
        return compute(self._computed(checked_places(subset, self.n_kernels)))

    def largest_diagonals(self, subset: np.ndarray) -> np.ndarray:
        """Return an upper bound of the diagonal of each kernel of the subset."""
        return (2.0 if self.is_centered else 1.0) * self.scale[subset]  # 1 - 2 r + t <= 2 when centered

    def peaks(self, values: np.ndarray) -> np.ndarray:
        """Return where the values have a local maximum along their ladder: neighbors are nearly the same kernel."""
        rising = np.empty(values.size + 1, bool)
        rising[1:-1] = values[1:] > values[:-1]
        rising[self.first[:-1]] = True
        falling = ~rising
        falling[self.first[1:]] = True
        return np.flatnonzero(rising[:-1] & falling[1:])

    def subset(self, indices: np.ndarray) -> PackedBank:
        """Return the bank of a few of the kernels, computed exactly and held in memory while they fit."""
        return self._bank_of(checked_places(indices, self.n_kernels), self.room)

    def _computed(self, indices: np.ndarray) -> PackedBank:
        """Return the bank of a few of the kernels, computed exactly in each pass."""
        return self._bank_of(indices, Room(0))

    def _bank_of(self, indices: np.ndarray, room: Room) -> PackedBank:
        bound, normalization = self.bound_kernels(indices), self._normalization_of(indices)
        source = RecomputedStorage(bound, np.arange(len(bound)), self.X, normalization, PRECISIONS[self.precision])
        storages = source.held(room) if bound else []
        return PackedBank(bound, self.X, normalization, self.sample_weight, storages, self.precision, self.room)

    def tail(self, size: int) -> LadderBank:
        """Return the kernels on the last ``size`` samples, normalized as here; what is held in memory is shared."""
        tail = copy(self)
        tail.X, tail.sample_weight, tail.n_samples = self.X[-size:], self.sample_weight[-size:], size
        tail._nodes = self._nodes.tail(size)
        return tail

    def bound_kernels(self, indices: np.ndarray) -> list[BoundKernel]:
        """Return the kernels at these places, bound."""
        return [self.bound_kernel(int(k)) for k in indices]

    def bound_kernel(self, k: int) -> BoundKernel:
        """Return the kernel at place k, bound."""
        return _rung(self.ladders, self.places, self.first, k)

    def _normalization_of(self, indices: np.ndarray) -> Normalization:
        means, totals = self._nodes.normalization.means, self._nodes.normalization.totals
        scale, largest = self.scale[indices], self.largest_diagonals(np.asarray(indices))
        inverse_norms = np.ones((len(indices), self.n_samples)) if self.is_cosine else None
        if means is None or totals is None:
            return Normalization(scale, inverse_norms, None, None, largest, np.ones(scale.size))
        own_means, own_totals = np.empty((len(indices), self.n_samples)), np.empty(len(indices))
        for where, f, rows in self._rows_of(np.asarray(indices)):
            nodes = slice(self._first_node[f], self._first_node[f + 1])
            basis = self._basis_of(f)[rows]
            own_means[where], own_totals[where] = basis @ means[nodes], basis @ totals[nodes]
        return Normalization(scale, inverse_norms, own_means, own_totals, largest, np.ones(scale.size))

    def terms(self, weights: np.ndarray) -> Terms:
        """Return the learned kernel as a sum: of the active kernels if they are few, else of the nodes."""
        weights = checked_weights(weights, self.n_kernels)
        active = np.flatnonzero(weights)
        if active.size <= self._nodes.n_kernels // 2:
            learned = self._normalization_of(active)
            return Terms(self.bound_kernels(active), weights[active] * learned.scale, learned.means, learned.totals)
        learned = self._nodes.normalization
        return Terms(self._nodes.bound, self._to_nodes(weights), learned.means, learned.totals)

    def importances(self, weights: np.ndarray, n_features: int) -> np.ndarray:
        """Return each feature's part of the weight, a kernel's being divided over its columns."""
        out = np.zeros(n_features)
        for f, (positions, _, _) in enumerate(self.places):
            out[positions] += weights[self.first[f] : self.first[f + 1]].sum() / positions.size
        return out


def _rung(ladders: list[GaussianLadder], places: list[tuple], first: np.ndarray, k: int) -> BoundKernel:
    """Return kernel k of the ladders, bound."""
    f = int(np.searchsorted(first, k, side="right")) - 1
    ladder, (positions, where, group) = ladders[f], places[f]
    width = ladder.low * (ladder.high / ladder.low) ** ((k - first[f]) / (len(ladder) - 1))
    kernel = Gaussian(width, columns=ladder.columns, group=ladder.group, label=ladder.label)
    return BoundKernel(kernel, positions, kernel.name(where), group)


class LadderNames(LazyNames):
    """The names (or groups) of the kernels of ladders."""

    def __init__(self, ladders: list[GaussianLadder], places: list[tuple], first: np.ndarray, part: str) -> None:
        self._ladders, self._places, self._first, self._part = ladders, places, first, part

    def __len__(self) -> int:
        return int(self._first[-1])

    def text(self, k: int) -> str:
        return getattr(_rung(self._ladders, self._places, self._first, k), self._part)

    def runs(self) -> list[tuple[str, int]]:
        """Return the groups with the number of kernels in each; names are all different."""
        if self._part == "group":
            return [(place[2], len(ladder)) for ladder, place in zip(self._ladders, self._places, strict=True)]
        return [(text, 1) for text in self]
