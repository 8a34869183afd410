"""Model files of the command: what is kept beside the estimator, and how to use them on a table."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from manykernels import load
from manykernels.cli.encoder import TableEncoder
from manykernels.cli.tables import is_libsvm, read_table
from manykernels.cli.target import hold_out

# The key of the model file under which the command keeps what the estimator does not know.
EXTRA = "command"
# What is kept there, beside the encoder.
SETTINGS = ("target", "regression", "test_size", "seed", "rows", "cv", "views", "balance", "weighted", "classes")


def open_model(path: str | Path) -> tuple[Any, TableEncoder, dict[str, Any]]:
    """Open a model that ``manykernels fit`` wrote.

    Parameters
    ----------
    path : path
        Of the model.

    Returns
    -------
    estimator : MKLClassifier or MKLRegressor
        Fitted.
    encoder : TableEncoder
        Turns a table into what the estimator takes.
    settings : dict
        ``target``, ``regression``, ``test_size``, ``seed`` (with `hold_out` they give the held-out rows again),
        ``rows`` (of the whole table, held-out ones included), ``views`` (from each view to its columns), ``balance``
        (what was asked for), ``weighted`` (whether errors are) and ``classes`` (rows of each in training).
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"MODEL must be a file that `manykernels fit` wrote; there is no file '{path}'.")
    model = load(path)
    kept = model.extra_.get(EXTRA)
    if kept is None:
        raise ValueError(
            f"MODEL must be a file that `manykernels fit` wrote; '{path}' comes from Python and does not "
            "say how to read a table."
        )
    if not isinstance(kept, dict) or set(kept) != {"encoder", *SETTINGS}:
        raise ValueError(f"MODEL must be a file that `manykernels fit` wrote; '{path}' lacks settings: fit it anew.")
    return model, TableEncoder.from_dict(kept["encoder"]), {key: kept[key] for key in SETTINGS}


def encode_table(path: str | Path, encoder: TableEncoder) -> tuple[pd.DataFrame, np.ndarray]:
    """Read a table and encode it for a model.

    Parameters
    ----------
    path : path
        Of the table, in any format that `read_table` knows.
    encoder : TableEncoder
        Of the model.

    Returns
    -------
    table : pandas.DataFrame
        As it was read, with the target if it is there.
    X : array of shape (n_rows, n_outputs)
    """
    table = read_table(path)
    if is_libsvm(path):
        # Features that no row of a LIBSVM file mentions are zero.
        absent = [name for name in encoder.columns if name not in table and re.fullmatch(r"f\d+", name)]
        table = pd.concat([table, pd.DataFrame(0.0, index=table.index, columns=pd.Index(absent))], axis=1)
    return table, encoder.transform(table)


def held_out(features: pd.DataFrame, y: np.ndarray, encoder: TableEncoder, settings: dict[str, Any]) -> np.ndarray:
    """Return the rows that ``fit`` held out, none where the table is not the one that it read.

    Parameters
    ----------
    features : pandas.DataFrame
        The table without its target.
    y : array of shape (n_rows,)
        The target.
    encoder : TableEncoder
        Of the model.
    settings : dict
        Of the model.

    Returns
    -------
    rows : array of int
    """
    nothing = np.zeros(0, dtype=np.int64)
    if settings["rows"] != len(y) or not settings["test_size"]:
        return nothing
    # The encoding knows the training rows: it is learned anew, and must be the same.
    kinds = {block.name: block.kind for block in encoder.blocks}
    try:
        train, test = hold_out(y, settings["test_size"], settings["seed"], settings["regression"])
        again = TableEncoder(kinds).fit(features[list(kinds)], train)
    except ValueError:  # this target, or a column of these rows, does not allow what that of `fit` did
        return nothing
    return test if again.to_dict()["columns"] == encoder.to_dict()["columns"] else nothing
