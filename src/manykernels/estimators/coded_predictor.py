"""Predictors and their kernels as plain data and arrays, on their way to a model file and back.

What comes back is checked before it is used: whatever a file says, no index points outside an array.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manykernels.banks.learned import LearnedKernel
from manykernels.compute.pairwise import dense
from manykernels.estimators.archive import BadModelError
from manykernels.estimators.predictor import Predictor
from manykernels.kernels import Kernel, Precomputed
from manykernels.kernels.precomputed import PrecomputedColumns
from manykernels.kernels.shared_distances import BoundKernel


class Arrays:
    """Arrays on their way into a file, each under a name."""

    def __init__(self) -> None:
        self.contents: dict[str, np.ndarray] = {}

    def put(self, name: str, array: Any) -> str:
        """Add an array; returns its name, to be written where the array stands."""
        self.contents[name] = np.asarray(array)
        return name


def without_numpy(value: Any) -> Any:
    """Return a JSON-able value: NumPy numbers become Python's, and arrays lists of them.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.estimators.coded_predictor import without_numpy
    >>> without_numpy(np.int64(3)), without_numpy((1, 2))
    (3, [1, 2])
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, Sequence) and not isinstance(value, (str, list)) else value


# -- to a file ------------------------------------------------------------------------------------------------


def encode_predictor(arrays: Arrays, i: int, predictor: Predictor) -> dict:
    """Return predictor number i as plain data; its arrays are added to ``arrays``."""
    kernel, prefix = predictor.kernel, f"predictor{i}_"
    X = kernel.X
    views: dict[bytes, int] = {}  # many kernels see the same columns
    coded = []
    for k, entry in enumerate(kernel.bound):
        coded_kernel = _encode_kernel(arrays, f"{prefix}kernel{k}", entry, X)
        coded.append({**coded_kernel, "view": views.setdefault(entry.positions.astype(np.int64).tobytes(), len(views))})
    if sp.issparse(X):
        for part in ("data", "indices", "indptr"):
            arrays.put(f"{prefix}X_{part}", getattr(X, part))
    else:
        arrays.put(f"{prefix}X", X)
    for part, array in _predictor_arrays(predictor).items():
        arrays.put(prefix + part, array)
    return {
        "prefix": prefix,
        "cosine": kernel.cosine,
        "kernels": coded,
        "views": [np.frombuffer(view, np.int64).tolist() for view in views],
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
        "shares": predictor.shares,
    }
    return {name: array for name, array in arrays.items() if array is not None}


def _encode_kernel(arrays: Arrays, name: str, entry: BoundKernel, X: Any) -> dict:
    kernel, is_matrix = entry.kernel, isinstance(entry.kernel, Precomputed)
    if isinstance(kernel, Precomputed):
        column = dense(X[:, entry.positions])[:, 0]
        numbers = np.unique(column[~np.isnan(column)].astype(np.int64))  # samples that lack the view have none
        arrays.put(name, kernel.columns_of(numbers))
        arrays.put(f"{name}_numbers", numbers)
        arrays.put(f"{name}_diagonal", kernel.whole_diagonal())
        parameters = {}
    else:
        parameters = _encode_parameters(arrays, name, kernel)
    try:
        json.dumps(parameters)
    except TypeError:
        raise ValueError(
            f"The kernel {entry.name!r} has parameters that are not numbers or text, and cannot be saved."
        ) from None
    return {
        "class": "Precomputed" if is_matrix else type(kernel).__name__,
        "parameters": parameters,
        "name": entry.name,
        "group": entry.group,
        "label": kernel.label,
        "array": name if is_matrix else None,
    }


def _encode_parameters(arrays: Arrays, name: str, kernel: Kernel) -> dict:
    """Return a kernel's own parameters; arrays are put aside, and a kernel may be made of another."""
    coded: dict[str, Any] = {}
    for key, value in kernel.parameters().items():
        if isinstance(value, np.ndarray):
            coded[key] = {"array": arrays.put(f"{name}_{key}", value)}
        elif isinstance(value, Kernel):
            coded[key] = _encode_part(arrays, f"{name}_{key}", value)
        elif isinstance(value, list) and value and all(isinstance(part, Kernel) for part in value):
            # One kernel that comes twice is one kernel again: a square is not computed like a product of two.
            single = {id(part): part for part in value}
            parts = [_encode_part(arrays, f"{name}_{key}{i}", part) for i, part in enumerate(single.values())]
            coded[key] = {"kernels": parts, "order": [list(single).index(id(part)) for part in value]}
        elif key not in ("columns", "group", "label"):
            coded[key] = without_numpy(value)
    return coded


def _encode_part(arrays: Arrays, name: str, kernel: Kernel) -> dict:
    return {"class": type(kernel).__name__, "parameters": _encode_parameters(arrays, name, kernel)}


# -- from a file ----------------------------------------------------------------------------------------------


def decode_predictor(
    entry: dict, arrays: dict[str, np.ndarray], known: dict[str, type[Kernel]], n_features: int, n_kernels: int
) -> Predictor:
    """Return the predictor of a model on this many features and kernels; ``known`` are kernels by class name."""
    prefix = entry["prefix"]

    def array(name: str) -> np.ndarray:
        return arrays[prefix + name]

    if f"{prefix}X" in arrays:
        X: Any = array("X")
    else:
        X = sp.csr_matrix((array("X_data"), array("X_indices"), array("X_indptr")), shape=tuple(entry["shape"]))
        X.check_format(full_check=True)  # compiled code believes the indices
    views = [_checked_view(view, n_features) for view in entry["views"]]
    kernel = LearnedKernel(
        bound=tuple(
            _decode_kernel(k, views[k["view"]], entry["views"][k["view"]], arrays, known) for k in entry["kernels"]
        ),
        coefficients=array("coefficients"),
        cosine=bool(entry["cosine"]),
        X=X,
        means=arrays.get(f"{prefix}means"),
        totals=arrays.get(f"{prefix}totals"),
        share=arrays.get(f"{prefix}share"),
    )
    predictor = Predictor(
        kernel,
        array("coef"),
        array("intercept"),
        array("active"),
        array("rows"),
        int(entry["n_train"]),
        arrays.get(f"{prefix}vectors"),
        arrays.get(f"{prefix}mean"),
        arrays.get(f"{prefix}shares"),
    )
    _check_fit(predictor, n_features, n_kernels)
    return predictor


def _checked_view(view: list, n_features: int) -> np.ndarray:
    positions = np.array(view, dtype=np.int64)
    _require(positions.ndim == 1 and positions.size > 0 and _are_places(positions, n_features))
    return positions


def _check_fit(predictor: Predictor, n_features: int, n_kernels: int) -> None:
    """Raise unless the arrays of a predictor are of the shapes that belong together."""
    kernel, coef = predictor.kernel, predictor.coef
    n_bound, n_kept, n_tasks = len(kernel.bound), kernel.X.shape[0], predictor.intercept.size
    _require(kernel.X.ndim == 2 and kernel.X.shape[1] == n_features and kernel.X.dtype == np.float64)
    _require(coef.shape in ((n_tasks, n_kept), (n_bound, n_tasks, n_kept)))
    for numbers, shape in (
        (kernel.coefficients, (n_bound,)),
        (coef, coef.shape),
        (predictor.intercept, (n_tasks,)),
        (kernel.means, (n_bound, n_kept)),
        (kernel.totals, (n_bound,)),
        (kernel.share, (n_kept,)),
        (predictor.vectors, (n_tasks, -1)),
        (predictor.shares, (n_bound, n_tasks)),
        (predictor.mean, None if predictor.vectors is None else (predictor.vectors.shape[-1],)),
    ):
        if numbers is not None:
            _require(shape is not None and numbers.dtype.kind == "f" and numbers.ndim == len(shape))
            _require(all(size in (length, -1) for length, size in zip(numbers.shape, shape or (), strict=True)))
    _require((kernel.means is None) == (kernel.totals is None) == (kernel.share is None))
    _require(predictor.active.ndim == 1 and _are_places(predictor.active, n_kernels))
    _require(predictor.rows.shape == (n_kept,) and _are_places(predictor.rows, predictor.n_train))


def _are_places(numbers: np.ndarray, size: int) -> bool:
    """Return whether these are places in a list of this size."""
    return numbers.dtype.kind in "iu" and (numbers.size == 0 or bool(numbers.min() >= 0 and numbers.max() < size))


def _require(fits: bool) -> None:
    if not fits:
        raise BadModelError("is damaged: its parts do not fit together.")


def _decode_kernel(
    entry: dict, positions: np.ndarray, columns: list, arrays: dict[str, np.ndarray], known: dict[str, type[Kernel]]
) -> BoundKernel:
    name = entry["array"]
    if name is not None:
        kernel: Kernel = _decode_matrix(*(arrays[f"{name}{part}"] for part in ("", "_numbers", "_diagonal")))
    else:
        kernel = _make_kernel(entry["class"], entry["parameters"], arrays, known)
    kernel.columns, kernel.group, kernel.label = columns, entry["group"], entry["label"]
    return BoundKernel(kernel, positions, entry["name"], entry["group"])


def _decode_matrix(K: np.ndarray, numbers: np.ndarray, diagonal: np.ndarray) -> PrecomputedColumns:
    _require(K.dtype.kind == "f" and diagonal.dtype.kind == "f" and diagonal.ndim == numbers.ndim == 1)
    _require(K.shape == (diagonal.size, numbers.size) and _are_places(numbers, diagonal.size))
    _require(bool(np.all(np.diff(numbers) > 0)))
    return PrecomputedColumns(K, numbers, diagonal)


def _make_kernel(kind: str, coded: dict, arrays: dict[str, np.ndarray], known: dict[str, type[Kernel]]) -> Kernel:
    if kind not in known:
        raise BadModelError(
            f"uses the kernel class {kind}, which is not part of manykernels: pass it as load(path, kernels=[{kind}])."
        )
    parameters: dict[str, Any] = {}
    for key, value in coded.items():
        if isinstance(value, dict) and "array" in value:
            parameters[key] = arrays[value["array"]]
        elif isinstance(value, dict) and "kernels" in value:
            parts = [_make_kernel(part["class"], part["parameters"], arrays, known) for part in value["kernels"]]
            parameters[key] = [parts[place] for place in value["order"]]
        elif isinstance(value, dict) and "class" in value:
            parameters[key] = _make_kernel(value["class"], value["parameters"], arrays, known)
        else:
            parameters[key] = value
    return known[kind](**parameters)
