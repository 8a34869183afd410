"""Damaged and crafted model files: no code run, no memory beyond ten times the file or 1 GB, no silent change.

    python -m benchmarks.robust.files --count 2000

Files are opened in another process, which is watched: what it allocates (by tracemalloc, and by the largest resident
size), whether a trap in the file was sprung, and whether a model that opens is the one that was saved, to the last bit
of its predictions. One line for each kind of damage and one for each class of outcome; the exit status is 1 where an
outcome is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.robust import crafted, damage

FINE = ("refused in one sentence", "the same model")
ATTRIBUTES = ("weights_", "intercept_", "active_", "kernel_names_", "objective_", "gap_", "n_features_in_", "extra_")
# Of memory that a process may ask for: a bomb must not take the machine with it.
CEILING = 12 * 2**30
ALLOWED = 10**9


# -- models that are damaged ----------------------------------------------------------------------------------


def make_models(folder: Path) -> dict[str, np.ndarray]:
    """Save models of all kinds; returns for each the rows to predict."""
    import scipy.sparse as sp

    from manykernels import MKLClassifier, MKLRegressor, TwoStageMKLClassifier, UFOMKLClassifier
    from manykernels.kernels import Gaussian, GaussianLadder, KernelBank, Linear, NystroemFeatures, Polynomial

    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((60, 4)), rng.standard_normal((10, 4))
    binary, classes = X[:, 0] + X[:, 1] ** 2 > 0.8, np.digitize(X[:, 0], [-0.5, 0.5])
    kernels = [Gaussian(0.5), Gaussian(2.0, columns=[0, 1]), Linear(columns=[2]), Polynomial(2, coef0=0.5)]
    gram = np.exp(-((np.vstack([X, new])[:, None] - np.vstack([X, new])) ** 2).sum(axis=2) / 8)
    numbers = np.arange(70.0)[:, None]
    models = {
        "dense": MKLClassifier(kernels, norm=2).fit(X, np.where(binary, "yes", "no").astype(object)),
        "sparse": MKLClassifier(kernels, norm=2).fit(sp.csr_matrix(X), classes),
        "apart": MKLClassifier(kernels, norm=1.5, shared_weights=False, center=True).fit(X, classes),
        "nystroem": MKLRegressor(kernels, norm=2, approximation=NystroemFeatures(20)).fit(X, X[:, 0]),
        "ladder": MKLClassifier(KernelBank([GaussianLadder(count=20, low=0.1, high=10.0), Linear()])).fit(X, binary),
        "ufo": UFOMKLClassifier(kernels, random_state=0, max_iter=3).fit(X, classes),
        "two stages": TwoStageMKLClassifier(kernels, random_state=0).fit(X, binary),
        "precomputed": MKLRegressor(KernelBank.from_arrays([gram, gram**2]), norm=2).fit(numbers[:60], X[:, 0]),
    }
    for name, model in models.items():
        model.save(folder / f"{name}.mkl", extra={"note": name})
    return {name: numbers[60:] if name == "precomputed" else new for name in models}


def answers(model: Any, new: np.ndarray) -> list:
    """What must be the same, as plain data."""
    values = [getattr(model, method)(new) for method in ("predict", "decision_function") if hasattr(model, method)]
    values += [getattr(model, name, None) for name in ATTRIBUTES]
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]


# -- the process that opens them ------------------------------------------------------------------------------


def work(folder: Path) -> None:
    """Open each file that is named on standard input; say on standard output what came of it."""
    from manykernels import load

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (CEILING, CEILING))
    rows = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    expected = {name: answers(load(folder / f"{name}.mkl"), new) for name, new in rows.items()}
    print("ready", flush=True)
    for line in sys.stdin:
        path, *names = json.loads(line)
        print(json.dumps(opened(load, path, [(rows[name], expected[name]) for name in names])), flush=True)


def opened(load: Any, path: str, models: list[tuple[np.ndarray, list]]) -> dict[str, Any]:
    """Open one file, watched; where it opens, it must be one of the models, given by rows and answers."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, model, message = time.perf_counter(), None, ""
    tracemalloc.start()
    try:
        model = load(path)
        outcome = "opened"
    except ValueError as error:
        message = str(error)
        is_sentence = message.endswith(".") and "\n" not in message and Path(path).name in message
        outcome = "refused in one sentence" if is_sentence else "another error"
    except BaseException as error:
        outcome, message = "another error", f"{type(error).__name__}: {error}"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    if model is not None:
        try:
            same = any(new.shape[1] == model.n_features_in_ and answers(model, new) == own for new, own in models)
            outcome = "the same model" if same else "ANOTHER MODEL"
        except Exception as error:
            outcome, message = "ANOTHER MODEL", f"{type(error).__name__}: {error}"
    return {
        "outcome": outcome.upper() if outcome == "another error" else outcome,
        "message": message.replace(path, "FILE"),
        "peak": max(peak, grown),
        "seconds": time.perf_counter() - start,
    }


class Opener:
    """The process, started anew when it dies."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.trap = folder, folder / "sprung"
        self._process: subprocess.Popen | None = None

    def open(self, data: bytes, *names: str) -> dict[str, Any]:
        """Return what comes of opening these bytes, which were made from those of the models of these names."""
        path = self.folder / "damaged.bin"
        path.write_bytes(data)
        others = set(self.folder.rglob("*")) | set(self.folder.parent.glob("*escaped*"))
        answer = self._ask(json.dumps([str(path), *names]))
        if answer is None:
            answer = {"outcome": "THE PROCESS DIED", "message": "", "peak": 0, "seconds": 0.0}
        elif answer["peak"] > max(ALLOWED, 10 * len(data)):
            answer["outcome"] = "TOO MUCH MEMORY"
        if self.trap.exists() or set(self.folder.rglob("*")) | set(self.folder.parent.glob("*escaped*")) != others:
            answer["outcome"] = "CODE RAN"
            self.trap.unlink(missing_ok=True)
        return {**answer, "size": len(data)}

    def _ask(self, line: str) -> dict[str, Any] | None:
        process = self._running()
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            self.close()
            return None

    def _running(self) -> Any:
        if self._process is None:
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MANYKERNELS_TRAP": str(self.trap)}
            command = [sys.executable, "-m", "benchmarks.robust.files", "--worker", str(self.folder)]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            self._process = subprocess.Popen(command, env=environment, **pipes)
            assert self._process.stdout is not None
            assert self._process.stdout.readline() == "ready\n"
        return self._process

    def close(self) -> None:
        if self._process is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()  # type: ignore[union-attr]
            self._process.wait()
            self._process = None


# -- the trial ------------------------------------------------------------------------------------------------


class Tally:
    """What came of the files of each kind."""

    def __init__(self) -> None:
        self.outcomes: Counter = Counter()
        self.by_kind: dict[str, Counter] = {}
        self.peak, self.peak_of, self.seconds = 0, "", 0.0
        self.messages: Counter = Counter()
        self.wrong: list[str] = []

    def add(self, kind: str, answer: dict[str, Any]) -> None:
        outcome = answer["outcome"]
        self.outcomes[outcome] += 1
        self.by_kind.setdefault(kind, Counter())[outcome] += 1
        self.messages[answer["message"].partition(":")[0][:60]] += 1
        self.seconds = max(self.seconds, answer["seconds"])
        if answer["peak"] > self.peak:
            self.peak, self.peak_of = answer["peak"], f"{kind}, of a file of {answer['size'] / 1e6:.2f} MB"
        if outcome not in FINE:
            self.wrong.append(f"{kind}: {outcome} {answer['message']}"[:200])

    def show(self, title: str) -> None:
        print(f"{title}: {sum(self.outcomes.values())} files of {len(self.by_kind)} kinds")
        for kind, outcomes in self.by_kind.items():
            print(f"  {kind:55} " + ", ".join(f"{count:4d} {words}" for words, count in sorted(outcomes.items())))


def trial(folder: Path, count: int, seed: int) -> list[Tally]:
    rows = make_models(folder)
    for name, new in rows.items():
        np.save(folder / f"{name}.npy", new)
    files = {name: (folder / f"{name}.mkl").read_bytes() for name in rows}
    opener, names = Opener(folder), list(files)
    random_ones, crafted_ones = Tally(), Tally()
    for i in range(count):
        random = np.random.default_rng([seed, i])
        kinds = list(damage.KINDS)
        kind, name = kinds[i % len(kinds)], names[int(random.integers(len(names)))]
        other = names[(names.index(name) + 1 + int(random.integers(len(names) - 1))) % len(names)]
        random_ones.add(kind, opener.open(damage.KINDS[kind](files[name], files[other], random), name, other))
    for kind, make in crafted.KINDS.items():
        for name in names[:1] if kind in crafted.BOMBS else names:
            with contextlib.suppress(crafted.DoesNotApplyError):
                crafted_ones.add(kind, opener.open(make(files[name]), name))
    opener.close()
    return [random_ones, crafted_ones]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=2000, help="random damages (default 2000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(Path(arguments.worker))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        tallies = trial(Path(folder), arguments.count, arguments.seed)
    for title, tally in zip(("Random damages", "Crafted files"), tallies, strict=True):
        tally.show(title)
    print("Outcomes")
    total = sum((tally.outcomes for tally in tallies), Counter())
    for outcome, count in total.most_common():
        print(f"  {count:5d} {outcome}")
    for tally in tallies:
        print(f"  most memory {tally.peak / 1e6:.1f} MB ({tally.peak_of}); longest {tally.seconds:.1f} s")
    wrong = [line for tally in tallies for line in tally.wrong]
    for line in wrong[:20]:
        print(f"WRONG {line}")
    print(f"{len(wrong)} wrong outcomes of {sum(total.values())}.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
