"""How much memory an optimizer takes beside the kernels: what a plan has to leave for it."""

from __future__ import annotations

from manykernels.losses import Loss, SmoothLoss
from manykernels.norms import LpNorm, LpPenalty, MixedNorm
from manykernels.outer.baselines.smo import working_bytes
from manykernels.problem import Norm

# Most kernels that a working set has where the norm selects few, beside two a group.
_WORKING_SET = 200
# Numbers that a second-order method keeps for each kernel of its working set, sample and task.
_PRODUCTS = 4


def inner_matrices(loss: Loss) -> float:
    """Return how many matrices of all samples an inner solver and the combined kernel are.

    A smooth loss factors one beside the combined kernel; SMO copies at most half of the samples, and part of those.
    """
    return 2.0 if isinstance(loss, SmoothLoss) else 1.3


def solver_bytes(solver: str, norm: Norm, loss: Loss, n_tasks: int, n: int, m: int) -> int:
    """Return the bytes that a solver takes beside the bank, for m kernels on n samples.

    Parameters
    ----------
    solver : str
        By its name, not "auto".
    norm : Norm
    loss : Loss
    n_tasks, n, m : int

    Examples
    --------
    >>> from manykernels.losses import Hinge, Logistic
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.memory import solver_bytes
    >>> solver_bytes("group_lasso", LpNorm(2), Hinge(), 1, 1000, 50)
    10400000
    >>> solver_bytes("group_lasso", LpNorm(2), Logistic(), 1, 1000, 50)
    16000000
    """
    matrices, beside = inner_matrices(loss), 0
    working = working_set(norm, m)
    if solver == "newton":
        # The factors of all tasks, or of all at once, or what screening makes; the alternation at the end needs less.
        matrices = max(3.0, 1.0 + n_tasks, 1.0 + n_tasks**2 if working > n_tasks * n else 0.0)
        beside = _PRODUCTS * 8 * n_tasks * working * n + 8 * (working + n_tasks) ** 2
    elif solver == "reduced_newton":
        matrices = max(matrices, 1.5)  # a block in single precision, factored in its place
        beside = _PRODUCTS * 8 * n_tasks * working * n + 3 * 8 * working**2
    elif solver == "simple":
        matrices += 3.0  # both ends of a step, and the change
    elif solver == "hessian":
        matrices, beside = matrices + 1.0, 8 * m * (3 * m + n)
    elif solver == "smo":
        beside = working_bytes(n_tasks, m, n)
    return int(matrices * 8 * n * n) + beside


def working_set(norm: Norm, m: int) -> int:
    """Return about how many of m kernels a second-order method works on at most."""
    if isinstance(norm, MixedNorm):
        return m  # two or more of every group
    selects = isinstance(norm, (LpNorm, LpPenalty)) and norm.p == 1
    return min(m, _WORKING_SET) if selects else m
