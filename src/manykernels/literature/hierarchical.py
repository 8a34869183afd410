"""Hierarchical MKL on the lattice of products: a product is used only with all its divisors (Bach, 2008).

    minimize over w   1/2 (sum_v d_v ||w_D(v)||)^2 + sum_i C_i loss(y_i, sum_v <w_v, phi_v(x_i)> + b)

D(v) are the products that v divides, including v, and d_v grows with the degree. With eta >= 0 and
sum_v d_v^2 eta_v <= 1, the kernel is sum_v zeta_v K_v, 1 / zeta_v = sum over the divisors u of v of 1 / eta_u, and the
best eta for given w is eta_v proportional to ||w_D(v)|| / d_v: an alternation with the machine. It runs on an active
set that holds all divisors of its products; products whose divisors are all in it join while their quadratic form
exceeds d^2 beta' K beta.
"""

from __future__ import annotations

import time
from typing import cast

import numpy as np

from manykernels.banks.collection import Collection
from manykernels.compute.threads import one_blas_thread
from manykernels.core.progress import emit
from manykernels.core.results import UNKNOWN, Certificate, Machine, Result, Step
from manykernels.core.solver import check_offers
from manykernels.kernels.family import NEEDS_LATTICE, BoundFamily, LatticeFamily
from manykernels.losses import Loss
from manykernels.norms import LpNorm
from manykernels.outer.family import FamilyProblem, FamilyResult, outer_products

_ROUNDS, _STILL = 50, 1e-3


def hierarchical(
    family: BoundFamily,
    loss: Loss,
    y: np.ndarray,
    C: np.ndarray,
    *,
    fit_intercept: bool = True,
    growth: float = 2.0,
    tol: float = 1e-2,
    max_kernels: int = 100,
) -> FamilyResult:
    """Grow the active set until no product beyond it is worth its price.

    Parameters
    ----------
    family : BoundFamily
        One that offers "lattice": products.
    loss : Loss
    y, C : ndarrays of shape (n_tasks, n_samples)
    fit_intercept : bool
    growth : float
        d_v is this to the power of the degree.
    tol : float
        Products join while their quadratic form exceeds the price by this share.
    max_kernels : int
        The largest size of the active set.

    Returns
    -------
    FamilyResult
        Without a dual value.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind_family
    >>> from manykernels.kernels import Linear, ProductKernels
    >>> from manykernels.losses import Squared
    >>> from manykernels.literature.hierarchical import hierarchical
    >>> X = np.random.default_rng(0).normal(size=(80, 4))
    >>> family = bind_family(ProductKernels([Linear(columns=[j]) for j in range(4)], degree=2), X)
    >>> y = X[:, 0] + X[:, 1] + X[:, 0] * X[:, 1]
    >>> result = hierarchical(family, Squared(), y[None], np.full((1, 80), 10.0))
    >>> {"x0", "x1", "x0 * x1"} <= set(result.bank.names)
    True
    """
    with one_blas_thread():
        return _Lattice(FamilyProblem(family, loss, LpNorm(1), y, C, fit_intercept), growth).run(tol, max_kernels)


class _Lattice:
    def __init__(self, problem: FamilyProblem, growth: float) -> None:
        check_offers("hierarchical", frozenset({NEEDS_LATTICE}), problem.can)
        self.problem, self.growth = problem, growth
        self.family = cast(LatticeFamily, problem.family)
        self.collection = Collection(problem.family)
        self._K = self.collection.workspace()
        self.machine: Machine = problem.first_machine()
        self.keys: list[tuple[int, ...]] = []
        self.eta = np.zeros(0)
        self.trace: list[Step] = []
        self.n_solves = 0
        self._started = time.perf_counter()

    def run(self, tol: float, max_kernels: int) -> FamilyResult:
        """Add the sources that are worth their price and learn, until none is."""
        self._add([(j,) for j in range(self.family.n_factors)], -np.inf, max_kernels)
        self._learn()
        while len(self.keys) < max_kernels:
            price = float(np.sum(self.machine.beta * self.machine.decision)) * (1.0 + tol)
            if not self._add(self._sources(), price, max_kernels):
                break
            self._learn()
        return self._result()

    def _sources(self) -> list[tuple[int, ...]]:
        """Return the products outside the active set whose divisors are all in it."""
        inside, products = set(self.keys), set()
        for key in self.keys:
            if len(key) < self.family.degree:
                products |= {tuple(sorted((*key, j))) for j in range(self.family.n_factors)}
        return [key for key in sorted(products - inside) if all(parent in inside for parent in _parents(key))]

    def _add(self, candidates: list[tuple[int, ...]], price: float, max_kernels: int) -> bool:
        """Take in the candidates with the largest ratio of quadratic form to price; return whether there were any."""
        M = outer_products(self.machine.beta)
        members = [self.family.member(key) for key in candidates]
        costs = np.array([self._price(key) for key in candidates])
        values = np.array([self.family.value(M, member) for member in members]) / costs**2
        room = max_kernels - len(self.keys)
        count = room if price == -np.inf else min(room, max(1, len(self.keys) // 4))
        chosen = [k for k in np.argsort(-values)[:count] if values[k] > price]
        for k in chosen:
            self.collection.place(members[k])
            self.keys.append(candidates[k])
        start = self.eta.mean() if self.eta.size else 1.0
        self.eta = self._scaled(np.r_[self.eta, np.full(len(chosen), start)])
        return bool(chosen)

    def _price(self, key: tuple[int, ...]) -> float:
        return self.growth ** len(key)

    def _scaled(self, eta: np.ndarray) -> np.ndarray:
        prices = np.array([self._price(key) for key in self.keys])
        return eta / max(float(prices**2 @ eta), 1e-300)

    def _learn(self) -> None:
        """Alternate between the machine and eta until the objective no longer changes."""
        bank = self.collection.bank()
        problem = self.problem.restricted(bank)
        divides = np.array([[_divides(u, v) for v in self.keys] for u in self.keys], dtype=float)
        prices = np.array([self._price(key) for key in self.keys])
        last = np.inf
        for _ in range(_ROUNDS):
            zeta = self._zeta(divides)
            self.machine = problem.solve(bank.combine(zeta, out=self._K), self.machine, 1e-4)
            self.n_solves += 1
            objective = self.machine.objective
            if last - objective <= _STILL * abs(objective):
                break
            last = objective
            norms = np.sqrt(divides @ (zeta**2 * problem.quad_forms(self.machine)))
            self.eta = self._scaled(np.maximum(norms / prices, 1e-12 * norms.max()))
        seconds = time.perf_counter() - self._started
        self.trace.append(Step(len(self.trace) + 1, seconds, objective, np.nan, len(self.keys), 0.0))
        emit(self.trace[-1])

    def _zeta(self, divides: np.ndarray) -> np.ndarray:
        return 1.0 / (divides.T @ (1.0 / self.eta))

    def _result(self) -> FamilyResult:
        divides = np.array([[_divides(u, v) for v in self.keys] for u in self.keys], dtype=float)
        zeta, bank = self._zeta(divides), self.collection.bank()
        problem = self.problem.restricted(bank)
        self.machine = problem.solve(bank.combine(zeta, out=self._K), self.machine, 1e-5)
        primal = self.machine.objective
        return FamilyResult(
            bank,
            Result(
                weights=zeta,
                machine=self.machine,
                certificate=Certificate(primal, UNKNOWN),
                converged=True,
                n_iter=len(self.trace),
                n_inner_solves=self.n_solves + 1,
                rounding=0.0,
                exact=False,
                trace=self.trace,
            ),
        )


def _parents(key: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the products with one factor fewer."""
    return [key[:i] + key[i + 1 :] for i in range(len(key)) if len(key) > 1]


def _divides(u: tuple[int, ...], v: tuple[int, ...]) -> bool:
    return all(u.count(j) <= v.count(j) for j in set(u))
