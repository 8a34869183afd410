"""Tables for the terminal."""

import io
import math

import numpy as np
import pytest
from rich.console import Console

from manykernels.reports import certificate_table, kernels_table, scores_table


def shown(renderable, width=100):
    console = Console(file=io.StringIO(), width=width)
    console.print(renderable)
    return console.file.getvalue()


def line_of(text, word):
    return next(line for line in text.splitlines() if word in line)


class TestKernels:
    def test_largest_weight_first(self):
        text = shown(kernels_table(["small", "large", "medium"], [0.1, 0.6, 0.3]))
        assert text.index("large") < text.index("medium") < text.index("small")
        assert "0.6000" in line_of(text, "large")
        assert "0.3000" in line_of(text, "medium")

    def test_bars_are_in_proportion(self):
        text = shown(kernels_table(["full", "half"], [2.0, 1.0]))
        assert line_of(text, "full").count("█") == 2 * line_of(text, "half").count("█") > 0

    def test_counts_what_it_leaves_out(self):
        weights = np.array([0.5, 0.3, 0.2, 0.0])
        table = kernels_table(["a", "b", "c", "d"], weights, top=2)
        assert table.row_count == 2
        assert table.caption == "3 of 4 kernels have a positive weight; 1 not shown hold 20.0%; 1 is exactly 0."

    def test_kernels_of_weight_zero_are_no_rows(self):
        assert "1 of 1 kernel has a positive weight" in kernels_table(["a"], [1.0]).caption
        table = kernels_table(["a", "b", "c"], [0.0, 1.0, 0.0])
        assert table.row_count == 1
        assert "2 are exactly 0" in table.caption

    def test_a_small_weight_does_not_read_as_zero(self):
        assert "2.0e-06" in line_of(shown(kernels_table(["tiny", "large"], [2e-6, 1.0])), "tiny")

    def test_all_zero(self):
        assert kernels_table(["a"], [0.0]).row_count == 0

    def test_names_are_not_markup(self):
        assert "Linear on age [bold]" in shown(kernels_table(["Linear on age [bold]"], [1.0]))

    def test_views_in_place_of_kernels(self):
        text = shown(kernels_table(["lab", "scan"], [1.0, 0.0], title="Views", what="view"))
        assert text.startswith("Views")
        assert "1 of 2 views has a positive weight" in text

    def test_fits_a_narrow_terminal(self):
        text = shown(kernels_table(["Gaussian(width=0.125) on worst fractal dimension"], [1.0]), width=80)
        assert max(map(len, text.splitlines())) <= 80
        assert "Gaussian(width=0.125)" in text

    def test_one_weight_for_each_name(self):
        with pytest.raises(ValueError, match=r"weights must have the shape \(2,\)"):
            kernels_table(["a", "b"], [1.0])


FIGURES = {"objective": 12.5, "dual_objective": 12.25, "gap": 0.02, "tol": 1e-3, "n_iter": 17}
ROWS = [("learned", 0.9, "1 of 10 wrong"), ("uniform [0]", 0.8, "2 of 10 wrong")]


class TestCertificate:
    def test_shows_every_figure(self):
        text = shown(certificate_table(**FIGURES, converged=True, seconds=1.234))
        assert "12.5" in line_of(text, "primal objective")
        assert "12.25" in line_of(text, "dual objective")
        assert "2.00e-02" in line_of(text, "relative gap")
        assert "1.00e-03" in line_of(text, "tolerance")
        assert "17" in line_of(text, "iterations")
        assert "1.23" in line_of(text, "seconds")
        assert "yes" in line_of(text, "converged")

    def test_says_when_the_gap_was_not_reached(self):
        assert "no: the gap is above" in shown(certificate_table(**FIGURES, converged=False))

    def test_time_is_optional(self):
        assert "seconds" not in shown(certificate_table(**FIGURES, converged=True))


class TestScores:
    def test_keeps_the_order_and_the_notes(self):
        text = shown(scores_table(ROWS, title="On 10 rows", metric="accuracy"))
        assert text.index("learned") < text.index("uniform [0]")
        assert "0.9000" in line_of(text, "1 of 10 wrong")
        assert "accuracy" in text
        assert "On 10 rows" in text

    def test_the_best_is_bold(self):
        cells = list(scores_table([*ROWS, ("tie", 0.9, "")]).columns[1].cells)
        assert [str(cell.style) for cell in cells] == ["bold", "", "bold"]

    def test_a_second_score(self):
        rows = [("learned", 0.9, "held out"), ("constant", 0.8, "held out")]
        table = scores_table(rows, metric="accuracy", beside=("balanced accuracy", [0.7, 0.5]))
        text = shown(table)
        assert "balanced accuracy" in text
        assert "0.7000" in line_of(text, "learned")
        assert [cell.style for cell in table.columns[2].cells] == ["bold", ""]

    def test_a_score_can_be_undefined(self):
        cells = list(scores_table([("a", math.nan, ""), ("b", 0.1, "")]).columns[1].cells)
        assert [str(cell.style) for cell in cells] == ["", "bold"]
