"""The result of a fit as plain data, for programs."""

import math
import sys
from importlib.metadata import version
from typing import Any

import numpy as np

from manykernels.tables.encoder import TableEncoder

PACKAGES = ("manykernels", "numpy", "scipy", "scikit-learn", "pandas")


def columns_of(encoder: TableEncoder, views: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Return what each column is and what became of it.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted.
    views : dict
        The columns of each view, by its name.

    Returns
    -------
    columns : list of dict
        Each has the name, the kind, the view (None without views), and the number of outputs; a column that is left
        out has the kind None and a reason.

    Examples
    --------
    >>> import pandas as pd
    >>> encoder = TableEncoder().fit(pd.DataFrame({"age": [30, 50], "city": ["Rome", "Rome"]}))
    >>> columns_of(encoder, {})[0]
    {'name': 'age', 'kind': 'number', 'view': None, 'outputs': 1}
    """
    view_of = {name: view for view, columns in views.items() for name in columns}
    used = [
        {"name": block.name, "kind": block.kind, "view": view_of.get(block.name), "outputs": len(block.outputs)}
        for block in encoder.blocks
    ]
    gone = [
        {"name": name, "kind": None, "view": None, "outputs": 0, "reason": reason.rstrip(",")}
        for name, reason in encoder.left_out.items()
    ]
    return used + gone


def weights_of(model: Any) -> dict[str, Any]:
    """Return the positive weights of kernels, and those of the views (without views: of the columns).

    Parameters
    ----------
    model : estimator
        Fitted, with one set of weights.

    Returns
    -------
    weights : dict
        ``kernels``, the largest weight first, and ``views``.
    """
    order = [int(k) for k in np.argsort(-model.weights_, kind="stable") if model.weights_[k] > 0]
    kernels = [
        {"kernel": model.kernel_names_[k], "view": model.kernel_groups_[k], "weight": model.weights_[k]} for k in order
    ]
    views = [
        {"view": name, "weight": weight} for name, weight in zip(model.group_names_, model.group_weights_, strict=True)
    ]
    return {"kernels": kernels, "views": views}


def certificate_of(model: Any) -> dict[str, Any]:
    """Return how close to the optimum a fitted estimator is.

    Parameters
    ----------
    model : estimator
        Fitted.

    Returns
    -------
    certificate : dict
    """
    return {
        "objective": model.objective_,
        "dual_objective": model.dual_objective_,
        "gap": model.gap_,
        "tol": model.tol,
        "converged": model.converged_,
        "iterations": model.n_iter_,
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that the numbers depend on."""
    return {"python": sys.version.split()[0], **{name: version(name) for name in PACKAGES}}


def for_json(value: Any) -> Any:
    """Return a value that JSON can hold: infinity becomes "inf", NaN becomes None.

    Parameters
    ----------
    value : object
        Numbers of NumPy or Python, text, and lists and dicts of these.

    Returns
    -------
    value : object

    Examples
    --------
    >>> for_json({"norm": math.inf, "r2": np.float64("nan"), "rows": np.int64(3)})
    {'norm': 'inf', 'r2': None, 'rows': 3}
    """
    if isinstance(value, dict):
        return {str(key): for_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [for_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
