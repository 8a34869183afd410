"""Small charts as inline SVG. Colors come from the page's style sheet, so that they follow light, dark and print.

Bars and intervals are drawn in cells of a table, whose text says the same; curves and points have a title, a
description and a sentence next to them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

MAX_POINTS, _MAX_CURVE = 1500, 150
# Ticks that are more steps than this away from zero are written as differences from the first.
_MANY_STEPS = 10_000
N_COLORS = 8
# The frame of charts with axes, in units of the SVG: width, height and margins.
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 400, 320, 58, 14, 12, 46


def bar(share: float, others: Iterable[float] = (), largest: float = 1.0) -> str:
    """Return a bar with a dot for each of the other values.

    Parameters
    ----------
    share : float
    others : iterable of float
    largest : float
        The value that fills the width.

    Examples
    --------
    >>> from manykernels.reports.html.charts import bar
    >>> bar(0.5).count("<rect")
    1
    """
    dots = "".join(f'<path class="dot" d="M{_place(value, 0.0, largest)} 10h0"/>' for value in others)
    width = _place(share, 0.0, largest)
    return f'{_STRIP}<rect class="fill" y="3" width="{width}" height="14"/>{dots}</svg>'


def interval(value: float, low: float, high: float, first: float, last: float, strong: bool = False) -> str:
    """Return a dot on the line of its interval, on an axis from ``first`` to ``last``; an arrow if it is below these.

    Examples
    --------
    >>> from manykernels.reports.html.charts import interval
    >>> 'class="point"' in interval(0.5, 0.4, 0.6, 0.0, 1.0), 'class="point"' in interval(-1.0, -1.0, -1.0, 0.0, 1.0)
    (True, False)
    """
    if value < first:
        return f'{_STRIP}<path class="whisker" d="M0 10H8M3 4L0 10L3 16"/></svg>'
    a, b, at = (_place(x, first, last) for x in (low, high, value))
    kind = "point strong" if strong else "point"
    return f'{_STRIP}<path class="whisker" d="M{a} 10H{b}"/><path class="{kind}" d="M{at} 10h0"/></svg>'


def roc(curves: Sequence[tuple[str, np.ndarray, np.ndarray]], description: str) -> str:
    """Return ROC curves.

    Parameters
    ----------
    curves : sequence of (name, false positive rates, true positive rates)
    description : str
        What the chart shows, in a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.reports.html.charts import roc
    >>> roc([("a", np.array([0.0, 1.0]), np.array([0.0, 1.0]))], "the diagonal").count("curve c0")
    1
    """
    frame = _Frame((0.0, 1.0), (0.0, 1.0))
    lines = [f'<path class="chance" d="{frame.path([0, 1], [0, 1])}"/>']
    for number, (name, x, y) in enumerate(curves):
        keep = np.unique(np.linspace(0, x.size - 1, _MAX_CURVE).astype(int))
        drawn = frame.path(x[keep], y[keep])
        lines.append(f'<path class="curve c{number % N_COLORS}" d="{drawn}"><title>{escape(name)}</title></path>')
    labels = ("false positive rate", "true positive rate")
    return frame.svg("ROC curve", description, "".join(lines), *labels)


def scatter(x: np.ndarray, y: np.ndarray, title: str, description: str, labels: tuple[str, str], line: str) -> str:
    """Return points with a line to compare with: the "diagonal", or "zero".

    Parameters
    ----------
    x, y : ndarrays of shape (n_points,)
        If there are very many points, only some are drawn.
    title, description : str
    labels : tuple of str
        The names of the two axes.
    line : {"diagonal", "zero"}

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.reports.html.charts import scatter
    >>> x = np.arange(5.0)
    >>> scatter(x, x, "title", "five points", ("x", "y"), "diagonal").count("h0")
    5
    """
    keep = np.unique(np.linspace(0, x.size - 1, MAX_POINTS).astype(int))
    both = (_range(np.concatenate([x, y])),) * 2 if line == "diagonal" else (_range(x), _range(np.append(y, 0.0)))
    frame = _Frame(*both)
    ends = frame.path(both[0], both[0] if line == "diagonal" else [0.0, 0.0])
    points = "".join(frame.dot(a, b) for a, b in zip(x[keep], y[keep], strict=True))
    body = f'<path class="points" d="{points}"/><path class="chance" d="{ends}"/>'
    return frame.svg(title, description, body, *labels)


def nice_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Return round numbers between two ends.

    Examples
    --------
    >>> from manykernels.reports.html.charts import nice_ticks
    >>> nice_ticks(0.0, 1.0), nice_ticks(24.0, 347.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [100.0, 200.0, 300.0])
    >>> nice_ticks(-1e-14, 1.2e-14)
    [-1e-14, -5e-15, 0.0, 5e-15, 1e-14]
    """
    rough = (high - low) / wanted
    power = math.floor(math.log10(rough))
    unit = 10.0**power
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round((first + i) * step, 1 - power) for i in range(int((high - first * step) / step + 1e-9) + 1)]


def tick_words(ticks: Sequence[float]) -> tuple[list[str], str]:
    """Return the labels of the ticks of an axis, and what to add to its name where they are written as differences.

    Examples
    --------
    >>> from manykernels.reports.html.charts import tick_words
    >>> tick_words([0.0, 0.5, 1.0]), tick_words([1.7e9, 1.7e9 + 50])
    ((['0', '0.5', '1'], ''), (['0', '50'], ', less 1700000000'))
    """
    if len(ticks) < 2 or max(map(abs, ticks)) <= _MANY_STEPS * (ticks[1] - ticks[0]):
        return [f"{tick:g}" for tick in ticks], ""
    return [f"{tick - ticks[0]:g}" for tick in ticks], f", less {ticks[0]:.15g}"


class _Frame:
    """Two axes, and the places of values on them."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._x, self._y = x, y

    def at(self, x: float, y: float) -> tuple[str, str]:
        """Return the place of a point, to a tenth of a unit."""
        across = _LEFT + (_WIDTH - _LEFT - _RIGHT) * (x - self._x[0]) / (self._x[1] - self._x[0])
        down = _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (y - self._y[0]) / (self._y[1] - self._y[0])
        return f"{across:.1f}", f"{down:.1f}"

    def path(self, x: Iterable[float], y: Iterable[float]) -> str:
        return "M" + "L".join(" ".join(self.at(a, b)) for a, b in zip(x, y, strict=True))

    def dot(self, x: float, y: float) -> str:
        return f"M{' '.join(self.at(x, y))}h0"

    def svg(self, title: str, description: str, body: str, x_label: str, y_label: str) -> str:
        key = re.sub(r"\W+", "-", title.lower())  # no two charts of a page have the same title
        return (
            f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            f'aria-labelledby="{key} {key}-words"><title id="{key}">{escape(title)}</title>'
            f'<desc id="{key}-words">{escape(description)}</desc>{self._axes(x_label, y_label)}{body}</svg>'
        )

    def _axes(self, x_label: str, y_label: str) -> str:
        floor, ceiling = f"{_HEIGHT - _BOTTOM}", f"{_TOP}"
        parts = []
        ticks = nice_ticks(*self._x)
        labels, offset = tick_words(ticks)
        for tick, label in zip(ticks, labels, strict=True):
            across = self.at(tick, self._y[0])[0]
            parts.append(f'<path class="grid" d="M{across} {ceiling}V{floor}"/>')
            parts.append(f'<text x="{across}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{label}</text>')
        x_label, ticks = x_label + offset, nice_ticks(*self._y)
        labels, offset = tick_words(ticks)
        for tick, label in zip(ticks, labels, strict=True):
            down = self.at(self._x[0], tick)[1]
            parts.append(f'<path class="grid" d="M{_LEFT} {down}H{_WIDTH - _RIGHT}"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{down}" dy="4" text-anchor="end">{label}</text>')
        middle = (_LEFT + _WIDTH - _RIGHT) / 2, (_TOP + _HEIGHT - _BOTTOM) / 2
        parts.append(
            f'<text class="axis" x="{middle[0]}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>'
        )
        turned = f'transform="translate(14 {middle[1]}) rotate(-90)" text-anchor="middle"'
        parts.append(f'<text class="axis" {turned}>{escape(y_label + offset)}</text>')
        return "".join(parts)


def _place(value: float, first: float, last: float) -> str:
    """Return where a value lies between two ends, in percent of the width."""
    return f"{100 * min(max((value - first) / ((last - first) or 1.0), 0.0), 1.0):.4g}"


def _range(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    room = 0.04 * (high - low) or 0.5 * abs(high) or 1.0
    return low - room, high + room


# It fills the width of its cell; strokes keep their thickness.
_STRIP = '<svg class="strip" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">'
