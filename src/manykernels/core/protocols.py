"""What the layers ask of one another: the protocols that many classes follow, each described once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np


class Measured(Protocol):
    """The values of a machine that the size of its rounding errors depends on."""

    @property
    def beta(self) -> Any: ...
    @property
    def objective(self) -> float: ...


class CombinedKernel(Protocol):
    """The kernel for given weights, sum_k d_k K_k: made by ``bank.workspace()``, filled by ``bank.combine(d, out=K)``.

    ``can`` says what it can do, and may hold several of these:

    ========== ==============================================================================================
    "array"    ``array``, the matrix in double precision, which the bank overwrites
    "rows"     ``cache``, which computes rows when they are asked for
    "features" ``table``, ``columns`` and ``vectors(beta)``: K = Z diag(columns) Z'
    "block"    ``block(rows)`` and ``columns_product(columns, change)``, both quick, in addition to ``product``
    "sums"     ``plane``, ``losses_along`` and ``planes``: the samples are elsewhere, and only sums over them are sent
    ========== ==============================================================================================
    """

    @property
    def can(self) -> frozenset[str]: ...
    @property
    def n_samples(self) -> int: ...
    def product(self, beta: np.ndarray) -> np.ndarray:
        """Return K beta_t, shape (n_tasks, n_samples); not with "sums"."""

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, computed once for given weights; not with "sums"."""

    def rounding(self, machine: Measured, passed_on: Callable[[np.ndarray], float]) -> float:
        """Return about how far the rounding of kernel values moves the primal value of a machine."""


class Bank(Protocol):
    """Kernels bound to training data: what a problem and its solvers work with.

    ``can`` says what it can do at a cost that a solver can bear; a solver that needs more is refused before any work.
    """

    @property
    def can(self) -> frozenset[str]: ...
    @property
    def concurrent(self) -> bool:
        """Whether several problems may use it at once."""

    @property
    def names(self) -> Sequence[str]: ...
    @property
    def groups(self) -> Sequence[str]: ...
    @property
    def precision(self) -> str: ...
    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes that a fitted estimator has for this kind of bank in addition to those for all banks."""

    def importances(self, weights: np.ndarray, n_features: int) -> np.ndarray: ...
    @property
    def n_kernels(self) -> int: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def unit_roundoff(self) -> float: ...
    @property
    def coarse_size(self) -> int | None:
        """Samples of a problem that is solved for a first guess of the weights; None where the matrix is held."""

    @property
    def has_few_samples(self) -> bool:
        """Whether a matrix of all samples is smaller than what is held, so that solvers are quick with it."""

    @property
    def spare(self) -> int | None:
        """Bytes that a first guess may take in addition to the bank; None where they are not counted."""

    def tail_bytes(self, size: int) -> int: ...
    def workspace(self) -> Any: ...
    def combine(self, weights: np.ndarray, out: Any = None) -> Any: ...
    def quad_forms(self, beta: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray: ...
    def inner_products(self, M: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray: ...
    def matvecs(
        self, beta: np.ndarray, subset: np.ndarray | None = None, *, on_support: bool = False
    ) -> np.ndarray: ...
    def rows(self, indices: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray: ...
    def largest_diagonals(self, subset: np.ndarray) -> np.ndarray: ...
    def peaks(self, values: np.ndarray) -> np.ndarray: ...
    def diagonal(self, subset: np.ndarray | None = None) -> np.ndarray: ...
    def centered_squares(self, weight: np.ndarray) -> np.ndarray: ...
    def derivative_forms(self, weights: np.ndarray, beta: np.ndarray) -> np.ndarray: ...
    def subset(self, indices: np.ndarray) -> Bank: ...
    def tail(self, size: int) -> Bank: ...
    def kernel(self, weights: np.ndarray, keep: np.ndarray | None = None) -> Any:
        """Return the combined kernel as a function of any two samples."""

    def learned(self, weights: np.ndarray, machine: Any) -> Any:
        """Return what predictions need of a fit."""

    def untrusted(self, weights: np.ndarray) -> list[Any]:
        """Return the kernels with a positive weight that may not be positive semidefinite."""

    @property
    def placement(self) -> Any:
        """What became of the Placement that the kernels were bound with; None of a part of a bank."""

    def describe_storage(self) -> str: ...
