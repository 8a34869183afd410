"""Scores on held-out rows, as rows of a table: name, score, note."""

import math

import numpy as np

Row = tuple[str, float, str]


def accuracy_row(name: str, predicted: np.ndarray, truth: np.ndarray) -> Row:
    """Score classes by the share of them that is right.

    Parameters
    ----------
    name : str
        Of the predictor.
    predicted, truth : arrays of shape (n_rows,)
        Labels.

    Returns
    -------
    row : tuple of (name, accuracy, number of errors in words)

    Examples
    --------
    >>> accuracy_row("mine", np.array([0, 1]), np.array([0, 0]))
    ('mine', 0.5, '1 of 2 wrong')
    """
    wrong = int(np.sum(predicted != truth))
    return name, 1 - wrong / len(truth), f"{wrong} of {len(truth)} wrong"


def r2_row(name: str, predicted: np.ndarray, truth: np.ndarray) -> Row:
    """Score numbers by the share of their variance that is explained.

    Parameters
    ----------
    name : str
        Of the predictor.
    predicted, truth : arrays of shape (n_rows,)
        Numbers.

    Returns
    -------
    row : tuple of (name, R2, root mean squared error in words)
        R2 is NaN where the truth does not vary.

    Examples
    --------
    >>> r2_row("mine", np.array([1.0, 3.0]), np.array([1.0, 2.0]))
    ('mine', -1.0, 'root mean squared error 0.7071')
    """
    spread, squares = float(np.sum((truth - truth.mean()) ** 2)), float(np.sum((predicted - truth) ** 2))
    r2 = 1 - squares / spread if spread > 0 else math.nan
    return name, r2, f"root mean squared error {math.sqrt(squares / len(truth)):.4g}"


def constant_row(trained: np.ndarray, truth: np.ndarray, regression: bool) -> Row:
    """Score what needs no features at all: the mean, or the most frequent class, of the training rows.

    Parameters
    ----------
    trained, truth : arrays
        Targets of the training rows and of the held-out rows.
    regression : bool
        Whether they are numbers, not classes.

    Returns
    -------
    row : tuple of (name, score, note)

    Examples
    --------
    >>> constant_row(np.array(["a", "a", "b"]), np.array(["a", "b"]), regression=False)
    ('always a', 0.5, '1 of 2 wrong')
    """
    if regression:
        return r2_row("always the mean", np.full(len(truth), trained.mean()), truth)
    labels, counts = np.unique(trained, return_counts=True)
    common = labels[counts.argmax()]
    return accuracy_row(f"always {common}", np.full(len(truth), common), truth)
