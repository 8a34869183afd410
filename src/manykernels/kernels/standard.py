"""The kernels that the papers use by default, and which of them suit very wide or sparse data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from manykernels.compute.pairwise import squared_distances
from manykernels.core.checks import check_choice
from manykernels.core.notices import warn
from manykernels.kernels.base import Gaussian, Kernel, Polynomial
from manykernels.kernels.columns import column_names
from manykernels.kernels.kernel_bank import KernelBank
from manykernels.kernels.ladder import GaussianLadder

STANDARD_WIDTHS = tuple(2.0**e for e in range(-3, 7))
STANDARD_DEGREES = (1, 2, 3)
_MANY_WIDTHS = 100  # a ladder of the whole range has about 60 nodes
# Columns of this number get kernels of their own in any case, more of them where X has no more values than that.
_FEW_COLUMNS, _FEW_VALUES = 100, 2_000_000
# A sparse column that is empty in more samples than this part says little by itself: among sparse columns, those of a
# table's numbers are full. (Words that half of all texts have cost a text classifier up to 5 points of accuracy.)
_EMPTY = 0.05
# Widths for wide sparse data, in typical distances. There distances are much alike: with a smaller width no sample is
# like another, and the kernel is the identity, which fits the training data and nothing else.
_WIDE_WIDTHS = (1.0, 2.0, 4.0, 8.0)
_ROWS_COMPARED = 200


@dataclass(frozen=True)
class Choice:
    """Which standard kernels suit some data.

    Attributes
    ----------
    singles : ndarray of int
        The columns that get kernels of their own.
    widths : tuple of float
        Of Gaussian kernels on all columns together.
    words : str
        What was chosen, in a sentence, where it is not all that there could be; else empty.
    standardize : bool
        Whether the widths are for columns of variance 1; those of wide sparse data are in typical distances.
    """

    singles: np.ndarray
    widths: tuple[float, ...]
    words: str = ""
    standardize: bool = True


@dataclass(frozen=True)
class Glance:
    """What the choice of standard kernels depends on, wherever the rows are.

    Attributes
    ----------
    shape : (int, int)
    filled : ndarray of shape (n_features,) or None
        In how many rows each column has an entry; None where rows are dense or narrow.
    rows : function of an int array
        Returns these rows as a CSR matrix.
    """

    shape: tuple[int, int]
    filled: np.ndarray | None
    rows: Callable[[np.ndarray], Any]

    @classmethod
    def at(cls, X: Any) -> Glance:
        """Return what there is to know of X: array, sparse matrix or DataFrame of shape (n_samples, n_features)."""
        filled = filled_counts(X) if is_wide_and_sparse(X) else None
        return cls(X.shape, filled, lambda rows: X.tocsr()[rows])

    def typical_distance(self) -> float:
        """Return the median distance of two different samples, of some that are spread over all; 1 without any."""
        chosen = np.unique(np.linspace(0, self.shape[0] - 1, _ROWS_COMPARED).astype(int))
        sample = self.rows(chosen).astype(np.float64)
        squares = squared_distances(sample, sample)[np.triu_indices(chosen.size, 1)]
        squares = squares[squares > 0]  # NaN and samples that are the same say nothing
        return float(np.sqrt(np.median(squares))) if squares.size else 1.0


def standard_bank(
    X: Any,
    *,
    widths: Any = None,
    degrees: Any = STANDARD_DEGREES,
    per_feature: Any = "auto",
    standardize: bool = False,
) -> KernelBank:
    """Return Gaussian and polynomial kernels on all features and on each one.

    The widths suit features of unit variance: put a StandardScaler in front, or let estimators do what it does.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        Only its columns count, unless it is sparse and wide.
    widths : int or sequence of float, default 2^-3, ..., 2^6
        A number asks for that many widths from 2^-3 to 2^6, evenly spaced on a log scale; when they are many, each
        set of columns gets a :class:`GaussianLadder`. By default sparse data of more than 100 columns get, on all
        columns together, 1, 2, 4 and 8 times the typical distance of two samples.
    degrees : sequence of int, default 1, 2, 3
    per_feature : bool or "auto", default "auto"
        Whether to make the kernels for each single column, too. "auto" makes them where columns are few (at most 100,
        or X has at most two million values); of more than 100 sparse columns, for those that are filled in 95 % of the
        samples or more. A warning says what was left out.
    standardize : bool, default False
        Estimators take off the location and the scale of each column, as ``kernels="standard"`` does: see
        :class:`KernelBank`.

    Returns
    -------
    KernelBank
        ``(len(widths) + len(degrees)) * (n_features + 1)`` kernels, if every feature has its own.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import standard_bank
    >>> len(standard_bank(np.zeros((5, 60))))
    793
    >>> len(standard_bank(np.zeros((5, 60)), widths=16_394, degrees=()))
    1000034
    """
    choice = choose(X)
    if per_feature == "auto" and choice.words:
        warn(choice.words)
    return _made(X, choice, widths, degrees, per_feature, standardize)


def _made(X: Any, choice: Choice, widths: Any, degrees: Any, per_feature: Any, standardize: bool) -> KernelBank:
    singles = choice.singles
    if per_feature != "auto":
        singles = np.arange(X.shape[1] if per_feature and X.shape[1] > 1 else 0)
    kernels = _kernels(None, choice.widths if widths is None else widths, degrees)
    names = column_names(X)
    for j in singles.tolist():
        kernels += _kernels(j if names is None else [names[j]], STANDARD_WIDTHS if widths is None else widths, degrees)
    return KernelBank(kernels, standardize=standardize)


def _kernels(columns: Any, widths: Any, degrees: Any) -> list[Kernel | GaussianLadder]:
    """Return the kernels of one set of columns."""
    count = int(widths) if np.ndim(widths) == 0 else 0
    kernels: list[Kernel | GaussianLadder] = []
    if count > _MANY_WIDTHS:
        kernels.append(GaussianLadder(STANDARD_WIDTHS[0], STANDARD_WIDTHS[-1], count, columns=columns))
    else:
        every = np.geomspace(STANDARD_WIDTHS[0], STANDARD_WIDTHS[-1], count) if count else np.asarray(widths)
        kernels += [Gaussian(float(width), columns=columns) for width in every]
    return kernels + [Polynomial(degree, columns=columns) for degree in degrees]


def choose(X: Any, degrees: Sequence[int] = STANDARD_DEGREES) -> Choice:
    """Return which standard kernels suit X: those on all columns together, and on which single ones.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from manykernels.kernels.standard import choose
    >>> choose(sp.random(50, 3000, density=0.01, random_state=0)).singles.size
    0
    """
    return choose_at(Glance.at(X), degrees)


def choose_at(glance: Glance, degrees: Sequence[int] = STANDARD_DEGREES) -> Choice:
    """Return which standard kernels suit rows of which so much is known."""
    n, d = glance.shape
    every = np.arange(d if d > 1 else 0)
    if d <= _FEW_COLUMNS:
        return Choice(every, STANDARD_WIDTHS)
    if glance.filled is None:
        if n * d <= _FEW_VALUES:
            return Choice(every, STANDARD_WIDTHS)
        return Choice(every[:0], STANDARD_WIDTHS, _words(glance, 0, "", STANDARD_WIDTHS, len(degrees)))
    filled = np.flatnonzero(glance.filled >= (1 - _EMPTY) * n)
    filled = filled if n * filled.size <= _FEW_VALUES else filled[:0]
    unit = glance.typical_distance()
    widths = tuple(unit * width for width in _WIDE_WIDTHS)
    words = _words(glance, filled.size, " that are filled in 95 % of the samples or more", widths, len(degrees))
    return Choice(filled, widths, words, standardize=False)


def _words(glance: Glance, n_singles: int, which: str, widths: tuple[float, ...], n_degrees: int) -> str:
    """Return the sentence that says which kernels were chosen."""
    size = len(STANDARD_WIDTHS) + n_degrees
    count = len(widths) + n_degrees + size * n_singles
    seen = "all of them together"
    if n_singles:
        seen += f" and the {n_singles}{which} one by one"
    low, high = (f"{width:.3g}" for width in (widths[0], widths[-1]))
    n, d, sort = *glance.shape, "columns" if glance.filled is None else "sparse columns"
    return (
        f"X has {n:,} samples and {d:,} {sort}, too many for kernels of their own: the {count} standard kernels see "
        f"{seen}, with Gaussian widths from {low} to {high}; standard_bank(X, per_feature=True) makes them all, and "
        "lists of kernels may name any columns."
    )


def as_bank(
    kernels: Any,
    X: Any,
    *,
    tells: bool = False,
    degrees: Sequence[int] = STANDARD_DEGREES,
    glance: Callable[[], Glance] | None = None,
) -> KernelBank:
    """Return what an estimator's ``kernels`` stand for: "standard", a list of kernels, or a bank.

    Parameters
    ----------
    kernels : "standard", list of Kernel or KernelBank
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
    tells : bool
        Say which of the standard kernels were chosen, where it is not all of them.
    degrees : sequence of int
        Of the polynomial kernels among the standard ones.
    glance : function, optional
        Returns what the choice depends on, where the rows are elsewhere and X has none of them.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.standard import as_bank
    >>> as_bank("standard", np.zeros((5, 2)))
    KernelBank of 39 kernels
    """
    if not isinstance(kernels, str):
        return KernelBank.of(kernels)
    check_choice("kernels", kernels, ("standard",))
    choice = choose(X, degrees) if glance is None else choose_at(glance(), degrees)
    if tells and choice.words:
        warn(choice.words)
    return _made(X, choice, None, degrees, "auto", choice.standardize)


def standardizes(kernels: Any, X: Any) -> bool:
    """Return whether an estimator's ``kernels`` are for columns of X whose location and scale are taken off.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.kernels.standard import standardizes
    >>> X = np.zeros((5, 2))
    >>> [standardizes(kernels, X) for kernels in ("standard", [Gaussian(1.0)], KernelBank([Gaussian(1.0)]))]
    [True, False, False]
    """
    if isinstance(kernels, str):
        return not is_wide_and_sparse(X)
    return bool(getattr(kernels, "standardize", False))


def is_wide_and_sparse(X: Any) -> bool:
    """Return whether X is sparse and has many columns: its standard kernels look at it as it is."""
    return sp.issparse(X) and X.shape[1] > _FEW_COLUMNS


def filled_counts(X: Any) -> np.ndarray:
    """Return in how many rows of a sparse matrix each column has an entry, shape (n_features,)."""
    return np.bincount(X.tocsr().indices, minlength=X.shape[1])
