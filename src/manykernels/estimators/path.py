"""Models along a path of C and p: kernels bound once, each fit started from the last."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from manykernels.compute.memory import shared_budget
from manykernels.compute.threads import one_blas_thread
from manykernels.core.checks import is_number
from manykernels.core.progress import reached
from manykernels.estimators.base import BaseMKL
from manykernels.estimators.by_rows import stay_on_workers
from manykernels.estimators.classifier import MKLClassifier
from manykernels.estimators.loss_and_norm import find_norm
from manykernels.estimators.regressor import MKLRegressor
from manykernels.estimators.training import columns_of
from manykernels.estimators.warm_start import WarmStart

DEFAULT_CS = (0.01, 0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True)
class PathPoint:
    """A fitted model on the path of :func:`manykernels.mkl_path`.

    Attributes
    ----------
    C : float
    norm : number or norm
    model : MKLClassifier or MKLRegressor
        Fitted; ``model.gap_`` is its certificate.
    interrupted : bool
        Whether Ctrl-C ended the fit early, and the path with it.

    Examples
    --------
    >>> from manykernels import mkl_path
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> [point.title for point in mkl_path("standard", X, y, Cs=[0.1, 1.0])]
    ['C=0.1, norm=1', 'C=1, norm=1']
    """

    C: float
    norm: Any
    model: MKLClassifier | MKLRegressor
    interrupted: bool = False

    @property
    def title(self) -> str:
        """The point in words."""
        return f"C={self.C:g}, norm={self.norm:g}" if is_number(self.norm) else f"C={self.C:g}, {self.norm!r}"


@one_blas_thread()
def mkl_path(
    kernels: Any,
    X: Any,
    y: Any,
    *,
    Cs: Sequence[float] = DEFAULT_CS,
    norms: Sequence[Any] = (1.0,),
    sample_weight: Any = None,
    regression: bool = False,
    **parameters: Any,
) -> list[PathPoint]:
    """Fit a model for every C and norm, each started from the one before.

    The data are read and the kernels computed once, and the weights of one C are the start for the next. Where
    ``n_jobs`` or a backend of joblib says so, norms run in parallel, each with kernels of its own; on a device they run
    one after the other. Where the steps are watched, as with ``verbose=1``, Ctrl-C ends the path: its last point has
    the best model so far.

    Parameters
    ----------
    kernels : "standard", list of Kernel, or KernelBank
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    Cs : sequence of float
        Walked through in increasing order.
    norms : sequence of float or norm
    sample_weight : array of shape (n_samples,), optional
    regression : bool, default False
        Fit MKLRegressor instead of MKLClassifier.
    **parameters
        Of the estimator, such as ``loss`` and ``tol``.

    Returns
    -------
    list of PathPoint
        Norm by norm, with rising C.

    Examples
    --------
    >>> from manykernels import mkl_path
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = mkl_path("standard", X[:100], y[:100], Cs=[0.1, 1.0, 10.0], norms=[1.0, 2.0])
    >>> [(point.C, point.norm) for point in path[:3]]
    [(0.1, 1.0), (1.0, 1.0), (10.0, 1.0)]
    >>> all(point.model.gap_ <= 1e-3 for point in path)
    True
    """
    for name, plural in (("C", "Cs"), ("norm", "norms")):
        if name in parameters:
            raise ValueError(f"{name} is what the path walks along: pass {plural} instead.")
    kind = MKLRegressor if regression else MKLClassifier
    estimator = kind(kernels, **parameters)
    path: list[PathPoint] = []
    n_jobs, settings = side_by_side(estimator, X, len(norms))
    if n_jobs > 1:
        asked = {name: getattr(estimator, name) for name in settings}
        estimator.set_params(**settings)
        walks = (delayed(_walked)(estimator, X, y, sample_weight, Cs, [norm]) for norm in norms)
        for points in Parallel(n_jobs=n_jobs)(walks):
            for point in points:
                point.model.set_params(**asked)  # for fits to come
            path += points
            reached(len(path), len(Cs) * len(norms), points[-1].title)
        return path
    for point in walk(estimator, X, y, sample_weight, Cs, norms):
        path.append(point)
        reached(len(path), len(Cs) * len(norms), point.title)
    return path


def side_by_side(estimator: BaseMKL, X: Any, count: int) -> tuple[int, dict[str, Any]]:
    """Return how many of ``count`` walks are done at the same time, and the parameters that change for each of them.

    They share the memory. On workers and on a device one follows the other, since each has all of them.
    """
    on_workers = estimator._is_distributed() or stay_on_workers(estimator.approximation, estimator.cluster, X)
    is_elsewhere = on_workers or estimator.device != "cpu"
    n_jobs = 1 if is_elsewhere else min(effective_n_jobs(estimator.n_jobs), count)
    if n_jobs <= 1:
        return 1, {}
    return n_jobs, {"n_jobs": None, "memory_budget": shared_budget(estimator.memory_budget, n_jobs)}


@one_blas_thread()
def _walked(*arguments: Any) -> list[PathPoint]:
    return list(walk(*arguments))


def walk(
    estimator: BaseMKL,
    X: Any,
    y: Any,
    sample_weight: Any,
    Cs: Sequence[float],
    norms: Sequence[Any],
    trail: dict | None = None,
) -> Iterator[PathPoint]:
    """Yield the points of the path, fitted one after the other, each started from the last.

    ``trail`` remembers the weights at each point. Walked again on other samples of the same data, the path starts from
    them: they are nearer than the weights of the point before. A point that Ctrl-C interrupts is the last.
    """
    points = deque(points_of(estimator, Cs, norms))
    client = estimator._client_of_rows(X)
    for point in points:
        point.model._check_data(X, client)
    training = points[0].model._read(X, y, sample_weight, client)
    columns = columns_of(points[0].model)
    # The kernels are bound once, so their memory is planned for every norm that is to come.
    warm, trail = WarmStart(norms=tuple(find_norm(norm) for norm in norms)), {} if trail is None else trail
    for place in range(len(points)):
        point = points.popleft()  # whoever takes the points decides how many models are kept
        for name, value in columns.items():
            setattr(point.model, name, value)
        warm.weights = trail.get(place, warm.weights)
        interrupted = point.model._fit_to(training, warm)
        trail[place] = warm.weights
        yield replace(point, interrupted=interrupted)
        if interrupted:
            return


def points_of(estimator: BaseMKL, Cs: Sequence[float], norms: Sequence[Any]) -> list[PathPoint]:
    """Return the points of a path, norm by norm with rising C, whose models have good parameters but are not fitted."""
    if np.ndim(Cs) != 1 or len(Cs) == 0 or not isinstance(norms, (Sequence, np.ndarray)) or len(norms) == 0:
        raise ValueError(f"Cs and norms must be lists of at least one value each, got {Cs!r} and {norms!r}.")
    given, points = estimator.get_params(deep=False), []
    for norm in norms:
        for C in np.sort(np.asarray(Cs, dtype=float)).tolist():
            model = type(estimator)(**{**given, "C": C, "norm": norm})
            model._check_parameters()
            points.append(PathPoint(C, norm, model))
    return points
