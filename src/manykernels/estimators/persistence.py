"""Model files: a zip of JSON and .npy arrays, with the active kernels and the support vectors only.

    manifest.json   format, version, estimator, parameters, attributes, kernels; SHA-256 of each array
    arrays/*.npy    numbers and text, never pickled objects

Opening a file runs no code of it. Kernels are looked up by class name among
those of the library and those that the caller passes.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from manykernels.compute.pairwise import dense
from manykernels.core.results import Step
from manykernels.estimators.aligned import AlignedKernel
from manykernels.estimators.base import FAMILY_SOLVERS
from manykernels.estimators.classifier import MKLClassifier
from manykernels.estimators.kernel_estimator import KernelEstimator
from manykernels.estimators.predictor import Predictor
from manykernels.estimators.regressor import MKLRegressor
from manykernels.estimators.two_stage import TwoStageMKLClassifier, TwoStageMKLRegressor
from manykernels.estimators.ufo import UFOMKLClassifier, UFOMKLRegressor
from manykernels.kernels import (
    Dirichlet,
    Gaussian,
    Kernel,
    Linear,
    Nystroem,
    Overlap,
    Polynomial,
    Precomputed,
    RandomFourier,
)
from manykernels.kernels.groups import BoundKernel
from manykernels.kernels.learned import LearnedKernel
from manykernels.kernels.parametric import ParametricKernel
from manykernels.kernels.precomputed import PrecomputedColumns
from manykernels.kernels.product import ScaledGaussian
from manykernels.kernels.products import KernelProduct
from manykernels.kernels.texts import sums_by_group
from manykernels.losses import JointLoss
from manykernels.norms import ElasticNorm, LpNorm, LpPenalty, MixedNorm, Penalty

FORMAT, VERSION = "manykernels-model", 1
_ESTIMATORS: dict[str, type[KernelEstimator]] = {
    kind.__name__: kind
    for kind in (
        MKLClassifier,
        MKLRegressor,
        UFOMKLClassifier,
        UFOMKLRegressor,
        TwoStageMKLClassifier,
        TwoStageMKLRegressor,
        AlignedKernel,
    )
}
_KERNELS: tuple[type[Kernel], ...] = (
    Linear,
    Overlap,
    Polynomial,
    Gaussian,
    Dirichlet,
    Precomputed,
    RandomFourier,
    Nystroem,
    ScaledGaussian,
    KernelProduct,
)
_ARRAYS = (
    "weights_",
    "group_weights_",
    "kernel_norms_",
    "approximation_error_",
    "ranks_",
    "active_",
    "dual_coef_",
    "support_",
    "intercept_",
    "feature_importances_",
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
    "n_seen_",
    "temperature_scale_",
    "alignment_",
    "alignment_bound_",
    "held_out_alignment_",
    "shrinkage_",
    "target_",
    "offset_",
)
_NORMS: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in (LpNorm, MixedNorm, LpPenalty, ElasticNorm)}
_TEXTS = ("classes_", "feature_names_in_")


class _Archive:
    """Arrays on their way into a zip file, each under a name."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def put(self, name: str, array: Any) -> str:
        """Add an array; returns its name, to be written where the array stands."""
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.asanyarray(array), allow_pickle=False)
        self.contents[f"arrays/{name}.npy"] = buffer.getvalue()
        return name


def save(estimator: KernelEstimator, path: Any, extra: dict | None = None) -> None:
    """Write a fitted estimator to ``path``; see :meth:`MKLClassifier.save`."""
    check_is_fitted(estimator)
    archive = _Archive()
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": type(estimator).__name__,
        "parameters": {name: _encode_parameter(name, v) for name, v in estimator.get_params(deep=False).items()},
        "values": {name: _plain(getattr(estimator, name)) for name in _VALUES if hasattr(estimator, name)},
        "texts": {name: _encode_text(archive, name, getattr(estimator, name, None)) for name in _TEXTS},
        "trace": [asdict(step) for step in estimator.trace_],
        "predictors": [_encode_predictor(archive, i, p) for i, p in enumerate(estimator._for_file())],
        "extra": extra or {},
    }
    for name in _ARRAYS:
        if hasattr(estimator, name):
            archive.put(name, getattr(estimator, name))
    manifest["sha256"] = {name: hashlib.sha256(data).hexdigest() for name, data in archive.contents.items()}
    text = json.dumps(manifest, indent=1)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("manifest.json", text)
        for name, data in archive.contents.items():
            file.writestr(name, data)


def load(path: Any, kernels: Iterable[type[Kernel]] = ()) -> Any:
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
    try:
        manifest, arrays = _read(path)
        return _decode(manifest, arrays, {c.__name__: c for c in (*_KERNELS, *kernels)})
    except _BadModelError as error:
        raise ValueError(f"{str(path)!r} {error}") from None
    except Exception as error:  # whatever a damaged zip, array or manifest leads to
        raise ValueError(f"{str(path)!r} is damaged or not a manykernels model ({type(error).__name__}).") from error


class _BadModelError(Exception):
    """A file that cannot be read as a model; the message completes the sentence "file ..."."""


def _read(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    if not zipfile.is_zipfile(path):
        raise _BadModelError("is not a manykernels model, or it is truncated.")
    with zipfile.ZipFile(path) as file:
        if "manifest.json" not in file.namelist():
            raise _BadModelError("is a zip file, but not a manykernels model.")
        try:
            manifest = json.loads(file.read("manifest.json"))
        except ValueError:
            raise _BadModelError("has a manifest that is not JSON: the file is damaged.") from None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise _BadModelError("is a zip file, but not a manykernels model.")
        if not isinstance(manifest.get("version"), int) or manifest["version"] > VERSION:
            raise _BadModelError(
                f"was written in the model format {manifest.get('version')}; this manykernels reads up to {VERSION}: "
                "upgrade manykernels to open it."
            )
        arrays = {}
        for name, digest in manifest["sha256"].items():
            data = file.read(name)
            if hashlib.sha256(data).hexdigest() != digest:
                raise _BadModelError(f"was altered: {name} does not match its checksum.")
            array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
            arrays[name.removeprefix("arrays/").removesuffix(".npy")] = array
    return manifest, arrays


def _decode(manifest: dict, arrays: dict[str, np.ndarray], known: dict[str, type[Kernel]]) -> KernelEstimator:
    if manifest["estimator"] not in _ESTIMATORS:
        raise _BadModelError(f"holds a model of the unknown kind {manifest['estimator']!r}.")
    estimator = _ESTIMATORS[manifest["estimator"]]()
    predictors = [_decode_predictor(entry, arrays, known) for entry in manifest["predictors"]]
    if not predictors:
        raise _BadModelError("holds no predictor: the file is damaged.")
    parameters = _decode_parameters(manifest, predictors, arrays)
    estimator.set_params(**parameters)
    if "group_weights_" not in arrays:
        _add_group_sums(manifest["values"], arrays)
    for name in arrays.keys() & set(_ARRAYS):
        setattr(estimator, name, arrays[name])
    for name, value in manifest["values"].items():
        if name not in _VALUES:
            raise _BadModelError(f"holds the unknown attribute {name!r}.")
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


def _decode_parameters(manifest: dict, predictors: list[Predictor], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the constructor's arguments: the active kernels stand for those that were given."""
    parameters = {name: _decode_parameter(value) for name, value in manifest["parameters"].items()}
    if parameters.get("cv", 0) is None:
        parameters["cv"] = 5
    if parameters["kernels"] is not None:
        return parameters
    kept = _kernels_of(predictors)
    parameters["kernels"] = list(kept.values())
    if parameters.get("solver") in FAMILY_SOLVERS:
        parameters["solver"] = "auto"  # they are a list now
    if "shrinkage" in parameters:
        parameters["shrinkage"] = None
    if "norm" in parameters:
        parameters["norm"] = _norm_of(parameters["norm"], list(kept), arrays["weights_"].shape[-1])
    return parameters


def _add_group_sums(values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Add the names and the weights of the groups, in place: older files have none."""
    weights = arrays["weights_"]
    values["group_names_"], sums = sums_by_group(values["kernel_groups_"], np.atleast_2d(weights))
    arrays["group_weights_"] = sums[0] if weights.ndim == 1 else sums


def _kernels_of(predictors: list[Predictor]) -> dict[tuple[int, int], Kernel]:
    """Return the active kernels of all predictors, each once, by (0, place in the bank), in order.

    Where a ladder was learned they are its nodes, by (1 + predictor, place there).
    """
    found: dict[tuple[int, int], Kernel] = {}
    for i, predictor in enumerate(predictors):
        by_place = predictor.active.size == len(predictor.kernel.bound)
        for j, entry in enumerate(predictor.kernel.bound):
            found.setdefault((0, int(predictor.active[j])) if by_place else (i + 1, j), entry.kernel)
    return {key: found[key] for key in sorted(found)}


def _norm_of(norm: Any, kept: list[tuple[int, int]], n_kernels: int) -> Any:
    """Return the norm for the kernels that were kept: groups of its own are given for every kernel of the bank."""
    if not isinstance(norm, MixedNorm) or norm.groups is None or len(norm.groups) != n_kernels:
        return norm
    if any(predictor > 0 for predictor, _ in kept):
        return norm  # nodes stand for kernels of several groups
    return MixedNorm(norm.q, [norm.groups[place] for _, place in kept])


# -- parts ----------------------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """Return a JSON-able value: NumPy numbers become Python's."""
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, Sequence) and not isinstance(value, (str, list)) else value


def _encode_parameter(name: str, value: Any) -> Any:
    if (name == "kernels" and not isinstance(value, str)) or (
        name == "random_state" and not isinstance(_plain(value), int)
    ):
        return None  # the active kernels stand with the predictors; a generator's state is of no use to a fitted model
    if name in ("learner", "grid") or (name == "cv" and not isinstance(_plain(value), int)):
        return None  # what they led to is there
    if name == "n_jobs" and value is not None and not isinstance(_plain(value), (int, str)):
        return "dask"  # a connection to a cluster does not outlive the process
    if isinstance(value, JointLoss):
        raise ValueError("A model with a loss of your own cannot be saved: files hold no code.")
    if name == "class_weight" and isinstance(value, dict):
        return {"class_weight": [[_plain(k), _plain(v)] for k, v in value.items()]}
    return _encode_norm(value)


def _encode_norm(value: Any) -> Any:
    if isinstance(value, LpNorm):
        return {"LpNorm": _encode_norm(value.p)}
    if isinstance(value, MixedNorm):
        return {"MixedNorm": [_encode_norm(value.q), _numbered(value.groups)]}
    if isinstance(value, LpPenalty):
        return {"LpPenalty": [value.p, value.strength]}
    if isinstance(value, ElasticNorm):
        return {"ElasticNorm": [value.strength, value.p]}
    if isinstance(value, (Penalty, ParametricKernel)):
        return repr(value)  # predictions do not need it
    value = _plain(value)
    return {"float": "inf"} if isinstance(value, float) and math.isinf(value) else value


def _numbered(groups: list | None) -> list[int] | None:
    """Return the groups as numbers: which kernels belong together matters, and names may be of any kind."""
    if groups is None:
        return None
    places = {name: place for place, name in enumerate(dict.fromkeys(groups))}
    return [places[name] for name in groups]


def _decode_parameter(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    for name, kind in _NORMS.items():
        if name in value:
            own = value[name] if isinstance(value[name], list) else [value[name]]
            return kind(*(_decode_parameter(part) for part in own))
    if "class_weight" in value:
        return {k: v for k, v in value["class_weight"]}
    return float(value["float"])


def _encode_text(archive: _Archive, name: str, array: np.ndarray | None) -> str | None:
    """Store labels or names; object arrays of text are stored as text, and said to be objects."""
    if array is None:
        return None
    if array.dtype != object:
        archive.put(name, array)
        return "plain"
    if not all(isinstance(value, str) for value in array):
        raise ValueError(f"{name} holds objects that are not text: convert the labels to text or numbers to save.")
    archive.put(name, array.astype(str))
    return "object"


def _encode_predictor(archive: _Archive, i: int, predictor: Predictor) -> dict:
    kernel, prefix = predictor.kernel, f"predictor{i}_"
    X = kernel.X
    coded = [_encode_kernel(archive, f"{prefix}kernel{k}", entry, X) for k, entry in enumerate(kernel.bound)]
    if sp.issparse(X):
        for part in ("data", "indices", "indptr"):
            archive.put(f"{prefix}X_{part}", getattr(X, part))
    else:
        archive.put(f"{prefix}X", X)
    for part, array in _predictor_arrays(predictor).items():
        archive.put(prefix + part, array)
    return {
        "prefix": prefix,
        "cosine": kernel.cosine,
        "kernels": coded,
        "n_train": predictor.n_train,
        "shape": [int(size) for size in X.shape],
    }


def _predictor_arrays(predictor: Predictor) -> dict[str, np.ndarray]:
    kernel = predictor.kernel
    arrays = {
        "coefficients": kernel.coefficients,
        "means": kernel.means,
        "totals": kernel.totals,
        "share": kernel.share,
        "coef": predictor.coef,
        "intercept": predictor.intercept,
        "active": predictor.active,
        "rows": predictor.rows,
        "vectors": predictor.vectors,
        "mean": predictor.mean,
    }
    return {name: array for name, array in arrays.items() if array is not None}


def _encode_kernel(archive: _Archive, name: str, entry: BoundKernel, X: Any) -> dict:
    kernel, is_matrix = entry.kernel, isinstance(entry.kernel, Precomputed)
    if isinstance(kernel, Precomputed):
        column = dense(X[:, entry.positions])[:, 0]
        numbers = np.unique(column[~np.isnan(column)].astype(np.int64))  # samples that lack the view have none
        archive.put(name, kernel.columns_of(numbers))
        archive.put(f"{name}_numbers", numbers)
        archive.put(f"{name}_diagonal", kernel.whole_diagonal())
        parameters = {}
    else:
        parameters = _encode_own(archive, name, kernel)
    try:
        json.dumps(parameters)
    except TypeError:
        raise ValueError(
            f"The kernel {entry.name!r} has parameters that are not numbers or text, and cannot be saved."
        ) from None
    return {
        "class": "Precomputed" if is_matrix else type(kernel).__name__,
        "parameters": parameters,
        "positions": entry.positions.tolist(),
        "name": entry.name,
        "group": entry.group,
        "label": kernel.label,
        "array": name if is_matrix else None,
    }


def _encode_own(archive: _Archive, name: str, kernel: Kernel) -> dict:
    """Return a kernel's own parameters; arrays go to the archive, and a kernel may be made of another."""
    coded: dict[str, Any] = {}
    for key, value in kernel.parameters().items():
        if isinstance(value, np.ndarray):
            coded[key] = {"array": archive.put(f"{name}_{key}", value)}
        elif isinstance(value, Kernel):
            coded[key] = _encode_part(archive, f"{name}_{key}", value)
        elif isinstance(value, list) and value and all(isinstance(part, Kernel) for part in value):
            parts = enumerate(value)
            coded[key] = {"kernels": [_encode_part(archive, f"{name}_{key}{i}", part) for i, part in parts]}
        elif key not in ("columns", "group", "label"):
            coded[key] = _plain(value)
    return coded


def _encode_part(archive: _Archive, name: str, kernel: Kernel) -> dict:
    return {"class": type(kernel).__name__, "parameters": _encode_own(archive, name, kernel)}


def _make_kernel(kind: str, coded: dict, arrays: dict[str, np.ndarray], known: dict[str, type[Kernel]]) -> Kernel:
    if kind not in known:
        raise _BadModelError(
            f"uses the kernel class {kind}, which is not part of manykernels: pass it as load(path, kernels=[{kind}])."
        )
    own: dict[str, Any] = {}
    for key, value in coded.items():
        if isinstance(value, dict) and "array" in value:
            own[key] = arrays[value["array"]]
        elif isinstance(value, dict) and "kernels" in value:
            own[key] = [_make_kernel(part["class"], part["parameters"], arrays, known) for part in value["kernels"]]
        elif isinstance(value, dict) and "class" in value:
            own[key] = _make_kernel(value["class"], value["parameters"], arrays, known)
        else:
            own[key] = value
    return known[kind](**own)


def _decode_kernel(entry: dict, arrays: dict[str, np.ndarray], known: dict[str, type[Kernel]]) -> BoundKernel:
    name = entry["array"]
    if name is not None:
        kernel: Kernel = PrecomputedColumns(arrays[name], arrays[f"{name}_numbers"], arrays[f"{name}_diagonal"])
    else:
        kernel = _make_kernel(entry["class"], entry["parameters"], arrays, known)
    kernel.columns, kernel.group, kernel.label = entry["positions"], entry["group"], entry["label"]
    return BoundKernel(kernel, np.array(entry["positions"], dtype=np.int64), entry["name"], entry["group"])


def _decode_predictor(entry: dict, arrays: dict[str, np.ndarray], known: dict[str, type[Kernel]]) -> Predictor:
    prefix = entry["prefix"]

    def array(name: str) -> np.ndarray:
        return arrays[prefix + name]

    if f"{prefix}X" in arrays:
        X: Any = array("X")
    else:
        X = sp.csr_matrix((array("X_data"), array("X_indices"), array("X_indptr")), shape=tuple(entry["shape"]))
    kernel = LearnedKernel(
        bound=tuple(_decode_kernel(k, arrays, known) for k in entry["kernels"]),
        coefficients=array("coefficients"),
        cosine=bool(entry["cosine"]),
        X=X,
        means=arrays.get(f"{prefix}means"),
        totals=arrays.get(f"{prefix}totals"),
        share=arrays.get(f"{prefix}share"),
    )
    if kernel.coefficients.shape != (len(kernel.bound),) or array("coef").shape[-1] != X.shape[0]:
        raise _BadModelError("is damaged: its parts do not fit together.")
    return Predictor(
        kernel,
        array("coef"),
        array("intercept"),
        array("active"),
        array("rows"),
        int(entry["n_train"]),
        arrays.get(f"{prefix}vectors"),
        arrays.get(f"{prefix}mean"),
    )
