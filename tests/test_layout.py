"""The folders of tests are those of the source."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "manykernels"
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
# What holds for every room, or for all of them together.
SHARED = {"contracts", "hostile", "reference"}


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_its_tests(room):
    assert any((TESTS / room).rglob("test_*.py"))


def test_no_tests_are_of_a_room_that_is_gone():
    found = {path.parent.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")}
    assert found - SHARED <= set(ROOMS)
