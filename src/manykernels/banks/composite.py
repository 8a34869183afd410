"""Several bound banks as one: plain kernels and ladders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from manykernels.banks.argument_checks import checked_places, checked_weights
from manykernels.banks.combining import CombinesToMatrix, put_together
from manykernels.banks.ladder_bank import LadderBank
from manykernels.banks.learned import Terms
from manykernels.banks.offers import LISTS
from manykernels.banks.packed import PackedBank
from manykernels.kernels.lazy_names import LazyNames, run_lengths
from manykernels.kernels.normalize import Normalization


class CompositeBank(CombinesToMatrix):
    """The kernels of the parts, in the order of the parts."""

    can = LISTS

    def __init__(self, parts: Sequence[PackedBank | LadderBank]) -> None:
        self.parts = list(parts)
        self.first = np.concatenate([[0], np.cumsum([part.n_kernels for part in parts])])
        self.n_kernels, self.n_samples = int(self.first[-1]), parts[0].n_samples
        self.X, self.sample_weight = parts[0].X, parts[0].sample_weight
        self.is_centered, self.is_cosine = parts[0].is_centered, parts[0].is_cosine
        self.precision = "single" if any(part.precision == "single" for part in parts) else "double"
        self.concurrent = all(part.concurrent for part in parts)
        self.held_on = next((part.held_on for part in parts if part.held_on != "cpu"), "cpu")
        self.unit_roundoff = max(part.unit_roundoff for part in parts)
        self.names: Sequence[str] = Chained([part.names for part in parts])
        self.groups: Sequence[str] = Chained([part.groups for part in parts])

    @property
    def centering_errors(self) -> np.ndarray | None:
        """About how far centering has moved the values of each kernel; None where they are not centered."""
        known = [errors for part in self.parts if (errors := part.centering_errors) is not None]
        return np.concatenate(known) if len(known) == len(self.parts) else None

    def describe_storage(self) -> str:
        """Return words for how the kernels are held."""
        return "; ".join(part.describe_storage() for part in self.parts)

    @property
    def scale(self) -> np.ndarray:
        """The normalization's factor of each kernel; 0 for a kernel that is zero on the training data."""
        return np.concatenate([part.scale for part in self.parts])

    def fill(self, weights: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write sum_k weights[k] K_k to ``out``."""
        out.fill(0.0)
        for part, share in zip(self.parts, self._split(weights), strict=True):
            if np.any(share):
                out += part.fill(share, np.empty_like(out))
        return out

    def _split(self, values: np.ndarray) -> list[np.ndarray]:
        return np.split(values, self.first[1:-1])

    def quad_forms(self, beta: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray:
        """Return beta' K_k beta of the kernels of the subset (default: all)."""
        return self._each(subset, lambda part, members: part.quad_forms(beta, members), lead=np.shape(beta)[:-1])

    def inner_products(self, M: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray:
        """Return the Frobenius inner products <K_k, M>."""
        return self._each(subset, lambda part, members: part.inner_products(M, members))

    def centered_squares(self, weight: np.ndarray) -> np.ndarray:
        """Return ||K_c||_w^2 of all kernels."""
        return np.concatenate([part.centered_squares(weight) for part in self.parts])

    def largest_diagonals(self, subset: np.ndarray) -> np.ndarray:
        """Return an upper bound of the diagonal of each kernel of the subset."""
        return self._each(subset, lambda part, members: part.largest_diagonals(members))

    def matvecs(self, beta: np.ndarray, subset: np.ndarray | None = None, *, on_support: bool = False) -> np.ndarray:
        """Return K_k beta for the kernels of the subset (default: all), shape (len(subset), n)."""
        return self._each(
            subset, lambda part, members: part.matvecs(beta, members, on_support=on_support), trail=(beta.size,)
        )

    def rows(self, indices: Any, subset: np.ndarray | None = None) -> np.ndarray:
        """Return the given rows of the kernels of the subset, shape (len(subset), len(indices), n)."""
        shape = (len(indices), self.n_samples)
        return self._each(subset, lambda part, members: part.rows(indices, members), trail=shape)

    def diagonal(self, subset: np.ndarray | None = None) -> np.ndarray:
        """Return the diagonals of the kernels of the subset, shape (len(subset), n)."""
        return self._each(subset, lambda part, members: part.diagonal(members), trail=(self.n_samples,))

    def _each(
        self, subset: np.ndarray | None, compute: Callable, lead: tuple[int, ...] = (), trail: tuple[int, ...] = ()
    ) -> np.ndarray:
        """Return what the parts compute for each kernel of the subset, shape (*lead, len(subset), *trail)."""
        chosen = checked_places(subset, self.n_kernels)
        pieces = ((where, compute(part, local)) for part, where, local in self._owners(chosen))
        return put_together(chosen.size, pieces, lead, trail)

    def _owners(self, chosen: np.ndarray) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Yield each part that has some of the chosen kernels, where these are in ``chosen``, and in the part."""
        owner = np.searchsorted(self.first, chosen, side="right") - 1
        for i, part in enumerate(self.parts):
            where = np.flatnonzero(owner == i)
            if where.size:
                yield part, where, chosen[where] - self.first[i]

    def peaks(self, values: np.ndarray) -> np.ndarray:
        """Return the places worth a look: local maxima along ladders, and every plain kernel."""
        parts = zip(self.parts, self._split(values), self.first, strict=False)
        return np.concatenate([part.peaks(part_values) + first for part, part_values, first in parts])

    def subset(self, indices: np.ndarray) -> PackedBank:
        """Return the bank of a few of the kernels, in memory."""
        indices = checked_places(indices, self.n_kernels)
        banks, order = [], []
        for part, where, local in self._owners(indices):
            banks.append(part.subset(local))
            order.append(where)
        return _merged(banks, np.concatenate(order)) if banks else self.parts[0].subset(indices)

    def tail(self, size: int) -> CompositeBank:
        """Return the kernels on the last ``size`` samples, normalized as here; what is held in memory is shared."""
        tail = CompositeBank([part.tail(size) for part in self.parts])
        tail.spare = self.spare_beside_tail(size)
        return tail

    def terms(self, weights: np.ndarray) -> Terms:
        """Return the learned kernel as the sum of the parts' terms."""
        split = self._split(checked_weights(weights, self.n_kernels))
        terms = [part.terms(share) for part, share in zip(self.parts, split, strict=True)]
        return Terms(
            bound=[entry for term in terms for entry in term.bound],
            coefficients=np.concatenate([term.coefficients for term in terms]),
            means=_stack([term.means for term in terms]),
            totals=_stack([term.totals for term in terms]),
        )

    def importances(self, weights: np.ndarray, n_features: int) -> np.ndarray:
        """Return each feature's part of the weight, a kernel's being divided over its columns."""
        parts = zip(self.parts, self._split(weights), strict=True)
        return np.sum([part.importances(share, n_features) for part, share in parts], axis=0)


class Chained(LazyNames):
    """Several sequences of texts, one after the other, none of them copied."""

    def __init__(self, parts: Sequence[Sequence[str]]) -> None:
        self._parts = list(parts)
        self._first = np.concatenate([[0], np.cumsum([len(part) for part in parts])])

    def __len__(self) -> int:
        return int(self._first[-1])

    def text(self, k: int) -> str:
        i = int(np.searchsorted(self._first, k, side="right")) - 1
        return self._parts[i][k - int(self._first[i])]

    def runs(self) -> list[tuple[str, int]]:
        """Return the runs of equal texts of the parts."""
        return [run for part in self._parts for run in run_lengths(part)]


def _stack(arrays: list[np.ndarray | None]) -> np.ndarray | None:
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if present else None


def _merged(banks: list[PackedBank], order: np.ndarray) -> PackedBank:
    """Return one bank of the kernels of several; kernel i of theirs, in a row, is kernel ``order[i]`` of the result."""
    place = np.argsort(order)
    flat = [entry for bank in banks for entry in bank.bound]
    parts = [bank.normalization for bank in banks]
    normalization = Normalization(
        scale=np.concatenate([part.scale for part in parts])[place],
        inverse_norms=_sorted_stack([part.inverse_norms for part in parts], place),
        means=_sorted_stack([part.means for part in parts], place),
        totals=_sorted_stack([part.totals for part in parts], place),
        largest=np.concatenate([part.largest for part in parts])[place],
        raw_level=_sorted_stack([part.raw_level for part in parts], place),
    )
    storages, shift = [], 0
    for bank in banks:
        for storage in bank.storages:
            storages.append(storage.moved(order[storage.indices + shift]))
        shift += bank.n_kernels
    first, precision = banks[0], "single" if any(bank.precision == "single" for bank in banks) else "double"
    room = max((bank.room for bank in banks), key=lambda room: np.inf if room.left is None else room.left)
    bound = [flat[i] for i in place]
    return PackedBank(bound, first.X, normalization, first.sample_weight, storages, precision, room)


def _sorted_stack(arrays: list[np.ndarray | None], place: np.ndarray) -> np.ndarray | None:
    stacked = _stack(arrays)
    return None if stacked is None else stacked[place]
