"""The weights of the kernels as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from manykernels.kernels.lazy_names import sums_by_group
from manykernels.reports.displays.common import (
    HATCHES,
    MOST_SERIES,
    NAMES,
    check_lengths,
    check_limit,
    counted,
    divided,
    height_for,
    last_step,
    name_size,
    of_task,
    pyplot,
    series_color,
    shortened,
    write_names,
)

_MOST_SUMS = 6
_COLUMNS = 3


class Bar(NamedTuple):
    """A row of the plot: a kernel, or the sum of kernels without a row."""

    name: str
    weight: float
    group: str | None
    is_sum: bool


class KernelWeightsDisplay:
    """The kernels with the largest weights as bars, in the colors of their groups (views).

    Kernels without a bar are summed by group in a panel below, so that all bars together make up all weights.

    Parameters
    ----------
    weights : ndarray of shape (n_kernels,)
    names, groups : sequences of str, of length n_kernels

    Attributes
    ----------
    axes_ : dict of matplotlib Axes
        "kernels", and "sums" if there are kernels without a bar.
    ax_, figure_ : matplotlib Axes and Figure
        The first panel.
    bars_ : list of Bar
        What is drawn, from top to bottom: name, weight, group, and whether it is a sum over several kernels.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.reports import KernelWeightsDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> display = KernelWeightsDisplay.from_estimator(MKLClassifier(norm=2).fit(X, y), max_kernels=5)
    >>> [bar.is_sum for bar in display.bars_]
    [False, False, False, False, False, True, True, True, True, True]
    """

    def __init__(self, *, weights: Any, names: Sequence[str], groups: Sequence[str]) -> None:
        self.weights, self.names, self.groups = np.asarray(weights, dtype=float), names, groups
        check_lengths(weights=self.weights, names=names, groups=groups)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, task: int | None = None, max_kernels: int = 20, ax: Any = None
    ) -> KernelWeightsDisplay:
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator, or a pipeline or search that ends with one
        task : int, optional
            The class whose weights are drawn, where each has its own; default: their mean.
        max_kernels : int, default 20
            The most bars of single kernels.
        ax : matplotlib Axes, optional
            Divided where there are two panels. Default: a new figure. A figure without a layout engine gets the
            constrained one, which makes room for names.

        Returns
        -------
        KernelWeightsDisplay
        """
        model, _ = last_step(estimator)
        weights = of_task(np.atleast_2d(model.weights_), task, "classes have weights of their own")
        display = cls(weights=weights, names=model.kernel_names_, groups=model.kernel_groups_)
        return display.plot(ax, max_kernels=max_kernels)

    def plot(self, ax: Any = None, *, max_kernels: int = 20) -> KernelWeightsDisplay:
        """Draw the bars; see :meth:`from_estimator`."""
        self.bars_ = self._bars(max_kernels)
        single, sums = ([bar for bar in self.bars_ if bar.is_sum == wanted] for wanted in (False, True))
        panels = {"kernels": len(single) + 0.2, **({"sums": len(sums) + 0.2} if sums else {})}
        groups = list(dict.fromkeys(bar.group for bar in self.bars_ if bar.group is not None))
        # Colors for very many groups would say nothing; the names do.
        place = {group: i for i, group in enumerate(groups)} if 1 < len(groups) <= MOST_SERIES else {}
        if place and sums and ax is not None:
            panels[NAMES] = float(-(-len(place) // _COLUMNS))
        height = height_for(len(single)) + (height_for(len(sums)) if sums else 0.0)
        self.axes_ = divided(ax, panels, height, width=8.0)
        self.ax_ = self.axes_["kernels"]
        self.figure_ = self.ax_.figure
        _draw(self.ax_, single, place)
        self.ax_.set_title(self._title(), loc="left", fontsize="medium")
        if sums:  # on a separate scale: next to a sum of thousands, a single weight would not be visible
            _draw(self.axes_["sums"], sums, place)
            self.axes_["sums"].set_title("sums over the other kernels", loc="left", fontsize="medium")
        if place:
            self._add_legend(place, is_new_figure=ax is None)
        return self

    def _bars(self, max_kernels: int) -> list[Bar]:
        check_limit(max_kernels, "max_kernels")
        order = np.argsort(-self.weights, kind="stable")[:max_kernels]
        if self.weights.size > max_kernels:  # where all kernels have a bar, those of weight 0 do too
            order = order[self.weights[order] > 0]
        single = [Bar(self.names[int(k)], self.weights[k], self.groups[int(k)], False) for k in order]
        return [*single, *self._sums(order)]

    def _sums(self, shown: np.ndarray) -> list[Bar]:
        """Return the sums over the kernels without a bar: the largest groups, and one bar for the others."""
        left = self.weights.copy()
        left[shown] = 0.0
        groups, (sums, counts) = sums_by_group(self.groups, np.array([left, left > 0]))
        order = [int(g) for g in np.argsort(-sums, kind="stable") if sums[g] > 0]
        largest = order if len(order) <= _MOST_SUMS else order[: _MOST_SUMS - 1]
        bars = [Bar(f"{int(counts[g]):,} more of {groups[g]}", sums[g], groups[g], True) for g in largest]
        if others := order[len(largest) :]:
            name = f"{int(counts[others].sum()):,} more in {counted(len(others), 'group')}"
            bars.append(Bar(name, float(sums[others].sum()), None, True))
        return bars

    def _title(self) -> str:
        return f"{int(np.count_nonzero(self.weights)):,} of {counted(self.weights.size)} with a positive weight"

    def _add_legend(self, place: dict[str, int], is_new_figure: bool) -> None:
        from matplotlib.patches import Patch  # noqa: PLC0415 - an extra

        background = pyplot().rcParams["axes.facecolor"]
        handles = [
            Patch(facecolor=series_color(i), hatch=HATCHES[i], edgecolor=background, label=shortened(group, 24))
            for group, i in place.items()
        ]
        if NAMES in self.axes_:
            write_names(self.axes_.pop(NAMES), handles, [shortened(group, 24) for group in place], _COLUMNS)
        else:  # only a new figure has room next to the bars; in given axes the shortest bars are at the bottom
            where = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if is_new_figure else {"loc": "lower right"}
            self.ax_.legend(handles=handles, title="group", **where)


def _draw(ax: Any, bars: list[Bar], place: dict[str, int]) -> None:
    """Draw bars from top to bottom; ``place`` numbers the groups that have a color."""
    background = pyplot().rcParams["axes.facecolor"]
    for row, bar in enumerate(bars):
        number = MOST_SERIES if bar.group is None else place.get(bar.group, 0)
        hatch = HATCHES[number] if number < MOST_SERIES else ""
        ax.barh(row, bar.weight, color=series_color(number), hatch=hatch, edgecolor=background)
    ax.set_yticks(range(len(bars)), [shortened(bar.name) for bar in bars], fontsize=name_size(ax, len(bars)))
    ax.set_ylim(len(bars) - 0.4, -0.6)
    ax.margins(x=0.02)
    ax.set_xlim(left=0)
    ax.set_xlabel("weight")
