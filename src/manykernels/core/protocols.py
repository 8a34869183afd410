"""What the layers ask of one another: the protocols that many classes follow, each described once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np


class Measured(Protocol):
    """The values of a machine that the size of its rounding errors depends on."""

    @property
    def beta(self) -> Any: ...
    @property
    def objective(self) -> float: ...


class WeightedSum(Protocol):
    """The kernel for given weights, sum_k d_k K_k: made by ``bank.workspace()``, filled by ``bank.combine(d, out=K)``.

    ``can`` says what it can do, and may hold several of these:

    ========== ===================================== ===============================================================
    "array"    :class:`ArrayKernel`                  a matrix
    "rows"     :class:`RowsKernel`                   rows are computed when they are asked for
    "features" :class:`FeaturesKernel`               K = Z diag(columns) Z'
    "block"    :class:`BlockKernel`                  blocks and products with few columns are quick
    "sums"     :class:`SumsKernel`                   the samples are elsewhere, and only sums over them are sent
    ========== ===================================== ===============================================================

    All but the last are a :class:`CombinedKernel`.
    """

    @property
    def can(self) -> frozenset[str]: ...
    @property
    def n_samples(self) -> int: ...
    def rounding(self, machine: Measured, passed_on: Callable[[np.ndarray], float]) -> float:
        """Return about how far the rounding of kernel values moves the primal value of a machine."""


class CombinedKernel(WeightedSum, Protocol):
    """A combined kernel of samples that are here: it has products with coefficients."""

    def product(self, beta: np.ndarray) -> np.ndarray:
        """Return K beta_t, shape (n_tasks, n_samples)."""

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, computed once for given weights."""


class ArrayKernel(CombinedKernel, Protocol):
    """A combined kernel that is a matrix in double precision, which the bank overwrites."""

    @property
    def array(self) -> np.ndarray: ...


class RowsKernel(CombinedKernel, Protocol):
    """A combined kernel whose rows are computed when they are asked for, on the columns that are asked for."""

    @property
    def cache(self) -> Any:
        """What computes them and remembers some, a :class:`manykernels.compute.rowcache.RowCache`."""


class Features(Protocol):
    """Rows of features Z, wherever they are: products with them add up in double precision.

    ``blocks`` and ``block`` are asked where the combined kernel has no quick blocks of its own.
    """

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """The first row of each block, and the one after its last."""

    def block(self, low: int, high: int) -> np.ndarray: ...
    def times(self, vectors: np.ndarray) -> np.ndarray:
        """Return Z v_t, shape (n_tasks, n_rows)."""

    def transposed_times(self, vectors: np.ndarray) -> np.ndarray:
        """Return Z' v_t, shape (n_tasks, n_columns)."""

    def squares_times(self, vectors: np.ndarray) -> np.ndarray:
        """Return (Z * Z)' v_t, shape (n_tasks, n_columns)."""

    def can_factor(self, n_columns: int) -> bool:
        """Return whether there is room to factor a matrix of so many columns."""

    def factors_quickly(self, n_columns: int) -> bool:
        """Return whether there is, and it takes no longer than a few passes."""

    def bordered_solver(
        self, curvature: np.ndarray, factors: np.ndarray, intercept: bool
    ) -> Callable[[np.ndarray], np.ndarray]: ...


class FeaturesKernel(CombinedKernel, Protocol):
    """A combined kernel that is made of features, K = Z diag(columns) Z'."""

    @property
    def table(self) -> Features: ...
    @property
    def columns(self) -> np.ndarray:
        """The factor of each feature, shape (n_columns,)."""

    @property
    def failures(self) -> Counter[int]:
        """For each task, how often the solver that is tried first has proved slow: solvers count it up and down."""

    def vectors(self, beta: np.ndarray) -> np.ndarray:
        """Return Z' beta_t, shape (n_tasks, n_columns)."""


class BlockKernel(CombinedKernel, Protocol):
    """A combined kernel of which blocks, and products with few of its columns, are quick."""

    @property
    def unit_roundoff(self) -> float:
        """Relative error of its values."""

    def block(self, rows: np.ndarray) -> np.ndarray:
        """Return K[rows, rows]."""

    def columns_product(self, columns: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Return K[:, columns] @ change, shape (n_samples,)."""


class SumsKernel(WeightedSum, Protocol):
    """A combined kernel of features of samples that are elsewhere, of which only sums are sent."""

    @property
    def columns(self) -> np.ndarray:
        """The factor of each feature, shape (n_columns,)."""

    @property
    def unit(self) -> float:
        """The size of the targets."""

    @property
    def planes(self) -> dict[int, Any]:
        """What the bundle method knows of each task: it holds whatever the factors are."""

    def plane(self, task: int, u: np.ndarray, b: float, loss: Any) -> list[np.ndarray]:
        """Return minus the conjugates, the sum and Z' beta of each block, for the slopes of the loss at Z u + b."""

    def losses_along(
        self, task: int, u: np.ndarray, du: np.ndarray, intercepts: np.ndarray, lengths: np.ndarray, loss: Any
    ) -> np.ndarray:
        """Return the losses of the predictions Z (u + length du) + intercept, for pairs of the two."""


class Bank(Protocol):
    """Kernels bound to training data: what a problem and its solvers work with.

    ``can`` says what it can do at a cost that a solver can bear, by the names of the methods between ``quad_forms`` and
    ``tail``, "combine" and "coefficients", which says that dual coefficients are arrays; a solver that needs more is
    refused before any work. All else is asked of every bank.
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
    def X(self) -> Any:
        """The training data, of which a check of the learned kernel takes rows."""

    @property
    def scale(self) -> np.ndarray:
        """The factor by which each kernel was normalized: 0 for one that is zero on the training data."""

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

    def coarse(self, size: int, y: np.ndarray, C: np.ndarray) -> tuple[Bank, np.ndarray, np.ndarray]:
        """Return the kernels on so many samples, with their targets and costs, wherever ``coarse_size`` is not None.

        ``y`` and ``C`` are those of all samples, of shape (n_tasks, n_samples).
        """

    @property
    def has_few_samples(self) -> bool:
        """Whether solvers are quicker with matrices of all samples than with what is held."""

    @property
    def spare(self) -> int | None:
        """Bytes that a solver may take in addition to the bank; None where they are not counted."""

    def spare_beside_tail(self, size: int) -> int | None:
        """Return the same in addition to the bank and ``tail(size)``: what is spare of that."""

    @property
    def held_on(self) -> str:
        """The device that holds kernels, or "cpu"."""

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
        """What became of the Placement that the kernels were bound with; None of a part of a bank.

        Its precision and its device are those of the kernels that are held, and ``spare`` is that of the bank.
        """

    def describe_storage(self) -> str: ...


class MatrixBank(Bank, Protocol):
    """A bank that offers "kernel_products": each kernel is a matrix, or could be, wherever it is."""

    @property
    def centering_errors(self) -> np.ndarray | None:
        """About how far centering has moved the values of each kernel; None where they are not centered."""

    def batches(self) -> Any:
        """Return where many small problems are solved at once: :mod:`manykernels.compute.batches`."""

    def kernel_products(self, k: int, vectors: Any) -> Any:
        """Return K_k times each of the vectors, (n_vectors, n), which are where :meth:`batches` says."""

    def combined(self, weights: np.ndarray) -> Any:
        """Return sum_k weights[k] K_k, (n, n), to be overwritten: it is where :meth:`batches` says."""


class ExplicitBank(Bank, Protocol):
    """Plain kernels, each known by itself: what ``bind`` makes of a list that is written out.

    Products of kernels are made of them, and UFO-MKL reads them one sample at a time.
    """

    @property
    def bound(self) -> Sequence[Any]:
        """The kernels with their columns, names and groups."""

    @property
    def sample_weight(self) -> np.ndarray: ...
    @property
    def room(self) -> Any:
        """What the kernels leave of their bytes, :class:`manykernels.banks.room.Room`: working sets take it."""

    def matrix(self, k: int) -> np.ndarray:
        """Return kernel k, shape (n_samples, n_samples)."""

    def pairs(self, bias: float | np.ndarray, memory_budget: int, hold: bool = True) -> Any:
        """Return all kernels' values of pairs of samples, side by side."""

    def maps(self, bias: float | np.ndarray) -> Any:
        """Return the finite feature maps of the kernels; None where one of them has none."""

    def without_map(self) -> str:
        """Return the name of the first kernel without a finite feature map."""

    def on(self, X: Any) -> ExplicitBank:
        """Return the kernels, scaled as here, on other samples."""


class BankOfRows(Bank, Protocol):
    """Kernels of rows that are on workers, which have the targets and the weights C of the losses, too."""

    @property
    def unknown(self) -> np.ndarray:
        """What stands for both here, NaN of shape (n_tasks, n_samples): they do not leave the workers."""

    def with_cost(self, C: float) -> BankOfRows:
        """Return the bank for losses of weight C; the features stay where they are."""
