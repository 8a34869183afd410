"""Kernels, scores and weights along a path of C, of the norm or of alpha."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from manykernels.core.checks import check_choice, is_number
from manykernels.reports.displays.common import (
    MARKERS,
    MOST_SERIES,
    NAMES,
    check_limit,
    counted,
    divided,
    neutral_color,
    series_color,
    shortened,
    size_of,
    write_names,
)

_PANELS = {"kernels": "kernels with\na positive weight", "score": "score", "weights": "weight"}
# In inches: the width of axes with room for two columns of names, of a line with its marker and of a letter; the
# height of a row of names and of the labels of a panel.
_WIDE, _MARKER, _LETTER, _ROW, _LABELS = 4.0, 0.6, 0.075, 0.22, 0.5


class Curve(NamedTuple):
    """Models that differ in one parameter: its values, and at each value the weights, and the score if known."""

    name: str
    values: list[Any]
    weights: np.ndarray
    scores: np.ndarray | None


class PathDisplay:
    """The number of kernels, the score and the largest weights along a path, one panel each.

    Parameters
    ----------
    parameter : {"C", "norm", "alpha"}
        The parameter on the axis. Norms are evenly spaced, the others are on a log scale.
    curves : list of Curve
        One for each value of the other parameter. The panel of weights is drawn only for a single curve.
    kernel_names : sequence of str

    Attributes
    ----------
    axes_ : dict of matplotlib Axes
        The panels: "kernels", "score" if there are scores, "weights" if there is one curve.
    ax_, figure_ : matplotlib Axes and Figure
        The first panel.

    Examples
    --------
    >>> from manykernels import ufo_path
    >>> from manykernels.reports import PathDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = ufo_path("standard", X[::2], y[::2], n_alphas=3)
    >>> display = PathDisplay.from_path(path, X[1::2], y[1::2])
    >>> list(display.axes_), display.ax_.get_xscale()
    (['kernels', 'score', 'weights'], 'log')
    """

    def __init__(self, *, parameter: str, curves: Sequence[Curve], kernel_names: Sequence[str]) -> None:
        self.parameter, self.curves, self.kernel_names = parameter, list(curves), kernel_names

    @classmethod
    def from_path(
        cls,
        path: Sequence[Any],
        X: Any = None,
        y: Any = None,
        *,
        along: str | None = None,
        max_kernels: int = 6,
        ax: Any = None,
    ) -> PathDisplay:
        """Draw what :func:`manykernels.mkl_path` or :func:`manykernels.ufo_path` returned.

        Parameters
        ----------
        path : list of PathPoint or AlphaPoint
        X, y : data to score on, optional
            Preferably data that the models have not seen.
        along : {"C", "norm"}, optional
            For a path over C and the norm: which of them is on the axis; each value of the other one has a curve.
            Default: C, if it has several values.
        max_kernels : int, default 6
            Kernels whose weight is drawn, 8 at most: those with the largest share of the weights anywhere on the path.
        ax : matplotlib Axes, optional
            Divided into the panels. Default: a new figure. A figure without a layout engine gets the constrained
            one, which makes room for names.

        Returns
        -------
        PathDisplay
        """
        if len(path) == 0:
            raise ValueError("path is empty: there is nothing to draw.")
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together.")
        check_limit(max_kernels, "max_kernels")
        scores = None if X is None else [point.model.score(X, y) for point in path]
        parameter = _parameter(path, along)
        display = cls(
            parameter=parameter,
            curves=_curves(path, parameter, scores),
            kernel_names=path[0].model.kernel_names_,
        )
        return display.plot(ax, max_kernels=max_kernels)

    def plot(self, ax: Any = None, *, max_kernels: int = 6) -> PathDisplay:
        """Draw the panels; see :meth:`from_path`."""
        check_limit(max_kernels, "max_kernels")
        has_scores = all(curve.scores is not None for curve in self.curves)
        panels = {"kernels": 1.0, **({"score": 1.0} if has_scores else {})}
        if len(self.curves) == 1:
            chosen = _largest(self.curves[0].weights, min(max_kernels, MOST_SERIES))
            columns, longest = _room_for_names(ax)
            rows = len(chosen) // columns + 1
            panels |= {"weights": 1.0, NAMES: rows * _share_of_a_row(ax, n_panels=len(panels) + 1)}
        self.axes_ = divided(ax, panels, height=1.3 + 1.8 * sum(panels.values()), sharex=True)
        self.ax_ = self.axes_["kernels"]
        self.figure_ = self.ax_.figure
        for place, curve in enumerate(self.curves):
            look = {"marker": MARKERS[place % MOST_SERIES], "color": series_color(place), "label": curve.name}
            x = self._x(curve.values)
            self.ax_.plot(x, np.count_nonzero(curve.weights, axis=1), **look)
            if has_scores:
                self.axes_["score"].plot(x, curve.scores, **look)
        if "weights" in self.axes_:
            self._plot_weights(self.axes_["weights"], self.curves[0], chosen)
            lines = self.axes_["weights"].lines
            names = [shortened(line.get_label(), longest) for line in lines]
            write_names(self.axes_.pop(NAMES), lines, names, columns)
        else:
            self.ax_.legend()
        self._label()
        return self

    def _x(self, values: list[Any]) -> np.ndarray:
        return np.arange(len(values)) if self.parameter == "norm" else np.array(values, dtype=float)

    def _plot_weights(self, ax: Any, curve: Curve, chosen: list[int]) -> None:
        x, others = self._x(curve.values), np.delete(curve.weights, chosen, axis=1)
        for place, k in enumerate(chosen):
            look = {"marker": MARKERS[place], "color": series_color(place), "label": str(self.kernel_names[k])}
            ax.plot(x, curve.weights[:, k], **look)
        if others.any():
            name = f"sum of {int(np.count_nonzero(others.any(axis=0))):,} others"
            ax.plot(x, others.sum(axis=1), linestyle="--", color=neutral_color(), label=name)

    def _label(self) -> None:
        values = self._x(self.curves[0].values)
        for panel, ax in self.axes_.items():
            ax.set_ylabel(_PANELS[panel])
            if self.parameter == "norm":
                ax.set_xticks(values, [_shown(norm) for norm in self.curves[0].values])
            elif np.all(values > 0):
                ax.set_xscale("log")
            is_last = ax is list(self.axes_.values())[-1]
            ax.tick_params(labelbottom=is_last)
            if is_last:
                ax.set_xlabel(self.parameter)
        self.ax_.set_title(counted(len(self.kernel_names)), loc="left", fontsize="medium")


def _largest(weights: np.ndarray, count: int) -> list[int]:
    """Return up to ``count`` kernels, those with the largest share of the weights anywhere on the path."""
    sums = weights.sum(axis=1, keepdims=True)  # they differ between norms
    order = np.argsort(-(weights / np.where(sums > 0, sums, 1.0)).max(axis=0), kind="stable")
    return [int(k) for k in order[:count] if weights[:, k].any()]


def _room_for_names(ax: Any) -> tuple[int, int]:
    """Return the number of columns of names and of letters in each, in a new figure or below given axes."""
    if ax is None:
        return 2, 44
    inches, _ = size_of(ax)
    columns = 2 if inches >= _WIDE else 1
    return columns, max(12, int((inches / columns - _MARKER) / _LETTER))


def _share_of_a_row(ax: Any, n_panels: int) -> float:
    """Return the height of a row of names relative to that of a panel."""
    return 0.15 if ax is None else _ROW / max(size_of(ax)[1] / n_panels - _LABELS, _ROW)


def _parameter(path: Sequence[Any], along: str | None) -> str:
    """Return the parameter on the axis."""
    choices = ("alpha",) if hasattr(path[0], "alpha") else ("C", "norm")
    if along is None:
        several = len({getattr(point, choices[0]) for point in path}) > 1
        return choices[0] if several else choices[-1]
    check_choice("along", along, choices, more=" for this path")
    return along


def _curves(path: Sequence[Any], parameter: str, scores: list[float] | None) -> list[Curve]:
    other = {"C": "norm", "norm": "C"}.get(parameter)
    members: dict[str, list[int]] = {}
    for i, point in enumerate(path):
        name = "" if other is None else f"{other} {_shown(getattr(point, other))}"
        members.setdefault(name, []).append(i)
    return [
        Curve(
            name,
            [getattr(path[i], parameter) for i in places],
            np.array([np.atleast_2d(path[i].model.weights_).mean(axis=0) for i in places]),
            None if scores is None else np.array([scores[i] for i in places]),
        )
        for name, places in members.items()
    ]


def _shown(value: Any) -> str:
    return f"{value:.4g}" if is_number(value) else repr(value)
