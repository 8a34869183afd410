"""How the weight of a fitted model is divided over kernels, views and features, and which kernels are too narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

# The largest kernels are looked at, on a few rows, which are enough to see how narrow one is.
_KERNELS, _ROWS = 2000, 60
# A kernel is too narrow if its mean value for two different rows is below this share of that for a row and itself.
_NARROW_BELOW = 1e-3


@dataclass(frozen=True)
class Division:
    """What a fit learned, as shares of the whole weight.

    A kernel so narrow that each row is alike only to itself is a multiple of the identity matrix: it makes the fit
    smoother, as a ridge does, and says nothing about new rows. Its share is not credited to any view or feature.

    Attributes
    ----------
    names : sequence of str, one for each kernel
    shares : ndarray of shape (n_kernels,)
    narrow : bool array of shape (n_kernels,)
        Which kernels with a positive weight are too narrow.
    views : dict from the name of a view to its share
    importances : ndarray of shape (n_features,)
    """

    names: Sequence[str]
    shares: np.ndarray
    narrow: np.ndarray
    views: dict[str, float]
    importances: np.ndarray

    @property
    def narrow_share(self) -> float:
        """The share of the weight that belongs to kernels that are too narrow."""
        return float(self.shares[self.narrow].sum())


def divide(estimator: Any, X: Any, seed: int = 0) -> Division:
    """Divide the weight of a fitted estimator.

    Parameters
    ----------
    estimator : fitted estimator with kernels
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        A few of its rows show how narrow the kernels are.
    seed : int, default 0
        Chooses the rows.

    Returns
    -------
    Division

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.kernels import Gaussian
    >>> from manykernels.reports.division import divide
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> division = divide(MKLClassifier([Gaussian(1.0), Gaussian(1e-3)], norm=2).fit(X, y), X)
    >>> division.narrow, round(division.views["all features"] + division.narrow_share, 6)
    (array([False,  True]), 1.0)
    """
    shares = shares_of(estimator.weights_)
    narrow = _narrow(estimator, X, shares, seed)
    views = dict(zip(estimator.group_names_, shares_of(estimator.group_weights_).tolist(), strict=True))
    importances = np.array(estimator.feature_importances_)
    places = np.flatnonzero(narrow).tolist()
    for k, columns in zip(places, estimator.kernel_columns(places) if places else (), strict=True):
        view = estimator.kernel_groups_[k]
        views[view] = max(views[view] - float(shares[k]), 0.0)
        importances[columns] -= shares[k] / columns.size
    # Tiny remainders are rounding.
    return Division(estimator.kernel_names_, shares, narrow, views, np.where(importances > 1e-12, importances, 0.0))


def shares_of(weights: np.ndarray) -> np.ndarray:
    """Return each weight as a share of their sum; the mean share for several weight vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.reports.division import shares_of
    >>> shares_of(np.array([[1.0, 3.0], [2.0, 2.0]]))
    array([0.375, 0.625])
    """
    rows = np.atleast_2d(weights)
    totals = rows.sum(axis=1, keepdims=True)
    return np.divide(rows, totals, out=np.zeros_like(rows), where=totals > 0).mean(axis=0)


def matrices(estimator: Any, X: Any, shares: np.ndarray, n_kernels: int, n_rows: int, seed: int) -> Any:
    """Return the places of the largest kernels, and their matrices on some rows.

    Returns
    -------
    places : int array of shape (n_places,)
        At most ``n_kernels``, the largest first.
    stack : ndarray of shape (n_places, n, n)
        On at most ``n_rows`` rows; a model that does not hold its kernels one by one raises ValueError.
    """
    places = np.argsort(-shares, kind="stable")[: min(int(np.count_nonzero(shares)), n_kernels)]
    rows = np.sort(np.random.default_rng(seed).permutation(X.shape[0])[:n_rows])
    return places, estimator.kernel_matrices(_safe_indexing(X, rows), places)


def _narrow(estimator: Any, X: Any, shares: np.ndarray, seed: int) -> np.ndarray:
    out = np.zeros(shares.size, dtype=bool)
    if not hasattr(estimator, "kernel_matrices") or not np.any(shares):
        return out
    try:
        places, stack = matrices(estimator, X, shares, _KERNELS, _ROWS, seed)
    except ValueError:  # the model has no single kernels to look at
        return out
    diagonal, n = np.abs(np.trace(stack, axis1=1, axis2=2)), stack.shape[1]
    others = np.abs(stack).sum(axis=(1, 2)) - diagonal
    out[places] = (others < _NARROW_BELOW * (n - 1) * diagonal) & (diagonal > 0)
    return out
