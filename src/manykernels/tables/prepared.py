"""A table made ready to learn from: its features, its target, the rows to hold out and the kernels."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from manykernels.tables.balance import Balance, weigh_classes
from manykernels.tables.column_views import Views
from manykernels.tables.encoder import TableEncoder
from manykernels.tables.held_out import hold_out
from manykernels.tables.reading import read_table
from manykernels.tables.table_kernels import make_kernels
from manykernels.tables.target import class_notes, take_target


@dataclass(frozen=True)
class PreparedTable:
    """A table that is ready to learn from.

    Attributes
    ----------
    encoder : TableEncoder
        Turns a table into features; learned from the training rows.
    views : dict
        The columns of each view, by its name; empty without views.
    kernels : list of kernels
        On the features.
    balance : Balance or None
        The sizes of the classes in training; None for regression.
    X_train, X_test : arrays of shape (n_rows, n_features)
    y_train, y_test : arrays of shape (n_rows,)
        Floats for regression, else labels.
    notes : list of str
        What the user should know, in sentences; those that name settings are of the type Sentence.
    """

    encoder: TableEncoder
    views: dict[str, list[str]]
    kernels: list[Any]
    balance: Balance | None
    X_train: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray
    notes: list[str]

    @property
    def is_regression(self) -> bool:
        """Whether the target is a number, not a class."""
        return self.balance is None

    @property
    def metric(self) -> str:
        """The score by which models are compared: "r2", "accuracy" or "balanced_accuracy"."""
        return "r2" if self.balance is None else self.balance.metric


def prepare_table(
    path: str | os.PathLike[str],
    target: str,
    *,
    regression: bool = False,
    views: Views | None = None,
    test_size: float = 0.25,
    seed: int = 0,
    balance: str = "auto",
) -> PreparedTable:
    """Read a table and make it ready to learn from.

    Parameters
    ----------
    path : path
        Of the table, in any format that `read_table` knows.
    target : str
        The column to predict.
    regression : bool, default=False
        Whether the target is a number, not a class.
    views : Views, optional
        What the user said about the columns.
    test_size : float, default=0.25
        The share of the rows to hold out.
    seed : int, default=0
        Seed of the choice of these rows.
    balance : {"auto", "yes", "no"}, default="auto"
        Whether to weight errors so that all classes count alike.

    Returns
    -------
    prepared : PreparedTable

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     lines = [f"{20 + row},{'no' if row % 2 else 'yes'}" for row in range(8)]
    ...     _ = path.write_text("\\n".join(["age,ill", *lines]))
    ...     prepared = prepare_table(path, "ill")
    >>> prepared.X_train.shape, prepared.X_test.shape
    ((6, 1), (2, 1))
    """
    views = views or Views()
    features, y = take_target(read_table(path), target, regression, path)
    kinds = views.kinds_of([str(name) for name in features.columns])
    train, test = hold_out(y, test_size, seed, regression)
    encoder = TableEncoder(kinds).fit(features, train)
    assigned = views.assign(list(encoder.columns))
    # Both parts are encoded before the fit, so that a bad cell in either is reported at once.
    X_train, X_test = encoder.transform(features.iloc[train]), encoder.transform(features.iloc[test])
    kernels, shortened = make_kernels(encoder.blocks, assigned)
    classes = None if regression else weigh_classes(y[train], balance)
    notes = [
        *views.notes(assigned),
        *([shortened] if shortened else []),
        *([*classes.notes(), *class_notes(y)] if classes else []),
    ]
    return PreparedTable(encoder, assigned, kernels, classes, X_train, X_test, y[train], y[test], notes)
