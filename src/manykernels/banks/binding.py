"""Kernels bound to training data: the only way from a description of kernels to a bank that can be asked for values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from manykernels.banks.composite import CompositeBank
from manykernels.banks.definiteness import check_positive_semidefinite
from manykernels.banks.device.features import DeviceFeatureBank
from manykernels.banks.device.ladder_bank import DeviceLadderBank
from manykernels.banks.device.layout import plan_device
from manykernels.banks.device.packed import DeviceBank, DeviceRowsBank
from manykernels.banks.features import FeatureBank
from manykernels.banks.ladder_bank import LadderBank
from manykernels.banks.layout import plan_storages
from manykernels.banks.on_demand import OnDemandBank
from manykernels.banks.packed import PackedBank
from manykernels.banks.parametric_bank import ParametricBank
from manykernels.banks.placement import PRECISIONS, Data, Placement, Recipe
from manykernels.banks.planning import device_holds, halves, plan_base, spare_of_family
from manykernels.banks.room import Room
from manykernels.compute.gpu import Device, check_device, device_budget, has_double
from manykernels.compute.memory import budget_bytes
from manykernels.compute.threads import one_blas_thread
from manykernels.core.checks import check_choice
from manykernels.core.notices import warn
from manykernels.core.protocols import ExplicitBank
from manykernels.kernels.family import NORMALIZATIONS, BoundFamily, Family, check_settled
from manykernels.kernels.gaussian_product import GaussianProduct
from manykernels.kernels.kernel_bank import KernelBank
from manykernels.kernels.normalize import KINDS, Normalization, learn_normalization
from manykernels.kernels.parametric import ParametricKernel
from manykernels.kernels.shared_distances import BoundKernel

_ALONE, _AS_LIST = Recipe(), Placement()


@one_blas_thread()
def bind(kernels: Any, data: Any, recipe: Recipe = _ALONE, placement: Placement = _AS_LIST, seed: Any = None) -> Any:
    """Bind kernels to training data.

    Parameters
    ----------
    kernels : KernelBank or list of Kernel
        With a ParametricKernel as the recipe's combination it is not looked at.
    data : Data, or an array or CSR matrix of shape (n_samples, n_features)
    recipe : Recipe
    placement : Placement
        What does not fit a kind of kernels falls back: to double precision where values leave the range of float32,
        to the CPU where the device lacks double precision and that is needed. The bank's ``placement`` says what became
        of it.
    seed : int, Generator or None
        Chooses landmarks or waves of approximations.

    Returns
    -------
    Bank
        See ``manykernels.core.protocols``.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import Placement, Recipe, bind
    >>> from manykernels.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> bank = bind([Gaussian(1.0), Gaussian(2.0)], X, Recipe(center=True), Placement(precision="double"))
    >>> bank.combine(np.array([0.5, 0.5])).array.shape
    (20, 20)
    """
    data = Data.of(data)
    check_choice("normalize", recipe.normalize, KINDS)
    check_choice("precision", placement.precision, PRECISIONS)
    check_device(placement.device)
    if placement.approximation is not None:
        return _bind_features(KernelBank.of(kernels), data, recipe, placement, seed)
    data = data.in_memory()
    if not recipe.is_sum:
        return _placed(_bind_one(kernels, data, recipe), replace(placement, client=None))
    if placement.client is not None:
        from manykernels.banks.cluster.bank import bind_on_workers  # noqa: PLC0415 - it needs an optional dependency

        bank: Any = bind_on_workers(KernelBank.of(kernels), data, recipe, placement)
    else:
        bank = _bind_list(KernelBank.of(kernels), data, recipe, placement)
    report_zero_kernels(bank.names, bank.scale)
    return _placed(bank, placement)


def _placed(bank: Any, placement: Placement) -> Any:
    """Return a bank that says where it is, and what a solver may take besides: as planned, or what became of that."""
    if bank.placement is None:
        bank.spare = placement.spare if bank.spare is None else bank.spare
        bank.placement = replace(placement, precision=bank.precision, device=bank.held_on, spare=bank.spare)
    return bank


def _bind_list(kernels: KernelBank, data: Data, recipe: Recipe, placement: Placement) -> Any:
    """Bind plain kernels and ladders, each kind in a bank of its own; both together are a composite."""
    bank = kernels.hold(data, recipe, placement)
    if bank is not None:
        return bank
    ladders = kernels.ladders
    if ladders and placement.storage == "rows":
        raise TypeError(f"storage='rows' needs kernels one by one, got {ladders[0]!r}.")
    places, resolved = kernels.ladder_places(data.table), kernels.resolve(data.table)
    kernels.check_views(data.X, data.table)
    budget = budget_bytes(placement.budget)
    parts: list[PackedBank | LadderBank] = []
    for_plain, for_ladders = halves(budget) if resolved and ladders else (budget, budget)
    if resolved:
        place = replace(placement, budget=for_plain)
        parts.append(bind_resolved(resolved, data, recipe, place, comes_back=bool(ladders)))
    if ladders:
        options: dict[str, Any] = {
            "normalize": recipe.normalize,
            "center": recipe.center,
            "budget": for_ladders,
            "storage": placement.storage,
            "precision": placement.precision,
            "reserve": placement.reserve,
        }
        holds = device_holds(has_double(placement.device), placement.precision, is_centered=False)
        place = placement if holds else placement.on_cpu()
        # The means of centered kernels are interpolated, on the CPU.
        on_cpu = place.device == "cpu" or recipe.center
        kind: Callable[..., LadderBank] = LadderBank if on_cpu else partial(DeviceLadderBank, device=place.device)
        parts.append(_placed(kind(ladders, places, data.X, data.weights, **options), place))
    if len(parts) == 1:
        return parts[0]
    return _placed(CompositeBank(parts), replace(place, budget=placement.budget))


def bind_resolved(
    bound: list[BoundKernel], data: Data, recipe: Recipe, placement: Placement, comes_back: bool = False
) -> PackedBank:
    """Check kernels whose columns are known, learn how to normalize them, and store them.

    ``comes_back`` says that subsets of what a device holds belong on the CPU.
    """
    check_positive_semidefinite(bound, data.X, recipe.check)
    weight = data.weights
    normalization = learn_normalization(
        bound, data.X, kind=recipe.normalize, center=recipe.center, sample_weight=weight
    )
    if not normalization.fits_single:
        placement = replace(placement, precision="double")
    if not device_holds(has_double(placement.device), placement.precision, recipe.center):
        placement = placement.on_cpu()
    if placement.device != "cpu":
        return _bind_device(bound, data.X, weight, normalization, placement, comes_back)
    budget = budget_bytes(placement.budget)
    storages, room = plan_storages(
        bound,
        data.X,
        normalization,
        weight,
        budget=budget,
        storage=placement.storage,
        dtype=PRECISIONS[placement.precision],
        reserve=placement.reserve,
    )
    bank = PackedBank(bound, data.X, normalization, weight, storages, placement.precision, room)
    if placement.storage == "rows":
        held = sum(storage.nbytes for storage in storages)
        bank = OnDemandBank(bank, budget - held)
    return _placed(bank, placement)


def _bind_device(
    bound: list[BoundKernel],
    X: Any,
    weight: np.ndarray,
    normalization: Normalization,
    placement: Placement,
    comes_back: bool,
) -> DeviceBank:
    """Store the kernels on the device."""
    device, precision = Device(placement.device), placement.precision
    budget = device_budget(device)
    storages = plan_device(
        device,
        bound,
        X,
        normalization,
        weight,
        storage=placement.storage,
        dtype=PRECISIONS[precision],
        budget=halves(budget)[0] if comes_back else budget,  # the distances of ladders are to have as much
    )
    kind, room = DeviceRowsBank if placement.storage == "rows" else DeviceBank, Room(budget_bytes(placement.budget))
    return _placed(kind(bound, X, normalization, weight, device, storages, precision, comes_back, room), placement)


def _bind_features(kernels: KernelBank, data: Data, recipe: Recipe, placement: Placement, seed: Any) -> Any:
    """Bind approximations of the kernels by features of the samples."""
    assert placement.approximation is not None
    kernels.require_plain(f"approximation={placement.approximation.name!r}")
    kernels = kernels.written_out()
    resolved = kernels.resolve(data.names_from)
    if not getattr(data.X, "is_read_in_blocks", False):  # such rows are looked at when they are read
        kernels.check_views(data.X, data.names_from)
    options: dict[str, Any] = {
        "approximation": placement.approximation,
        "normalize": recipe.normalize,
        "center": recipe.center,
        "precision": placement.precision,
        "random_state": np.random.default_rng(seed),
    }
    if placement.client is not None:
        from manykernels.banks.cluster.row_bank import RowBank  # noqa: PLC0415 - it needs an optional dependency

        assert data.targets is not None
        bank: FeatureBank = RowBank(resolved, data.X, data.targets, **options)
    else:
        kind: Callable[..., FeatureBank] = (
            FeatureBank if placement.device == "cpu" else partial(DeviceFeatureBank, Device(placement.device))
        )
        bank = kind(resolved, data.X, data.weights, budget=budget_bytes(placement.budget), **options)
    report_zero_kernels(bank.names, bank.scale)
    return _placed(bank, placement if bank.held_on == placement.device else placement.on_cpu())


def _bind_one(kernels: Any, data: Data, recipe: Recipe) -> ParametricBank:
    """Bind one kernel with parameters: one that was given, or the product of Gaussians, each raised to its weight."""
    options: dict[str, Any] = {"normalize": recipe.normalize, "center": recipe.center}
    if isinstance(recipe.combination, ParametricKernel):
        return ParametricBank(recipe.combination, data.X, data.weights, source=data.table, **options)
    bank = KernelBank.of(kernels)
    bank.require_plain(f"combination={recipe.combination!r}")
    if bank.ladders:
        raise TypeError(f"combination='product' needs Gaussian kernels, got {bank.ladders[0]!r}.")
    return ParametricBank(GaussianProduct(bank.resolve(data.table)), data.X, data.weights, **options)


@one_blas_thread()
def bind_family(family: Family, data: Any, recipe: Recipe = _ALONE, placement: Placement = _AS_LIST) -> BoundFamily:
    """Bind a family of kernels to training data: what can be searched and drawn from.

    Parameters
    ----------
    family : Family
    data : Data, or an array or CSR matrix of shape (n_samples, n_features)
    recipe : Recipe
    placement : Placement
        Its budget is for the matrices of the search, for the kernels that products are made of, and for those that an
        optimizer collects.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind_family
    >>> from manykernels.kernels import GaussianFamily
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> bind_family(GaussianFamily(0.1, 10.0), X).n_samples
    20
    """
    data = Data.of(data).in_memory()
    check_settled(family)
    if recipe.normalize not in NORMALIZATIONS:
        raise ValueError(
            f"normalize={recipe.normalize!r} is not for a family of kernels: take 'mean_diag', 'trace' or None."
        )
    budget = budget_bytes(placement.budget)
    base: ExplicitBank | None = None
    if family.base is not None:
        base = bind(family.base, data, recipe, plan_base(family, data.X.shape[0], placement))
    bound = family.on(data.X, data.table, data.weights, recipe.normalize, budget, base)
    bound.spare = spare_of_family(None if base is None else base.room.left, budget)
    return bound


def report_zero_kernels(names: Sequence[str], scale: np.ndarray) -> None:
    """Warn of kernels that are zero on the training data; raise if all are."""
    zero = np.flatnonzero(scale == 0.0)
    if zero.size == len(names):
        raise ValueError("Every kernel is zero on the training data: there is nothing to learn from.")
    if zero.size:
        first = ", ".join(names[int(k)] for k in zero[:3]) + (", ..." if zero.size > 3 else "")
        warn(f"{zero.size} of {len(names)} kernels are zero on the training data and get weight 0: {first}")
