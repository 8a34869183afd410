"""One fit and what is asked of it: every property that does not hold is a fault with a name.

How certificates are judged. Primal and dual value are computed anew by the referee from ``weights_``, ``dual_coef_``,
``support_`` and ``intercept_``, with exact kernels. Each may differ by 1e-5 of the larger of the two, and by what the
certificate says that rounding may add. A sample with a cost of 1e12 turns the last bit of its prediction into 1e-4 of
loss: where the disagreement is no more than what the rounding of K beta in doubles explains (``_ROUNDINGS`` times
a first-order estimate), the values are not judged, but to say "converged" there, with a true gap that is not within
tol, is a fault. Optima below 1e-290 are not judged either: their digits are lost to the end of the range of doubles.
"""

from __future__ import annotations

import re
import tempfile
import traceback
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tests.hostile import build, oracle
from tests.hostile.cases import Case, is_tame, replaced

AGREE = 1e-5
# Predictions: relative to the sum of the sizes of their terms.
PREDICTIONS, ONE_ROW = 1e-6, 1e-10
# Beside targets of size 1, predictions so small are none.
_NOTHING = 1e-20
_ROUNDINGS, _LEAST = 100, 1e-290
_ALIKE = 1e-9  # squared distance of normalized kernels
_RAW = re.compile(
    r"zero-size|broadcast|must not contain|cannot convert|math (domain|range)|out of bounds|operand|singular|"
    r"positive definite|ufunc|axis \d|float division|did not converge|unsupported|NoneType|not subscriptable|dtype\("
)


@dataclass
class Verdict:
    """What came of a case.

    ``kind`` is "solved", "refused" or "error"; ``faults`` are the properties that do not hold, each a class of outcome,
    with details by name; ``disagreement`` is the larger relative one of primal and dual value, NaN where not judged.
    """

    case: Case
    kind: str = "solved"
    message: str = ""
    faults: dict[str, str] = field(default_factory=dict)
    disagreement: float = np.nan
    converged: bool | None = None

    def fault(self, name: str, detail: Any = "") -> None:
        """Note that a property does not hold."""
        self.faults.setdefault(name, str(detail))


@dataclass
class Fitted:
    """A model, the warnings of its fit, and its data."""

    model: Any
    data: build.Data
    caught: list


def judge(case: Case, again: bool = True) -> Verdict:
    """Fit a case, look at everything, and, if asked, fit its changed twin."""
    verdict = Verdict(case)
    fitted = _try(case, verdict)
    if fitted is None:
        return verdict
    _look(case, fitted, verdict)
    if again and case.again != "nothing" and case.estimator in ("mkl", "family") and not verdict.faults:
        _judge_twin(case, fitted, verdict)
    return verdict


# ---------------------------------------------------------------------------------------------------------------------
# the fit


def fit(case: Case) -> Fitted:
    """Fit a case and keep its warnings."""
    return _fit(case, build.make_data(case))


def _fit(case: Case, data: build.Data) -> Fitted:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = build.make_estimator(case, data)
        model.fit(data.X, data.y, **({} if data.weight is None else {"sample_weight": data.weight}))
    return Fitted(model, data, list(caught))


def _try(case: Case, verdict: Verdict) -> Fitted | None:
    """Return the fitted case, or None after an error, which the verdict then has."""
    data = build.make_data(case)
    try:
        return _fit(case, data)
    except Exception as error:
        name_error(error, verdict)
        return None


def name_error(error: Exception, verdict: Verdict) -> None:
    """Tell a refusal in one sentence from a raw error."""
    text = str(error)
    if is_clear(error) and not _blames_the_user(text, verdict.case):
        verdict.kind, verdict.message = "refused", f"{type(error).__name__}: {masked(text)}"
        if is_tame(verdict.case) and not _is_combination(text):
            verdict.fault(f"refused although nothing is extreme: {masked(text)}", text)
        return
    frame = traceback.extract_tb(error.__traceback__)[-1]
    own = [f for f in traceback.extract_tb(error.__traceback__) if "manykernels" in f.filename]
    place = f"{Path(own[-1].filename).name}:{own[-1].name}" if own else f"{Path(frame.filename).name}:{frame.name}"
    verdict.kind = "error"
    verdict.message = f"{type(error).__name__} in {place}: {masked(text)}"
    verdict.fault(f"raw error: {verdict.message}", "".join(traceback.format_exception(error)))


def _blames_the_user(text: str, case: Case) -> bool:
    """Return whether the message speaks of a matrix that was never given."""
    return text.startswith("K ") and not case.kernels[0].kind.startswith("given")


def _is_combination(text: str) -> bool:
    """Return whether the message says that settings do not go together, which is not a matter of numbers."""
    return bool(
        re.search(
            r"needs|is for|is not for|solver|cannot be used|at least 2 classes|nothing to learn|class_weight", text
        )
    )


def is_clear(error: Exception) -> bool:
    """Return whether an error is one sentence of the library's own, or of scikit-learn's checks."""
    if type(error) not in (ValueError, TypeError, MemoryError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    file, text = frames[-1].filename if frames else "", str(error)
    if "sklearn" in file and "validation" in file:
        return True
    return (
        "manykernels" in file
        and text.endswith(".")
        and "\n" not in text
        and not re.search(r"\bnan\b", text)
        and not _RAW.search(text)
    )


def masked(text: str) -> str:
    """Return a message without its numbers and names, so that messages of one kind are one class."""
    text = re.sub(r"'[^']*'", "'...'", text.split("\n", maxsplit=1)[0])
    return re.sub(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|\binf\b", "#", text)[:160]


# ---------------------------------------------------------------------------------------------------------------------
# one model


def _look(case: Case, fitted: Fitted, verdict: Verdict) -> None:
    for entry in fitted.caught:
        if issubclass(entry.category, RuntimeWarning):
            where = Path(entry.filename).name
            verdict.fault(f"RuntimeWarning: {masked(str(entry.message))} ({where}:{entry.lineno})", entry.message)
    try:
        finite = _look_at_numbers(case, fitted, verdict)
        if not finite:
            return
        _look_at_convergence(case, fitted, verdict)
        if case.estimator in ("mkl", "ufo", "two_stage"):
            _look_at_truth(case, fitted, verdict)
        _look_at_file(fitted, verdict)
    except Exception as error:  # an error of prediction or of a file counts like one of the fit
        inner = Verdict(case)
        name_error(error, inner)
        verdict.fault(f"after the fit: {inner.message}", "".join(traceback.format_exception(error)))


def _decisions(model: Any, X: Any) -> np.ndarray:
    """Return the predictor's values, shape (n_samples, n_outputs)."""
    values = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return np.asarray(values).reshape(np.shape(X)[0], -1)


def _look_at_numbers(case: Case, fitted: Fitted, verdict: Verdict) -> bool:
    model = fitted.model
    names = ["weights_", "dual_coef_", "intercept_", "objective_", "dual_objective_", "alignment_"]
    if case.alignment not in ("independent", "uniform"):  # they have no bound
        names.append("gap_")
    for name in names:
        if hasattr(model, name) and not np.all(np.isfinite(getattr(model, name))):
            verdict.fault(f"{case.estimator}: {name} is not finite", getattr(model, name))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for rows in (fitted.data.X, fitted.data.new):
            try:
                if not np.all(np.isfinite(_decisions(model, rows))):
                    verdict.fault(f"{case.estimator}: predictions are not finite")
            except RuntimeWarning as warning:
                verdict.fault(f"RuntimeWarning in a prediction: {masked(str(warning))}", warning)
    return not verdict.faults


def _look_at_convergence(case: Case, fitted: Fitted, verdict: Verdict) -> None:
    model = fitted.model
    if case.estimator == "two_stage":
        return
    if not hasattr(model, "converged_"):
        verdict.fault(f"{case.estimator}: there is no converged_")
        return
    verdict.converged = bool(model.converged_)
    if bool(model.converged_) != bool(model.gap_ <= case.tol):
        name = f"{case.estimator}, {case.solver}: converged_ is {model.converged_} but gap_ "
        verdict.fault(name + ("is above tol" if model.gap_ > case.tol else "is within tol"), f"{model.gap_} {case.tol}")
    warned = any(issubclass(entry.category, ConvergenceWarning) for entry in fitted.caught)
    if not model.converged_ and not warned:
        verdict.fault(f"{case.estimator}, {case.solver}: not converged and no ConvergenceWarning", model.gap_)
    if model.converged_ and warned:
        verdict.fault(f"{case.estimator}, {case.solver}: a ConvergenceWarning although converged", model.gap_)
    if not model.converged_ and is_tame(case) and case.estimator == "mkl":
        verdict.fault(f"auto, {case.norm[0]}: stopped above tol although nothing is extreme", model.gap_)


def _look_at_file(fitted: Fitted, verdict: Verdict) -> None:
    from manykernels import load

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mk"
        fitted.model.save(path)
        copy = load(path)
    if not np.array_equal(_decisions(fitted.model, fitted.data.new), _decisions(copy, fitted.data.new)):
        first, second = _decisions(fitted.model, fitted.data.new), _decisions(copy, fitted.data.new)
        off = np.abs(first - second).max() / np.abs(first).max()
        verdict.fault(f"{verdict.case.estimator}: a saved model predicts other numbers", f"by {off:.3g} of the largest")


# ---------------------------------------------------------------------------------------------------------------------
# against the referee


def _look_at_truth(case: Case, fitted: Fitted, verdict: Verdict) -> None:
    model, data = fitted.model, fitted.data
    kernels = oracle.make_kernels(case, data)
    _look_at_one_row(case, fitted, kernels, verdict)
    if case.approximation is not None:
        return  # the certificate is that of the approximate problem
    _look_at_zero_kernels(case, fitted, kernels, verdict)
    if not is_judged(case, data, kernels, model):
        return
    classes = getattr(model, "classes_", None)
    if case.estimator == "two_stage":
        K = np.einsum("k,kij->ij", model.weights_.astype(oracle.Long), kernels.train)
        truth, lost = oracle.alignment(K, data, classes)
        if abs(truth - model.alignment_) > 1e-6 and lost < 1e8:
            verdict.fault(f"alignment_ is wrong ({case.alignment})", f"{model.alignment_}, true {truth}")
        return
    problem = oracle.make_problem(case, data, classes)
    beta = np.zeros(problem.Y.shape)
    beta[:, model.support_] = model.dual_coef_
    if case.estimator == "ufo":
        _look_at_ufo(case, fitted, kernels, problem, beta, verdict)
        return
    if case.intercept:
        sums, sizes = np.abs(beta.astype(oracle.Long).sum(axis=1)), np.abs(beta).sum(axis=1)
        if np.any(sums > 1e-7 * sizes):
            verdict.fault("dual_coef_ does not sum to 0", f"{sums} of {sizes}")
    parts = _certificates(case, model, problem, kernels, beta)
    primal, dual = sum(p.primal for p in parts), sum(p.dual for p in parts)
    _compare(case, model, primal, dual, sum(p.rounding for p in parts), verdict)
    _look_at_predictions(case, fitted, kernels, beta, verdict)


def is_judged(case: Case, data: build.Data, kernels: oracle.Kernels, model: Any) -> bool:
    """Return whether doubles determine the kernels at all.

    The phase of a Dirichlet kernel is lost where it is a huge number; and a kernel whose centered values are below
    1e-9 of the raw ones is rounding, which the library may leave out.
    """
    for kernel, value in build.written_out(case, data):
        if kernel.kind == "dirichlet":
            columns = data.plain[:, list(kernel.columns)]
            if value * float(np.abs(columns - columns[0]).max()) > 1e7:
                return False
    return bool(np.all(kernels.lost < 1e9)) or not case.center


def _certificates(case, model, problem, kernels, beta) -> list[oracle.Certificate]:
    """Return one certificate for each problem: one for all classes, or one per class."""
    lost = np.minimum(kernels.lost, 1e15)
    if np.ndim(model.weights_) == 1:
        return [oracle.certificate(case, problem, kernels.train, model.weights_, beta, model.intercept_, lost)]
    return [
        oracle.certificate(
            case,
            oracle.Problem(problem.Y[[t]], problem.costs[[t]], problem.offset),
            kernels.train,
            model.weights_[t],
            beta[[t]],
            model.intercept_[[t]],
            lost,
        )
        for t in range(len(beta))
    ]


def _compare(case: Case, model: Any, primal: float, dual: float, rounding: float, verdict: Verdict) -> None:
    size = max(abs(primal), abs(dual), abs(model.objective_), abs(model.dual_objective_))
    if size < _LEAST:
        return
    if not (np.isfinite(primal) and np.isfinite(dual)):
        verdict.fault("the true certificate is not finite (dual_coef_ outside its domain?)", f"{primal}, {dual}")
        return
    dual_off = model.dual_objective_ - dual
    if case.norm[0] == "penalty":
        dual_off = max(dual_off, 0.0)  # any point on the way to beta proves something; the referee takes the best
    # What a fit says that it does not know is not a claim.
    off = max(max(abs(primal - model.objective_), abs(dual_off)) - _admitted(model), 0.0) / size
    claim = f"claimed {model.objective_:.9g}, {model.dual_objective_:.9g}; true {primal:.9g}, {dual:.9g}"
    detail = f"{claim}; relative {off:.2g}, doubles give {rounding / size:.2g}"
    if off <= AGREE or off * size > _ROUNDINGS * rounding:
        verdict.disagreement = off
        if off > AGREE:
            verdict.fault(f"{case.estimator}: the certificate is wrong", detail)
    elif model.gap_ <= case.tol and (primal - dual) / size > case.tol + AGREE:
        verdict.fault(f"{case.estimator}: converged on lost digits", detail)


def _look_at_zero_kernels(case: Case, fitted: Fitted, kernels: oracle.Kernels, verdict: Verdict) -> None:
    zero = ~np.any(kernels.train != 0, axis=(1, 2))
    weights = np.atleast_2d(fitted.model.weights_)
    if weights.shape[1] == zero.size and np.any(weights[:, zero] != 0):
        verdict.fault(f"{case.estimator}: a zero kernel has a weight ({case.norm[0]})", weights)


def _look_at_ufo(case, fitted, kernels, problem, beta, verdict) -> None:
    if case.step != "auto":
        return  # the coefficients of gradient steps are not those of the predictor
    K = oracle.augmented(kernels.train, oracle.present_weight(fitted.data)) if case.intercept else kernels.train
    truth, decision, sizes = oracle.ufo_certificate(case, problem, K, beta, fitted.model.kernel_norms_)
    _compare(case, fitted.model, truth.primal, truth.dual, truth.rounding, verdict)
    mine = _decisions(fitted.model, fitted.data.X).T - problem.offset
    off = np.abs(mine - decision) / (sizes + 1e-9 * abs(problem.offset) + 1e-300)
    # With float32 kernels, a tenth of tol at most, the lengths of the components are off by as much as the objective.
    if off.max() > max(10 * PREDICTIONS, 0.1 * case.tol if case.tol > 1e-4 else 0.0):
        verdict.fault("ufo: predictions are wrong", f"by {float(off.max()):.2g} of the sum of the sizes of their terms")


def _look_at_predictions(case, fitted, kernels, beta, verdict) -> None:
    model, data = fitted.model, fitted.data
    d = np.broadcast_to(np.atleast_2d(model.weights_), (len(beta), np.shape(model.weights_)[-1])).astype(oracle.Long)
    level = np.mean(np.abs(np.diagonal(kernels.train, axis1=1, axis2=2)), axis=1)
    for rows, own in ((data.X, kernels.train), (data.new, kernels.new)):
        lost = np.minimum(kernels.lost, 1e15)
        truth = np.einsum("tk,kij,tj->it", d, own, beta.astype(oracle.Long)) + model.intercept_
        size = np.einsum("tk,kij,tj->it", d, np.abs(own), np.abs(beta).astype(oracle.Long)) + np.abs(model.intercept_)
        # What centering subtracts is of the size of the raw kernel.
        size = size + 1e-8 * np.einsum("tk,k,tj->t", d, lost * level, np.abs(beta).astype(oracle.Long))
        mine = _decisions(model, rows)
        if mine.shape != truth.shape:
            verdict.fault("predictions have another shape", f"{mine.shape} {truth.shape}")
        elif np.any(np.abs(mine - truth) > PREDICTIONS * size):
            off = float(np.max(np.abs(mine - truth) / np.where(size > 0, size, 1)))
            verdict.fault("mkl: predictions are wrong", f"by {off:.2g} of the sum of the sizes of their terms")


def _look_at_one_row(case: Case, fitted: Fitted, kernels: oracle.Kernels, verdict: Verdict) -> None:
    """One row by itself gives what it gives among others, up to the order of sums."""
    X, model = fitted.data.new, fitted.model
    rows = X.tocsr() if hasattr(X, "tocsr") else X
    every = _decisions(model, X)
    # Targets are of size 1, or as large as they are: what is so far below them is 0 by any order of sums.
    target = 1.0 if case.task != "regression" else float(np.abs(fitted.data.y).max())
    size = float(np.abs(every).max()) + _NOTHING * target
    if hasattr(model, "dual_coef_"):
        d = np.atleast_2d(model.weights_).max(axis=0)
        cross = np.einsum("k,kij->ij", d.astype(oracle.Long), np.abs(kernels.new))[:, model.support_]
        size += float((cross @ np.abs(model.dual_coef_).T.astype(oracle.Long)).max(initial=0))
        size *= float(np.clip(kernels.lost.max(), 1, 1e6))
    elif hasattr(getattr(model, "learner_", None), "dual_coef_"):  # of SVC and KernelRidge
        weight = model.weights_.astype(oracle.Long)
        cross = np.einsum("k,kij->ij", weight, np.abs(kernels.new)).max()
        size += float(cross * np.abs(model.learner_.dual_coef_).sum())
    with _values_for_votes():
        every = _decisions(model, X)
        for i in range(np.shape(X)[0]):
            one = _decisions(model, rows.iloc[[i]] if hasattr(rows, "iloc") else rows[[i]])
            if np.any(np.abs(one[0] - every[i]) > ONE_ROW * size):
                verdict.fault("one row is predicted otherwise than among others", f"{one[0]} {every[i]} of {size:.3g}")
                return


def _values_for_votes() -> Any:
    """Let SVC's function for several classes return the values of pairs: near 0, rounding decides their votes."""
    return mock.patch("manykernels.estimators.reduced._ovr_decision_function", lambda votes, values, n_classes: values)


# ---------------------------------------------------------------------------------------------------------------------
# a second fit that must agree


def _judge_twin(case: Case, fitted: Fitted, verdict: Verdict) -> None:
    """Fit a changed case. Both certificates enclose the same optimum, so that the intervals must overlap.

    Where rounding has put a dual value above the primal one, it shows how large it is: the interval is between them.
    """
    found = twin(case, fitted.data)
    if found is None:
        return
    other, data, factor, one_sided = found
    try:
        again = _fit(other, data)
    except Exception as error:
        inner = Verdict(other)
        name_error(error, inner)
        verdict.fault(f"{case.again}: {inner.message}", "".join(traceback.format_exception(error)))
        return
    first, second = fitted.model, again.model
    mine = sorted((first.dual_objective_ * factor, first.objective_ * factor))
    theirs = sorted((second.dual_objective_, second.objective_))
    size = max(map(abs, (*mine, *theirs)))
    slack = (AGREE if case.tol <= 1e-4 else 0.1 * case.tol) * size
    slack += factor * _admitted(first) + _admitted(second)
    if size < _LEAST:
        return
    apart = theirs[0] > mine[1] + slack or (not one_sided and mine[0] > theirs[1] + slack)
    if apart or not np.all(np.isfinite((*mine, *theirs))):
        verdict.fault(f"{case.again}: another optimum", f"{mine} and {theirs}")
    if case.again in ("permute samples", "split sample") and case.estimator == "mkl":
        _compare_predictions(case, fitted, again, verdict)


def _admitted(model: Any) -> float:
    """Return how far off, by its own account, the values of a fit may be: what the gap says beyond their difference."""
    values = (model.objective_, model.dual_objective_)
    return max(model.gap_ * max(map(abs, values)) - abs(values[0] - values[1]), 0.0)


def _compare_predictions(case: Case, fitted: Fitted, again: Fitted, verdict: Verdict) -> None:
    """A data set that is written down otherwise gives the same model, up to the rounding of sums."""
    if not _are_told_apart(case, fitted.data):
        return
    first, second = (_decisions(f.model, fitted.data.new) for f in (fitted, again))
    size = np.abs(first).max() + np.abs(fitted.model.dual_coef_).sum()
    if fitted.model.converged_ and np.abs(first - second).max() > PREDICTIONS * size:
        verdict.fault(f"{case.again}: other predictions", float(np.abs(first - second).max() / size))


def _are_told_apart(case: Case, data: build.Data) -> bool:
    """Return whether no two kernels are alike on the samples: between such a last bit chooses, and new rows differ."""
    flat = oracle.make_kernels(case, data).train.reshape(-1, data.y.shape[0] ** 2).astype(np.float64)
    largest = np.abs(flat).max(axis=1, keepdims=True)
    flat = flat[largest[:, 0] > 0] / largest[largest[:, 0] > 0]
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    return bool(np.triu(flat @ flat.T, 1).max(initial=0.0) < 1.0 - _ALIKE)


Twin = tuple[Case, build.Data, float, bool]


def twin(case: Case, data: build.Data) -> Twin | None:
    """Return the changed case and data, the factor between the optima, and whether only an upper bound is known.

    None where nothing is known.
    """
    if case.again in ("permute samples", "split sample"):
        return _other_rows(case, data)
    if case.estimator != "mkl" or case.approximation is not None:  # approximate kernels are drawn, each by itself
        return None
    if case.again == "permute kernels":
        order = np.random.default_rng(1).permutation(len(case.kernels))
        return replaced(case, kernels=tuple(case.kernels[k] for k in order)), data, 1.0, False
    if case.again == "duplicate kernel":
        return _one_more_kernel(case, data)
    return _scaled_target(case, data)


def _other_rows(case: Case, data: build.Data) -> Twin | None:
    """Return the same samples in another order, or with one of them cut into two of half the weight."""
    if case.layout in ("csc", "frame"):  # they do not take an array of rows
        return None
    weight, order = data.weight, np.random.default_rng(1).permutation(case.n)
    if case.again == "split sample":
        order = np.append(np.arange(case.n), 0)
        weight = np.ones(case.n) if weight is None else weight.copy()
        weight[0] /= 2
    return (
        case,
        replace(data, X=data.X[order], y=data.y[order], weight=None if weight is None else weight[order]),
        1.0,
        False,
    )


def _one_more_kernel(case: Case, data: build.Data) -> Twin | None:
    """Return the case with its first kernel twice: no change for norms that add components, else no rise."""
    adds = case.norm[0] == "mixed" or (case.norm[0] in ("lp", "penalty") and case.norm[1] == 1)
    if not adds and case.norm[0] != "lp":
        return None
    return replaced(case, kernels=(*case.kernels, case.kernels[0])), data, 1.0, not adds


def _scaled_target(case: Case, data: build.Data) -> Twin | None:
    """Return the regression of 1024 y: the optimum of a norm grows with the square."""
    loss = build.loss_of(case)
    if case.task != "regression" or case.norm[0] not in ("lp", "mixed") or loss == "huber":  # whose delta is 1
        return None
    factor = 2.0**10
    linear = loss in ("epsilon_insensitive", "absolute", "quantile")
    other = replaced(case, C=case.C * (factor if linear else 1.0), epsilon=case.epsilon * factor)
    return other, replace(data, y=data.y * factor), factor**2, False
