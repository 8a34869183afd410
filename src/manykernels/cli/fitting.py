"""The work of ``manykernels fit``: prepare the table, learn, report, save."""

import argparse
import json
import shlex
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from sklearn.model_selection import KFold, StratifiedKFold

from manykernels import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
from manykernels.cli.document import certificate_of, columns_of, for_json, versions, weights_of
from manykernels.cli.flags import in_flags
from manykernels.cli.learning_bars import learning_bar, path_bar
from manykernels.cli.model_file import EXTRA, TableSettings
from manykernels.cli.outputs import check_output
from manykernels.cli.scores import HeldOutScores, held_out_scores
from manykernels.cli.show import NAMED, counted, report_console, say, show_columns, show_model, show_notes, side_console
from manykernels.core.notices import listed
from manykernels.estimators.loss_and_norm import named_losses
from manykernels.reports import scores_table
from manykernels.reports.steps import METRICS
from manykernels.tables.column_views import read_views
from manykernels.tables.prepared import PreparedTable, prepare_table
from manykernels.tables.reading import table_stem


def fit_table(arguments: argparse.Namespace) -> None:
    """Do what the arguments of the command say."""
    start = time.perf_counter()
    console, side = report_console(quiet=arguments.json), side_console()
    output = check_output(
        "--model",
        arguments.model or f"{table_stem(arguments.table)}.mkl",
        [arguments.table, *([arguments.views] if arguments.views else [])],
    )
    _check_loss(arguments)
    data = _prepared(arguments)
    notes = [in_flags(note) for note in data.notes]
    _show_data(console, data)
    show_notes(side, notes)
    bar = path_bar(side, "Choosing C, norm") if arguments.cv else learning_bar(side, "Learning")
    fit = _learned(_estimator(arguments, data), data, bar)
    settings = _settings(arguments, data)
    fit.estimator.save(output, extra={EXTRA: {"encoder": data.encoder.to_dict(), **asdict(settings)}})
    scores = held_out_scores(data, fit.estimator.predict(data.X_test) if len(data.y_test) else data.y_test)
    verdict = _verdict(scores, bool(arguments.cv))
    _show_fit(console, arguments, data, fit, scores)
    show_notes(side, verdict)
    say(console, f"The model{' that was scored' if scores else ''} is in {output}. To use it:")
    say(console, f"  manykernels predict {shlex.quote(str(output))} TABLE")
    if arguments.json:
        result = {"table": arguments.table, "model": str(output), **_document(arguments, data, fit.estimator, scores)}
        result["notes"] = [*notes, *fit.warned, *verdict]
        result["seconds"] = {"fit": fit.seconds, "all": time.perf_counter() - start}
        print(json.dumps(for_json(result), indent=2, allow_nan=False))


def _prepared(arguments: argparse.Namespace) -> PreparedTable:
    data = prepare_table(
        arguments.table,
        arguments.target,
        regression=arguments.regression,
        views=read_views(arguments.views),
        test_size=arguments.test_size,
        seed=arguments.seed,
        balance=arguments.balance,
    )
    if arguments.cv:
        _check_folds(arguments.cv, data)
    return data


@dataclass(frozen=True)
class _Fit:
    """A fitted estimator, how long it took, and what was warned of meanwhile."""

    estimator: Any
    seconds: float
    warned: list[str]


def _learned(estimator: Any, data: PreparedTable, bar: AbstractContextManager[list[str]]) -> _Fit:
    start = time.perf_counter()
    with bar as warned:
        estimator.fit(data.X_train, data.y_train)
    return _Fit(estimator, time.perf_counter() - start, warned)


def _check_folds(folds: int, data: PreparedTable) -> None:
    rows, balance = len(data.y_train), data.balance
    if folds > rows:
        raise ValueError(f"--cv {folds} needs as many rows to learn from; there are {rows}.")
    if data.is_regression and 2 * folds > rows:  # one row has no R2
        raise ValueError(f"--cv {folds} needs {2 * folds} rows to learn from, two in each fold; there are {rows}.")
    if balance is not None:
        rare = min(balance.counts, key=lambda label: balance.counts[label])
        if balance.counts[rare] < folds:
            raise ValueError(
                f"--cv {folds} needs {folds} rows of each class to learn from; class {rare!r} has "
                f"{balance.counts[rare]} (use fewer folds)."
            )


def _check_loss(arguments: argparse.Namespace) -> None:
    losses = tuple(named_losses(of_classes=not arguments.regression))
    if arguments.loss and arguments.loss not in losses:
        task = "with --regression" if arguments.regression else "for classes"
        raise ValueError(f"--loss must be one of {', '.join(losses)} {task}; got {arguments.loss!r}.")


def _estimator(arguments: argparse.Namespace, data: PreparedTable) -> Any:
    shared: dict[str, Any] = {"kernels": data.kernels, "tol": arguments.tol}
    shared |= {"max_iter": arguments.max_iter, "random_state": arguments.seed}
    if arguments.loss:
        shared["loss"] = arguments.loss
    if data.balance is not None:
        shared["class_weight"] = data.balance.class_weight
    if not arguments.cv:
        kind = MKLRegressor if data.is_regression else MKLClassifier
        return kind(norm=arguments.norm, C=arguments.C, **shared)
    # Tables are often sorted, hence the shuffling.
    if data.is_regression:
        return MKLRegressorCV(cv=KFold(arguments.cv, shuffle=True, random_state=arguments.seed), **shared)
    folds = StratifiedKFold(arguments.cv, shuffle=True, random_state=arguments.seed)
    # Without a scorer it is accuracy, too, and no fit has to learn probabilities.
    return MKLClassifierCV(cv=folds, scoring=None if data.metric == "accuracy" else data.metric, **shared)


def _settings(arguments: argparse.Namespace, data: PreparedTable) -> TableSettings:
    return TableSettings(
        target=arguments.target,
        regression=arguments.regression,
        test_size=arguments.test_size,
        seed=arguments.seed,
        balance=arguments.balance,
        weighted=data.balance is not None and data.balance.weighted,
        rows=len(data.y_train) + len(data.y_test),
        cv=arguments.cv,
        views=data.views,
        classes=data.balance.counts if data.balance is not None else {},
    )


def _show_data(console: Console, data: PreparedTable) -> None:
    show_columns(console, data.encoder)
    rows = f"{counted(len(data.y_train), 'row')} to learn from, {len(data.y_test)} held out"
    columns = f"{counted(len(data.encoder.columns), 'column')} as {counted(data.X_train.shape[1], 'feature')}"
    views = f"; {counted(len(data.views), 'view')}" if data.views else ""
    for view, names in data.views.items():
        say(console, f"view {view}: {listed(names, NAMED)}")
    say(console, f"{rows}; {columns}{views}; {counted(len(data.kernels), 'kernel')}.")


def _choice(estimator: Any, data: PreparedTable) -> str:
    words = f"C = {estimator.C_:g} and norm = {estimator.norm_:g} are best in cross-validation"
    return f"{words}: {METRICS[data.metric]} {estimator.best_score_:.3f} on average."


def _show_fit(
    console: Console, arguments: argparse.Namespace, data: PreparedTable, fit: _Fit, scores: HeldOutScores | None
) -> None:
    if arguments.cv:
        say(console, _choice(fit.estimator, data))
    show_model(console, fit.estimator, fit.seconds, views=bool(data.views))
    if scores is None:
        say(console, "No rows were held out (--test-size 0), so there is no score.")
    else:
        _show_scores(console, scores)


def _show_scores(console: Console, scores: HeldOutScores) -> None:
    rows = counted(scores.count, "held-out row")
    if scores.is_of_one_value:
        learned, constant = scores.learned["rmse"], scores.constant["rmse"]
        words = f"the root mean squared error is {learned:.4g} with the learned kernels, {constant:.4g} with the mean"
        say(console, f"{rows} of one value cannot be scored by R2; {words}.")
        return
    console.print(scores_table(scores.rows, title=f"On the {rows}", metric=scores.head, beside=scores.beside))


def _verdict(scores: HeldOutScores | None, tuned: bool) -> list[str]:
    """Return a note if nothing was learned: the predictions are no better than those that need no features."""
    if scores is None or not scores.learned_nothing:
        return []
    advice = "the columns may not predict the target" if tuned else "try --cv, which chooses C and the norm"
    words = f"By {METRICS[scores.metric]}, the learned kernels are no better than {scores.constant_name!r}: {advice}."
    return [words]


def _document(
    arguments: argparse.Namespace, data: PreparedTable, estimator: Any, scores: HeldOutScores | None
) -> dict[str, Any]:
    """Return the whole result as plain data."""
    cv = None
    if arguments.cv:
        cv = {"folds": arguments.cv, "metric": METRICS[data.metric], "score": estimator.best_score_}
    return {
        "settings": {
            **_settings(arguments, data).asked(),
            "loss": estimator.loss,
            "C": estimator.C_ if arguments.cv else estimator.C,
            "norm": estimator.norm_ if arguments.cv else estimator.norm,
            "max_iter": arguments.max_iter,
        },
        "data": {
            "rows": {"train": len(data.y_train), "test": len(data.y_test)},
            "classes": data.balance.counts if data.balance is not None else None,
            "columns": len(data.encoder.columns),
            "features": data.X_train.shape[1],
            "kernels": len(data.kernels),
        },
        "columns": columns_of(data.encoder, data.views),
        "views": data.views,
        "weights": weights_of(estimator),
        "certificate": certificate_of(estimator),
        "cross_validation": cv,
        "scores": scores and {"learned": scores.learned, "constant": scores.constant},
        "versions": versions(),
    }
