"""What the trial of lowest and newest versions reads from pyproject.toml, and what it does without an interpreter."""

import sys
import tomllib
from pathlib import Path

import pytest

from tools import environments

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SMALL = {
    "name": "small",
    "dependencies": ["numpy>=1.26"],
    "optional-dependencies": {
        "test": ["small[plot, rows]", "pytest>=8"],
        "plot": ["a-b>=3.8"],
        "rows": ["c[d,e]>=2.1"],
    },
}


def test_floors_are_those_of_the_project_and_of_all_extras_that_tests_need():
    assert environments.floors(SMALL) == {"numpy": "1.26", "a-b": "3.8", "c": "2.1", "pytest": "8"}


@pytest.mark.parametrize("requirement", ["pytest", "pytest==8", "pytest>=8,<9"])
def test_a_dependency_without_a_floor_is_refused(requirement):
    with pytest.raises(ValueError, match="names no lowest version"):
        environments.floors({**SMALL, "dependencies": [requirement]})


def test_the_project_declares_floors_and_its_oldest_python():
    assert {"numpy", "scipy", "rich", "matplotlib", "cvxpy"} <= set(environments.floors(PROJECT))
    assert PROJECT["requires-python"] == f">={environments.declared_pythons(PROJECT)[0]}"


@pytest.mark.parametrize("name", environments.SMOKE)
def test_the_smaller_part_is_there(name):
    assert (ROOT / "tests" / name).exists()


def test_an_interpreter_is_found_by_its_version():
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert environments.find_interpreter(["3.999", own])


def test_an_environment_without_an_interpreter_is_left_out(capsys):
    assert environments.try_environment("newest", ["3.999", "3.998"], PROJECT, "smoke")
    assert capsys.readouterr().out == "newest versions: left out, no Python 3.999 or 3.998 here\n"
