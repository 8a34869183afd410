"""Fits whose rows are on Dask workers: the steps from the data to a problem, without an array of all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from manykernels.banks import Data, bind, on_workers
from manykernels.core.checks import check_choice
from manykernels.core.protocols import Bank, BankOfRows
from manykernels.core.results import Result
from manykernels.core.rows import is_dask, refuse_row_source
from manykernels.core.solver import Solver
from manykernels.core.targets import Targets
from manykernels.estimators.loss_and_norm import of_groups
from manykernels.estimators.running import check_costs, print_placement, solve
from manykernels.estimators.settings import Settings
from manykernels.estimators.solvers import SOLVERS
from manykernels.estimators.training import is_matrix, set_columns
from manykernels.estimators.warm_start import Learner, WarmStart
from manykernels.kernels import KernelBank
from manykernels.kernels.approximate import Approximation
from manykernels.kernels.standard import as_bank
from manykernels.norms import Norm
from manykernels.problem import Problem

# What an estimator's parameters must be: others need an array of all rows, or rows in this process.
ROW_NEEDS = {"shared_weights": True, "probability": False, "device": "cpu"}


@dataclass(frozen=True)
class RowTraining:
    """Rows on workers, read and checked: what ``Training`` is for rows that are here.

    Attributes
    ----------
    is_on_workers : True
    client : distributed.Client
        Of these workers.
    source : RowSource
    table : DataFrame or array without rows
        Where kernels look up their columns.
    kernels : KernelBank
    samples : None
        Which are here.
    n_outputs : None
        There is one target for each row.
    """

    client: Any
    source: Any
    table: Any
    kernels: KernelBank
    is_on_workers: ClassVar[bool] = True
    samples: None = None
    n_outputs: None = None

    @property
    def class_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes, and the sum of the sample weights of each."""
        classes, counts = self.source.class_counts
        check_classification_targets(classes)
        return classes, counts

    @property
    def mean(self) -> float:
        """The mean of the targets."""
        total, first, _ = self.source.moments
        return float(first / total)


def stay_on_workers(approximation: Any, cluster: Any, X: Any) -> bool:
    """Return whether X is learned from as rows on workers: as features of Dask data, or where a cluster is named."""
    return approximation is not None and (cluster is not None or is_dask(X))


def client_of_rows(approximation: Any, cluster: Any, X: Any) -> Any:
    """Return the client of the workers for rows; None where they are learned from here."""
    if not stay_on_workers(approximation, cluster, X):
        return None
    return on_workers.find_client("dask" if cluster is None else cluster)


# What exact kernels say of Dask data that are too large.
_NEEDS = "exact kernels need all of it there; set approximation='nystroem' or 'fourier' to leave it on the workers"


def in_memory(memory_budget: Any, X: Any, y: Any, sample_weight: Any, needs: str = _NEEDS) -> tuple:
    """Return the data as they are, Dask collections gathered if small enough; else ``needs`` says what to do."""
    if not any(is_dask(data) for data in (X, y, sample_weight)):
        return X, y, sample_weight
    return on_workers.gathered(memory_budget, needs, X, y, sample_weight)


def read_on_workers(estimator: Any, client: Any, X: Any, y: Any, sample_weight: Any) -> RowTraining:
    """Return rows that are on workers, after the checks that are made there."""
    if is_matrix(estimator, y, numeric=False):
        raise ValueError(
            "y of several columns needs the rows in this process: with rows on Dask workers, fit one column at a time."
        )
    allow_nan = estimator.missing == "ignore"
    source, table = on_workers.load_rows(client, X, y, sample_weight, allow_nan)
    set_columns(estimator, source.shape[1], None if table is None else table.columns)
    meta = np.zeros((0, source.shape[1])) if table is None else table
    kernels = as_bank(estimator.kernels, meta, tells=True, glance=source.glance).written_out()
    if allow_nan:
        source.check_views(kernels, meta)
    if kernels.standardize:
        scales = source.column_scales()
        estimator.column_means_, estimator.column_scales_ = scales.location, scales.scale
        source = source.in_units(scales)
    return RowTraining(client, source, meta, kernels)


def check_rows(X: Any, solver: Solver, norm: Norm, kernels: Any, approximation: Approximation) -> None:
    """Raise ValueError for what cannot be done without an array of all rows."""
    refuse_row_source(
        X,
        "A table on disk is not sent to Dask workers: pass a Dask DataFrame of the same file, or fit without workers, "
        "reading it block by block.",
    )
    if not solver.can_do_with(on_workers.ROWS_CAN):
        names = tuple(name for name, record in SOLVERS.items() if record.can_do_with(on_workers.ROWS_CAN))
        check_choice("solver", solver.name, names, more=" with rows on Dask workers")
    levels = norm.levels()
    if levels is not None and levels.groups is not None:
        raise ValueError(f"With rows on Dask workers, norm must be a number or a norm without groups, got {norm!r}.")
    if isinstance(kernels, KernelBank):
        kernels.require_plain(f"approximation={approximation.name!r}")


def from_rows(settings: Settings, training: RowTraining, targets: Targets, warm: WarmStart) -> Learner:
    """Return what learns from rows on workers, where the features stay whatever C is."""
    check_costs(training.source.least_costs(targets))

    def learn(precision: str) -> tuple[Bank, list[Result]]:
        if not warm.has(precision):
            warm.bank = _bind(settings, training, targets, precision)
        bank: Any = warm.bank  # of the rows of the last fit, whose C may have been another
        problem = _problem(settings, bank.with_cost(targets.C), targets.offset)
        return problem.bank, solve(settings, [problem], warm.starts([problem]))

    return learn


def _bind(settings: Settings, training: RowTraining, targets: Targets, precision: str) -> BankOfRows:
    """Return the kernels as features of the rows, on their workers."""
    place = replace(settings.wish, client=training.client, precision=precision, why="they stay where the rows are")
    data = Data(training.source, training.table, targets=targets)
    bank: BankOfRows = bind(training.kernels, data, settings.recipe, place, settings.seed)
    print_placement(settings, bank.describe_storage(), bank.placement)
    return bank


def _problem(settings: Settings, bank: BankOfRows, offset: float) -> Problem:
    """Return the problem on kernels of rows.

    They offer less than other banks, and arrays of which only a sample is here: solvers ask for what they need.
    """
    bound = of_groups(settings.norm, bank.groups)
    return Problem(bank, settings.loss, bound, bank.unknown, bank.unknown, settings.fit_intercept, offset)
