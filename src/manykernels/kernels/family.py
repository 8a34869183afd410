"""Sets of kernels that are no list: exponentially many, or a continuum.

A family never lists its kernels. It finds the best one for a matrix, max <M, K>, and draws one at random; an optimizer
collects the few that it needs in a :class:`Collection`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from manykernels.kernels.bound import PRECISIONS, BoundBank
from manykernels.kernels.groups import BoundKernel, make_groups
from manykernels.kernels.normalize import Normalization
from manykernels.kernels.plan import SMALL_RANK
from manykernels.kernels.storage import FactorStorage, PackedStorage, RecomputedStorage, Storage

NEEDS_BEST, NEEDS_SAMPLE = "best", "sample"
DRAWS = ("gradient", "uniform")


class Member(NamedTuple):
    """A kernel of a family: what tells it from the others, the kernel, and the factor that normalizes it."""

    key: Hashable
    kernel: BoundKernel
    scale: float


class Best(NamedTuple):
    """What a search for the largest <M, K> found, its value, and what no kernel of the family exceeds.

    ``bound`` is infinite where nothing is known; where it equals the value, up to rounding, the search was exact.
    """

    member: Member
    value: float
    bound: float

    @property
    def is_exact(self) -> bool:
        """Whether no kernel is better, to six digits."""
        return self.bound <= self.value + 1e-6 * abs(self.value) + 1e-300


class Draw(NamedTuple):
    """A kernel that was drawn at random, its <M, K>, and the probability (or density) with which it was drawn."""

    member: Member
    value: float
    probability: float


class Family(ABC):
    """A set of kernels, as described; bound to training data it becomes a BoundFamily."""

    @abstractmethod
    def bind(
        self,
        X: Any,
        *,
        source: Any = None,
        normalize: str | None = "mean_diag",
        sample_weight: np.ndarray | None = None,
        memory_budget: Any = None,
    ) -> BoundFamily:
        """Bind the family to training data; parameters are those of :meth:`KernelBank.bind`."""

    def __deepcopy__(self, memo: dict) -> Family:
        return self  # like a kernel, it does not change


class BoundFamily(ABC):
    """A family bound to training data.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    sample_weight : ndarray of shape (n_samples,)
    """

    X: Any
    sample_weight: np.ndarray

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def capabilities(self) -> frozenset[str]:
        """What an optimizer may ask for."""
        return frozenset({NEEDS_BEST, NEEDS_SAMPLE})

    @abstractmethod
    def best(self, M: np.ndarray, definite: bool = True) -> Best:
        """Search for the kernel with the largest <M, K>, for a symmetric M of shape (n, n).

        ``definite`` says that M is positive semidefinite, so that no kernel's <M, K> is negative.
        """

    @abstractmethod
    def sample(self, M: np.ndarray, rng: np.random.Generator, how: str = "gradient") -> Draw:
        """Draw a kernel; M is positive semidefinite. ``how``: about in proportion to <M, K>, or "uniform"."""

    def norm_bound(self, M: np.ndarray) -> tuple[float, bool]:
        """Return what the 2-norm of all <M, K> does not exceed, infinite if unknown, and whether it is that norm."""
        return np.inf, False


class Collection:
    """Kernels of a family that an optimizer has met, held in memory: a bank that grows.

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
        self._triangles: dict[int, PackedStorage] = {}

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
        """Hold a kernel as a factor if it has one of small rank, else as a triangle."""
        X = self.family.X
        (group,) = make_groups([member.kernel])
        view = group.view(X)
        self._largest.append(member.scale * float(group.diagonal(0, view).max()))
        factor = group.factor(0, view, None, SMALL_RANK)
        if factor is not None and factor.shape[1] <= min(SMALL_RANK, X.shape[0] // 4):
            self._factors[k] = np.sqrt(member.scale) * factor
            return
        own = Normalization(np.array([member.scale]), None, None, None, np.array(self._largest[-1:]))
        source = RecomputedStorage([member.kernel], np.array([0]), X, own, PRECISIONS[self.precision])
        self._triangles[k] = PackedStorage.fill(source).moved(np.array([k]))

    def matrix(self, k: int) -> np.ndarray:
        """Return the matrix of a kernel, shape (n, n)."""
        return self.bank(np.array([k])).matrix(0)

    def bank(self, chosen: np.ndarray | None = None) -> BoundBank:
        """Return the kernels, or the chosen ones, as a bank."""
        chosen = np.arange(len(self)) if chosen is None else chosen
        members = [self.members[k] for k in chosen]
        scale = np.array([member.scale for member in members])
        return BoundBank(
            [member.kernel for member in members],
            self.family.X,
            Normalization(scale, None, None, None, np.array(self._largest)[chosen]),
            self.family.sample_weight,
            self._storages(chosen),
            self.precision,
        )

    def _storages(self, chosen: np.ndarray) -> list[Storage]:
        found: list[Storage] = []
        as_factors = [place for place, k in enumerate(chosen) if k in self._factors]
        if as_factors:
            found.append(FactorStorage(np.array(as_factors), [self._factors[chosen[place]] for place in as_factors]))
        for place, k in enumerate(chosen):
            if k in self._triangles:
                found.append(self._triangles[k].moved(np.array([place])))
        return found


def scale_of(entry: BoundKernel, X: Any, normalize: str | None, sample_weight: np.ndarray) -> float:
    """Return the factor that gives a kernel a mean diagonal or a trace of 1, or that leaves it as it is."""
    if normalize is None:
        return 1.0
    if normalize not in ("mean_diag", "trace"):
        raise ValueError(f"normalize={normalize!r} is not for a family of kernels: take 'mean_diag', 'trace' or None.")
    (group,) = make_groups([entry])
    total = float(sample_weight @ group.diagonal(0, group.view(X)))
    if total <= 0.0:
        return 0.0
    return (float(sample_weight.sum()) if normalize == "mean_diag" else 1.0) / total
