"""What ``loss=`` and ``norm=`` of an estimator stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from manykernels.core.checks import check_choice, is_number
from manykernels.kernels.lazy_names import run_lengths
from manykernels.losses import Loss
from manykernels.norms import LpNorm, Norm


def find_loss(given: Any, named: Mapping[str, Callable[[], Loss]], *, of_classes: bool) -> Loss:
    """Return the loss that a parameter means: one of the names, or a loss of your own.

    Parameters
    ----------
    given : str or Loss
    named : mapping of names to functions that make a loss
    of_classes : bool
        Whether the targets are -1 and 1, or numbers.

    Examples
    --------
    >>> from manykernels.estimators.chosen import find_loss
    >>> from manykernels.losses import Hinge, SquaredHinge
    >>> find_loss("hinge", {"hinge": Hinge}, of_classes=True), find_loss(SquaredHinge(), {}, of_classes=True)
    (Hinge(), SquaredHinge())
    """
    if not isinstance(given, Loss):
        check_choice("loss", given, tuple(named), more=", or a Loss")
        return named[given]()
    if not (given.classification if of_classes else given.regression):
        wanted = "classes" if of_classes else "numbers"
        raise ValueError(f"loss must be for {wanted}, but {given!r} is not.")
    return given


def find_norm(given: Any) -> Norm:
    """Return the norm that a parameter means: a number p is LpNorm(p).

    Examples
    --------
    >>> from manykernels.estimators.chosen import find_norm
    >>> find_norm(2)
    LpNorm(p=2)
    """
    if isinstance(given, Norm):
        return given
    if is_number(given) and given >= 1:
        return LpNorm(float(given))
    raise ValueError(f"norm must be a number p in [1, inf] or a norm such as LpNorm(2), got {given!r}.")


def of_groups(norm: Norm, groups: Sequence[str]) -> Norm:
    """Return a norm that knows the group of every kernel."""
    return norm.bind([name for name, count in run_lengths(groups) for _ in range(count)])
