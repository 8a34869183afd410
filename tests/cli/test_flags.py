"""Tables know settings, and only the command knows flags: what it prints names the flags that it has."""

import ast
import re
from pathlib import Path

import pytest

from manykernels import tables
from manykernels.cli.flags import in_flags
from manykernels.cli.main import build_parser
from manykernels.tables.sentences import Sentence, Setting

FILES = sorted(Path(tables.__file__).parent.glob("*.py"))
TREES = [ast.parse(path.read_text(encoding="utf-8")) for path in FILES]


def settings():
    """Return the settings that sentences of the layer name, as far as the source says."""
    calls = [node for tree in TREES for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [call for call in calls if getattr(call.func, "id", "") == "Setting"]
    constants = [[value.value for value in call.args if isinstance(value, ast.Constant)] for call in named]
    return sorted({tuple(values) for values in constants}, key=repr)


def test_there_are_settings_of_each_kind():
    assert {("views",), ("regression", True), ("balance", "no"), ("test_size", 0)} <= set(settings())


@pytest.mark.parametrize("values", settings())
def test_each_is_a_flag_of_fit(values):
    name, *value = values
    command = ["fit", "people.csv", "--target", "churn"]
    assert hasattr(build_parser().parse_args(command), name)
    flag = in_flags(Sentence("Use ", Setting(name, *value), ".")).removeprefix("Use ").removesuffix(".").split()
    assert flag[0] == "--" + name.replace("_", "-")
    if value:
        assert getattr(build_parser().parse_args([*command, *flag]), name) == value[0]


def test_other_texts_stay_as_they_are():
    assert in_flags("views, test_size=0") == "views, test_size=0"


@pytest.mark.parametrize("place", range(len(FILES)), ids=[path.name for path in FILES])
def test_tables_name_no_flags(place):
    texts = [node.value for node in ast.walk(TREES[place]) if isinstance(node, ast.Constant)]
    for text in texts:
        if isinstance(text, str):
            assert not re.search(r"(?<!-)--[a-z]|TABLE|MODEL", text), text
