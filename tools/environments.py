"""Run the tests with the lowest versions that pyproject.toml declares, and with the newest there are.

    python tools/environments.py smoke    # one or two files for each layer: a minute or so each
    python tools/environments.py all      # the whole suite

The lowest versions are tried on the oldest declared Python, the newest on the newest one that is on this machine. An
environment whose interpreter is missing is left out. `uv` makes them where it is installed, else `venv` and `pip` do.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXTRA = "test"
SMOKE = (
    "alignment/test_measures.py",
    "cli/test_fit_predict.py",
    "compute/test_linalg.py",
    "contracts",
    "core",
    "datasets",
    "estimators/test_sklearn_contract.py",
    "hostile/test_seeds.py",
    "inner/test_smo.py",
    "banks/test_packed.py",
    "outer/test_newton.py",
    "reports/test_report.py",
)
# scikit-learn's own tests take the longest: the classifier and the regressor are enough.
LEFT_OUT = ("MKLClassifierCV", "MKLRegressorCV", "UFOMKL", "TwoStageMKL", "AlignedKernel")


def main(which: str) -> int:
    """Run the tests of this kind in both environments; return 1 if any failed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pythons = declared_pythons(project)
    done = [
        try_environment(name, versions, project, which)
        for name, versions in (("lowest", pythons[:1]), ("newest", pythons[:0:-1]))
    ]
    return 0 if all(done) else 1


def try_environment(name: str, versions: list[str], project: dict[str, Any], which: str) -> bool:
    """Make the environment and run the tests there; return whether they passed, or there is no interpreter."""
    interpreter = find_interpreter(versions)
    if interpreter is None:
        say(f"{name} versions: left out, no Python {' or '.join(versions)} here")
        return True
    folder = ROOT / f".venv-{name}"
    make(folder, interpreter, project, lowest=name == "lowest")
    say(f"{name} versions: {', '.join(installed(folder, project))}")
    return run_tests(folder, which)


# -- what the project declares --------------------------------------------------------------------------------


def declared_pythons(project: dict[str, Any]) -> list[str]:
    """Return the versions of Python that the classifiers name, oldest first."""
    found = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in project["classifiers"]]
    return sorted((match[1] for match in found if match), key=lambda version: int(version.split(".")[1]))


def requirements(project: dict[str, Any], extra: str | None = EXTRA) -> Iterator[str]:
    """Yield what the project needs, and what an extra adds, with the extras that this one names."""
    if extra is None:
        yield from project["dependencies"]
        return
    yield from requirements(project, None)
    for requirement in project["optional-dependencies"][extra]:
        own = re.fullmatch(rf"{project['name']}\[(.*)\]", requirement)
        if own is None:
            yield requirement
        for other in own[1].split(",") if own else ():
            yield from requirements(project, other.strip())


def floors(project: dict[str, Any]) -> dict[str, str]:
    """Return the lowest declared version of each direct dependency; each must have one."""
    found = {}
    for requirement in requirements(project):
        match = re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\w.]+)", requirement)
        if match is None:
            raise ValueError(f"{requirement!r} names no lowest version")
        found[match[1]] = match[2]
    return found


# -- the environments -----------------------------------------------------------------------------------------


def find_interpreter(versions: list[str]) -> str | None:
    """Return the path of the first of these versions of Python that runs; links of version managers may not."""
    for version in versions:
        for candidate in candidates(version):
            script = "import ensurepip, sys; print(sys.executable, *sys.version_info[:2])"
            answer = subprocess.run([candidate, "-c", script], capture_output=True, text=True, check=False)
            path, *found = answer.stdout.split() or [""]
            if answer.returncode == 0 and ".".join(found) == version:
                return path
    return None


def candidates(version: str) -> Iterator[str]:
    """Yield what may be an interpreter of this version: on the path, and those of pyenv."""
    for folder in os.get_exec_path():
        found = shutil.which(f"python{version}", path=folder)
        if found:
            yield found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*[0-9]/bin/python{version}"), reverse=True))


def make(folder: Path, interpreter: str, project: dict[str, Any], *, lowest: bool) -> None:
    """Install the project and its tests, anew where its requirements have changed, else what has become newer."""
    stamp, wanted = folder / "requirements.txt", "\n".join([interpreter, *requirements(project)])
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == wanted):
        shutil.rmtree(folder, ignore_errors=True)
    if not make_with_uv(folder, interpreter, lowest=lowest):
        make_with_pip(folder, interpreter, floors(project) if lowest else {})
    stamp.write_text(wanted, encoding="utf-8")


def make_with_uv(folder: Path, interpreter: str, *, lowest: bool) -> bool:
    """Return whether `uv` is there and could do it."""
    uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]))
    if uv is None:
        return False
    made = folder.exists() or run([uv, "venv", "--quiet", "--python", interpreter, str(folder)])
    resolution = "lowest-direct" if lowest else "highest"
    install = [uv, "pip", "install", "--quiet", "--upgrade", "--resolution", resolution]
    return made and run([*install, "--python", str(python_of(folder)), "--editable", f".[{EXTRA}]"])


def make_with_pip(folder: Path, interpreter: str, pins: dict[str, str]) -> None:
    """Install at exactly the pinned versions, and at the newest where there is no pin; raise if that fails."""
    shutil.rmtree(folder, ignore_errors=True)  # one that uv has made has no pip
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    constraints = folder / "constraints.txt"
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()), encoding="utf-8")
    install = [str(python_of(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "-c", str(constraints), "--editable", f".[{EXTRA}]"], cwd=ROOT, check=True)


def installed(folder: Path, project: dict[str, Any]) -> list[str]:
    """Return the versions of Python and of the dependencies in the environment."""
    names = [re.split(r"[\[>]", requirement)[0] for requirement in project["dependencies"]]
    script = (
        "import sys, platform, importlib.metadata as m; print('Python', platform.python_version());"
        "[print(name, m.version(name)) for name in sys.argv[1:]]"
    )
    command = [str(python_of(folder)), "-c", script, *names]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def python_of(folder: Path) -> Path:
    """Return the path of the environment's own interpreter."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


# -- the tests ------------------------------------------------------------------------------------------------


def run_tests(folder: Path, which: str) -> bool:
    """Return whether the tests of this kind pass in the environment."""
    # Code compiled by different versions of Numba does not mix: each environment keeps its own.
    own = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "compiled")}
    chosen = smoke_arguments() if which == "smoke" else []
    workers = ["-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"]
    return run([str(python_of(folder)), "-m", "pytest", *workers, "-p", "no:cacheprovider", *chosen], own)


def smoke_arguments() -> list[str]:
    """Return the files of the smaller part, and which of their tests are not meant."""
    battery = "tests/estimators/test_sklearn_contract.py::test_contract"
    without = [f"--deselect={battery}[{estimator}" for estimator in LEFT_OUT]
    return [*(f"tests/{name}" for name in SMOKE), *without]


def run(command: list[str], environment: dict[str, str] | None = None) -> bool:
    """Return whether a command, run in the folder of the project, ends well."""
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def say(text: str) -> None:
    """Print a line at once, so that it stands before what the commands print."""
    print(text, flush=True)


if __name__ == "__main__":
    if sys.argv[1:] not in (["smoke"], ["all"]):
        sys.exit(f"usage: {Path(__file__).name} smoke|all")
    sys.exit(main(sys.argv[1]))
