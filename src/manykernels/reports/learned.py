"""What a fitted model has learned: views, kernels, features; how stable they are; and which kernels are twins."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.utils import _safe_indexing

from manykernels.kernels.family import Family
from manykernels.kernels.texts import run_lengths
from manykernels.reports.assessment import Refit, shares_of

TWINS_ABOVE = 0.99
_TWIN_KERNELS, _TWIN_ROWS = 200, 300
_MANY_FORMS = 12


@dataclass(frozen=True)
class Part:
    """A part of the weight: of a view, of a form of kernel, or of a feature.

    Attributes
    ----------
    name : str
    share : float
    refits : ndarray of shape (n_folds,)
        Its share in each refit.
    n_kernels, n_active : int
        Kernels in it, and those with a positive weight.
    """

    name: str
    share: float
    refits: np.ndarray
    n_kernels: int = 0
    n_active: int = 0


@dataclass(frozen=True)
class Certificate:
    """How close to the optimum the fit is.

    Attributes
    ----------
    primal, dual, gap, tol : float
        NaN where there is none.
    converged, exact : bool
    n_iter : int
    alignment, bound, held_out : float
        Of two-stage models, NaN for others.
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
class Learned:
    """What was learned.

    Attributes
    ----------
    names : sequence of str, length n_kernels
    views : sequence of str, length n_kernels
    weights, shares : ndarrays of shape (n_kernels,)
        Of several weight vectors, one for each class, the mean.
    refits : ndarray of shape (n_folds, n_kernels)
        Shares of the same kernels in the refits.
    by_view, by_form, by_feature : tuples of Part
        In descending order.
    twins : tuple of tuples of int
        Places of kernels that are nearly the same.
    twins_note : str
        What was compared, or why nothing could be.
    certificate : Certificate
    n_vectors : int
        1, or one for each class.
    is_family : bool
        Whether the kernels are those selected from a family, which other rows would select otherwise.
    """

    names: Sequence[str]
    views: Sequence[str]
    weights: np.ndarray
    shares: np.ndarray
    refits: np.ndarray
    by_view: tuple[Part, ...]
    by_form: tuple[Part, ...]
    by_feature: tuple[Part, ...]
    twins: tuple[tuple[int, ...], ...]
    twins_note: str
    certificate: Certificate
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

    def carrying(self, part: float) -> int:
        """Return the number of kernels that carry this part of the weight."""
        # A little less, so that shares which sum to 1 but for rounding count as the whole.
        return int(np.searchsorted(np.cumsum(self.shares[self.order]), part - 1e-9)) + 1


def describe(
    estimator: Any, X: Any, refits: Sequence[Refit] = (), feature_names: Sequence[str] | None = None, seed: int = 0
) -> Learned:
    """Gather what a fitted estimator has learned.

    Parameters
    ----------
    estimator : fitted estimator with kernels
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        For the comparison of its kernels with one another, on a few rows.
    refits : sequence of Refit
    feature_names : sequence of str, optional
        Default: those of the estimator.
    seed : int, default 0
        Chooses the rows.

    Returns
    -------
    Learned

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.kernels import Gaussian
    >>> from manykernels.reports.learned import describe
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> kernels = [Gaussian(1.0), Gaussian(1.001), Gaussian(0.1, columns=[0])]
    >>> found = describe(MKLClassifier(kernels, norm=2).fit(X, y), X)
    >>> found.twins, found.by_view[0].name
    (((0, 1),), 'all features')
    """
    shares = shares_of(estimator.weights_)
    names, views = estimator.kernel_names_, estimator.kernel_groups_
    is_family = isinstance(estimator.kernels, Family)
    matched = _matched(names, refits, is_family)
    twins, note = _twins(estimator, X, shares, seed)
    return Learned(
        names=names,
        views=views,
        weights=np.atleast_2d(estimator.weights_).mean(axis=0),
        shares=shares,
        refits=matched,
        by_view=_views(estimator, shares, refits),
        by_form=_forms(names, shares, refits),
        by_feature=_features(estimator, refits, feature_names),
        twins=twins,
        twins_note=note,
        certificate=_certificate(estimator),
        n_vectors=np.atleast_2d(estimator.weights_).shape[0],
        is_family=is_family,
    )


def _matched(names: Sequence[str], refits: Sequence[Refit], by_name: bool) -> np.ndarray:
    """Return the shares of the model's kernels in each refit: by place in a list, by name in a family."""
    out = np.zeros((len(refits), len(names)))
    for row, refit in zip(out, refits, strict=True):
        if not by_name and refit.shares.size == row.size:
            row[:] = refit.shares
        else:
            known = dict(zip(refit.names, refit.shares.tolist(), strict=True))
            row[:] = [known.get(name, 0.0) for name in names]
    return out


def _views(estimator: Any, shares: np.ndarray, refits: Sequence[Refit]) -> tuple[Part, ...]:
    runs = run_lengths(estimator.kernel_groups_)
    counts = dict.fromkeys(estimator.group_names_, 0)
    active, first = dict(counts), 0
    for name, count in runs:
        counts[name] += count
        active[name] += int(np.count_nonzero(shares[first : first + count]))
        first += count
    parts = zip(estimator.group_names_, shares_of(estimator.group_weights_).tolist(), strict=True)
    return _sorted(
        Part(name, share, np.array([r.views.get(name, 0.0) for r in refits]), counts[name], active[name])
        for name, share in parts
    )


def _forms(names: Sequence[str], shares: np.ndarray, refits: Sequence[Refit]) -> tuple[Part, ...]:
    """Return the parts of the kernels' forms, such as Gaussian(width=2), whatever view they are on.

    Where there are many, widths are gathered from each power of 2 to the next: one of thousands is used by chance.
    """
    own = _by_form(names, shares, gather=False)
    gather = len(own) > _MANY_FORMS
    own = _by_form(names, shares, gather) if gather else own
    others = [_by_form(refit.names, refit.shares, gather) for refit in refits]
    return _sorted(
        Part(form, share, np.array([other.get(form, 0.0) for other in others])) for form, share in own.items()
    )


def _by_form(names: Sequence[str], shares: np.ndarray, gather: bool) -> dict[str, float]:
    found: dict[str, float] = {}
    for k in np.flatnonzero(shares):
        form = re.sub(r" on .*", "", names[int(k)], flags=re.DOTALL)
        if gather:
            form = re.sub(r"width=([\d.e+-]+)", _octave, form)
        found[form] = found.get(form, 0.0) + float(shares[k])
    return found


def _octave(width: re.Match) -> str:
    low = 2.0 ** math.floor(math.log2(float(width[1])))
    return f"width {low:g} to {2 * low:g}"


def _features(estimator: Any, refits: Sequence[Refit], names: Sequence[str] | None) -> tuple[Part, ...]:
    own = np.asarray(estimator.feature_importances_)
    if names is None:
        names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = [f"x{j}" for j in range(own.size)]
    others = [refit.importances for refit in refits if refit.importances.size == own.size]
    return _sorted(
        Part(str(names[j]), float(own[j]), np.array([other[j] for other in others])) for j in range(own.size)
    )


def _sorted(parts: Any) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: -part.share))


def _certificate(estimator: Any) -> Certificate:
    def number(name: str) -> float:
        return float(getattr(estimator, name, math.nan))

    return Certificate(
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
    """Return groups of kernels whose matrices are nearly proportional once they are centered, and what was compared."""
    active = np.argsort(-shares, kind="stable")[: min(int(np.count_nonzero(shares)), _TWIN_KERNELS)]
    if active.size < 2:
        return (), "One kernel has all the weight: there is nothing to compare."
    n = X.shape[0]
    rows = np.sort(np.random.default_rng(seed).permutation(n)[:_TWIN_ROWS])
    try:
        stack = estimator.kernel_matrices(_safe_indexing(X, rows), active)
    except ValueError as error:
        return (), f"The kernels were not compared with one another: {error}"
    close = _alignments_of(stack) > TWINS_ABOVE
    labels = connected_components(close, directed=False)[1]
    groups = [active[labels == label] for label in range(labels.max() + 1)]
    found = tuple(tuple(int(k) for k in group) for group in groups if group.size > 1)
    which = "all kernels with a positive weight" if active.size == np.count_nonzero(shares) else "the largest kernels"
    return found, f"Compared were {which} ({active.size}) on {rows.size} rows, by centered alignment."


def _alignments_of(stack: np.ndarray) -> np.ndarray:
    """Return the centered alignment of all pairs of matrices, shape (n_kernels, n_kernels)."""
    means = stack.mean(axis=2)
    flat = (stack - means[:, :, None] - means[:, None, :] + means.mean(axis=1)[:, None, None]).reshape(len(stack), -1)
    norms = np.linalg.norm(flat, axis=1)
    # A kernel that is constant on these rows is like no other.
    flat /= np.where(norms > 1e-10 * np.abs(stack).max(axis=(1, 2)) * stack.shape[1], norms, np.inf)[:, None]
    return flat @ flat.T
