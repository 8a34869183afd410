"""``manykernels bench``: names of the scripts of a checkout, and one of them run."""

import sys

import pytest

from manykernels.cli.bench import find_scripts
from manykernels.cli.main import BAD_INPUT, OK, main

SCRIPT = '''"""Says what it was given.

More words.
"""

import sys


def main():
    print("given", sys.argv[1:])


if __name__ == "__main__":
    main()
'''


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    folder = tmp_path / "benchmarks" / "papers"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").touch()
    (folder / "echo.py").write_text(SCRIPT)
    (folder / "parts.py").write_text('"""No script."""\n')
    monkeypatch.chdir(tmp_path)
    # Another folder of this name may have been imported by other tests.
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def test_scripts_are_found_by_their_main(checkout):
    assert find_scripts(checkout / "benchmarks") == {"papers/echo": "Says what it was given."}


def test_the_list_names_them(checkout, capsys):
    assert main(["bench", "list"]) == OK
    out = capsys.readouterr().out
    assert "papers/echo" in out
    assert "parts" not in out


def test_a_script_gets_its_arguments(checkout, capsys):
    assert main(["bench", "papers/echo", "--data", "sonar"]) == OK
    assert capsys.readouterr().out == "given ['--data', 'sonar']\n"


def test_an_unknown_benchmark_and_a_missing_folder_are_explained(checkout, capsys, monkeypatch):
    assert main(["bench", "papers/other"]) == BAD_INPUT
    assert "no benchmark 'papers/other'" in capsys.readouterr().err
    monkeypatch.chdir(checkout / "benchmarks")
    assert main(["bench", "list"]) == BAD_INPUT
    assert "start this in a checkout" in capsys.readouterr().err
