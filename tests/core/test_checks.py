"""Checks of parameters: what passes, and the sentence about what does not."""

import numpy as np
import pytest

from manykernels.core.checks import check_choice, check_count, check_number, is_count, is_number

INF = np.inf


@pytest.mark.parametrize("value", [2, 2.5, np.int64(2), np.float32(2.5), -INF, np.nan])
def test_numbers(value):
    assert is_number(value)


@pytest.mark.parametrize("value", [True, np.True_, "2", None, [2], np.array(2.0), 2j, np.complex128(2)])
def test_what_is_not_a_number(value):
    assert not is_number(value)
    assert not is_count(value)
    for check in (lambda: check_number("x", value, low=0), lambda: check_count("x", value)):
        with pytest.raises(ValueError, match=r"^x must be a .*, got .*\.$"):
            check()


@pytest.mark.parametrize("closed", ["neither", "left", "right", "both"])
def test_bounds_belong_to_closed_intervals(closed):
    for bound, side in ((1.0, "left"), (2.0, "right")):
        if closed in (side, "both"):
            assert check_number("x", bound, low=1, high=2, closed=closed) == bound
        else:
            with pytest.raises(ValueError, match=r"^x must be"):
                check_number("x", bound, low=1, high=2, closed=closed)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"low": 0}, "a finite number above 0"),
        ({"low": 0.5, "closed": "left"}, "a finite number of at least 0.5"),
        ({"low": 0, "high": 1}, "a number between 0 and 1"),
        ({"low": 1, "high": 2, "closed": "left"}, "a number of at least 1 and below 2"),
        ({"low": 1, "high": 2, "closed": "right", "more": ", or None"}, "a number above 1 and up to 2, or None"),
        ({"low": 1, "closed": "both"}, "a number in [1, inf]"),
    ],
)
def test_words_of_an_interval(limits, words):
    with pytest.raises(ValueError, match=r"^x must be") as caught:
        check_number("x", np.nan, **limits)
    assert str(caught.value) == f"x must be {words}, got nan."


def test_infinity_has_to_be_allowed():
    assert check_number("p", INF, low=1, closed="both") == INF
    with pytest.raises(ValueError, match="finite"):
        check_number("C", INF, low=0)


@pytest.mark.parametrize("value", [3, 3.0, np.int32(3), np.float64(3)])
def test_whole_numbers_become_integers(value):
    count = check_count("x", value)
    assert (count, type(count)) == (3, int)


@pytest.mark.parametrize("value", [0, 2.5, INF, np.nan])
def test_what_is_not_a_whole_number(value):
    with pytest.raises(ValueError, match=r"^x must be a whole number of at least 1, two of them, got .*\.$"):
        check_count("x", value, more=", two of them")


def test_values_are_shown_as_a_person_writes_them():
    with pytest.raises(ValueError, match=r"got -1\.0\.$"):
        check_number("x", np.float64(-1), low=0)


@pytest.mark.parametrize("value", ["half", None, 1, np.array(["single"]), ["single"]])
def test_what_is_not_a_choice(value):
    with pytest.raises(ValueError, match=r"^precision must be one of 'single', 'double' here, got "):
        check_choice("precision", value, ("single", "double"), more=" here")


def test_choices():
    check_choice("normalize", None, ("trace", None))
    check_choice("normalize", np.str_("trace"), ("trace", None))
    with pytest.raises(ValueError, match=r"^kernels must be 'standard', got 'all'\.$"):
        check_choice("kernels", "all", ("standard",))
