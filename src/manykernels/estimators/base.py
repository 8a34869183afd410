"""What the classifier and the regressor share: checks, the fit from kernels to attributes, prediction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from manykernels.banks import Approximation, Data, Placement, Recipe, bind, bind_family, plan
from manykernels.banks.definiteness import CHECKS, check_combination, name_culprit
from manykernels.banks.plan import Extent, exact_bytes, left_beside, plan_features
from manykernels.compute.gpu import check_device
from manykernels.compute.memory import budget_bytes, human_bytes
from manykernels.core.checks import check_choice, check_count, check_number, is_number
from manykernels.core.notices import warn
from manykernels.core.progress import listen
from manykernels.core.protocols import Bank
from manykernels.core.results import OVERFLOWS, Certificate, Result
from manykernels.core.rows import CheckedRows, is_on_disk, refuse_row_source
from manykernels.core.samples import Samples, distinct_samples
from manykernels.core.solver import Need, Sizes, Solver
from manykernels.estimators.contributions import ContributionsMixin
from manykernels.estimators.kernel_estimator import (
    KernelEstimator,
    check_costs,
    print_step,
)
from manykernels.estimators.predictor import Predictor
from manykernels.estimators.solvers import find_solver
from manykernels.kernels import Gaussian, KernelBank, ParametricKernel
from manykernels.kernels.approximate import METHODS, check_rank
from manykernels.kernels.family import Family
from manykernels.kernels.lazy_names import run_lengths, sums_by_group
from manykernels.kernels.standard import tell_choice
from manykernels.losses import Loss
from manykernels.norms import LpNorm, Norm
from manykernels.outer.family import FamilyProblem, FamilyResult
from manykernels.outer.zero_kernels import without_zero_kernels
from manykernels.problem import Problem

# A tighter tol than this starts in double precision.
DOUBLE_BELOW = 1e-5
# Rounded kernel values may move the objective by this part of tol.
_ROUNDING_SHARE = 0.1
# Matrices of all samples that learning from a family of kernels holds, beside the kernels it selects.
_FAMILY_MATRICES = 8


@dataclass
class WarmStart:
    """What one fit leaves for the next on the same data: the bank, and the weights to start from."""

    bank: Any = None
    weights: list[np.ndarray] | None = None
    norms: tuple[Norm, ...] = ()  # all that will be learned with these kernels, where it is not one
    spare: int | None = None  # bytes for the solver
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

    # -- checks ---------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_number("C", self.C, low=0)
        check_number("tol", self.tol, low=0)
        self._check_solver()
        if not isinstance(self.combination, ParametricKernel):
            check_choice("combination", self.combination, ("sum", "product"))
        check_choice("approximation", self.approximation, METHODS)
        check_rank(self.rank)
        if self.approximation is not None and self.combination != "sum":
            raise ValueError(f"approximation={self.approximation!r} needs combination='sum'.")
        self._check_device()
        check_choice("missing", self.missing, ("error", "ignore"))
        check_choice("check_kernels", self.check_kernels, CHECKS)
        if self.missing == "ignore" and self.combination != "sum":
            raise ValueError("missing='ignore' needs combination='sum'.")
        check_count("max_iter", self.max_iter)
        self._check_distributed()

    def _check_distributed(self) -> None:
        """Raise if what is asked for cannot be done on workers."""
        is_list = self.combination == "sum" and not isinstance(self.kernels, Family)
        if self._is_distributed() and (self.device != "cpu" or not is_list):
            raise ValueError("n_jobs='dask' needs combination='sum', a list of kernels and device='cpu'.")

    def _check_device(self) -> None:
        check_device(self.device)
        if self.device != "cpu" and (self.combination != "sum" or isinstance(self.kernels, Family)):
            raise ValueError(f"device={self.device!r} is for lists of kernels and combination='sum'; use device='cpu'.")

    def _check_solver(self) -> None:
        """Raise if the solver is for the other kind of kernel sets, or a parameter for lists only."""
        find_solver(self.solver, isinstance(self.kernels, Family))
        if not isinstance(self.kernels, Family):
            return
        for name, needed in (
            ("combination", "sum"),
            ("center", False),
            ("missing", "error"),
            ("approximation", None),
        ):
            if getattr(self, name) != needed:
                raise ValueError(f"A family of kernels needs {name}={needed!r}, got {getattr(self, name)!r}.")

    def _is_distributed(self) -> bool:
        """Return whether the kernels are to be on Dask workers: ``n_jobs`` is then "dask" or a client."""
        return not (self.n_jobs is None or isinstance(self.n_jobs, (int, np.integer)))

    def _client(self) -> Any:
        """Return the client of the workers that hold the kernels, None where they are held here."""
        if not self._is_distributed():
            return None
        from manykernels.banks.cluster import find_client  # noqa: PLC0415 - it needs an optional dependency

        return find_client(self.n_jobs)

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

    def _solver(self) -> Solver:
        return find_solver(self.solver, isinstance(self.kernels, Family))

    def _norm(self) -> Norm:
        return as_norm(self.norm)

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _read(self, given: Any, y: Any, sample_weight: Any, numeric: bool) -> tuple[Any, np.ndarray, Samples]:
        """Return the data and the targets after scikit-learn's checks, and the distinct samples.

        A table on disk is not read, and none of its rows is compared with another.
        """
        if not is_on_disk(given) or self.approximation is None:
            refuse_row_source(given)
            X, y = validate_data(self, given, y, y_numeric=numeric, **self._data_rules())
        else:
            X = self._rows_on_disk(given, reset=True)
            y = column_or_1d(y, warn=True)
            assert_all_finite(y, input_name="y")
            check_consistent_length(X, y)
        if not numeric:
            check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
        if isinstance(X, CheckedRows):
            return X, y, Samples.all_of(weight)
        values = y.astype(np.float64) if numeric else np.unique(y, return_inverse=True)[1]
        return X, y, distinct_samples(X, values, weight)

    # -- fit ------------------------------------------------------------------------------------------------

    def _fit(self, given: Any, y: Any, sample_weight: Any, warm: WarmStart | None = None) -> None:
        raise NotImplementedError

    def _fit_tasks(
        self,
        table: Any,
        X: Any,
        samples: Samples,
        y: np.ndarray,
        C: np.ndarray,
        offset: float = 0.0,
        warm: WarmStart | None = None,
    ) -> bool:
        """Learn the machines of the tasks, y and C of shape (n_tasks, n_distinct), and set the attributes.

        ``offset`` was subtracted from y and goes to the intercepts; a warm start carries the bank and the weights from
        one fit to the next. Returns whether Ctrl-C ended the fit early.
        """
        check_costs(C)
        if isinstance(self.kernels, Family):
            return self._fit_family(self.kernels, table, X, samples, y, C, offset)
        warm = WarmStart() if warm is None else warm
        self._check_views(table, X)
        norm, loss, shared = self._norm(), self._loss(), self._shares_weights(y.shape[0])
        self._solver().refuse(norm, loss)
        tasks = [slice(None)] if shared else [slice(t, t + 1) for t in range(y.shape[0])]
        data = Data(samples.of(X), table, samples.weight)

        def learn(precision: str) -> tuple[Bank, list[Result]]:
            bank = self._warm_bank(warm, data, (y.shape[0], y.shape[1]), loss, precision)
            # Norms learn the groups of the kernels here.
            bound = norm.bind(_every_group(bank.groups))
            # A parametric bank offers less than a finite one; solvers ask for what they need.
            problems = [Problem(bank, loss, bound, y[t], C[t], self.fit_intercept, warm.spare, offset) for t in tasks]
            try:
                return bank, self._solve(problems, warm.starts(problems))
            except np.linalg.LinAlgError:
                name_culprit(bank, np.ones(bank.n_kernels))  # that is what an indefinite kernel ends in
                raise

        bank, results = self._with_digits(learn, warm)
        interrupted = any(result.interrupted for result in results)
        for result in results if not interrupted else ():  # after Ctrl-C nothing more is computed
            check_combination(bank, result.weights)
        warm.weights = [result.weights for result in results]
        self._set_attributes(bank, results, samples, offset)
        self._warn_if_not_converged()
        return interrupted

    def _check_views(self, table: Any, X: Any) -> None:
        """Raise if NaN is allowed but a row has it in a part of a view only; of rows on disk, when they are read."""
        if self.missing != "ignore":
            return
        if isinstance(X, CheckedRows):
            X.check = lambda block: self._bank(table).check_views(block, table)
        else:
            self._bank(table).check_views(X, table)

    def _with_digits(
        self, learn: Callable[[str], tuple[Bank, list[Result]]], warm: WarmStart | None = None
    ) -> tuple[Bank, list[Result]]:
        """Learn from kernels in single precision, and again in double where their rounding is seen.

        ``learn(precision)`` returns a bank and the results on it.
        """
        exact = self.tol < DOUBLE_BELOW or (warm is not None and warm.has("double"))
        bank, results = learn("double" if exact else "single")
        if bank.precision == "single" and self._want_digits(results):
            if warm is not None:
                warm.bank = None  # the memory budget holds one of them
            del bank, results
            bank, results = learn("double")
        return bank, results

    def _fit_family(
        self, family: Family, table: Any, X: Any, samples: Samples, y: np.ndarray, C: np.ndarray, offset: float
    ) -> bool:
        """Learn from a family of kernels: those that are selected become the kernels of the model."""
        if not self._shares_weights(y.shape[0]):
            raise ValueError("A family of kernels needs shared_weights=True.")
        n = y.shape[1]
        left = left_beside(self.memory_budget, _FAMILY_MATRICES * 8 * n * n, f"matrices of {n} samples")
        data = Data(X[samples.rows], table, samples.weight)
        bound = bind_family(family, data, Recipe(self.normalize), Placement(left))
        problem = FamilyProblem(bound, self._loss(), self._norm(), y, C, self.fit_intercept, offset)

        def learn(precision: str) -> tuple[Bank, list[Result]]:
            found = self._solve_family(problem, precision)
            return found.bank, [found.result]

        quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the result is looked at
        with listen(print_step) if self.verbose else nullcontext(), quiet:
            bank, (result,) = self._with_digits(learn)
        checked(result)
        if not result.interrupted:
            check_combination(bank, result.weights)
        self._set_attributes(bank, [result], samples, offset)
        self._warn_if_not_converged()
        return result.interrupted

    def _solve_family(self, problem: FamilyProblem, precision: str) -> FamilyResult:
        options: dict[str, Any] = {"tol": self.tol, "max_iter": int(self.max_iter), "precision": precision}
        solver = self._solver()
        if solver.draws:
            options["random_state"] = check_random_state(self.random_state).randint(2**31 - 1)
        return solver(problem, **options)

    # -- kernels --------------------------------------------------------------------------------------------

    def _kernels(self, table: Any) -> KernelBank | None:
        """Return the kernels; of a product by default one for each feature, of a ParametricKernel none."""
        if isinstance(self.combination, ParametricKernel):
            return None
        if self.combination == "product" and isinstance(self.kernels, str):
            return KernelBank([Gaussian(1.0, columns=[j]) for j in range(table.shape[1])])
        return self._bank(table)

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
        if warm.bank is None and self.combination == "sum":
            tell_choice(self.kernels, data.table)
        place = self._place(shape, data, loss, precision, warm.norms)
        warm.spare = place.spare
        warm.bank = bind(self._kernels(data.table), data, self._recipe(), place, self._seed())
        if warm.bank.has_few_samples and not warm.is_told:
            warm.is_told = True
            self._tell_what_is_cheaper(warm.bank, shape, data, loss)
        return warm.bank

    def _place(
        self, shape: tuple[int, int], data: Data, loss: Loss, precision: str = "single", norms: Sequence[Norm] = ()
    ) -> Placement:
        """Return where the kernels of so many tasks and samples go, and how much memory they get."""
        wish = self._wish(precision)
        if self.approximation is not None:
            return plan_features(data.X, shape, wish)
        return plan(self._extent(shape, data), self._need(shape, data, loss, norms), wish)

    def _extent(self, shape: tuple[int, int], data: Data) -> Extent:
        """Return what there is to hold; of a product, as many kernels as there are columns."""
        kernels = self._kernels(data.table) if self.combination == "sum" else None
        return Extent.of(kernels, self._recipe(), data.X, shape)

    def _need(self, shape: tuple[int, int], data: Data, loss: Loss, norms: Sequence[Norm] = ()) -> Need:
        """Return what the solver takes beside the kernels, for the most demanding norm that is to come."""
        n_tasks, n = shape
        shared = self._shares_weights(n_tasks)
        at_once = 1 if shared or self._is_distributed() else min(n_tasks, effective_n_jobs(self.n_jobs))
        n_kernels = len(self._bank(data.table)) if self.combination == "sum" else data.X.shape[1]
        sizes = Sizes(n_tasks if shared else 1, n, n_kernels)
        return self._solver().need_for(sizes, norms or (self._norm(),), loss, at_once)

    def _tell_what_is_cheaper(self, bank: Any, shape: tuple[int, int], data: Data, loss: Loss) -> None:
        """Warn where features are no fewer than samples and the exact kernels fit into memory."""
        n, n_features = bank.n_samples, int(bank.first[-1])
        if n_features < n or isinstance(data.X, CheckedRows):
            return
        precision = "double" if self.tol < DOUBLE_BELOW else "single"
        room = exact_bytes(self._extent(shape, data), self._need(shape, data, loss), precision)
        if room <= budget_bytes(self.memory_budget):
            warn(
                f"approximation={self.approximation!r} makes {n_features:,} features of {n:,} samples, so the exact "
                f"kernels ({human_bytes(room)} of memory) cost no more: take approximation=None or a lower rank."
            )

    def _want_digits(self, results: list[Result]) -> bool:
        """Return whether kernels in double precision are called for.

        They are when rounding could fake the certificate, or when a solver gave up before its time.
        """
        faked = any(result.rounding > _ROUNDING_SHARE * self.tol for result in results)
        stuck = any(not result.converged and result.n_iter < self.max_iter for result in results)
        return (faked or stuck) and not any(result.interrupted for result in results)

    def _shares_weights(self, n_tasks: int) -> bool:
        return True

    def _solve(self, problems: list[Problem], starts: list[np.ndarray | None]) -> list[Result]:
        interrupted = threading.Event()
        with listen(print_step) if self.verbose else nullcontext():
            if len(problems) == 1:
                return [self._solve_one(problems[0], starts[0], interrupted)]
            # Each thread gets a copy of the context, so that those who listen hear every class.
            jobs = [
                delayed(copy_context().run)(self._solve_one, problem, start, interrupted)
                for problem, start in zip(problems, starts, strict=True)
            ]
            # A bank with rows on demand remembers its last problem, and uses all cores by itself; so does a device.
            alone = not problems[0].bank.concurrent
            # Shared memory, whatever backend is active: contexts and banks do not travel.
            return Parallel(n_jobs=1 if alone else self.n_jobs, require="sharedmem")(jobs)

    def _solve_one(self, problem: Problem, start: np.ndarray | None, interrupted: threading.Event) -> Result:
        """Solve one of several problems; after Ctrl-C the rest gets one iteration each, for a whole model."""
        max_iter = 1 if interrupted.is_set() else int(self.max_iter)
        solver = self._solver()
        extra = {"random_state": self.random_state} if solver.draws else {}
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the result is looked at
            result = checked(solver(problem, tol=self.tol, max_iter=max_iter, start=start, **extra))
        if result.interrupted:
            interrupted.set()
        return without_zero_kernels(problem, result)

    def _set_attributes(self, bank: Bank, results: list[Result], samples: Samples | None, offset: float) -> None:
        """Set what was learned; without samples, their rows are elsewhere, and so are the dual coefficients."""
        weights = np.array([result.weights for result in results])
        machines = [replace(r.machine, intercept=r.machine.intercept + offset) for r in results]
        n_tasks = sum(machine.intercept.size for machine in machines)
        beta, rows, n_train = np.zeros((n_tasks, 0)), np.zeros(0, np.int64), 0
        if samples is not None:
            beta = samples.spread(np.vstack([result.machine.beta for result in results]))
            rows, n_train = samples.rows, samples.owner.size
        total = Certificate(
            primal=sum(result.certificate.primal for result in results),
            dual=sum(result.certificate.dual for result in results),
            rounding=max(result.certificate.rounding for result in results),
        )
        self._predictors = [
            Predictor.of(bank.learned(own, machine), own, rows, n_train)
            for own, machine in zip(weights, machines, strict=True)
        ]
        self.weights_ = weights[0] if len(results) == 1 else weights
        self.kernel_names_ = bank.names
        self.kernel_groups_ = bank.groups
        self.group_names_, group_weights = sums_by_group(bank.groups, weights)
        self.group_weights_ = group_weights[0] if len(results) == 1 else group_weights
        self.active_ = np.flatnonzero(np.any(weights > 0, axis=0))
        self.support_ = np.flatnonzero(np.any(beta != 0, axis=0))
        self.dual_coef_ = beta[:, self.support_]
        self.intercept_ = np.concatenate([machine.intercept for machine in machines])
        self.objective_ = total.primal
        self.dual_objective_ = total.dual
        self.gap_ = total.gap
        self.gap_is_exact_ = all(result.exact for result in results)
        no_dual = np.isnan(total.gap)
        self.converged_ = all(result.converged for result in results) if no_dual else total.within(self.tol)
        self.n_iter_ = max(result.n_iter for result in results)
        self.n_inner_solves_ = sum(result.n_inner_solves for result in results)
        self.trace_ = [step for result in results for step in result.trace]
        importances = bank.importances(weights.mean(axis=0), self.n_features_in_)
        self.feature_importances_ = importances / (importances.sum() or 1.0)
        for name in ("approximation_error_", "ranks_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(bank.attributes)
        self.extra_: dict = {}

    def _warn_if_not_converged(self) -> None:
        if not self.converged_:
            remedy = "raise max_iter or tol"
            if self.n_iter_ < self.max_iter:
                remedy = "rounding allows no less: scale the features, normalize the kernels, lower C or raise tol"
            reached = f"relative duality gap {self.gap_:.2e}, above tol={self.tol:.2e}"
            if np.isnan(self.gap_):
                reached = f"objective {self.objective_:.6g} with a projected gradient above tol={self.tol:.2e} of it"
            warn(
                f"{type(self).__name__} stopped after {self.n_iter_} iterations (max_iter={self.max_iter}) at the "
                f"{reached}; {remedy}.",
                ConvergenceWarning,
            )


def checked(result: Result) -> Result:
    """Return a result whose numbers are finite, or say that the objective overflows."""
    machine, certificate = result.machine, result.certificate
    # What is not finite in the coefficients is not in their quadratic form either.
    parts = (result.weights, machine.quadratic, machine.intercept, certificate.primal)
    if not all(np.all(np.isfinite(part)) for part in parts) or np.isinf(certificate.gap):
        raise ValueError(OVERFLOWS)
    return result


def as_norm(norm: Any) -> Norm:
    """Return what an estimator's ``norm`` stands for: a norm, or a number p for LpNorm(p)."""
    if isinstance(norm, Norm):
        return norm
    if is_number(norm) and norm >= 1:
        return LpNorm(float(norm))
    raise ValueError(f"norm must be a number p in [1, inf] or a norm such as LpNorm(2), got {norm!r}.")


def _every_group(groups: Sequence[str]) -> list[str]:
    """Return the group of every kernel as a list."""
    return [name for name, count in run_lengths(groups) for _ in range(count)]
