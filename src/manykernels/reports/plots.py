"""Plots made from results; they need matplotlib (``pip install manykernels[plot]``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def plot_alpha_path(path: Sequence[Any], X: Any = None, y: Any = None, *, ax: Any = None) -> Any:
    """Draw the number of kernels, and the score on given data, against alpha.

    Parameters
    ----------
    path : list of AlphaPoint
        What :func:`manykernels.ufo_path` returned.
    X, y : data to score on, optional
        Best such as the models have not seen.
    ax : matplotlib Axes, optional
        Default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its twin, if there are scores, has the second axis.

    Examples
    --------
    >>> from manykernels import ufo_path
    >>> from manykernels.reports import plot_alpha_path
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_alpha_path(ufo_path("standard", X[::2], y[::2], n_alphas=3), X[1::2], y[1::2])
    >>> ax.get_xscale(), ax.get_ylabel()
    ('log', 'kernels with a positive weight')
    """
    if len(path) == 0:
        raise ValueError("path is empty: there is nothing to draw.")
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together.")
    ax = _new_axes() if ax is None else ax
    alphas = np.array([point.alpha for point in path])
    ax.plot(alphas, [point.n_kernels for point in path], "o-", color="tab:blue", label="kernels")
    if np.all(alphas > 0):
        ax.set_xscale("log")
    ax.set_xlabel("alpha")
    ax.set_ylabel("kernels with a positive weight", color="tab:blue")
    if X is not None:
        twin = ax.twinx()
        twin.plot(alphas, [point.model.score(X, y) for point in path], "s--", color="tab:red", label="score")
        twin.set_ylabel("score", color="tab:red")
    return ax


def _new_axes() -> Any:
    try:
        from matplotlib import pyplot  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install manykernels[plot].") from error
    return pyplot.subplots(layout="constrained")[1]
