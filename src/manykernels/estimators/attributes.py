"""The attributes that every fitted model has: what it says of its kernels, of its samples, and of how far it came."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from manykernels.core.notices import warn
from manykernels.core.protocols import Bank
from manykernels.core.results import Certificate, Machine, Result, total
from manykernels.core.samples import Samples
from manykernels.estimators.predictor import Predictor
from manykernels.kernels.lazy_names import sums_by_group


def set_kernels(model: Any, bank: Bank, weights: np.ndarray) -> None:
    """Set what a model says of its kernels, given their weights: one for each, or a row of them for each class."""
    rows = np.atleast_2d(weights)
    model.weights_ = weights
    model.kernel_names_, model.kernel_groups_ = bank.names, bank.groups
    model.group_names_, sums = sums_by_group(bank.groups, rows)
    model.group_weights_ = sums if weights.ndim > 1 else sums[0]
    model.active_ = np.flatnonzero(np.any(rows > 0, axis=0))
    importances = bank.importances(rows.mean(axis=0), model.n_features_in_)
    model.feature_importances_ = importances / (importances.sum() or 1.0)
    model.extra_ = {}


def set_certificate(model: Any, certificate: Certificate, exact: bool = True) -> None:
    """Set what encloses the optimum, whether that is proved, and whether it is near enough."""
    model.objective_, model.dual_objective_ = certificate.primal, certificate.dual
    model.gap_, model.gap_is_exact_, model.converged_ = certificate.gap, exact, certificate.within(model.tol)


def set_support(model: Any, beta: np.ndarray) -> None:
    """Set the dual coefficients, (n_problems, n_samples), of samples that have one."""
    model.support_ = np.flatnonzero(np.any(beta != 0, axis=0))
    model.dual_coef_ = beta[:, model.support_]


def set_machines(model: Any, bank: Bank, results: list[Result], samples: Samples | None, offset: Any) -> None:
    """Set all that kernel machines have learned: one result for all tasks, or one for each.

    ``offset`` goes to the intercepts, one for all tasks or one for each. Without samples, their rows are elsewhere, and
    so are the dual coefficients.
    """
    model.intercept_ = np.concatenate([result.machine.intercept for result in results]) + offset
    ends = np.cumsum([result.machine.intercept.size for result in results])[:-1]
    intercepts = np.split(model.intercept_, ends)
    machines = [replace(r.machine, intercept=b) for r, b in zip(results, intercepts, strict=True)]
    beta, rows, n_train = np.zeros((model.intercept_.size, 0)), np.zeros(0, np.int64), 0
    if samples is not None:
        beta = samples.spread(np.vstack([machine.beta for machine in machines]))
        rows, n_train = samples.rows, samples.owner.size
    model._predictors = [
        _predictor(bank, result.weights, machine, rows, n_train)
        for result, machine in zip(results, machines, strict=True)
    ]
    weights = np.array([result.weights for result in results])
    set_kernels(model, bank, weights[0] if len(results) == 1 else weights)
    set_support(model, beta)
    _set_outcome(model, results)
    vars(model).update(bank.attributes)


def _predictor(bank: Bank, weights: np.ndarray, machine: Machine, rows: np.ndarray, n_train: int) -> Predictor:
    """Return the predictor of tasks that share their weights, or have a row of them each: shares of the largest."""
    if weights.ndim == 1:
        return Predictor.of(bank.learned(weights, machine), weights, rows, n_train)
    largest = weights.max(axis=0)
    active = np.flatnonzero(largest > 0)
    predictor = Predictor.of(bank.learned(largest, machine), largest, rows, n_train)
    return replace(predictor, shares=np.ascontiguousarray((weights[:, active] / largest[active]).T))


def _set_outcome(model: Any, results: list[Result]) -> None:
    """Set the sums of the certificates and of the work."""
    certificate = total([result.certificate for result in results])
    set_certificate(model, certificate, all(result.exact for result in results))
    model.converged_ = model.converged_ and all(result.gaps is None or result.converged for result in results)
    if np.isnan(certificate.gap):  # a problem without a dual
        model.converged_ = all(result.converged for result in results)
    if np.ndim(model.weights_) > 1:
        parts = [result.gaps if result.gaps is not None else [result.certificate.gap] for result in results]
        model.gaps_ = np.concatenate(parts).astype(np.float64)
    model.n_iter_ = max(result.n_iter for result in results)
    model.n_inner_solves_ = sum(result.n_inner_solves for result in results)
    model.trace_ = [step for result in results for step in result.trace]


def gap_in_words(model: Any) -> str:
    """Return how far a model came, as its warning states it: where all together are near enough, the worst of all."""
    if model.gap_ <= model.tol and hasattr(model, "gaps_"):
        return f"relative duality gap {model.gaps_.max():.2e} of an output, above tol={model.tol:.2e}"
    return f"relative duality gap {model.gap_:.2e}, above tol={model.tol:.2e}"


def warn_not_converged(model: Any, steps: str, reached: str, remedy: str, *, interrupted: bool) -> None:
    """Warn that a fit ended after so many steps of some kind, where it came, and what helps, if it was not Ctrl-C."""
    if interrupted:
        remedy = "Ctrl-C ended it, and this is the best model so far"
    words = f"{type(model).__name__} stopped after {model.n_iter_} {steps} at the {reached}; {remedy}."
    warn(words, ConvergenceWarning)
