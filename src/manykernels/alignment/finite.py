"""Weights for a list of kernels by their alignment with a target.

Maximal alignment over non-negative weights,

    maximize over d >= 0   <sum_k d_k K_k, T> / ||sum_k d_k K_k||        (all centered)

does not depend on the length of d. Along a direction d the distance ||t d'K - T||^2 is smallest at t = b'd / d'G d,
where it is ||T||^2 (1 - A^2). So the direction of the best alignment is that of the smallest distance,

    minimize over d >= 0   1/2 d' G d - b' d,     G_kl = <K_k, K_l>,  b_k = <K_k, T>

a non-negative least-squares problem; C d'Gd instead of 1/2 d'Gd only changes the length.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import nnls

from manykernels.alignment.measures import (
    Target,
    alignments,
    centered_alignment,
    centered_norms,
    rounding_level,
)
from manykernels.compute.combined import as_matrix
from manykernels.compute.threads import one_blas_thread
from manykernels.core.protocols import Bank
from manykernels.core.results import Step
from manykernels.kernels.centered import inner_matrix

# With more kernels than this, only the inner products that are needed are computed.
MOST_LISTED = 512

# The message where products of two kernels leave the range of doubles, although each kernel's square does not.
_TOO_LARGE = (
    "The kernels are too far apart in size to be aligned: their inner products cannot be represented; scale the "
    "features or normalize the kernels."
)


@dataclass(frozen=True)
class Aligned:
    """A kernel that was learned by alignment.

    Attributes
    ----------
    bank : bank
        The kernels: the list, or those of a family that were selected.
    weights : ndarray of shape (n_kernels,)
        Of sum 1.
    alignment : float
        Of the combined kernel, centered, on the training data.
    bound : float
        The alignment that no weights exceed; for a family, no weights of up to ten times the total. NaN where it was
        not asked for.
    exact : bool
        Whether the bound is proved, which it is if the search for the best kernel is exact.
    converged : bool
        Whether ``gap`` fell to the tolerance.
    n_iter : int
    interrupted : bool
    trace : list of Step
        The objective is 1 - alignment, the gap is bound - alignment.
    """

    bank: Bank
    weights: np.ndarray
    alignment: float
    bound: float = np.nan
    exact: bool = True
    converged: bool = True
    n_iter: int = 1
    interrupted: bool = False
    trace: list[Step] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """How far the alignment may be below the best one."""
        return self.bound - self.alignment


@one_blas_thread()
def uniform(bank: Bank, target: Target) -> Aligned:
    """Give the same weight to all kernels that are not constant.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.alignment import Target
    >>> from manykernels.alignment.finite import uniform
    >>> from manykernels.kernels import KernelBank, Linear
    >>> bank = bind(KernelBank([Linear(columns=[j]) for j in range(2)]), np.array([[1.0, 2.0], [1.5, 2.0]]))
    >>> uniform(bank, Target.of_values([0.0, 1.0])).weights
    array([1., 0.])
    """
    norms = centered_norms(bank, target.weight)
    return _not_optimized(bank, target, (norms > 0).astype(float))


@one_blas_thread()
def independent(bank: Bank, target: Target) -> Aligned:
    """Weight each kernel by its own alignment, whatever the others are.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.alignment import Target
    >>> from manykernels.alignment.finite import independent
    >>> from manykernels.kernels import KernelBank, Linear
    >>> X = np.array([[1.0, 0.1], [1.2, -0.1], [-1.0, 0.1], [-1.2, -0.1]])
    >>> bank = bind(KernelBank([Linear(columns=[j]) for j in range(2)]), X)
    >>> independent(bank, Target.of_classes([1, 1, -1, -1])).weights.round(2)
    array([1., 0.])
    """
    return _not_optimized(bank, target, np.maximum(alignments(bank, target), 0.0))


@one_blas_thread()
def quadratic(bank: Bank, target: Target) -> Aligned:
    """Return the weights of the best alignment, from the matrix of all inner products.

    Parameters
    ----------
    bank : bank
        With m kernels; m x m numbers are held.
    target : Target

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import Placement, bind
    >>> from manykernels.alignment import Target
    >>> from manykernels.alignment.finite import quadratic
    >>> from manykernels.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> kernels = [Gaussian(1.0, columns=[j]) for j in range(2)]
    >>> bank = bind(kernels, X, placement=Placement(precision="double"))
    >>> result = quadratic(bank, Target.of_values(X[:, 0]))
    >>> result.weights.round(2), bool(result.bound - result.alignment < 1e-9)
    (array([0.97, 0.03]), True)
    """
    target.check_size(bank.n_samples)
    G, b = inner_matrix(bank, target.weight), target.inner_products(bank)
    norms = np.sqrt(np.diag(G))
    used = np.flatnonzero(norms > rounding_level(bank, target.weight))
    weights = np.zeros(bank.n_kernels)
    if not np.any(b[used] > 0):
        return replace(_not_optimized(bank, target, weights), bound=0.0)
    weights[used] = nonnegative(G[np.ix_(used, used)], b[used])
    reached = aligned(weights, G, b, target)
    violation = float(np.max((b - G @ weights)[used] / norms[used]))
    bound = upper_bound(reached, violation, np.sqrt(used.size) * target.norm, target)
    return Aligned(bank, weights / weights.sum(), reached, bound)


def nonnegative(G: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Minimize 1/2 d' G d - b' d over d >= 0, for a positive semidefinite G of shape (m, m) with a positive diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.alignment.finite import nonnegative
    >>> nonnegative(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([2.0, -1.0]))
    array([1., 0.])
    """
    scale = 1.0 / np.sqrt(np.diag(G))
    cosines = G * np.outer(scale, scale)
    if not np.all(np.isfinite(cosines)):
        raise ValueError(_TOO_LARGE)
    values, vectors = np.linalg.eigh(cosines)
    kept = values > 1e-14 * values[-1]
    # G = A'A, and b lies in the range of A' up to rounding, so that this is min ||A d - c||^2.
    A = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    c = (vectors[:, kept].T @ (scale * b)) / np.sqrt(values[kept])
    return scale * nnls(A, c, maxiter=30 * b.size)[0]


def aligned(weights: np.ndarray, G: np.ndarray, b: np.ndarray, target: Target) -> float:
    """Return the alignment of a combination from inner products."""
    square = float(weights @ G @ weights)
    return float(b @ weights) / (np.sqrt(square) * target.norm) if square > 0 else 0.0


def upper_bound(reached: float, violation: float, radius: float, target: Target) -> float:
    """Return an upper bound of the alignment of all combinations with a total weight of up to ``radius``.

    ``violation`` is the largest <K_k, T - K> over the kernels. At its best length the distance of the combination is
    ||T||^2 (1 - A^2), and by convexity no other is closer by more than 2 radius violation. For kernels of norm 1, the
    best combination has a total of at most sqrt(m) ||T||, since inner products of centered kernels are not negative.
    """
    return min(1.0, float(np.sqrt(reached**2 + 2.0 * radius * max(violation, 0.0) / target.norm**2)))


def _not_optimized(bank: Bank, target: Target, weights: np.ndarray) -> Aligned:
    """Return the result for weights that were not optimized; equal weights if all of these are 0."""
    total = float(weights.sum())
    weights = weights / total if total > 0 else alike(bank)
    return Aligned(bank, weights, combined_alignment(bank, weights, target))


def alike(bank: Bank) -> np.ndarray:
    """Return equal weights of sum 1 for all kernels that are not zero on the training data."""
    present = (bank.scale != 0.0).astype(float)
    return present / present.sum() if np.any(present) else np.full(bank.n_kernels, 1.0 / bank.n_kernels)


def combined_alignment(bank: Bank, weights: np.ndarray, target: Target) -> float:
    """Return the alignment of a combined kernel."""
    return centered_alignment(as_matrix(bank.combine(weights)), target)
