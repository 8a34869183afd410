"""The examples of README and docs run, those of docstrings import what they use, and parameters are listed."""

import ast
import doctest
import re
from pathlib import Path

import pytest

from manykernels import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MODULES = sorted((ROOT / "src").rglob("*.py"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_run(path):
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks or path.name == "results.md", f"{path.name} has no example"
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, str(path), "exec"), namespace)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("estimator", [MKLClassifier, MKLRegressor, MKLClassifierCV, MKLRegressorCV])
def test_every_parameter_is_listed(estimator):
    listed = re.search(r"Parameters\n(.*?)\n *Attributes\n", estimator.__doc__, flags=re.DOTALL)[1]
    names = re.findall(r"\w+", " ".join(re.findall(r"^    (\S.*)$", listed, flags=re.MULTILINE)))
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
