"""The work of ``manykernels fit``: prepare the table, learn, report, save."""

import argparse
import json
import shlex
import time
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.model_selection import KFold, StratifiedKFold

from manykernels import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
from manykernels.cli.document import certificate_of, columns_of, plain, versions, weights_of
from manykernels.cli.flags import in_flags
from manykernels.cli.learning_bars import learning_bar, path_bar
from manykernels.cli.model_file import EXTRA
from manykernels.cli.outputs import check_output
from manykernels.cli.scores import accuracy_row, balanced_accuracy, constant_name, constant_prediction, figures, r2_row
from manykernels.cli.show import counted, report_console, say, show_columns, show_model, show_notes, side_console
from manykernels.core.notices import listed
from manykernels.estimators.loss_and_norm import named_losses
from manykernels.reports import scores_table
from manykernels.tables.column_views import read_views
from manykernels.tables.prepared import PreparedTable, prepare_table
from manykernels.tables.reading import table_stem

# Settings of the model file that are facts about the data.
_OF_DATA = ("rows", "views", "classes", "cv")
# How many columns of a view are named; the others are counted.
_NAMED = 6


def fit_table(arguments: argparse.Namespace) -> None:
    """Do what the arguments of the command say."""
    start = time.perf_counter()
    console, side = report_console(quiet=arguments.json), side_console()
    output = check_output(
        "--model",
        arguments.model or f"{table_stem(arguments.table)}.mkl",
        [arguments.table, *([arguments.views] if arguments.views else [])],
    )
    loss, views = _loss(arguments), read_views(arguments.views)
    data = prepare_table(
        arguments.table,
        arguments.target,
        regression=arguments.regression,
        views=views,
        test_size=arguments.test_size,
        seed=arguments.seed,
        balance=arguments.balance,
    )
    if arguments.cv:
        _check_folds(arguments.cv, data)
    _show_data(console, data)
    notes = [in_flags(note) for note in data.notes]
    show_notes(side, notes)

    estimator = _estimator(arguments, data, loss)
    bar = path_bar(side, "Choosing C, norm") if arguments.cv else learning_bar(side, "Learning")
    learning = time.perf_counter()
    with bar as warned:
        estimator.fit(data.X_train, data.y_train)
    seconds = time.perf_counter() - learning
    settings = _settings(arguments, data)
    estimator.save(output, extra={EXTRA: {"encoder": data.encoder.to_dict(), **settings}})

    predicted = estimator.predict(data.X_test) if len(data.y_test) else data.y_test
    if arguments.cv:
        say(console, _choice(estimator, data))
    show_model(console, estimator, seconds, views=bool(data.views))
    _show_scores(console, data, predicted)
    verdict = _verdict(data, predicted, bool(arguments.cv))
    show_notes(side, verdict)
    say(console, f"The model{' that was scored' if len(predicted) else ''} is in {output}. To use it:")
    say(console, f"  manykernels predict {shlex.quote(str(output))} TABLE")
    if arguments.json:
        result = {"table": arguments.table, "model": str(output), **_document(arguments, data, estimator, predicted)}
        result["notes"] = [*notes, *warned, *verdict]
        result["seconds"] = {"fit": seconds, "all": time.perf_counter() - start}
        print(json.dumps(plain(result), indent=2, allow_nan=False))


def _check_folds(folds: int, data: PreparedTable) -> None:
    rows, balance = len(data.y_train), data.balance
    if folds > rows:
        raise ValueError(f"--cv {folds} needs as many rows to learn from; there are {rows}.")
    if balance is not None:
        rare = min(balance.counts, key=lambda label: balance.counts[label])
        if balance.counts[rare] < folds:
            raise ValueError(
                f"--cv {folds} needs {folds} rows of each class to learn from; class {rare!r} has "
                f"{balance.counts[rare]} (use fewer folds)."
            )


def _loss(arguments: argparse.Namespace) -> str:
    losses = tuple(named_losses(of_classes=not arguments.regression))
    loss = arguments.loss or losses[0]
    if loss not in losses:
        task = "with --regression" if arguments.regression else "for classes"
        raise ValueError(f"--loss must be one of {', '.join(losses)} {task}; got {loss!r}.")
    return loss


def _estimator(arguments: argparse.Namespace, data: PreparedTable, loss: str) -> Any:
    shared: dict[str, Any] = {"kernels": data.kernels, "loss": loss, "tol": arguments.tol}
    shared |= {"max_iter": arguments.max_iter, "random_state": arguments.seed}
    if data.balance is not None:
        shared["class_weight"] = data.balance.class_weight
    if not arguments.cv:
        kind = MKLRegressor if data.balance is None else MKLClassifier
        return kind(norm=arguments.norm, C=arguments.C, **shared)
    # Tables are often sorted, hence the shuffling.
    if data.balance is None:
        return MKLRegressorCV(cv=KFold(arguments.cv, shuffle=True, random_state=arguments.seed), **shared)
    folds = StratifiedKFold(arguments.cv, shuffle=True, random_state=arguments.seed)
    return MKLClassifierCV(cv=folds, scoring=data.balance.scoring, **shared)


def _metric(data: PreparedTable) -> str:
    if data.balance is None:
        return "R2"
    return "balanced accuracy" if data.balance.scoring else "accuracy"


def _settings(arguments: argparse.Namespace, data: PreparedTable) -> dict[str, Any]:
    """Return what the model file keeps in addition to the encoder: enough to find the held-out rows again."""
    return {
        "target": arguments.target,
        "regression": arguments.regression,
        "test_size": arguments.test_size,
        "seed": arguments.seed,
        "rows": len(data.y_train) + len(data.y_test),
        "cv": arguments.cv,
        "views": data.views,
        "balance": arguments.balance,
        "weighted": data.balance is not None and data.balance.weighted,
        "classes": data.balance.counts if data.balance is not None else {},
    }


def _show_data(console: Console, data: PreparedTable) -> None:
    show_columns(console, data.encoder)
    rows = f"{counted(len(data.y_train), 'row')} to learn from, {len(data.y_test)} held out"
    columns = f"{counted(len(data.encoder.columns), 'column')} as {counted(data.X_train.shape[1], 'feature')}"
    views = f"; {counted(len(data.views), 'view')}" if data.views else ""
    for view, names in data.views.items():
        say(console, f"view {view}: {listed(names, _NAMED)}")
    say(console, f"{rows}; {columns}{views}; {counted(len(data.kernels), 'kernel')}.")


def _choice(estimator: Any, data: PreparedTable) -> str:
    words = f"C = {estimator.C_:g} and norm = {estimator.norm_:g} are best in cross-validation"
    return f"{words}: {_metric(data)} {estimator.best_score_:.3f} on average."


def _show_scores(console: Console, data: PreparedTable, predicted: np.ndarray) -> None:
    truth, balance = data.y_test, data.balance
    if not len(truth):
        say(console, "No rows were held out (--test-size 0), so there is no score.")
        return
    score = r2_row if balance is None else accuracy_row
    constant = constant_prediction(data.y_train, len(truth))
    if balance is None and not np.ptp(truth):
        errors = [figures(guess, truth)["rmse"] for guess in (predicted, constant)]
        words = (
            f"the root mean squared error is {errors[0]:.4g} with the learned kernels, {errors[1]:.4g} with the mean"
        )
        say(console, f"{counted(len(truth), 'held-out row')} of one value cannot be scored by R2; {words}.")
        return
    rows = [score("learned kernels", predicted, truth), score(constant_name(constant), constant, truth)]
    second = None
    if balance is not None and balance.scoring:
        second = "balanced accuracy", [balanced_accuracy(guess, truth) for guess in (predicted, constant)]
    title, metric = f"On the {counted(len(truth), 'held-out row')}", "R2" if balance is None else "accuracy"
    console.print(scores_table(rows, title=title, metric=metric, beside=second))


def _verdict(data: PreparedTable, predicted: np.ndarray, tuned: bool) -> list[str]:
    """Return a note if nothing was learned: the predictions are no better than those that need no features."""
    truth = data.y_test
    if not len(truth):
        return []
    constant = constant_prediction(data.y_train, len(truth))
    metric = _metric(data).lower().replace(" ", "_")
    if not figures(predicted, truth)[metric] <= figures(constant, truth)[metric]:
        return []
    advice = "the columns may not predict the target" if tuned else "try --cv, which chooses C and the norm"
    return [f"By {_metric(data)}, the learned kernels are no better than {constant_name(constant)!r}: {advice}."]


def _document(
    arguments: argparse.Namespace, data: PreparedTable, estimator: Any, predicted: np.ndarray
) -> dict[str, Any]:
    """Return the whole result as plain data."""
    truth, cv = data.y_test, None
    if arguments.cv:
        cv = {"folds": arguments.cv, "metric": _metric(data), "score": estimator.best_score_}
    scores = None
    if len(truth):
        constant = constant_prediction(data.y_train, len(truth))
        scores = {"learned": figures(predicted, truth), "constant": figures(constant, truth)}
    return {
        "settings": {
            **{name: value for name, value in _settings(arguments, data).items() if name not in _OF_DATA},
            "loss": estimator.loss,
            "C": estimator.C_ if arguments.cv else estimator.C,
            "norm": estimator.norm_ if arguments.cv else estimator.norm,
            "max_iter": arguments.max_iter,
        },
        "data": {
            "rows": {"train": len(data.y_train), "test": len(truth)},
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
        "scores": scores,
        "versions": versions(),
    }
