"""One prediction as the sum of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from manykernels.core.checks import check_choice
from manykernels.reports.displays.common import (
    HATCHES,
    check_lengths,
    check_limit,
    height_for,
    last_step,
    make_room,
    name_size,
    neutral_color,
    new_axes,
    pyplot,
    series_color,
    shortened,
)

# The axis may become this many times as long to include 0.
_MOST_SQUEEZED = 4.0
_ROOM = 0.22


class ContributionsDisplay:
    """What each kernel (or group of kernels) adds to one prediction, from the intercept to the decision value.

    Parameters
    ----------
    values : ndarray of shape (n_parts,)
    names : sequence of str, of length n_parts
    intercept : float
    title : str, default ""
    label : str, default "decision value"
        What the sum is.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    steps_ : list of (name, start, end)
        The bars from top to bottom: the intercept, the parts with the largest first, and the prediction.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.kernels import Gaussian
    >>> from manykernels.reports import ContributionsDisplay
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = MKLClassifier([Gaussian(10.0, columns=[name]) for name in X], norm=2).fit(X, y)
    >>> display = ContributionsDisplay.from_estimator(model, X, row=3, max_parts=5)
    >>> [name for name, _, _ in display.steps_][-2:]
    ['25 others', 'decision value']
    """

    def __init__(
        self, *, values: Any, names: Sequence[str], intercept: float, title: str = "", label: str = "decision value"
    ) -> None:
        self.values, self.names = np.asarray(values, dtype=float), list(names)
        self.intercept, self.title, self.label = float(intercept), title, label
        check_lengths(values=self.values, names=self.names)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        row: int = 0,
        task: int = 0,
        by: str = "kernel",
        max_parts: int = 12,
        ax: Any = None,
    ) -> ContributionsDisplay:
        """Draw the parts of one prediction.

        Parameters
        ----------
        estimator : fitted estimator with ``contributions``, or a pipeline or search that ends with one
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        row : int, default 0
            The sample.
        task : int, default 0
            The class, where there are more than two.
        by : {"kernel", "group"}, default "kernel"
        max_parts : int, default 12
            The most bars of single parts; the others are summed.
        ax : matplotlib Axes, optional
            Default: a new figure. A figure without a layout engine gets the constrained one, which makes room for
            names.

        Returns
        -------
        ContributionsDisplay
        """
        check_choice("by", by, ("kernel", "group"))
        is_stack = getattr(X, "ndim", 2) == 3
        model, X = last_step(estimator, X[:, [row]] if is_stack else _safe_indexing(X, [row]))
        parts = model.contributions(X)
        parts = parts if by == "kernel" else parts.by_group()
        if not 0 <= task < parts.intercept.size:
            raise ValueError(f"task must be from 0 to {parts.intercept.size - 1}, got {task!r}.")
        title, label = f"sample {row}", "prediction"
        if hasattr(model, "classes_"):
            title += f", for class {model.classes_[task if parts.intercept.size > 1 else 1]}"
            label = "decision value"
        return cls(
            values=parts.values[0, task],
            names=parts.names,
            intercept=parts.intercept[task],
            title=title,
            label=label,
        ).plot(ax, max_parts=max_parts)

    def plot(self, ax: Any = None, *, max_parts: int = 12) -> ContributionsDisplay:
        """Draw the bars; see :meth:`from_estimator`."""
        self.steps_ = self._steps(max_parts)
        self.ax_ = ax = new_axes(ax, width=7.5, height=height_for(len(self.steps_)))
        self.figure_ = ax.figure
        make_room(ax)
        last = len(self.steps_) - 1
        for row, (_, start, end) in enumerate(self.steps_):
            if 0 < row < last:
                self._draw_part(row, start, end)
            else:
                ax.plot(end, row, marker="D", color=neutral_color())
            if row < last:  # where the next bar starts
                ax.plot([end, end], [row, row + 1], color=neutral_color(), linewidth=0.8)
            self._write(row, start, end, is_part=0 < row < last)
        low, high = self._limits()
        ax.set_xlim(low, high)
        if low < 0.0 < high:
            ax.axvline(0.0, color=pyplot().rcParams["text.color"], linewidth=0.8, zorder=0.5)
        names = [shortened(name) for name, _, _ in self.steps_]
        ax.set_yticks(range(last + 1), names, fontsize=name_size(ax, last + 1))
        ax.set_ylim(last + 0.6, -0.6)
        ax.set_xlabel(self.label)
        ax.set_title(shortened(self.title, 60), loc="left", fontsize="medium")
        return self

    def _draw_part(self, row: int, start: float, end: float) -> None:
        falls = end < start
        look = {"color": series_color(int(falls)), "hatch": HATCHES[1] if falls else ""}
        self.ax_.barh(row, end - start, left=start, edgecolor=pyplot().rcParams["axes.facecolor"], **look)

    def _write(self, row: int, start: float, end: float, is_part: bool) -> None:
        """Write a figure beyond the end of its bar."""
        largest = max((abs(end - start) for _, start, end in self.steps_[1:-1]), default=0.0) or abs(end) or 1.0
        digits = max(0, 2 - int(np.floor(np.log10(largest))))
        falls = end < start and is_part
        self.ax_.annotate(
            _figure(end - start, digits, sign="+") if is_part else _figure(end, digits),
            (end, row),
            xytext=(-6 if falls else 6, 0),
            textcoords="offset points",
            ha="right" if falls else "left",
            va="center",
            fontsize="small",
            bbox={"facecolor": pyplot().rcParams["axes.facecolor"], "edgecolor": "none", "pad": 0.8},
        )

    def _limits(self) -> tuple[float, float]:
        """Return the ends of the axis, with room for figures; 0 is inside unless that would squeeze the parts."""
        ends = [end for _, _, end in self.steps_]
        low, high = min(ends), max(ends)
        if max(high, 0.0) - min(low, 0.0) <= _MOST_SQUEEZED * (high - low):
            low, high = min(low, 0.0), max(high, 0.0)
        room = _ROOM * (high - low) or abs(high) or 1.0
        return low - room, high + room

    def _steps(self, max_parts: int) -> list[tuple[str, float, float]]:
        check_limit(max_parts, "max_parts")
        order = np.argsort(-np.abs(self.values), kind="stable")
        if order.size > max_parts + 1:  # the sum of a single part would be that part under another name
            order, others = order[:max_parts], order[max_parts:]
        else:
            others = order[:0]
        names = [self.names[k] for k in order]
        values = self.values[order].tolist()
        if others.size:
            names.append(f"{others.size:,} others")
            values.append(float(self.values[others].sum()))
        ends = np.cumsum([self.intercept, *values]).tolist()
        steps = [("intercept", 0.0, self.intercept), *zip(names, ends[:-1], ends[1:], strict=True)]
        return [*steps, (self.label, 0.0, ends[-1])]


def _figure(value: float, digits: int, sign: str = "") -> str:
    """Return a number with this many decimals, or with its first significant digit if it would read as 0."""
    vanishes = value != 0 and round(value, digits) == 0
    return f"{value:{sign}.1g}" if vanishes else f"{value:{sign}.{digits}f}"
