"""A bank of kernels of small rank whose features are blocks of rows on workers."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from manykernels.banks.argument_checks import checked_places, checked_weights
from manykernels.banks.cluster import row_block as on_row_block
from manykernels.banks.cluster.row_block import FeaturePlan
from manykernels.banks.cluster.row_blocks import RowBlocks
from manykernels.banks.combining import coarse_samples
from manykernels.banks.features import FeatureBank
from manykernels.banks.offers import FEATURES
from manykernels.banks.packed import PackedBank, bank_of_features
from manykernels.banks.placement import PRECISIONS
from manykernels.banks.planning import COARSE_BYTES
from manykernels.compute.column_units import ColumnMoments, ColumnScales
from manykernels.compute.pairwise import dense
from manykernels.core.protocols import Measured
from manykernels.core.targets import Targets
from manykernels.kernels.kernel_bank import KernelBank
from manykernels.kernels.shared_distances import BoundKernel
from manykernels.kernels.standard import Glance


class RowSource:
    """Rows of X on workers, and what belongs to them: data that a bank of features is bound to.

    Selections of rows are fetched: landmarks are chosen from them. The rows do not change, so that what is counted is
    counted once.

    Parameters
    ----------
    raw : RowBlocks
    shapes : sequence of (int, int)
        Of the blocks.
    """

    is_read_in_blocks = True

    def __init__(self, raw: RowBlocks, shapes: Sequence[tuple[int, int]]) -> None:
        self.raw, self.sizes = raw, np.array([shape[0] for shape in shapes])
        self.shape = (int(self.sizes.sum()), shapes[0][1])

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            rows = np.arange(self.shape[0])[rows]
        return self.take(np.asarray(rows))[0] if len(rows) else np.zeros((0, self.shape[1]))

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return some rows, in order: X, y and sample weights."""
        X, y, weight = zip(*self.raw.chosen(on_row_block.take, rows, self.sizes), strict=True)
        return dense(on_row_block.stacked(X)), np.concatenate(y), np.concatenate(weight)

    def _rows(self, rows: np.ndarray) -> Any:
        """Return some rows as they are, be they sparse."""
        return on_row_block.stacked([part[0] for part in self.raw.chosen(on_row_block.take, rows, self.sizes)])

    def check_views(self, kernels: KernelBank, table: Any) -> None:
        """Raise ValueError if a row is NaN in some but not all of the columns that a kernel sees."""
        self.raw.each(on_row_block.check_views, kernels, table)

    def glance(self) -> Glance:
        """Return what the choice of standard kernels depends on."""
        counts = self.raw.each(on_row_block.filled)
        is_sparse = all(count is not None for count in counts)
        return Glance(self.shape, sum(counts) if is_sparse else None, self._rows)

    def column_scales(self) -> ColumnScales:
        """Return where the columns lie and how far they spread."""
        return ColumnMoments.total(self.raw.each(on_row_block.column_moments)).scales()

    def in_units(self, scales: ColumnScales) -> RowSource:
        """Return the rows in units of the columns; those that came are not kept in addition to them."""
        shapes = [(int(size), self.shape[1]) for size in self.sizes]
        return RowSource(self.raw.derived(on_row_block.in_units, scales, replaces=True), shapes)

    @cached_property
    def class_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes of all rows and the sum of the sample weights of each."""
        counted = self.raw.each(on_row_block.classes_of)
        classes = np.unique(np.concatenate([present for present, _ in counted]))
        counts = np.zeros(classes.size)
        for present, weights in counted:
            counts[np.searchsorted(classes, present)] += weights
        return classes, counts

    @cached_property
    def moments(self) -> np.ndarray:
        """The sums of the weights, of the weighted targets and of their squares."""
        return self.raw.sum(on_row_block.moments_of)

    def least_costs(self, targets: Targets) -> np.ndarray:
        """Return the smallest positive weight of a loss in each block, 0 where there is none."""
        return np.array(self.raw.each(on_row_block.least_cost, targets))


class RowBank(FeatureBank):
    """Kernels as features of rows on workers; attributes are those of ``FeatureBank``.

    Only sums over the rows come to the driver, as long as the features: w = Z' beta, from which q_k = ||w_k||^2.

    Parameters
    ----------
    bound : sequence of BoundKernel
    source : RowSource
    tasks : Targets
        What the tasks of the rows are.
    center, precision, **options
        As for ``FeatureBank``.
    """

    # Coefficients of the dual problem are nowhere, and which rows are the last, nobody knows.
    can = FEATURES - {"coefficients", "tail"}
    has_few_samples = False  # type: ignore[assignment]  # that are here
    spare = None
    held_on = "cpu"  # type: ignore[assignment]  # of the workers

    def __init__(
        self,
        bound: Sequence[BoundKernel],
        source: RowSource,
        tasks: Targets,
        *,
        center: bool,
        precision: str,
        **options: Any,
    ) -> None:
        self.tasks, self.n_tasks = tasks, tasks.n_tasks
        total, self.unit = self._scale_of(source, tasks)
        # Blocks are centered after they are made: in single precision that would cost digits.
        precision = "double" if center else precision
        weight = np.array([total])  # its sum is all that is asked for
        super().__init__(bound, source, weight, center=center, precision=precision, budget=None, **options)

    def _traces(self, exact: Sequence[BoundKernel]) -> np.ndarray:
        parts = np.array(self.X.raw.each(on_row_block.traces, exact, self.is_cosine, self.is_centered))
        return np.vstack([parts[:, :2].sum(axis=0), parts[:, 2].max(axis=0)])

    def _hold(self, budget: Any) -> tuple[np.ndarray, np.ndarray]:
        plan = FeaturePlan(self._maps, PRECISIONS[self.precision], replace(self.tasks, C=1.0))
        self.blocks = self.X.raw.derived(on_row_block.feature_block, plan)
        self.mean = np.zeros(int(self.first[-1]))
        if self.is_centered:
            self.mean = self.blocks.sum(on_row_block.means) / self.sample_weight.sum()
            self.blocks = self.blocks.derived(on_row_block.centered, self.mean, replaces=True)
        sums = np.add.reduceat(self.blocks.sum(on_row_block.squares), self.first[:-1])
        return sums, np.max(self.blocks.each(on_row_block.largest, self.first), axis=0)

    @staticmethod
    def _scale_of(source: RowSource, tasks: Targets) -> tuple[float, float]:
        """Return the sum of the sample weights, and the size of the targets."""
        if tasks.classes is not None:
            return float(source.class_counts[1].sum()), 1.0
        total, first, second = source.moments
        return float(total), float(np.sqrt(max(second / total - (first / total) ** 2, 0.0))) or 1.0

    def with_cost(self, C: float) -> RowBank:
        """Return the bank for losses of weight C: the features stay where they are."""
        bank = copy(self)
        bank.tasks = replace(self.tasks, C=C)
        return bank

    def describe_storage(self) -> str:
        """Return words for where the features are."""
        return f"{self.n_kernels} kernels with {self.first[-1]} features of {self.n_samples} rows on Dask workers"

    def workspace(self) -> Any:
        """Return what :meth:`combine` writes to."""
        return CombinedSums(self)

    def combine(self, weights: np.ndarray, out: Any = None) -> Any:
        """Return sum_k weights[k] K_k by the factors of its features; nothing is sent."""
        K = self.workspace() if out is None else out
        K.columns = self.by_column(checked_weights(weights, self.n_kernels))
        return K

    def vectors(self, beta: Any) -> np.ndarray:
        """Return Z' beta_t, shape (n_tasks, n_columns)."""
        return beta.vectors

    def quad_forms(self, beta: Any, subset: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return beta' K_k beta of the kernels of the subset, (n_tasks, len(subset))."""
        squares = np.add.reduceat(beta.vectors**2, self.first[:-1], axis=1) * self.scale
        return squares if subset is None else squares[:, checked_places(subset, self.n_kernels)]

    @property
    def coarse_size(self) -> int:
        """How many rows a problem may have that is solved on the driver for a first guess of the weights."""
        return int(min(coarse_samples(self.n_samples), COARSE_BYTES // (8 * max(int(self.first[-1]), 1))))

    @property
    def unknown(self) -> np.ndarray:
        """What stands here for targets and costs, NaN of shape (n_tasks, n_samples): they do not leave the workers."""
        return np.broadcast_to(np.nan, (self.n_tasks, self.n_samples))

    def coarse(self, size: int, y: np.ndarray, C: np.ndarray) -> tuple[PackedBank, np.ndarray, np.ndarray]:
        """Return the kernels on so many random rows, held here, with their targets and costs."""
        rows = np.sort(np.random.default_rng(0).permutation(self.n_samples)[:size])
        X, targets, weight = self.X.take(rows)
        # Rows travel, not their features, which are many more numbers.
        Z = self._maps.transform(X)[0] - self.mean
        return bank_of_features(self.bound, Z, self.scale, self.first, self.largest), *self.tasks.tasks(targets, weight)


class CombinedSums:
    """The combined kernel of a :class:`RowBank`, K = Z diag(columns) Z', of which sums over the rows can be had.

    Attributes
    ----------
    columns : ndarray of shape (n_columns,)
        The factor of each feature.
    planes : dict
        What the bundle method knows of each task: it holds whatever the factors are.
    unit : float
        The size of the targets.
    """

    can = frozenset({"sums"})

    def __init__(self, bank: RowBank) -> None:
        self._bank, self.n_samples, self.unit = bank, bank.n_samples, bank.unit
        self.columns = bank.by_column(np.zeros(bank.n_kernels))
        self.planes: dict[int, Any] = {}

    def plane(self, task: int, u: np.ndarray, b: float, loss: Any) -> list[np.ndarray]:
        """Return minus the conjugates, the sum and Z' beta of each block, for the slopes of the loss at Z u + b."""
        return self._bank.blocks.each(on_row_block.plane, task, u, b, loss, self._bank.tasks.C)

    def losses_along(
        self, task: int, u: np.ndarray, du: np.ndarray, intercepts: np.ndarray, lengths: np.ndarray, loss: Any
    ) -> np.ndarray:
        """Return the losses of the predictions Z (u + length du) + intercept, for pairs of the two."""
        C = self._bank.tasks.C
        # So few numbers of each block take less time than the tasks that would add them up on the way.
        return np.sum(
            self._bank.blocks.each(on_row_block.losses_along, task, u, du, intercepts, lengths, loss, C), axis=0
        )

    def rounding(self, machine: Measured, passed_on: Any) -> float:
        """Return about how far products of rounded features move the primal value."""
        return self._bank.unit_roundoff * float(np.sqrt(self.columns.size)) * abs(machine.objective)
