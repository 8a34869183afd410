"""What a fitted model has learned: views, kernels, features, how stable they are, and which kernels are twins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from manykernels.kernels.family import Family
from manykernels.reports.division import Division, divide, matrices
from manykernels.reports.forms import form_of

TWINS_ABOVE = 0.99
_TWIN_KERNELS, _TWIN_ROWS = 200, 300
_MANY_FORMS = 12
TOO_NARROW = "too narrow to generalize"


@dataclass(frozen=True)
class LearnedPart:
    """A part of the weight: of a view, of a form of kernel, or of a feature.

    Attributes
    ----------
    name : str
    share : float
    refits : ndarray of shape (n_folds,)
        Its share in each refit.
    """

    name: str
    share: float
    refits: np.ndarray


@dataclass(frozen=True)
class Optimum:
    """How close to the optimum the fit is.

    Attributes
    ----------
    primal, dual, gap, tol : float
        NaN where a value does not exist.
    converged, exact : bool
    n_iter : int
    alignment, bound, held_out : float
        For two-stage models; NaN for others.
    """

    primal: float
    dual: float
    gap: float
    tol: float
    converged: bool
    exact: bool
    n_iter: int
    alignment: float
    bound: float
    held_out: float


@dataclass(frozen=True)
class LearnedSummary:
    """What was learned.

    Attributes
    ----------
    names : sequence of str, length n_kernels
    views : sequence of str, length n_kernels
    weights, shares : ndarrays of shape (n_kernels,)
        The mean of the weight vectors, if there is one for each class.
    refits : ndarray of shape (n_folds, n_kernels)
        Shares of the same kernels in the refits.
    narrow : bool array of shape (n_kernels,)
        Which kernels are so narrow that each row is alike only to itself.
    by_view, by_form, by_feature : tuples of LearnedPart
        In descending order; kernels that are too narrow count for no view and no feature.
    too_narrow : LearnedPart
        The share of the kernels that are too narrow.
    twins : tuple of tuples of int
        Places of kernels that are nearly the same.
    twins_note : str
        What was compared, or why nothing could be.
    certificate : Optimum
    n_vectors : int
        1, or one for each class.
    is_family : bool
        Whether the kernels were selected from a family; with other rows the selection would be another one.
    """

    names: Sequence[str]
    views: Sequence[str]
    weights: np.ndarray
    shares: np.ndarray
    refits: np.ndarray
    narrow: np.ndarray
    by_view: tuple[LearnedPart, ...]
    by_form: tuple[LearnedPart, ...]
    by_feature: tuple[LearnedPart, ...]
    too_narrow: LearnedPart
    twins: tuple[tuple[int, ...], ...]
    twins_note: str
    certificate: Optimum
    n_vectors: int
    is_family: bool

    @property
    def n_active(self) -> int:
        """Kernels with a positive weight."""
        return int(np.count_nonzero(self.shares > 0))

    @property
    def used(self) -> np.ndarray:
        """Number of refits in which each kernel had a positive weight."""
        return np.count_nonzero(self.refits > 0, axis=0)

    @property
    def order(self) -> np.ndarray:
        """Places of all kernels, the largest weight first."""
        return np.argsort(-self.shares, kind="stable")

    def carrying(self, share: float) -> int:
        """Return the number of kernels that carry this share of the weight."""
        # A little less, so that shares that sum to 1 up to rounding count as the whole.
        return int(np.searchsorted(np.cumsum(self.shares[self.order]), share - 1e-9)) + 1


def describe(
    estimator: Any, X: Any, refits: Sequence[Division] = (), feature_names: Sequence[str] | None = None, seed: int = 0
) -> LearnedSummary:
    """Gather what a fitted estimator has learned.

    Parameters
    ----------
    estimator : fitted estimator with kernels
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        Its kernels are compared with one another on a few of these rows.
    refits : sequence of Division
    feature_names : sequence of str, optional
        Default: those of the estimator. Features of the same name are taken together.
    seed : int, default 0
        Chooses the rows.

    Returns
    -------
    LearnedSummary

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.kernels import Gaussian
    >>> from manykernels.reports.summary import describe
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> kernels = [Gaussian(1.0), Gaussian(1.001), Gaussian(0.1, columns=[0])]
    >>> learned = describe(MKLClassifier(kernels, norm=2).fit(X, y), X)
    >>> learned.twins, learned.by_view[0].name
    (((0, 1),), 'all features')
    """
    division = divide(estimator, X, seed)
    names, shares = division.names, division.shares
    is_family = isinstance(estimator.kernels, Family)
    matched = _matched(names, refits, is_family)
    twins, note = _twins(estimator, X, shares, seed)
    return LearnedSummary(
        names=names,
        views=estimator.kernel_groups_,
        weights=np.atleast_2d(estimator.weights_).mean(axis=0),
        shares=shares,
        refits=matched,
        narrow=division.narrow,
        by_view=_parts(division.views, [refit.views for refit in refits]),
        by_form=_forms(division, refits),
        by_feature=_features(division, refits, _feature_names(estimator, feature_names)),
        too_narrow=LearnedPart(TOO_NARROW, division.narrow_share, np.array([refit.narrow_share for refit in refits])),
        twins=twins,
        twins_note=note,
        certificate=_certificate(estimator),
        n_vectors=np.atleast_2d(estimator.weights_).shape[0],
        is_family=is_family,
    )


def _matched(names: Sequence[str], refits: Sequence[Division], by_name: bool) -> np.ndarray:
    """Return the shares of the model's kernels in each refit: by place in a list, by name in a family."""
    out = np.zeros((len(refits), len(names)))
    for row, refit in zip(out, refits, strict=True):
        if not by_name and refit.shares.size == row.size:
            row[:] = refit.shares
        else:
            known = dict(zip(refit.names, refit.shares.tolist(), strict=True))
            row[:] = [known.get(name, 0.0) for name in names]
    return out


def _parts(shares: dict[str, float], others: Sequence[dict[str, float]]) -> tuple[LearnedPart, ...]:
    """Return the parts of the weight with their shares in the refits, in descending order."""
    parts = [
        LearnedPart(name, share, np.array([other.get(name, 0.0) for other in others])) for name, share in shares.items()
    ]
    return tuple(sorted(parts, key=lambda part: -part.share))


def _forms(division: Division, refits: Sequence[Division]) -> tuple[LearnedPart, ...]:
    """Return the parts of the kernels' forms, such as Gaussian(width=2), whatever view they are on.

    Where there are many, widths from each power of 2 to the next are gathered: which of thousands is used is chance.
    """
    gather = len(_by_form(division, gather=False)) > _MANY_FORMS
    return _parts(_by_form(division, gather), [_by_form(refit, gather) for refit in refits])


def _by_form(division: Division, gather: bool) -> dict[str, float]:
    places = np.flatnonzero(division.shares)
    forms = [form_of(division.names[int(k)], gather) for k in places]
    return _summed(forms, division.shares[places])


def _summed(names: Sequence[str], values: np.ndarray) -> dict[str, float]:
    """Return the sum of the values of each name."""
    out = dict.fromkeys(names, 0.0)
    for name, value in zip(names, values.tolist(), strict=True):
        out[name] += value
    return out


def _features(division: Division, refits: Sequence[Division], names: Sequence[str]) -> tuple[LearnedPart, ...]:
    others = [refit.importances for refit in refits if refit.importances.size == len(names)]
    return _parts(_summed(names, division.importances), [_summed(names, other) for other in others])


def _feature_names(estimator: Any, names: Sequence[str] | None) -> list[str]:
    if names is None:
        names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(len(estimator.feature_importances_))] if names is None else [str(n) for n in names]


def _certificate(estimator: Any) -> Optimum:
    def number(name: str) -> float:
        return float(getattr(estimator, name, math.nan))

    return Optimum(
        primal=number("objective_"),
        dual=number("dual_objective_"),
        gap=number("gap_"),
        tol=number("tol"),
        converged=bool(getattr(estimator, "converged_", number("gap_") <= number("tol"))),
        exact=bool(getattr(estimator, "gap_is_exact_", True)),
        n_iter=int(getattr(estimator, "n_iter_", 0)),
        alignment=number("alignment_"),
        bound=number("alignment_bound_"),
        held_out=number("held_out_alignment_"),
    )


def _twins(estimator: Any, X: Any, shares: np.ndarray, seed: int) -> tuple[tuple[tuple[int, ...], ...], str]:
    """Return sets of kernels whose matrices are nearly proportional once they are centered, and what was compared."""
    n_active = int(np.count_nonzero(shares))
    if n_active < 2:
        return (), "One kernel has all the weight: there is nothing to compare."
    try:
        places, stack = matrices(estimator, X, shares, _TWIN_KERNELS, _TWIN_ROWS, seed)
    except ValueError as error:
        return (), f"The kernels were not compared with one another: {error}"
    close = _alignments_of(stack) > TWINS_ABOVE
    labels = connected_components(close, directed=False)[1]
    components = [places[labels == label] for label in range(labels.max() + 1)]
    twins = tuple(tuple(int(k) for k in component) for component in components if component.size > 1)
    which = "all kernels with a positive weight" if places.size == n_active else "the largest kernels"
    return twins, f"Compared were {which} ({places.size}) on {stack.shape[1]} rows, by centered alignment."


def _alignments_of(stack: np.ndarray) -> np.ndarray:
    """Return the centered alignment of all pairs of matrices, shape (n_kernels, n_kernels)."""
    means = stack.mean(axis=2)
    flat = (stack - means[:, :, None] - means[:, None, :] + means.mean(axis=1)[:, None, None]).reshape(len(stack), -1)
    norms = np.linalg.norm(flat, axis=1)
    # A kernel that is constant on these rows is not like any other.
    flat /= np.where(norms > 1e-10 * np.abs(stack).max(axis=(1, 2)) * stack.shape[1], norms, np.inf)[:, None]
    return flat @ flat.T
