"""What the layout of the code is measured by; fails where a measure is above its limit.

    python tools/house.py

Limits are what has been reached: lower one when a measure falls, and never raise it.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "manykernels"
# Where things are asked what they can do, not what they are.
ASKED = ("problem.py", "inner", "outer", "literature", "alignment")
# What tables and estimators of others may have: there, a question is the only way to know.
FOREIGN = {"tocsr", "columns", "target_"}
# What uses other layers as any user does: by their public names.
OUTSIDE = ("reports", "tables", "cli")
# What estimators are to know nothing of: where kernels are held.
BELOW = (
    "inner",
    *(
        f"banks.{name}"
        for name in (
            "cluster",
            "collection",
            "combining",
            "composite",
            "device",
            "factor_storage",
            "features",
            "ladder_bank",
            "layout",
            "on_demand",
            "packed",
            "packed_storage",
            "pairs",
            "parametric_bank",
            "recomputed_storage",
            "room",
            "storage",
        )
    ),
)


# Names that leave a reader to guess what a thing is.
VAGUE = {"own", "found", "some", "there", "here"}

# What is added to the library: the files that it took in the first version and is to take, where its pieces stand, and
# how their definitions are known among others.
PIECES = (
    ("solver", 6, 2, ("outer", "literature"), "Solver"),
    ("loss", 5, 2, ("losses",), "LOSSES"),
    ("norm", 6, 2, ("norms",), "NORMS"),
    ("kernel", 4, 2, ("kernels",), "KERNELS"),
    ("bank", 10, 3, ("banks",), "Bank"),
)


@dataclass(frozen=True)
class Measure:
    """A number, what it was in the first version, what it is to be, and the most that passes now."""

    title: str
    first: int
    aim: int
    limit: int
    places: list[str]

    @property
    def value(self) -> int:
        """How many there are."""
        return len(self.places)


def main() -> int:
    """Print the table; return 1 if a measure is above its limit."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    measures = [
        Measure("questions of type where things are asked", 51, 0, 0, list(type_questions(trees))),
        Measure("imports of holdings and inner solvers by estimators", 6, 0, 0, list(imports_below(trees))),
        Measure("private names of other layers in reports, tables and cli", 1, 0, 0, list(private_names(trees))),
        Measure("modules that one file of estimators imports, at most", 40, 25, 25, busiest_imports(trees)),
        Measure("public classes that share a name", 6, 0, 0, list(shared_classes(trees))),
        Measure("file names that packages share", 23, 12, 4, list(shared_files())),
        Measure("files of more than 500 lines", 5, 4, 2, list(long_files())),
        Measure("local names that say nothing", 259, 0, 0, list(vague_names(trees))),
        *(
            Measure(f"files to touch to add a {kind}", first, aim, aim, fewest_files(trees, folders, pieces))
            for kind, first, aim, folders, pieces in PIECES
        ),
    ]
    width = max(len(measure.title) for measure in measures)
    print(f"{'':{width}}  first  now  aim")
    for measure in measures:
        print(f"{measure.title:{width}}  {measure.first:5d}  {measure.value:3d}  {measure.aim:3d}")
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in trees)
    print(f"{'lines in src':{width}}  35253  {lines}")
    worse = [measure for measure in measures if measure.value > measure.limit]
    for measure in worse:
        print(f"\n{measure.title}: {measure.value}, but the limit is {measure.limit}:")
        print("\n".join(f"    {entry}" for entry in measure.places))
    return int(bool(worse))


def type_questions(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield the places that ask what something is, or whether it has a name, and not what it can do.

    Plain numbers, arrays and what users pass are parameters.
    """
    plain = {
        "str",
        "int",
        "float",
        "bool",
        "list",
        "tuple",
        "dict",
        "slice",
        "number",
        "ndarray",
        "integer",
        "Solver",
        "Target",
    }
    for path, tree in trees.items():
        if relative(path).split("/")[0] not in ASKED:
            continue
        for node in ast.walk(tree):
            if asks_type(node, plain) or asks_name(node):
                yield f"{relative(path)}:{node.lineno}"


def is_call(node: ast.AST, *functions: str) -> bool:
    """Return whether an expression calls one of these functions."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions


def asks_type(node: ast.AST, plain: set[str]) -> bool:
    """Return whether this is isinstance with other types than plain ones, or a comparison of a type."""
    if isinstance(node, ast.Compare):
        return any(is_call(side, "type") for side in (node.left, *node.comparators))
    return is_call(node, "isinstance") and not names_in(node.args[1]) <= plain  # type: ignore[attr-defined]


def asks_name(node: ast.AST) -> bool:
    """Return whether this is hasattr, or getattr with a default, of something that is not foreign."""
    if not (is_call(node, "hasattr") or (is_call(node, "getattr") and len(node.args) == 3)):  # type: ignore[attr-defined]
        return False
    name = node.args[1]  # type: ignore[attr-defined]
    return not (isinstance(name, ast.Constant) and name.value in FOREIGN)


def names_in(node: ast.AST) -> set[str]:
    """Return the last names of an expression of types."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return {part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "?") for part in parts}


def imported(tree: ast.Module) -> Iterator[tuple[str, ast.ImportFrom]]:
    """Yield the modules of the package that a file imports, at its top or where they are needed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("manykernels."):
            yield str(node.module).removeprefix("manykernels").removeprefix("."), node


def imports_below(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield the imports of estimators from what is below their floor: of its names, and of it as a name."""
    for path, tree in trees.items():
        if not relative(path).startswith("estimators/"):
            continue
        for module, node in imported(tree):
            entries = [module, *(f"{module}.{alias.name}".removeprefix(".") for alias in node.names)]
            if any(f"{entry}.".startswith(f"{name}.") for entry in entries for name in BELOW):
                yield f"{relative(path)}:{node.lineno} {module}"


def private_names(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield the attributes and imports of others that are private, where only public names are to be used."""
    for path, tree in trees.items():
        if relative(path).split("/")[0] not in OUTSIDE:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls"):
                names = [node.attr]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("manykernels."):
                names = [alias.name for alias in node.names]
            else:
                continue
            yield from (
                f"{relative(path)}:{node.lineno} {name}"
                for name in names
                if name.startswith("_") and not name.startswith("__")
            )


def busiest_imports(trees: dict[Path, ast.Module]) -> list[str]:
    """Return the modules that the busiest file of estimators imports."""
    modules = {
        path: sorted({m for m, _ in imported(tree)}) for path, tree in trees.items() if "estimators" in path.parts
    }
    return max(modules.values(), key=len)


def shared_classes(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield public classes of one name in several files."""
    names = Counter(
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    yield from (name for name, count in names.items() if count > 1)


def shared_files() -> Iterator[str]:
    """Yield file names that several packages have; a twin on a device has the name of what it is a twin of."""
    names = Counter(
        path.name for path in SOURCE.rglob("*.py") if path.name != "__init__.py" and path.parent.name != "device"
    )
    yield from (name for name, count in names.items() if count > 1)


def long_files() -> Iterator[str]:
    """Yield the files that are no longer one subject, most likely."""
    for path in sorted(SOURCE.rglob("*.py")):
        count = len(path.read_text(encoding="utf-8").splitlines())
        if count > 500:
            yield f"{relative(path)}: {count}"


def vague_names(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield the assignments and arguments whose names do not say what the thing is."""
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            elif isinstance(node, ast.arg):
                name = node.arg
            else:
                continue
            if name in VAGUE:
                yield f"{relative(path)}:{node.lineno} {name}"


def fewest_files(trees: dict[Path, ast.Module], folders: tuple[str, ...], pieces: str) -> list[str]:
    """Return the files that know the least known piece of a kind: a new one has to be named in as many."""
    known = {path: names_of(tree) for path, tree in trees.items()}
    knowing = {
        name: [relative(path) for path in known if path == home or name in known[path]]
        for home, tree in trees.items()
        if relative(home).split("/")[0] in folders
        for name in defined(tree, pieces, trees)
    }
    return min(knowing.values(), key=len)


def defined(tree: ast.Module, pieces: str, trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield the pieces of a kind that a file defines: classes in a public list or with an ending, or records."""
    if pieces.isupper():
        listed = next(
            names_in(node.value)
            for other in trees.values()
            for node in other.body
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == pieces and node.value is not None
        )
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and (node.name in listed if pieces.isupper() else node.name.endswith(pieces)):
            yield node.name
        elif isinstance(node, ast.Assign) and is_call(node.value, pieces):
            yield ast.unparse(node.targets[0])


def names_of(tree: ast.Module) -> set[str]:
    """Return what a file names: what it imports, uses, or imports later by a string."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            names.add(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value.rpartition(":")[2])
        elif isinstance(node, ast.Name | ast.Attribute):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
    return names


def relative(path: Path) -> str:
    """Return the path within the package."""
    return path.relative_to(SOURCE).as_posix()


if __name__ == "__main__":
    sys.exit(main())
