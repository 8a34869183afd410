"""Scores on held-out rows, as rows of a table: name, score, note."""

import math
import warnings

import numpy as np
from sklearn.metrics import balanced_accuracy_score

Row = tuple[str, float, str]


def accuracy_row(name: str, predicted: np.ndarray, truth: np.ndarray) -> Row:
    """Score predicted classes by the share that is right.

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
    """Score predicted numbers by the share of the variance that they explain.

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


def constant_prediction(trained: np.ndarray, count: int) -> np.ndarray:
    """Predict without any features: the mean, or the most frequent class, of the training rows.

    Parameters
    ----------
    trained : array
        Targets of the training rows: floats for regression, else labels.
    count : int
        How many rows to predict.

    Returns
    -------
    predicted : array of shape (count,)

    Examples
    --------
    >>> constant_prediction(np.array([1, 1, 2]), 2)
    array([1, 1])
    >>> constant_prediction(np.array([1.0, 2.0]), 2)
    array([1.5, 1.5])
    """
    if trained.dtype.kind == "f":
        return np.full(count, trained.mean())
    labels, counts = np.unique(trained, return_counts=True)
    return np.full(count, labels[counts.argmax()])


def constant_name(predicted: np.ndarray) -> str:
    """Return words for a constant prediction."""
    return "always the mean" if predicted.dtype.kind == "f" else f"always {predicted[0]}"


def figures(predicted: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the scores of a prediction by name.

    Parameters
    ----------
    predicted, truth : arrays of shape (n_rows,)
        Floats for regression, else labels.

    Returns
    -------
    scores : dict
        r2 and rmse, or accuracy and balanced_accuracy.

    Examples
    --------
    >>> figures(np.array(["a", "a"]), np.array(["a", "b"]))
    {'accuracy': 0.5, 'balanced_accuracy': 0.5}
    """
    if truth.dtype.kind == "f":
        rmse = math.sqrt(float(np.mean((predicted - truth) ** 2)))
        return {"r2": r2_row("", predicted, truth)[1], "rmse": rmse}
    return {
        "accuracy": accuracy_row("", predicted, truth)[1],
        "balanced_accuracy": balanced_accuracy(predicted, truth),
    }


def balanced_accuracy(predicted: np.ndarray, truth: np.ndarray) -> float:
    """Return the accuracy within each class, averaged over the classes: with two, always predicting one gets 1/2.

    Parameters
    ----------
    predicted, truth : arrays of shape (n_rows,)
        Labels.

    Returns
    -------
    score : float

    Examples
    --------
    >>> balanced_accuracy(np.array(["no"] * 4), np.array(["no", "no", "no", "yes"]))
    0.5
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class that was predicted may be absent from the truth
        return float(balanced_accuracy_score(truth, predicted))
