"""The npz format of a dataset: what each array is called, and how it becomes a Bunch.

One file holds one set. ``X`` (rows x features), or the CSR parts ``data``, ``indices``, ``indptr`` and
``shape``, or one ``X_<view>`` (dense, or ``X_<view>_data`` and so on) for each view; ``y`` or, for
multi-label sets, ``Y``; and, where known, ``feature_names`` (``feature_names_<view>``), ``class_names``,
``train_idx`` and ``test_idx``, ``splits_train`` and ``splits_test``, ``test_mask``.
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

SPARSE_PARTS = ("data", "indices", "indptr", "shape")
Arrays = dict[str, np.ndarray]


def read_archive(path: Path) -> Bunch:
    """Read one dataset; :func:`manykernels.datasets.load` describes the result.

    Parameters
    ----------
    path : pathlib.Path
        An npz file.

    Returns
    -------
    dataset : Bunch

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.npz"
    ...     np.savez(path, X=np.eye(2), y=np.array([-1, 1]), class_names=np.array(["no", "yes"]))
    ...     read_archive(path).target_names
    ['no', 'yes']
    """
    arrays = _arrays(path)
    try:
        return _assemble(path.stem, arrays)
    except (KeyError, ValueError, IndexError) as error:
        raise ValueError(f"{path.name} is not a dataset in the npz format: {error.args[0]}.") from error


def _arrays(path: Path) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, EOFError, ValueError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        # A lone array and a pickle both fail here, the latter before any of its code could run.
        raise ValueError(
            f"{path.name} must be an npz file of plain arrays (pickled objects are refused); it cannot be read as one."
        ) from error


def _assemble(name: str, arrays: Arrays) -> Bunch:
    matrices = _views(arrays)
    if "X" in arrays:
        data, views = arrays.pop("X"), None
    elif matrices:
        data, views = _side_by_side(matrices), _slices(matrices)
    else:
        data, views = _take_sparse(arrays, ""), None
    target = _take_target(arrays)
    if data.shape[0] != len(target):
        raise ValueError(f"it holds {data.shape[0]} rows of data and {len(target)} targets")
    return Bunch(
        name=name,
        data=data,
        target=target,
        views=views,
        feature_names=_feature_names(arrays, matrices, data.shape[1]),
        target_names=_target_names(arrays, target),
        splits=_splits(arrays, len(target)),
        **arrays,
    )


def _views(arrays: Arrays) -> dict[str, Any]:
    """Take the views out of `arrays`, in the order of the file."""
    matrices: dict[str, Any] = {}
    for key in list(arrays):
        if key.startswith("X_") and key.endswith("_indptr"):
            view = key[len("X_") : -len("_indptr")]
            matrices[view] = _take_sparse(arrays, f"X_{view}_")
        elif key.startswith("X_") and arrays.get(key, np.empty(0)).ndim == 2:
            matrices[key[len("X_") :]] = arrays.pop(key)
    return matrices


def _take_sparse(arrays: Arrays, prefix: str) -> sparse.csr_matrix:
    missing = [prefix + name for name in SPARSE_PARTS if prefix + name not in arrays]
    if missing:
        raise ValueError(f"it needs X, or X_<view>, or the parts of a CSR matrix; it lacks {', '.join(missing)}")
    data, indices, indptr, shape = (arrays.pop(prefix + name) for name in SPARSE_PARTS)
    return sparse.csr_matrix((data, indices, indptr), shape=tuple(int(size) for size in shape))


def _side_by_side(matrices: dict[str, Any]) -> Any:
    if len({matrix.shape[0] for matrix in matrices.values()}) > 1:
        sizes = ", ".join(f"{view} {matrix.shape[0]}" for view, matrix in matrices.items())
        raise ValueError(f"its views must have the same number of rows; they have {sizes}")
    if any(sparse.issparse(matrix) for matrix in matrices.values()):
        return sparse.csr_matrix(sparse.hstack(list(matrices.values())))
    return np.hstack(list(matrices.values()))


def _slices(matrices: dict[str, Any]) -> dict[str, slice]:
    ends = np.cumsum([matrix.shape[1] for matrix in matrices.values()])
    return {
        view: slice(int(end) - matrix.shape[1], int(end))
        for (view, matrix), end in zip(matrices.items(), ends, strict=True)
    }


def _take_target(arrays: Arrays) -> np.ndarray:
    for key in ("y", "Y"):
        if key in arrays:
            return arrays.pop(key)
    raise ValueError("it lacks y (or Y, for several labels)")


def _feature_names(arrays: Arrays, matrices: dict[str, Any], n_features: int) -> list[str] | None:
    keys = [f"feature_names_{view}" for view in matrices] or ["feature_names"]
    if not all(key in arrays for key in keys):
        return None
    names = [str(name) for key in keys for name in arrays.pop(key)]
    if len(names) != n_features:
        raise ValueError(f"it holds {n_features} features and {len(names)} feature names")
    return names


def _target_names(arrays: Arrays, target: np.ndarray) -> list[str] | None:
    n_classes = target.shape[1] if target.ndim == 2 else len(np.unique(target))
    names = arrays.get("class_names")
    # In some sets these are the classes of another column: they stay under their own key.
    if names is None or len(names) != n_classes:
        return None
    del arrays["class_names"]
    return [str(name) for name in names]


def _splits(arrays: Arrays, n_samples: int) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """Gather the given splits; the arrays that they come from stay available too."""
    if "train_idx" in arrays and "test_idx" in arrays:
        return [(arrays["train_idx"], arrays["test_idx"])]
    if "splits_train" in arrays and "splits_test" in arrays:
        return list(zip(arrays["splits_train"], arrays["splits_test"], strict=True))
    if "test_mask" in arrays:
        rows, masks = np.arange(n_samples), arrays["test_mask"].astype(bool)
        return [(rows[~mask], rows[mask]) for mask in masks]
    return None
