"""``manykernels demo``: a fit on data that come with scikit-learn, compared with two simpler models."""

import argparse
import time
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.preprocessing import StandardScaler

from manykernels import MKLClassifier
from manykernels.cli.learning_bars import counting_bar, learning_bar
from manykernels.cli.show import report_console, say, show_model, side_console
from manykernels.kernels import Gaussian
from manykernels.reports import scores_table
from manykernels.tables.table_kernels import ALL, standard_kernels

DESCRIPTION = """\
Tell malignant from benign tumors (Wisconsin breast cancer, which comes with
scikit-learn) with Gaussian and polynomial kernels on all features and on each
one, and compare the learned sum of kernels with their uniform sum and with
the best single kernel. Needs no network."""
EPILOG = """\
example:
  manykernels demo"""

SEED = 0
CAUTION = """\
Cross-validation is on the training part; the single kernel is the one that
does best there, so its figure is optimistic.
"""
NEXT_STEPS = """\
Next, learn from your own table:  manykernels fit TABLE --target COLUMN
and see every choice there is:    manykernels fit --help"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no arguments: the demo is always the same."""


def run(arguments: argparse.Namespace) -> None:
    """Learn, report, compare."""
    console, side = report_console(), side_console()
    X_train, X_test, y_train, y_test, names = _data()
    views = [(None, ALL), *(([index], name) for index, name in enumerate(names))]
    kernels = [kernel for columns, name in views for kernel in standard_kernels(columns, name, name)]
    say(
        console,
        f"Wisconsin breast cancer: {len(y_train)} tumors to learn from, {len(y_test)} held out; "
        f"{len(names)} features; {len(kernels)} kernels.",
    )
    start = time.perf_counter()
    with learning_bar(side, "Learning"):
        learned = _model(kernels).fit(X_train, y_train)
    show_model(console, learned, time.perf_counter() - start)
    with learning_bar(side, "Uniform sum"):
        uniform = _model(kernels, norm=np.inf).fit(X_train, y_train)
    single = _best_single(side, kernels, X_train, y_train)
    active = int(np.count_nonzero(learned.weights_))
    train, test = (X_train, y_train), (X_test, y_test)
    with counting_bar(side, "Cross-validating", 3) as advance:
        rows = []
        for name, model, note in (
            ("learned sum", learned, f"{active} of {len(kernels)} kernels"),
            ("uniform sum", uniform, f"all {len(kernels)} kernels alike"),
            ("single kernel", single, single.kernel_names_[0]),
        ):
            rows.append(_row(name, model, note, train, test))
            advance()
    console.print(scores_table(rows, title=f"On the {len(y_test)} held-out tumors", metric="accuracy"))
    say(console, CAUTION)
    say(console, NEXT_STEPS)


def _model(kernels: list[Any], norm: float = 1.0) -> MKLClassifier:
    # Centered, so that wide kernels, which are nearly constant, count as much as narrow ones.
    return MKLClassifier(kernels=kernels, norm=norm, center=True)


def _accuracy(model: MKLClassifier, X: np.ndarray, y: np.ndarray) -> float:
    folds = StratifiedKFold(5, shuffle=True, random_state=SEED)
    return float(cross_val_score(model, X, y, cv=folds).mean())


def _data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[str]]:
    data = load_breast_cancer()
    labels = data.target_names[data.target]
    X_train, X_test, y_train, y_test = train_test_split(
        data.data, labels, test_size=0.25, random_state=SEED, stratify=labels
    )
    scaler = StandardScaler().fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test), y_train, y_test, list(data.feature_names)


def _best_single(side: Console, kernels: list[Any], X: np.ndarray, y: np.ndarray) -> MKLClassifier:
    """Fit the kernel that cross-validates best on the training part; the held-out part plays no role."""
    # A width of 1 stands for its neighbors on a single feature, which keeps the search to a few seconds.
    candidates = [
        kernel for kernel in kernels if kernel.group == ALL or (isinstance(kernel, Gaussian) and kernel.width == 1.0)
    ]
    scores = []
    with counting_bar(side, "Single kernels", len(candidates)) as advance:
        for kernel in candidates:
            scores.append(_accuracy(_model([kernel]), X, y))
            advance()
        return _model([candidates[int(np.argmax(scores))]]).fit(X, y)


def _row(name: str, model: MKLClassifier, note: str, train: tuple, test: tuple) -> tuple[str, float, str]:
    wrong = int(np.sum(model.predict(test[0]) != test[1]))
    return name, 1 - wrong / len(test[1]), f"{wrong} wrong; cross-validated {_accuracy(model, *train):.3f}; {note}"
