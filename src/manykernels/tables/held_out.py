"""The rows that are held out of training: how they are chosen, and found again later."""

import math

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from manykernels.tables.encoder import TableEncoder
from manykernels.tables.sentences import Sentence, Setting
from manykernels.tables.target import MANY_CLASSES


def hold_out(target: np.ndarray, test_size: float, seed: int, regression: bool) -> tuple[np.ndarray, np.ndarray]:
    """Choose the rows to train on and the rows to test on.

    Parameters
    ----------
    target : array of shape (n_rows,)
        With classes, each part gets its share of each class.
    test_size : float
        The share of the rows to test on; with 0 every row is for training.
    seed : int
        Seed of the random choice.
    regression : bool
        Whether the target is a number, not a class.

    Returns
    -------
    train, test : arrays of int
        Row numbers, in ascending order.

    Examples
    --------
    >>> train, test = hold_out(np.array([0, 0, 1, 1]), 0.5, seed=0, regression=False)
    >>> len(train), len(test)
    (2, 2)
    """
    rows = np.arange(len(target))
    if test_size == 0:
        return rows, rows[:0]
    n_test = math.ceil(test_size * len(target))
    if not regression:
        _check_classes(target, n_test, test_size)
    elif len(target) - n_test < 2:
        problem = f" leaves {len(target) - n_test} rows for training; it needs 2."
        raise ValueError(Sentence(Setting("test_size", test_size), problem))
    stratify = None if regression else target
    train, test = train_test_split(rows, test_size=n_test, random_state=seed, stratify=stratify)
    return np.sort(train), np.sort(test)


def held_out(
    features: pd.DataFrame,
    y: np.ndarray,
    encoder: TableEncoder,
    *,
    rows: int,
    test_size: float,
    seed: int,
    regression: bool,
) -> np.ndarray:
    """Return the rows that ``fit`` held out, or none where the table is not the one that it read.

    Parameters
    ----------
    features : pandas.DataFrame
        The table without its target.
    y : array of shape (n_rows,)
        The target.
    encoder : TableEncoder
        Of the model.
    rows : int
        Of the table that ``fit`` read.
    test_size, seed, regression
        As :func:`hold_out` got them.

    Returns
    -------
    array of int
    """
    nothing = np.zeros(0, dtype=np.int64)
    if rows != len(y) or not test_size:
        return nothing
    # The encoding depends on the training rows: it is learned anew, and must be the same.
    kinds = {block.name: block.kind for block in encoder.blocks}
    try:
        train, test = hold_out(y, test_size, seed, regression)
        again = TableEncoder(kinds).fit(features[list(kinds)], train)
    except ValueError:  # this target or a column of these rows cannot be used as those of `fit` were
        return nothing
    return test if again.to_dict()["columns"] == encoder.to_dict()["columns"] else nothing


def _check_classes(target: np.ndarray, n_test: int, test_size: float) -> None:
    classes, counts = np.unique(target, return_counts=True)
    if counts.min() < 2:
        rare = str(classes[counts.argmin()])
        problem = f"The target needs two rows of each class to hold some out; class {rare!r} has one "
        if target.dtype.kind in "iu" and len(classes) > MANY_CLASSES:
            suggests = f" to predict a number, as {len(classes)} different ones suggest)."
            raise ValueError(Sentence(problem, "(add ", Setting("regression", True), suggests))
        raise ValueError(Sentence(problem, "(remove it, or use ", Setting("test_size", 0), ")."))
    if min(n_test, len(target) - n_test) < len(classes):
        problem = (
            f" splits {len(target)} rows into {len(target) - n_test} and {n_test}; "
            f"each part needs at least {len(classes)} rows, one for each class."
        )
        raise ValueError(Sentence(Setting("test_size", test_size), problem))
