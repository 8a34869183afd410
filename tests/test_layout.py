"""The folders of tests are those of the source, and the tests of the daily loop are of each of them."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import manykernels

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "manykernels"
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
# What holds for every room, or for all of them together.
SHARED = {"contracts", "hostile", "reference"}
MAKEFILE = (TESTS.parent / "Makefile").read_text(encoding="utf-8")
FAST = re.search(r"^FAST = (.*?[^\\\\])$", MAKEFILE, flags=re.DOTALL | re.MULTILINE)[1].replace("\\\n", " ").split()


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_its_tests(room):
    assert any((TESTS / room).rglob("test_*.py"))


def test_no_tests_are_of_a_room_that_is_gone():
    found = {path.parent.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")}
    assert found - SHARED <= set(ROOMS)


@pytest.mark.parametrize("name", FAST)
def test_what_is_named_for_the_daily_loop_is_there(name):
    assert (TESTS / name).exists()


@pytest.mark.parametrize("room", [*ROOMS, "contracts", "test_problem.py"])
def test_the_daily_loop_enters_every_room(room):
    assert any(name.split("/")[0] == room for name in FAST)


@pytest.mark.parametrize("init", sorted(SOURCE.rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_no_module_is_hidden_by_a_name_that_its_package_imports(init):
    """After ``from package.fit import fit``, ``import package.fit as module`` would be the function."""
    imports = [node for node in ast.parse(init.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    names = {alias.asname or alias.name for node in imports for alias in node.names}
    assert not names & {path.stem for path in init.parent.glob("*.py")}


def test_what_is_said_of_the_release_is_one_version():
    root = TESTS.parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1] == project["version"] == manykernels.__version__


def test_continuous_integration_tries_every_declared_python():
    root = TESTS.parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    workflow = (root / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert re.findall(r"\d\.\d+", re.search(r"python: \[(.*)\]", workflow)[1]) == declared
