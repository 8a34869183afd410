"""``manykernels report``: what a model learned and how good it is, in one HTML file."""

import argparse
from pathlib import Path

from manykernels.cli.arguments import count, folds, seed
from manykernels.cli.outputs import check_output

DESCRIPTION = """\
Write a report on a model that `manykernels fit` wrote: what it learned, how
sure and how good it is, and how it was computed. Its settings are fitted anew
in each fold of a cross-validation on TABLE, beside simpler ways to learn, so
that every score is of models that have not seen the row."""
EPILOG = """\
example:
  manykernels report people.mkl people.csv --out people.html"""

MAX_ROWS = 5000
ENCODED = (
    "Columns were encoded as when the model was made: scales, medians and levels are those of its training rows, also "
    "for rows that a refit does not see. The target has no part in them."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of this command."""
    parser.add_argument("model", metavar="MODEL", help="file that `manykernels fit` wrote")
    parser.add_argument("table", metavar="TABLE", help="table with the target, as a rule the one that fit learned from")
    parser.add_argument("--out", metavar="FILE", help="HTML file to write (default: MODEL's name with .html, here)")
    parser.add_argument("--folds", type=folds, default=5, metavar="K", help="folds of the cross-validation (default 5)")
    parser.add_argument(
        "--max-rows", type=count, default=MAX_ROWS, metavar="N", help=f"rows to use at most (default {MAX_ROWS})"
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="seed of the folds (default 0)")


def run(arguments: argparse.Namespace) -> None:
    """Open the model, encode the table, assess, write."""
    # They take seconds to import, which help should not.
    from manykernels.cli.bank import make_kernels  # noqa: PLC0415
    from manykernels.cli.opened import encode_table, open_model  # noqa: PLC0415
    from manykernels.cli.show import report_console, say  # noqa: PLC0415
    from manykernels.cli.target import take_target  # noqa: PLC0415

    out = arguments.out or f"{Path(arguments.model).stem}.html"
    out = check_output("--out", out, [arguments.model, arguments.table])
    model, encoder, settings = open_model(arguments.model)
    target = settings["target"]
    table, X = encode_table(arguments.table, encoder)
    report = model.report(
        X,
        take_target(table, target, settings["regression"], arguments.table, model)[1],
        out,
        kernels=make_kernels(encoder.blocks, settings["views"])[0],
        folds=arguments.folds,
        max_samples=arguments.max_rows,
        feature_names=encoder.feature_names,
        title=f"{target} from {Path(arguments.table).name}",
        reproduce=_command(arguments),
        notes=[ENCODED, *encoder.notes],
        random_state=arguments.seed,
    )
    score, metric = report.assessment.model.score, report.assessment.metric
    console = report_console()
    say(console, f"On unseen rows, {metric} is {score.value:.4f} (95% interval {score.low:.4f} to {score.high:.4f}).")
    say(console, f"The report is in {out}.")


def _command(arguments: argparse.Namespace) -> str:
    names = f"{Path(arguments.model).name} {Path(arguments.table).name}"
    rows = f" --max-rows {arguments.max_rows}" if arguments.max_rows != MAX_ROWS else ""
    return f"manykernels report {names} --folds {arguments.folds} --seed {arguments.seed}{rows}"
