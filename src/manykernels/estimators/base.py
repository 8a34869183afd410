"""What the classifier and the regressor share: the fit, from parameters and data to attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from manykernels.banks import Approximation, Data, Placement, Recipe, bind, on_workers, plan
from manykernels.banks.definiteness import check_combination, name_culprit
from manykernels.banks.planning import Extent, exact_bytes, plan_features
from manykernels.compute.gpu import has_double
from manykernels.compute.memory import budget_bytes, human_bytes
from manykernels.core.notices import warn
from manykernels.core.protocols import Bank
from manykernels.core.results import Result
from manykernels.core.rows import CheckedRows
from manykernels.core.solver import Need, Sizes, Solver
from manykernels.core.targets import Targets
from manykernels.estimators.attributes import gap_in_words, set_machines, warn_not_converged
from manykernels.estimators.by_family import from_family
from manykernels.estimators.by_rows import (
    ROW_NEEDS,
    RowTraining,
    bind_rows,
    check_rows,
    client_of_rows,
    in_memory,
    read_on_workers,
    row_problem,
)
from manykernels.estimators.contributions import ContributionsMixin
from manykernels.estimators.kernel_estimator import KernelEstimator
from manykernels.estimators.loss_and_norm import find_norm, of_groups
from manykernels.estimators.parameters import FAMILY_NEEDS, check_needs, check_parameters
from manykernels.estimators.running import check_costs, needs_digits, print_placement, solve
from manykernels.estimators.settings import Settings
from manykernels.estimators.solvers import find_solver
from manykernels.estimators.training import Training, read_training
from manykernels.kernels import Gaussian, KernelBank, ParametricKernel
from manykernels.losses import Loss
from manykernels.norms import Norm
from manykernels.problem import Problem

# A tighter tol than this starts in double precision.
DOUBLE_BELOW = 1e-5

# What learns in a precision: it returns a bank and the results on it.
Learner = Callable[[str], tuple[Bank, list[Result]]]


class Listed(NamedTuple):
    """The kernels of a fit, None for one with parameters, and how many weights there are to learn."""

    kernels: KernelBank | None
    n_weights: int


@dataclass
class WarmStart:
    """What one fit leaves for the next on the same data: the bank, and the weights to start from."""

    bank: Bank | None = None
    weights: list[np.ndarray] | None = None
    kernels: Listed | None = None  # those of the bank
    norms: tuple[Norm, ...] = ()  # all that will be learned with these kernels, where it is not one
    is_told: bool = False  # that the exact problem is cheaper

    def has(self, precision: str) -> bool:
        """Return whether the bank has so many digits."""
        return self.bank is not None and (precision == "single" or self.bank.precision == "double")

    def starts(self, problems: list[Problem]) -> list[np.ndarray | None]:
        """Return where each problem starts: at the last weights, if there are any."""
        if self.weights is None or len(self.weights) != len(problems):
            return [None] * len(problems)
        return [p.norm.scaled(w) for p, w in zip(problems, self.weights, strict=True)]


class BaseMKL(ContributionsMixin, KernelEstimator):
    """Base class; see MKLClassifier and MKLRegressor."""

    # -- parameters -----------------------------------------------------------------------------------------

    # Of estimators that have no such parameter: one task shares its weights with nobody.
    probability: bool = False
    shared_weights: bool = True

    def _check_parameters(self) -> None:
        check_parameters(self)
        solver, norm = self._solver(), self._norm()
        if self._has_family:
            check_needs(self, "A family of kernels", FAMILY_NEEDS)
            solver.check_kernels(self.kernels.can)
        is_sum = self._recipe().is_sum
        for name, off in (("approximation", None), ("missing", "error")):
            if not is_sum and getattr(self, name) != off:
                raise ValueError(f"{name}={getattr(self, name)!r} needs combination='sum'.")
        is_list = is_sum and not self._has_family
        if self.device != "cpu" and not is_list:
            raise ValueError(f"device={self.device!r} is for lists of kernels and combination='sum'; use device='cpu'.")
        if self._is_distributed() and (self.device != "cpu" or not is_list):
            raise ValueError("n_jobs='dask' needs combination='sum', a list of kernels and device='cpu'.")
        solver.refuse(norm, self._loss())

    def _check_data(self, given: Any) -> None:
        """Raise ValueError for parameters that rule out such data, before any of it is read."""
        if client_of_rows(self.approximation, self.n_jobs, given) is not None:
            assert self.approximation is not None
            check_rows(self._solver(), self._norm(), self.kernels, self.approximation)
            check_needs(self, "A fit to rows on Dask workers", ROW_NEEDS)

    def _settings(self) -> Settings:
        """Return what a fit is asked for."""
        return Settings(
            kernels=self.kernels,
            solver=self._solver(),
            norm=self._norm(),
            loss=self._loss(),
            recipe=self._recipe(),
            wish=self._wish("single"),
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

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _shares_weights(self, n_tasks: int) -> bool:
        return bool(self.shared_weights) or n_tasks == 1

    def _is_distributed(self) -> bool:
        """Return whether the kernels are to be on Dask workers: ``n_jobs`` is then "dask" or a client."""
        return on_workers.names_workers(self.n_jobs)

    def _client(self) -> Any:
        """Return the client of the workers that hold the kernels, None where they are held here."""
        return on_workers.find_client(self.n_jobs)

    def __getstate__(self) -> dict:
        """Return what is pickled: a connection to a cluster is not, and becomes "dask"."""
        state = super().__getstate__()
        return {**state, "n_jobs": "dask"} if self._is_distributed() else state

    def __sklearn_clone__(self) -> Any:
        """Return a clone that uses the same cluster."""
        if not self._is_distributed():
            return super().__sklearn_clone__()
        # A client cannot be copied. This estimator is left as it is, since other threads may be using it.
        without = object.__new__(type(self))
        without.__dict__.update(vars(self), n_jobs=None)
        return without.__sklearn_clone__().set_params(n_jobs=self.n_jobs)

    # -- fit ------------------------------------------------------------------------------------------------

    def _fit(self, given: Any, y: Any, sample_weight: Any) -> None:
        self._check_data(given)
        self._fit_read(self._read(given, y, sample_weight), WarmStart())

    def _read(self, given: Any, y: Any, sample_weight: Any) -> Training | RowTraining:
        """Return the data after all checks: what several fits may share."""
        client = client_of_rows(self.approximation, self.n_jobs, given)
        if client is not None:
            return read_on_workers(self, client, given, y, sample_weight)
        return read_training(self, *in_memory(self.memory_budget, given, y, sample_weight))

    def _fit_read(self, training: Any, warm: WarmStart) -> bool:
        """Fit to data that were read, a Training or RowTraining: make the tasks, learn them, and set the attributes.

        A warm start carries the bank and the weights from one fit to the next. Returns whether Ctrl-C ended the fit
        early.
        """
        targets = self._targets(training)
        bank, results = self._with_digits(self._learner(self._settings(), training, targets, warm), warm)
        warm.weights = [result.weights for result in results]
        return self._set_learned(bank, results, training, targets.offset)

    def _targets(self, training: Any) -> Targets:
        """Return how the targets become tasks, wherever they are; set the classes, if there are any."""
        raise NotImplementedError

    def _learner(self, settings: Settings, training: Any, targets: Targets, warm: WarmStart) -> Learner:
        """Return what learns from kernels in a precision: of a list, of a family, or of rows on workers."""
        if training.samples is None:
            return self._from_rows(settings, training, targets, warm)
        y, C = targets.tasks(training.target, training.samples.weight)
        check_costs(C)
        if self._has_family:
            return from_family(settings, training.data(), y, C, targets.offset)
        return self._from_list(settings, training, y, C, targets.offset, warm)

    def _from_rows(self, settings: Settings, training: RowTraining, targets: Targets, warm: WarmStart) -> Learner:
        """Return what learns from rows on workers, where the features stay whatever C is."""
        check_costs(training.source.least_costs(targets))

        def learn(precision: str) -> tuple[Bank, list[Result]]:
            if not warm.has(precision):
                warm.bank = bind_rows(settings, training, targets, precision)
            bank: Any = warm.bank  # of the rows of the last fit, whose C may have been another
            problem = row_problem(settings, bank.with_cost(targets.C))
            return problem.bank, solve(settings, [problem], warm.starts([problem]))

        return learn

    def _from_list(
        self, settings: Settings, training: Training, y: np.ndarray, C: np.ndarray, offset: float, warm: WarmStart
    ) -> Learner:
        """Return what learns from a list of kernels, or from one with parameters."""
        self._check_views(training.X, training.table)
        norm, loss = settings.norm, settings.loss
        tasks = [slice(None)] if self._shares_weights(y.shape[0]) else [slice(t, t + 1) for t in range(y.shape[0])]
        data = training.data()

        def learn(precision: str) -> tuple[Bank, list[Result]]:
            bank = self._warm_bank(warm, data, (y.shape[0], y.shape[1]), loss, precision)
            bound = of_groups(norm, bank.groups)
            # A parametric bank offers less than a finite one; solvers ask for what they need.
            problems = [Problem(bank, loss, bound, y[t], C[t], self.fit_intercept, offset) for t in tasks]
            try:
                return bank, solve(settings, problems, warm.starts(problems))
            except np.linalg.LinAlgError:
                name_culprit(bank, np.ones(bank.n_kernels))  # that is what an indefinite kernel ends in
                raise

        return learn

    def _with_digits(self, learn: Learner, warm: WarmStart) -> tuple[Bank, list[Result]]:
        """Learn from kernels in single precision, and again in double where their rounding is seen."""
        bank, results = learn(self._first_precision(warm))
        if bank.precision == "single" and self._want_digits(results):
            warm.bank = None  # the memory budget holds one of them
            del bank, results
            bank, results = learn("double")
        return bank, results

    def _first_precision(self, warm: WarmStart | None = None) -> str:
        """Return the precision that a fit begins with: double for a tight tol, and where there is a bank with it."""
        return "double" if self.tol < DOUBLE_BELOW or (warm is not None and warm.has("double")) else "single"

    def _set_learned(self, bank: Bank, results: list[Result], training: Any, offset: float) -> bool:
        """Look at the learned kernels, set the attributes and warn; return whether Ctrl-C ended the fit early."""
        interrupted = any(result.interrupted for result in results)
        for result in results if not interrupted else ():  # after Ctrl-C nothing more is computed
            check_combination(bank, result.weights)
        set_machines(self, bank, results, training.samples, offset)
        if not self.converged_:
            self._warn_not_converged()
        return interrupted

    def _warn_not_converged(self) -> None:
        remedy = "raise max_iter or tol"
        if self.n_iter_ < self.max_iter:
            remedy = "rounding allows no less: scale the features, normalize the kernels, lower C or raise tol"
        reached = gap_in_words(self)
        if np.isnan(self.gap_):
            reached = f"objective {self.objective_:.6g} with a projected gradient above tol={self.tol:.2e} of it"
        warn_not_converged(self, f"iterations (max_iter={self.max_iter})", reached, remedy)

    # -- kernels --------------------------------------------------------------------------------------------

    def _listed(self, data: Data) -> Listed:
        """Return the kernels and how many weights there are to learn: one for each, or a kernel's own parameters.

        A product has one kernel for each feature by default, a ParametricKernel none.
        """
        if isinstance(self.combination, ParametricKernel):
            return Listed(None, len(self.combination.placed(data.table).bind(data.X)))
        is_sum = self._recipe().is_sum
        if not is_sum and isinstance(self.kernels, str):
            kernels = KernelBank([Gaussian(1.0, columns=[j]) for j in range(data.X.shape[1])])
        else:
            kernels = self._bank(data.table, tells=is_sum)
        return Listed(kernels, len(kernels))

    def _recipe(self) -> Recipe:
        return Recipe(self.normalize, self.center, self.combination, self.check_kernels)

    def _wish(self, precision: str) -> Placement:
        """Return where the kernels are to be; the budget is still that of all of the fit."""
        approximation = None if self.approximation is None else Approximation(self.approximation, self.rank)
        return Placement(self.memory_budget, self.device, self._client(), "auto", precision, approximation)

    def _seed(self) -> int | None:
        """Return the seed of what is drawn to make kernels, None where nothing is."""
        return None if self.approximation is None else check_random_state(self.random_state).randint(2**31 - 1)

    def _warm_bank(self, warm: WarmStart, data: Data, shape: tuple[int, int], loss: Loss, precision: str) -> Any:
        """Return the bank of the warm start, bound to the data if it is not there yet."""
        if warm.has(precision):
            return warm.bank
        if warm.kernels is None:
            warm.kernels = self._listed(data)
        place = self._place(warm.kernels, shape, data, loss, precision, warm.norms)
        warm.bank = bind(warm.kernels.kernels, data, self._recipe(), place, self._seed())
        print_placement(self, warm.bank.describe_storage(), warm.bank.placement)
        if warm.bank.has_few_samples and not warm.is_told:
            warm.is_told = True
            self._tell_what_is_cheaper(warm.kernels, shape, data, loss)
        return warm.bank

    def _place(
        self,
        listed: Listed,
        shape: tuple[int, int],
        data: Data,
        loss: Loss,
        precision: str = "single",
        norms: Sequence[Norm] = (),
    ) -> Placement:
        """Return where the kernels of so many tasks and samples go, and how much memory they get."""
        wish = self._wish(precision)
        if self.approximation is not None:
            return plan_features(data.X, shape, wish)
        extent, need = self._extent(listed, shape, data), self._need(listed, shape, loss, norms)
        return plan(extent, need, wish, has_double(self.device))

    def _extent(self, listed: Listed, shape: tuple[int, int], data: Data) -> Extent:
        """Return what there is to hold."""
        return Extent.of(*listed, self._recipe(), data.X, shape)

    def _need(self, listed: Listed, shape: tuple[int, int], loss: Loss, norms: Sequence[Norm] = ()) -> Need:
        """Return what the solver takes beside the kernels, for the most demanding norm that is to come."""
        n_tasks, n = shape
        shared = self._shares_weights(n_tasks)
        at_once = 1 if shared or self._is_distributed() else min(n_tasks, effective_n_jobs(self.n_jobs))
        sizes = Sizes(n_tasks if shared else 1, n, listed.n_weights)
        return self._solver().need_for(sizes, norms or (self._norm(),), loss, at_once)

    def _tell_what_is_cheaper(self, listed: Listed, shape: tuple[int, int], data: Data, loss: Loss) -> None:
        """Warn where features are no fewer than samples and the exact kernels fit into memory."""
        if isinstance(data.X, CheckedRows):
            return
        extent, need = self._extent(listed, shape, data), self._need(listed, shape, loss)
        room = exact_bytes(extent, need, self._first_precision())
        if room <= budget_bytes(self.memory_budget):
            warn(
                f"approximation={self.approximation!r} makes no fewer features than there are samples, "
                f"{shape[1]:,}, so the exact kernels ({human_bytes(room)} of memory) cost no more: take "
                "approximation=None or a lower rank."
            )

    def _want_digits(self, results: list[Result]) -> bool:
        """Return whether kernels in double precision are called for.

        They are when rounding could fake the certificate, or when a solver gave up before its time.
        """
        faked = any(needs_digits(result.rounding, self.tol) for result in results)
        stuck = any(not result.converged and result.n_iter < self.max_iter for result in results)
        return (faked or stuck) and not any(result.interrupted for result in results)
