"""Any solver for one class: a look beforehand, whether there is anything to learn, and an exact machine at the end.

The problem of :class:`manykernels.losses.OneClass`,

    maximize over beta    -1/2 N*(sqrt(q))^2,     0 <= beta_i <= C_i,     1'beta = nu sum_i C_i,

has the value 0 where coefficients exist for which all forms q_k are 0: then the origin of the feature spaces cannot be
separated from the data, and the best function is 0. For any weights d > 0 these are the coefficients with
beta' K_d beta = 0. So one machine with equal weights says which it is: a function f for which the least beta'f of all
feasible beta is positive proves that the origin can be separated, since a multiple of it has a negative objective.

A kernel that is nearly the same for all samples, a wide Gaussian, has forms that are large and say nothing: q_k is near
(1'beta)^2 whatever beta is. Where such kernels are among the best, a small relative gap leaves the coefficients open.
So the machine is solved once more with the weights found, to an accuracy that is measured by how much the scores of the
samples differ, and not by the objective.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.results import Result
from manykernels.core.solver import Solver
from manykernels.losses import OneClass
from manykernels.problem import Problem

# Accuracies at which a function may prove that the origin can be separated, and that of the last machine.
_ROUGH, _LAST_TRIAL, _FINE = 1e-3, 1e-6, 1e-4
# Of tol: how far from 1 nu stays.
_ROOM = 1e-2
# Scores this small beside what they could be are rounding.
_NOTHING = 1e-12


def of_one_class(solver: Solver) -> Solver:
    """Return the solver with both machines.

    Parameters
    ----------
    solver : Solver

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses.threshold import OneClass
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.automatic import AUTO
    >>> from manykernels.outer.exact_machine import of_one_class
    >>> from manykernels.problem import Problem
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0)]), X)
    >>> problem = Problem(bank, OneClass(0.2), LpNorm(2), np.ones((1, 40)), np.ones((1, 40)))
    >>> result = of_one_class(AUTO)(problem, tol=1e-4)
    >>> result.converged, round(float(result.machine.beta.sum()), 9)
    (True, 8.0)
    """
    return replace(solver, run=partial(_run, solver))


@one_blas_thread()
def _run(solver: Solver, problem: Problem, *, tol: float = 1e-3, **options: Any) -> Result:
    nothing = _nothing_to_learn(problem)
    if nothing is not None:
        return nothing
    roomy = _with_room(problem, tol)
    result = solver(roomy, tol=tol, **options)
    if result.interrupted and roomy is problem:
        return result
    exact = _with_exact_machine(problem, result, tol)
    is_worse = roomy is problem and exact.certificate.gap > max(tol, result.certificate.gap)
    return result if is_worse else exact


def _with_room(problem: Problem, tol: float) -> Problem:
    """Return the problem, where nu is next to 1 with a little less: between the bounds there is room for steps.

    With nu = 1 all coefficients are at their bounds, and only the weights are to be learned.
    """
    most = 1.0 - _ROOM * min(tol, 1.0)
    return problem if _nu(problem) <= most else replace(problem, loss=OneClass(most))


def _nu(problem: Problem) -> float:
    return cast(OneClass, problem.loss).nu


def _nothing_to_learn(problem: Problem) -> Result | None:
    """Return None where the origin can be separated; else raise ValueError, or ask for kernels with more digits."""
    weights = problem.norm.initial_weights(problem.bank.n_kernels)
    K = problem.bank.combine(weights)
    center, root = problem.loss.center(problem.C), np.sqrt(K.diagonal())
    assert center is not None
    machine = None
    if np.any(np.abs(K.product(center)) > _NOTHING * root * float(np.sum(center * root))):
        for tol in (_ROUGH, _LAST_TRIAL):
            machine = problem.solve(K, machine, tol)
            if machine.losses < 0.0:
                return None
    machine = problem.machine(center, K.product(center)) if machine is None else machine
    if problem.bank.precision != "single":
        raise ValueError(
            f"The origin cannot be separated from the data with nu={_nu(problem):g}, so that no function is better "
            "than 0: raise nu, or take kernels with positive values, such as Gaussian ones."
        )
    certificate = problem.certificate(weights, machine, problem.quad_forms(machine))
    return Result(weights, machine, certificate, False, n_iter=1, n_inner_solves=1, rounding=np.inf)


def _with_exact_machine(problem: Problem, result: Result, tol: float) -> Result:
    """Return the result with the machine solved once more."""
    machine = problem.solve(problem.bank.combine(result.weights), result.machine, min(_FINE, tol))
    certificate = problem.certificate(result.weights, machine, problem.quad_forms(machine))
    certificate = certificate.rounded(result.rounding, tol)
    return replace(
        result,
        machine=machine,
        certificate=certificate,
        converged=certificate.within(tol),
        n_inner_solves=result.n_inner_solves + 2,
    )
