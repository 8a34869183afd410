"""Sentences and axes of the report say what the figures say."""

import numpy as np
import pytest

from manykernels.reports.assessment import Assessment, Outcome
from manykernels.reports.html.charts import nice_ticks, scatter, tick_words
from manykernels.reports.html.words import (
    comparison_sentence,
    difference_words,
    kernels_sentence,
    narrow_sentence,
    stability_sentence,
    verdict,
    view_sentence,
)
from manykernels.reports.intervals import Interval
from manykernels.reports.summary import LearnedPart, LearnedSummary


def learned(shares, is_family=False, **fields):
    shares = np.array(shares)
    places = [str(k) for k in range(shares.size)]
    empty = {
        "by_view": (),
        "by_form": (),
        "by_feature": (),
        "twins": (),
        "twins_note": "",
        "certificate": None,
        "too_narrow": None,
    }
    whole = {"refits": np.zeros((0, shares.size)), "narrow": np.zeros(shares.size, bool)} | empty | fields
    return LearnedSummary(places, places, shares, shares, **whole, n_vectors=1, is_family=is_family)


def outcome(name, low, high):
    return Outcome(name, "", np.zeros(0), None, Interval(0.5, 0.4, 0.6), Interval((low + high) / 2, low, high), {}, 0.0)


@pytest.mark.parametrize(
    ("shares", "is_family", "words"),
    [
        ([0.25] * 4, False, "All 4 kernels have about the same weight."),
        ([0.85, 0.15], False, "All 2 kernels have a positive weight."),
        (
            [0.6, 0.3, 0.06, 0.04],
            False,
            "All 4 kernels have a positive weight, and 2 of them carry 90% of the weight.",
        ),
        ([0.95, 0.05, 0.0], False, "2 of 3 kernels carry all the weight, and 1 of them carries 90% of the weight."),
        ([1.0, 0.0], True, "1 kernel was selected from the family."),
        ([0.6, 0.3, 0.1], True, "3 kernels were selected from the family, and 2 of them carry 90% of the weight."),
    ],
)
def test_how_many_kernels_count(shares, is_family, words):
    assert kernels_sentence(learned(shares, is_family)) == words


def test_ends_that_exclude_zero_do_not_read_as_zero():
    found = Interval(-0.001, -0.0014, -0.00003)
    assert difference_words(found, False)[1] == "\u22120.00140 to \u22120.00003"
    assert difference_words(Interval(0.01, 0.0002, 0.02), True)[1] == "+0.02 to +2.00"


def test_three_verdicts_are_one_list():
    outcomes = outcome("m", 0, 0), outcome("a", 0.1, 0.2), outcome("b", -0.2, -0.1), outcome("c", -0.1, 0.1)
    found = Assessment(np.zeros(0), None, "R2", 2, outcomes, (), (), ())
    assert verdict(outcomes[1]) == "this model is better"
    assert (
        comparison_sentence(found) == "It is better than the a, worse than the b, and not clearly different from the c."
    )


def test_ticks_of_tiny_and_of_distant_values():
    tiny = nice_ticks(-2.1e-14, 2.3e-14)
    assert tick_words(tiny) == (["-2e-14", "-1e-14", "0", "1e-14", "2e-14"], "")
    distant = nice_ticks(1.7e9 - 210, 1.7e9 + 230)
    assert tick_words(distant) == (["0", "100", "200", "300", "400"], ", less 1699999800")
    chart = scatter(1.7e9 + np.arange(5.0), np.arange(5.0), "t", "d", ("actual", "missed"), "zero")
    assert "actual, less 1700000000" in chart
    assert "e+09" not in chart


def view(name, share, refits):
    return LearnedPart(name, share, np.array(refits))


def test_a_view_that_other_rows_would_not_choose_is_said_to_be_unstable():
    steady, loose = view("a", 0.6, [0.55, 0.62]), view("a", 0.774, [0.0, 0.81])
    rest = view("b", 0.2, [0.2, 0.2])
    assert view_sentence(learned([1.0], by_view=(steady, rest))) == "The view “a” has 60.0% of the weight, “b” 20.0%."
    found = view_sentence(learned([1.0], by_view=(loose, rest)))
    assert found == "The view “a” has 77.4% of the weight (0% to 81.0% in the refits: not stable), “b” 20.0%."


def test_stability_goes_by_the_size_of_the_share():
    shares, refits = [0.6, 0.4, 0.0], np.array([[0.01, 0.4, 0.59], [0.6, 0.3, 0.1]])
    found = stability_sentence(learned(shares, refits=refits))
    assert "1 of the 2 kernels with a positive weight, which has 40.0% of it, kept at least half of its share" in found
    assert "the weights of the kernels are partly stable" in found
    assert "are not stable" in stability_sentence(learned(shares, refits=refits[:, [2, 0, 1]]))
    assert "are stable" in stability_sentence(learned(shares, refits=np.array([shares, shares])))


def test_narrow_kernels_are_said_to_be():
    part = view("too narrow", 0.528, [0.4])
    found = narrow_sentence(learned([0.528, 0.472], narrow=np.array([True, False]), too_narrow=part))
    assert found.startswith("1 kernel with 52.8% of the weight is so narrow that each row is alike only to itself")
    assert narrow_sentence(learned([1.0])) == ""
