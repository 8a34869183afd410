"""``manykernels fit``: learn from a table, report, and write the model."""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from manykernels import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
from manykernels.cli.arguments import count, norm, positive, seed, share
from manykernels.cli.bank import make_kernels
from manykernels.cli.encoder import TableEncoder
from manykernels.cli.progress import learning_bar, path_bar
from manykernels.cli.scores import accuracy_row, constant_row, r2_row
from manykernels.cli.show import report_console, say, show_model, show_notes, side_console
from manykernels.cli.tables import read_table, table_stem
from manykernels.cli.target import hold_out, take_target
from manykernels.reports import scores_table

SUMMARY = "learn from a table and write a model"
DESCRIPTION = """\
Learn to predict one column of a table from the others. Some rows are held out
to score the model; the kernels are Gaussian and polynomial ones, on all
columns together and on each column."""
EPILOG = """\
examples:
  manykernels fit people.csv --target churn
  manykernels fit houses.parquet --target price --regression --norm 2 --C 10"""

LOSSES = {False: ("hinge", "squared_hinge", "logistic"), True: ("squared", "epsilon_insensitive")}
# The key of the model file under which the command keeps what the estimator does not know.
EXTRA = "command"


# Flag, type, default, placeholder, explanation.
NUMBERS = (
    ("--norm", norm, 1.0, "P", "1 picks few kernels, inf takes all alike"),
    ("--C", positive, 1.0, "C", "weight of the errors; less is smoother"),
    ("--test-size", share, 0.25, "S", "share of the rows to hold out"),
    ("--tol", positive, 1e-3, "T", "relative duality gap to reach"),
    ("--max-iter", count, 1000, "N", "number of iterations to stop after"),
    ("--seed", seed, 0, "N", "seed of the choice of the held-out rows"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of this command."""
    formats = ".csv, .tsv, .arff, .svm (each also .gz), .parquet"
    parser.add_argument("table", metavar="TABLE", help=f"table to learn from: {formats}")
    parser.add_argument("--target", required=True, metavar="COL", help="column to predict (in LIBSVM files: target)")
    parser.add_argument("--regression", action="store_true", help="predict a number instead of a class")
    parser.add_argument(
        "--model", metavar="OUT", help="file to write (default: TABLE's name with .mkl, in this folder)"
    )
    losses = f"{', '.join(LOSSES[False])}; with --regression {', '.join(LOSSES[True])}"
    parser.add_argument("--loss", metavar="L", help=f"how errors count: {losses} (default: the first)")
    parser.add_argument(
        "--tune", action="store_true", help="choose C and the norm by cross-validation, instead of --C and --norm"
    )
    for flag, kind, default, placeholder, words in NUMBERS:
        text = f"{words} (default {default:g})"
        parser.add_argument(flag, type=kind, default=default, metavar=placeholder, help=text)


def run(arguments: argparse.Namespace) -> None:
    """Read, split, encode, learn, report, save."""
    console, side = report_console(), side_console()
    output, estimator = _output(arguments), _estimator(arguments)
    features, target = take_target(read_table(arguments.table), arguments.target, arguments.regression)
    train, test = hold_out(target, arguments.test_size, arguments.seed, arguments.regression)
    encoder = TableEncoder().fit(features.iloc[train])
    # Both parts are encoded before the fit, so that a bad cell in either is reported at once.
    X_train, X_test = encoder.transform(features.iloc[train]), encoder.transform(features.iloc[test])
    kernels, shortened = make_kernels(encoder.sources)
    rows = f"{len(train)} rows to learn from, {len(test)} held out"
    say(
        console,
        f"{rows}; {len(encoder.sources)} columns as {X_train.shape[1]} features; {len(kernels)} kernels.",
    )
    show_notes(side, [*encoder.notes, *([shortened] if shortened else [])])

    start = time.perf_counter()
    with path_bar(side, "Choosing C and the norm") if arguments.tune else learning_bar(side, "Learning"):
        estimator.set_params(kernels=kernels).fit(X_train, target[train])
    if arguments.tune:
        words = f"C = {estimator.C_:g} and norm = {estimator.norm_:g} are best in cross-validation"
        say(console, f"{words}: {estimator.best_score_:.3f} on average.")
    show_model(console, estimator, time.perf_counter() - start)
    _show_scores(console, estimator, X_test, target[test], target[train])

    kept = {"encoder": encoder.to_dict(), "target": arguments.target, "regression": arguments.regression}
    estimator.save(output, extra={EXTRA: kept})
    say(console, f"The model{' that was scored' if len(test) else ''} is in {output}. To use it:")
    say(console, f"  manykernels predict {output} TABLE")


def _output(arguments: argparse.Namespace) -> Path:
    """Check the file to write before the work, not after it."""
    output = Path(arguments.model or f"{table_stem(arguments.table)}.mkl")
    if output.is_dir() or not output.parent.is_dir():
        problem = "it is a folder" if output.is_dir() else f"there is no folder '{output.parent}'"
        raise ValueError(f"--model must be a file that can be written; got '{output}', but {problem}.")
    if not os.access(output if output.exists() else output.parent, os.W_OK):
        raise ValueError(f"--model must be a file that can be written; got '{output}', which is protected.")
    return output


def _estimator(arguments: argparse.Namespace) -> Any:
    losses = LOSSES[arguments.regression]
    loss = arguments.loss or losses[0]
    if loss not in losses:
        task = "with --regression" if arguments.regression else "for classes"
        raise ValueError(f"--loss must be one of {', '.join(losses)} {task}; got {loss!r}.")
    shared = {"loss": loss, "tol": arguments.tol, "max_iter": arguments.max_iter, "random_state": arguments.seed}
    if arguments.tune:
        return (MKLRegressorCV if arguments.regression else MKLClassifierCV)(**shared)
    kind = MKLRegressor if arguments.regression else MKLClassifier
    return kind(norm=arguments.norm, C=arguments.C, **shared)


def _show_scores(console: Console, estimator: Any, X_test: np.ndarray, truth: np.ndarray, trained: np.ndarray) -> None:
    if not len(truth):
        say(console, "No rows were held out (--test-size 0), so there is no score.")
        return
    regression = not hasattr(estimator, "classes_")
    score = r2_row if regression else accuracy_row
    rows = [
        score("learned kernels", estimator.predict(X_test), truth),
        constant_row(trained, truth, regression),
    ]
    title, metric = f"On the {len(truth)} held-out rows", "R2" if regression else "accuracy"
    console.print(scores_table(rows, title=title, metric=metric))
