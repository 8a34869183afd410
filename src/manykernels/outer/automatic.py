"""Which optimizer for which problem: what ``solver="auto"`` means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.progress import silent
from manykernels.core.results import Result, joined
from manykernels.core.solver import Need, Sizes, Solver
from manykernels.losses import TotalLoss
from manykernels.norms import Norm
from manykernels.outer.batched_ridge import BATCHED_RIDGE
from manykernels.outer.few_samples import has_room, sizes_of
from manykernels.outer.group_lasso import GROUP_LASSO
from manykernels.outer.multilevel import MULTILEVEL, has_contrast
from manykernels.outer.needs import working_set
from manykernels.outer.newton import NEWTON
from manykernels.outer.reduced_newton import REDUCED_NEWTON
from manykernels.outer.spg import SPG
from manykernels.problem import Problem

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
# Of more tasks that share their weights, the interior point holds too many matrices, and products of all kernels with
# the coefficients of all tasks may be too many numbers: so many times those of a matrix of all samples.
_MANY_TASKS, _MOST_PRODUCTS = 50, 16
# For p > 1 all kernels have weights: a second-order step pays where they are few beside the samples.
_LARGE, _SAMPLES_PER_KERNEL = 1000, 8


def selects_few(norm: Norm) -> bool:
    """Return whether the methods that ``automatic`` takes for this norm work on a few kernels at a time."""
    levels = norm.levels()
    return levels is not None and (levels.groups is not None or levels.p < _MANY_ITERATIONS)


@one_blas_thread()
def automatic(problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None) -> Result:
    """Solve by the method that is fastest for the norm and the size; where it ends before its time, by the next.

    For p near 1 ``newton`` for few samples and ``multilevel_newton`` for many, otherwise
    ``group_lasso``, unless samples are many and kernels few; ``spg`` for penalties without a closed form and
    for kernels that are not a sum. Where the combined kernel does not fit into memory, a part of the samples gives the
    first weights. Parameters and result are theirs.
    """
    result: Result | None = None
    if start is None and problem.bank.coarse_size is not None:
        start = _coarse_weights(problem)
    methods = list(_methods(problem))
    for place, solver in enumerate(methods, start=1):
        left = max_iter if result is None else max_iter - result.n_iter
        rounds = left if place == len(methods) else min(left, _PATIENCE)
        if result is None:
            result = solver(problem, tol=tol, max_iter=rounds, start=start)
        else:
            result = _continued(result, solver(problem, tol=tol, max_iter=rounds, start=result.weights))
        is_done = result.converged or result.interrupted or result.n_iter >= max_iter
        if is_done or result.certificate.lacks_digits(tol):
            break
    assert result is not None
    return result


def _methods(problem: Problem) -> Iterator[Solver]:
    """Return the methods to try, in order; each but the last has _PATIENCE rounds."""
    norm, has_gap = problem.norm, problem.norm.has_dual and "quad_forms" in problem.bank.can
    if not norm.has_closed_form or not has_gap:
        yield SPG
        return
    if problem.bank.coarse_size is not None or not NEWTON.needs | MULTILEVEL.needs <= problem.bank.can:
        # Near p = 1 the alternation takes long to raise the weight of a kernel that the first guess had left out.
        yield SPG if selects_few(norm) and norm.projection() is not None else GROUP_LASSO
        return
    n_tasks, n_samples = problem.y.shape
    sizes = Sizes(n_tasks, n_samples, problem.bank.n_kernels)
    takes_newton = NEWTON.refuses(norm, problem.loss) is None
    steps_in_weights = _steps_in_weights(norm, sizes, problem.loss)
    if steps_in_weights:
        yield MULTILEVEL
    elif selects_few(norm) and takes_newton:
        yield NEWTON
    takes_newton = takes_newton and _has_room_for_factors(sizes)
    if not selects_few(norm) or not takes_newton:
        yield GROUP_LASSO
    last = takes_newton and (steps_in_weights or not selects_few(norm))
    spare = problem.bank.spare
    fits = spare is None or NEWTON.need(sizes, norm, problem.loss).n_bytes <= spare
    if last and _is_finite(norm) and fits:
        yield NEWTON


def _is_finite(norm: Norm) -> bool:
    """Return whether the second-order methods, which know no groups of weights of their own, take the norm."""
    levels = norm.levels()
    return levels is not None and levels.groups is None and levels.is_finite


def _coarse_weights(problem: Problem) -> np.ndarray | None:
    """Return the weights that are best for a random part of the samples, whose losses count the more."""
    size = problem.bank.coarse_size
    if size is None:
        return None
    while size >= _FEWEST and not has_room(problem, size, _need(sizes_of(problem, size), problem.norm, problem.loss)):
        size //= 2
    if size < _FEWEST:
        return None
    coarse = problem.coarse(size)
    if not has_contrast(coarse.loss, coarse.y):
        return None
    with silent():
        return automatic(replace(coarse, C=coarse.C * (problem.y.shape[1] / size)), tol=_COARSE_GAP).weights


def _has_room_for_factors(sizes: Sizes) -> bool:
    """Return whether the interior point, which factors a matrix for each task, is not too slow and too large."""
    return sizes.n_samples <= _MANY_SAMPLES and sizes.n_tasks <= _MANY_TASKS


def _steps_in_weights(norm: Norm, sizes: Sizes, loss: TotalLoss) -> bool:
    """Return whether Newton steps in the weights alone are the fastest for this norm, these sizes and this loss."""
    n_products = sizes.n_tasks * working_set(norm, sizes.n_kernels)
    if not loss.quadratic and n_products > max(_MOST_PRODUCTS * sizes.n_samples, sizes.n_kernels):
        return False
    levels = norm.levels()
    if levels is None or not levels.is_plain or not levels.is_finite:
        return False
    if selects_few(norm):
        return sizes.n_tasks * sizes.n_samples**3 >= _HEAVY or NEWTON.refuses(norm, loss) is not None
    n = sizes.n_samples
    return levels.p < _FEW_ITERATIONS and n >= _LARGE and sizes.n_kernels * _SAMPLES_PER_KERNEL <= n


def _need(sizes: Sizes, norm: Norm, loss: TotalLoss) -> Need:
    """Return the largest need of the methods that may be tried, and that of the interior point, which may be last.

    Examples
    --------
    >>> from manykernels.core.solver import Sizes
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.automatic import AUTO
    >>> need = AUTO.need(Sizes(1, 1000, 50), LpNorm(2), Hinge())
    >>> need.n_bytes, need.most
    (13660000, 25620808)
    """
    methods = [GROUP_LASSO]
    if _steps_in_weights(norm, sizes, loss):
        methods.append(REDUCED_NEWTON)
    elif selects_few(norm) and NEWTON.refuses(norm, loss) is None:
        methods.append(NEWTON)
    is_last = _is_finite(norm) and _has_room_for_factors(sizes) and NEWTON.refuses(norm, loss) is None
    last = NEWTON.need(sizes, norm, loss).n_bytes if is_last else 0
    least = max(method.need(sizes, norm, loss).n_bytes for method in methods)
    return Need(least, last, works_on_few=selects_few(norm))


AUTO = Solver(name="auto", run=automatic, need=_need, separate=BATCHED_RIDGE)


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
