"""What the command shows while it learns."""

import math
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rich.console import Console

from manykernels.core.progress import listen
from manykernels.reports.bars import follow_bar, progress_bars


@contextmanager
def learning_bar(console: Console, title: str) -> Iterator[list[str]]:
    """Show a progress bar for the fit inside the block, and its warnings afterwards.

    Parameters
    ----------
    console : rich.console.Console
        The bar vanishes at the end; nothing is drawn if it is not a terminal.
    title : str
        The words before the bar.

    Yields
    ------
    notes : list of str
        Holds the warnings once the block has ended.
    """
    with _notes_of_warnings(console) as notes, _interruptible(), progress_bars(console) as progress:
        task = progress.add_task(title, total=1.0, state="")
        with listen(GapMeter(progress, task)):
            yield notes


@contextmanager
def path_bar(console: Console, title: str) -> Iterator[list[str]]:
    """Show a progress bar over the points of the cross-validation inside the block; it yields as `learning_bar`."""
    with _notes_of_warnings(console) as notes, follow_bar(console, title):
        yield notes


class GapMeter:
    """Turn the steps of a fit into progress: how far the gap has come on its way to the tolerance.

    Progress is measured in powers of ten, since solvers gain digits at a roughly steady rate.

    Parameters
    ----------
    progress : rich.progress.Progress
        What to update.
    task : TaskID
        The bar in it.
    """

    def __init__(self, progress: Any, task: Any) -> None:
        self._progress, self._task = progress, task
        self._first: float | None = None
        self._done = 0.0

    def __call__(self, step: Any) -> None:
        """Update the bar from one step (iteration, gap, tol, n_active)."""
        self._done = max(self._done, self._fraction(step.gap, step.tol))
        state = f"gap {step.gap:.1e} of {step.tol:.0e}, {step.n_active} kernels"
        self._progress.update(self._task, completed=self._done, state=state)

    def _fraction(self, gap: float, tol: float) -> float:
        if gap <= tol:
            return 1.0
        if not math.isfinite(gap):
            return 0.0
        if self._first is None:
            self._first = gap
        # The first gap may already be at the tolerance, hence the guard.
        whole = math.log(self._first / tol)
        return min(1.0, max(0.0, math.log(self._first / gap) / whole)) if whole > 0 else 0.0


@contextmanager
def counting_bar(console: Console, title: str, total: int) -> Iterator[Any]:
    """Show a progress bar over `total` equal steps; the block gets a function to call after each step.

    Parameters
    ----------
    console : rich.console.Console
        The bar vanishes at the end.
    title : str
        The words before the bar.
    total : int
        Number of steps.
    """
    with _notes_of_warnings(console), progress_bars(console) as progress:
        task = progress.add_task(title, total=total, state="")
        yield lambda: progress.advance(task)


@contextmanager
def _notes_of_warnings(console: Console) -> Iterator[list[str]]:
    """Print each warning once, as a note instead of a line of source code, and keep it in the list."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)
    for text in notes:
        console.print(f"note: {text}", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the command: a fit with a listener would stop and keep its model instead."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal caught
        caught = True
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if caught:
        raise KeyboardInterrupt
