"""What all displays share: the import of matplotlib, colors of the style in use, short names, fitted models."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

LONGEST_NAME = 48
# Besides its color, each series has a pattern and a marker: not everyone can tell colors apart.
HATCHES = ("", "//", "..", "xx", "\\\\", "oo", "++", "--")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST_SERIES = len(MARKERS)
# Series are named in a separate panel below the others, so that names cover nothing.
NAMES = "names"
# The space in inches between panels where no layout engine finds it: for labels, and for a title below them.
_SPACE, _SPACE_WITHOUT_TITLE = 0.7, 0.5


def pyplot() -> Any:
    """Return matplotlib.pyplot, or say how to install it."""
    try:
        from matplotlib import pyplot as module  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ImportError('Plots need matplotlib: pip install "manykernels[plot]".') from error
    return module


def new_axes(ax: Any, width: float = 6.4, height: float = 4.8) -> Any:
    """Return the axes that were given, or those of a new figure of this size in inches."""
    return pyplot().subplots(figsize=(width, height), layout="constrained")[1] if ax is None else ax


def divided(ax: Any, panels: dict[str, float], height: float, width: float = 7.5, sharex: bool = False) -> dict:
    """Return axes one below the other, in a new figure or in the place of the given axes.

    ``panels`` holds their names and relative heights.
    """
    if ax is not None:
        _remove_panels(ax)
        make_room(ax)
    if len(panels) == 1:
        return dict.fromkeys(panels, new_axes(ax, width, height))
    if ax is None:
        figure = pyplot().figure(figsize=(width, height), layout="constrained")
        places = list(figure.add_gridspec(len(panels), 1, height_ratios=list(panels.values())))
    else:
        ax.set_axis_off()
        figure, places = ax.figure, _places_in(ax, list(panels.values()), _SPACE_WITHOUT_TITLE if sharex else _SPACE)
    axes: list[Any] = []
    for place in places:
        add = figure.add_subplot if hasattr(place, "get_gridspec") else figure.add_axes
        axes.append(add(place, sharex=axes[0] if axes and sharex else None, gid=_panel_of(ax)))
    return dict(zip(panels, axes, strict=True))


def _places_in(ax: Any, heights: Sequence[float], space: float) -> list[Any]:
    """Return the parts of a subplot, or of the rectangle of axes that were placed by hand."""
    from matplotlib.gridspec import GridSpec  # noqa: PLC0415 - an extra

    rows, engine, box = len(heights), ax.figure.get_layout_engine(), ax.get_position()
    panel = max(size_of(ax)[1] - (rows - 1) * space, space) / rows
    parts: dict[str, Any] = {"height_ratios": heights, "hspace": space / panel}
    if (place := ax.get_subplotspec()) is not None:
        finds_space = engine is not None and not engine.adjust_compatible
        return list(place.subgridspec(rows, 1, **(parts | {"hspace": None} if finds_space else parts)))
    grid = GridSpec(rows, 1, left=box.x0, right=box.x1, bottom=box.y0, top=box.y1, **parts)
    return [grid[row].get_position(ax.figure) for row in range(rows)]


def _panel_of(ax: Any) -> str | None:
    """Return the mark by which the panels that replace these axes are found again."""
    return None if ax is None else f"panel-of-{id(ax)}"


def _remove_panels(ax: Any) -> None:
    for panel in [other for other in ax.figure.axes if other.get_gid() == _panel_of(ax)]:
        panel.remove()
        ax.set_axis_on()


def make_room(ax: Any) -> None:
    """Let matplotlib make room for the names around a subplot, unless the figure is laid out otherwise."""
    figure = ax.figure.canvas.figure  # also for a subfigure
    if ax.get_subplotspec() is not None and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")


def write_names(ax: Any, handles: Sequence[Any], names: Sequence[str], columns: int) -> None:
    """Fill the panel for the names of the series."""
    ax.set_axis_off()
    if names:
        ax.legend(handles, names, loc="upper center", ncols=columns, fontsize="small", borderaxespad=0.0)


def height_for(rows: int) -> float:
    """Return the height of a figure with one name per row."""
    return 1.3 + 0.27 * max(rows, 4)


def name_size(ax: Any, rows: int) -> float:
    """Return the font size in points for one name per row: that of the style, or less where given axes are small."""
    from matplotlib.font_manager import FontProperties  # noqa: PLC0415 - an extra

    usual = FontProperties(size=pyplot().rcParams["ytick.labelsize"]).get_size_in_points()
    return min(usual, 0.8 * 72.0 * size_of(ax)[1] / max(rows, 1))


def size_of(ax: Any) -> tuple[float, float]:
    """Return the width and the height of axes in inches."""
    width, height = ax.get_position().size * ax.figure.bbox.size / ax.figure.dpi
    return float(width), float(height)


def series_color(place: int) -> str:
    """Return the color of a series in the style in use, or a neutral one beyond the last."""
    colors = pyplot().rcParams["axes.prop_cycle"].by_key().get("color", ["C0"])
    return colors[place] if place < min(len(colors), MOST_SERIES) else neutral_color()


def neutral_color() -> str:
    """Return a color between the text and the background of the style in use."""
    from matplotlib.colors import to_hex, to_rgb  # noqa: PLC0415 - an extra

    text, background = (np.array(to_rgb(pyplot().rcParams[name])) for name in ("text.color", "axes.facecolor"))
    red, green, blue = 0.55 * text + 0.45 * background
    return to_hex((red, green, blue))


def shortened(text: Any, longest: int = LONGEST_NAME) -> str:
    """Return a name for matplotlib: at most so long, with an ellipsis in the middle, and not read as a formula.

    Examples
    --------
    >>> from manykernels.reports.displays.common import shortened
    >>> shortened("Gaussian(width=2) on mean concave points", 20)
    'Gaussian(w…ve points'
    """
    text = str(text)
    if len(text) > longest:
        left = longest // 2
        text = f"{text[:left]}…{text[len(text) - (longest - left - 1) :]}"
    return text.replace("$", r"\$")


def counted(count: int, what: str = "kernel") -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> from manykernels.reports.displays.common import counted
    >>> counted(1), counted(10_000)
    ('1 kernel', '10,000 kernels')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def last_step(estimator: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the fitted model at the end of a pipeline or of a search, and X as that model sees it."""
    check_is_fitted(estimator)
    while True:
        if hasattr(estimator, "weights_"):
            return estimator, X
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            X = X if X is None or len(estimator.steps) == 1 else estimator[:-1].transform(X)
            estimator = estimator[-1]
        else:
            raise TypeError(f"Displays are for estimators of manykernels, got {type(estimator).__name__}.")


def of_task(values: Any, task: int | None, what: str) -> Any:
    """Return the mean of values over the classes, or the value of one class.

    The first axis of ``values`` is the class; ``what`` describes them for the error message.
    """
    if task is None:
        return values.mean(axis=0)
    if not 0 <= task < len(values):
        raise ValueError(f"task must be from 0 to {len(values) - 1}, since {len(values)} {what}, got {task!r}.")
    return values[task]


def check_lengths(**parts: Sized) -> None:
    """Raise ValueError unless all parts have the same length."""
    sizes = {name: len(values) for name, values in parts.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError("These must have the same length: " + ", ".join(f"{k} ({n})" for k, n in sizes.items()) + ".")


def check_limit(value: Any, name: str) -> None:
    """Raise TypeError or ValueError unless a limit is a whole number of at least 1."""
    check_scalar(value, name, Integral, min_val=1)
