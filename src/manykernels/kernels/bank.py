"""A finite set of kernels, as described; bound to training data it becomes a BoundBank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from manykernels.compute.gpu import Device, check_device
from manykernels.compute.memory import budget_bytes
from manykernels.compute.threads import one_blas_thread, parallel
from manykernels.core.checks import check_choice
from manykernels.core.notices import warn
from manykernels.kernels.base import Gaussian, Kernel
from manykernels.kernels.bound import PRECISIONS, BoundBank
from manykernels.kernels.checks import check_positive_semidefinite
from manykernels.kernels.columns import column_names, describe_columns, resolve_columns
from manykernels.kernels.composite import CompositeBank
from manykernels.kernels.device.bank import DeviceBank, DeviceRowsBank
from manykernels.kernels.device.feature_bank import DeviceFeatureBank
from manykernels.kernels.device.ladder import DeviceLadderBank
from manykernels.kernels.device.plan import plan_device
from manykernels.kernels.feature_bank import FeatureBank
from manykernels.kernels.groups import BoundKernel, make_groups
from manykernels.kernels.ladder import GaussianLadder, LadderBank
from manykernels.kernels.missing import check_views, has_gaps
from manykernels.kernels.normalize import Normalization, learn_normalization
from manykernels.kernels.on_demand import OnDemandBank
from manykernels.kernels.parametric import ParametricBank
from manykernels.kernels.plan import plan_storages
from manykernels.kernels.precomputed import Precomputed
from manykernels.kernels.product import GaussianProduct
from manykernels.kernels.storage import FactorStorage


class KernelBank:
    """A list of kernels to learn from.

    Parameters
    ----------
    kernels : iterable of Kernel, GaussianLadder or KernelBank
        A ladder counts as many kernels as it has widths; plain kernels come first in a bank's order.

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
    >>> bound.combine(np.array([0.0, 0.5, 0.5])).array.shape
    (20, 20)
    """

    def __init__(self, kernels: Iterable[Kernel | GaussianLadder | KernelBank]) -> None:
        if isinstance(kernels, (Kernel, str)) or not isinstance(kernels, Iterable):
            raise TypeError(f"kernels must be a list of kernels, got {kernels!r}.")
        flat: list[Kernel | GaussianLadder] = []
        for entry in kernels:
            if isinstance(entry, KernelBank):
                flat += entry.kernels
            elif isinstance(entry, (Kernel, GaussianLadder)):
                flat.append(entry)
            else:
                raise TypeError(f"kernels must hold Kernel objects, got {entry!r} at place {len(flat)}.")
        if not flat:
            raise ValueError("kernels is empty: at least one kernel is needed.")
        self.kernels: list[Kernel | GaussianLadder] = flat

    @classmethod
    @one_blas_thread()
    def from_arrays(
        cls, stack: Any, names: Sequence[str] | None = None, groups: Sequence[str] | None = None
    ) -> KernelBank:
        """Make a bank of kernel matrices that were computed elsewhere.

        Parameters
        ----------
        stack : array of shape (n_kernels, n, n), or a list of (n, n) arrays
            Not copied if it is of float32 or float64: leave it as it is as long as the bank is in use.
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
        owners = titles if groups is None else [str(group) for group in groups]
        return cls(parallel(lambda k: Precomputed.sharing(stack[k], owners[k], titles[k]), range(len(stack))))

    @one_blas_thread()
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
        reserve: int = 0,
        device: str = "cpu",
        check_kernels: str = "quick",
    ) -> BoundBank | LadderBank | CompositeBank:
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
        storage : {"auto", "packed", "factors", "recomputed", "rows"}
            "auto" chooses by the memory budget. With "rows" not even the combined kernel is a matrix: the budget is
            for a cache of its rows.
        precision : {"single", "double"}
            Of the kernel values that are held, unless they leave the range of float32; sums are always in double.
        reserve : int
            Kernels that a solver wants to hold beside the bank, where the bank itself does not fit.
        device : str, default "cpu"
            "cuda", "cuda:1" or "mps" keeps the kernels there and needs torch; they take what they need of the memory
            there, and the budget is for that of the CPU. "torch:cpu" is the same code on the CPU, for tests.
        check_kernels : {"quick", "full"}, default "quick"
            How closely matrices and functions of your own are looked at: see ``manykernels.kernels.checks``.

        Returns
        -------
        BoundBank, or LadderBank or CompositeBank where there are ladders
        """
        check_choice("precision", precision, PRECISIONS)
        check_device(device)
        table = X if source is None else source
        X = np.asarray(X, dtype=np.float64) if not hasattr(X, "tocsr") else X.tocsr()
        weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        options: dict[str, Any] = {"normalize": normalize, "center": center, "storage": storage, "precision": precision}
        ladders = [kernel for kernel in self.kernels if isinstance(kernel, GaussianLadder)]
        if ladders and storage == "rows":
            raise TypeError(f"storage='rows' needs kernels one by one, got {ladders[0]!r}.")
        places = _places(ladders, table)
        resolved = self.resolve(table)
        self.check_views(X, table)
        budget = budget_bytes(memory_budget)
        parts: list[BoundBank | LadderBank] = []
        if resolved:
            share = budget // 2 if ladders else budget
            where: dict[str, Any] = {"device": device, "comes_back": bool(ladders), "check": check_kernels}
            parts.append(bind_resolved(resolved, X, weight, budget=share, reserve=reserve, **where, **options))
            budget -= share
        if ladders:
            own: dict[str, Any] = {"budget": budget, "reserve": reserve, "learn": _learn, **options}
            if device == "cpu" or center:  # the means of centered kernels are interpolated
                parts.append(LadderBank(ladders, places, X, weight, **own))
            else:
                parts.append(DeviceLadderBank(ladders, places, X, weight, device=device, **own))
        bank = parts[0] if len(parts) == 1 else CompositeBank(parts)
        report_zero_kernels(bank.names, bank.scale)
        return bank

    def resolve(self, table: Any) -> list[BoundKernel]:
        """Return the plain kernels with the columns that each sees in the table, and warn of duplicates."""
        return _resolve([kernel for kernel in self.kernels if isinstance(kernel, Kernel)], table)

    def written_out(self) -> KernelBank:
        """Return the bank with each ladder as single Gaussian kernels, in the same order as :meth:`bind` has them.

        Examples
        --------
        >>> from manykernels.kernels import GaussianLadder, KernelBank, Linear
        >>> KernelBank([GaussianLadder(low=1.0, high=4.0, count=3), Linear()]).written_out().kernels
        [Linear(), Gaussian(width=1), Gaussian(width=2), Gaussian(width=4)]
        """
        ladders = [kernel for kernel in self.kernels if isinstance(kernel, GaussianLadder)]
        steps = [Gaussian(w, ladder.columns, ladder.group, ladder.label) for ladder in ladders for w in ladder.widths]
        return KernelBank([*(kernel for kernel in self.kernels if isinstance(kernel, Kernel)), *steps])

    def check_views(self, X: Any, source: Any = None) -> None:
        """Raise ValueError if a row is NaN in some but not all of the columns that a kernel sees.

        Parameters
        ----------
        X : float array or CSR matrix of shape (n_samples, n_features)
        source : DataFrame, optional
            Where column names are looked up, if not in X.

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels.kernels import Gaussian, KernelBank
        >>> KernelBank([Gaussian(1.0, columns=[0, 1])]).check_views(np.array([[1.0, 2.0], [np.nan, np.nan]]))
        """
        if not has_gaps(X):
            return
        table, names = X if source is None else source, column_names(X if source is None else source)
        views = []
        for kernel in self.kernels:
            positions = resolve_columns(kernel.columns, table)
            words = kernel.label or describe_columns(kernel.columns, positions, names, table.shape[1])
            views.append((f"{kernel!r}" if isinstance(kernel, GaussianLadder) else kernel.name(words), positions))
        check_views(X, views)

    @one_blas_thread()
    def bind_features(
        self,
        X: Any,
        *,
        source: Any = None,
        approximation: str = "nystroem",
        rank: float = 1000,
        normalize: str | None = "mean_diag",
        center: bool = False,
        sample_weight: np.ndarray | None = None,
        memory_budget: Any = None,
        precision: str = "single",
        random_state: Any = None,
        device: str = "cpu",
    ) -> FeatureBank:
        """Bind approximations of the kernels by features of the samples to training data, for very many samples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Or anything that has a shape and whose slices and selections of rows are such, as a memory map.
        approximation : {"nystroem", "fourier"}
            The kernel's values with landmarks, or random waves (Gaussian kernels).
        rank : int, or float between 0 and 1
            Features of each kernel, or the share of its trace that may be lost.
        source, normalize, center, sample_weight, memory_budget, precision
            As for :meth:`bind`.
        random_state : int, Generator or None
            Chooses the landmarks or waves.
        device : str, default "cpu"
            Where the features are computed and kept, as for :meth:`bind`; "cpu" or a name that torch knows.

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels.kernels import Gaussian, KernelBank
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> bank = KernelBank([Gaussian(1.0), Gaussian(3.0)]).bind_features(X, rank=20, random_state=0)
        >>> bank.describe_storage()
        '2 kernels with 40 features: 96 kB of features in memory'
        """
        table = X if source is None else source
        plain = self.written_out().kernels
        weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        kind: Callable[..., FeatureBank] = (
            FeatureBank if device == "cpu" else partial(DeviceFeatureBank, Device(device))
        )
        bank = kind(
            _resolve([kernel for kernel in plain if isinstance(kernel, Kernel)], table),
            X,
            weight,
            approximation=approximation,
            rank=rank,
            normalize=normalize,
            center=center,
            precision=precision,
            budget=budget_bytes(memory_budget),
            random_state=np.random.default_rng(random_state),
        )
        report_zero_kernels(bank.names, bank.scale)
        return bank

    @one_blas_thread()
    def bind_product(
        self,
        X: Any,
        *,
        source: Any = None,
        normalize: str | None = "mean_diag",
        center: bool = False,
        sample_weight: np.ndarray | None = None,
    ) -> ParametricBank:
        """Bind the product of the kernels, each raised to its weight, to training data; they must be Gaussian.

        Parameters are those of :meth:`bind`.

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels.kernels import Gaussian, KernelBank
        >>> X = np.random.default_rng(0).normal(size=(20, 3))
        >>> bank = KernelBank([Gaussian(1.0, columns=[j]) for j in range(3)]).bind_product(X)
        >>> bank.combine(np.array([0.5, 0.0, 2.0])).array.shape
        (20, 20)
        """
        table = X if source is None else source
        X = np.asarray(X, dtype=np.float64) if not hasattr(X, "tocsr") else X.tocsr()
        ladders = [kernel for kernel in self.kernels if isinstance(kernel, GaussianLadder)]
        if ladders:
            raise TypeError(f"combination='product' needs Gaussian kernels, got {ladders[0]!r}.")
        weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        kernels = [kernel for kernel in self.kernels if isinstance(kernel, Kernel)]
        return ParametricBank(GaussianProduct(_resolve(kernels, table)), X, weight, normalize=normalize, center=center)

    def __len__(self) -> int:
        return sum(len(kernel) if isinstance(kernel, GaussianLadder) else 1 for kernel in self.kernels)

    def __iter__(self) -> Iterator[Kernel | GaussianLadder]:
        return iter(self.kernels)

    def __getitem__(self, k: int) -> Kernel | GaussianLadder:
        return self.kernels[k]

    def __repr__(self) -> str:
        return f"KernelBank of {len(self)} kernels"

    def __deepcopy__(self, memo: dict) -> KernelBank:
        return self  # like the kernels it holds, a bank does not change


def bind_resolved(
    bound: list[BoundKernel],
    X: Any,
    weight: np.ndarray,
    *,
    normalize: str | None,
    center: bool,
    budget: int,
    storage: str,
    precision: str,
    reserve: int = 0,
    device: str = "cpu",
    comes_back: bool = False,
    check: str = "quick",
) -> BoundBank:
    """Check kernels whose columns are known, learn how to normalize them, and store them."""
    check_positive_semidefinite(bound, X, check)
    normalization = _learn(bound, X, kind=normalize, center=center, sample_weight=weight)
    if not normalization.fits_single:
        precision = "double"
    if device != "cpu":
        on_device = _bind_device(Device(device), bound, X, normalization, weight, storage, precision, comes_back)
        if on_device is not None:
            return on_device
    storages, room = plan_storages(
        bound, X, normalization, weight, budget=budget, storage=storage, dtype=PRECISIONS[precision], reserve=reserve
    )
    bank = BoundBank(bound, X, normalization, weight, storages, precision, room)
    if storage != "rows":
        return bank
    held = sum(part.nbytes for part in storages if isinstance(part, FactorStorage))
    return OnDemandBank(bank, budget - held)


def _bind_device(
    device: Device,
    bound: list[BoundKernel],
    X: Any,
    normalization: Normalization,
    weight: np.ndarray,
    storage: str,
    precision: str,
    comes_back: bool,
) -> DeviceBank | None:
    """Store the kernels on the device; None where it has no double precision, and that is needed."""
    if not device.has_double and (precision == "double" or normalization.means is not None):
        return None
    storages = plan_device(device, bound, X, normalization, weight, storage=storage, dtype=PRECISIONS[precision])
    kind = DeviceRowsBank if storage == "rows" else DeviceBank
    return kind(bound, X, normalization, weight, device, storages, precision, comes_back)


def report_zero_kernels(names: Sequence[str], scale: np.ndarray) -> None:
    """Warn of kernels that are zero on the training data; raise if all are."""
    zero = np.flatnonzero(scale == 0.0)
    if zero.size == len(names):
        raise ValueError("Every kernel is zero on the training data: there is nothing to learn from.")
    if zero.size:
        some = ", ".join(names[int(k)] for k in zero[:3]) + (", ..." if zero.size > 3 else "")
        warn(f"{zero.size} of {len(names)} kernels are zero on the training data and get weight 0: {some}")


def _learn(bound: Sequence[BoundKernel], X: Any, **options: Any) -> Normalization:
    return learn_normalization(bound, make_groups(bound), X, **options)


def _places(ladders: Sequence[GaussianLadder], table: Any) -> list[tuple[np.ndarray, str, str]]:
    """Return (positions, words for them, group) of each ladder."""
    names, places = column_names(table), []
    for ladder in ladders:
        positions = resolve_columns(ladder.columns, table)
        where = ladder.label or describe_columns(ladder.columns, positions, names, table.shape[1])
        places.append((positions, where, ladder.group or where))
    return places


def _resolve(kernels: Sequence[Kernel], table: Any) -> list[BoundKernel]:
    names, found, bound = column_names(table), {}, []
    for kernel in kernels:
        key = id(kernel.columns)  # kernels of one view share the object; equal ones are only resolved again
        if key not in found:
            positions = resolve_columns(kernel.columns, table)
            found[key] = positions, describe_columns(kernel.columns, positions, names, table.shape[1])
        positions, words = found[key]
        where = kernel.label or words
        bound.append(BoundKernel(kernel, positions, kernel.name(where), kernel.group or where))
    _warn_of_duplicates(bound)
    return bound


def _warn_of_duplicates(bound: Sequence[BoundKernel]) -> None:
    """Two equal kernels share their weight in an arbitrary way: worth a word, no error."""
    seen: dict[tuple, int] = {}
    for k, entry in enumerate(bound):
        if isinstance(entry.kernel, Precomputed):
            key: tuple = (entry.kernel.K.shape, entry.kernel.K.dtype, entry.kernel.look.mark)
        else:
            own = {n: v for n, v in entry.kernel.parameters().items() if n not in ("columns", "group", "label")}
            values = tuple(np.asarray(v).tobytes() if isinstance(v, np.ndarray) else repr(v) for v in own.values())
            key = (type(entry.kernel), tuple(own), values, entry.positions.tobytes())
        if key in seen and _are_equal(bound[seen[key]].kernel, entry.kernel):
            warn(f"Kernels {seen[key]} and {k} are the same ({entry.name}): how they share weight is arbitrary.")
            return
        seen[key] = k


def _are_equal(one: Kernel, other: Kernel) -> bool:
    """Return whether two kernels with the same key are the same: matrices have but a short mark."""
    matrices = [kernel.K for kernel in (one, other) if isinstance(kernel, Precomputed)]
    return len(matrices) < 2 or matrices[0] is matrices[1] or np.array_equal(matrices[0], matrices[1])
