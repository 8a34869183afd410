"""What the commands print: the report on standard output, progress and notes on standard error."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console

from manykernels.reports import certificate_table, kernels_table


def report_console() -> Console:
    """Return the console of standard output."""
    return Console(highlight=False)


def side_console() -> Console:
    """Return the console of standard error."""
    return Console(stderr=True, highlight=False)


def say(console: Console, text: str) -> None:
    """Print a line as it is: no markup, as it may hold names from a table."""
    console.print(text, markup=False, soft_wrap=True)


def show_notes(console: Console, notes: Iterable[str]) -> None:
    """Print what the user should know about how the data were read."""
    for note in notes:
        say(console, f"note: {note}")


def show_model(console: Console, model: Any, seconds: float) -> None:
    """Print the learned kernels and the certificate of a fitted estimator."""
    console.print(kernels_table(model.kernel_names_, model.weights_))
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
