"""The examples of README and docs run, those of docstrings import what they use, and parameters are listed."""

import ast
import doctest
import inspect
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from manykernels import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV, MKLSurvival
from manykernels.cli.main import main
from manykernels.core.solver import Solver
from manykernels.estimators.solvers import SOLVERS

ROOT = Path(__file__).parents[1]
MADE = {"_build", "gallery"}  # folders that a build of the site makes
BLOCK = re.compile(r"^```(python|console|text)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")
PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if not MADE & set(path.relative_to(ROOT).parts)]
DOCUMENTS = [path for path in (ROOT / "README.md", *PAGES) if BLOCK.search(path.read_text(encoding="utf-8"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MODULES = sorted((ROOT / "src").rglob("*.py"))


def is_alike(line, other):
    """Return whether two lines have the same words, and nearly the same numbers."""
    (words, numbers), (other_words, other_numbers) = (
        (NUMBER.sub("0", " ".join(text.split())), [float(number) for number in NUMBER.findall(text)])
        for text in (line, other)
    )
    return words == other_words and numbers == pytest.approx(other_numbers, rel=0.05, abs=0.02)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_run(path, monkeypatch, tmp_path, capsys):
    """Blocks of a page run in order, in one folder and one namespace; of the shell, the lines that run our command.

    Lines in a block of text have been printed by the block before it, up to the last digits of numbers.
    """
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for language, block in BLOCK.findall(path.read_text(encoding="utf-8")):
        if language == "text":
            printed = "".join(capsys.readouterr()).splitlines()
            assert [line for line in block.splitlines() if not any(is_alike(line, other) for other in printed)] == []
            continue
        capsys.readouterr()
        if language == "python":
            exec(compile(block, str(path), "exec"), namespace)
        else:
            for line in re.findall(r"^\$ manykernels (.*)$", block, flags=re.MULTILINE):
                assert main(shlex.split(line)) == 0, line


def test_every_guide_page_has_an_example():
    guides = [path for path in PAGES if path.parent.name == "guide" and path.stem != "index"]
    assert [path.name for path in guides if path not in DOCUMENTS] == []


def reference():
    """Return what the pages in docs/api list: names of modules, and single names."""
    pages = "".join(path.read_text(encoding="utf-8") for path in PAGES if path.parent.name == "api")
    listed = []
    for module, options in re.findall(r"automodule:: (\S+)\n((?:   :.*\n)*)", pages):
        chosen = re.search(r":members: (.*)", options)
        names = chosen[1].split(", ") if chosen else import_module(module).__all__
        listed += [getattr(import_module(module), name) for name in names]
    for module, name in re.findall(r"auto(?:class|function):: (\S+)\.(\w+)", pages):
        listed.append(getattr(import_module(module), name))
    return listed


def test_the_reference_lists_what_pages_and_estimators_use():
    pages = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    blocks = [block for page in pages for language, block in BLOCK.findall(page) if language == "python"]
    nodes = [node for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom)]
    ours = [
        (node.module, alias.name) for node in nodes if node.module.startswith("manykernels") for alias in node.names
    ]
    used = {name: getattr(import_module(module), name) for module, name in ours}
    estimators = import_module("manykernels.estimators")
    used |= {name: getattr(estimators, name) for name in estimators.__all__}
    used |= SOLVERS
    used = {name: found.function if isinstance(found, Solver) else found for name, found in used.items()}
    listed = reference()
    assert [name for name, found in used.items() if not any(found is other for other in listed)] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_in_the_gallery(path):
    """The first line of the docstring is the title of a page, and the rest says what the example shows."""
    title, _, words = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")
    assert len(title) < 80
    assert words.strip()
    assert f"gallery/{path.stem}\n" in (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


def test_boxes_of_the_flowchart_lead_to_headings():
    """Sphinx does not look into drawings."""
    chart = (ROOT / "docs" / "choosing.svg").read_text(encoding="utf-8")
    links = re.findall(r'href="([^"#]+)\.html#?([^"]*)"', chart)
    for page, place in links:
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
        slugs = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}
        assert not place or place in slugs, f"{page}.html#{place}"
    assert len(links) == 22
    taken = {"newton", "reduced_newton", "group_lasso", "spg", "greedy", "stochastic_mirror"}  # by solver="auto"
    assert taken <= set(re.split(r"[<>,\s]+", chart))


@pytest.mark.parametrize("estimator", [MKLClassifier, MKLRegressor, MKLClassifierCV, MKLRegressorCV, MKLSurvival])
def test_every_parameter_is_listed(estimator):
    # Python 3.13 takes the indentation away, earlier ones do not.
    listed = re.search(r"Parameters\n(.*?)\nAttributes\n", inspect.getdoc(estimator), flags=re.DOTALL)[1]
    names = re.findall(r"\w+", " ".join(re.findall(r"^(\S.*)$", listed, flags=re.MULTILINE)))
    assert set(estimator().get_params()) - set(names) == set()


def unused_imports(docstring):
    source = "".join(example.source for example in doctest.DocTestParser().get_examples(docstring))
    nodes = list(ast.walk(ast.parse(source)))
    imported = {a.asname or a.name for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
    return imported - {node.id for node in nodes if isinstance(node, ast.Name)}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_docstrings_import_what_they_use(path):
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    documented = [node for node in nodes if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))]
    assert [unused for node in documented for unused in unused_imports(ast.get_docstring(node) or "")] == []
