"""Scores on held-out rows: of what was learned, and of the prediction that needs no features."""

import math
from dataclasses import dataclass

import numpy as np

from manykernels.reports.assessment import accuracy
from manykernels.reports.contestants import constant_learner
from manykernels.reports.steps import METRICS
from manykernels.tables.prepared import PreparedTable

Figures = dict[str, float]


@dataclass(frozen=True)
class HeldOutScores:
    """Scores on the rows that were held out.

    Attributes
    ----------
    metric : str
        The name of the score that counts.
    count : int
        How many rows there are, at least one.
    learned, constant : dict
        The scores by name, those of :func:`number_figures` or of :func:`class_figures`.
    constant_name : str
        Words for the constant prediction.
    """

    metric: str
    count: int
    learned: Figures
    constant: Figures
    constant_name: str

    @property
    def is_of_one_value(self) -> bool:
        """Whether the rows have only one number as their target, so that R2 says nothing."""
        return math.isnan(self.learned.get("r2", 0.0))

    @property
    def learned_nothing(self) -> bool:
        """Whether the learned kernels are no better than the constant prediction."""
        return self.learned[self.metric] <= self.constant[self.metric]

    @property
    def rows(self) -> list[tuple[str, float, str]]:
        """Name, first score and note of each prediction."""
        named = (("learned kernels", self.learned), (self.constant_name, self.constant))
        return [(name, next(iter(figures.values())), self._note(figures)) for name, figures in named]

    def _note(self, figures: Figures) -> str:
        if "rmse" in figures:
            return f"root mean squared error {figures['rmse']:.4g}"
        return f"{round((1.0 - figures['accuracy']) * self.count)} of {self.count} wrong"

    @property
    def head(self) -> str:
        """Words for the first score."""
        return METRICS[next(iter(self.learned))]

    @property
    def beside(self) -> tuple[str, list[float]] | None:
        """Words for the score that counts, and its values, where it is not the first one."""
        if METRICS[self.metric] == self.head:
            return None
        return METRICS[self.metric], [self.learned[self.metric], self.constant[self.metric]]


def held_out_scores(data: PreparedTable, predicted: np.ndarray) -> HeldOutScores | None:
    """Return the scores of a prediction of the held-out rows, None if there are no such rows."""
    truth = data.y_test
    if not len(truth):
        return None
    learner, words = constant_learner(not data.is_regression)
    constant = learner.fit(np.zeros((len(data.y_train), 1)), data.y_train).predict(np.zeros((len(truth), 1)))
    name = words if data.is_regression else f"always {constant[0]}"
    figures = number_figures if data.is_regression else class_figures
    return HeldOutScores(data.metric, len(truth), figures(predicted, truth), figures(constant, truth), name)


def number_figures(predicted: np.ndarray, truth: np.ndarray) -> Figures:
    """Return the share of the variance that predicted numbers explain, and their error.

    Parameters
    ----------
    predicted, truth : arrays of shape (n_rows,)

    Returns
    -------
    scores : dict
        r2, NaN where the truth does not vary, and rmse.

    Examples
    --------
    >>> number_figures(np.array([1.0, 3.0]), np.array([1.0, 2.0]))["r2"]
    -1.0
    """
    squares = float(np.sum((predicted - truth) ** 2))
    spread = float(np.sum((truth - truth.mean()) ** 2)) if np.ptp(truth) > 0 else 0.0
    return {"r2": 1 - squares / spread if spread > 0 else math.nan, "rmse": math.sqrt(squares / len(truth))}


def class_figures(predicted: np.ndarray, truth: np.ndarray) -> Figures:
    """Return the share of predicted classes that is right, of all rows and as the mean of that of each class.

    Parameters
    ----------
    predicted, truth : arrays of shape (n_rows,)

    Returns
    -------
    scores : dict
        accuracy and balanced_accuracy.

    Examples
    --------
    >>> class_figures(np.array(["a", "a", "a"]), np.array(["a", "a", "b"]))["balanced_accuracy"]
    0.5
    """
    right = predicted == truth
    return {name: accuracy(right, truth, METRICS[name]).value for name in ("accuracy", "balanced_accuracy")}
