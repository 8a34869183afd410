"""Progress bars for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from manykernels.core.progress import follow


class TimeLeft(TimeRemainingColumn):
    """The time that the rest will take at the pace so far, as "0:12 left"; nothing while there is no pace."""

    def __init__(self) -> None:
        super().__init__(compact=True)

    def render(self, task: Task) -> Text:
        """Return the words for one bar."""
        known = task.time_remaining is not None and not task.finished
        return Text.assemble(super().render(task), " left") if known else Text("")


class Bars(Progress):
    """Bars that print nothing where they are not drawn: Rich before 14.3 prints a line at the end all the same."""

    def stop(self) -> None:
        """Stop drawing, if it has begun."""
        if not self.disable:
            super().stop()


def progress_bars(console: Console) -> Progress:
    """Return bars whose tasks have a field ``state``; they vanish at the end, and are drawn only on a terminal.

    Examples
    --------
    >>> from manykernels.reports.bars import progress_bars
    >>> from rich.console import Console
    >>> with progress_bars(Console()) as bars:
    ...     task = bars.add_task("Learning", total=2, state="half")
    ...     bars.advance(task)
    """
    # Short enough that all of it fits a terminal of 80 characters.
    columns = (TextColumn("{task.description}"), BarColumn(12), TextColumn("{task.fields[state]}"))
    times = (TimeElapsedColumn(), TimeLeft())
    # A point of a path can take minutes: the pace is that of the last hour, not of the last seconds.
    return Bars(
        *columns, *times, console=console, transient=True, speed_estimate_period=3600, disable=not console.is_terminal
    )


@contextmanager
def follow_bar(console: Console, title: str) -> Iterator[None]:
    """Show a progress bar over the points of the paths and cross-validations inside the block.

    Examples
    --------
    >>> from manykernels.core.progress import reached
    >>> from manykernels.reports.bars import follow_bar
    >>> from rich.console import Console
    >>> with follow_bar(Console(), "Cross-validating"):
    ...     reached(1, 2, "fold 1")
    """
    with progress_bars(console) as bars:
        task = bars.add_task(title, total=None, state="")
        with follow(lambda done, total, what: bars.update(task, completed=done, total=total, state=what)):
            yield
