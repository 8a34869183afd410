"""What ``loss=`` of an estimator stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from manykernels.core.checks import check_choice
from manykernels.losses import Loss


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
    >>> from manykernels.estimators.chosen_loss import find_loss
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
