"""Where the kernels of a fit are held, and in how much memory: arithmetic alone.

What there is to hold is an :class:`Extent`, what the solver takes besides it stands in its Need, and what is wished for
in a Placement, which comes back with the gaps filled in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from manykernels.banks.offers import ROWS
from manykernels.banks.placement import Placement, Recipe
from manykernels.compute.memory import budget_bytes, human_bytes
from manykernels.compute.triangles import triangle_size
from manykernels.core.solver import Need
from manykernels.kernels.family import Family
from manykernels.kernels.kernel_bank import KernelBank

# Part of the memory budget that blocks in flight and the allocator take.
HEADROOM = 0.15
# From here on the combined kernel stays on the device, and so do the products of the inner solver with it.
LARGE = 3000
# How many times more samples may have a combined kernel off the device for p near 1 (measured on an H200).
_FEW_SMOOTH, _FEW_KINKED = 3, 7
# Numbers per sample and task besides its features: targets, coefficients, predictions, what the solvers keep of them.
_FEATURE_VECTORS = 30
# The rest is for the matrix of a working set and for rows on their way into the cache.
_LEAST_ROWS, _CACHE_SHARE = 256, 0.7
# Kernels that a second-order method holds in addition to a bank that does not fit.
_RESERVE = 60
# Part of the memory that a method may have which is tried where all others have failed.
_LAST_RESORT = 0.5
# Bytes of a kernel as an object with its name, and numbers that solvers keep for each.
_KERNEL_BYTES, _KERNEL_VECTORS = 800, 10
# What is smaller is not counted: an interpreter takes and leaves as much.
_UNCOUNTED = 2 * 10**6
# Matrices of all samples, in double precision, in addition to kernels: an alignment holds those of the target, of the
# combination and of what is left between them, raw and centered.
_ALIGNMENT_MATRICES = 7
# Data may take this part of a budget where kernels of all pairs of rows need them in one place.
_GATHERED_SHARE = 0.1
# Kernels may fill this part of a worker's memory: from 60 % on, Dask writes data to disk.
_WORKER_SHARE = 0.5
# Features of a part of the rows on workers, which are fetched for a first guess of the weights.
COARSE_BYTES = 2 * 10**8
# Scores of a stochastic method for each sample, kernel and output: one, and with an average what is to come off, the
# components and their scores.
_SCORES, _AVERAGED_SCORES = 1, 4


@dataclass(frozen=True)
class Extent:
    """What there is to hold.

    Attributes
    ----------
    n_samples, n_tasks, n_kernels : int
    beside : int
        Bytes of data, columns, names, means and weights: small where samples and kernels are few.
    matrices : int
        Matrices of the samples that combining takes in addition to the one it fills.
    centered : bool
    one_by_one : bool
        Whether rows can be had of each kernel, so that it need not be there as a matrix.
    """

    n_samples: int
    n_tasks: int
    n_kernels: int
    beside: int = 0
    matrices: int = 0
    centered: bool = False
    one_by_one: bool = True

    @classmethod
    def of(cls, kernels: KernelBank | None, n_kernels: int, recipe: Recipe, X: Any, shape: tuple[int, int]) -> Extent:
        """Return the extent of kernels on data.

        Parameters
        ----------
        kernels : KernelBank or None
            None for one kernel with parameters.
        n_kernels : int
            Kernels, or parameters of the one.
        recipe : Recipe
        X : array or CSR matrix
        shape : (int, int)
            Tasks, and distinct samples.
        """
        n_tasks, n = shape
        if kernels is None or not recipe.is_sum:
            beside = max(2 * data_bytes(X, n) - _UNCOUNTED, 0)
            return cls(n, n_tasks, n_kernels, beside, matrices=1, one_by_one=False)  # its derivative
        # Ladders and plain kernels are combined one after the other.
        mixed = bool(kernels.ladders) and bool(kernels.plain)
        beside = _small_things(kernels, recipe, X, n)
        return cls(n, n_tasks, n_kernels, beside, int(mixed), recipe.center, not kernels.ladders)


def plan(extent: Extent, need: Need, wish: Placement, has_double: bool = True) -> Placement:
    """Return how to hold the kernels, and the bytes for them in addition to the combined kernel and the solver.

    Where the combined kernel does not fit, its rows are computed on demand, if loss and solver can do with that.

    Parameters
    ----------
    extent : Extent
    need : Need
        Of the solver; the largest over all norms that will be learned with these kernels.
    wish : Placement
        Its budget is for all of the fit; that of the plan is for the kernels.
    has_double : bool
        Whether the device has double precision.

    Examples
    --------
    >>> from manykernels.banks.placement import Placement
    >>> from manykernels.banks.planning import Extent, plan
    >>> from manykernels.core.solver import Need
    >>> plan(Extent(1000, 1, 50), Need(16_000_000), Placement("1GB")).why
    'the kernels get 834 MB, and the solver 16 MB'
    """
    if wish.device != "cpu":
        # What kernels hold may turn out to be none for the device: the CPU has a plan of its own.
        wish = replace(wish, plan_on_cpu=partial(plan, extent, need, replace(wish, device="cpu")))
        if extent.one_by_one and not device_holds(has_double, wish.precision, extent.centered):
            return wish.on_cpu()
        if extent.one_by_one:  # each problem has the whole device; ladders may turn out to be on the CPU
            need = replace(need, at_once=1)
    n, budget = extent.n_samples, budget_bytes(wish.budget)
    usable = int((1 - HEADROOM) * budget)
    reserve = _RESERVE if need.works_on_few else 0
    rows_do = _can_do_with_rows(extent, need, wish)
    if rows_do and _stays_on_device(extent, need, wish):
        return replace(
            wish, storage="rows", budget=usable, reserve=reserve, why="the combined kernel stays on the device"
        )
    matrices = 8 * n * n * extent.matrices
    least, most = (need.at_once * (count + matrices) for count in (need.n_bytes, need.most))
    if least + extent.beside <= usable:
        # A method that is only the last resort may have what would be left, but not what kernels would fill.
        spare = most if most + extent.beside <= _LAST_RESORT * usable else least
        left = max(1, usable - spare - extent.beside)
        why = f"the kernels get {human_bytes(left)}, and the solver {human_bytes(spare)}"
        return replace(wish, storage="auto", budget=left, spare=spare, reserve=reserve, why=why)
    takes = least
    if rows_do:
        products = 8 * extent.n_tasks * extent.n_kernels * n
        takes = min(least, products + int(4 * _LEAST_ROWS * n / _CACHE_SHARE))
        if takes + extent.beside <= usable:
            left = int(_CACHE_SHARE * (usable - products - extent.beside))
            cache = f"{human_bytes(left)} cache some of them"
            why = f"a matrix of {n} samples does not fit: its rows are computed on demand, and {cache}"
            return replace(wish, storage="rows", budget=left, spare=takes, reserve=reserve, why=why)
    whole = f"the combined kernel of {n} samples and its solver"
    if extent.beside > takes:
        whole = f"the data and names of {extent.n_kernels:,} kernels and the combined kernel of {n} samples"
    raise too_little(budget, whole, takes + extent.beside)


def plan_features(X: Any, shape: tuple[int, int], wish: Placement) -> Placement:
    """Return the bytes for landmarks, features and what works on them: all but data and vectors.

    How many features there are is known when the landmarks are: the bank divides its part then. ``X`` of which only
    blocks are read does not count.
    """
    n_tasks, n = shape
    budget = budget_bytes(wish.budget)
    held = 0 if getattr(X, "is_read_in_blocks", False) else max(2 * data_bytes(X, n) - _UNCOUNTED, 0)
    beside = _FEATURE_VECTORS * 8 * n_tasks * n + held
    left = int((1 - HEADROOM) * budget) - beside
    if left <= 0:
        raise too_little(budget, f"the data and coefficients of {n} samples", beside)
    why = f"landmarks and features get {human_bytes(left)} in addition to data and coefficients"
    return replace(wish, budget=left, why=why)


def plan_family(n_samples: int, need: Need, wish: Placement) -> Placement:
    """Return the bytes for the search in a family of kernels and for those that it selects: all but the solver's.

    Examples
    --------
    >>> from manykernels.banks import Placement
    >>> from manykernels.banks.planning import plan_family
    >>> from manykernels.core.solver import Need
    >>> plan_family(1000, Need(64_000_000), Placement("1GB")).budget
    786000000
    """
    return _left_after(need.n_bytes, f"matrices of {n_samples} samples", wish)


def plan_base(family: Family, n_samples: int, wish: Placement) -> Placement:
    """Return the bytes for the kernels that those of a family are made of: all but the matrices of its search."""
    budget, need = budget_bytes(wish.budget), family.search_bytes(n_samples)
    if need >= budget:
        raise MemoryError(
            f"memory_budget leaves {human_bytes(budget)}, but the search of {family!r} on {n_samples} samples needs "
            f"{human_bytes(need)}."
        )
    return replace(wish, budget=budget - need)


def spare_of_family(left: int | None, budget: int) -> int:
    """Return the bytes for the kernels that an optimizer collects from a family.

    They are what the kernels that it is made of have left; a search without such kernels takes up to a half.
    """
    return budget // 2 if left is None else left


def plan_alignment(n_samples: int, wish: Placement, *, is_list: bool) -> Placement:
    """Return the bytes for kernels whose alignment is learned.

    The kernels of a list get half of what the matrices leave: the other half is for blocks of their rows, from which
    inner products of kernels with each other are made.
    """
    place = _left_after(_ALIGNMENT_MATRICES * 8 * n_samples**2, f"matrices of {n_samples} samples", wish)
    half = place.budget // 2
    return replace(place, budget=half, spare=place.budget - half) if is_list else place


def plan_stream(shape: tuple[int, int, int], wish: Placement, *, is_averaged: bool = False) -> Placement:
    """Return the bytes for kernel values of a stochastic method: all but its scores, and the diagonals.

    ``shape`` is that of the scores: outputs, samples and kernels.
    """
    n_outputs, n, m = shape
    scores = 8 * n * m * (n_outputs * (_AVERAGED_SCORES if is_averaged else _SCORES) + 1)
    return _left_after(scores, f"the scores of {n} samples with {m} kernels", wish)


def plan_kept_features(wish: Placement) -> Placement:
    """Return the bytes in which a stochastic method may keep the features of all samples.

    They are half: the other half is for those of the samples at hand, once more, and for the data.
    """
    place = _left_after(0, "nothing else", wish)
    half = place.budget // 2
    return replace(place, budget=half, why=f"they are kept if they take no more than {human_bytes(half)}")


def gathered_bytes(memory_budget: Any) -> int:
    """Return the bytes that data on workers may take when they are gathered.

    Examples
    --------
    >>> from manykernels.banks.planning import gathered_bytes
    >>> gathered_bytes("1GB")
    100000000
    """
    return int(_GATHERED_SHARE * budget_bytes(memory_budget))


def worker_bytes(limit: int, taken: int) -> int:
    """Return the bytes for kernels on a worker that may take up to a limit, and has taken some of that.

    Examples
    --------
    >>> from manykernels.banks.planning import worker_bytes
    >>> worker_bytes(10**9, 10**8)
    400000000
    """
    return max(1, int(_WORKER_SHARE * limit - taken))


def halves(budget: int) -> tuple[int, int]:
    """Return the bytes for plain kernels and those for ladders where both are there: half each.

    How many nodes a ladder takes is only known when it is bound.
    """
    return budget // 2, budget - budget // 2


def _left_after(taken: int, words: str, wish: Placement) -> Placement:
    """Return what is left of a budget after so many bytes; raise MemoryError where that is nothing."""
    budget = budget_bytes(wish.budget)
    left = int((1 - HEADROOM) * budget) - taken
    if left <= 0:
        raise too_little(budget, words, taken)
    return replace(wish, budget=left, why=f"kernels get {human_bytes(left)} in addition to {words}")


def too_little(budget: int, words: str, taken: float) -> MemoryError:
    """Return the error for what does not fit into a budget, with the budget that it needs."""
    return MemoryError(
        f"memory_budget is {human_bytes(budget)}, but {words} need {human_bytes(taken / (1 - HEADROOM))}."
    )


def exact_bytes(extent: Extent, need: Need, precision: str) -> int:
    """Return the bytes of a memory budget in which all kernels are held in addition to their solver."""
    item = 8 if precision == "double" else 4
    kernels = item * triangle_size(extent.n_samples) * extent.n_kernels
    solver = need.at_once * (need.n_bytes + 8 * extent.n_samples**2 * extent.matrices)
    return int((solver + extent.beside + kernels) / (1 - HEADROOM))


def data_bytes(X: Any, n: int) -> int:
    """Return the bytes of n samples in memory."""
    return n * X.shape[1] * 8 if not hasattr(X, "indptr") else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


def _small_things(kernels: KernelBank, recipe: Recipe, X: Any, n: int) -> int:
    """Return the bytes for what is small where samples and kernels are few: data, columns, names, means, weights."""
    held = len(kernels.plain) + sum(ladder.nodes.size for ladder in kernels.ladders)
    rows = 8 * n * held * (int(recipe.center) + int(recipe.normalize == "cosine"))
    # Columns that kernels select are copied, once for all that share the selection.
    selections = {id(kernel.columns): kernel.columns for kernel in kernels if kernel.columns is not None}
    columns = sum(_count(selection, X.shape[1]) for selection in selections.values())
    counts = _KERNEL_BYTES * len(kernels.kernels) + _KERNEL_VECTORS * 8 * len(kernels)
    return max(2 * data_bytes(X, n) + 8 * n * columns + rows + counts - _UNCOUNTED, 0)


def _count(selection: Any, n_features: int) -> int:
    """Return how many columns a selection has, at most."""
    if isinstance(selection, (str, int, np.integer)):
        return 1
    return min(len(selection), n_features) if hasattr(selection, "__len__") else n_features


def device_holds(has_double: bool, precision: str, is_centered: bool) -> bool:
    """Return whether kernels can be on a device: centered ones, and values in double precision, need such numbers.

    Examples
    --------
    >>> from manykernels.banks.planning import device_holds
    >>> device_holds(False, "single", False), device_holds(False, "single", True)
    (True, False)
    """
    return has_double or (precision == "single" and not is_centered)


def _stays_on_device(extent: Extent, need: Need, wish: Placement) -> bool:
    """Return whether the combined kernel had better not come back from the device.

    Second-order methods, which need it, win until a factorization takes long.
    """
    if wish.device == "cpu":
        return False
    factor = 1 if not need.works_on_few else _FEW_SMOOTH if need.smooth else _FEW_KINKED
    return extent.n_samples > factor * LARGE


def _can_do_with_rows(extent: Extent, need: Need, wish: Placement) -> bool:
    """Return whether the fit can do without the combined kernel as a matrix."""
    if need.smooth and wish.device == "cpu":
        return False  # a product with the kernel takes as long as the kernel itself
    return extent.one_by_one and wish.client is None and need.asks <= ROWS
