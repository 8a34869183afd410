"""Kernels of small rank in place of kernels: K_k is replaced by Z_k Z_k' with features Z_k that depend on one row each.

NystroemFeatures takes the kernel's values with landmarks; they are chosen one by one, with a probability that is
proportional to what is left of the diagonal (Chen, Epperly, Tropp and Webber, 2023), on a random part of the rows.
FourierFeatures takes random waves, for Gaussian kernels. A kernel that has finite features of its own, no more than the
rank, keeps them and is exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from manykernels.compute.linalg import independent_rows
from manykernels.compute.memory import human_bytes
from manykernels.compute.pairwise import dense
from manykernels.compute.threads import one_blas_thread
from manykernels.core.checks import is_count, is_number
from manykernels.core.notices import shown
from manykernels.kernels.base import Gaussian, Kernel
from manykernels.kernels.feature_maps import Nothing, Nystroem, RandomFourier
from manykernels.kernels.missing import observed, seen_rows
from manykernels.kernels.normalize import checked_diagonal
from manykernels.kernels.shared_distances import BoundKernel

_SAMPLE_ROWS = 5  # rows to choose landmarks from, for each landmark
_LEAST_SAMPLE, _MOST_SAMPLE = 2000, 20_000
_BATCH = 32  # landmarks chosen at a time, and no more than a quarter of those there are
_EXHAUSTED = 1e-10  # of the diagonal: what is left is rounding
_COLUMN_COPIES, _ROOT_COPIES = 4, 5  # of a batch of columns while it is added, and of a kernel on its landmarks
UNCOUNTED = 2 * 10**6  # bytes that an interpreter takes and leaves: what is smaller is not refused
_CHECK_ROWS = 500
_FIRST_COLUMNS = 1024


@dataclass(frozen=True)
class Approximation(ABC):
    """Features in place of each kernel; :class:`NystroemFeatures` and :class:`FourierFeatures` say which.

    Attributes
    ----------
    rank : int, or float between 0 and 1
        Features of a kernel, or the share of it that may be lost.
    """

    rank: float = 1000
    name: ClassVar[str]  # what ``approximation=`` takes for the default rank
    keeps_trace: ClassVar[bool] = False  # whether the diagonal is that of the kernel, whatever the rank is

    def __post_init__(self) -> None:
        if not (is_count(self.rank) or (is_number(self.rank) and 0 < self.rank < 1)):
            raise ValueError(
                f"rank must be a whole number of at least 1, or between 0 and 1 the share of the trace that may be "
                f"lost, got {shown(self.rank)}."
            )

    def parameters(self) -> dict[str, Any]:
        """Return what a model file holds of it."""
        return {"rank": self.rank}

    @abstractmethod
    def replaced(self, entry: BoundKernel, V: Any, seed: int, purse: Purse) -> Kernel:
        """Return the kernel on features that stands for a kernel whose own are too many, given some of its rows."""


class NystroemFeatures(Approximation):
    """A kernel's values with landmarks, for ``approximation=`` of estimators and of ``Placement``.

    Parameters
    ----------
    rank : int, or float between 0 and 1, default 1000
        Landmarks of each kernel, or the share of its trace that may be lost: they are added until no more is.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.kernels import Gaussian, NystroemFeatures
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifier([Gaussian(2.0)], approximation=NystroemFeatures(rank=20), random_state=0).fit(X, y)
    >>> model.ranks_
    array([20])
    >>> NystroemFeatures(rank=0.01)
    NystroemFeatures(rank=0.01)
    """

    name = "nystroem"

    def replaced(self, entry: BoundKernel, V: Any, seed: int, purse: Purse) -> Kernel:
        """Return the kernel on its values with landmarks."""
        nystroem = Nystroem(entry.kernel, _landmarks(entry.kernel, V, self.rank, np.random.default_rng(seed), purse))
        size = nystroem.landmarks.shape[0]
        purse.check(_ROOT_COPIES * 8 * size**2)
        purse.spend(nystroem.landmarks.nbytes + nystroem.root.nbytes)
        return nystroem if nystroem.features(nystroem.landmarks[:1]).shape[1] else Nothing()


class FourierFeatures(Approximation):
    """Random waves in place of Gaussian kernels, for ``approximation=`` of estimators and of ``Placement``.

    Parameters
    ----------
    rank : int, or float between 0 and 1, default 1000
        Waves of each kernel, or the typical error of a kernel value.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.kernels import FourierFeatures, Gaussian
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifier([Gaussian(2.0)], approximation=FourierFeatures(rank=40), random_state=0).fit(X, y)
    >>> model.ranks_
    array([40])
    """

    name = "fourier"
    keeps_trace = True

    def replaced(self, entry: BoundKernel, V: Any, seed: int, purse: Purse) -> Kernel:
        """Return the kernel of random waves."""
        if not isinstance(entry.kernel, Gaussian):
            raise TypeError(
                f"approximation='fourier' needs Gaussian kernels, or kernels with few features of their own; "
                f"{entry.name!r} is neither: take 'nystroem'."
            )
        count = self.rank if self.rank >= 1 else np.ceil(1.0 / self.rank**2)
        return RandomFourier(entry.kernel.width, n_components=2 * max(1, int(count) // 2), seed=seed)


APPROXIMATIONS: tuple[type[Approximation], ...] = (NystroemFeatures, FourierFeatures)


def find_approximation(given: Any) -> Approximation | None:
    """Return what the parameter ``approximation`` stands for: None, an object as it is, or that of a name.

    Examples
    --------
    >>> from manykernels.kernels.approximate import find_approximation
    >>> find_approximation("nystroem")
    NystroemFeatures(rank=1000)
    """
    if given is None or isinstance(given, Approximation):
        return given
    for kind in APPROXIMATIONS:
        if isinstance(given, str) and given == kind.name:
            return kind()
    words = ", ".join(f"{kind.name!r}, {kind.__name__}(rank)" for kind in APPROXIMATIONS)
    raise ValueError(f"approximation must be None, {words}, got {shown(given)}.")


def approximate_kernels(
    bound: Sequence[BoundKernel],
    X: Any,
    approximation: Approximation,
    random_state: np.random.Generator,
    budget: int | None = None,
) -> list[BoundKernel]:
    """Return the kernels with finite features in place of theirs, under the same names.

    Parameters
    ----------
    bound : sequence of BoundKernel
    X : array, CSR matrix or anything whose slices are such, of shape (n_samples, n_features)
    approximation : Approximation
    random_state : Generator
    budget : int, optional
        Bytes for the landmarks, what they are chosen by included; MemoryError is raised where that takes more.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Gaussian, NystroemFeatures
    >>> from manykernels.kernels.approximate import approximate_kernels
    >>> from manykernels.kernels.shared_distances import BoundKernel
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> entry = BoundKernel(Gaussian(2.0), np.arange(2), "a kernel", "a group")
    >>> (found,) = approximate_kernels([entry], X, NystroemFeatures(0.01), np.random.default_rng(0))
    >>> found.name, found.kernel.features(X).shape[1] < 20
    ('a kernel', True)
    """
    n, rank = X.shape[0], approximation.rank
    most = _MOST_SAMPLE if rank < 1 else int(min(max(_SAMPLE_ROWS * rank, _LEAST_SAMPLE), _MOST_SAMPLE))
    # In order, so that a file is read once from its beginning to its end.
    sample = take_rows(X, np.sort(random_state.permutation(n)[: min(n, most)]))
    with one_blas_thread():
        return _approximations(bound, sample, approximation, random_state, Purse(budget))


class Purse:
    """The bytes that landmarks may take, and those that are spent."""

    def __init__(self, budget: int | None) -> None:
        self.budget, self.spent = budget, 0

    def check(self, need: int) -> None:
        """Raise MemoryError unless so many bytes are there in addition to what is spent."""
        if self.budget is not None and self.spent + need > self.budget + UNCOUNTED:
            raise MemoryError(
                f"The memory budget leaves {human_bytes(self.budget)} for kernels, but their landmarks need "
                f"{human_bytes(self.spent + need)} or more: lower rank or raise memory_budget."
            )

    def spend(self, need: int) -> None:
        """Keep so many bytes."""
        self.check(need)
        self.spent += need


def _approximations(
    bound: Sequence[BoundKernel],
    sample: Any,
    approximation: Approximation,
    random_state: np.random.Generator,
    purse: Purse,
) -> list[BoundKernel]:
    seeds = random_state.integers(2**31, size=len(bound))
    approximations, chosen = [], {}
    for entry, seed in zip(bound, seeds.tolist(), strict=True):
        V = sample[:, entry.positions]
        V = seen_rows(V, observed(V))
        key = (id(entry.kernel), entry.positions.tobytes())
        if key not in chosen:
            chosen[key] = _replaced(approximation, entry, V, seed, purse)
        approximations.append(replace(entry, kernel=chosen[key]))
    return approximations


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Return the rows of X in memory, in double precision."""
    taken = X[rows]
    return taken.astype(np.float64) if hasattr(taken, "tocsr") else np.asarray(taken, dtype=np.float64)


def _replaced(approximation: Approximation, entry: BoundKernel, V: Any, seed: int, purse: Purse) -> Kernel:
    kernel, rank = entry.kernel, approximation.rank
    checked_diagonal(kernel, V, entry.name)
    features = kernel.features(V[:1] if V.shape[0] else np.zeros((1, V.shape[1])))
    if features is not None and (rank < 1 or features.shape[1] <= rank):
        return kernel
    return approximation.replaced(entry, V, seed, purse)


def _landmarks(kernel: Kernel, V: Any, rank: float, random: np.random.Generator, purse: Purse) -> np.ndarray:
    """Return rows that span most of the kernel, by a randomly pivoted Cholesky factorization."""
    if V.shape[0] == 0:
        return np.zeros((1, V.shape[1]))  # a view that none of these rows has
    diagonal = np.maximum(np.asarray(kernel.diagonal(V), dtype=np.float64), 0.0)
    total, left = float(diagonal.sum()), diagonal.copy()
    most = V.shape[0] if rank < 1 else min(int(rank), V.shape[0])
    allowed = rank if rank < 1 else 0.0
    # A column after the other: memory is touched as the landmarks come, which may be fewer than allowed.
    factor, pivots = np.empty((V.shape[0], min(most, _FIRST_COLUMNS)), order="F"), np.empty(0, np.int64)
    while pivots.size < most and left.sum() > max(allowed, _EXHAUSTED) * total:
        purse.check(8 * V.shape[0] * (pivots.size + _COLUMN_COPIES * _BATCH))
        rows = _drawn(left, min(_BATCH, max(1, pivots.size // 4), most - pivots.size), random)
        done = slice(0, pivots.size)
        columns = np.asarray(kernel.compute(V, V[rows]), dtype=np.float64) - factor[:, done] @ factor[rows, done].T
        kept, root = independent_rows(columns[rows], _EXHAUSTED)
        new = slice(pivots.size, pivots.size + kept.size)
        if new.stop > factor.shape[1]:  # how many it takes is not known before, and all would be a whole matrix
            more = min(max(2 * factor.shape[1], new.stop), most) - factor.shape[1]
            purse.check(8 * V.shape[0] * (2 * factor.shape[1] + more))
            factor = np.asfortranarray(np.concatenate([factor.T, np.empty((more, V.shape[0]))]).T)
        factor[:, new] = solve_triangular(root, columns[:, kept].T, lower=True, check_finite=False).T
        left = np.maximum(left - np.sum(factor[:, new] ** 2, axis=1), 0.0)
        left[rows] = 0.0
        pivots = np.concatenate([pivots, rows[kept]])
    return dense(V[pivots if pivots.size else np.arange(1)]).astype(np.float64)


def _drawn(left: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Return different rows, drawn with these odds."""
    return random.choice(left.size, min(count, int(np.count_nonzero(left))), replace=False, p=left / left.sum())


def errors_of_values(before: Sequence[BoundKernel], after: Sequence[BoundKernel], X: Any) -> np.ndarray:
    """Return for each kernel the mean error of its values on some rows, beside the mean diagonal."""

    def error(old: Kernel, new: Kernel, V: Any) -> float:
        K = np.asarray(old.compute(V, V))
        return float(np.abs(K - new.compute(V, V)).mean() / max(float(K.diagonal().mean()), 1e-300))

    return _on_some_rows(before, after, X, error)


def lost_traces(before: Sequence[BoundKernel], after: Sequence[BoundKernel], X: Any) -> np.ndarray:
    """Return for each kernel the share of its trace on some rows that its features lack."""

    def error(old: Kernel, new: Kernel, V: Any) -> float:
        return float(np.clip(1.0 - new.diagonal(V).sum() / max(float(old.diagonal(V).sum()), 1e-300), 0.0, 1.0))

    return _on_some_rows(before, after, X, error)


def _on_some_rows(
    before: Sequence[BoundKernel], after: Sequence[BoundKernel], X: Any, error: Callable[[Kernel, Kernel, Any], float]
) -> np.ndarray:
    sample = take_rows(X, np.linspace(0, X.shape[0] - 1, min(_CHECK_ROWS, X.shape[0])).astype(int))
    out = np.zeros(len(before))
    for k, (old, new) in enumerate(zip(before, after, strict=True)):
        V = sample[:, old.positions]
        V = seen_rows(V, observed(V))
        if new.kernel is not old.kernel and V.shape[0]:
            out[k] = error(old.kernel, new.kernel, V)
    return out
