"""Sets of kernels that are not a list: exponentially many, or a continuum.

A family never lists its kernels. It finds the best one for a matrix, max <M, K>, and draws one at random; an optimizer
collects the few that it needs in a :class:`manykernels.banks.collection.Collection`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from manykernels.kernels.shared_distances import BoundKernel, by_distances

# What families offer: all search and draw; products are a lattice, too, see LatticeFamily.
NEEDS_BEST, NEEDS_SAMPLE, NEEDS_LATTICE = "best", "sample", "lattice"
DRAWS = ("gradient", "uniform")
NORMALIZATIONS = ("mean_diag", "trace", None)


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


class Draw(NamedTuple):
    """A kernel that was drawn at random, its <M, K>, and the probability (or density) with which it was drawn."""

    member: Member
    value: float
    probability: float


class Family(ABC):
    """A set of kernels, as described; bound to training data it becomes a BoundFamily."""

    # What an optimizer may ask for, once the family is bound.
    can: frozenset[str] = frozenset({NEEDS_BEST, NEEDS_SAMPLE})
    # Kernels that have to be bound first, where its own are made of others.
    base: Any = None

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left open, such as the strength of a shrinkage, that is chosen on samples held out."""
        return True

    def candidates(self) -> Sequence[Family]:
        """Return the families, settled ones, of which one is to be chosen."""
        return [self]

    def search_bytes(self, n_samples: int) -> int:
        """Return the bytes that a search takes in addition to those kernels."""
        return 0

    @abstractmethod
    def on(
        self, X: Any, table: Any, weight: np.ndarray, normalize: str | None, budget: int, base: Any = None
    ) -> BoundFamily:
        """Return the family on training data; ``base`` is the bank of its kernels, if it has some.

        Parameters
        ----------
        X : float64 array or CSR matrix of shape (n_samples, n_features)
        table : where column names are looked up
        weight : ndarray of shape (n_samples,)
        normalize : {"mean_diag", "trace", None}
        budget : int
            Bytes for what a search holds.
        base : Bank or None
        """

    def __deepcopy__(self, memo: dict) -> Family:
        return self  # like a kernel, it does not change


class BoundFamily(ABC):
    """A family bound to training data.

    Attributes
    ----------
    can : frozenset of str
        What an optimizer may ask for, as the family says it.
    X : array or CSR matrix of shape (n_samples, n_features)
    sample_weight : ndarray of shape (n_samples,)
    spare : int or None
        Bytes for the kernels that an optimizer collects; None where nobody counts them.
    """

    can: frozenset[str] = Family.can
    X: Any
    sample_weight: np.ndarray
    spare: int | None = None

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

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


class LatticeFamily(Protocol):
    """What a bound family with "lattice" has in addition: its kernels are products of factors.

    A product is known by the numbers of its factors, with repetitions, in order.
    """

    @property
    def n_factors(self) -> int: ...
    @property
    def degree(self) -> int:
        """The largest number of factors of a product."""

    def member(self, indices: tuple[int, ...]) -> Member:
        """Return the product of these factors."""

    def value(self, M: np.ndarray, member: Member) -> float:
        """Return <M, K>."""


def scale_of(entry: BoundKernel, X: Any, normalize: str | None, sample_weight: np.ndarray) -> float:
    """Return the factor that gives a kernel a mean diagonal or a trace of 1, or that leaves it as it is."""
    if normalize is None:
        return 1.0
    (shared,) = by_distances([entry])
    total = float(sample_weight @ shared.diagonal(0, shared.view(X)))
    if total <= 0.0:
        return 0.0
    return (float(sample_weight.sum()) if normalize == "mean_diag" else 1.0) / total


def check_settled(family: Family) -> None:
    """Raise ValueError for a family that leaves something open, where nothing is held out to choose it by."""
    if not family.is_settled:
        raise ValueError(
            f"{family!r} is for TwoStageMKLClassifier, TwoStageMKLRegressor and AlignedKernel, which choose on samples "
            "held out: give a number."
        )
