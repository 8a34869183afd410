"""What ``loss=`` and ``norm=`` of an estimator stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manykernels.core.checks import check_choice, is_number
from manykernels.core.constructors import argument_names
from manykernels.kernels.lazy_names import run_lengths
from manykernels.losses import LOSSES, Loss
from manykernels.norms import LpNorm, Norm


def named_losses(*, of_classes: bool) -> dict[str, type[Loss]]:
    """Return the losses that have a name: those for the targets -1 and 1, or those for numbers.

    Examples
    --------
    >>> from manykernels.estimators.loss_and_norm import named_losses
    >>> list(named_losses(of_classes=False))
    ['squared', 'epsilon_insensitive', 'absolute', 'quantile', 'huber']
    """
    return {kind.name: kind for kind in LOSSES if (kind.classification if of_classes else kind.regression)}


def find_loss(estimator: Any, *, of_classes: bool, more: Sequence[str] = ()) -> Loss:
    """Return the loss that ``loss=`` of an estimator means: one of the names, or the loss itself.

    A loss that is named takes those of the estimator's parameters that its constructor has.

    Parameters
    ----------
    estimator : estimator
    of_classes : bool
        Whether the targets are -1 and 1, or numbers.
    more : sequence of str
        Names that the estimator knows besides.

    Examples
    --------
    >>> from manykernels import MKLClassifier, MKLRegressor
    >>> from manykernels.estimators.loss_and_norm import find_loss
    >>> from manykernels.losses import SquaredHinge
    >>> find_loss(MKLRegressor(loss="epsilon_insensitive", epsilon=0.2), of_classes=False)
    EpsilonInsensitive(epsilon=0.2)
    >>> find_loss(MKLClassifier(loss=SquaredHinge()), of_classes=True)
    SquaredHinge()
    """
    given = estimator.loss
    if not isinstance(given, Loss):
        named = named_losses(of_classes=of_classes)
        check_choice("loss", given, (*named, *more), more=", or a Loss")
        names = argument_names(named[given])
        parameters = estimator.get_params(deep=False)
        return named[given](**{name: value for name, value in parameters.items() if name in names})
    if not (given.classification if of_classes else given.regression):
        wanted = "classes" if of_classes else "numbers"
        raise ValueError(f"loss must be for {wanted}, but {given!r} is not.")
    return given


def gives_probabilities(estimator: Any) -> bool:
    """Return whether the loss of a classifier gives probabilities: the loss of the fit, or of a fit to come."""
    if hasattr(estimator, "gives_probabilities_"):
        return bool(estimator.gives_probabilities_)
    return bool(estimator._loss().gives_probabilities)


def find_norm(given: Any) -> Norm:
    """Return the norm that a parameter means: a number p is LpNorm(p).

    Examples
    --------
    >>> from manykernels.estimators.loss_and_norm import find_norm
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
