"""What the classifier and the regressor share: the fit, from parameters and data to attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from manykernels.banks import Placement, Recipe, on_workers
from manykernels.banks.definiteness import check_combination
from manykernels.core.protocols import Bank
from manykernels.core.results import Result
from manykernels.core.solver import Solver
from manykernels.core.targets import LabelTargets, Targets
from manykernels.estimators.attributes import gap_in_words, set_machines, warn_not_converged
from manykernels.estimators.by_family import from_family
from manykernels.estimators.by_list import from_list
from manykernels.estimators.by_rows import (
    ROW_NEEDS,
    RowTraining,
    check_rows,
    client_of_rows,
    from_rows,
    in_memory,
    read_on_workers,
)
from manykernels.estimators.contributions import ContributionsMixin
from manykernels.estimators.kernel_estimator import KernelEstimator
from manykernels.estimators.loss_and_norm import find_norm
from manykernels.estimators.parameters import FAMILY_NEEDS, Check, check_needs, check_parameters
from manykernels.estimators.running import check_costs, with_digits
from manykernels.estimators.settings import Settings
from manykernels.estimators.solvers import find_solver
from manykernels.estimators.training import Training, read_training
from manykernels.estimators.warm_start import Learner, WarmStart
from manykernels.kernels.approximate import find_approximation
from manykernels.kernels.family import check_settled
from manykernels.losses import TotalLoss
from manykernels.norms import Norm


class BaseMKL(ContributionsMixin, KernelEstimator):
    """Base class; see MKLClassifier and MKLRegressor."""

    # -- parameters -----------------------------------------------------------------------------------------

    _takes_matrix = True
    _checks: Mapping[str, Check] = {}
    # What a fit sets, besides what all estimators have.
    n_outputs_: int
    dual_coef_: np.ndarray
    support_: np.ndarray
    intercept_: np.ndarray
    objective_: float
    dual_objective_: float
    gap_: float
    gap_is_exact_: bool
    n_inner_solves_: int
    approximation_error_: np.ndarray
    ranks_: np.ndarray

    # Of estimators that have no such parameter: one task shares its weights with nobody, and there is one at a time.
    probability: bool = False
    shared_weights: bool = True
    n_jobs: int | None = None

    def _check_parameters(self) -> None:
        check_parameters(self, self._checks)
        solver, norm = self._solver(), self._norm()
        if self._has_family:
            check_needs(self, "A family of kernels", FAMILY_NEEDS)
            check_settled(self.kernels)
            solver.check_kernels(self.kernels.can)
        is_sum = self._recipe().is_sum
        for name, off in (("approximation", None), ("missing", "error")):
            if not is_sum and getattr(self, name) != off:
                raise ValueError(f"{name}={getattr(self, name)!r} needs combination='sum'.")
        is_list = is_sum and not self._has_family
        if self.device != "cpu" and not is_list:
            raise ValueError(f"device={self.device!r} is for lists of kernels and combination='sum'; use device='cpu'.")
        if self._is_distributed() and (self.device != "cpu" or not is_list):
            raise ValueError("cluster= needs combination='sum', a list of kernels and device='cpu'.")
        solver.refuse(norm, self._loss())

    def _client_of_rows(self, given: Any) -> Any:
        """Return the client of the workers where the data are learned from, row by row; None where that is here."""
        return client_of_rows(self.approximation, self.cluster, given)

    def _check_data(self, given: Any, client: Any) -> None:
        """Raise ValueError for parameters that rule out such data, before any of it is read."""
        if client is not None:
            approximation: Any = find_approximation(self.approximation)  # without one no rows stay on workers
            check_rows(given, self._solver(), self._norm(), self.kernels, approximation)
            check_needs(self, "A fit to rows on Dask workers", ROW_NEEDS)

    def _settings(self) -> Settings:
        """Return what a fit is asked for."""
        return Settings(
            kernels=self.kernels,
            solver=self._solver(),
            norm=self._norm(),
            loss=self._loss(),
            recipe=self._recipe(),
            wish=self._wish(),
            shared_weights=bool(self.shared_weights),
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            max_iter=int(self.max_iter),
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            verbose=self.verbose,
        )

    def _solver(self) -> Solver:
        return find_solver(self.solver, self._has_family)

    def _norm(self) -> Norm:
        return find_norm(self.norm)

    def _loss(self) -> TotalLoss:
        raise NotImplementedError

    def _is_distributed(self) -> bool:
        """Return whether the kernels are to be on Dask workers."""
        return self.cluster is not None

    def _client(self) -> Any:
        """Return the client of the workers that hold the kernels, None where they are held here."""
        return on_workers.find_client(self.cluster)

    def __getstate__(self) -> dict:
        """Return what is pickled: a connection to a cluster is not, and becomes "dask"."""
        state = super().__getstate__()
        return {**state, "cluster": "dask"} if self._is_distributed() else state

    def __sklearn_clone__(self) -> Any:
        """Return a clone that uses the same cluster."""
        if not self._is_distributed():
            return super().__sklearn_clone__()
        # A client cannot be copied. This estimator is left as it is, since other threads may be using it.
        without = object.__new__(type(self))
        without.__dict__.update(vars(self), cluster=None)
        return without.__sklearn_clone__().set_params(cluster=self.cluster)

    # -- fit ------------------------------------------------------------------------------------------------

    def _fit(self, given: Any, y: Any, sample_weight: Any) -> None:
        client = self._client_of_rows(given)
        self._check_data(given, client)
        self._fit_to(self._read(given, y, sample_weight, client), WarmStart())

    def _read(self, given: Any, y: Any, sample_weight: Any, client: Any = None) -> Training | RowTraining:
        """Return the data after all checks, on the workers of a client or here: what several fits may share."""
        if client is not None:
            return read_on_workers(self, client, given, y, sample_weight)
        training = read_training(self, *in_memory(self.memory_budget, given, y, sample_weight))
        self._check_views(training.X, training.table)
        return training

    def _fit_to(self, training: Training | RowTraining, warm: WarmStart) -> bool:
        """Fit to data that were read: make the tasks, learn them, and set the attributes.

        A warm start carries the bank and the weights from one fit to the next. Returns whether Ctrl-C ended the fit
        early.
        """
        if training.n_outputs is not None:
            self.n_outputs_ = training.n_outputs
        targets = self._targets(training)
        settings = self._settings()
        bank, results = with_digits(settings, self._learner(settings, training, targets, warm), warm)
        warm.weights = [result.weights for result in results]
        return self._set_learned(bank, results, training, targets.offset)

    def _targets(self, training: Any) -> Targets | LabelTargets:
        """Return how the targets become tasks, wherever they are; set the classes, if there are any."""
        raise NotImplementedError

    def _learner(self, settings: Settings, training: Any, targets: Any, warm: WarmStart) -> Learner:
        """Return what learns from kernels in a precision: of a list, of a family, or of rows on workers."""
        if training.is_on_workers:
            return from_rows(settings, training, targets, warm)
        y, C = targets.tasks(training.target, training.samples.weight)
        check_costs(C)
        if self._has_family:
            return from_family(settings, training.data(), y, C, targets.offset)
        return from_list(settings, training.data(), y, C, targets.offset, warm)

    def _set_learned(self, bank: Bank, results: list[Result], training: Any, offset: Any) -> bool:
        """Look at the learned kernels, set the attributes and warn; return whether Ctrl-C ended the fit early."""
        interrupted = any(result.interrupted for result in results)
        for result in results if not interrupted else ():  # after Ctrl-C nothing more is computed
            check_combination(bank, np.atleast_2d(result.weights).mean(axis=0))
        set_machines(self, bank, results, training.samples, offset)
        if not self.converged_:
            self._warn_not_converged(interrupted)
        return interrupted

    def _warn_not_converged(self, interrupted: bool) -> None:
        remedy = "raise max_iter or tol"
        if self.n_iter_ < self.max_iter:
            lower = "lower C or raise tol" if "C" in vars(self) else "or raise tol"
            remedy = f"rounding allows no less: scale the features, normalize the kernels, {lower}"
        reached = gap_in_words(self)
        if np.isnan(self.gap_):
            reached = f"objective {self.objective_:.6g} with a projected gradient above tol={self.tol:.2e} of it"
        steps = f"iterations (max_iter={self.max_iter})"
        warn_not_converged(self, steps, reached, remedy, interrupted=interrupted)

    @property
    def _has_matrix(self) -> bool:
        """Whether the targets of the fit were a matrix."""
        return hasattr(self, "n_outputs_")

    # -- kernels --------------------------------------------------------------------------------------------

    def _recipe(self) -> Recipe:
        return Recipe(self.normalize, self.center, self.combination, self.check_kernels)

    def _wish(self) -> Placement:
        """Return where the kernels are to be; the budget is still that of all of the fit."""
        approximation = find_approximation(self.approximation)
        return Placement(self.memory_budget, self.device, self._client(), approximation=approximation)
