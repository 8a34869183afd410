"""Learners with a precomputed kernel, reduced to numbers: what a model file can hold."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, NuSVC, NuSVR
from sklearn.utils.multiclass import _ovr_decision_function

from manykernels.estimators.classes import labels_of

REDUCIBLE = (SVC, NuSVC, SVR, NuSVR, KernelRidge)


@dataclass(frozen=True)
class ReducedLearner:
    """The predictions of a fitted learner as linear functions of the kernel with the training samples.

    Attributes
    ----------
    coef : ndarray of shape (n_functions, n_samples)
        One function for a regression or two classes, else one for each pair of classes.
    intercept : ndarray of shape (n_functions,)
    classes_ : ndarray or None
    """

    coef: np.ndarray
    intercept: np.ndarray
    classes_: np.ndarray | None = None

    @classmethod
    def of(cls, learner: Any, columns: np.ndarray, n_columns: int) -> ReducedLearner:
        """Reduce a fitted learner whose training samples are these columns of the kernel; one may come twice."""
        if isinstance(learner, ReducedLearner):
            return learner
        if type(learner) not in REDUCIBLE:
            names = ", ".join(kind.__name__ for kind in REDUCIBLE)
            raise TypeError(
                f"A model with the learner {type(learner).__name__} cannot be saved: files hold no code, only the "
                f"numbers of {names}. pickle or joblib can store it."
            )
        for name, other in (("break_ties", True), ("probability", True), ("decision_function_shape", "ovo")):
            if getattr(learner, name, None) == other:
                raise TypeError(f"A model whose learner has {name}={other!r} cannot be saved; pickle can store it.")
        return cls.functions_of(learner, columns, n_columns)

    @classmethod
    def functions_of(cls, learner: Any, columns: np.ndarray, n_columns: int) -> ReducedLearner:
        """Return the functions of a learner of one of the kinds REDUCIBLE, whatever it makes of them."""
        if isinstance(learner, KernelRidge):
            coef, intercept, places = learner.dual_coef_[None, :], np.zeros(1), columns
        else:
            coef, intercept, places = _support_form(learner), learner.intercept_, columns[learner.support_]
        out = np.zeros((coef.shape[0], n_columns))
        np.add.at(out.T, places, coef.T)
        return cls(out, np.asarray(intercept, dtype=float), getattr(learner, "classes_", None))

    def _values(self, K: np.ndarray) -> np.ndarray:
        return K @ self.coef.T + self.intercept

    def predict(self, K: np.ndarray) -> np.ndarray:
        """Return classes, or values if there are none, for a kernel of shape (n, n_samples)."""
        values = self._values(K)
        if self.classes_ is None:
            return values[:, 0]
        if self.classes_.size == 2:
            return labels_of(self.classes_, values[:, 0])
        votes = np.zeros((K.shape[0], self.classes_.size))
        for column, (i, j) in enumerate(combinations(range(self.classes_.size), 2)):
            votes[:, i] += values[:, column] > 0
            votes[:, j] += values[:, column] <= 0
        return labels_of(self.classes_, votes)

    def decision_function(self, K: np.ndarray) -> np.ndarray:
        """Return one value for two classes, else one per class, as SVC does by default."""
        if self.classes_ is None:
            raise AttributeError("A regression has no decision_function.")
        values = self._values(K)
        return (
            values[:, 0] if self.classes_.size == 2 else _ovr_decision_function(values < 0, -values, self.classes_.size)
        )


def _support_form(learner: Any) -> np.ndarray:
    """Return the coefficients of the support vectors in the function of each pair of classes."""
    dual = np.asarray(learner.dual_coef_)
    classes = getattr(learner, "classes_", None)
    if classes is None or classes.size == 2:
        return dual
    ends = np.cumsum(np.r_[0, learner.n_support_])
    pairs = list(combinations(range(classes.size), 2))
    coef = np.zeros((len(pairs), dual.shape[1]))
    for row, (i, j) in enumerate(pairs):
        # A support vector of class i has a coefficient for each other class, in their order.
        coef[row, ends[i] : ends[i + 1]] = dual[j - 1, ends[i] : ends[i + 1]]
        coef[row, ends[j] : ends[j + 1]] = dual[i, ends[j] : ends[j + 1]]
    return coef
