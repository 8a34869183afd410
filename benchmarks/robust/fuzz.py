"""Hostile fits, as many as asked, judged by a referee of its own; one line for each class of outcome.

    python -m benchmarks.robust.fuzz [--fits 10000] [--jobs 16] [--seed 0] [--seconds 3600] [--deadline 60]
                                   [--out faults.jsonl]
    python -m benchmarks.robust.fuzz --replay SEED      # one case: what it is, what came of it, and the traceback
    python -m benchmarks.robust.fuzz --reduce SEED      # the simplest case with the same fault
    python -m benchmarks.robust.fuzz --fix scale=1.0 --fix related=True     # fields that are not drawn

The cases are those of ``tests/hostile``: fit number i has the seed ``--seed`` + i, and the seed says it all. Fits run
in a worker process that is ended when one takes more than ``--deadline`` seconds of its processor time; such a fit is
counted as a hang, one that ends its process as a crash.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import math
import os
import queue
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
# On a busy machine a fit may wait; this many times the deadline on the clock is a hang whatever the processor did.
_PATIENCE = 10


# ---------------------------------------------------------------------------------------------------------------------
# the worker


def judged(seed: int, fixed: dict[str, Any]) -> dict[str, Any]:
    """Return what came of the case of a seed, as plain data."""
    from tests.hostile.cases import case_of_seed
    from tests.hostile.judge import judge

    started = time.process_time()
    verdict = judge(case_of_seed(seed, **fixed))
    return {
        "seed": seed,
        "kind": verdict.kind,
        "message": verdict.message,
        "faults": {name: detail[-1500:] for name, detail in verdict.faults.items()},
        "disagreement": verdict.disagreement,
        "converged": verdict.converged,
        "seconds": time.process_time() - started,
    }


def work(fixed: dict[str, Any]) -> None:
    """Judge the seeds that come in, one per line, and answer with one line each."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a fit prints is not an answer
    for line in sys.stdin:
        print(json.dumps(judged(int(line), fixed)), file=answers, flush=True)


class Worker:
    """A process that judges one seed at a time and may be ended at any time."""

    def __init__(self, arguments: list[str]) -> None:
        self.arguments, self.process = arguments, None

    def judged(self, seed: int, deadline: float) -> dict[str, Any]:
        """Return what came of a seed: the worker's answer, or that it hung or crashed."""
        process = self._running()
        process.stdin.write(f"{seed}\n".encode())
        process.stdin.flush()
        started, spent = time.monotonic(), processor_seconds(process.pid)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not selector.select(timeout=1.0):
                used = processor_seconds(process.pid) - spent
                if used > deadline or time.monotonic() - started > _PATIENCE * deadline:
                    self.end()
                    return _lost(seed, f"over {deadline:g} s", used)
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            self.end()
            return _lost(seed, f"the process ended with {code}", time.monotonic() - started)
        return json.loads(line)

    def _running(self) -> subprocess.Popen:
        if self.process is None:
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            self.process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.robust.fuzz", "--worker", *self.arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
            self.process.stdin.write(b"0\n")  # the first fit compiles: it has time
            self.process.stdin.flush()
            self.process.stdout.readline()
        return self.process

    def end(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process so far; 0 where the system does not tell."""
    try:
        parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(parts[11]) + int(parts[12])) / _TICKS


def _lost(seed: int, how: str, seconds: float) -> dict[str, Any]:
    return {"seed": seed, "kind": "lost", "message": how, "faults": {how: ""}, "disagreement": None, "seconds": seconds}


def limit_memory(gigabytes: float) -> None:
    """Let allocations beyond this fail instead of the machine."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (int(gigabytes * 1e9), int(gigabytes * 1e9)))


# ---------------------------------------------------------------------------------------------------------------------
# the tally


class Tally:
    """Counts of outcomes with the first seed of each, and what is measured."""

    def __init__(self) -> None:
        self.outcomes: collections.Counter = collections.Counter()
        self.faults: collections.Counter = collections.Counter()
        self.example: dict[str, int] = {}
        self.worst = (0.0, -1)
        self.slowest = (0.0, -1)
        self.judged, self.fits, self.seconds = 0, 0, 0.0

    def add(self, answer: dict[str, Any]) -> None:
        """Count one answer."""
        self.fits += 1
        kind = answer["kind"]
        if kind == "solved":
            kind = {True: "solved, converged", False: "solved, above tol with a warning"}.get(
                answer.get("converged"), "solved"
            )
        name = kind if kind.startswith("solved") else f"{kind}: {answer['message']}"
        self.outcomes[name] += 1
        self.example.setdefault(name, answer["seed"])
        for fault in answer["faults"]:
            self.faults[fault] += 1
            self.example.setdefault(fault, answer["seed"])
        off = answer.get("disagreement")
        if off is not None and not math.isnan(off):
            self.judged += 1
            self.worst = max(self.worst, (off, answer["seed"]))
        self.seconds += answer["seconds"]
        self.slowest = max(self.slowest, (answer["seconds"], answer["seed"]))

    def show(self) -> None:
        """Print one line for each class."""
        print(f"\n{self.fits} fits, {self.seconds / max(self.fits, 1):.2f} s of processor time each; the slowest took")
        print(
            f"{self.slowest[0]:.1f} s (seed {self.slowest[1]}). {self.judged} certificates were recomputed; the worst"
        )
        print(f"disagreement is {self.worst[0]:.2e} (seed {self.worst[1]}).")
        for title, counts in (("outcomes", self.outcomes), ("FAULTS", self.faults)):
            print(f"\n{title}: {sum(counts.values())}")
            for name, count in counts.most_common():
                print(f"{count:6d}  seed {self.example[name]:<8d} {name}")


def fuzz(options: argparse.Namespace) -> int:
    """Run the fits, on as many workers as there are jobs, and return how many faults there were."""
    arguments = ["--memory", str(options.memory), *(word for pair in options.fix for word in ("--fix", pair))]
    seeds = iter(range(options.seed, options.seed + options.fits))
    answers: queue.SimpleQueue = queue.SimpleQueue()
    end = time.monotonic() + options.seconds
    threads = [
        threading.Thread(target=_answer, args=(seeds, answers, arguments, options.deadline, end), daemon=True)
        for _ in range(options.jobs)
    ]
    for thread in threads:
        thread.start()
    tally = Tally()
    try:
        _collect(answers, len(threads), tally, options)
    except KeyboardInterrupt:
        print("interrupted")
    tally.show()
    return sum(tally.faults.values())


def _answer(
    seeds: Iterator[int], answers: queue.SimpleQueue, arguments: list[str], deadline: float, end: float
) -> None:
    """Put the answers of a worker of one's own into the queue, and None when the seeds or the time are over."""
    worker = Worker(arguments)
    try:
        for seed in seeds:  # an iterator over a range hands out each seed once, whichever thread asks
            if time.monotonic() > end:
                break
            answers.put(worker.judged(seed, deadline))
    finally:
        worker.end()
        answers.put(None)


def _collect(answers: queue.SimpleQueue, n_workers: int, tally: Tally, options: argparse.Namespace) -> None:
    """Count the answers until all workers are done."""
    started = time.monotonic()
    while n_workers:
        answer = answers.get()
        if answer is None:
            n_workers -= 1
            continue
        tally.add(answer)
        if options.out and answer["faults"]:
            with options.out.open("a") as log:
                print(json.dumps(answer), file=log)
        if options.every and tally.fits % options.every == 0:
            print(
                f"{tally.fits} fits, {sum(tally.faults.values())} faults, {time.monotonic() - started:.0f} s",
                flush=True,
            )


# ---------------------------------------------------------------------------------------------------------------------
# one case


def replay(case: Any) -> None:
    """Show a case and what came of it."""
    from tests.hostile.judge import judge

    print(case)
    verdict = judge(case)
    print(f"{verdict.kind} {verdict.message}; converged {verdict.converged}, disagreement {verdict.disagreement:.3g}")
    for name, detail in verdict.faults.items():
        print(f"FAULT {name}\n{detail}")


def reduced(case: Any, text: str = "") -> Any:
    """Return the simplest case with the same fault: fields go back to their defaults, kernels go.

    The fault is the first one whose name holds the text.
    """
    from tests.hostile.cases import Case, replaced
    from tests.hostile.judge import judge

    wanted = next((name for name in judge(case).faults if text in name), None)
    if wanted is None:
        raise SystemExit("The case has no such fault.")

    def still(other: Any) -> bool:
        try:
            return wanted in judge(other).faults
        except Exception:  # a combination that cannot even be built
            return False

    simplest, changed = Case(), True
    while changed:
        changed = False
        for entry in fields(Case):
            value = getattr(simplest, entry.name)
            if entry.name != "kernels" and getattr(case, entry.name) != value:
                other = replaced(case, **{entry.name: value})
                if still(other):
                    case, changed = other, True
        for k in range(len(case.kernels) - 1, -1, -1):
            fewer = case.kernels[:k] + case.kernels[k + 1 :]
            if fewer and still(replaced(case, kernels=fewer)):
                case, changed = replaced(case, kernels=fewer), True
    return case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first fit")
    parser.add_argument("--jobs", type=int, default=1, help="fits at the same time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this time")
    parser.add_argument("--deadline", type=float, default=60.0, help="processor time of one fit in seconds")
    parser.add_argument("--memory", type=float, default=8.0, help="address space of the worker in GB")
    parser.add_argument("--every", type=int, default=200, help="print a line every so many fits")
    parser.add_argument("--out", type=Path, help="append every faulty answer, one JSON object a line")
    parser.add_argument("--replay", type=int, metavar="SEED")
    parser.add_argument("--reduce", type=int, metavar="SEED")
    parser.add_argument(
        "--fix", action="append", default=[], metavar="FIELD=VALUE", help="of all cases, as in scale=1.0"
    )
    parser.add_argument("--fault", default="", help="with --reduce: part of the name of the fault to keep")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    fixed = {name: ast.literal_eval(value) for name, _, value in (pair.partition("=") for pair in options.fix)}
    if options.worker:
        limit_memory(options.memory)
        work(fixed)
        return
    if options.replay is not None or options.reduce is not None:
        from tests.hostile.cases import case_of_seed

        case = case_of_seed(options.replay if options.reduce is None else options.reduce, **fixed)
        replay(case if options.reduce is None else reduced(case, options.fault))
        return
    sys.exit(1 if fuzz(options) else 0)


if __name__ == "__main__":
    main()
