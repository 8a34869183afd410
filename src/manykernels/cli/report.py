"""``manykernels report``: what a model learned and how good it is, in one HTML file."""

import argparse
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from manykernels.cli.arguments import count, folds, seed
from manykernels.cli.outputs import check_output

if TYPE_CHECKING:
    import pandas as pd

    from manykernels.tables.encoder import TableEncoder

DESCRIPTION = """\
Write a report on a model that `manykernels fit` wrote: what it learned, how
sure and how good it is, and how it was computed. The model and simpler ones
are fitted anew in each fold of a cross-validation on TABLE, so that every
score is of models that have not seen the row."""
EPILOG = """\
example:
  manykernels report people.mkl people.csv --out people.html"""

MAX_ROWS = 5000
ENCODED = (
    "Columns were encoded as when the model was made: scales, medians and levels are those of its training rows, which "
    "may include rows that a refit does not see. The target plays no role in them."
)

CHOSEN = (
    "`fit --cv` chose C and the norm on rows that are scored here: scores may be slightly too good, except that on "
    "the rows that `fit` held out."
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
    # These take seconds to import; help should not wait for them.
    from manykernels.cli.model_file import open_model  # noqa: PLC0415
    from manykernels.cli.show import report_console, say  # noqa: PLC0415
    from manykernels.tables.encoder import encode_table  # noqa: PLC0415
    from manykernels.tables.held_out import held_out  # noqa: PLC0415
    from manykernels.tables.table_kernels import make_kernels  # noqa: PLC0415
    from manykernels.tables.target import take_target  # noqa: PLC0415

    out = arguments.out or f"{Path(arguments.model).stem}.html"
    out = check_output("--out", out, [arguments.model, arguments.table])
    model, encoder, settings = open_model(arguments.model)
    target = settings.target
    table, X = encode_table(arguments.table, encoder)
    features, y = take_target(table, target, settings.regression, arguments.table, model)
    unseen = held_out(features, y, encoder, **settings.of_held_out())
    report = model.report(
        X,
        y,
        out,
        X_test=X[unseen] if unseen.size else None,
        y_test=y[unseen] if unseen.size else None,
        kernels=make_kernels(encoder.blocks, settings.views)[0],
        folds=arguments.folds,
        max_samples=arguments.max_rows,
        feature_names=[block.name for block in encoder.blocks for _ in block.outputs],
        data=_data(features, encoder),
        title=f"{target} from {Path(arguments.table).name}",
        reproduce=_command(arguments),
        notes=[ENCODED, *([CHOSEN] if settings.cv else []), *encoder.notes],
        random_state=arguments.seed,
    )
    score, metric = report.assessment.model.score, report.assessment.metric
    console = report_console()
    say(console, f"On unseen rows, {metric} is {score.value:.4f} (95% interval {score.low:.4f} to {score.high:.4f}).")
    say(console, f"The report is in {out}.")


def _data(features: "pd.DataFrame", encoder: "TableEncoder") -> list[tuple[str, str]]:
    """Return facts about the columns of the table, not about the numbers that they became."""
    kinds = Counter(block.kind for block in encoder.blocks)
    gaps = features[list(encoder.columns)].isna().sum()
    where = f" in {int((gaps > 0).sum()):,} of the columns" if gaps.any() else ""
    facts = [
        ("columns", f"{len(encoder.columns):,} ({', '.join(f'{kind}: {count:,}' for kind, count in kinds.items())})"),
        ("features that they became", f"{len(encoder.feature_names):,}"),
        ("missing values", f"{int(gaps.sum()):,}{where}"),
    ]
    return [*facts, *([("columns left out", f"{len(encoder.left_out):,}")] if encoder.left_out else [])]


def _command(arguments: argparse.Namespace) -> str:
    options = [arguments.model, arguments.table, "--folds", arguments.folds, "--seed", arguments.seed]
    options += ["--max-rows", arguments.max_rows] if arguments.max_rows != MAX_ROWS else []
    options += ["--out", arguments.out] if arguments.out else []
    return shlex.join(["manykernels", "report", *map(str, options)])
