"""What banks share whose combined kernel is a matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from manykernels.banks.argument_checks import checked_weights
from manykernels.banks.learned import Kept, LearnedKernel, Terms
from manykernels.banks.placement import Placement
from manykernels.compute.combined import CombinedMatrix, Rounded
from manykernels.core.results import Iterate
from manykernels.kernels.shared_distances import BoundKernel

# Samples of a problem that is solved in memory for a first guess of the weights, at most.
MOST_COARSE = 3000


def coarse_samples(n_samples: int) -> int:
    """Return how many samples a problem may have that is solved for a first guess of the weights.

    Examples
    --------
    >>> from manykernels.banks.combining import coarse_samples
    >>> coarse_samples(1000), coarse_samples(10**6)
    (250, 3000)
    """
    return min(n_samples // 4, MOST_COARSE)


def put_together(
    size: int, pieces: Iterable[tuple[np.ndarray, np.ndarray]], lead: tuple[int, ...] = (), trail: tuple[int, ...] = ()
) -> np.ndarray:
    """Return the values of all kernels, of which several banks have some each.

    Parameters
    ----------
    size : int
        The number of kernels.
    pieces : iterable of (places, values)
        Places of kernels in the result, and their values, of shape lead + (len(places),) + trail.
    lead, trail : tuples of int

    Returns
    -------
    ndarray of shape lead + (size,) + trail

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks.combining import put_together
    >>> put_together(3, [(np.array([2, 0]), np.array([5.0, 6.0])), (np.array([1]), np.array([7.0]))])
    array([6., 7., 5.])
    """
    out = np.empty((*lead, size, *trail))
    by_kernel = np.moveaxis(out, len(lead), 0)
    for places, values in pieces:
        by_kernel[places] = np.moveaxis(values, len(lead), 0)
    return out


class GuessesFromTail:
    """What banks share whose first guess is learned from their last samples."""

    def coarse(self: Any, size: int, y: np.ndarray, C: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return the kernels on so many samples for a first guess of the weights, with their targets and costs."""
        return self.tail(size), y[:, -size:], C[:, -size:]


class CombinesToMatrix(GuessesFromTail, ABC):
    """A bank whose kernels are added up in one matrix, which is written again for other weights."""

    X: Any
    sample_weight: np.ndarray
    n_kernels: int
    n_samples: int
    unit_roundoff: float
    is_cosine: bool
    is_centered: bool
    # How many samples a problem may have that is solved for a first guess: None where the matrix itself is there.
    coarse_size: int | None = None

    # Where features are more than samples, matrices of those may do.
    has_few_samples: bool = False
    # Several problems may use the bank at once.
    concurrent: bool = True
    # "cpu", or the device that holds kernels.
    held_on: str = "cpu"
    # Bytes that a solver may take in addition to the bank, and where the kernels are held and why: `bind` says so.
    spare: int | None = None
    placement: Placement | None = None

    @property
    def attributes(self) -> dict[str, Any]:
        """What a fitted estimator says of this bank in addition to what it says of all."""
        return {}

    def spare_beside_tail(self, size: int) -> int | None:
        """Return the bytes that a solver may take besides the bank and ``tail(size)``, which shares what is held."""
        return self.spare

    @property
    def centering_errors(self) -> np.ndarray | None:
        """The size of the error that centering leaves in each kernel's values; None where they are not centered."""
        return None

    @abstractmethod
    def fill(self, weights: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the combined kernel of the weights, of any sign, to ``out``, and return that."""

    def workspace(self) -> CombinedMatrix:
        """Return what :meth:`combine` writes to."""
        return CombinedMatrix.empty(self.n_samples, self.unit_roundoff)

    def combine(self, weights: np.ndarray, out: CombinedMatrix | None = None) -> CombinedMatrix:
        """Return the combined kernel of non-negative weights; ``out`` is a workspace to use again."""
        K = self.workspace() if out is None else out
        weights = checked_weights(weights, self.n_kernels)
        self.fill(weights, K.array)
        K.lost = self.lost_by_centering(weights)
        return K

    def quad_forms(self, beta: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray:
        """Return beta' K_k beta of the kernels of the subset; a bank of one kernel with parameters has none."""
        raise NotImplementedError

    def derivative_forms(self, weights: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Return beta' (dK/dd_k) beta: of a sum the quadratic forms, whatever the weights."""
        return self.quad_forms(beta)

    @abstractmethod
    def terms(self, weights: np.ndarray) -> Terms:
        """Return the combined kernel as a sum of kernels, for any two samples."""

    def kernel(self, weights: np.ndarray, keep: np.ndarray | None = None) -> LearnedKernel:
        """Return the combined kernel as a function of new data.

        Parameters
        ----------
        weights : ndarray of shape (n_kernels,)
        keep : ndarray of int, optional
            The training samples that predictions need; all are kept when the kernels are centered.
        """
        terms = self.terms(weights)
        centered = terms.means is not None
        rows = np.arange(self.n_samples) if keep is None or centered else keep
        return LearnedKernel(
            bound=tuple(terms.bound),
            coefficients=terms.coefficients,
            cosine=self.is_cosine,
            X=self.X[rows],
            means=terms.means,
            totals=terms.totals,
            share=self.sample_weight / self.sample_weight.sum() if centered else None,
        )

    def learned(self, weights: np.ndarray, machine: Iterate) -> Kept:
        """Return what predictions need: the support vectors; all samples where the kernels are centered."""
        keep = np.flatnonzero(np.any(machine.beta != 0, axis=0))
        if self.is_centered or keep.size == 0:
            keep = np.arange(self.n_samples)
        return Kept(self.kernel(weights, keep), machine.beta[:, keep], machine.intercept, keep)

    def untrusted(self, weights: np.ndarray) -> list[BoundKernel]:
        """Return the kernels with a positive weight that may not be positive semidefinite."""
        return [entry for entry in self.terms(weights).bound if not entry.kernel.trusted]

    def lost_by_centering(self, weights: np.ndarray) -> float:
        """Return the size of the error that centering leaves in the values of the combined kernel."""
        errors = self.centering_errors
        return 0.0 if errors is None else float(weights @ errors)


class CombinesByWeights:
    """What banks share whose combined kernel is a :class:`WeighedKernel`: it is told the weights."""

    def combine(self: Any, weights: np.ndarray, out: Any = None) -> Any:
        """Return the combined kernel of non-negative weights; ``out`` is a workspace to use again."""
        K = self.workspace() if out is None else out
        weights = checked_weights(weights, self.n_kernels)
        K.weigh(weights)
        K.lost = self.lost_by_centering(weights)
        return K


class WeighedKernel(Rounded):
    """What combined kernels share that are not a matrix in memory: they take other weights again and again.

    ``_renew`` does what is to be done with other weights.
    """

    def __init__(self, bank: Any) -> None:
        self._bank, self.n_samples, self.unit_roundoff = bank, bank.n_samples, bank.unit_roundoff
        self._weights = np.zeros(bank.n_kernels)
        self._diagonal: np.ndarray | None = np.zeros(self.n_samples)

    def weigh(self, weights: np.ndarray) -> None:
        """Take other weights; what was computed with the last ones is forgotten."""
        if not np.array_equal(weights, self._weights):
            self._weights[:], self._diagonal = weights, None
            self._renew()

    def _renew(self) -> None:
        """Do what is to be done with other weights: here nothing."""

    def diagonal(self) -> np.ndarray:
        """Return the diagonal; every solve asks for it, and it is computed once."""
        if self._diagonal is None:
            self._diagonal = self._computed_diagonal()
        return self._diagonal

    def _computed_diagonal(self) -> np.ndarray:
        active = np.flatnonzero(self._weights)
        return self._weights[active] @ self._bank.diagonal(active)
