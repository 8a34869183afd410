"""What a kernel is, and the kernels that come with the library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import combinations_with_replacement
from math import comb, factorial, prod
from typing import Any

import numpy as np

from manykernels.compute.lowrank import pivoted_factor
from manykernels.compute.pairwise import dense, gaussian_rate, inner_products, row_square_norms, scaled_distances
from manykernels.compute.triangles import pack_rows
from manykernels.core.checks import check_count, check_number, is_number
from manykernels.core.constructors import HasParameters

_DIAGONAL_BLOCK = 64
# A polynomial of more monomials has no finite feature map worth its memory.
_MOST_MONOMIALS = 5000
# Squared distances of this ratio to a width still are numbers in float32.
_FAR_BELOW = 1e15


class Kernel(HasParameters, ABC):
    """A similarity of samples; subclass it to bring your own.

    A subclass stores its parameters under their own names and implements
    :meth:`compute`. The rest (columns, groups, names, normalization,
    storage) works by itself.

    Parameters
    ----------
    columns : None, int, str, slice, list or callable, default None
        The columns of X that the kernel sees; None is all of them.
    group : str or None, default None
        The group (view, omics layer, sensor) of the kernel; by default the
        words for its columns.
    label : str or None, default None
        Words for the columns in the kernel's name.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import cdist
    >>> from manykernels.kernels import Kernel
    >>> class Laplacian(Kernel):
    ...     def __init__(self, scale, columns=None, group=None, label=None):
    ...         super().__init__(columns, group, label)
    ...         self.scale = scale
    ...
    ...     def compute(self, X, Z):
    ...         return np.exp(-cdist(X, Z, "cityblock") / self.scale)
    >>> Laplacian(2.0, columns=[0, 1])
    Laplacian(scale=2, columns=[0, 1])
    >>> Laplacian(2.0).compute(np.zeros((1, 2)), np.zeros((2, 2)))
    array([[1., 1.]])
    """

    def __init__(self, columns: Any = None, group: str | None = None, label: str | None = None) -> None:
        self.columns = columns
        self.group = group
        self.label = label

    @abstractmethod
    def compute(self, X: Any, Z: Any) -> np.ndarray:
        """Return the kernel of the rows of X, shape (n, d), with those of Z, shape (l, d), as (n, l)."""

    def diagonal(self, X: Any) -> np.ndarray:
        """Return k(x_i, x_i) for the rows of X."""
        blocks = range(0, X.shape[0], _DIAGONAL_BLOCK)
        parts = [self.compute(X[i : i + _DIAGONAL_BLOCK], X[i : i + _DIAGONAL_BLOCK]).diagonal() for i in blocks]
        return np.concatenate(parts).astype(np.float64)

    def pack(self, X: Any, start: int, stop: int, out: np.ndarray) -> None:
        """Write the upper triangle's rows start:stop of compute(X, X) to ``out``, one after the other."""
        pack_rows(np.asarray(self.compute(X[start:stop], X[start:]), dtype=np.float64), out)

    def factor(self, X: Any) -> np.ndarray | None:
        """Return F of shape (n, r) with F F' = compute(X, X) when there is one of small rank r, else None."""
        return None

    def features(self, X: Any) -> np.ndarray | None:
        """Return phi(x_i) for the rows of X, shape (n, r), with phi(x)'phi(z) = k(x, z), if there is such a finite map.

        Unlike a factor, which may depend on all of X, it maps each row by itself: also one that comes later.
        """
        return None

    def low_rank_factor(self, X: Any, error: float, max_rank: int) -> np.ndarray | None:
        """Return F of shape (n, r), r <= max_rank, with no entry of F F' - compute(X, X) above ``error``, or None."""
        return None

    @property
    def trusted(self) -> bool:
        """Whether the kernel is positive semidefinite by construction, so that no check is needed."""
        return False

    @property
    def title(self) -> str:
        """The kernel's name without its columns, such as "Gaussian(width=2)"."""
        parameters = {k: v for k, v in self.parameters().items() if k not in ("columns", "group", "label")}
        shown = [f"{k}={short(v)}" for k, v in parameters.items() if not isinstance(v, np.ndarray)]
        return f"{type(self).__name__}({', '.join(shown)})" if shown else type(self).__name__

    def name(self, where: str) -> str:
        """Return the kernel's full name; ``where`` says in words which columns it sees."""
        return f"{self.title} on {where}"

    def __repr__(self) -> str:
        values = [f"{k}={short(v)}" for k, v in self.parameters().items() if v is not None]
        return f"{type(self).__name__}({', '.join(values)})"

    def __deepcopy__(self, memo: dict) -> Kernel:
        return self  # kernels do not change: scikit-learn's clone shares them, and precomputed matrices with them


def short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<array of shape {value.shape}>"
    return f"{value:.6g}" if is_number(value) else repr(value)


class ElementwiseKernel(Kernel):
    """A kernel that is a function of one number per pair: the inner product or the squared distance.

    Kernels on the same columns then share that number, and a bank computes it once.
    """

    base: str  # "inner", "distance", or "exact distance" where float32 would not do

    @abstractmethod
    def apply(self, base: np.ndarray, unit: float = 1.0) -> np.ndarray:
        """Turn an array of inner products or squared distances, of any shape, into kernel values in place.

        Distances are in units of ``unit``, their squares in those of ``unit**2``.
        """

    def compute(self, X: Any, Z: Any) -> np.ndarray:
        return self.apply(*base_matrix(self.base, X, Z))

    def needs_double(self, unit: float) -> bool:
        """Return whether squared distances in units of ``unit**2`` must not be rounded to float32."""
        return False

    @property
    def trusted(self) -> bool:
        return True


def base_matrix(base: str, X: Any, Z: Any) -> tuple[np.ndarray, float]:
    """Return the inner products ("inner") or squared distances ("distance", "exact distance") of the rows.

    With them comes the unit of the distances, a power of two; it is 1 for inner products.
    """
    X, Z = _floating(X), _floating(Z)
    return (inner_products(X, Z), 1.0) if base == "inner" else scaled_distances(X, Z)


def _floating(X: Any) -> Any:
    return X if getattr(X, "dtype", None) == np.float64 else X.astype(np.float64)


class Linear(ElementwiseKernel):
    """The inner product x'x'.

    Parameters
    ----------
    columns, group, label
        As for :class:`Kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Linear
    >>> Linear().compute(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    base = "inner"

    def apply(self, base: np.ndarray, unit: float = 1.0) -> np.ndarray:
        return base

    def diagonal(self, X: Any) -> np.ndarray:
        return row_square_norms(X)

    def factor(self, X: Any) -> np.ndarray | None:
        return self.features(X)

    def features(self, X: Any) -> np.ndarray:
        return dense(X).astype(np.float64)


class Polynomial(ElementwiseKernel):
    """The polynomial kernel (x'x' + coef0)^degree.

    Parameters
    ----------
    degree : int >= 1
    coef0 : float >= 0, default 1
    columns, group, label
        As for :class:`Kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Polynomial
    >>> Polynomial(2).compute(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    base = "inner"

    def __init__(
        self,
        degree: int,
        coef0: float = 1.0,
        columns: Any = None,
        group: str | None = None,
        label: str | None = None,
    ) -> None:
        super().__init__(columns, group, label)
        self.degree = check_count("degree", degree)
        self.coef0 = check_number("coef0", coef0, low=0, closed="left", more=" (else it is not a kernel)")

    def apply(self, base: np.ndarray, unit: float = 1.0) -> np.ndarray:
        if self.coef0:
            base += base.dtype.type(self.coef0)
        return _power(base, self.degree)

    def diagonal(self, X: Any) -> np.ndarray:
        return (row_square_norms(X) + self.coef0) ** self.degree

    def factor(self, X: Any) -> np.ndarray | None:
        return self.features(X) if X.shape[1] == 1 else None

    def features(self, X: Any) -> np.ndarray | None:
        """Return the monomials of the columns, scaled by the multinomial formula; None if they are very many."""
        columns = dense(X).astype(np.float64)
        if self.coef0 > 0:
            columns = np.column_stack([np.full(X.shape[0], np.sqrt(self.coef0)), columns])
        if comb(columns.shape[1] + self.degree - 1, self.degree) > _MOST_MONOMIALS:
            return None
        chosen = combinations_with_replacement(range(columns.shape[1]), self.degree)
        return np.column_stack([_monomial(columns, places) for places in chosen])

    @property
    def title(self) -> str:
        """The kernel's name without its columns; the usual coef0 = 1 is left out."""
        extra = "" if self.coef0 == 1 else f", coef0={short(self.coef0)}"
        return f"Polynomial(degree={self.degree}{extra})"


def _monomial(columns: np.ndarray, places: tuple[int, ...]) -> np.ndarray:
    """Return the product of the columns at these places times the root of its coefficient in a power of a sum."""
    counts = np.unique(places, return_counts=True)[1]
    coefficient = factorial(len(places)) / prod(factorial(int(count)) for count in counts)
    return np.sqrt(coefficient) * np.prod(columns[:, places], axis=1)


def _power(base: np.ndarray, degree: int) -> np.ndarray:
    """Raise to a whole power in place by products, which is several times faster than pow."""
    if degree == 1:
        return base
    factor = base.copy()
    for bit in bin(degree)[3:]:
        base *= base
        if bit == "1":
            base *= factor
    return base


class Gaussian(ElementwiseKernel):
    """The Gaussian kernel exp(-|x - x'|^2 / (2 width^2)).

    Parameters
    ----------
    width : float > 0
    columns, group, label
        As for :class:`Kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Gaussian
    >>> Gaussian(width=1.0).compute(np.array([[0.0]]), np.array([[0.0], [2.0]]))
    array([[1.        , 0.13533528]])
    """

    base = "distance"

    def __init__(self, width: float, columns: Any = None, group: str | None = None, label: str | None = None) -> None:
        super().__init__(columns, group, label)
        self.width = check_number("width", width, low=0)

    def apply(self, base: np.ndarray, unit: float = 1.0) -> np.ndarray:
        rate = gaussian_rate(self.width, unit)
        if rate > 1.0:  # else nothing can overflow, and blocks are many and small
            with np.errstate(over="ignore"):
                base *= base.dtype.type(-rate)
        else:
            base *= base.dtype.type(-rate)
        return np.exp(base, out=base)

    def needs_double(self, unit: float) -> bool:
        """Return whether the width is so small beside the unit that float32 has no numbers for such distances."""
        return unit > _FAR_BELOW * self.width

    def diagonal(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0])

    def low_rank_factor(self, X: Any, error: float, max_rank: int) -> np.ndarray | None:
        """Return a factor of a single column: its rank is about the range of the values over the width."""
        if X.shape[1] != 1:
            return None
        values, place = np.unique(dense(X)[:, 0].astype(np.float64), return_inverse=True)

        def column(i: int) -> np.ndarray:
            D, unit = scaled_distances(values[:, None], values[i : i + 1, None])
            return self.apply(D[:, 0], unit)

        factor = pivoted_factor(column, np.ones(values.size), error, max_rank)
        return None if factor is None else factor[place.ravel()]


class Dirichlet(ElementwiseKernel):
    """The Dirichlet kernel of degree one, 1 + 2 cos(frequency |x - x'|).

    It is positive semidefinite on a single column; on several columns it need not be, and a fit checks.

    Parameters
    ----------
    frequency : float >= 0
    columns, group, label
        As for :class:`Kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Dirichlet
    >>> Dirichlet(frequency=np.pi).compute(np.array([[0.0]]), np.array([[0.0], [1.0]]))
    array([[ 3., -1.]])
    """

    base = "exact distance"  # the cosine of a large phase needs all digits

    def __init__(
        self, frequency: float, columns: Any = None, group: str | None = None, label: str | None = None
    ) -> None:
        super().__init__(columns, group, label)
        self.frequency = check_number("frequency", frequency, low=0, closed="left")

    def apply(self, base: np.ndarray, unit: float = 1.0) -> np.ndarray:
        np.sqrt(base, out=base)
        base *= base.dtype.type(self.frequency * unit)
        np.cos(base, out=base)
        base *= 2
        base += 1
        return base

    def diagonal(self, X: Any) -> np.ndarray:
        return np.full(X.shape[0], 3.0)

    def factor(self, X: Any) -> np.ndarray | None:
        """Return the waves of a single column around its first value: only differences count, and are exact."""
        return self.features(X - dense(X)[:1]) if X.shape[1] == 1 and X.shape[0] else None

    def features(self, X: Any) -> np.ndarray | None:
        """Return the waves 1, sqrt(2) cos, sqrt(2) sin of a single column."""
        if X.shape[1] != 1:
            return None
        phase = self.frequency * dense(X)[:, 0].astype(np.float64)
        return np.column_stack([np.ones_like(phase), np.sqrt(2) * np.cos(phase), np.sqrt(2) * np.sin(phase)])

    @property
    def trusted(self) -> bool:
        """False: on several columns the kernel can be indefinite."""
        return False
