"""Running solvers: who watches, what is made of numbers that overflow, and tasks side by side."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from manykernels.banks import Placement
from manykernels.core.progress import listen
from manykernels.core.protocols import Bank
from manykernels.core.results import OVERFLOWS, ROUNDING_SHARE, Certificate, Result, Step
from manykernels.core.samples import LEAST_WEIGHT
from manykernels.estimators.settings import Settings
from manykernels.estimators.warm_start import Learner, WarmStart
from manykernels.outer.few_samples import solve_on_matrices
from manykernels.outer.fewer_tasks import fewer_tasks, restored
from manykernels.outer.separate_tasks import solve_together
from manykernels.outer.zero_kernels import without_zero_kernels
from manykernels.problem import Problem

# NumPy says nothing of what overflows on the way: whoever uses this looks at the outcome.
quiet = partial(np.errstate, over="ignore", invalid="ignore", divide="ignore")

# A tighter tol than this starts in double precision.
_DOUBLE_BELOW = 1e-5


def needs_digits(rounding: float, tol: float) -> bool:
    """Return whether kernels in single precision are too coarse: if rounding is more than a tenth of the tolerance.

    Both are relative to the objective.

    Examples
    --------
    >>> from manykernels.estimators.running import needs_digits
    >>> needs_digits(1e-5, 1e-3), needs_digits(1e-5, 1e-5), needs_digits(float("nan"), 1e-3)
    (False, True, True)
    """
    return not rounding <= ROUNDING_SHARE * tol


def first_precision(tol: float) -> str:
    """Return the precision of the kernels that a fit begins with."""
    return "double" if tol < _DOUBLE_BELOW else "single"


def with_digits(settings: Settings, learn: Learner, warm: WarmStart) -> tuple[Bank, list[Result]]:
    """Learn from kernels in single precision, and again in double where their rounding is seen.

    It is where rounding could fake the certificate, or a solver gave up before its time.
    """
    bank, results = learn("double" if warm.has("double") else first_precision(settings.tol))
    faked = any(needs_digits(result.rounding, settings.tol) for result in results)
    stuck = any(not result.converged and result.n_iter < settings.max_iter for result in results)
    interrupted = any(result.interrupted for result in results)
    if bank.precision == "single" and (faked or stuck) and not interrupted:
        warm.bank = None  # the memory budget holds one of them
        del bank, results
        bank, results = learn("double")
    return bank, results


def print_step(step: Step) -> None:
    """Print one line of a trace."""
    print(
        f"iteration {step.iteration:4d}  {step.seconds:8.2f} s  objective {step.objective:.8g}  "
        f"gap {step.gap:.2e}  kernels {step.n_active}"
    )


def print_placement(asked: Any, words: str, placement: Placement) -> None:
    """Print one line, if ``verbose`` of settings or an estimator asks for it: how the kernels are held, and why so."""
    if asked.verbose:
        print("; ".join(filter(None, (f"kernels: {words}", placement.why))))


def watched(asked: Any) -> AbstractContextManager[None]:
    """Print the steps inside the block if ``verbose`` asks for it; Ctrl-C then keeps the best model so far."""
    return listen(print_step) if asked.verbose else nullcontext()


def check_costs(C: np.ndarray) -> None:
    """Raise where C times a weight has lost its digits at the lower end of the range of doubles."""
    lost = (C > 0) & (C < LEAST_WEIGHT)
    if np.any(lost) or not np.any(C):
        least = C[lost].min() if np.any(lost) else 0.0
        raise ValueError(f"C times the sample weight must be 0 or at least {LEAST_WEIGHT:.2g}, got {least:.2g}.")


def check_finite(certificate: Certificate, *parts: Any) -> None:
    """Raise ValueError if the objective overflows: if its value, a part of the model, or the gap is not finite.

    A gap that is not known passes.
    """
    if np.isinf(certificate.gap) or not all(np.all(np.isfinite(part)) for part in (certificate.primal, *parts)):
        raise ValueError(OVERFLOWS)


def checked(result: Result) -> Result:
    """Return a result whose numbers are finite, or say that the objective overflows."""
    # What is not finite in the coefficients is not in their quadratic form either.
    check_finite(result.certificate, result.weights, result.machine.quadratic, result.machine.intercept)
    return result


def solve(settings: Settings, problems: list[Problem], starts: list[np.ndarray | None]) -> list[Result]:
    """Solve problems that share a bank, side by side where it lets them and ``n_jobs`` says so."""
    interrupted = threading.Event()
    seed = settings.solver_seed if settings.solver.draws else None  # drawn once, and not by each thread
    with watched(settings):
        if len(problems) == 1:
            return [_solve_one(settings, problems[0], starts[0], seed, interrupted)]
        # Each thread gets a copy of the context, so that those who listen hear every class.
        jobs = [
            delayed(copy_context().run)(_solve_one, settings, problem, start, seed, interrupted)
            for problem, start in zip(problems, starts, strict=True)
        ]
        # A bank with rows on demand remembers its last problem, and uses all cores by itself; so does a device.
        alone = not problems[0].bank.concurrent
        # Shared memory, whatever backend is active: contexts and banks do not travel.
        return Parallel(n_jobs=1 if alone else settings.n_jobs, require="sharedmem")(jobs)


def solve_separately(settings: Settings, problem: Problem, start: np.ndarray | None) -> Result:
    """Solve the tasks of a problem together, each with weights of its own."""
    with watched(settings), quiet():
        result = solve_together(settings.solver, problem, tol=settings.tol, max_iter=settings.max_iter, start=start)
        return checked(result)


def _solve_one(
    settings: Settings, problem: Problem, start: np.ndarray | None, seed: int | None, interrupted: threading.Event
) -> Result:
    """Solve one of several problems; after Ctrl-C the rest gets one iteration each, for a whole model."""
    max_iter = 1 if interrupted.is_set() else settings.max_iter
    solver = settings.solver
    options: dict[str, Any] = {"tol": settings.tol, "max_iter": max_iter, "start": start}
    if solver.draws:
        options["random_state"] = seed
    with quiet():
        fewer = fewer_tasks(problem)
        result = solve_on_matrices(solver, fewer, **options) or solver(fewer, **options)
        result = checked(result if fewer is problem else restored(problem, fewer, result, settings.tol))
    if result.interrupted:
        interrupted.set()
    return without_zero_kernels(problem, result)
