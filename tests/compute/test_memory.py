"""Memory budgets in words and numbers."""

import numpy as np
import pytest

from manykernels.compute import memory
from manykernels.compute.memory import available_bytes, budget_bytes, human_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000", 1000),
        ("1000B", 1000),
        ("1kB", 10**3),
        ("2 MB", 2 * 10**6),
        ("1.5GB", 1_500_000_000),
        (" 3 tb ", 3 * 10**12),
        ("1KiB", 2**10),
        ("4MiB", 2**22),
        ("0.5 GiB", 2**29),
        ("1ti", 2**40),
        ("2g", 2 * 10**9),
        (".5kB", 500),
    ],
)
def test_texts(text, expected):
    assert budget_bytes(text) == expected


@pytest.mark.parametrize(("number", "expected"), [(1, 1), (1e9, 10**9), (np.int64(7), 7), (np.float32(8.0), 8)])
def test_numbers(number, expected):
    assert budget_bytes(number) == expected
    assert type(budget_bytes(number)) is int


@pytest.mark.parametrize(
    "bad",
    ["", "much", "GB", "-1GB", "1..5GB", ".", "1XB", "1iB", "1 G B", "0GB", 0, -5, np.nan, np.inf, True, [1], {}],
    ids=repr,
)
def test_what_is_no_budget_is_refused(bad):
    """In one sentence that names the argument."""
    with pytest.raises((ValueError, TypeError), match=r"^memory_budget must"):
        budget_bytes(bad)


def test_none_is_half_of_what_is_free(monkeypatch):
    assert available_bytes() > 0
    monkeypatch.setattr(memory, "available_bytes", lambda: 1001)
    assert budget_bytes(None) == 500


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1234, "1.23 kB"),
        (5.5e6, "5.5 MB"),
        (2.5e9, "2.5 GB"),
        (3e12, "3 TB"),
    ],
)
def test_sizes_for_people(count, expected):
    assert human_bytes(count) == expected
