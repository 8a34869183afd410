"""How fast a fit reached its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.reports.displays.common import last_step, neutral_color, new_axes

_LEAST_GAP = 1e-16
_TOLERANCE = "tolerance"


class ConvergenceDisplay:
    """The gap against the time of the fit, and the tolerance that was asked for.

    Parameters
    ----------
    traces : list of lists of Step
        What was reached at each iteration; several where classes were learned one by one.
    name : str, optional
        For the legend.
    label : str, default "relative gap"
        What the gap is, for the axis.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D
        One for each trace.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.reports import ConvergenceDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> display = ConvergenceDisplay.from_estimator(MKLClassifier().fit(X, y))
    >>> other = MKLClassifier(solver="group_lasso", norm=2).fit(X, y)
    >>> display = ConvergenceDisplay.from_estimator(other, name="p = 2", ax=display.ax_)
    >>> display.ax_.get_yscale(), len(display.ax_.lines)
    ('log', 3)
    """

    def __init__(
        self, *, traces: Sequence[Sequence[Any]], name: str | None = None, label: str = "relative gap"
    ) -> None:
        self.traces, self.name, self.label = [list(trace) for trace in traces], name, label
        if not any(np.isfinite(step.gap) for trace in self.traces for step in trace):
            raise ValueError("The fit has no duality gap: there is no convergence to draw.")

    @classmethod
    def from_estimator(cls, estimator: Any, *, name: str | None = None, ax: Any = None) -> ConvergenceDisplay:
        """Draw the trace of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator, or a pipeline or search that ends with one
        name : str, optional
            For the legend; default: the estimator's class.
        ax : matplotlib Axes, optional
            Default: a new figure. With the axes of another display, both are drawn together.

        Returns
        -------
        ConvergenceDisplay
        """
        model, _ = last_step(estimator)
        # Two-stage fits stop by how much better another kernel may be aligned, which is not a relative gap.
        label = "gap of the alignment" if hasattr(model, "alignment_bound_") else "relative gap"
        return cls(traces=_split(model.trace_), name=name or type(model).__name__, label=label).plot(ax)

    def plot(self, ax: Any = None) -> ConvergenceDisplay:
        """Draw the gap; see :meth:`from_estimator`."""
        self.ax_ = ax = new_axes(ax)
        self.figure_ = ax.figure
        self.lines_: list[Any] = []
        color = None
        for trace in self.traces:
            seconds = [step.seconds for step in trace]
            # A gap may be 0, or negative by rounding; on a log scale it is then at the bottom.
            gaps = np.maximum([step.gap for step in trace], _LEAST_GAP)
            (line,) = ax.plot(seconds, gaps, marker=".", color=color, label=None if self.lines_ else self.name)
            color = line.get_color()
            self.lines_.append(line)
        self._add_tolerance()
        ax.set_yscale("log")
        ax.set_xlabel("seconds")
        ax.set_ylabel(self.label if ax.get_ylabel() in ("", self.label) else "gap")
        if ax.get_legend_handles_labels()[0]:
            ax.legend()
        return self

    def _add_tolerance(self) -> None:
        """Draw a line at the tolerance, unless it is already there."""
        tol = next(step.tol for trace in self.traces for step in trace)
        drawn = [line.get_ydata()[0] for line in self.ax_.lines if line.get_gid() == _TOLERANCE]
        if tol > 0 and tol not in drawn:
            label = f"tolerance {tol:g}"
            self.ax_.axhline(tol, color=neutral_color(), linestyle="--", gid=_TOLERANCE, label=label)


def _split(trace: Sequence[Any]) -> list[list[Any]]:
    """Return the traces of problems that were solved one after the other: each counts its iterations from the start."""
    parts: list[list[Any]] = []
    for step in trace:
        if not parts or step.iteration <= parts[-1][-1].iteration:
            parts.append([])
        parts[-1].append(step)
    return parts
