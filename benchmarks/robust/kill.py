"""Kill -9 in mid-save and in mid-fit: the old file or the new one is there, whole; never none, never half of one.

    python -m benchmarks.robust.kill --count 20

A forked process writes a new file over an old one and is killed at a random moment; only kills that came before it had
ended are counted. Then a process that fits and saves is killed while it fits, with an empty cache of compiled code, and
a fit after that must find what the first one found. ``--in-place`` writes as programs often do, to show that the trial
would see a loss. One line for each class of outcome; the exit status is 1 where a file was lost.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """Something that is written over an old file: two ways to write, and what to make of the result."""

    write: tuple[Callable[[Path], Any], Callable[[Path], Any]]  # old, new
    read: Callable[[Path], Any]


def make_cases() -> dict[str, Case]:
    """Fit models that are large enough to take a while to save."""
    from manykernels import MKLRegressor, MKLRegressorCV, TwoStageMKLRegressor, UFOMKLRegressor, load
    from manykernels.kernels import Gaussian, GaussianFamily, Linear
    from manykernels.reports.html_report import Report

    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 400))
    kernels = [Gaussian(20.0), Linear()]

    def models(kind: Any, *sets: Any, **options: Any) -> Case:
        old, new = (kind(*sets, **options).fit(X, target) for target in (X[:, 0], X[:, 1]))
        return Case((old.save, new.save), lambda path: load(path).predict(X[:20]).tolist())

    def reports() -> Case:
        nothing: Any = None
        old, new = (Report(word * 10**6, nothing, nothing, 0.0, 0.0) for word in ("old pages ", "new pages "))
        return Case((old.save, new.save), lambda path: path.read_text(encoding="utf-8"))

    return {
        "MKLRegressor": models(MKLRegressor, kernels, norm=2),
        "MKLRegressorCV": models(MKLRegressorCV, kernels, norms=(2,), Cs=(1.0,), cv=2),
        "a family": models(MKLRegressor, GaussianFamily(10.0, 100.0)),
        "UFOMKLRegressor": models(UFOMKLRegressor, kernels, max_iter=1, random_state=0, features="kernel"),
        "TwoStageMKLRegressor": models(TwoStageMKLRegressor, kernels, cv=2, random_state=0),
        "a report": reports(),
    }


@contextmanager
def written_in_place() -> Iterator[None]:
    """Let the library write to the file itself."""
    from manykernels.estimators import archive
    from manykernels.reports import html_report

    @contextmanager
    def place(path: Any) -> Iterator[Path]:
        yield Path(path)

    before = archive.replacing
    archive.replacing = html_report.replacing = place  # type: ignore[assignment]
    try:
        yield
    finally:
        archive.replacing = html_report.replacing = before


# -- in mid-save ----------------------------------------------------------------------------------------------


def kill_saves(count: int, folder: Path, random: np.random.Generator) -> tuple[dict[str, Counter], int]:
    """Kill ``count`` saves; returns the outcomes of each case and how many saves had ended before."""
    cases, found, ended = make_cases(), {}, 0
    for i in range(count):
        name = list(cases)[i % len(cases)]
        case, target = cases[name], folder / f"{name}.file"
        case.write[1](target)
        new = case.read(target)
        start = time.perf_counter()
        case.write[0](target)
        seconds = time.perf_counter() - start
        old = case.read(target)
        while not _killed(lambda case=case, target=target: case.write[1](target), seconds * float(random.random())):
            ended += 1
            case.write[0](target)
        found.setdefault(name, Counter())[_outcome(case, target, old, new)] += 1
        case.write[1](target)  # what the kill left does no harm
        assert case.read(target) == new
    return found, ended


def _killed(work: Callable[[], Any], seconds: float) -> bool:
    """Run work in a forked process and kill it after a time; returns False where it had ended by then."""
    process = os.fork()
    if process == 0:
        with contextlib.suppress(BaseException):
            work()
        os._exit(0)
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


def _outcome(case: Case, target: Path, old: Any, new: Any) -> str:
    if not target.exists():
        return "NO FILE"
    try:
        found = case.read(target)
    except Exception as error:
        return f"HALF A FILE ({type(error).__name__})"
    return "the old file" if found == old else "the new file" if found == new else "ANOTHER FILE"


# -- in mid-fit -----------------------------------------------------------------------------------------------


def fit(path: Path) -> None:
    """Fit, say so, and save over the file."""
    from manykernels import MKLClassifier

    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 8))
    print("fitting", flush=True)
    model = MKLClassifier(tol=1e-4).fit(X, X[:, 0] * X[:, 1] > 0)
    model.save(path)
    print(json.dumps([model.objective_, model.gap_, model.weights_.tolist()]), flush=True)


def kill_fits(count: int, folder: Path, random: np.random.Generator) -> Counter:
    """Kill fits while they compile and compute; the file stays, and the next fit finds what the first one found."""
    target, found = folder / "model.mkl", Counter()
    reference = _finished(folder / "caches" / "first", target)
    old = target.read_bytes()
    for _ in range(count):
        process = _start(folder / "caches" / "second", target)
        process.stdout.readline()
        time.sleep(10 * float(random.random()))
        process.kill()
        was_killed = process.wait() == -signal.SIGKILL
        same = target.exists() and target.read_bytes() == old
        found["the old file" if same else "THE FILE CHANGED" if was_killed else "ended before the kill"] += 1
        target.write_bytes(old)
    again = _finished(folder / "caches" / "second", target)
    found["the next fit finds the same" if again == reference else "THE NEXT FIT IS ANOTHER"] += 1
    return found


def _start(cache: Path, target: Path) -> Any:
    cache.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.robust.kill", "--fit", str(target)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def _finished(cache: Path, target: Path) -> str:
    process = _start(cache, target)
    said, _ = process.communicate()
    assert process.returncode == 0, said
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=20, help="kills in mid-save (default 20)")
    parser.add_argument("--fits", type=int, default=5, help="kills in mid-fit (default 5)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--in-place", action="store_true", help="write as programs often do, to see that it shows")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        fit(Path(arguments.fit))
        return 0
    random = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as name, written_in_place() if arguments.in_place else contextlib.nullcontext():
        folder = Path(name)
        saves, ended = kill_saves(arguments.count, folder, random)
        left = [path.stat().st_size for path in folder.iterdir() if path.name.startswith(".")]
        fits = kill_fits(arguments.fits, folder, random) if arguments.fits else Counter()
    total: Counter = sum(saves.values(), Counter())
    print(f"Killed in mid-save: {sum(total.values())} (other {ended} saves had ended before the kill)")
    for kind, outcomes in saves.items():
        print(f"  {kind:25} " + ", ".join(f"{count} {words}" for words, count in sorted(outcomes.items())))
    for words, count in total.most_common():
        print(f"  {count:5d} {words}")
    print(f"  {len(left)} hidden files were left, {sum(left):,} bytes")
    print(f"Killed in mid-fit: {arguments.fits}")
    for words, count in fits.most_common():
        print(f"  {count:5d} {words}")
    wrong = [words for words in [*total, *fits] if words.upper() == words or words.startswith("HALF")]
    print("Lost: " + (", ".join(wrong) if wrong else "nothing."))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
