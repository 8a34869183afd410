"""The kernels of a family that an optimizer has met: a bank that grows."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from manykernels.banks.factor_storage import FactorStorage
from manykernels.banks.layout import SMALL_RANK
from manykernels.banks.packed import PackedBank
from manykernels.banks.placement import PRECISIONS, UNIT_ROUNDOFFS
from manykernels.banks.recomputed_storage import RecomputedStorage
from manykernels.banks.room import Room
from manykernels.banks.storage import Storage
from manykernels.compute.combined import CombinedMatrix
from manykernels.kernels.family import BoundFamily, Member
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.shared_distances import by_distances

# Factors are there twice: one by one, and side by side in the bank.
_COPIES = 2


class Collection:
    """Kernels of a family that an optimizer has met: a bank that grows.

    They are held in memory while they fit into the bytes that the family leaves for them; the others are computed anew
    in each pass.

    Parameters
    ----------
    family : BoundFamily
    precision : {"single", "double"}
    """

    def __init__(self, family: BoundFamily, precision: str = "single") -> None:
        self.family, self.precision = family, precision
        self.members: list[Member] = []
        self._place: dict[Hashable, int] = {}
        self._largest: list[float] = []
        self._factors: dict[int, np.ndarray] = {}
        self._storage_of: dict[int, Storage] = {}
        self.room = Room(family.spare)

    def __len__(self) -> int:
        return len(self.members)

    def place(self, member: Member) -> int:
        """Return the place of a kernel, which is taken in if it is new."""
        if member.key not in self._place:
            k = len(self.members)
            self._place[member.key] = k
            self.members.append(member)
            self._hold(k, member)
        return self._place[member.key]

    def _hold(self, k: int, member: Member) -> None:
        """Hold a kernel as a factor if it has one of small rank, else as a triangle, if there is room."""
        X = self.family.X
        (shared,) = by_distances([member.kernel])
        view = shared.view(X)
        self._largest.append(member.scale * float(shared.diagonal(0, view).max()))
        (factor,) = shared.factors(view, None, SMALL_RANK)
        most = min(SMALL_RANK, X.shape[0] // 4)
        if factor is not None and factor.shape[1] <= most and self.room.take(1, _COPIES * factor.nbytes):
            self._factors[k] = np.sqrt(member.scale) * factor
            return
        normalization = Normalization(np.array([member.scale]), None, None, None, np.array(self._largest[-1:]))
        source = RecomputedStorage([member.kernel], np.array([0]), X, normalization, PRECISIONS[self.precision])
        (self._storage_of[k],) = source.held(self.room)

    def workspace(self) -> CombinedMatrix:
        """Return what the banks write their combined kernels to, however many kernels there will be."""
        return CombinedMatrix.empty(self.family.n_samples, UNIT_ROUNDOFFS[self.precision])

    def matrix(self, k: int) -> np.ndarray:
        """Return the matrix of a kernel, shape (n, n)."""
        return self.bank(np.array([k])).matrix(0)

    def bank(self, chosen: np.ndarray | None = None) -> PackedBank:
        """Return the kernels, or the chosen ones, as a bank."""
        chosen = np.arange(len(self)) if chosen is None else chosen
        members = [self.members[k] for k in chosen]
        scale = np.array([member.scale for member in members])
        return PackedBank(
            [member.kernel for member in members],
            self.family.X,
            Normalization(scale, None, None, None, np.array(self._largest)[chosen]),
            self.family.sample_weight,
            self._storages(chosen),
            self.precision,
            self.room,
        )

    def _storages(self, chosen: np.ndarray) -> list[Storage]:
        storages: list[Storage] = []
        as_factors = [place for place, k in enumerate(chosen) if k in self._factors]
        if as_factors:
            storages.append(FactorStorage(np.array(as_factors), [self._factors[chosen[place]] for place in as_factors]))
        for place, k in enumerate(chosen):
            if k in self._storage_of:
                storages.append(self._storage_of[k].moved(np.array([place])))
        return storages
