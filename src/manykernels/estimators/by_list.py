"""Learning from a list of kernels, or from one kernel with parameters: what is held where, and then a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from manykernels.banks import Data, Placement, bind, plan
from manykernels.banks.definiteness import name_culprit
from manykernels.banks.planning import Extent, exact_bytes, plan_features
from manykernels.compute.gpu import has_double
from manykernels.compute.memory import budget_bytes, human_bytes
from manykernels.core.notices import warn
from manykernels.core.protocols import Bank
from manykernels.core.results import Result
from manykernels.core.rows import CheckedRows
from manykernels.core.solver import Need, Sizes
from manykernels.estimators.loss_and_norm import of_groups
from manykernels.estimators.running import first_precision, print_placement, solve, solve_separately
from manykernels.estimators.settings import Settings
from manykernels.estimators.warm_start import Learner, Listed, WarmStart
from manykernels.kernels import Gaussian, KernelBank, ParametricKernel
from manykernels.kernels.standard import as_bank
from manykernels.norms import Norm
from manykernels.outer.separate_tasks import learns_together
from manykernels.problem import Problem


def from_list(settings: Settings, data: Data, y: np.ndarray, C: np.ndarray, offset: Any, warm: WarmStart) -> Learner:
    """Return what learns in a precision, for tasks y and C of shape (n_tasks, n_distinct)."""
    shape, offsets = (y.shape[0], y.shape[1]), np.broadcast_to(offset, y.shape[:1])
    tasks = [slice(None)] if shares_weights(settings, shape) else [slice(t, t + 1) for t in range(y.shape[0])]

    def learn(precision: str) -> tuple[Bank, list[Result]]:
        bank = _warm_bank(settings, warm, data, shape, precision)
        bound = of_groups(settings.norm, bank.groups)
        # A parametric bank offers less than a finite one; solvers ask for what they need.
        whole = Problem(bank, settings.loss, bound, y, C, settings.fit_intercept, offsets)
        if len(tasks) > 1 and learns_together(settings.solver, whole):
            return bank, [solve_separately(settings, whole, warm.rows(whole))]
        problems = [Problem(bank, settings.loss, bound, y[t], C[t], settings.fit_intercept, offsets[t]) for t in tasks]
        try:
            return bank, solve(settings, problems, warm.starts(problems))
        except np.linalg.LinAlgError:
            name_culprit(bank, np.ones(bank.n_kernels))  # that is what an indefinite kernel ends in
            raise

    return learn


def shares_weights(settings: Settings, shape: tuple[int, int]) -> bool:
    return settings.shared_weights or shape[0] == 1


def _warm_bank(settings: Settings, warm: WarmStart, data: Data, shape: tuple[int, int], precision: str) -> Bank:
    """Return the bank of the warm start, bound to the data if it is not there yet."""
    if warm.bank is not None and warm.has(precision):
        return warm.bank
    if warm.kernels is None:
        warm.kernels = list_kernels(settings, data)
    place = place_kernels(settings, warm.kernels, shape, data, precision, warm.norms)
    seed = None if place.approximation is None else settings.seed
    bank: Bank = bind(warm.kernels.kernels, data, settings.recipe, place, seed)
    warm.bank = bank
    print_placement(settings, bank.describe_storage(), bank.placement)
    if bank.has_few_samples and not warm.is_told:
        warm.is_told = True
        _tell_what_is_cheaper(settings, warm.kernels, shape, data)
    return bank


def list_kernels(settings: Settings, data: Data) -> Listed:
    """Return the kernels and how many weights there are to learn: one for each, or a kernel's own parameters.

    A product has one kernel for each feature by default, a ParametricKernel none.
    """
    combination, is_sum = settings.recipe.combination, settings.recipe.is_sum
    if isinstance(combination, ParametricKernel):
        return Listed(None, len(combination.placed(data.table).bind(data.X)))
    if not is_sum and isinstance(settings.kernels, str):
        kernels = KernelBank([Gaussian(1.0, columns=[j]) for j in range(data.X.shape[1])])
    else:
        kernels = as_bank(settings.kernels, data.table, tells=is_sum)
    return Listed(kernels, len(kernels))


def place_kernels(
    settings: Settings,
    listed: Listed,
    shape: tuple[int, int],
    data: Data,
    precision: str,
    norms: Sequence[Norm],
) -> Placement:
    """Return where the kernels of so many tasks and samples go, and how much memory they get."""
    wish = replace(settings.wish, precision=precision)
    if wish.approximation is not None:
        return plan_features(data.X, shape, wish)
    extent = Extent.of(*listed, settings.recipe, data.X, shape)
    return plan(extent, need_beside(settings, listed, shape, norms), wish, has_double(wish.device))


def need_beside(settings: Settings, listed: Listed, shape: tuple[int, int], norms: Sequence[Norm] = ()) -> Need:
    """Return what the solver takes in addition to the kernels, for the most demanding norm that is to come."""
    n_tasks, n = shape
    shared = shares_weights(settings, shape)
    alone = shared or settings.wish.client is not None
    at_once = 1 if alone else min(n_tasks, effective_n_jobs(settings.n_jobs))
    sizes = Sizes(n_tasks if shared else 1, n, listed.n_weights)
    return settings.solver.need_for(sizes, norms or (settings.norm,), settings.loss, at_once)


def _tell_what_is_cheaper(settings: Settings, listed: Listed, shape: tuple[int, int], data: Data) -> None:
    """Warn where samples are few for their features and the exact kernels fit into memory."""
    wish = settings.wish
    if isinstance(data.X, CheckedRows) or wish.approximation is None:
        return
    extent = Extent.of(*listed, settings.recipe, data.X, shape)
    room = exact_bytes(extent, need_beside(settings, listed, shape), first_precision(settings.tol))
    if room <= budget_bytes(wish.budget):
        warn(
            f"approximation={wish.approximation.name!r} makes so many features that the exact kernels of "
            f"{shape[1]:,} samples ({human_bytes(room)} of memory) cost no more: take approximation=None or a lower "
            "rank."
        )
