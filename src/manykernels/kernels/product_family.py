"""Products of base kernels up to a degree: exponentially many kernels, never listed.

The sum over all products of d kernels, in any order, is a Hadamard power: (K_1 + ... + K_r)^d = S^d. So the sum of the
values <M, K> of all completions of a partial product P is <M, P o S^e>. That draws a product in proportion to its
value, factor by factor, and bounds what a partial product can still become.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement
from math import comb, factorial, prod
from typing import Any

import numpy as np

from manykernels.core.checks import check_choice, check_count
from manykernels.core.protocols import ExplicitBank
from manykernels.kernels.base import Kernel
from manykernels.kernels.family import (
    DRAWS,
    NEEDS_LATTICE,
    Best,
    BoundFamily,
    Draw,
    Family,
    Member,
)
from manykernels.kernels.kernel_bank import KernelBank
from manykernels.kernels.shared_distances import BoundKernel

_BEAM = 8
# Families that are smaller are listed where a norm of all values is asked for.
_FEW = 2000


class KernelProduct(Kernel):
    """The product of kernels, each on its own columns.

    Parameters
    ----------
    kernels : list of Kernel
    places : list of lists of int
        For each kernel its columns among those that the product sees.
    columns, group, label
        As for :class:`Kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Gaussian, Linear
    >>> from manykernels.kernels.product_family import KernelProduct
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0]])
    >>> KernelProduct([Linear(), Gaussian(1.0)], [[0], [1]]).compute(X, X)
    array([[1., 2.],
           [2., 4.]])
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        places: Sequence[Sequence[int]],
        columns: Any = None,
        group: str | None = None,
        label: str | None = None,
    ) -> None:
        super().__init__(columns, group, label)
        self.kernels, self.places = list(kernels), [list(columns_of) for columns_of in places]

    def compute(self, X: Any, Z: Any) -> np.ndarray:
        out = np.ones((X.shape[0], Z.shape[0]))
        for (kernel, columns), power in self._powers().items():
            out *= kernel.compute(X[:, list(columns)], Z[:, list(columns)]) ** power
        return out

    def diagonal(self, X: Any) -> np.ndarray:
        out = np.ones(X.shape[0])
        for (kernel, columns), power in self._powers().items():
            out *= kernel.diagonal(X[:, list(columns)]) ** power
        return out

    def factor(self, X: Any) -> np.ndarray | None:
        """Return the products of the columns of all factors: of small rank if all of theirs are."""
        out = np.ones((X.shape[0], 1))
        for kernel, columns in zip(self.kernels, self.places, strict=True):
            factor = kernel.factor(X[:, columns])
            if factor is None or out.shape[1] * factor.shape[1] > X.shape[0]:
                return None
            out = (out[:, :, None] * factor[:, None, :]).reshape(X.shape[0], -1)
        return out

    def _powers(self) -> Counter:
        return Counter((kernel, tuple(columns)) for kernel, columns in zip(self.kernels, self.places, strict=True))

    @property
    def trusted(self) -> bool:
        """Whether all factors are."""
        return all(kernel.trusted for kernel in self.kernels)

    def name(self, where: str) -> str:
        """Return the label, which says it all, if there is one."""
        return self.label or super().name(where)


class ProductKernels(Family):
    """All products of up to ``degree`` of the base kernels, repetitions included.

    There are sum_d binomial(r + d - 1, d) of them for r base kernels; none is computed before it is needed.

    Parameters
    ----------
    base : list of Kernel or KernelBank
        Linear kernels of single features make monomials.
    degree : int >= 1
    prior : sequence of float or "even", optional
        rho_d^2 of the degrees d = 1, ..., ``degree``: kernels of degree d are divided by it, so that a larger one makes
        them rarer. "even" is the number of products of that degree divided by the number of base kernels: no degree has
        more weight than another only because it has more products. Default: all 1.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKLRegressor
    >>> from manykernels.kernels import Linear, ProductKernels
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> y = X[:, 0] * X[:, 3]
    >>> family = ProductKernels([Linear(columns=[j]) for j in range(6)], degree=3)
    >>> len(family)
    83
    >>> model = MKLRegressor(family, C=100.0).fit(X, y)
    >>> model.kernel_names_[int(model.weights_.argmax())]
    'x0 * x3'
    """

    can = Family.can | {NEEDS_LATTICE}

    def __init__(self, base: Any, degree: int, prior: Sequence[float] | str | None = None) -> None:
        self.degree = check_count("degree", degree)
        self.base = (base if isinstance(base, KernelBank) else KernelBank(base)).written_out()
        self.standardize = self.base.standardize
        self.prior = self._checked(prior)

    def _checked(self, prior: Any) -> np.ndarray:
        if prior is None:
            return np.ones(self.degree)
        if isinstance(prior, str) and prior == "even":
            return np.array(_counts(len(self.base), self.degree), dtype=float) / len(self.base)
        try:
            values = np.asarray(prior, dtype=float)
        except (TypeError, ValueError):
            values = np.zeros(0)
        if values.shape != (self.degree,) or not np.all((values > 0) & np.isfinite(values)):
            raise ValueError(
                f"prior must be 'even' or hold {self.degree} positive numbers, one for each degree, got {prior!r}."
            )
        return values

    def __len__(self) -> int:
        return sum(_counts(len(self.base), self.degree))

    def __repr__(self) -> str:
        return f"ProductKernels({len(self.base)} kernels, degree={self.degree}): {len(self):.3g} kernels"

    def search_bytes(self, n_samples: int) -> int:
        """Return the bytes for the powers of the sum, and for partial products of a search, old and new."""
        return (self.degree + 1 + 2 * _BEAM) * 8 * n_samples**2

    def on(
        self, X: Any, table: Any, weight: np.ndarray, normalize: str | None, budget: int, base: Any = None
    ) -> BoundProducts:
        """Return the products of the base kernels, each of which is normalized; they are taken as they are."""
        return BoundProducts(base, self.prior)


class BoundProducts(BoundFamily):
    """Products of kernels bound to training data."""

    can = ProductKernels.can

    def __init__(self, base: ExplicitBank, prior: np.ndarray) -> None:
        self.base, self.prior, self.degree = base, prior, prior.size
        self.X, self.sample_weight = base.X, base.sample_weight
        S = base.combine(np.ones(base.n_kernels)).array
        self._powers = [np.ones_like(S)]
        for _ in range(self.degree):
            self._powers.append(self._powers[-1] * S)

    def __len__(self) -> int:
        return sum(_counts(self.base.n_kernels, self.degree))

    @property
    def n_factors(self) -> int:
        """The number of base kernels."""
        return self.base.n_kernels

    def sums(self, M: np.ndarray) -> np.ndarray:
        """Return for each degree the sum of <M, K> over all products in any order, divided by the prior."""
        return np.array([np.vdot(M, power) for power in self._powers[1:]]) / self.prior

    def sample(self, M: np.ndarray, rng: np.random.Generator, how: str = "gradient") -> Draw:
        """Draw a product: in proportion to its value times the number of its orders, or uniformly.

        The probability is that of the product in any order.
        """
        check_choice("how", how, DRAWS)
        sums = np.maximum(self.sums(M), 0.0) if how == "gradient" else np.zeros(1)
        if not np.any(sums):
            return self._uniform(M, rng)  # asked for, or there is nothing to tell kernels apart by
        d = 1 + _drawn(sums, rng)
        A, value, indices = M, 0.0, []
        for left in range(d - 1, -1, -1):
            values = np.maximum(self.base.inner_products(A * self._powers[left]), 0.0)
            j = _drawn(values, rng)
            indices.append(j)
            value = float(values[j])
            if left:
                A = A * self.base.matrix(j)
        member = self.member(tuple(indices))
        value /= self.prior[d - 1]
        return Draw(member, value, orders(member.key) * value / float(sums.sum()))

    def _uniform(self, M: np.ndarray, rng: np.random.Generator) -> Draw:
        r = self.base.n_kernels
        counts = np.array(_counts(r, self.degree), dtype=float)
        d = 1 + _drawn(counts, rng)
        # A choice of d out of r + d - 1 places stands for one of d out of r with repetitions.
        places = np.sort(rng.choice(r + d - 1, size=d, replace=False)) - np.arange(d)
        member = self.member(tuple(int(j) for j in places))
        return Draw(member, self.value(M, member), 1.0 / float(counts.sum()))

    def best(self, M: np.ndarray, definite: bool = True) -> Best:
        """Search by beam: at each degree the most promising partial products are kept.

        No product that was never built exceeds the largest bound of the partial ones that were dropped: the sum over
        all that they can become, of which none is negative if M is definite. If it is not, nothing is known, unless
        none was dropped.
        """
        best: Best | None = None
        beam: list[tuple[tuple[int, ...], np.ndarray]] = [((), M)]
        dropped = -np.inf
        for d in range(1, self.degree + 1):
            options: dict[tuple[int, ...], tuple[float, float, int]] = {}
            for b, (indices, A) in enumerate(beam):
                values = self.base.inner_products(A) / self.prior[d - 1]
                bounds = self._bounds(A, d)
                order = np.argsort(-np.maximum(values, bounds))
                for j in (*order[: 4 * _BEAM], np.argmax(values)):
                    key = tuple(sorted((*indices, int(j))))
                    options.setdefault(key, (float(values[j]), float(bounds[j]), b))
                if d < self.degree:
                    dropped = max(dropped, float(bounds[order[4 * _BEAM :]].max(initial=-np.inf)))
            key = max(options, key=lambda option: options[option][0])
            if best is None or options[key][0] > best.value:
                best = Best(self.member(key), options[key][0], np.inf)
            ranked = sorted(options, key=lambda option: -options[option][1])
            if d < self.degree:
                dropped = max([dropped, *(options[option][1] for option in ranked[_BEAM:])])
                beam = [(option, self._extended(beam[options[option][2]], option)) for option in ranked[:_BEAM]]
        assert best is not None
        return best._replace(bound=max(best.value, dropped if definite or dropped == -np.inf else np.inf))

    def _bounds(self, A: np.ndarray, d: int) -> np.ndarray:
        """Return for each further factor what the products that go on after degree d do not exceed."""
        bounds = np.zeros(self.base.n_kernels)
        for more in range(1, self.degree - d + 1):
            sums = self.base.inner_products(A * self._powers[more]) / self.prior[d + more - 1]
            bounds = np.maximum(bounds, sums)
        return bounds

    def _extended(self, partial: tuple[tuple[int, ...], np.ndarray], key: tuple[int, ...]) -> np.ndarray:
        (new,) = (Counter(key) - Counter(partial[0])).elements()
        return partial[1] * self.base.matrix(new)

    def norm_bound(self, M: np.ndarray) -> tuple[float, bool]:
        """Return the 2-norm of all values where they are few, else the root of the largest times their sum."""
        if len(self) <= _FEW:
            return float(np.sqrt(self._squares(M, 0, 1))), True
        return float(np.sqrt(self.best(M).bound * self.sums(M).sum())), False

    def _squares(self, A: np.ndarray, first: int, d: int) -> float:
        """Return the sum of the squared values of all products that go on with factors from ``first`` on."""
        values = self.base.inner_products(A)[first:] / self.prior[d - 1]
        total = float(values @ values)
        if d < self.degree:
            total += sum(self._squares(A * self.base.matrix(j), j, d + 1) for j in range(first, self.base.n_kernels))
        return total

    def every(self) -> list[Member]:
        """Return all products: for small families."""
        indices = range(self.base.n_kernels)
        return [
            self.member(key) for d in range(1, self.degree + 1) for key in combinations_with_replacement(indices, d)
        ]

    def value(self, M: np.ndarray, member: Member) -> float:
        """Return <M, K>."""
        A = M
        for j in member.key[:-1]:  # type: ignore[index]
            A = A * self.base.matrix(j)
        last = np.array([member.key[-1]])  # type: ignore[index]
        return float(self.base.inner_products(A, last)[0]) / self.prior[len(member.key) - 1]  # type: ignore[arg-type]

    def member(self, indices: tuple[int, ...]) -> Member:
        """Return the product of base kernels, in whatever order they are given."""
        key = tuple(sorted(indices))
        factors = [self.base.bound[j] for j in key]
        positions = np.unique(np.concatenate([entry.positions for entry in factors]))
        places = [np.searchsorted(positions, entry.positions).tolist() for entry in factors]
        kernel = KernelProduct([entry.kernel for entry in factors], places)
        kernel.columns, kernel.label = positions.tolist(), product_name(factors)
        scale = prod(float(self.base.scale[j]) for j in key) / float(self.prior[len(key) - 1])
        group = " * ".join(dict.fromkeys(entry.group for entry in factors))
        return Member(key, BoundKernel(kernel, positions, product_name(factors), group), scale)


def _counts(r: int, degree: int) -> list[int]:
    """Return how many products of 1, ..., ``degree`` out of r kernels there are."""
    return [comb(r + d - 1, d) for d in range(1, degree + 1)]


def product_name(factors: Sequence[BoundKernel]) -> str:
    """Return the name of a product: "age * income" for linear kernels of columns, "x0^2" for a repeated one."""
    words = Counter(entry.name.removeprefix("Linear on ") for entry in factors)
    return " * ".join(word if count == 1 else f"{word}^{count}" for word, count in words.items())


def orders(key: Any) -> int:
    """Return in how many orders the factors of a product can be written.

    Examples
    --------
    >>> from manykernels.kernels.product_family import orders
    >>> orders((1, 1, 2))
    3
    """
    return factorial(len(key)) // prod(factorial(count) for count in Counter(key).values())


def _drawn(weights: np.ndarray, rng: np.random.Generator) -> int:
    """Return a place drawn in proportion to non-negative weights; any if all are 0."""
    total = float(weights.sum())
    if total <= 0.0:
        return int(rng.integers(weights.size))
    return int(np.searchsorted(np.cumsum(weights), rng.random() * total, side="right").clip(0, weights.size - 1))
