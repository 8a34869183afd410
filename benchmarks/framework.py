"""One problem, several solvers, one referee.

A solver gives weights and machines; the referee computes objective and gap from them, on kernels of its own in double
precision. Times are without compilation. Passes are over all kernels: a look at half of them counts one half.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from manykernels.banks import Placement, Recipe, bind
from manykernels.core.progress import listen
from manykernels.core.results import Result, Step
from manykernels.kernels import KernelBank
from manykernels.losses import Hinge, Loss
from manykernels.norms import LpNorm
from manykernels.problem import Norm, Problem

Solver = Callable[..., Result]


@dataclass(frozen=True)
class Setting:
    """A problem before its kernels are bound.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        -1 and 1, or real values.
    kernels : KernelBank
    norm, loss, C, normalize
        As for an estimator.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    kernels: KernelBank
    norm: Norm = field(default_factory=lambda: LpNorm(1))
    loss: Loss = field(default_factory=Hinge)
    C: float = 1.0
    normalize: str = "trace"

    def problem(self, precision: str = "single") -> Problem:
        """Bind the kernels."""
        bank = bind(self.kernels, self.X, Recipe(normalize=self.normalize), Placement(precision=precision))
        y = np.asarray(self.y, dtype=float)[None, :]
        return Problem(bank, self.loss, self.norm, y, np.full(y.shape, self.C))

    def part(self, size: int) -> Setting:
        """Return the same on every so-manieth sample."""
        rows = np.arange(0, len(self.y), max(1, len(self.y) // size))
        return replace(self, X=self.X[rows], y=self.y[rows])


@dataclass(frozen=True)
class Row:
    """What a solver did, and what the referee says."""

    solver: str
    seconds: float
    inner_solves: int
    passes: float
    objective: float
    gap: float
    finished: bool
    n_active: int
    trace: list[Step]
    result: Result


class Passes:
    """Counts how often a bank's kernels are gone through."""

    def __init__(self, bank: Any) -> None:
        self.total = 0.0
        for name in ("combine", "quad_forms", "inner_products", "matvecs", "rows"):
            if hasattr(bank, name):
                setattr(bank, name, self._counted(getattr(bank, name), bank, name))

    def _counted(self, method: Callable, bank: Any, name: str) -> Callable:
        n_kernels = bank.n_kernels

        def counted(argument: np.ndarray, *others: Any, **options: Any) -> Any:
            subset = others[0] if others and name != "combine" else options.get("subset")
            part = len(argument) / bank.n_samples if name == "rows" else 1.0
            if name == "combine":
                self.total += np.count_nonzero(argument) / n_kernels
            else:
                self.total += part * (1.0 if subset is None else len(subset) / n_kernels)
            return method(argument, *others, **options)

        return counted


def judge(setting: Setting, result: Result, problem: Problem | None = None) -> tuple[float, float]:
    """Return the objective of weights and machines, and the relative gap to the dual value of the same machines."""
    own = setting.problem("double") if problem is None else problem
    K, beta = own.bank.combine(result.weights).array, result.machine.beta
    decision = beta @ K + result.machine.intercept[:, None]
    losses = sum(float(C @ own.loss.value(y, z)) for y, z, C in zip(own.y, decision, own.C, strict=True))
    quad_forms = own.bank.quad_forms(beta).sum(axis=0)
    # The norm of the predictor itself, which with p > 1 is less than 1/2 beta' K beta until the weights are optimal.
    primal = own.norm.regularizer(result.weights, quad_forms) + losses
    conjugates = sum(float(np.sum(own.loss.conjugate(y, b, C))) for y, b, C in zip(own.y, beta, own.C, strict=True))
    dual = -conjugates - own.norm.dual_regularizer(quad_forms)
    return primal, (primal - dual) / max(abs(primal), abs(dual))


def run(
    setting: Setting, solvers: dict[str, Solver], *, tol: float = 1e-3, max_iter: int = 10_000, limit: float = 60.0
) -> list[Row]:
    """Solve a problem with each solver, which is interrupted after ``limit`` seconds and then judged as it is."""
    small, referee = setting.part(40), setting.problem("double")
    rows = []
    for name, solver in solvers.items():
        solver(small.problem(), tol=0.1, max_iter=50)  # pays for compilation
        problem = setting.problem()
        passes = Passes(problem.bank)
        started = time.perf_counter()

        def watch(step: Step, started: float = started) -> None:
            if time.perf_counter() - started > limit:
                raise KeyboardInterrupt

        with listen(watch):
            result = solver(problem, tol=tol, max_iter=max_iter)
        seconds = time.perf_counter() - started
        objective, gap = judge(setting, result, referee)
        rows.append(
            Row(
                solver=name,
                seconds=seconds,
                inner_solves=result.n_inner_solves,
                passes=passes.total,
                objective=objective,
                gap=gap,
                finished=bool(gap <= 1.1 * tol),
                n_active=int(np.count_nonzero(result.weights)),
                trace=result.trace,
                result=result,
            )
        )
    return rows


HEADINGS = ("solver", "seconds", "SVM solves", "passes", "objective", "gap", "kernels", "finished")


def cells(row: Row) -> tuple[str, ...]:
    return (
        row.solver,
        f"{row.seconds:.3f}",
        str(row.inner_solves),
        f"{row.passes:.1f}",
        f"{row.objective:.8g}",
        f"{row.gap:.1e}",
        str(row.n_active),
        "yes" if row.finished else "no",
    )


def show(title: str, headings: Sequence[str], lines: Iterable[Sequence[str]], folder: Path | None = None) -> None:
    """Print a table, and write it to a Markdown file if a folder is given."""
    lines = [list(line) for line in lines]
    table = Table(title=title)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right", no_wrap=True)
    for line in lines:
        table.add_row(*line)
    Console(width=140).print(table)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        rule = "| " + " | ".join(["---"] + ["---:"] * (len(headings) - 1)) + " |"
        text = [f"# {title}", "", "| " + " | ".join(headings) + " |", rule]
        text += ["| " + " | ".join(line) + " |" for line in lines]
        (folder / f"{_file_name(title)}.md").write_text("\n".join(text) + "\n", encoding="utf-8")


def _file_name(title: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in title.lower()).strip("_")


def plot_gaps(rows: Sequence[Row], title: str, folder: Path | None) -> None:
    """Draw gap against time on log axes to a file, if a folder is given."""
    if folder is None:
        return
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    figure, ax = pyplot.subplots(layout="constrained")
    for row in rows:
        ax.plot([s.seconds for s in row.trace], [abs(s.gap) for s in row.trace], "o-", markersize=2, label=row.solver)
    ax.set(xlabel="seconds", ylabel="relative duality gap", xscale="log", yscale="log", title=title)
    ax.legend()
    figure.savefig(folder / f"{_file_name(title)}.png")
    pyplot.close(figure)


def expected(script: str) -> dict:
    """Return the paper's own figures, from expected.toml beside a script (its ``__file__``)."""
    return tomllib.loads((Path(script).parent / "expected.toml").read_text(encoding="utf-8"))
