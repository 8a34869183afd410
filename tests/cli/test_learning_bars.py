"""The progress bar: how the gap becomes progress, and what happens on warnings and Ctrl-C."""

import io
import math
import re
import signal
import warnings
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.progress import Progress

from manykernels.cli.learning_bars import GapMeter, counting_bar, learning_bar, path_bar
from manykernels.core.progress import emit, reached
from manykernels.reports.bars import TimeLeft


class Recorder:
    """Stands in for rich's progress."""

    def __init__(self):
        self.completed = []

    def update(self, task, *, completed, state):
        self.completed.append(completed)


def step(gap, tol=1e-3):
    return SimpleNamespace(iteration=1, seconds=0.0, objective=1.0, gap=gap, n_active=2, tol=tol)


def progress_of(*gaps, tol=1e-3):
    recorder = Recorder()
    meter = GapMeter(recorder, 0)
    for gap in gaps:
        meter(step(gap, tol))
    return recorder.completed


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=80)


class TestGapMeter:
    def test_counts_digits(self):
        assert progress_of(1.0, 0.1, 0.01, 1e-3) == pytest.approx([0.0, 1 / 3, 2 / 3, 1.0])

    def test_never_goes_back(self):
        assert progress_of(1.0, 0.01, 0.5) == pytest.approx([0.0, 2 / 3, 2 / 3])

    @pytest.mark.parametrize("gap", [0.0, -1e-12, 1e-9])
    def test_done_below_the_tolerance(self, gap):
        assert progress_of(gap) == [1.0]

    def test_gaps_that_are_no_numbers(self):
        assert progress_of(math.inf, math.nan, 1.0, 0.1, tol=0.01) == pytest.approx([0.0, 0.0, 0.0, 0.5])


class TestBars:
    def test_listens_to_the_fit(self, console):
        with learning_bar(console, "Learning"):
            emit(step(0.5))
            emit(step(0.01))
        # No terminal, hence no bar.
        assert console.file.getvalue().strip() == ""

    def test_draws_on_a_terminal(self):
        console = Console(file=io.StringIO(), width=80, force_terminal=True)
        with learning_bar(console, "Learning"):
            emit(step(0.01))
        assert "gap 1.0e-02 of 1e-03, 2 kernels" in console.file.getvalue()

    def test_warnings_are_notes_said_once(self, console):
        with learning_bar(console, "Learning"):
            for _ in range(3):
                warnings.warn("the gap is\n  [wide]", UserWarning, stacklevel=1)
        assert console.file.getvalue().count("note: the gap is [wide]") == 1

    def test_the_warnings_are_kept(self, console):
        with learning_bar(console, "Learning") as notes:
            warnings.warn("the gap is wide", UserWarning, stacklevel=1)
            assert notes == []
        assert notes == ["the gap is wide"]

    def test_time_left(self):
        """At one point a second, five of ten are left after five."""
        now = 0.0
        progress = Progress(get_time=lambda: now, disable=True)
        task = progress.add_task("Choosing", total=10)
        words = []
        for done in (0, 1, 2, 5, 10):
            now = float(done)
            progress.update(task, completed=done)
            words.append(TimeLeft().render(progress.tasks[0]).plain)
        assert words == ["", "", "00:08 left", "00:05 left", ""]

    def test_a_path_fits_a_terminal_of_80_characters(self):
        console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
        with path_bar(console, "Choosing C, norm"):
            reached(3, 50, "fold 5, C=0.01, norm=1")
        assert re.search(r"fold 5, C=0.01, norm=1 0:00:0\d", console.file.getvalue())

    def test_counting(self):
        console = Console(file=io.StringIO(), width=80, force_terminal=True)
        with counting_bar(console, "Kernels", 2) as advance:
            advance()
            advance()
        assert "Kernels" in console.file.getvalue()


class TestInterrupt:
    def test_ends_the_block_even_if_the_fit_keeps_its_model(self, console):
        reached = False
        with pytest.raises(KeyboardInterrupt), learning_bar(console, "Learning"):  # noqa: PT012
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                reached = True
        assert reached

    def test_the_handler_is_put_back(self, console):
        before = signal.getsignal(signal.SIGINT)
        with learning_bar(console, "Learning"):
            assert signal.getsignal(signal.SIGINT) is not before
        assert signal.getsignal(signal.SIGINT) is before
