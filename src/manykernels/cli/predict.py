"""``manykernels predict``: apply a model to a table."""

import argparse
import sys
from typing import Any

import numpy as np
import pandas as pd

from manykernels.cli.model_file import open_model
from manykernels.cli.outputs import check_output
from manykernels.cli.show import say, side_console
from manykernels.core.files import replacing
from manykernels.tables.encoder import encode_table

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
    if arguments.output:
        check_output("--output", arguments.output, [arguments.model, arguments.table])
    model, encoder, _ = open_model(arguments.model)
    predictions = _predictions(model, encode_table(arguments.table, encoder)[1])
    if not arguments.output:
        predictions.to_csv(sys.stdout, index=False)
    else:
        with replacing(arguments.output) as place:
            predictions.to_csv(place, index=False)
        say(side_console(), f"{len(predictions)} predictions are in {arguments.output}.")


def _predictions(model: Any, X: np.ndarray) -> pd.DataFrame:
    columns: dict[str, np.ndarray] = {"prediction": model.predict(X)}
    classes = getattr(model, "classes_", ())
    if len(classes) == 2:
        columns["decision"] = model.decision_function(X)
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X)
        columns |= {f"proba_{label}": probabilities[:, index] for index, label in enumerate(classes)}
    return pd.DataFrame(columns)
