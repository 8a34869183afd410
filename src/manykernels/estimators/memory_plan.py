"""Where the kernels of a fit are held, and in how much memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from manykernels.compute.gpu import Device
from manykernels.compute.memory import budget_bytes, human_bytes
from manykernels.compute.packed import triangle_size
from manykernels.core.rows import CheckedRows
from manykernels.core.solver import Sizes
from manykernels.kernels.bank import KernelBank
from manykernels.kernels.device.bank import LARGE
from manykernels.kernels.ladder import GaussianLadder
from manykernels.kernels.on_demand import CAPABILITIES as ROWS
from manykernels.losses import Loss
from manykernels.norms import Norm
from manykernels.outer.automatic import selects_few

# A tighter tol than this starts in double precision.
DOUBLE_BELOW = 1e-5
# Part of the memory budget that blocks in flight and the allocator take.
HEADROOM = 0.15
# How many times more samples may have a combined kernel off the device for p near 1 (measured on an H200).
_FEW_SMOOTH, _FEW_KINKED = 3, 7
# Numbers a sample and task beside its features: targets, coefficients, predictions, what the solvers keep of them.
_FEATURE_VECTORS = 30
# The rest is for the matrix of a working set and for rows on their way into the cache.
_LEAST_ROWS, _CACHE_SHARE = 256, 0.7
# Kernels that a second-order method holds beside a bank that does not fit.
_RESERVE = 60
# Part of the memory that a method may have which is tried where all others have failed.
_LAST_RESORT = 0.5
# Bytes of a kernel as an object with its name, and numbers that solvers keep for each.
_KERNEL_BYTES, _KERNEL_VECTORS = 800, 10
# What is smaller is not counted: an interpreter takes and leaves as much.
_UNCOUNTED = 2 * 10**6


@dataclass(frozen=True)
class MemoryPlan:
    """How a fit holds its kernels.

    Attributes
    ----------
    storage : str
        As for :meth:`KernelBank.bind`, or "features".
    kernel_bytes : int
        Memory for kernels.
    solver_bytes : int or None
        Memory for the optimizer beside them; None where it does not count.
    reserve : int
        Kernels that the optimizer works on, beside a bank that does not fit.
    """

    storage: str
    kernel_bytes: int
    solver_bytes: int | None = None
    reserve: int = 0


def plan_memory(
    model: Any, table: Any, X: Any, shape: tuple[int, ...], loss: Loss, norms: Sequence[Norm] = ()
) -> MemoryPlan:
    """Return how to hold the kernels, and the bytes for them beside the combined kernel and the solver.

    Where the combined kernel does not fit, its rows are computed on demand, if loss and solver can do with that.

    Parameters
    ----------
    model : BaseMKL
    table, X : the training data, where names are looked up and as an array or CSR matrix
    shape : (int, int)
        Tasks, and distinct samples.
    loss : Loss
    norms : sequence of Norm
        All that will be learned with these kernels; default: the model's own.
    """
    (n_tasks, n), norms = shape, norms or (model._norm(),)
    budget = budget_bytes(model.memory_budget)
    usable = int((1 - HEADROOM) * budget)
    if model.approximation is not None:
        return _feature_plan(budget, X, n_tasks, n)
    solver = model._solver()
    reserve = _RESERVE if any(solver.need(Sizes(n_tasks, n, 1), norm, loss).works_on_few for norm in norms) else 0
    if _stays_on_device(model, n, loss, norms) and _can_do_with_rows(model, table, loss):
        return MemoryPlan("rows", usable, reserve=reserve)
    bank = model._bank(table) if model.combination == "sum" else None
    m = X.shape[1] if bank is None else len(bank)
    beside = _small_things(model, bank, X, n)
    needs = [_solver_needs(model, bank, norm, loss, n_tasks, n, m) for norm in norms]
    least, most = (max(need[which] for need in needs) for which in (0, 1))
    if least + beside <= usable:
        # A method that is only the last resort may have what would be left, but not what kernels would fill.
        need = most if most + beside <= _LAST_RESORT * usable else least
        return MemoryPlan("auto", max(1, usable - need - beside), need, reserve)
    need = least
    if bank is not None and _can_do_with_rows(model, table, loss):
        products = 8 * n_tasks * m * n
        need = min(least, products + int(4 * _LEAST_ROWS * n / _CACHE_SHARE))
        if need + beside <= usable:
            return MemoryPlan("rows", int(_CACHE_SHARE * (usable - products - beside)), need, reserve)
    whole = "the combined kernel of {n} samples and its solver"
    if beside > need:
        whole = "the data and names of {m:,} kernels and the combined kernel of {n} samples"
    raise MemoryError(
        f"memory_budget is {human_bytes(budget)}, but {whole.format(n=n, m=m)} "
        f"need {human_bytes((need + beside) / (1 - HEADROOM))}."
    )


def _feature_plan(budget: int, X: Any, n_tasks: int, n: int) -> MemoryPlan:
    """Return the bytes for landmarks, features and what works on them: all but data and vectors.

    How many features there are is known when the landmarks are: the bank divides its part then.
    """
    on_disk = isinstance(X, CheckedRows)
    beside = _FEATURE_VECTORS * 8 * n_tasks * n + (0 if on_disk else max(2 * _data_bytes(X, n) - _UNCOUNTED, 0))
    left = int((1 - HEADROOM) * budget) - beside
    if left <= 0:
        raise MemoryError(
            f"memory_budget is {human_bytes(budget)}, but the data and coefficients of {n} samples need "
            f"{human_bytes(beside / (1 - HEADROOM))}."
        )
    return MemoryPlan("features", left)


def exact_bytes(model: Any, table: Any, X: Any, shape: tuple[int, int], loss: Loss, norm: Norm) -> int:
    """Return the bytes of a memory budget in which the exact kernels of n samples are held beside their solver."""
    (n_tasks, n), bank = shape, model._bank(table)
    need = _solver_needs(model, bank, norm, loss, n_tasks, n, len(bank))[0] + _small_things(model, bank, X, n)
    kernels = bank.written_out()
    item = 8 if model.tol < DOUBLE_BELOW else 4
    return int((need + item * triangle_size(n) * len(kernels)) / (1 - HEADROOM))


def _data_bytes(X: Any, n: int) -> int:
    """Return the bytes of n samples in memory."""
    return n * X.shape[1] * 8 if not hasattr(X, "indptr") else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


def _solver_needs(
    model: Any, bank: KernelBank | None, norm: Norm, loss: Loss, n_tasks: int, n: int, m: int
) -> tuple[int, int]:
    """Return the bytes for the solver: at least, and with the method that is its last resort."""
    shared = model._shares_weights(n_tasks)
    side_by_side = 1 if shared or model._is_distributed() else min(n_tasks, effective_n_jobs(model.n_jobs))
    tasks = n_tasks if shared else 1
    need = model._solver().need(Sizes(tasks, n, m), norm, loss)
    matrices = 1 if model.combination != "sum" else 0  # for the derivative
    if bank is not None and len({isinstance(kernel, GaussianLadder) for kernel in bank}) > 1:
        matrices += 1  # ladders and plain kernels are combined one after the other
    beside = matrices * 8 * n * n
    return side_by_side * (need.n_bytes + beside), side_by_side * (need.most + beside)


def _small_things(model: Any, bank: KernelBank | None, X: Any, n: int) -> int:
    """Return the bytes for what is small where samples and kernels are few: data, columns, names, means, weights."""
    data = _data_bytes(X, n)
    if bank is None:
        return max(2 * data - _UNCOUNTED, 0)
    ladders = [kernel for kernel in bank if isinstance(kernel, GaussianLadder)]
    held = len(bank.kernels) - len(ladders) + sum(ladder.nodes.size for ladder in ladders)
    rows = 8 * n * held * (int(model.center) + int(model.normalize == "cosine"))
    # Columns that kernels select are copied, once for all that share the selection.
    selections = {id(kernel.columns): kernel.columns for kernel in bank if kernel.columns is not None}
    columns = sum(_count(selection, X.shape[1]) for selection in selections.values())
    counts = _KERNEL_BYTES * len(bank.kernels) + _KERNEL_VECTORS * 8 * len(bank)
    return max(2 * data + 8 * n * columns + rows + counts - _UNCOUNTED, 0)


def _count(selection: Any, n_features: int) -> int:
    """Return how many columns a selection has, at most."""
    if isinstance(selection, (str, int, np.integer)):
        return 1
    return min(len(selection), n_features) if hasattr(selection, "__len__") else n_features


def _stays_on_device(model: Any, n: int, loss: Loss, norms: Sequence[Norm]) -> bool:
    """Return whether the combined kernel of n samples had better not come back from the device.

    For p near 1 the second-order methods, which need it, win until a factorization takes long.
    """
    if model.device == "cpu":
        return False
    if (model.tol < DOUBLE_BELOW or model.center) and not Device(model.device).has_double:
        return False  # the kernels themselves are on the CPU then
    few = any(selects_few(norm) for norm in norms)
    factor = 1 if not few else _FEW_SMOOTH if loss.smooth else _FEW_KINKED
    return n > factor * LARGE


def _can_do_with_rows(model: Any, table: Any, loss: Loss) -> bool:
    """Return whether the fit can do without the combined kernel as a matrix."""
    if model.combination != "sum" or not model._solver().can_do_with(ROWS):
        return False
    if model._client() is not None:
        return False
    if loss.smooth and model.device == "cpu":
        return False  # a product with the kernel takes as long as the kernel itself
    return not any(isinstance(kernel, GaussianLadder) for kernel in model._bank(table))
