"""Alignment with a target, one kernel at a time: of a list, of products, or of a continuum.

The next kernel is the one with the largest inner product with the derivative of the objective: with T - t K, where
t K is the current combination at its best length. There are three ways to go on from there:

corrective
    All weights are learned anew by non-negative least squares. That is exact for the kernels chosen so far.
stagewise
    The new kernel is added with the weight that is best for the alignment, in closed form (thesis, Algorithm 7).
frank_wolfe
    The distance to T is minimized over the polytope whose corners are 0 and the kernels times a number: a step
    toward the best corner, to the exact minimum on the way (Algorithm 8; the step printed there is for another
    update). The number is doubled when the weights come near its limit.

Kernels of a list are compared at equal norm, those of a family as they are.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from manykernels.alignment.finite import Aligned, aligned, alike, combined_alignment, nonnegative, upper_bound
from manykernels.alignment.measures import Target, centered_norms
from manykernels.banks.collection import Collection
from manykernels.compute.combined import as_matrix
from manykernels.compute.threads import one_blas_thread
from manykernels.core.checks import check_choice
from manykernels.core.progress import emit, is_listened_to
from manykernels.core.protocols import Bank
from manykernels.core.results import Step
from manykernels.kernels.centered import centered, inner_matrix
from manykernels.kernels.family import NEEDS_BEST, BoundFamily

GREEDY_METHODS = ("corrective", "stagewise", "frank_wolfe")
# What the bank of a list must be able to do.
LIST_NEEDS = frozenset(
    {"combine", "centered_squares", "largest_diagonals", "quad_forms", "inner_products", "matvecs", "rows"}
)
# Kernels of a list that join at once: a pass over all of them is expensive.
_AT_ONCE = 32
# The certificate for a family is for this many times the total weight.
_MARGIN = 10.0
# A gain in alignment below this is rounding.
_ROUNDING = 1e-12


@one_blas_thread()
def greedy(
    kernels: Any,
    target: Target,
    *,
    method: str = "corrective",
    tol: float = 1e-3,
    max_iter: int = 50,
    largest_step: float = np.inf,
) -> Aligned:
    """Select kernels and learn their weights.

    Parameters
    ----------
    kernels : bank or BoundFamily
    target : Target
    method : {"corrective", "stagewise", "frank_wolfe"}
    tol : float
        It ends when the bound is within this share of the alignment, or a step gains less than a hundredth of it.
    max_iter : int
    largest_step : float
        The longest step of "stagewise", relative to the norm of the current combination.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind_family
    >>> from manykernels.alignment import Target
    >>> from manykernels.alignment.greedy_alignment import greedy
    >>> from manykernels.kernels import GaussianFamily
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> result = greedy(bind_family(GaussianFamily(0.1, 100.0), X), Target.of_classes(X[:, 0] > 0))
    >>> result.converged, len(result.weights) < 5
    (True, True)
    """
    check_choice("method", method, GREEDY_METHODS)
    target.check_size(kernels.n_samples)
    candidates = _candidates(kernels.can)(kernels, target, method)
    return _Selection(candidates, target, method, tol, largest_step).run(max_iter)


def needs_of(can: frozenset[str]) -> frozenset[str]:
    """Return what is needed of kernels that ``can`` do this: another thing of a family than of a list.

    Examples
    --------
    >>> from manykernels.alignment.greedy_alignment import needs_of
    >>> needs_of(frozenset({"best", "sample"}))
    frozenset({'best'})
    """
    return _candidates(can).needs


def _candidates(can: frozenset[str]) -> type[_Listed | _Family]:
    return _Family if NEEDS_BEST in can else _Listed


class _Listed:
    """Kernels of a list, each divided by its centered norm."""

    needs = LIST_NEEDS

    def __init__(self, bank: Bank, target: Target, method: str) -> None:
        self.bank, self.weight, self.n = bank, target.weight, bank.n_samples
        self.norms = centered_norms(bank, target.weight)
        self.usable = np.flatnonzero(self.norms)
        self.products = np.zeros(self.norms.size)
        self.products[self.usable] = target.inner_products(bank)[self.usable] / self.norms[self.usable]
        self.chosen: list[int] = []
        self.radius = float(np.sqrt(self.usable.size)) * target.norm
        self.count = _AT_ONCE if method == "corrective" else 1
        self.forgets = method == "corrective"

    def first(self, T: np.ndarray, target: Target) -> np.ndarray:
        """Return the matrix that the first kernel is chosen by: the derivative of the distance at 0."""
        return T

    def search(self, M: np.ndarray) -> tuple[list, float, bool]:
        """Return the best kernels, the largest inner product with M, and whether none exceeds it."""
        if self.usable.size == 0:
            return [], 0.0, True
        values = self.bank.inner_products(M, self.usable) / self.norms[self.usable]
        peaks = _local_maxima(values)
        best = peaks[np.argsort(-values[peaks])][: self.count]
        best = best[values[best] > 0.0] if values[best[0]] > 0.0 else best[:1]
        return self.usable[best].tolist(), float(values.max()), True

    def take(self, best: list[int]) -> list[int]:
        """Take in kernels; return their places among all that were taken in."""
        self.chosen += [k for k in best if k not in self.chosen]
        return [self.chosen.index(k) for k in best]

    def keep(self, places: np.ndarray) -> None:
        """Keep the kernels at these places and forget the others; they may come back."""
        self.chosen = [self.chosen[place] for place in places]

    def inner(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the inner products of the kernels taken in with each other and with the target."""
        chosen = np.array(self.chosen)
        G = inner_matrix(self.bank, self.weight, chosen)
        return G / np.outer(self.norms[chosen], self.norms[chosen]), self.products[chosen]

    def combine(self, weights: np.ndarray) -> np.ndarray:
        return as_matrix(self.bank.combine(self._every(weights)))

    def limit(self, weights: np.ndarray) -> float:
        """Return the total weight that the certificate is for: here a bound of the best combination's is known."""
        return self.radius

    def final(self, weights: np.ndarray) -> tuple[Any, np.ndarray]:
        return self.bank, self._every(weights)

    def any(self, best: list[int]) -> tuple[Any, np.ndarray]:
        return self.bank, alike(self.bank)

    def _every(self, weights: np.ndarray) -> np.ndarray:
        every = np.zeros(self.norms.size)
        every[self.chosen] = weights / self.norms[self.chosen]
        return every


class _Family:
    """Kernels of a family, as they are."""

    needs = frozenset({NEEDS_BEST})
    forgets = False  # they are few

    def __init__(self, family: BoundFamily, target: Target, method: str) -> None:
        self.family, self.weight, self.n = family, target.weight, family.n_samples
        self.collection = Collection(family, "double")
        self.T, self.G, self.b = target.matrix(), np.zeros((0, 0)), np.zeros(0)

    def first(self, T: np.ndarray, target: Target) -> np.ndarray:
        """Return the derivative of the alignment at a small multiple of the identity."""
        # A sample of weight w stands for w samples, each alike only to itself.
        identity = np.divide(1.0, target.weight, out=np.zeros(self.n), where=target.weight > 0)
        H = centered(np.diag(identity), target.weight)
        size = float(target.weight.sum()) - 1.0
        return T - (float(T.diagonal() @ identity) / size) * H if size > 0.0 else T

    def search(self, M: np.ndarray) -> tuple[list, float, bool]:
        """Return the best kernel found, a bound for all kernels if known, else its inner product, and which it is."""
        best = self.family.best(M, definite=False)
        if best.value <= _ROUNDING * best.member.scale * float(np.abs(M).sum()):
            return [best.member], 0.0, bool(np.isfinite(best.bound))
        known = bool(np.isfinite(best.bound))
        return [best.member], best.bound if known else best.value, known

    def take(self, best: list) -> list[int]:
        return [self._place(member) for member in best]

    def _place(self, member: Any) -> int:
        place = self.collection.place(member)
        if place == self.b.size:
            K = self.collection.matrix(place)
            row = self.collection.bank().inner_products(centered(K, self.weight))
            if np.sqrt(max(row[place], 0.0)) <= 1e-13 * self.weight.sum() * np.abs(K.diagonal()).max():
                row[:] = 0.0  # a constant kernel, up to rounding
            self.G = np.pad(self.G, ((0, 1), (0, 1)))
            self.G[place], self.G[:, place] = row, row
            self.b = np.r_[self.b, float(np.vdot(self.T, K))]
        return place

    def keep(self, places: np.ndarray) -> None:
        raise NotImplementedError

    def inner(self) -> tuple[np.ndarray, np.ndarray]:
        return self.G, self.b

    def combine(self, weights: np.ndarray) -> np.ndarray:
        return self.collection.bank().combine(weights).array

    def limit(self, weights: np.ndarray) -> float:
        return _MARGIN * float(weights.sum())

    def final(self, weights: np.ndarray) -> tuple[Any, np.ndarray]:
        active = np.flatnonzero(weights)
        return self.collection.bank(active), weights[active]

    def any(self, best: list) -> tuple[Any, np.ndarray]:
        self.collection.place(best[0])
        return self.collection.bank(np.arange(1)), np.ones(1)


def _local_maxima(values: np.ndarray) -> np.ndarray:
    """Return the places of values that are larger than their neighbors'.

    Neighbors in a list are often nearly the same kernel, also where the bank knows nothing of that (``bank.peaks`` is
    about ladders): each that joins costs its inner products with all others, and the weights soon leave it out again.
    """
    padded = np.r_[-np.inf, values, -np.inf]
    return np.flatnonzero((values >= padded[:-2]) & (values > padded[2:]))


class _Selection:
    """The combination as a matrix M with <M, L> = <K_c, L_c>, at the length that is closest to the target."""

    def __init__(self, kernels: _Listed | _Family, target: Target, method: str, tol: float, largest: float) -> None:
        self.kernels, self.target, self.tol, self.largest = kernels, target, tol, largest
        self.step = {"corrective": self._correct, "stagewise": self._add, "frank_wolfe": self._move}[method]
        self.T, self.M = target.matrix(), np.zeros((kernels.n, kernels.n))
        self.weights, self.b, self.G = np.zeros(0), np.zeros(0), np.zeros((0, 0))
        self.corner = 0.0
        self.alignment, self.bound, self.exact = 0.0, 1.0, True
        self.trace: list[Step] = []
        self._started = time.perf_counter()

    def run(self, max_iter: int) -> Aligned:
        interrupted = False
        best, largest, self.exact = self.kernels.search(self.kernels.first(self.T, self.target))
        if largest <= 0.0:
            # All are less aligned than the identity, but they may still be aligned.
            best, largest, self.exact = self.kernels.search(self.T)
        if largest <= 0.0:
            return self._nothing(best)
        for _ in range(max_iter):
            before = self.alignment
            try:
                self._go_on(best)
                if not np.any(self.weights):
                    return self._nothing(best)
                best, largest, self.exact = self.kernels.search(self.T - self.M)
                self.bound = upper_bound(self.alignment, largest, self.kernels.limit(self.weights), self.target)
                self._report()
            except KeyboardInterrupt:
                if not (is_listened_to() and self.trace):
                    raise
                interrupted = True  # the unfinished step does not count
                break
            closed = self.bound - self.alignment <= self.tol * self.alignment
            if closed or self.alignment - before <= max(0.01 * self.tol * self.alignment, _ROUNDING):
                break
        converged = bool(self.reached.gap <= self.tol)
        return replace(self.reached, converged=converged, interrupted=interrupted, trace=self.trace)

    def _go_on(self, best: list) -> None:
        """Take in kernels, learn weights, and forget the kernels whose weight is 0."""
        places = self.kernels.take(best)
        self.G, self.b = self.kernels.inner()
        self.weights = np.r_[self.weights, np.zeros(self.b.size - self.weights.size)]
        self.step(places)
        if self.kernels.forgets and np.any(self.weights == 0.0) and np.any(self.weights):
            kept = np.flatnonzero(self.weights)
            self.kernels.keep(kept)
            self.weights, self.b, self.G = self.weights[kept], self.b[kept], self.G[np.ix_(kept, kept)]
        self._measure()

    def _correct(self, places: list[int]) -> None:
        usable = np.flatnonzero(np.diag(self.G) > 0)
        if usable.size == 0:
            return
        self.weights[usable] = nonnegative(self.G[np.ix_(usable, usable)], self.b[usable])

    def _add(self, places: list[int]) -> None:
        """Add the kernel with the best weight, at which the derivative of the alignment vanishes."""
        k = places[0]
        along = self.G @ self.weights
        a, b, c, d, e = float(self.b @ self.weights), self.b[k], float(self.weights @ along), along[k], self.G[k, k]
        slope, bend = b * c - a * d, b * d - a * e
        if e == 0.0 or (c > 0.0 and slope <= 0.0):
            return
        eta = slope / -bend if bend < 0.0 and c > 0.0 else np.inf
        if c > 0.0 and np.isfinite(self.largest):
            eta = min(eta, self.largest * np.sqrt(c / e))
        if np.isinf(eta):
            self.weights[:] = 0.0  # the new kernel is better alone
            self.weights[k] = 1.0
        else:
            self.weights[k] += eta

    def _move(self, places: list[int]) -> None:
        """Move toward the corner of kernel k or toward 0, whichever is better, as far as the distance falls."""
        k = places[0]
        along = self.b - self.G @ self.weights
        if self.G[k, k] > 0.0:
            self.corner = max(self.corner, 2.0 * self.b[k] / self.G[k, k])
        while self.weights.sum() > 0.5 * self.corner:
            self.corner *= 2.0
        direction = -self.weights
        if along[k] > 0.0:
            direction[k] += self.corner
        slope, bend = float(along @ direction), float(direction @ self.G @ direction)
        if slope > 0.0 and bend > 0.0:
            self.weights = np.maximum(self.weights + min(1.0, slope / bend) * direction, 0.0)

    def _measure(self) -> None:
        """Bring the combination to its best length, and compute it and its alignment."""
        square = float(self.weights @ self.G @ self.weights)
        if square > 0.0:
            self.weights = self.weights * (float(self.b @ self.weights) / square)
            self.alignment = aligned(self.weights, self.G, self.b, self.target)
            self.M = centered(self.kernels.combine(self.weights), self.target.weight)

    def _report(self) -> None:
        seconds, n_active = time.perf_counter() - self._started, int(np.count_nonzero(self.weights))
        bank, weights = self.kernels.final(self.weights)
        n_iter = len(self.trace) + 1
        self.reached = Aligned(bank, weights / weights.sum(), self.alignment, self.bound, self.exact, n_iter=n_iter)
        self.trace.append(Step(n_iter, seconds, 1.0 - self.alignment, self.reached.gap, n_active, self.tol))
        emit(self.trace[-1])

    def _nothing(self, best: list) -> Aligned:
        """Return some kernel where none is aligned with the target."""
        bank, weights = self.kernels.any(best)
        reached = combined_alignment(bank, weights, self.target)
        return Aligned(bank, weights, reached, max(reached, 0.0), self.exact)
