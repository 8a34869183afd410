"""Where the kernels of a fit are held, and in how much memory."""

from __future__ import annotations

from typing import Any

from manykernels.compute.gpu import Device
from manykernels.compute.memory import budget_bytes, human_bytes
from manykernels.kernels.device.bank import LARGE
from manykernels.kernels.ladder import GaussianLadder
from manykernels.losses import Loss, SmoothLoss
from manykernels.outer.automatic import may_take_newton, selects_few
from manykernels.outer.baselines.smo import working_bytes

# A tighter tol than this starts in double precision.
DOUBLE_BELOW = 1e-5
# Part of the memory budget that blocks in flight and the allocator take.
HEADROOM = 0.15
_ROW_SOLVERS = ("auto", "group_lasso", "spg", "pgd", "mirror", "simple", "silp", "level")
# How many times more samples may have a combined kernel off the device for p near 1 (measured on an H200).
_FEW_SMOOTH, _FEW_KINKED = 3, 7
# Numbers a sample and task beside its features: targets, coefficients, predictions, what the solvers keep of them.
_FEATURE_VECTORS = 20
# The rest is for the matrix of a working set and for rows on their way into the cache.
_LEAST_ROWS, _CACHE_SHARE = 256, 0.7


def works_on_few(model: Any) -> bool:
    """Return whether the solver holds a few kernels to work on, beside those of the bank."""
    return model.solver in ("newton", "reduced_newton") or (model.solver == "auto" and selects_few(model._norm()))


def plan_memory(model: Any, table: Any, n_tasks: int, n: int, loss: Loss) -> tuple[str, int]:
    """Return how to hold the kernels, and the bytes for them beside the combined kernel and the inner solver.

    Where the combined kernel does not fit, its rows are computed on demand, if loss and solver can do with that.
    """
    budget = budget_bytes(model.memory_budget)
    usable = int((1 - HEADROOM) * budget)
    if model.approximation is not None:
        return "features", max(1, usable - _FEATURE_VECTORS * 8 * n_tasks * n)
    if _stays_on_device(model, n, loss) and _can_do_with_rows(model, table, loss):
        return "rows", usable
    # SMO copies at most half of the samples; a factorization holds copies of the matrix, newton one a task.
    factorizes = isinstance(loss, SmoothLoss) or works_on_few(model) or model.solver == "hessian"
    matrices = 3.0 if factorizes else 1.3
    if model.solver == "newton" or (model.solver == "auto" and may_take_newton(model._norm(), n)):
        matrices = 2.0 + n_tasks
    if model.combination != "sum":
        matrices += 1.0  # for the derivative
    if model.solver == "simple":
        matrices += 3.0  # both ends of a step, and the change
    need = int(matrices * 8 * n * n)
    if model.solver == "hessian":
        m = len(model._bank(table))
        need += 8 * m * (3 * m + n)
    if model.solver == "smo":
        need += working_bytes(n_tasks, len(model._bank(table)), n)
    if need <= usable:
        return "auto", max(1, usable - need)
    if _can_do_with_rows(model, table, loss):
        products = 8 * n_tasks * len(model._bank(table)) * n
        need = min(need, products + int(4 * _LEAST_ROWS * n / _CACHE_SHARE))
        if need <= usable:
            return "rows", int(_CACHE_SHARE * (usable - products))
    raise MemoryError(
        f"memory_budget is {human_bytes(budget)}, but the combined kernel of {n} samples and its solver "
        f"need {human_bytes(need / (1 - HEADROOM))}."
    )


def _stays_on_device(model: Any, n: int, loss: Loss) -> bool:
    """Return whether the combined kernel of n samples had better not come back from the device.

    For p near 1 the second-order methods, which need it, win until a factorization takes long.
    """
    if model.device == "cpu":
        return False
    if (model.tol < DOUBLE_BELOW or model.center) and not Device(model.device).has_double:
        return False  # the kernels themselves are on the CPU then
    factor = 1 if not selects_few(model._norm()) else _FEW_SMOOTH if isinstance(loss, SmoothLoss) else _FEW_KINKED
    return n > factor * LARGE


def _can_do_with_rows(model: Any, table: Any, loss: Loss) -> bool:
    """Return whether the fit can do without the combined kernel as a matrix."""
    if model.combination != "sum" or model.solver not in _ROW_SOLVERS:
        return False
    if model._client() is not None:
        return False
    if isinstance(loss, SmoothLoss) and model.device == "cpu":
        return False  # a product with the kernel takes as long as the kernel itself
    return not any(isinstance(kernel, GaussianLadder) for kernel in model._bank(table))
