"""What `tools/house.py` counts: questions of type where things say what they can do, and imports from below."""

import ast

import pytest

from tools import house


def counted(measure, folder, source):
    return len(list(measure({house.SOURCE / folder / "file.py": ast.parse(source)})))


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(loss, Hinge)",
        "isinstance(loss, (str, Hinge))",
        "hasattr(bank, 'scale')",
        "getattr(bank, 'scale', 1.0)",
        "getattr(bank, name, None)",
        "type(loss) is Hinge",
        "Hinge is not type(loss)",
        "type(loss) in KNOWN",
    ],
)
def test_questions_of_type_are_counted(source):
    assert counted(house.type_questions, "outer", source) == 1
    assert counted(house.type_questions, "banks", source) == 0


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(p, (str, int))",
        "hasattr(X, 'tocsr')",
        "getattr(X, 'columns', None)",
        "getattr(step, 'x')",
        "type(a)()",
    ],
)
def test_parameters_and_foreign_objects_may_be_asked(source):
    assert counted(house.type_questions, "outer", source) == 0


@pytest.mark.parametrize(
    "source",
    [
        "from manykernels.inner.smo import solve_box",
        "from manykernels.banks import Data, packed",
        "from manykernels.banks import cluster",
        "from manykernels import inner",
        "def fit():\n    from manykernels.banks.device.packed import DeviceBank",
    ],
)
def test_imports_from_below_are_counted_wherever_they_are(source):
    assert counted(house.imports_below, "estimators", source) == 1
    assert counted(house.imports_below, "outer", source) == 0


def test_the_doors_of_banks_are_open():
    source = "from manykernels.banks import Data, bind, on_workers"
    assert counted(house.imports_below, "estimators", source) == 0


def test_files_that_know_a_piece_are_counted():
    sources = {
        "losses/__init__.py": "from manykernels.losses.a import One, Two\nLOSSES: tuple = (One, Two)",
        "losses/a.py": "class Help: ...\nclass One: ...\nclass Two: ...",
        "cli/fit.py": "def named():\n    return losses.One",
        "outer/__init__.py": "",
        "outer/auto.py": "AUTO = Solver(name='auto')",
        "literature/records.py": "ALL = [load('manykernels.outer.auto:AUTO')]",
    }
    trees = {house.SOURCE / path: ast.parse(source) for path, source in sources.items()}
    assert house.fewest_files(trees, ("losses",), "LOSSES") == ["losses/__init__.py", "losses/a.py"]
    assert house.fewest_files(trees, ("outer", "literature"), "Solver") == ["outer/auto.py", "literature/records.py"]


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "found += 1",
        "for own in rows: pass",
        "def fill(own): pass",
        "parallel(lambda here: here)",
        "first, (some, there) = pair",
        "[own for own in rows]",
    ],
)
def test_names_that_say_nothing_are_counted(source):
    assert counted(house.vague_names, "outer", source) == source.count("some") + 1


@pytest.mark.parametrize("source", ["place = found", "self.own = 1", "solve(own=1)", "def found(): pass"])
def test_uses_and_attributes_are_not_assignments(source):
    assert counted(house.vague_names, "outer", source) == 0
