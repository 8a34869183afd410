"""A finite set of kernels: as described (KernelBank), and bound to training data (BoundBank)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from manykernels.compute.memory import budget_bytes
from manykernels.compute.packed import balanced_blocks, mirror_rows, row_offset, triangle_size
from manykernels.compute.threads import parallel
from manykernels.kernels.base import Kernel, Precomputed
from manykernels.kernels.checks import check_positive_semidefinite
from manykernels.kernels.columns import column_names, describe_columns, resolve_columns
from manykernels.kernels.groups import BoundKernel, make_groups
from manykernels.kernels.learned import LearnedKernel
from manykernels.kernels.normalize import Normalization, learn_normalization
from manykernels.kernels.storage import (
    BLOCK_ENTRIES,
    FactorStorage,
    PackedStorage,
    RecomputedStorage,
    Storage,
)

# Up to this rank, a matrix product with the factors costs no more than reading the packed triangle.
_SMALL_RANK = 8
STORAGES = ("auto", "packed", "factors", "recomputed")


class KernelBank:
    """A list of kernels to learn from.

    Parameters
    ----------
    kernels : iterable of Kernel or KernelBank

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Gaussian, KernelBank, Linear
    >>> bank = KernelBank([Linear(columns=[0]), Gaussian(1.0), Gaussian(2.0)])
    >>> len(bank)
    3
    >>> bound = bank.bind(np.random.default_rng(0).normal(size=(20, 3)))
    >>> bound.names
    ['Linear on x0', 'Gaussian(width=1) on all features', 'Gaussian(width=2) on all features']
    >>> bound.combine(np.array([0.0, 0.5, 0.5])).shape
    (20, 20)
    """

    def __init__(self, kernels: Iterable[Kernel | KernelBank]) -> None:
        if isinstance(kernels, (Kernel, str)) or not isinstance(kernels, Iterable):
            raise TypeError(f"kernels must be a list of kernels, got {kernels!r}.")
        flat: list[Kernel] = []
        for entry in kernels:
            if isinstance(entry, KernelBank):
                flat += entry.kernels
            elif isinstance(entry, Kernel):
                flat.append(entry)
            else:
                raise TypeError(f"kernels must hold Kernel objects, got {entry!r} at place {len(flat)}.")
        if not flat:
            raise ValueError("kernels is empty: at least one kernel is needed.")
        self.kernels: list[Kernel] = flat

    @classmethod
    def from_arrays(
        cls, stack: Any, names: Sequence[str] | None = None, groups: Sequence[str] | None = None
    ) -> KernelBank:
        """Make a bank of kernel matrices that were computed elsewhere.

        Parameters
        ----------
        stack : array of shape (n_kernels, n, n), or a list of (n, n) arrays
        names, groups : sequences of str, optional

        Returns
        -------
        KernelBank
            Of :class:`Precomputed` kernels: X is then ``np.arange(n).reshape(-1, 1)``.

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels.kernels import KernelBank
        >>> KernelBank.from_arrays(np.stack([np.eye(3), np.ones((3, 3))]), names=["identity", "ones"])
        KernelBank of 2 kernels
        """
        for label, given in (("names", names), ("groups", groups)):
            if given is not None and len(given) != len(stack):
                raise ValueError(f"{label} has {len(given)} entries, but stack has {len(stack)} kernels.")
        titles = [f"kernel {k}" for k in range(len(stack))] if names is None else [str(name) for name in names]
        shapes = {np.shape(K) for K in stack}
        if len(shapes) > 1:
            raise ValueError(f"stack must hold kernels of one shape, got {sorted(shapes)}.")
        return cls(
            Precomputed(K, label=titles[k], group=titles[k] if groups is None else str(groups[k]))
            for k, K in enumerate(stack)
        )

    def bind(
        self,
        X: Any,
        *,
        source: Any = None,
        normalize: str | None = "mean_diag",
        center: bool = False,
        sample_weight: np.ndarray | None = None,
        memory_budget: int | float | str | None = None,
        storage: str = "auto",
        precision: str = "single",
    ) -> BoundBank:
        """Bind the kernels to training data.

        Parameters
        ----------
        X : float array or CSR matrix of shape (n_samples, n_features)
        source : DataFrame, optional
            Where column names are looked up, if not in X.
        normalize : {"mean_diag", "trace", "cosine", None}
        center : bool
        sample_weight : ndarray of shape (n_samples,), optional
            Weights for the means that normalization and centring learn.
        memory_budget : int, str or None
            Bytes that the kernels may take, such as 10**9 or "1GB".
        storage : {"auto", "packed", "factors", "recomputed"}
            "auto" chooses by the memory budget.
        precision : {"single", "double"}
            Of the kernel values that are held; sums are always in double precision.

        Returns
        -------
        BoundBank
        """
        table = X if source is None else source
        X = np.asarray(X, dtype=np.float64) if not hasattr(X, "tocsr") else X.tocsr()
        bound = self._resolve(table)
        check_positive_semidefinite(bound, X)
        weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        normalization = learn_normalization(
            bound, make_groups(bound), X, kind=normalize, center=center, sample_weight=weight
        )
        return BoundBank(bound, X, normalization, weight, budget_bytes(memory_budget), storage, precision)

    def _resolve(self, table: Any) -> list[BoundKernel]:
        names, found, bound = column_names(table), {}, []
        for kernel in self.kernels:
            key = repr(kernel.columns)
            if key not in found or callable(kernel.columns):
                positions = resolve_columns(kernel.columns, table)
                found[key] = positions, describe_columns(kernel.columns, positions, names, table.shape[1])
            positions, words = found[key]
            where = kernel.label or words
            bound.append(BoundKernel(kernel, positions, kernel.name(where), kernel.group or where))
        _warn_of_duplicates(bound)
        return bound

    def __len__(self) -> int:
        return len(self.kernels)

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self.kernels)

    def __getitem__(self, k: int) -> Kernel:
        return self.kernels[k]

    def __repr__(self) -> str:
        return f"KernelBank of {len(self)} kernels"

    def __deepcopy__(self, memo: dict) -> KernelBank:
        return self  # like the kernels it holds, a bank does not change


def _warn_of_duplicates(bound: Sequence[BoundKernel]) -> None:
    """Two equal kernels share their weight in an arbitrary way: worth a word, no error."""
    seen: dict[tuple, int] = {}
    for k, entry in enumerate(bound):
        if isinstance(entry.kernel, Precomputed):
            key: tuple = (id(entry.kernel.K),)
        else:
            own = {n: v for n, v in entry.kernel.parameters().items() if n not in ("columns", "group", "label")}
            key = (type(entry.kernel), repr(own), entry.positions.tobytes())
        if key in seen:
            warnings.warn(
                f"Kernels {seen[key]} and {k} are the same ({entry.name}): how they share weight is arbitrary.",
                UserWarning,
                stacklevel=4,
            )
            return
        seen[key] = k


class BoundBank:
    """Kernels bound to training data: what an outer optimizer works with.

    Made by :meth:`KernelBank.bind`. The kernels are normalized; none needs
    to be in memory as a full matrix.

    Attributes
    ----------
    names, groups : lists of str
    n_kernels, n_samples : int
    precision : {"single", "double"}
    unit_roundoff : float
        Relative error of the kernel values that are held.
    """

    capabilities = frozenset({"combine", "quad_forms", "matvecs", "cross", "rows", "diagonal"})

    def __init__(
        self,
        bound: Sequence[BoundKernel],
        X: Any,
        normalization: Normalization,
        sample_weight: np.ndarray,
        budget: int,
        storage: str,
        precision: str,
    ) -> None:
        if precision not in ("single", "double"):
            raise ValueError(f"precision must be 'single' or 'double', got {precision!r}.")
        if storage not in STORAGES:
            raise ValueError(f"storage must be one of {STORAGES}, got {storage!r}.")
        self.bound, self.X, self.normalization, self.sample_weight = (
            list(bound),
            X,
            normalization,
            sample_weight,
        )
        self.names = [entry.name for entry in bound]
        self.groups = [entry.group for entry in bound]
        self.n_kernels, self.n_samples = len(bound), X.shape[0]
        self.precision = precision
        self._dtype = np.float32 if precision == "single" else np.float64
        self.storages: list[Storage] = []
        self._store(budget, storage)

    def _store(self, budget: int, storage: str) -> None:
        """Choose a storage for each kernel: factors of small rank, then triangles while they fit, then none."""
        rest = np.arange(self.n_kernels)
        if storage in ("auto", "factors"):
            rest, budget = self._store_factors(budget, max_rank=_SMALL_RANK if storage == "auto" else None)
        each = np.dtype(self._dtype).itemsize * triangle_size(self.n_samples)
        fit = {"auto": max(budget, 0) // each, "packed": rest.size, "factors": rest.size}.get(storage, 0)
        for kind, indices in ((PackedStorage, rest[:fit]), (RecomputedStorage, rest[fit:])):
            if indices.size:
                self.storages.append(kind(self.bound, indices, self.X, self.normalization, self._dtype))

    def _store_factors(self, budget: int, max_rank: int | None) -> tuple[np.ndarray, int]:
        limit = self.n_samples // 4 if max_rank is None else min(max_rank, self.n_samples // 4)
        chosen, factors = [], []
        for group in make_groups(self.bound):
            view = group.view(self.X)
            for g, k in enumerate(group.indices):
                # A factor has at least as many columns as the kernel has: do not even ask for a large one.
                factor = group.kernels[g].factor(view) if view.shape[1] <= limit else None
                if factor is not None and factor.shape[1] <= limit and factor.nbytes <= budget:
                    chosen.append(k)
                    factors.append(self.normalization.apply_factor(k, factor, self.sample_weight))
                    budget -= factor.nbytes
        if chosen:
            self.storages.append(FactorStorage(np.array(chosen), factors))
        return np.setdiff1d(np.arange(self.n_kernels), chosen), budget

    @property
    def unit_roundoff(self) -> float:
        return float(np.finfo(self._dtype).eps) / 2

    def describe_storage(self) -> str:
        """Return words for how the kernels are held.

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels.kernels import standard_bank
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> standard_bank(X).bind(X).describe_storage()
        '6 as factors (7.2 kB), 33 packed (168 kB)'
        """
        return ", ".join(storage.describe() for storage in self.storages)

    def combine(self, weights: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return sum_k weights[k] K_k as a symmetric float64 array of shape (n, n), written to ``out`` if given."""
        weights = self._check_weights(weights)
        K = np.empty((self.n_samples, self.n_samples)) if out is None else out
        adders = [s.adder(weights[s.indices]) for s in self.storages if np.any(weights[s.indices])]

        def block_sum(block: tuple[int, int]) -> None:
            first, last = row_offset(block[0], self.n_samples), row_offset(block[1], self.n_samples)
            segment = np.zeros(last - first)
            for add in adders:
                add(*block, segment)
            mirror_rows(segment, *block, K)

        parallel(block_sum, balanced_blocks(self.n_samples, BLOCK_ENTRIES))
        return K

    def quad_forms(self, beta: np.ndarray) -> np.ndarray:
        """Return beta' K_k beta for all kernels: (n_kernels,), or (n_tasks, n_kernels) for beta of two dimensions."""
        rows = np.ascontiguousarray(np.atleast_2d(beta), dtype=np.float64)
        out = np.empty((rows.shape[0], self.n_kernels))
        for storage in self.storages:
            out[:, storage.indices] = storage.quad_forms(rows)
        np.maximum(out, 0.0, out=out)  # rounding can leave a tiny negative value where the form vanishes
        return out if beta.ndim == 2 else out[0]

    def matvecs(self, beta: np.ndarray, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return K_k beta for the kernels of the subset (default: all), shape (len(subset), n)."""
        return self._gather(subset, lambda storage, local: storage.matvecs(beta, local), (self.n_samples,))

    def rows(self, indices: Sequence[int] | np.ndarray, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return the given rows of the kernels of the subset, shape (len(subset), len(indices), n)."""
        rows = np.asarray(indices, dtype=np.int64)
        return self._gather(subset, lambda storage, local: storage.rows(rows, local), (rows.size, self.n_samples))

    def _gather(self, subset: Any, compute: Any, shape: tuple[int, ...]) -> np.ndarray:
        chosen = np.arange(self.n_kernels) if subset is None else np.asarray(subset, dtype=np.int64)
        out = np.empty((chosen.size, *shape))
        for storage in self.storages:
            where = np.searchsorted(storage.indices, chosen)
            where[where == storage.indices.size] = 0
            own = np.flatnonzero(storage.indices[where] == chosen)
            if own.size:
                out[own] = compute(storage, where[own])
        return out

    def diagonal(self, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return the diagonals of the kernels of the subset, shape (len(subset), n)."""
        chosen = range(self.n_kernels) if subset is None else subset
        scale, means, totals = self.normalization.scale, self.normalization.means, self.normalization.totals
        out = np.empty((len(chosen), self.n_samples))
        for row, k in enumerate(chosen):
            entry = self.bound[k]
            raw = entry.kernel.diagonal(self.X[:, entry.positions])
            if self.normalization.inverse_norms is not None:
                raw = raw * self.normalization.inverse_norms[k] ** 2
            if means is not None and totals is not None:
                raw = raw - 2 * means[k] + totals[k]
            out[row] = scale[k] * raw
        return out

    def learned(self, weights: np.ndarray, keep: np.ndarray | None = None) -> LearnedKernel:
        """Return the combined kernel as a function of new data, on the training samples ``keep`` (default: all)."""
        return LearnedKernel.from_bank(
            self.bound, self.X, self.normalization, self.sample_weight, self._check_weights(weights), keep
        )

    def cross(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Return the combined kernel between X and the training samples, shape (len(X), n_samples)."""
        return self.learned(weights).cross(X)

    def _check_weights(self, weights: np.ndarray) -> np.ndarray:
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        if weights.shape != (self.n_kernels,):
            raise ValueError(f"weights must have shape ({self.n_kernels},), got {weights.shape}.")
        if not np.all(weights >= 0):
            raise ValueError(f"weights must not be negative or NaN, but the smallest is {weights.min():.3g}.")
        return weights
