"""What the commands print: the report on standard output, progress and notes on standard error."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from manykernels.core.notices import listed
from manykernels.reports import certificate_table, kernels_table
from manykernels.tables.encoder import TableEncoder
from manykernels.tables.kinds import KINDS

# How many columns of a kind or of a view are named; the others are counted.
NAMED = 6
_ADVICE = "If a column is something else, a file for --views can say so."


def report_console(quiet: bool = False) -> Console:
    """Return the console of standard output; a quiet one prints nothing."""
    return Console(highlight=False, quiet=quiet)


def side_console() -> Console:
    """Return the console of standard error."""
    return Console(stderr=True, highlight=False)


def counted(count: int, word: str) -> str:
    """Return a number with its noun, in the plural where needed.

    Parameters
    ----------
    count : int
        How many.
    word : str
        The noun, in the singular.

    Returns
    -------
    words : str

    Examples
    --------
    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{count} {word}{'' if count == 1 else 's'}"


def say(console: Console, text: str) -> None:
    """Print a line as it is, without markup, as it may contain names from a table."""
    console.print(text, markup=False, soft_wrap=True)


def show_notes(console: Console, notes: Iterable[str]) -> None:
    """Print what the user should know about how the data were read."""
    for note in notes:
        say(console, f"note: {note}")


def show_columns(console: Console, encoder: TableEncoder) -> None:
    """Print how many columns of each kind there are, what was done to them, and what was left out and why."""
    style: dict[str, Any] = {"min_width": 50, "box": box.SIMPLE_HEAD, "title_style": "bold"}
    table = Table(title="Columns", title_justify="left", caption=_ADVICE, caption_justify="left", **style)
    table.add_column("kind", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("names", overflow="fold", ratio=2)
    table.add_column("treatment", ratio=3)
    for kind in KINDS:
        columns = {name: column for name, column in encoder.columns.items() if isinstance(column, kind)}
        if columns:
            named = listed(list(columns), NAMED)
            table.add_row(*map(Text, (kind.plural, str(len(columns)), named, kind.treatment(columns))))
    for reason, names in _by_reason(encoder.left_out).items():
        why = f"{reason.rstrip(',')}" if len(names) == 1 else f"each {reason.rstrip(',')}"
        table.add_row(*map(Text, ("left out", str(len(names)), listed(names, NAMED), why)))
    console.print(table)


def show_model(console: Console, model: Any, seconds: float, views: bool = False) -> None:
    """Print the learned kernels, the weights of the views if there are any, and the certificate of an estimator."""
    console.print(kernels_table(model.kernel_names_, model.weights_))
    if views:
        console.print(kernels_table(model.group_names_, model.group_weights_, title="Views", what="view"))
    console.print(
        certificate_table(
            objective=model.objective_,
            dual_objective=model.dual_objective_,
            gap=model.gap_,
            tol=model.tol,
            converged=model.converged_,
            n_iter=model.n_iter_,
            seconds=seconds,
        )
    )


def _by_reason(left_out: Mapping[str, str]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        reasons.setdefault(reason, []).append(name)
    return reasons
