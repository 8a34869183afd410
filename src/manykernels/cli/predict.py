"""``manykernels predict``: apply a model to a table."""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from manykernels import load
from manykernels.cli.encoder import TableEncoder
from manykernels.cli.fit import EXTRA
from manykernels.cli.show import say, side_console
from manykernels.cli.tables import is_libsvm, read_table

SUMMARY = "apply a model to a table"
DESCRIPTION = """\
Predict each row of a table with a model that `manykernels fit` wrote. The
predictions are written as CSV, in the order of the rows: prediction; for two
classes decision (positive for the second class in the alphabet); and
proba_<class> where the model has probabilities (fit --loss logistic)."""
EPILOG = """\
example:
  manykernels predict people.mkl new_people.csv --output predictions.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of this command."""
    parser.add_argument("model", metavar="MODEL", help="file that `manykernels fit` wrote")
    parser.add_argument(
        "table",
        metavar="TABLE",
        help="table with the columns of the training table (the target may be absent, others are ignored)",
    )
    parser.add_argument("--output", metavar="FILE", help="CSV file to write (default: standard output)")


def run(arguments: argparse.Namespace) -> None:
    """Load, encode, predict, write."""
    model, kept = _load(Path(arguments.model))
    encoder = TableEncoder.from_dict(kept.get("encoder", {}))
    if arguments.output and not Path(arguments.output).parent.is_dir():
        raise ValueError(f"--output must lie in a folder that exists; got '{arguments.output}'.")
    table = read_table(arguments.table)
    if is_libsvm(arguments.table):
        table = _with_zeros(table, encoder)
    predictions = _predictions(model, encoder.transform(table))
    predictions.to_csv(arguments.output or sys.stdout, index=False)
    if arguments.output:
        say(side_console(), f"{len(predictions)} predictions are in {arguments.output}.")


def _load(path: Path) -> tuple[Any, dict[str, Any]]:
    if not path.is_file():
        raise ValueError(f"MODEL must be a file that `manykernels fit` wrote; there is no file '{path}'.")
    model = load(path)
    kept = model.extra_.get(EXTRA)
    if kept is None:
        raise ValueError(
            f"MODEL must be a file that `manykernels fit` wrote; '{path}' comes from Python and does not "
            "say how to read a table."
        )
    return model, kept


def _with_zeros(table: pd.DataFrame, encoder: TableEncoder) -> pd.DataFrame:
    """Add the features that no row of a LIBSVM file mentions: they are zero."""
    absent = [name for name in encoder.sources if name not in table and re.fullmatch(r"f\d+", name)]
    return pd.concat([table, pd.DataFrame(0.0, index=table.index, columns=pd.Index(absent))], axis=1)


def _predictions(model: Any, X: np.ndarray) -> pd.DataFrame:
    columns: dict[str, np.ndarray] = {"prediction": model.predict(X)}
    classes = getattr(model, "classes_", ())
    if len(classes) == 2:
        columns["decision"] = model.decision_function(X)
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X)
        columns |= {f"proba_{label}": probabilities[:, index] for index, label in enumerate(classes)}
    return pd.DataFrame(columns)
