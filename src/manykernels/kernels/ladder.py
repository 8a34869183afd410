"""Bandwidth ladders: any number of Gaussian widths for the price of a few dozen.

exp(-D / (2 s^2)) is smooth in u = log s, so on a range of widths it is the interpolating polynomial in u on Chebyshev
nodes s_1, ..., s_J up to an error that falls by a factor of eight for eight more nodes:

    K(s)  =  sum_j l_j(log s) K(s_j)  +  error,        l_j the Lagrange polynomials of the nodes.

J depends on the range and on the error asked for, not on the number of widths. Whatever is linear in a kernel is
interpolated the same way: quadratic forms q(s) = sum_j l_j q(s_j), products with a vector, row means, inner products
with a matrix; and a weighted sum of a million kernels is a (signed) sum of the nodes. The error is absolute: an entry
of a kernel matrix is exact to ``error`` (its values are at most 1), so a quadratic form is exact to ``error`` times
(sum_i |beta_i|)^2 at worst, and in practice to about ``error`` times the largest quadratic form. Where few kernels are
asked for, they are computed exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np

from manykernels.compute.packed import triangle_size
from manykernels.core.checks import check_count, check_number
from manykernels.kernels.asked import checked_places, checked_weights
from manykernels.kernels.base import Gaussian, _short
from manykernels.kernels.bound import CAPABILITIES, PRECISIONS, BoundBank, Terms
from manykernels.kernels.centered import inner_factor
from manykernels.kernels.combining import CombinesToMatrix
from manykernels.kernels.groups import BoundKernel
from manykernels.kernels.missing import observed
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.plan import plan_storages
from manykernels.kernels.room import Room
from manykernels.kernels.storage import RecomputedStorage
from manykernels.kernels.texts import LazyTexts

_LEAST_NODES, _MORE_NODES = 8, 4
_FINE_ERROR = 1e-12


class GaussianLadder:
    """Gaussian kernels on the same columns with many widths, evenly spaced on a log scale.

    Parameters
    ----------
    columns : None, int, str, slice, list or callable, default None
        As for :class:`Gaussian`.
    low, high : float, default 2^-3 and 2^6
        The smallest and the largest width.
    count : int, default 1000
        Number of widths.
    error : float, default 5e-8
        Largest error of an interpolated kernel value.
    group, label : str or None
        As for :class:`Gaussian`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import GaussianLadder, KernelBank
    >>> ladder = GaussianLadder(low=0.5, high=32.0, count=100_000)
    >>> len(ladder), len(ladder.nodes)
    (100000, 44)
    >>> bank = KernelBank([ladder]).bind(np.random.default_rng(0).normal(size=(50, 3)))
    >>> bank.quad_forms(np.ones(50)).shape
    (100000,)
    """

    def __init__(
        self,
        columns: Any = None,
        low: float = 2.0**-3,
        high: float = 2.0**6,
        count: int = 1000,
        error: float = 5e-8,
        group: str | None = None,
        label: str | None = None,
    ) -> None:
        self.low = check_number("low", low, low=0)
        self.high = check_number("high", high, low=self.low, more=", the value of low")
        self.count = check_count("count", count, at_least=2)
        self.error = check_number("error", error, low=1e-12, closed="left")
        self.columns, self.group, self.label = columns, group, label

    @property
    def widths(self) -> np.ndarray:
        """The widths, shape (count,)."""
        return np.geomspace(self.low, self.high, self.count)

    @property
    def nodes(self) -> np.ndarray:
        """The widths of the Chebyshev nodes."""
        return chebyshev_widths(self.low, self.high, count_nodes(self.low, self.high, self.error))

    @property
    def title(self) -> str:
        """The ladder's name without its columns."""
        return f"Gaussian(width={_short(self.low)} to {_short(self.high)})"

    def refined(self, error: float) -> GaussianLadder:
        """Return the same ladder with an error of at most ``error``."""
        finest = min(self.error, error)
        return GaussianLadder(self.columns, self.low, self.high, self.count, finest, self.group, self.label)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        where = "" if self.columns is None else f"columns={self.columns!r}, "
        return f"GaussianLadder({where}low={_short(self.low)}, high={_short(self.high)}, count={self.count})"

    def __deepcopy__(self, memo: dict) -> GaussianLadder:
        return self


def chebyshev_widths(low: float, high: float, n_nodes: int) -> np.ndarray:
    """Return Chebyshev nodes in log width between low and high."""
    middle, half = 0.5 * (np.log(low) + np.log(high)), 0.5 * (np.log(high) - np.log(low))
    return np.exp(middle + half * _chebyshev(n_nodes))


def _chebyshev(n_nodes: int) -> np.ndarray:
    return np.cos((2 * np.arange(n_nodes) + 1) * np.pi / (2 * n_nodes))


def lagrange_basis(widths: np.ndarray, low: float, high: float, n_nodes: int) -> np.ndarray:
    """Return the Lagrange polynomials of the nodes at the widths, by the barycentric formula.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.ladder import chebyshev_widths, lagrange_basis
    >>> nodes = chebyshev_widths(1.0, 4.0, 20)
    >>> values = lagrange_basis(np.array([2.5]), 1.0, 4.0, 20) @ np.exp(-3.0 / (2 * nodes**2))
    >>> bool(abs(values[0] - np.exp(-3.0 / (2 * 2.5**2))) < 1e-9)
    True
    """
    at = (2 * np.log(widths) - np.log(low) - np.log(high)) / (np.log(high) - np.log(low))
    nodes = _chebyshev(n_nodes)
    place = np.arange(n_nodes)
    weights = (-1.0) ** place * np.sin((2 * place + 1) * np.pi / (2 * n_nodes))
    distance = at[:, None] - nodes[None, :]
    # On a node the formula is 0/0; this near, the node's own polynomial is 1 and the others are 0 to rounding.
    distance[np.abs(distance) < 1e-15] = 1e-15
    np.divide(weights, distance, out=distance)
    distance /= distance.sum(axis=1, keepdims=True)
    return distance


@lru_cache(maxsize=64)
def count_nodes(low: float, high: float, error: float) -> int:
    """Return the least number of nodes (in steps of four) whose interpolation is exact to ``error``.

    Measured on a fine grid of widths and of squared distances, from far below low^2 to far above high^2; only the ratio
    of the two counts.
    """
    low, high = 1.0, high / low
    widths = np.geomspace(low, high, 331)
    distances = np.geomspace(1e-3, 1e3 * high**2, 400)
    true = np.exp(-distances / (2 * widths[:, None] ** 2))
    n_nodes = _LEAST_NODES
    while True:
        nodes = chebyshev_widths(low, high, n_nodes)
        values = np.exp(-distances / (2 * nodes[:, None] ** 2))
        if np.abs(lagrange_basis(widths, low, high, n_nodes) @ values - true).max() <= error:
            return n_nodes
        n_nodes += _MORE_NODES


class LadderBank(CombinesToMatrix):
    """Ladders bound to training data: the finite bank's capabilities, at the cost of the nodes.

    Parameters
    ----------
    ladders : list of GaussianLadder
    places : list of (positions, where, group)
        The columns of each ladder, and words for them.
    X, sample_weight : the training data
    normalize, center, budget, storage, precision, reserve
        As for :meth:`KernelBank.bind`.
    learn : function
        Learns the normalization of bound kernels.
    """

    capabilities = CAPABILITIES

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
        learn: Any,
        reserve: int = 0,
    ) -> None:
        # Double precision is asked for where digits count: then the interpolation has to give them, too.
        self.ladders = [ladder.refined(_FINE_ERROR) if precision == "double" else ladder for ladder in ladders]
        self.places, self.X, self.sample_weight = list(places), X, sample_weight
        self.n_samples, self.precision = X.shape[0], precision
        self.first = np.concatenate([[0], np.cumsum([len(ladder) for ladder in ladders])])
        self.n_kernels = int(self.first[-1])
        triangle = (4 if precision == "single" else 8) * triangle_size(X.shape[0])
        # The kernels of a working set are none of the nodes: they take room of their own, at most half of it.
        room = min(reserve * triangle, budget // 2)
        self._nodes = self._bind_nodes(center, budget - room, storage, precision, learn)
        self.room = Room(room + (self._nodes.room.left or 0))
        self._first_node = np.concatenate([[0], np.cumsum([ladder.nodes.size for ladder in self.ladders])])
        self._bases = self._make_bases()
        self.is_cosine = normalize == "cosine"
        self.scale = self._learn_scale(normalize)
        self.names: Sequence[str] = LadderNames(self.ladders, self.places, self.first, "name")
        self.groups: Sequence[str] = LadderNames(self.ladders, self.places, self.first, "group")

    def _bind_nodes(self, center: bool, budget: int, storage: str, precision: str, learn: Any) -> BoundBank:
        """Bind the node kernels, centered but not scaled, in one bank that plans their storage."""
        bound = [
            BoundKernel(Gaussian(width), positions, f"{ladder.title} on {where}", group)  # all by the ladder's name
            for ladder, (positions, where, group) in zip(self.ladders, self.places, strict=True)
            for width in ladder.nodes
        ]
        normalization = learn(bound, self.X, kind=None, center=center, sample_weight=self.sample_weight)
        dtype = np.float32 if precision == "single" else np.float64
        # float32 triangles of centered kernels are rounded after centering, as everywhere.
        storages, room = plan_storages(
            bound, self.X, normalization, self.sample_weight, budget=budget, storage=storage, dtype=dtype
        )
        return BoundBank(bound, self.X, normalization, self.sample_weight, storages, precision, room)

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
            own = np.stack([node_values[..., self._first_node[f] : self._first_node[f + 1]] for f in members])
            for f, values in zip(members, own @ basis.T, strict=True):
                out[..., self.first[f] : self.first[f + 1]] = values
        return out

    def _make_bases(self) -> list[tuple[np.ndarray, list[int]]]:
        """Return (basis, its ladders): ladders with the same widths share one, and one matrix product serves all."""
        members: dict[tuple, list[int]] = {}
        for f, ladder in enumerate(self.ladders):
            members.setdefault((ladder.low, ladder.high, ladder.count, ladder.nodes.size), []).append(f)
        return [
            (lagrange_basis(np.geomspace(low, high, count), low, high, n_nodes), own)
            for (low, high, count, n_nodes), own in members.items()
        ]

    def _basis_of(self, f: int) -> np.ndarray:
        return next(basis for basis, members in self._bases if f in members)

    def _to_nodes(self, weights: np.ndarray) -> np.ndarray:
        """Return the signed node weights of the same combined kernel."""
        scaled = weights * self.scale
        out = np.empty(self._nodes.n_kernels)
        for basis, members in self._bases:
            own = np.stack([scaled[self.first[f] : self.first[f + 1]] for f in members])
            for f, values in zip(members, own @ basis, strict=True):
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
    def is_centered(self) -> bool:
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
            own, basis = slice(self.first[f], self.first[f + 1]), self._basis_of(f)
            # Wide kernels, nearly constant, are what is left of nodes whose own norms are far larger.
            R = inner_factor(self._nodes, weight, np.arange(self._first_node[f], self._first_node[f + 1]))
            out[own] = self.scale[own] ** 2 * np.sum((basis @ R.T) ** 2, axis=1)
        return out

    def derivative_forms(self, weights: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Return beta' (dK/dd_k) beta: of a sum the quadratic forms, whatever the weights."""
        return self.quad_forms(beta)

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

    def subset(self, indices: np.ndarray) -> BoundBank:
        """Return the bank of a few of the kernels, computed exactly and held in memory while they fit."""
        return self._bank_of(checked_places(indices, self.n_kernels), self.room)

    def _computed(self, indices: np.ndarray) -> BoundBank:
        """Return the bank of a few of the kernels, computed exactly in each pass."""
        return self._bank_of(indices, Room(0))

    def _bank_of(self, indices: np.ndarray, room: Room) -> BoundBank:
        bound, normalization = self.bound_kernels(indices), self._normalization_of(indices)
        source = RecomputedStorage(bound, np.arange(len(bound)), self.X, normalization, PRECISIONS[self.precision])
        storages = source.held(room) if bound else []
        return BoundBank(bound, self.X, normalization, self.sample_weight, storages, self.precision, self.room)

    def tail(self, size: int) -> LadderBank:
        """Return the kernels on the last ``size`` samples, normalized as here; what is held in memory is shared."""
        part = copy(self)
        part.X, part.sample_weight, part.n_samples = self.X[-size:], self.sample_weight[-size:], size
        part._nodes = self._nodes.tail(size)
        return part

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
            own = self._normalization_of(active)
            return Terms(self.bound_kernels(active), weights[active] * own.scale, own.means, own.totals)
        own = self._nodes.normalization
        return Terms(self._nodes.bound, self._to_nodes(weights), own.means, own.totals)

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


class LadderNames(LazyTexts):
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
