"""Model files: what an estimator needs to predict and to be read, with the active kernels and the support vectors only.

:mod:`manykernels.estimators.archive` is the container: numbers, text and a manifest of plain data. Opening a file runs
no code of it. Kernels are looked up by class name among those of the library and those that the caller passes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manykernels.core.results import Step
from manykernels.core.solver import Solver
from manykernels.estimators.aligned import AlignedKernel
from manykernels.estimators.archive import BadModelError, read_archive, write_archive
from manykernels.estimators.classifier import MKLClassifier
from manykernels.estimators.coded_predictor import Arrays, decode_predictor, encode_predictor, without_numpy
from manykernels.estimators.kernel_estimator import KernelEstimator
from manykernels.estimators.one_class import OneClassMKL
from manykernels.estimators.predictor import Predictor
from manykernels.estimators.regressor import MKLRegressor
from manykernels.estimators.survival import MKLSurvival
from manykernels.estimators.two_stage import TwoStageMKLClassifier, TwoStageMKLRegressor
from manykernels.estimators.ufo import UFOMKLClassifier, UFOMKLRegressor
from manykernels.kernels import KERNELS, Kernel, KernelBank
from manykernels.kernels.approximate import APPROXIMATIONS, Approximation
from manykernels.kernels.parametric import ParametricKernel
from manykernels.losses import LOSSES, JointLoss, Loss
from manykernels.norms import NORMS, MixedNorm, Norm
from manykernels.outer.family_choice import FAMILY_SOLVERS

_ESTIMATORS: dict[str, type[KernelEstimator]] = {
    kind.__name__: kind
    for kind in (
        MKLClassifier,
        MKLRegressor,
        MKLSurvival,
        OneClassMKL,
        UFOMKLClassifier,
        UFOMKLRegressor,
        TwoStageMKLClassifier,
        TwoStageMKLRegressor,
        AlignedKernel,
    )
}
_ARRAYS = (
    "column_means_",
    "column_scales_",
    "weights_",
    "gaps_",
    "group_weights_",
    "kernel_norms_",
    "approximation_error_",
    "ranks_",
    "active_",
    "dual_coef_",
    "support_",
    "intercept_",
    "feature_importances_",
    "event_times_",
    "baseline_cumulative_hazard_",
)
_VALUES = (
    "kernel_names_",
    "kernel_groups_",
    "group_names_",
    "objective_",
    "dual_objective_",
    "gap_",
    "gap_is_exact_",
    "converged_",
    "n_iter_",
    "n_inner_solves_",
    "n_features_in_",
    "n_outputs_",
    "n_seen_",
    "gives_probabilities_",
    "temperature_scale_",
    "alignment_",
    "alignment_bound_",
    "held_out_alignment_",
    "alignment_gap_",
    "alignment_gap_is_exact_",
    "shrinkage_",
    "target_",
    "offset_",
)
_LIBRARY: dict[str, type] = {kind.__name__: kind for kind in (*NORMS, *LOSSES, *APPROXIMATIONS)}
_TEXTS = ("classes_", "feature_names_in_")


def save(estimator: KernelEstimator, path: Any, extra: dict | None = None) -> None:
    """Write a fitted estimator to ``path``; see :meth:`MKLClassifier.save`."""
    check_is_fitted(estimator)
    if _ESTIMATORS.get(type(estimator).__name__) is not type(estimator):
        names = ", ".join(_ESTIMATORS)
        raise TypeError(f"A model of the class {type(estimator).__name__} cannot be saved: files are for {names}.")
    arrays = Arrays()
    manifest = {
        "estimator": type(estimator).__name__,
        "parameters": {name: _checked_parameter(name, v) for name, v in estimator.get_params(deep=False).items()},
        "values": {name: without_numpy(getattr(estimator, name)) for name in _VALUES if hasattr(estimator, name)},
        "texts": {name: _encode_text(arrays, name, getattr(estimator, name, None)) for name in _TEXTS},
        "trace": [asdict(step) for step in estimator.trace_],
        "predictors": [encode_predictor(arrays, i, p) for i, p in enumerate(estimator._for_file())],
        "extra": extra or {},
    }
    for name in _ARRAYS:
        if hasattr(estimator, name):
            arrays.put(name, getattr(estimator, name))
    write_archive(path, manifest, arrays.contents)


def load(path: Any, kernels: Iterable[type[Kernel]] = ()) -> KernelEstimator:
    """Read a model that :meth:`MKLClassifier.save` wrote.

    Parameters
    ----------
    path : str or path
    kernels : iterable of Kernel classes, optional
        Classes of your own that the model uses.

    Returns
    -------
    estimator
        Fitted, of the class that was saved. Its ``kernels`` parameter holds the active kernels, unless it was
        "standard" (``kernels_are_chosen_`` says which); a two-stage model has the learner's numbers, not the learner.

    Examples
    --------
    >>> import os, tempfile
    >>> from manykernels import MKLClassifier, load
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifier(norm=2).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "iris.mkl"))
    ...     again = load(os.path.join(folder, "iris.mkl"))
    >>> bool((model.predict(X) == again.predict(X)).all())
    True
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is not a file.")
    with open(path, "rb") as raw:
        try:
            manifest, arrays = read_archive(raw)
            return _decode(manifest, arrays, {c.__name__: c for c in (*KERNELS, *kernels)})
        except BadModelError as error:
            raise ValueError(f"{str(path)!r} {error}") from None
        except Exception as error:  # whatever a damaged zip, array or manifest leads to
            kind = type(error).__name__
            raise ValueError(f"{str(path)!r} is damaged or not a manykernels model ({kind}).") from error


def _decode(manifest: dict, arrays: dict[str, np.ndarray], known: dict[str, type[Kernel]]) -> KernelEstimator:
    if manifest["estimator"] not in _ESTIMATORS:
        raise BadModelError(f"holds a model of the unknown kind {manifest['estimator']!r}.")
    estimator = _ESTIMATORS[manifest["estimator"]]()
    values = manifest["values"]
    shape = values["n_features_in_"], _checked_weights(values, arrays).shape[-1]
    predictors = [decode_predictor(entry, arrays, known, *shape) for entry in manifest["predictors"]]
    if not predictors:
        raise BadModelError("holds no predictor: the file is damaged.")
    parameters = _decode_parameters(manifest, predictors, arrays)
    estimator.set_params(**parameters)
    for name in arrays.keys() & set(_ARRAYS):
        setattr(estimator, name, arrays[name])
    for name, value in values.items():
        if name not in _VALUES:
            raise BadModelError(f"holds the unknown attribute {name!r}.")
        setattr(estimator, name, value)
    for name in _TEXTS:
        if manifest["texts"].get(name) is not None:
            array = arrays[name]
            setattr(estimator, name, array.astype(object) if manifest["texts"][name] == "object" else array)
    estimator.trace_ = [Step(**step) for step in manifest["trace"]]
    estimator.extra_ = manifest["extra"]
    estimator.kernels_are_chosen_ = manifest["parameters"]["kernels"] is None
    estimator._predictors = predictors
    estimator._opened()
    return estimator


def _checked_weights(values: dict, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the weights, of which there is one for each name of a kernel."""
    weights = arrays["weights_"]
    for name in ("kernel_names_", "kernel_groups_"):
        texts = values[name]
        if not isinstance(texts, list) or len(texts) != weights.shape[-1] or not all(isinstance(t, str) for t in texts):
            raise BadModelError("is damaged: its kernels do not have a name and a group each.")
    return weights


def _decode_parameters(manifest: dict, predictors: list[Predictor], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the constructor's arguments: the active kernels stand for those that were given."""
    parameters = {name: _decode_parameter(value) for name, value in manifest["parameters"].items()}
    if parameters.get("cv", 0) is None:
        parameters["cv"] = 5
    if parameters["kernels"] is not None:
        return parameters
    kept = _kernels_of(predictors)
    listed = list(kept.values())
    parameters["kernels"] = KernelBank(listed, standardize=True) if "column_scales_" in arrays else listed
    if parameters.get("solver") in FAMILY_SOLVERS:
        parameters["solver"] = "auto"  # they are a list now
    if "norm" in parameters:
        parameters["norm"] = _norm_of(parameters["norm"], list(kept), arrays["weights_"].shape[-1])
    return parameters


def _kernels_of(predictors: list[Predictor]) -> dict[tuple[int, int], Kernel]:
    """Return the active kernels of all predictors, each once, by (0, place in the bank), in order.

    Where a ladder was learned they are its nodes, by (1 + predictor, place there).
    """
    kernels: dict[tuple[int, int], Kernel] = {}
    for i, predictor in enumerate(predictors):
        by_place = predictor.active.size == len(predictor.kernel.bound)
        for j, entry in enumerate(predictor.kernel.bound):
            kernels.setdefault((0, int(predictor.active[j])) if by_place else (i + 1, j), entry.kernel)
    return {key: kernels[key] for key in sorted(kernels)}


def _norm_of(norm: Any, kept: list[tuple[int, int]], n_kernels: int) -> Any:
    """Return the norm for the kernels that were kept: groups of its own are given for every kernel of the bank."""
    if not isinstance(norm, MixedNorm) or norm.groups is None or len(norm.groups) != n_kernels:
        return norm
    if any(predictor > 0 for predictor, _ in kept):
        return norm  # nodes stand for kernels of several groups
    return MixedNorm(norm.q, [norm.groups[place] for _, place in kept])


# -- parts ----------------------------------------------------------------------------------------------------


def _checked_parameter(name: str, value: Any) -> Any:
    """Return a parameter as plain data; raise ValueError if it is not made of numbers and text."""
    coded = _encode_parameter(name, value)
    try:
        json.dumps(coded)
    except TypeError:
        raise ValueError(f"{name} must be made of numbers and text for a model that is saved, got {value!r}.") from None
    return coded


def _is_left_out(name: str, value: Any) -> bool:
    """Return whether a fitted model has what the parameter led to, or no use for it, such as a generator's state."""
    if name == "kernels":  # the active ones stand with the predictors
        return not isinstance(value, str)
    return name in ("learner", "grid") or (name in ("cv", "random_state") and not isinstance(without_numpy(value), int))


def _encode_parameter(name: str, value: Any) -> Any:
    if _is_left_out(name, value):
        return None
    if name == "cluster" and value is not None:
        return "dask"  # a connection to a cluster does not outlive the process
    if isinstance(value, JointLoss):
        raise ValueError("A model with a JointLoss of your own cannot be saved: files hold no code.")
    if isinstance(value, (Norm, Loss, ParametricKernel, Approximation)):
        return _encode_object(value)
    if name == "solver":
        return _words_for(value)
    if name == "class_weight" and isinstance(value, dict):
        return {"class_weight": [[without_numpy(k), without_numpy(v)] for k, v in value.items()]}
    return _encode_number(value)


def _encode_object(value: Norm | Loss | ParametricKernel | Approximation) -> Any:
    """Return the class and the parameters of an object of the library; only the words of what is not the library's.

    Predictions do not need it, and a refit says that it is missing.
    """
    kind = type(value)
    if _LIBRARY.get(kind.__name__) is not kind or isinstance(value, ParametricKernel):
        return repr(value)
    return {"class": kind.__name__, "parameters": {k: _encode_number(v) for k, v in value.parameters().items()}}


def _encode_number(value: Any) -> Any:
    """Return plain data as it is, and infinity by its name."""
    value = without_numpy(value)
    return {"float": "inf"} if isinstance(value, float) and math.isinf(value) else value


def _words_for(value: Any) -> str:
    """Return the name of a solver of one's own: a refit says that it is missing."""
    if isinstance(value, Solver):
        return value.name
    return getattr(value, "__name__", repr(value)) if not isinstance(value, str) else value


def _decode_parameter(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "class" in value:
        return _LIBRARY[value["class"]](**{k: _decode_parameter(v) for k, v in value["parameters"].items()})
    if "class_weight" in value:
        return {k: v for k, v in value["class_weight"]}
    return float(value["float"])


def _encode_text(arrays: Arrays, name: str, array: np.ndarray | None) -> str | None:
    """Store labels or names; object arrays of text are stored as text, and said to be objects."""
    if array is None:
        return None
    if array.dtype != object:
        arrays.put(name, array)
        return "plain"
    if not all(isinstance(value, str) for value in array):
        raise ValueError(f"{name} holds objects that are not text: convert the labels to text or numbers to save.")
    text = array.astype(str)
    if text.tolist() != array.tolist():
        raise ValueError(f"{name} holds text that ends with the character 0, which files cannot keep.")
    arrays.put(name, text)
    return "object"
