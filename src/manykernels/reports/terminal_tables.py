"""Results as tables for a terminal.

Every function takes plain numbers and strings and returns a rich renderable. Names are wrapped in `Text`, because
a column named ``age [years]`` would otherwise be read as markup.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from rich import box
from rich.table import Table
from rich.text import Text

from manykernels.alignment.measures import overfits

BAR_WIDTH = 14
EIGHTHS = " ▏▎▍▌▋▊▉"


def kernels_table(
    names: Sequence[str],
    weights: ArrayLike,
    top: int = 15,
    *,
    title: str = "Learned kernels",
    what: str = "kernel",
) -> Table:
    """Show the kernels, or the views, with the largest weights.

    Parameters
    ----------
    names : sequence of str, length n_kernels
        What to call each kernel.
    weights : array-like of shape (n_kernels,)
        Nonnegative.
    top : int, default=15
        The most kernels to show; the caption counts the others.
    title : str, default="Learned kernels"
        The head of the table.
    what : str, default="kernel"
        The noun for what has the weights, in the singular.

    Returns
    -------
    table : rich.table.Table
        One row for each kernel: name, weight, bar.

    Examples
    --------
    >>> kernels_table(["Linear", "Gaussian(width=2)"], [0.25, 0.75]).row_count
    2
    """
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (len(names),):
        raise ValueError(f"weights must have the shape ({len(names)},), one for each name; it has {values.shape}.")
    active = int(np.count_nonzero(values > 0))
    # A stable sort keeps the order of the bank among equal weights, so the table is reproducible.
    order = np.argsort(-values, kind="stable")[: min(top, active)]
    table = Table(title=title, caption=_caption(values, order, active, what), **_STYLE)
    table.add_column(what, overflow="fold")
    table.add_column("weight", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    largest = values.max(initial=0.0)
    for index in order:
        weight = float(values[index])
        bar = Text(_bar(weight / largest), style="cyan")
        table.add_row(Text(str(names[index])), Text(_figure(weight)), bar)
    return table


def certificate_table(
    *,
    objective: float,
    dual_objective: float,
    gap: float,
    tol: float,
    converged: bool,
    n_iter: int,
    seconds: float | None = None,
) -> Table:
    """Show how close to the optimum a fit is, with the values that prove it.

    Parameters
    ----------
    objective, dual_objective : float
        Values of the primal and of the dual: the optimum lies between them.
    gap : float
        The relative duality gap.
    tol : float
        The gap that was asked for.
    converged : bool
        Whether the gap reached the tolerance.
    n_iter : int
        Outer iterations.
    seconds : float, optional
        Time of the fit.

    Returns
    -------
    table : rich.table.Table

    Examples
    --------
    >>> table = certificate_table(
    ...     objective=1.001, dual_objective=1.0, gap=1e-3, tol=1e-2, converged=True, n_iter=7
    ... )
    >>> table.row_count
    6
    """
    verdict = Text("yes", style="green") if converged else Text("no: the gap is above the tolerance", style="red")
    rows = [
        ("primal objective", Text(f"{objective:.8g}")),
        ("dual objective", Text(f"{dual_objective:.8g}")),
        ("relative gap", Text(f"{gap:.2e}")),
        ("tolerance", Text(f"{tol:.2e}")),
        ("converged", verdict),
        ("iterations", Text(f"{n_iter}")),
    ]
    if seconds is not None:
        rows.append(("seconds", Text(f"{seconds:.2f}")))
    caption = "The optimum lies between the two objectives."
    table = Table(title="Certificate", caption=caption, show_header=False, **_STYLE)
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    for name, value in rows:
        table.add_row(name, value)
    return table


def alignment_table(*, alignment: float, bound: float, held_out: float, exact: bool = True, n_iter: int = 1) -> Table:
    """Show how well a kernel that was learned by alignment fits the target, there and on other samples.

    Parameters
    ----------
    alignment : float
        Centered alignment on the training data.
    bound : float
        The alignment that no other weights exceed; NaN if it is not known.
    held_out : float
        Alignment on samples held out; NaN if there were none.
    exact : bool, default=True
        Whether the search behind the bound is exact.
    n_iter : int, default=1
        Number of searches for a kernel.

    Returns
    -------
    table : rich.table.Table

    Examples
    --------
    >>> alignment_table(alignment=0.8, bound=0.801, held_out=0.3).row_count
    4
    """
    limit = "not known" if math.isnan(bound) else f"{bound:.4f}" + ("" if exact else " (found, not proved)")
    rows = [
        ("on the training data", Text(f"{alignment:.4f}")),
        ("no weights exceed", Text(limit)),
        ("on samples held out", _held_out(alignment, held_out)),
        ("iterations", Text(f"{n_iter}")),
    ]
    table = Table(title="Alignment with the target", show_header=False, **_STYLE)
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    for name, value in rows:
        table.add_row(name, value)
    return table


def _held_out(alignment: float, held_out: float) -> Text:
    if math.isnan(held_out):
        return Text("none held out")
    far = overfits(alignment, held_out)
    return Text(f"{held_out:.4f}" + (": the kernel overfits" if far else ""), style="red" if far else "green")


def scores_table(
    rows: Sequence[tuple[str, float, str]],
    *,
    title: str = "Scores",
    metric: str = "score",
    beside: tuple[str, Sequence[float]] | None = None,
) -> Table:
    """Show scores of several predictors side by side.

    Parameters
    ----------
    rows : sequence of (name, score, note)
        In the order in which they are to be read; a higher score is better.
    title : str, default="Scores"
        The head of the table.
    metric : str, default="score"
        What the scores are, for the head of their column.
    beside : (str, sequence of float), optional
        What a second score is called, and its value for each row.

    Returns
    -------
    table : rich.table.Table
        The highest score is in bold; on a tie, each of them.

    Examples
    --------
    >>> scores_table([("learned", 0.97, "held out"), ("uniform", 0.95, "held out")]).row_count
    2
    """
    table = Table(title=title, **_STYLE)
    table.add_column("predictor", overflow="fold")
    table.add_column(metric, justify="right", no_wrap=True)
    columns = [[score for _, score, _ in rows]]
    if beside is not None:
        table.add_column(beside[0], justify="right", no_wrap=True)
        columns.append(list(beside[1]))
    table.add_column("note", overflow="fold")
    best = [max((score for score in column if not math.isnan(score)), default=math.nan) for column in columns]
    for i, (name, _, note) in enumerate(rows):
        scores = [column[i] for column in columns]
        shown = [
            Text(f"{score:.4f}", style="bold" if score == top else "") for score, top in zip(scores, best, strict=True)
        ]
        table.add_row(Text(name), *shown, Text(note))
    return table


_STYLE: dict = {
    "min_width": 50,
    "box": box.SIMPLE_HEAD,
    "title_justify": "left",
    "caption_justify": "left",
    "title_style": "bold",
}


def _caption(weights: np.ndarray, shown: np.ndarray, active: int, what: str) -> str:
    zero = len(weights) - active
    noun, verb = what if len(weights) == 1 else f"{what}s", "has" if active == 1 else "have"
    parts = [f"{active} of {len(weights)} {noun} {verb} a positive weight"]
    if len(shown) < active:
        not_shown = 1.0 - weights[shown].sum() / weights.sum()
        parts.append(f"{active - len(shown)} not shown hold {not_shown:.1%}")
    if zero:
        parts.append(f"{zero} {'is' if zero == 1 else 'are'} exactly 0")
    return "; ".join(parts) + "."


def _figure(weight: float) -> str:
    # Four decimals line up, but a small weight is not zero and must not read as zero.
    return f"{weight:.4f}" if weight >= 1e-3 else f"{weight:.1e}"


def _bar(share: float) -> str:
    """Draw `share` in [0, 1] to an eighth of a character."""
    eighths = max(1, round(share * BAR_WIDTH * 8))
    full, remainder = divmod(eighths, 8)
    return "█" * full + (EIGHTHS[remainder] if remainder else "")
