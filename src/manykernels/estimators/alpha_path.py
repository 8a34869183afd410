"""Models along a path of alpha: from no kernel to many, each fit started from the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.checks import check_count, check_number, is_number
from manykernels.core.progress import reached
from manykernels.estimators.ufo import UFOMKLClassifier, UFOMKLRegressor
from manykernels.estimators.ufo_base import BaseUFO, Task, UfoWarmStart
from manykernels.outer.ufo import largest_alpha


@dataclass(frozen=True)
class AlphaPoint:
    """A fitted model on the path of :func:`manykernels.ufo_path`.

    Attributes
    ----------
    alpha : float
    model : UFOMKLClassifier or UFOMKLRegressor
        Fitted.
    interrupted : bool
        Whether Ctrl-C ended the fit early, and the path with it.

    Examples
    --------
    >>> from manykernels import ufo_path
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = ufo_path("standard", X, y, n_alphas=2, random_state=0)
    >>> path[0].n_kernels < path[-1].n_kernels
    True
    """

    alpha: float
    model: Any
    interrupted: bool = False

    @property
    def n_kernels(self) -> int:
        """Kernels with a positive weight."""
        return int(self.model.active_.size)


@one_blas_thread()
def ufo_path(
    kernels: Any,
    X: Any,
    y: Any,
    *,
    alphas: Sequence[float] | None = None,
    n_alphas: int = 10,
    least: float = 1e-2,
    sample_weight: Any = None,
    regression: bool = False,
    **parameters: Any,
) -> list[AlphaPoint]:
    """Fit a model for every alpha, each started from the one before.

    The data are read and the kernels bound once. Where someone watches, be it by ``verbose=1``, Ctrl-C ends the path:
    its last point has the model so far, and no others follow.

    Parameters
    ----------
    kernels : "standard", list of Kernel, or KernelBank
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    alphas : sequence of float, optional
        Walked through in decreasing order. Default: ``n_alphas`` of them, evenly spaced on a log scale, from one that
        leaves no kernel (the smallest such, but for the multiclass hinge loss) down to ``least`` times that.
    n_alphas : int, default 10
    least : float, default 1e-2
    sample_weight : array of shape (n_samples,), optional
    regression : bool, default False
        Fit UFOMKLRegressor instead of UFOMKLClassifier.
    **parameters
        Of the estimator, such as ``loss``, ``C`` and ``max_iter``.

    Returns
    -------
    list of AlphaPoint
        With falling alpha.

    Examples
    --------
    >>> from manykernels import ufo_path
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = ufo_path("standard", X, y, n_alphas=4, loss="multiclass_hinge", max_iter=20, random_state=0)
    >>> path[0].n_kernels, path[0].n_kernels < path[1].n_kernels < path[3].n_kernels
    (0, True)
    """
    _check_alphas(alphas, parameters)
    kind = UFOMKLRegressor if regression else UFOMKLClassifier
    first, warm = kind(kernels, **parameters), UfoWarmStart()
    first._check_parameters()
    task = first._checked_task(X, y, sample_weight)
    told = {name: value for name, value in vars(first).items() if name not in first.get_params(deep=False)}
    if alphas is None:
        alphas = _default_alphas(first, task, n_alphas, least, warm)
    falling = np.sort(np.asarray(alphas, dtype=float))[::-1].tolist()
    models = [kind(kernels, **{**parameters, "alpha": alpha}) for alpha in falling]
    for model in models:
        model._check_parameters()
        model.__dict__.update(told)  # by the data, which are read once
    return _walked(models, task, warm)


def _check_alphas(alphas: Sequence[float] | None, parameters: dict[str, Any]) -> None:
    if "alpha" in parameters:
        raise ValueError("alpha is what the path walks along: pass alphas instead.")
    if alphas is not None and (np.ndim(alphas) != 1 or len(alphas) == 0 or not all(map(is_number, alphas))):
        raise ValueError(f"alphas must be a list of at least one number, got {alphas!r}.")


def _walked(models: Sequence[BaseUFO], task: Task, warm: UfoWarmStart) -> list[AlphaPoint]:
    """Fit the models one after the other, each started from the last; Ctrl-C ends the walk."""
    path: list[AlphaPoint] = []
    for model in models:
        interrupted = model._learn(task, warm)
        if warm.start is not None:
            # What was learned with another alpha counts as one epoch, which new steps soon outweigh.
            warm.start = warm.start.shortened()
        path.append(AlphaPoint(model.alpha, model, interrupted))
        reached(len(path), len(models), f"alpha={model.alpha:g}, {path[-1].n_kernels} kernels")
        if interrupted:
            break
    return path


def _default_alphas(estimator: BaseUFO, task: Task, count: int, least: float, warm: UfoWarmStart) -> list[float]:
    """Return alphas from the smallest that leaves no kernel down to a part of it."""
    count = check_count("n_alphas", count)
    check_number("least", least, low=0, high=1)
    theta = estimator._theta(task, warm)
    # A little above, since rounding may leave a kernel there.
    return ((1.0 + 1e-9) * largest_alpha(theta) * np.geomspace(1.0, least, count)).tolist()
