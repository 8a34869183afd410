"""What all displays share: where matplotlib is imported, colors of the style in use, short names, fitted models."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

LONGEST_NAME = 48
# Beside its color, each series has a pattern and a marker of its own: colors alone are not told apart by everyone.
HATCHES = ("", "", "//", "..", "xx", "\\\\", "oo", "++")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST_SERIES = len(MARKERS)


def pyplot() -> Any:
    """Return matplotlib.pyplot, or say how to install it."""
    try:
        from matplotlib import pyplot as found  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ImportError('Plots need matplotlib: pip install "manykernels[plot]".') from error
    return found


def new_axes(ax: Any, width: float = 6.4, height: float = 4.8) -> Any:
    """Return the axes that were given, or those of a new figure of this size in inches."""
    return pyplot().subplots(figsize=(width, height), layout="constrained")[1] if ax is None else ax


def divided(ax: Any, panels: dict[str, float], height: float, width: float = 7.5, sharex: bool = False) -> dict:
    """Return axes one below the other, in a new figure or in the place of the given axes.

    ``panels`` are their names and heights beside each other's.
    """
    if len(panels) == 1:
        return dict.fromkeys(panels, new_axes(ax, width, height))
    if ax is None:
        figure = pyplot().figure(figsize=(width, height), layout="constrained")
        grid = figure.add_gridspec(len(panels), 1, height_ratios=list(panels.values()))
    else:
        ax.set_axis_off()
        figure = ax.figure
        grid = ax.get_subplotspec().subgridspec(len(panels), 1, height_ratios=list(panels.values()))
    axes: list[Any] = []
    for row in range(len(panels)):
        axes.append(figure.add_subplot(grid[row], sharex=axes[0] if axes and sharex else None))
    return dict(zip(panels, axes, strict=True))


def height_for(rows: int) -> float:
    """Return the height of a figure whose names stand one in a row."""
    return 1.3 + 0.27 * max(rows, 4)


def series_color(place: int) -> str:
    """Return the color of a series in the style in use, a neutral one beyond the last."""
    colors = pyplot().rcParams["axes.prop_cycle"].by_key().get("color", ["C0"])
    return colors[place] if place < min(len(colors), MOST_SERIES) else neutral_color()


def neutral_color() -> str:
    """Return a color between the text and the background of the style in use."""
    from matplotlib.colors import to_hex, to_rgb  # noqa: PLC0415 - an extra

    text, background = (np.array(to_rgb(pyplot().rcParams[name])) for name in ("text.color", "axes.facecolor"))
    red, green, blue = 0.55 * text + 0.45 * background
    return to_hex((red, green, blue))


def shortened(text: Any, longest: int = LONGEST_NAME) -> str:
    """Return a name as matplotlib draws it: no longer than asked for, with an ellipsis in the middle, and no formulas.

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
    """Return the mean over the classes of what each of them has, or that of one class.

    ``values`` of all classes have them along the first axis; ``what`` they are is for the error message.
    """
    if task is None:
        return values.mean(axis=0)
    if not 0 <= task < len(values):
        raise ValueError(f"task must be from 0 to {len(values) - 1}, since {len(values)} {what}, got {task!r}.")
    return values[task]


def check_lengths(**parts: Sized) -> None:
    """Raise ValueError unless all parts are of one length."""
    sizes = {name: len(part) for name, part in parts.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError("These must be of one length: " + ", ".join(f"{k} ({n})" for k, n in sizes.items()) + ".")
