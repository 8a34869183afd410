"""``manykernels fit``: its arguments. The work is in `manykernels.cli.fitting`, so that help comes at once."""

import argparse
from typing import Any

from manykernels.cli.arguments import count, folds, norm, positive, seed, share

DESCRIPTION = """\
Learn to predict one column of a table from the others. Some rows are held out
to score the model.

Columns may be numbers, true or false, categories, dates or free text, with
missing values; what each one is taken for is printed. There are kernels for
each column and for all together: Gaussian and polynomial ones for numbers and
dates, agreement for categories, words and pieces of words for text."""
EPILOG = """\
views:
  --views prefix makes a view of the columns whose names begin alike, up to the
  first _ . or : (rna_tp53, rna_egfr; clinical.age, clinical.sex). A file can
  say more, also what some columns are: number, boolean, category, date, text,
  or ignore. A column belongs to the first view that matches it.
    [views]
    blood = ["hb", "lab_*"]
    scan = ["mri_*"]
    [columns]
    zip = "category"
    remarks = "text"

examples:
  manykernels fit people.csv --target churn
  manykernels fit people.csv --target churn --cv --json > result.json
  manykernels fit houses.parquet --target price --regression --norm 2 --C 10
  manykernels fit patients.csv --target relapse --views views.toml"""

BALANCE = ("auto", "yes", "no")
FOLDS = 5

# Flag, type, default, placeholder, explanation.
NUMBERS = (
    ("--norm", norm, 1.0, "P", "1 selects few kernels, inf weights all alike"),
    ("--C", positive, 1.0, "C", "weight of the errors; a smaller one is smoother"),
    ("--test-size", share, 0.25, "S", "share of the rows to hold out"),
    ("--tol", positive, 1e-3, "T", "relative duality gap to reach"),
    ("--max-iter", count, 1000, "N", "number of iterations to stop after"),
    ("--seed", seed, 0, "N", "seed of the choice of the held-out rows and of the folds"),
)


class Given(argparse.Action):
    """Store a value, and that the user gave it."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        """Take the value of an argument."""
        setattr(namespace, self.dest, values)
        namespace.given = (*getattr(namespace, "given", ()), self.option_strings[0])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of this command."""
    formats = ".csv, .tsv, .arff, .svm (each also .gz), .parquet"
    parser.add_argument("table", metavar="TABLE", help=f"table to learn from: {formats}")
    parser.add_argument("--target", required=True, metavar="COL", help="column to predict (in LIBSVM files: target)")
    parser.add_argument("--regression", action="store_true", help="predict a number instead of a class")
    parser.add_argument("--views", metavar="V", help="'prefix' or a .toml file: kernels for each view (see below)")
    parser.add_argument(
        "--cv",
        type=folds,
        nargs="?",
        const=FOLDS,
        metavar="K",
        help=f"choose C and the norm by cross-validation in K folds (default {FOLDS}), instead of --C and --norm",
    )
    parser.add_argument(
        "--balance",
        choices=BALANCE,
        default=BALANCE[0],
        metavar="B",
        help="weight errors so that all classes count alike: yes, no, or auto, where a class is rare (default auto)",
    )
    parser.add_argument(
        "--loss",
        metavar="L",
        help="how errors count, such as hinge (the default) or logistic, which gives probabilities; with --regression "
        "squared (the default) or absolute, which outliers hardly move. Any other word lists them all",
    )
    for flag, kind, default, placeholder, words in NUMBERS:
        text = f"{words} (default {default:g})"
        parser.add_argument(flag, type=kind, default=default, metavar=placeholder, help=text, action=Given)
    parser.add_argument(
        "--model", metavar="OUT", help="file to write (default: TABLE's name with .mkl, in this folder)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON document, nothing else")


def check(arguments: argparse.Namespace) -> None:
    """Raise where arguments contradict each other."""
    chosen = [flag for flag in getattr(arguments, "given", ()) if flag in ("--C", "--norm")]
    if arguments.cv and chosen:
        raise ValueError(f"--cv chooses C and the norm; leave out {' and '.join(chosen)}, or --cv.")
    if arguments.regression and arguments.balance == "yes":
        raise ValueError("--balance yes is for classes; leave it out, or --regression.")


def run(arguments: argparse.Namespace) -> None:
    """Learn from the table."""
    check(arguments)
    from manykernels.cli.fitting import fit_table  # noqa: PLC0415 - it takes seconds to import

    fit_table(arguments)
