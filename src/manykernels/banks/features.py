"""A bank of kernels of small rank, K_k = Z_k Z_k', for so many samples that no kernel matrix is ever made.

With w_k = Z_k' beta everything else follows: q_k = ||w_k||^2 and K_d beta = sum_k d_k Z_k w_k. A pass over the features
gives w, which is remembered for the last beta, another the predictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.banks.argument_checks import check_length, checked_places
from manykernels.banks.combining import MOST_COARSE, CombinesByWeights, GuessesFromTail, WeighedKernel, coarse_samples
from manykernels.banks.learned import Kept, LearnedKernel
from manykernels.banks.listed import divided_weights
from manykernels.banks.offers import FEATURES
from manykernels.banks.packed import FACTOR_COLUMNS, PackedBank, bank_of_features
from manykernels.banks.placement import PRECISIONS, UNIT_ROUNDOFFS, Placement
from manykernels.compute.feature_table import BLOCKS_SHARE, FeatureTable, least_bytes
from manykernels.compute.memory import human_bytes
from manykernels.compute.triangles import triangle_size
from manykernels.core.results import Iterate
from manykernels.kernels.approximate import (
    UNCOUNTED,
    Approximation,
    approximate_kernels,
    errors_of_values,
    lost_traces,
)
from manykernels.kernels.feature_maps import FeatureMaps, Nystroem
from manykernels.kernels.missing import CENTER_NEEDS_ALL, observed, seen_rows, with_zeros
from manykernels.kernels.normalize import LEAST_LEVEL, checked_diagonal, fit_single, too_small
from manykernels.kernels.shared_distances import BoundKernel

_CONSTANT = 1e-12
# A table that takes no more is held in double precision: it is read from the cache, and no digits are lost.
_SMALL_TABLE = 16 * 10**6
_TRACE_ROWS = 4096
# Samples are few below this multiple of the features where they are so many that solvers on features take long: for a
# large C the interior point makes and factors a matrix of the features in each of hundreds of steps.
_FEW, _SLOW = 3, 1000
_LANDMARKS = 0.75  # most of the budget that landmarks may take, and what they are chosen by


class FeatureBank(GuessesFromTail, CombinesByWeights):
    """Kernels as features of the training data.

    Parameters
    ----------
    bound : sequence of BoundKernel
    X : array, CSR matrix, or anything with a shape whose slices and selections of rows are such
    weight : ndarray of shape (n_samples,)
        Of the samples, in the means that normalization and centering learn.
    approximation : NystroemFeatures or FourierFeatures
    normalize, center, precision
        As for ``Recipe`` and ``Placement``.
    budget : int
        Bytes for landmarks, features and all that works on them.
    random_state : Generator

    Attributes
    ----------
    names, groups : lists of str
    n_kernels, n_samples : int
    first : ndarray of shape (n_kernels + 1,)
        Where the features of each kernel begin, and the end.
    scale : ndarray of shape (n_kernels,)
    errors : ndarray of shape (n_kernels,)
        The share of each kernel's trace that was lost; for waves the mean error of its values.
    spare : int or None
        Bytes of the budget that a solver may take in addition to the features; None where nobody counts them.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Gaussian, NystroemFeatures
    >>> from manykernels.banks.features import FeatureBank
    >>> from manykernels.kernels.shared_distances import BoundKernel
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> kernels = [BoundKernel(Gaussian(w), np.arange(2), f"width {w:g}", "all") for w in (1.0, 3.0)]
    >>> rng = np.random.default_rng(0)
    >>> bank = FeatureBank(kernels, X, np.ones(300), approximation=NystroemFeatures(50), random_state=rng)
    >>> bank.quad_forms(np.ones(300)).shape, bool(bank.errors.max() < 0.05)
    ((2,), True)
    """

    can = FEATURES
    concurrent = False  # it remembers its last products, and uses all cores by itself
    placement: Placement | None = None  # of `bind`

    def __init__(
        self,
        bound: Sequence[BoundKernel],
        X: Any,
        weight: np.ndarray,
        *,
        approximation: Approximation,
        normalize: str | None = "mean_diag",
        center: bool = False,
        precision: str = "single",
        budget: int | None = 10**9,
        random_state: np.random.Generator,
    ) -> None:
        most = None if budget is None else int(_LANDMARKS * budget)
        self.bound = approximate_kernels(bound, X, approximation, random_state, most)
        self.X, self.sample_weight, self.precision = X, weight, precision
        self.names, self.groups = [entry.name for entry in bound], [entry.group for entry in bound]
        self.n_kernels, self.n_samples = len(bound), X.shape[0]
        self.is_cosine, self.is_centered = normalize == "cosine", center
        self._maps = FeatureMaps(self.bound, np.ones(self.n_kernels), self.is_cosine, 0.0)
        self.first = self._maps.transform(rows_of(X, 0, 1))[1]
        traces, present, top = self._traces(bound)
        if not fit_single(top):
            self.precision = "double"
        sums, largest = self._hold(budget)
        lost = 1.0 - (sums + self._squared_mean()) / np.where(traces > 0, traces, 1.0)
        self.errors = np.clip(lost, 0.0, 1.0) * (traces > 0)
        if approximation.keeps_trace:
            self.errors = errors_of_values(bound, self.bound, X)
        elif self.is_cosine:  # and so is that of cosines
            self.errors = lost_traces(bound, self.bound, X)
        self.scale = self._scales(normalize, traces, present)
        self.largest = self.scale * largest
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def _hold(self, budget: Any) -> tuple[np.ndarray, np.ndarray]:
        """Hold the features and set their mean; return the weighted trace and the largest entry of each kernel."""
        budget = self._without_maps(budget)
        if 8 * self.n_samples * int(self.first[-1]) <= min(_SMALL_TABLE, budget // 4):
            self.precision = "double"
        self.table = self._make_table(budget)
        self.spare: int | None = budget - self.table.taken
        self.mean = self.table.mean
        return self.table.squares_by_part(self.first, self.sample_weight)

    def _without_maps(self, budget: int) -> int:
        """Return what the maps leave of the budget; raise MemoryError where no block of features fits into that."""
        held = {id(entry.kernel): entry.kernel for entry in self.bound if isinstance(entry.kernel, Nystroem)}
        maps = sum(kernel.landmarks.nbytes + kernel.root.nbytes for kernel in held.values())
        need = maps + int(least_bytes(int(self.first[-1]), self.X.shape[1]) / BLOCKS_SHARE)
        if need > budget + UNCOUNTED:
            raise MemoryError(
                f"The memory budget leaves {human_bytes(budget)} for kernels, but {self.first[-1]:,} features of "
                f"{self.n_kernels} kernels need {human_bytes(need)}: lower rank or raise memory_budget."
            )
        return max(budget - maps, 1)

    def _make_table(self, budget: int) -> Any:
        maps, X = self._maps, self.X  # the table does not refer to the bank, so that both go when the bank does
        return FeatureTable(
            lambda low, high: maps.transform(rows_of(X, low, high))[0],
            self.n_samples,
            int(self.first[-1]),
            PRECISIONS[self.precision],
            budget,
            self.sample_weight if self.is_centered else None,
            self.X.shape[1],
        )

    @property
    def attributes(self) -> dict[str, Any]:
        """What was lost, and how many features each kernel has."""
        return {"approximation_error_": self.errors, "ranks_": np.diff(self.first)}

    @property
    def unit_roundoff(self) -> float:
        """Relative error of the features that are held."""
        return UNIT_ROUNDOFFS[self.precision]

    def describe_storage(self) -> str:
        """Return words for how the features are held."""
        return f"{self.n_kernels} kernels with {self.first[-1]} features: {self.table.describe()}"

    # -- learned on the training data -------------------------------------------------------------------------

    def _traces(self, exact: Sequence[BoundKernel]) -> np.ndarray:
        """Return what :func:`traces_of` returns of all samples."""
        return traces_of(exact, self.X, self.sample_weight, self.is_cosine, self.is_centered)

    def _squared_mean(self) -> np.ndarray:
        """Return what centering takes from the weighted trace of each kernel."""
        return self.sample_weight.sum() * np.add.reduceat(self.mean**2, self.first[:-1])

    def _scales(self, normalize: str | None, traces: np.ndarray, present: np.ndarray) -> np.ndarray:
        """Return the factor of each kernel, 0 for one that is zero.

        It is that of the kernel itself, as far as that is known: an approximation that loses much of the trace does not
        get more weight for it.
        """
        left = traces - self._squared_mean()
        is_zero = left <= _CONSTANT * traces
        scale = np.ones(self.n_kernels)
        for k in np.flatnonzero(~is_zero & (left < LEAST_LEVEL * present)):
            raise too_small(self.names[k], float(left[k] / present[k]))
        if normalize in ("trace", "mean_diag"):
            scale = (1.0 if normalize == "trace" else present) / np.where(is_zero, 1.0, left)
        scale[is_zero] = 0.0
        return scale

    # -- what an optimizer asks for ---------------------------------------------------------------------------

    def workspace(self) -> CombinedFeatures:
        """Return what :meth:`combine` writes to."""
        return CombinedFeatures(self)

    def lost_by_centering(self, weights: np.ndarray) -> float:
        """Return 0: features are centered before they are rounded."""
        return 0.0

    def vectors(self, beta: np.ndarray) -> np.ndarray:
        """Return Z' beta_t for beta of shape (n_tasks, n), shape (n_tasks, n_columns)."""
        last = self._last
        if last is None or not np.array_equal(last[0], beta):
            last = self._last = (beta.copy(), self.table.transposed_times(beta))
        return last[1]

    def quad_forms(self, beta: np.ndarray, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return beta' K_k beta of the kernels of the subset, (len(subset),) or (n_tasks, len(subset))."""
        check_length(beta, self.n_samples)
        squares = np.add.reduceat(self.vectors(np.atleast_2d(beta)) ** 2, self.first[:-1], axis=1) * self.scale
        forms = squares if subset is None else squares[:, checked_places(subset, self.n_kernels)]
        return forms if beta.ndim == 2 else forms[0]

    def derivative_forms(self, weights: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Return beta' (dK/dd_k) beta: of a sum the quadratic forms, whatever the weights."""
        return self.quad_forms(beta)

    def by_column(self, weights: np.ndarray) -> np.ndarray:
        """Return the factor of each feature in the combined kernel, shape (n_columns,)."""
        return np.repeat(weights * self.scale, np.diff(self.first))

    def largest_diagonals(self, subset: np.ndarray) -> np.ndarray:
        """Return the largest diagonal entry of each kernel of the subset."""
        return self.largest[checked_places(subset, self.n_kernels)]

    @property
    def coarse_size(self) -> int:
        """How many samples a problem may have that is solved in memory for a first guess of the weights."""
        return coarse_samples(self.n_samples)

    @property
    def has_few_samples(self) -> bool:
        """Whether a solver is quicker with matrices of the samples than with their features."""
        times = _FEW if self.n_samples >= _SLOW else 1
        return self.n_samples <= min(MOST_COARSE, times * int(self.first[-1]))

    @property
    def held_on(self) -> str:
        """The device that holds the features, or "cpu"."""
        return self.table.held_on

    def spare_beside_tail(self, size: int) -> int | None:
        """Return the bytes that a solver may take besides the features and :meth:`tail`, whose factors are made."""
        if self.spare is None:
            return None
        ranks, item = np.diff(self.first), np.dtype(PRECISIONS[self.precision]).itemsize
        wide = ranks > FACTOR_COLUMNS
        held = 8 * size * int(ranks[~wide].sum()) + item * triangle_size(size) * int(wide.sum())
        return self.spare - held - 2 * 8 * size * int(ranks.max()) - self.table.tail_bytes(size)

    def tail(self, size: int) -> PackedBank:
        """Return the kernels on the last ``size`` samples: written out, or as factors where features are few."""
        columns, dtype = self.table.tail(size), PRECISIONS[self.precision]
        tail = bank_of_features(self.bound, columns, self.scale, self.first, self.largest, dtype)
        tail.spare = self.spare_beside_tail(size)
        return tail

    # -- what a fitted model keeps ----------------------------------------------------------------------------

    def kernel(self, weights: np.ndarray, keep: np.ndarray | None = None) -> LearnedKernel:
        """Return the combined kernel as a function of new data; it keeps no samples, and is not centered."""
        active = np.flatnonzero(weights)
        return LearnedKernel(
            bound=tuple(self.bound[int(k)] for k in active),
            coefficients=weights[active] * self.scale[active],
            cosine=self.is_cosine,
            X=rows_of(self.X, 0, 0).copy(),  # a view would keep all rows
        )

    def learned(self, weights: np.ndarray, machine: Iterate) -> Kept:
        """Return what predictions need: one vector on the features of the active kernels, and no samples."""
        columns = np.repeat(weights > 0, np.diff(self.first))
        vectors = (self.vectors(machine.beta) * self.by_column(weights))[:, columns]
        mean = self.mean[columns]
        return Kept(
            self.kernel(weights),
            np.zeros((vectors.shape[0], 0)),
            machine.intercept - vectors @ mean,
            np.zeros(0, np.int64),
            vectors,
            mean if self.is_centered else None,
        )

    def untrusted(self, weights: np.ndarray) -> list[BoundKernel]:
        """Return nothing: inner products of features are positive semidefinite."""
        return []

    def importances(self, weights: np.ndarray, n_features: int) -> np.ndarray:
        """Return each feature's part of the weight, a kernel's being divided over its columns."""
        return divided_weights(self.bound, weights, n_features)


class CombinedFeatures(WeighedKernel):
    """The combined kernel of a :class:`FeatureBank`, K = Z diag(columns) Z'.

    Attributes
    ----------
    n_samples : int
    failures : Counter
        For each task, how often the inner solver that is tried first has proved slow, less how often it has not.
    """

    can = frozenset({"features"})

    def __init__(self, bank: FeatureBank) -> None:
        super().__init__(bank)
        self.table = bank.table
        self.failures: Counter[int] = Counter()

    @property
    def columns(self) -> np.ndarray:
        """The factor of each feature, shape (n_columns,)."""
        return self._bank.by_column(self._weights)

    def _computed_diagonal(self) -> np.ndarray:
        return self.table.row_squares(self.columns)

    def vectors(self, beta: np.ndarray) -> np.ndarray:
        """Return Z' beta_t, shape (n_tasks, n_columns)."""
        return self._bank.vectors(beta)

    def product(self, beta: np.ndarray) -> np.ndarray:
        """Return K beta_t for beta of shape (n_tasks, n)."""
        return self.table.times(self.vectors(beta) * self.columns)


def traces_of(
    exact: Sequence[BoundKernel], X: Any, weight: np.ndarray, is_cosine: bool, is_centered: bool
) -> np.ndarray:
    """Return of each kernel its weighted trace, the weight of the samples that it sees, and its largest entry.

    They are those of the kernels themselves, not of their features.

    Returns
    -------
    ndarray of shape (3, n_kernels)
    """
    out = np.zeros((3, len(exact)))
    for low in range(0, X.shape[0], _TRACE_ROWS):
        high = min(low + _TRACE_ROWS, X.shape[0])
        rows, share = rows_of(X, low, high), weight[low:high]
        for k, entry in enumerate(exact):
            V = rows[:, entry.positions]
            mask = observed(V)
            if mask is not None and is_centered:
                raise ValueError(CENTER_NEEDS_ALL)
            diagonal = with_zeros(checked_diagonal(entry.kernel, seen_rows(V, mask), entry.name), mask)
            seen = float(share.sum() if mask is None else share @ mask)
            trace, top = (seen, 1.0) if is_cosine else (float(share @ diagonal), float(diagonal.max(initial=0.0)))
            out[:, k] = out[0, k] + trace, out[1, k] + seen, max(out[2, k], top)
    return out


def rows_of(X: Any, low: int, high: int) -> Any:
    """Return rows of X in memory: a CSR matrix, or an array in double precision."""
    rows = X[low:high]
    return rows if hasattr(rows, "tocsr") else np.asarray(rows, dtype=np.float64)
