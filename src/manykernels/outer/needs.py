"""How much memory optimizers take in addition to the kernels, as their records say it."""

from __future__ import annotations

from typing import Any

from manykernels.core.solver import Need, Sizes
from manykernels.losses import Loss
from manykernels.norms import Norm

# Most kernels that a working set has where the norm selects few, beside two per group.
_WORKING_SET = 200
# Numbers that a second-order method keeps for each kernel of its working set, sample and task.
PRODUCTS = 4


def inner_matrices(loss: Loss) -> float:
    """Return how many matrices of all samples an inner solver and the combined kernel are.

    A smooth loss factors one besides the combined kernel; SMO copies at most half of the samples, and part of those.
    """
    return 2.0 if loss.smooth else 1.3


def matrices(count: float, sizes: Sizes, beside: int = 0, **options: Any) -> Need:
    """Return the need of some matrices of all samples, and some bytes in addition to them.

    Examples
    --------
    >>> from manykernels.core.solver import Sizes
    >>> from manykernels.outer.needs import matrices
    >>> matrices(1.5, Sizes(1, 1000, 50)).n_bytes
    12000000
    """
    return Need(int(count * 8 * sizes.n_samples**2) + beside, **options)


def for_inner_solver(sizes: Sizes, norm: Norm, loss: Loss) -> Need:
    """Return what an optimizer needs that holds nothing of its own."""
    return matrices(inner_matrices(loss), sizes)


def working_set(norm: Norm, m: int) -> int:
    """Return about how many of m kernels a second-order method works on at most."""
    levels = norm.levels()
    if levels is None or levels.groups is not None or levels.p != 1:
        return m  # of groups, two or more of every one
    return min(m, _WORKING_SET)
