"""From a recipe to data and an estimator of the library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from tests.binding import features_of
from tests.hostile.cases import Case, KernelRecipe

N_NEW = 4


@dataclass(frozen=True)
class Data:
    """What a fit is given, the same numbers as plain float64 arrays for the referee, and rows to predict."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    new: Any
    plain: np.ndarray
    plain_new: np.ndarray
    base: np.ndarray


def make_data(case: Case) -> Data:
    """Return the data of a case; new rows come last in the table that all of them are cut from."""
    rng = np.random.default_rng(case.seed)
    total = case.n + N_NEW
    base = _base(case, rng, total)
    y = _target(case, base[: case.n], rng)
    weight = _weights(case, rng, y)
    if case.kernels[0].kind.startswith("given"):
        table = np.arange(total, dtype=float)[:, None]
        return Data(table[: case.n], y, weight, table[case.n :], table[: case.n], table[case.n :], base)
    with np.errstate(over="ignore"):
        table = case.shift + case.scale * base
    if case.constant is not None:
        table[:, -1] = 0.0 if case.constant == "zero" else case.scale * 3.7
    if case.layout == "int":
        table = np.round(table)
    if case.layout == "float32":
        table = table.astype(np.float32).astype(float)
    X, new = _laid_out(table[: case.n], case.layout), _laid_out(table[case.n :], case.layout)
    return Data(X, y, weight, new, table[: case.n], table[case.n :], base)


def _base(case: Case, rng: np.random.Generator, total: int) -> np.ndarray:
    base = rng.standard_normal((total, case.d))
    if case.values == "integers":
        base = np.round(2 * base)
    elif case.values == "heavy":
        base = base / np.maximum(np.abs(rng.standard_normal((total, 1))), 1e-3)
    if case.duplicates:
        base[: case.n : 3] = base[0]
    return base


def _target(case: Case, base: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    signal = base[:, 0] + np.sin(2 * base[:, -1]) + 0.3 * rng.standard_normal(case.n)
    if case.target == "noise":
        signal = rng.standard_normal(case.n)
    if case.task == "regression":
        own = np.zeros(case.n) if case.target == "constant" else signal
        return case.y_shift * case.y_scale + case.y_scale * own
    n_classes = 3 if case.task == "multiclass" else 2
    rank = np.argsort(np.argsort(signal, kind="stable"), kind="stable")
    if case.target == "rare":
        return np.maximum(rank - (case.n - n_classes), 0)
    return rank * n_classes // case.n


def _weights(case: Case, rng: np.random.Generator, y: np.ndarray) -> np.ndarray | None:
    if case.weights == "none":
        return None
    weight = np.ones(case.n)
    if case.weights == "uniform":
        weight = rng.uniform(0.1, 2.0, case.n)
    elif case.weights == "counts":
        weight = rng.integers(1, 4, case.n).astype(float)
    elif case.weights == "some zero":
        weight[:: max(2, case.n // 3)] = 0.0
    elif case.weights.startswith("all"):
        weight *= float(case.weights.split()[1])
    else:
        weight[case.n // 2] = float(case.weights.split()[1])
    return weight


def _laid_out(table: np.ndarray, layout: str) -> Any:
    if layout in ("csr", "csc"):
        return sparse.csr_matrix(table) if layout == "csr" else sparse.csc_matrix(table)
    if layout == "csr64":
        X = sparse.csr_matrix(table)
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        return X
    if layout == "frame":
        return pd.DataFrame(table, columns=[f"c{j}" for j in range(table.shape[1])])
    if layout == "strided":
        wide = np.zeros((2 * table.shape[0], 2 * table.shape[1]))
        wide[::2, ::2] = table
        return wide[::2, ::2]
    if layout == "F":
        return np.asfortranarray(table)
    return table.astype({"int": np.int64, "float32": np.float32}.get(layout, np.float64))


def spread(columns: np.ndarray) -> float:
    """Return the root of the mean squared deviation of the columns, 1 where that is 0."""
    top = float(np.abs(columns).max()) or 1.0
    scaled = columns / top
    own = float(np.sqrt(np.mean((scaled - scaled.mean(axis=0)) ** 2)) * top)
    return own or 1.0


def parameter(kernel: KernelRecipe, plain: np.ndarray) -> float:
    """Return the width of a Gaussian, the frequency of a Dirichlet kernel, or the factor of a given matrix."""
    own = plain if kernel.columns is None else plain[:, list(kernel.columns)]
    width = kernel.value * spread(own) if kernel.related else kernel.value
    return 1.0 / width if kernel.kind == "dirichlet" else width


def given_matrix(case: Case, kernel: KernelRecipe, data: Data) -> np.ndarray:
    """Return a matrix of all samples, training and new, as a user computes it."""
    base = data.base
    if kernel.kind == "given gaussian":
        K = np.exp(-0.5 * ((base[:, None] - base[None]) ** 2).sum(axis=2))
    elif kernel.kind == "given linear":
        K = base @ base.T
    elif kernel.kind == "given rank one":
        K = np.outer(base[:, 0], base[:, 0])
    else:
        K = np.zeros((base.shape[0], base.shape[0]))
    return kernel.value * K


def written_out(case: Case, data: Data) -> list[tuple[KernelRecipe, float]]:
    """Return every kernel with its parameter in the order of ``weights_``: the widths of ladders come last."""
    single = [(k, parameter(k, data.plain)) for k in case.kernels if k.kind != "ladder"]
    for kernel in case.kernels:
        if kernel.kind == "ladder":
            low = parameter(kernel, data.plain)
            single += [(kernel, float(width)) for width in np.geomspace(low, _RUNGS_TO * low, _RUNGS)]
    return single


_RUNGS, _RUNGS_TO = 12, 30.0


def make_kernels(case: Case, data: Data) -> list:
    """Return the library's kernels."""
    return [_library_kernel(case, kernel, data) for kernel in case.kernels]


def _library_kernel(case: Case, kernel: KernelRecipe, data: Data) -> Any:
    from manykernels.kernels import Dirichlet, Gaussian, GaussianLadder, Linear, Overlap, Polynomial, Precomputed

    columns: Any = None if kernel.columns is None else list(kernel.columns)
    if columns is not None and case.layout == "frame":
        columns = [f"c{j}" for j in columns]
    where = {"columns": columns, "group": kernel.group}
    value = parameter(kernel, data.plain)
    if kernel.kind.startswith("given"):
        return Precomputed(given_matrix(case, kernel, data), group=kernel.group)
    return {
        "linear": lambda: Linear(**where),
        "polynomial": lambda: Polynomial(kernel.degree, coef0=kernel.coef0, **where),
        "overlap": lambda: Overlap(2, **where),
        "dirichlet": lambda: Dirichlet(value, **where),
        "ladder": lambda: GaussianLadder(low=value, high=_RUNGS_TO * value, count=_RUNGS, **where),
        "gaussian": lambda: Gaussian(value, **where),
    }[kernel.kind]()


def make_norm(case: Case) -> Any:
    """Return the library's norm."""
    from manykernels.norms import ElasticNorm, LpPenalty, MixedNorm

    kind, *values = case.norm
    return {"lp": lambda p: p, "mixed": MixedNorm, "penalty": LpPenalty, "elastic": ElasticNorm}[kind](*values)


def make_estimator(case: Case, data: Data) -> Any:
    """Return the estimator of a case, not fitted."""
    import manykernels as mk

    regression = case.task == "regression"
    shared: dict[str, Any] = {"normalize": case.normalize, "tol": case.tol, "random_state": 0}
    if regression and case.estimator != "two_stage":
        shared |= {"epsilon": case.epsilon}
    if not regression and case.estimator != "two_stage":
        shared |= {"class_weight": class_weight(case)}
    if case.estimator == "two_stage":
        kind = mk.TwoStageMKLRegressor if regression else mk.TwoStageMKLClassifier
        return kind(make_kernels(case, data), alignment=case.alignment, cv=2, **{**shared, "tol": 1e-3})
    shared |= {"C": case.C, "fit_intercept": case.intercept, "loss": loss_of(case)}
    if case.estimator == "ufo":
        kind = mk.UFOMKLRegressor if regression else mk.UFOMKLClassifier
        return kind(make_kernels(case, data), alpha=case.alpha, step=case.step, max_iter=20, **shared)
    if not regression:
        shared |= {"shared_weights": case.shared}
    kind = mk.MKLRegressor if regression else mk.MKLClassifier
    kernels = make_family(case, data) if case.estimator == "family" else make_kernels(case, data)
    return kind(
        kernels,
        norm=make_norm(case),
        solver=case.solver,
        center=case.center,
        max_iter=case.max_iter if case.estimator == "mkl" else 30,
        approximation=features_of(case.approximation, case.rank),
        **shared,
    )


def make_family(case: Case, data: Data) -> Any:
    """Return a family of kernels."""
    from manykernels.kernels import DirichletFamily, Gaussian, GaussianFamily, Linear, ProductKernels

    width, last = spread(data.plain), [data.plain.shape[1] - 1]
    if case.family in ("widths", "width a column"):
        return GaussianFamily(low=0.1 * width, high=10 * width, per_feature=case.family == "width a column")
    if case.family == "frequencies":
        return DirichletFamily(low=0.0, high=5.0 / width, columns=[0])
    if case.family == "products":
        return ProductKernels([Gaussian(width, columns=[0]), Gaussian(width, columns=last)], 3)
    return ProductKernels([Linear(columns=[0]), Linear(columns=last)], 2)


def loss_of(case: Case) -> str:
    """Return the name of the loss."""
    if case.loss != "default":
        return case.loss
    return "squared" if case.task == "regression" else "hinge"


def class_weight(case: Case) -> Any:
    """Return the class weights as the library takes them."""
    if case.class_weight in ("none", "balanced"):
        return None if case.class_weight == "none" else "balanced"
    return {0: 1.0, 1: float(case.class_weight), **({2: 1.0} if case.task == "multiclass" else {})}
