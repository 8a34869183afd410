"""The parameters of estimators: kept as they are given, and checked by one table when a fit begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from manykernels.banks.definiteness import CHECKS as KERNEL_CHECKS
from manykernels.compute.gpu import check_device
from manykernels.core.checks import check_choice, check_count, check_number
from manykernels.core.notices import shown
from manykernels.kernels.approximate import find_approximation
from manykernels.kernels.normalize import KINDS
from manykernels.kernels.parametric import ParametricKernel

Check = Callable[[str, Any], Any]


def keep(estimator: Any, given: dict[str, Any]) -> None:
    """Keep what ``__init__`` was given, each under the name of its parameter: ``keep(self, locals())``."""
    vars(estimator).update({name: value for name, value in given.items() if name != "self"})


def or_none(check: Callable[..., Any], **options: Any) -> Check:
    """Return a check that lets None pass."""
    return lambda name, value: None if value is None else check(name, value, more=" or None", **options)


def _check_combination(name: str, value: Any) -> None:
    if not isinstance(value, ParametricKernel):
        check_choice(name, value, ("sum", "product"))


def check_costs_of_outputs(name: str, value: Any) -> None:
    """Raise ValueError unless a parameter is a positive number, or a list of such, one for each output."""
    for cost in value if np.ndim(value) == 1 and np.size(value) else [value]:
        check_number(name, cost, low=0, more=", or a list of such numbers, one for each output")


def _check_jobs(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value == 0):
        raise ValueError(
            f"{name} must be a whole number other than 0, or None, got {shown(value)}; workers of a cluster are "
            "cluster='dask' or cluster=client."
        )


# What each parameter must be, whatever the others are. An estimator that asks for something else says so itself.
CHECKS: dict[str, Check] = {
    "C": partial(check_number, low=0),
    "alpha": partial(check_number, low=0, closed="left"),
    "nu": partial(check_number, low=0, high=1, closed="right"),
    "tol": partial(check_number, low=0),
    "epsilon": partial(check_number, low=0, closed="left"),
    "max_iter": check_count,
    "combination": _check_combination,
    "normalize": partial(check_choice, choices=KINDS),
    "approximation": lambda _, value: find_approximation(value),
    "n_jobs": _check_jobs,
    "device": lambda _, value: check_device(value),
    "missing": partial(check_choice, choices=("error", "ignore")),
    "check_kernels": partial(check_choice, choices=KERNEL_CHECKS),
    "expected_samples": or_none(check_number, low=0),
    "validation_fraction": or_none(check_number, low=0, high=1),
}
# What a family of kernels needs of parameters that are for lists of kernels.
FAMILY_NEEDS = {"combination": "sum", "center": False, "missing": "error", "approximation": None}


def check_parameters(estimator: Any, checks: Mapping[str, Check] | None = None) -> None:
    """Raise ValueError for a parameter that no fit could use, by the table and an estimator's own ``checks``."""
    given = estimator.get_params(deep=False)
    for name, check in {**CHECKS, **(checks or {})}.items():
        if name in given:
            check(name, given[name])


def check_needs(estimator: Any, who: str, needs: Mapping[str, Any]) -> None:
    """Raise ValueError for a parameter that is not what someone needs: "A family of kernels", say."""
    for name, needed in needs.items():
        value = getattr(estimator, name, needed)
        if value != needed:
            raise ValueError(f"{who} needs {name}={needed!r}, got {value!r}.")
