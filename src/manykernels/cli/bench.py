"""``manykernels bench``: list and run the benchmarks of a checkout."""

import argparse
import ast
import runpy
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

DESCRIPTION = """\
Run a benchmark of the repository. The scripts are in its folder benchmarks,
which an installed package does not have: start this in a checkout."""
EPILOG = """\
examples:
  manykernels bench list
  manykernels bench solvers --data sonar
  manykernels bench papers/mklgl/table_1 --help"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of this command."""
    parser.add_argument("name", metavar="NAME", help="'list', or a benchmark such as solvers or papers/mklgl/table_1")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="arguments of the benchmark")


def run(options: argparse.Namespace) -> None:
    """Print the list of benchmarks, or run one."""
    folder = Path.cwd() / "benchmarks"
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder benchmarks in {str(Path.cwd())!r}: start this in a checkout.")
    scripts = find_scripts(folder)
    if options.name == "list":
        show_scripts(scripts)
        return
    name = options.name.removesuffix(".py").strip("/")
    if name not in scripts:
        raise ValueError(f"There is no benchmark {options.name!r}; 'manykernels bench list' names them all.")
    run_script("benchmarks." + name.replace("/", "."), options.rest)


def find_scripts(folder: Path) -> dict[str, str]:
    """Return the first line of each script's docstring, by its path without suffix; a script has a main function."""
    scripts = {}
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
            summary = (ast.get_docstring(tree) or "").partition("\n")[0]
            scripts[path.relative_to(folder).with_suffix("").as_posix()] = summary
    return scripts


def show_scripts(scripts: dict[str, str]) -> None:
    """Print names and summaries."""
    table = Table(show_header=False, box=None)
    table.add_column(no_wrap=True)
    table.add_column()
    for name, summary in scripts.items():
        table.add_row(Text(name, style="cyan"), Text(summary))
    Console().print(table)


def run_script(module: str, arguments: list[str]) -> None:
    """Run a module of the checkout as a separate program."""
    before, path = sys.argv, sys.path[:]
    sys.argv = [module, *arguments]
    sys.path.insert(0, str(Path.cwd()))
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        sys.argv, sys.path[:] = before, path
