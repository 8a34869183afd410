"""Which optimizer for which problem: what ``solver="auto"`` means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.progress import silent
from manykernels.core.results import Result, joined
from manykernels.losses import Loss
from manykernels.norms import LpNorm, LpPenalty, MixedNorm
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.memory import solver_bytes
from manykernels.outer.multilevel import has_both_classes, multilevel_newton
from manykernels.outer.newton import newton
from manykernels.outer.spg import spg
from manykernels.problem import Norm, Problem, closed_form

# Below this p the alternation needs many iterations, and above the second few (measured: benchmarks/speed/l1.py).
_MANY_ITERATIONS = 1.25
_FEW_ITERATIONS = 3.0
# From this number of operations a factorization (tasks times samples cubed) on, steps in the weights alone, which
# factor only the free samples, are faster than the interior point, which factors all of them and more often.
_HEAVY = 3e7
# The interior point would take minutes beyond this number of samples.
_MANY_SAMPLES = 6000
_PATIENCE = 100
# A part of the samples gives a first guess of the weights where it has this many, and to this gap.
_FEWEST, _COARSE_GAP = 200, 1e-2
# Of tol: a gap on matrices of features, whose certificate on the features themselves differs by rounding.
_WRITTEN_SHARE = 0.9
# For p > 1 all kernels have weights: a second-order step pays where they are few beside the samples.
_LARGE, _SAMPLES_PER_KERNEL = 1000, 8


def selects_few(norm: Norm) -> bool:
    """Return whether the methods that ``automatic`` takes for this norm work on a few kernels at a time."""
    return isinstance(norm, MixedNorm) or (isinstance(norm, (LpNorm, LpPenalty)) and norm.p < _MANY_ITERATIONS)


@one_blas_thread()
def automatic(problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None) -> Result:
    """Solve by the method that is fastest for the norm and the size; where it ends before its time, by the next.

    For p near 1 ``newton`` for few samples and ``multilevel_newton`` for many, otherwise
    ``group_lasso``, unless samples are many and kernels few; ``spg`` for penalties without a closed form and
    for kernels that are no sum. Where the combined kernel does not fit into memory, a part of the samples gives the
    first weights. Parameters and result are theirs.
    """
    result = _on_matrices(problem, tol, max_iter, start)
    if result is not None and (result.converged or result.interrupted or result.n_iter >= max_iter):
        return result
    if result is not None and result.rounding > tol:
        return result  # what is left of the gap is rounding, and more digits are not to be had here
    if result is None and start is None and _has_rows_only(problem):
        start = _coarse_weights(problem)
    methods = list(_methods(problem))
    for place, solver in enumerate(methods, start=1):
        left = max_iter if result is None else max_iter - result.n_iter
        rounds = left if place == len(methods) else min(left, _PATIENCE)
        if result is None:
            result = solver(problem, tol=tol, max_iter=rounds, start=start)
        else:
            result = _continued(result, solver(problem, tol=tol, max_iter=rounds, start=result.weights))
        if result.converged or result.interrupted or result.n_iter >= max_iter:
            break
    assert result is not None
    return result


def _methods(problem: Problem) -> Iterator[Callable[..., Result]]:
    """Return the methods to try, in order; each but the last has _PATIENCE rounds."""
    has_gap = problem.norm.has_dual and "quad_forms" in problem.bank.capabilities
    if closed_form(problem.norm) is None or not has_gap:
        yield spg
        return
    if _has_rows_only(problem):
        # Near p = 1 the alternation takes long to raise the weight of a kernel that the first guess had left out.
        yield spg if selects_few(problem.norm) and hasattr(problem.norm, "project") else group_lasso
        return
    n_samples = problem.y.shape[1]
    finite = isinstance(problem.norm, (LpNorm, LpPenalty)) and np.isfinite(problem.norm.p)
    if finite and _steps_in_weights(problem):
        yield multilevel_newton
    elif selects_few(problem.norm):
        yield newton
    if not selects_few(problem.norm) or n_samples > _MANY_SAMPLES:
        yield group_lasso
    last = n_samples <= _MANY_SAMPLES and (_steps_in_weights(problem) or not selects_few(problem.norm))
    if finite and last and _has_memory_for_newton(problem):
        yield newton


def _has_rows_only(problem: Problem) -> bool:
    """Return whether the combined kernel is rows on demand: few methods can do with that."""
    return hasattr(problem.bank, "coarse_size")


def _coarse_weights(problem: Problem) -> np.ndarray | None:
    """Return the weights that are best for a random part of the samples, whose losses count the more."""
    size = problem.bank.coarse_size  # type: ignore[attr-defined]
    while size >= _FEWEST and not _has_memory_for_part(problem, size):
        size //= 2
    if size < _FEWEST or not has_both_classes(problem, size):
        return None
    part = _part(problem, size)
    with silent():
        return automatic(replace(part, C=part.C * (problem.y.shape[1] / size)), tol=_COARSE_GAP).weights


def _on_matrices(problem: Problem, tol: float, max_iter: int, start: np.ndarray | None) -> Result | None:
    """Return what the methods for matrices find where features are no fewer than samples; else None.

    The certificate is that of the features.
    """
    bank, n = problem.bank, problem.y.shape[1]
    if not getattr(bank, "has_few_samples", False) or not _has_memory_for_part(problem, n):
        return None
    result = automatic(_part(problem, n), tol=_WRITTEN_SHARE * tol, max_iter=max_iter, start=start)
    K = bank.combine(result.weights, out=problem.workspace())
    machine = problem.machine(result.machine.beta, K.product(result.machine.beta))  # type: ignore[attr-defined]
    certificate = problem.certificate(result.weights, machine, problem.quad_forms(machine))
    rounding = problem.rounding(K, machine) / max(abs(certificate.primal), 1e-300)
    certificate = replace(certificate, rounding=rounding if rounding > tol else 0.0)
    return replace(
        result, machine=machine, certificate=certificate, converged=certificate.within(tol), rounding=rounding
    )


def _part(problem: Problem, size: int) -> Problem:
    """Return the problem of the last samples on kernels that are written out, with the memory that is left beside."""
    bank: Any = problem.bank
    part = problem.tail(size)
    return replace(part, memory=bank.room - bank.tail_bytes(size)) if hasattr(bank, "tail_bytes") else part


def _has_memory_for_part(problem: Problem, size: int) -> bool:
    """Return whether the bank has room for its kernels on so many samples, and for what solves with them."""
    bank: Any = problem.bank
    if not hasattr(bank, "tail_bytes"):
        return True
    n_tasks = problem.y.shape[0]
    need, _ = automatic_bytes(problem.norm, problem.loss, n_tasks, size, bank.n_kernels)
    return bank.tail_bytes(size) + need <= bank.room


def _steps_in_weights(problem: Problem) -> bool:
    """Return whether Newton steps in the weights alone are the fastest for this (finite) p and these sizes."""
    n_tasks, n = problem.y.shape
    return _are_steps_in_weights(problem.norm, n_tasks, n, problem.bank.n_kernels)


def _are_steps_in_weights(norm: Norm, n_tasks: int, n: int, n_kernels: int) -> bool:
    if not isinstance(norm, LpNorm):
        return False
    if selects_few(norm):
        return n_tasks * n**3 >= _HEAVY
    return norm.p < _FEW_ITERATIONS and n >= _LARGE and n_kernels * _SAMPLES_PER_KERNEL <= n


def _has_memory_for_newton(problem: Problem) -> bool:
    """Return whether the interior point may be tried last: what is planned for the others is less."""
    n_tasks, n = problem.y.shape
    need = solver_bytes("newton", problem.norm, problem.loss, n_tasks, n, problem.bank.n_kernels)
    return problem.memory is None or need <= problem.memory


def automatic_bytes(norm: Norm, loss: Loss, n_tasks: int, n: int, n_kernels: int) -> tuple[int, int]:
    """Return the bytes that ``automatic`` takes beside the bank: at least, and with the interior point as its last.

    Examples
    --------
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.automatic import automatic_bytes
    >>> automatic_bytes(LpNorm(2), Hinge(), 1, 1000, 50)
    (13660000, 25620808)
    """

    def need(solver: str) -> int:
        return solver_bytes(solver, norm, loss, n_tasks, n, n_kernels)

    finite = isinstance(norm, (LpNorm, LpPenalty)) and np.isfinite(norm.p)
    methods = ["group_lasso"]
    if finite and _are_steps_in_weights(norm, n_tasks, n, n_kernels):
        methods.append("reduced_newton")
    elif selects_few(norm):
        methods.append("newton")
    least = max(need(method) for method in methods)
    return least, max(least, need("newton")) if finite and n <= _MANY_SAMPLES else least


def _continued(first: Result, second: Result) -> Result:
    """Return the better of two runs, with the trace and the counts of both."""
    best = min(first, second, key=lambda result: abs(result.certificate.gap))
    if second.converged:
        best = second
    return replace(
        best,
        n_iter=first.n_iter + second.n_iter,
        n_inner_solves=first.n_inner_solves + second.n_inner_solves,
        interrupted=second.interrupted,
        trace=joined(first.trace, second.trace),
    )
