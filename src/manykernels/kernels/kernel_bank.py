"""A finite set of kernels, as described; :func:`manykernels.banks.bind` makes a bank of it that knows training data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from manykernels.compute.threads import n_threads, one_blas_thread, parallel
from manykernels.core.notices import warn
from manykernels.kernels.base import Gaussian, Kernel
from manykernels.kernels.columns import column_names, describe_columns, resolve_columns
from manykernels.kernels.ladder import GaussianLadder
from manykernels.kernels.missing import check_views, has_gaps
from manykernels.kernels.precomputed import Precomputed
from manykernels.kernels.shared_distances import BoundKernel

# Matrices that one thread looks at together, at most.
_AT_ONCE = 8


class KernelBank:
    """A list of kernels to learn from.

    Parameters
    ----------
    kernels : iterable of Kernel, GaussianLadder or KernelBank
        A ladder counts as many kernels as it has widths; plain kernels come first in a bank's order.
    standardize : bool, default False
        The kernels are meant for columns of mean 0 and variance 1: estimators learn location and scale of each column
        on the training data and take them off, as a StandardScaler in front would. ``kernels="standard"`` does.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank, Linear
    >>> kernels = KernelBank([Linear(columns=[0]), Gaussian(1.0), Gaussian(2.0)])
    >>> len(kernels)
    3
    >>> bank = bind(kernels, np.random.default_rng(0).normal(size=(20, 3)))
    >>> bank.names
    ['Linear on x0', 'Gaussian(width=1) on all features', 'Gaussian(width=2) on all features']
    >>> bank.combine(np.array([0.0, 0.5, 0.5])).array.shape
    (20, 20)
    """

    def __init__(self, kernels: Iterable[Kernel | GaussianLadder | KernelBank], *, standardize: bool = False) -> None:
        if isinstance(kernels, (Kernel, str)) or not isinstance(kernels, Iterable):
            raise TypeError(f"kernels must be a list of kernels, got {kernels!r}.")
        self.standardize: bool = standardize
        flat: list[Kernel | GaussianLadder] = []
        for entry in kernels:
            if isinstance(entry, KernelBank):
                entry.require_plain("A list of more kernels")
                if entry.standardize and not standardize:
                    raise ValueError("A bank with standardize=True needs a list with standardize=True.")
                flat += entry.kernels
            elif isinstance(entry, (Kernel, GaussianLadder)):
                flat.append(entry)
            else:
                raise TypeError(f"kernels must hold Kernel objects, got {entry!r} at place {len(flat)}.")
        if not flat:
            raise ValueError("kernels is empty: at least one kernel is needed.")
        self.kernels: list[Kernel | GaussianLadder] = flat

    @classmethod
    def of(cls, kernels: Any) -> KernelBank:
        """Return a bank as it is, and any other list of kernels as a bank.

        Examples
        --------
        >>> from manykernels.kernels import KernelBank, Linear
        >>> KernelBank.of([Linear()])
        KernelBank of 1 kernels
        """
        return kernels if isinstance(kernels, KernelBank) else cls(kernels)

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

        size = max(min(_AT_ONCE, -(-len(stack) // n_threads())), 1)

        def share(first: int) -> list[Precomputed]:
            piece = slice(first, first + size)
            return Precomputed.sharing(stack[piece], owners[piece], titles[piece])

        return cls(chain.from_iterable(parallel(share, range(0, len(stack), size))))

    @property
    def plain(self) -> list[Kernel]:
        """The kernels that stand for themselves alone."""
        return [kernel for kernel in self.kernels if isinstance(kernel, Kernel)]

    @property
    def ladders(self) -> list[GaussianLadder]:
        """The ladders, each of which stands for many kernels."""
        return [kernel for kernel in self.kernels if isinstance(kernel, GaussianLadder)]

    def hold(self, data: Any, recipe: Any, placement: Any) -> Any:
        """Return a bank of these kernels on training data, or None for one of the library's.

        It is for subclasses whose kernels have a form that is cheaper than matrices.

        Parameters
        ----------
        data : manykernels.banks.Data
        recipe : manykernels.banks.Recipe
        placement : manykernels.banks.Placement
            What a bank cannot do of recipe and placement is a reason to return None.
        """
        return None

    def require_plain(self, reader: str) -> None:
        """Raise TypeError if the list says how it is held (:meth:`hold`): ``reader`` holds kernels in another way."""
        if type(self).hold is not KernelBank.hold:
            raise TypeError(
                f"{reader} cannot hold kernels as {type(self).__name__}.hold would: pass list(kernels), a plain list."
            )

    def resolve(self, table: Any) -> list[BoundKernel]:
        """Return the plain kernels with the columns that each sees in the table, and warn of duplicates."""
        return _resolve(self.plain, table)

    def ladder_places(self, table: Any) -> list[tuple[np.ndarray, str, str]]:
        """Return the columns that each ladder sees in the table, words for them, and its group."""
        names, places = column_names(table), []
        for ladder in self.ladders:
            positions = resolve_columns(ladder.columns, table)
            where = ladder.label or describe_columns(ladder.columns, positions, names, table.shape[1])
            places.append((positions, where, ladder.group or where))
        return places

    def written_out(self) -> KernelBank:
        """Return the same kernels, each ladder as single Gaussians, in the order that a bank of them has.

        Examples
        --------
        >>> from manykernels.kernels import GaussianLadder, KernelBank, Linear
        >>> KernelBank([GaussianLadder(low=1.0, high=4.0, count=3), Linear()]).written_out().kernels
        [Linear(), Gaussian(width=1), Gaussian(width=2), Gaussian(width=4)]
        """
        steps = [Gaussian(w, each.columns, each.group, each.label) for each in self.ladders for w in each.widths]
        return KernelBank([*self.plain, *steps], standardize=self.standardize)

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


def _resolve(kernels: Sequence[Kernel], table: Any) -> list[BoundKernel]:
    names, resolved, bound = column_names(table), {}, []
    for kernel in kernels:
        key = id(kernel.columns)  # kernels of one view share the object; equal ones are only resolved again
        if key not in resolved:
            positions = resolve_columns(kernel.columns, table)
            resolved[key] = positions, describe_columns(kernel.columns, positions, names, table.shape[1])
        positions, words = resolved[key]
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
            parameters = {n: v for n, v in entry.kernel.parameters().items() if n not in ("columns", "group", "label")}
            values = tuple(
                np.asarray(v).tobytes() if isinstance(v, np.ndarray) else repr(v) for v in parameters.values()
            )
            key = (type(entry.kernel), tuple(parameters), values, entry.positions.tobytes())
        if key in seen and _are_equal(bound[seen[key]].kernel, entry.kernel):
            warn(f"Kernels {seen[key]} and {k} are the same ({entry.name}): how they share weight is arbitrary.")
            return
        seen[key] = k


def _are_equal(one: Kernel, other: Kernel) -> bool:
    """Return whether two kernels with the same key are the same: matrices have but a short mark."""
    matrices = [kernel.K for kernel in (one, other) if isinstance(kernel, Precomputed)]
    return len(matrices) < 2 or matrices[0] is matrices[1] or np.array_equal(matrices[0], matrices[1])
