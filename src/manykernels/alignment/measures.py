"""How well a kernel fits a target: alignment, centered alignment, and the feature-space measure.

With sample weights w, <K, L>_w = sum_ij w_i w_j K_ij L_ij, and a kernel is centered by H = I - 1 w' / sum(w):

    A(K, L) = <K_c, L_c>_w / (||K_c||_w ||L_c||_w),     K_c = H K H'

A weight of 2 counts like two copies of a sample. Centering one of the two matrices is enough: with M_ij = w_i w_j
(K_c)_ij, whose rows sum to 0, <K_c, L_c>_w = <M, L>. So the kernels of a bank are centered in blocks at most, and the
centered ones are never held.

The target is T = sum_t f_t f_t' with vectors f_t of weighted mean 0: the one-hot coded classes, or the values of a
regression. Then <K_c, T>_w = sum_t (w f_t)' K (w f_t), a quadratic form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from manykernels.compute.pairwise import power_of_two
from manykernels.compute.threads import one_blas_thread
from manykernels.core.protocols import Bank
from manykernels.kernels.centered import centered

_SMALL, _LARGE = 1e-50, 1e50


@dataclass(frozen=True)
class Target:
    """The target with which a kernel is to be aligned.

    Attributes
    ----------
    values : ndarray of shape (n_columns, n_samples)
        Of weighted mean 0; huge and tiny values are in another unit.
    weight : ndarray of shape (n_samples,)

    Examples
    --------
    >>> from manykernels.alignment import Target
    >>> Target.of_classes(["a", "b", "b"]).values.round(2)
    array([[ 0.67, -0.33, -0.33],
           [-0.67,  0.33,  0.33]])
    >>> Target.of_values([1.0, 2.0, 6.0]).values
    array([[-2., -1.,  3.]])
    """

    values: np.ndarray
    weight: np.ndarray

    @classmethod
    def of_classes(cls, y: Any, sample_weight: Any = None) -> Target:
        """Return the target of a classification: one column per class."""
        y = np.asarray(y)
        return cls._centered((y[None, :] == np.unique(y)[:, None]).astype(float), sample_weight)

    @classmethod
    def of_values(cls, y: Any, sample_weight: Any = None) -> Target:
        """Return the target of a regression, y of shape (n,) or (n, n_outputs)."""
        y = np.asarray(y, dtype=float)
        return cls._centered(y[None, :] if y.ndim == 1 else y.T, sample_weight)

    @classmethod
    def _centered(cls, values: np.ndarray, sample_weight: Any) -> Target:
        weight = checked_weight(sample_weight, values.shape[1])
        # The alignment does not depend on the unit, but fourth powers of the values must not leave the range.
        size = float(np.abs(values).max(initial=0.0))
        values = values / power_of_two(size) if not _SMALL < size < _LARGE else values
        centered = values - np.average(values, axis=1, weights=weight)[:, None]
        # What centering leaves of a constant target is rounding.
        constant = np.abs(centered).max(axis=1) <= 1e-14 * np.abs(values).max(axis=1)
        centered[constant] = 0.0
        return cls(centered, weight)

    @property
    def pull(self) -> np.ndarray:
        """The values times the weights, shape (n_columns, n_samples)."""
        return self.values * self.weight

    @property
    def norm(self) -> float:
        """||T||_w."""
        return float(np.linalg.norm(self.values @ self.pull.T))

    def check_size(self, n_samples: int) -> None:
        """Raise if the target is not for this number of samples."""
        if self.weight.size != n_samples:
            raise ValueError(f"The kernels are for {n_samples} samples, but target is for {self.weight.size}.")

    def matrix(self) -> np.ndarray:
        """Return M with <M, K> = <K_c, T>_w, shape (n, n)."""
        return self.pull.T @ self.pull

    def inner_products(self, bank: Bank) -> np.ndarray:
        """Return <K_c, T>_w of all kernels of a bank, shape (n_kernels,)."""
        self.check_size(bank.n_samples)
        return bank.quad_forms(self.pull).sum(axis=0)


@one_blas_thread()
def alignment(K: np.ndarray, L: np.ndarray) -> float:
    """Return the alignment of two kernel matrices, not centered.

    Parameters
    ----------
    K, L : ndarrays of shape (n, n)

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.alignment import alignment
    >>> y = np.array([1.0, 1.0, -1.0])
    >>> alignment(np.outer(y, y), np.outer(y, y)), round(alignment(np.eye(3), np.outer(y, y)), 3)
    (1.0, 0.577)
    """
    K, L = _checked(K, "K"), _checked(L, "L")
    if K.shape != L.shape:
        raise ValueError(f"K and L must have the same shape, got {K.shape} and {L.shape}.")
    return _ratio(float(np.vdot(K, L)), float(np.linalg.norm(K)), float(np.linalg.norm(L)))


@one_blas_thread()
def centered_alignment(K: np.ndarray, target: Any, sample_weight: Any = None) -> float:
    """Return the centered alignment of a kernel matrix with another one or with a target.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    target : Target or ndarray of shape (n, n)
    sample_weight : array of shape (n,), optional
        With two matrices; a target brings its own.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.alignment import Target, centered_alignment
    >>> y = np.array([1.0, 1.0, -1.0])
    >>> round(centered_alignment(np.outer(y, y) + 5.0, Target.of_classes(y)), 6)
    1.0
    """
    K = _checked(K, "K")
    n_target = target.weight.size if isinstance(target, Target) else _checked(target, "target").shape[0]
    if n_target != K.shape[0]:
        raise ValueError(f"K is for {K.shape[0]} samples, but target is for {n_target}.")
    if isinstance(target, Target):
        M = centered(K, target.weight)
        return _ratio(float(np.sum(target.values * (target.values @ M))), _norm(M, K), target.norm)
    weight = checked_weight(sample_weight, K.shape[0])
    M, L = centered(K, weight), np.asarray(target, dtype=float)
    return _ratio(float(np.vdot(M, L)), _norm(M, K), _norm(centered(L, weight), L))


@one_blas_thread()
def alignments(bank: Bank, target: Target) -> np.ndarray:
    """Return the centered alignment of each kernel of a bank, 0 for one that is constant.

    Parameters
    ----------
    bank : Bank
    target : Target

    Returns
    -------
    ndarray of shape (n_kernels,)

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.alignment import Target, alignments
    >>> from manykernels.kernels import KernelBank, Linear
    >>> X = np.array([[1.0, 0.1, 3.0], [1.2, -0.1, 3.0], [-1.0, 0.1, 3.0], [-1.2, -0.1, 3.0]])
    >>> bank = bind(KernelBank([Linear(columns=[j]) for j in range(3)]), X)
    >>> alignments(bank, Target.of_classes([1, 1, -1, -1])).round(2)
    array([0.99, 0.  , 0.  ])
    """
    target.check_size(bank.n_samples)
    norms = centered_norms(bank, target.weight) * target.norm
    return np.divide(target.inner_products(bank), norms, out=np.zeros_like(norms), where=norms > 0)


@one_blas_thread()
def feature_space_measure(K: np.ndarray, y: Any) -> float:
    """Return the spread of the classes along the line between their centers, divided by the length of that line.

    Small is good. For more than two classes it is the mean over all pairs.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    y : array of shape (n,)
        At least two samples of each class.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.alignment import feature_space_measure
    >>> x = np.array([0.0, 1.0, 4.0, 5.0])
    >>> round(feature_space_measure(np.outer(x, x), [0, 0, 1, 1]), 4)  # (0.7071 + 0.7071) / 4
    0.3536
    """
    K = _checked(K, "K")
    largest = np.abs(K.diagonal()).max()
    return float(_spreads(lambda direction: (K @ direction)[None], K.shape[0], largest, np.asarray(y))[0])


@one_blas_thread()
def feature_space_measures(bank: Bank, y: Any) -> np.ndarray:
    """Return the feature-space measure of each kernel of a bank, see :func:`feature_space_measure`.

    Parameters
    ----------
    bank : Bank
    y : array of shape (n,)

    Returns
    -------
    ndarray of shape (n_kernels,)

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.alignment import feature_space_measures
    >>> from manykernels.kernels import KernelBank, Linear
    >>> x = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 1.0], [5.0, 0.0]])
    >>> bank = bind(KernelBank([Linear(columns=[j]) for j in range(2)]), x)
    >>> feature_space_measures(bank, [0, 0, 1, 1]).round(4)
    array([0.3536,    inf])
    """
    return _spreads(bank.matvecs, bank.n_samples, bank.largest_diagonals(np.arange(bank.n_kernels)), np.asarray(y))


def _spreads(product: Callable[[np.ndarray], np.ndarray], n_samples: int, largest: Any, y: np.ndarray) -> np.ndarray:
    """Return the measure of each kernel, given their products with a vector, shape (n_kernels, n)."""
    if n_samples != y.size:
        raise ValueError(f"K is for {n_samples} samples, but y has {y.size}.")
    classes, counts = np.unique(y, return_counts=True)
    if classes.size < 2 or counts.min() < 2:
        raise ValueError(f"y must have two classes or more, of at least two samples each, got {counts.tolist()}.")
    ratios = []
    for one, other in combinations(classes, 2):
        members = [y == one, y == other]
        direction = members[0] / members[0].sum() - members[1] / members[1].sum()
        projected = product(direction)
        squared = projected @ direction
        spread = sum(projected[:, rows].std(axis=1, ddof=1) for rows in members)
        # With a constant kernel the centers differ by rounding only.
        ratios.append(np.divide(spread, squared, out=np.full(squared.shape, np.inf), where=squared > 1e-14 * largest))
    return np.mean(ratios, axis=0)


def overfits(alignment: float, held_out: float) -> bool:
    """Return whether an alignment on samples held out is far below that on the training data; False for NaN.

    Examples
    --------
    >>> from manykernels.alignment.measures import overfits
    >>> overfits(0.8, 0.3), overfits(0.8, 0.6), overfits(0.8, float("nan"))
    (True, False, False)
    """
    return alignment - held_out > max(0.1, 0.5 * alignment)


def alignment_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return the centered alignment of an estimator's learned kernel with the target on these samples.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.alignment import alignment_scorer
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = load_iris(return_X_y=True)
    >>> (cross_val_score(MKLClassifier(), X, y, scoring=alignment_scorer, cv=2) > 0.5).tolist()
    [True, True]
    """
    values = getattr(estimator, "target_", "values" if is_regressor(estimator) else "classes") == "values"
    kind = Target.of_values if values else Target.of_classes
    return centered_alignment(estimator.kernel(X), kind(y))


def feature_space_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return minus the feature-space measure of an estimator's learned kernel on these samples: larger is better.

    Examples
    --------
    >>> from manykernels import TwoStageMKLClassifier
    >>> from manykernels.alignment import feature_space_scorer
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(feature_space_scorer(TwoStageMKLClassifier(alignment="qp", random_state=0).fit(X, y), X, y) < 0)
    True
    """
    return -feature_space_measure(estimator.kernel(X), y)


def centered_norms(bank: Bank, weight: np.ndarray) -> np.ndarray:
    """Return ||K_c||_w of all kernels of a bank, 0 where that is only rounding; raise ValueError where it overflows."""
    norms = np.sqrt(np.maximum(bank.centered_squares(weight), 0.0))
    overflowing = np.flatnonzero(~np.isfinite(norms))
    if overflowing.size:
        raise ValueError(
            f"The kernel {bank.names[int(overflowing[0])]!r} is too large on this data to be aligned: the squares of "
            "its values overflow; scale the features or normalize the kernels."
        )
    # What centering leaves of a constant kernel is rounding.
    norms[norms <= rounding_level(bank, weight)] = 0.0
    return norms


def rounding_level(bank: Bank, weight: np.ndarray) -> np.ndarray:
    """Return for each kernel the norm below which a centered kernel is nothing but rounding."""
    return 1e-13 * weight.sum() * bank.largest_diagonals(np.arange(bank.n_kernels))


def _checked(K: Any, name: str) -> np.ndarray:
    K = np.asarray(K, dtype=float)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {K.shape}.")
    if not np.all(np.isfinite(K)):
        raise ValueError(f"{name} must hold finite numbers, got NaN or infinity.")
    return K


def checked_weight(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Return sample weights as an array, ones if None; raise ValueError if they are not valid."""
    if sample_weight is None:
        return np.ones(n_samples)
    weight = np.asarray(sample_weight, dtype=float)
    if weight.shape != (n_samples,):
        raise ValueError(f"sample_weight must have shape ({n_samples},), got {weight.shape}.")
    if not (np.all(weight >= 0) and 0 < weight.sum() < np.inf):
        raise ValueError("sample_weight must hold non-negative finite numbers, not all 0.")
    return weight


def _norm(M: np.ndarray, K: np.ndarray) -> float:
    """Return ||K_c||_w, given M of :func:`centered`; 0 where that is only rounding."""
    square = float(np.vdot(M, K))
    return float(np.sqrt(square)) if square > 1e-14 * float(np.abs(M).sum() * np.abs(K).max()) else 0.0


def _ratio(inner: float, one: float, other: float) -> float:
    return float(inner / (one * other)) if one > 0 and other > 0 else 0.0
