"""Recipes of hostile fits, and how they are drawn: by Hypothesis in the tests, by a seed in the fuzzer.

A recipe is plain data, so that its ``repr`` is a reproduction; the defaults of its fields are the simplest values.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from hypothesis import strategies as st


@dataclass(frozen=True)
class KernelRecipe:
    """One kernel, or one ladder of widths.

    ``value`` is a width, or the inverse of a frequency, as a multiple of the spread of the columns (``related``) or
    by itself; for a given matrix it is the factor of the matrix.
    """

    kind: str = "gaussian"
    value: float = 1.0
    related: bool = True
    columns: tuple[int, ...] | None = None
    degree: int = 2
    coef0: float = 1.0
    group: str = "a"


@dataclass(frozen=True)
class Case:
    """One fit: data, kernels, settings, and what is changed for a second fit that must agree."""

    estimator: str = "mkl"
    task: str = "binary"
    seed: int = 0
    n: int = 20
    d: int = 2
    scale: float = 1.0
    shift: float = 0.0
    values: str = "normal"
    duplicates: bool = False
    constant: str | None = None
    layout: str = "C"
    target: str = "signal"
    y_scale: float = 1.0
    y_shift: float = 0.0
    kernels: tuple[KernelRecipe, ...] = (KernelRecipe(),)
    norm: tuple = ("lp", 1.0)
    loss: str = "default"
    solver: str = "auto"
    C: float = 1.0
    epsilon: float = 0.1
    normalize: str | None = "mean_diag"
    center: bool = False
    intercept: bool = True
    weights: str = "none"
    class_weight: str = "none"
    shared: bool = True
    tol: float = 1e-4
    max_iter: int = 1000
    approximation: str | None = None
    rank: float = 10
    alpha: float = 0.0
    step: str = "auto"
    alignment: str = "greedy"
    family: str = "widths"
    again: str = "nothing"


# ---------------------------------------------------------------------------------------------------------------------
# who chooses

Pick = Callable[[Sequence[Any]], Any]


def seeded(seed: int) -> Pick:
    """Return a chooser whose choices follow from the seed alone."""
    return random.Random(f"hostile {seed}").choice


def case_of_seed(seed: int, **fixed: Any) -> Case:
    """Return the case of a seed; ``fixed`` fields are not drawn."""
    return draw_case(seeded(seed), **fixed)


@st.composite
def cases(draw: Any, **fixed: Any) -> Case:
    """Return the same cases as a Hypothesis strategy, which shrinks toward the first choices."""
    return draw_case(lambda options: draw(st.sampled_from(options)), **fixed)


# ---------------------------------------------------------------------------------------------------------------------
# what is chosen: the simplest first, and more than once where it is to come more often

_SCALES = [1.0] * 6 + [1e-3, 1e3, 1e-8, 1e8, 1e-15, 1e15, 1e-22, 1e22, 1e-30, 1e30, 1e-160, 1e160]
_SHIFTS = ["none"] * 6 + ["mean", "far", "epoch"]
_LAYOUTS = ["C"] * 5 + ["F", "strided", "float32", "int", "csr", "csc", "csr64", "frame"]
_SOLVERS = ["auto"] * 8 + [
    "newton", "reduced_newton", "group_lasso", "spg", "pgd", "mirror", "simple", "silp", "level", "hessian", "smo",
]  # fmt: skip
_NORMS: list[tuple] = [
    ("lp", 1.0), ("lp", 1.0), ("lp", 1.0), ("lp", 2.0), ("lp", inf), ("lp", 4 / 3), ("lp", 1.001), ("lp", 10.0),
    *(("mixed", q) for q in (1.0, 0.5, 0.75, 1.5, 2.0, inf)),
    ("penalty", 1.0, 1.0), ("penalty", 1.0, 1e-2), ("penalty", 2.0, 1.0), ("penalty", 1.1, 10.0),
    ("elastic", 0.0), ("elastic", 0.1), ("elastic", 10.0),
]  # fmt: skip
_WEIGHTS = ["none"] * 8 + [
    "uniform", "counts", "some zero", "one 1e-300", "one 5e-324", "one 1e12", "all 1e-12", "all 1e12",
]  # fmt: skip
_CS = [1.0, 1.0, 100.0, 0.01, 1e4, 1e-4, 1e6, 1e-6]
_TOLS = [1e-4, 1e-4, 1e-4, 1e-3, 1e-6]
_WIDTHS = [1.0, 0.3, 3.0, 0.03, 30.0, 1e-3, 1e3]
_FREE_WIDTHS = [1.0, 1e-3, 1e3, 1e-27, 1e27, 1e-170, 1e160]
_Y_SCALES = [1.0] * 5 + [1e-3, 1e3, 1e-12, 1e12, 1e-30, 1e30, 1e100, 1e160]
_LOSSES = {
    "binary": ["hinge", "hinge", "squared_hinge", "logistic", "squared"],
    "multiclass": ["hinge", "hinge", "squared_hinge", "logistic", "squared"],
    "regression": ["squared", "epsilon_insensitive", "squared", "epsilon_insensitive", "absolute", "quantile", "huber"],
}
_AGAIN = ["nothing", "permute samples", "permute kernels", "duplicate kernel", "split sample", "scale y"]
_ALIGNMENTS = ["greedy", "qp", "independent", "uniform", "stagewise", "frank_wolfe"]


def draw_case(pick: Pick, **fixed: Any) -> Case:
    """Return a case; every choice is made by ``pick``.

    ``fixed`` fields are not drawn; ``given=True`` asks for given matrices, ``related=True`` for no width or frequency
    that has nothing to do with the data.
    """
    estimator = fixed.get("estimator") or pick(["mkl"] * 16 + ["ufo", "ufo", "two_stage", "two_stage", "family"])
    task = fixed.get("task") or pick(["binary", "binary", "regression", "regression", "multiclass"])
    norm = fixed.get("norm") or pick(_NORMS)
    data = _data(pick, task)
    settings: dict[str, Any] = {
        "estimator": estimator,
        "task": task,
        "norm": norm,
        **data,
        "kernels": _kernels(pick, data["d"], data["constant"], fixed.get("given", False), fixed.get("related", False)),
        "loss": pick(_LOSSES[task]),
        "solver": pick(_solvers(norm, pick([True] * 9 + [False]))),
        "C": pick(_CS),
        "normalize": pick(["mean_diag", "mean_diag", "mean_diag", "trace", "cosine", None]),
        "center": pick([False, False, False, True]),
        "intercept": pick([True, True, True, False]),
        "weights": pick(_WEIGHTS),
        "class_weight": pick(["none"] * 6 + ["balanced", "1e3", "1e-3"]),
        "shared": pick([True, True, False]),
        "tol": pick(_TOLS),
        "again": pick(_AGAIN),
    }
    settings["approximation"] = pick([None] * 12 + ["nystroem", "fourier"])
    settings["rank"] = pick([10, 2, 100, 0.1])
    settings["alpha"], settings["step"] = pick([0.0, 1e-3, 0.1]), pick(["auto", "auto", "gradient"])
    settings["alignment"] = pick(_ALIGNMENTS)
    settings["family"] = pick(["widths", "width a column", "products", "monomials", "frequencies"])
    settings["epsilon"] = pick([0.1, 0.0, 1e-3]) * settings["y_scale"]
    own = {name: value for name, value in fixed.items() if name not in ("given", "related")}
    return settled(Case(**{**settings, **own}))


def _solvers(norm: tuple, fitting: bool) -> list[str]:
    """Return the solvers to choose from: those for the norm, or all of them, of which many must refuse."""
    if not fitting:
        return _SOLVERS
    kind, p = norm[0], norm[1]
    names = ["auto"] * 6 + ["newton", "group_lasso"]
    if kind == "lp":
        names += ["reduced_newton", "spg", "pgd"] + (["silp"] if p < inf else [])
        names += ["simple", "level", "hessian", "mirror"] if p == 1 else ["smo"]
    if kind == "penalty":
        names += ["spg", "pgd"]
    return [*names, "mirror"] if kind == "mixed" and p >= 1 else names


def _data(pick: Pick, task: str) -> dict[str, Any]:
    scale, d = pick(_SCALES), pick([2, 1, 3, 5])
    shift = {"none": 0.0, "mean": 3.0 * scale, "far": 1e5 * scale, "epoch": 1.6e9}[pick(_SHIFTS)]
    if shift == 1.6e9:
        scale = 10.0
    return {
        "seed": pick(range(1000)),
        "n": pick([20, 40, 60, 12, 7, 5, 4, 3, 2]),
        "d": d,
        "scale": scale,
        "shift": shift,
        "values": pick(["normal", "normal", "integers", "heavy"]),
        "duplicates": pick([False, False, True]),
        "constant": pick([None, None, None, "zero", "value"]) if d > 1 else None,
        "layout": pick(_LAYOUTS),
        "target": pick(["signal", "signal", "signal", "noise", "rare", "constant"]),
        "y_scale": pick(_Y_SCALES) if task == "regression" else 1.0,
        "y_shift": pick([0.0, 0.0, 10.0, 1e6]) if task == "regression" else 0.0,
    }


def _kernels(pick: Pick, d: int, constant: str | None, given: bool, related: bool) -> tuple[KernelRecipe, ...]:
    given = given or pick([False] * 9 + [True])
    found = tuple(_kernel(pick, d, given, related, "ab"[i % 2]) for i in range(pick([2, 1, 3, 5, 8])))
    if pick([False, False, False, True]):
        found += found[:1]
    if constant is not None and not given and pick([False, True]):
        found += (KernelRecipe("linear", columns=(d - 1,), group="b"),)
    return found


def _kernel(pick: Pick, d: int, given: bool, related: bool, group: str) -> KernelRecipe:
    if given:
        kind = pick(["given gaussian", "given linear", "given rank one", "given zero"])
        return KernelRecipe(kind, 1.0 if related else pick([1.0, 1.0, 1e-30, 1e30, 1e-3, 1e3]), group=group)
    kind = pick(["gaussian"] * 4 + ["linear", "polynomial", "overlap", "dirichlet", "ladder"])
    columns = (pick(range(d)),) if kind == "dirichlet" else pick([None, None, (0,), tuple(range(d))[-2:]])
    related = related or pick([True, True, True, False])
    value = pick(_WIDTHS if related else _FREE_WIDTHS)
    return KernelRecipe(kind, value, related, columns, pick([2, 3, 1]), pick([1.0, 0.0]), group)


def settled(case: Case) -> Case:
    """Return the case without what cannot go together, which would only be refused again and again."""
    changes = {**_for_data(case), **_for_task(case)}
    if case.solver in ("pgd", "mirror", "level", "silp", "simple", "smo"):
        changes["max_iter"] = 200  # slow methods: that they stop and say so is all that is asked
    if case.estimator != "mkl":
        changes |= {"center": False, "approximation": None, "solver": "auto", **_for_estimator(case)}
    return replaced(case, **changes)


def _for_data(case: Case) -> dict[str, Any]:
    """Return the changes that the layout of the data asks for."""
    if any(k.kind.startswith("given") for k in case.kernels):
        own = {"kernels": (KernelRecipe(),)} if case.estimator == "family" else {}
        return {"layout": "C", "approximation": None, "duplicates": False, "constant": None, **own}
    if case.layout == "int":
        return {"scale": min(max(case.scale, 10.0), 1e9), "shift": float(int(min(case.shift, 1e15)))}
    if case.layout == "float32":
        return {"scale": min(max(case.scale, 1e-30), 1e30), "shift": min(case.shift, 1e35)}
    return {}


def _for_task(case: Case) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if case.task != "regression":
        changes = {"y_scale": 1.0, "y_shift": 0.0, "target": "signal" if case.target == "constant" else case.target}
        if case.again == "scale y":
            changes["again"] = "permute samples"
    if case.task == "multiclass" and case.n < 6:
        changes["n"] = 7
    return changes


def _for_estimator(case: Case) -> dict[str, Any]:
    if case.estimator == "family":
        both = case.family in ("products", "monomials")  # the others have no probabilities
        norm = ("lp", 2.0 if both and case.norm[1] != 1 else 1.0)
        return {"norm": norm, "shared": True, "n": min(case.n, 20)}
    return {"norm": ("lp", 1.0)}


def replaced(case: Case, **changes: Any) -> Case:
    """Return the case with some fields changed."""
    return Case(**{**case.__dict__, **changes})


def is_tame(case: Case) -> bool:
    """Return whether the case is one that must be solved: no extreme number in it, and the solver is the default."""
    return (
        case.solver == "auto"
        and case.approximation is None
        and 1e-8 <= case.scale <= 1e8
        and abs(case.shift) <= 10 * case.scale
        and 1e-4 <= case.C <= 1e4
        and 1e-3 <= case.y_scale <= 1e3
        and case.y_shift <= 10.0
        and case.weights in ("none", "uniform", "counts", "some zero")
        and case.tol >= 1e-4
        and all((k.related or k.kind in ("linear", "overlap")) and 1e-3 <= k.value <= 1e3 for k in case.kernels)
        and (case.normalize is not None or all(k.kind in ("gaussian", "ladder") for k in case.kernels))
        and case.norm[0] in ("lp", "mixed")
    )
