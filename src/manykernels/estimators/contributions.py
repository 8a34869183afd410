"""The parts of a prediction: what each kernel, or each view, adds to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from manykernels.banks import Recipe
from manykernels.compute.threads import one_blas_thread
from manykernels.estimators.predictor import Predictor


@dataclass(frozen=True)
class Contributions:
    """What each active kernel adds to the predictions: ``values`` summed over the kernels, plus the intercept.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_tasks, n_parts)
        There is one task for two classes and for regression, else one for each class.
    intercept : ndarray of shape (n_tasks,)
    names, groups : tuples of str, of length n_parts
        Of the kernels.
    active : ndarray of shape (n_parts,)
        Places of the kernels in the bank; -1 for a part that several kernels share.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.kernels import Gaussian
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> kernels = [Gaussian(1.0, columns=[j], group="petal" if j >= 2 else "sepal") for j in range(4)]
    >>> parts = MKLClassifier(kernels, norm=2).fit(X[:100], y[:100]).contributions(X[:100])
    >>> parts.values.shape, parts.by_group().names
    ((100, 1, 4), ('sepal', 'petal'))
    """

    values: np.ndarray
    intercept: np.ndarray
    names: tuple[str, ...]
    groups: tuple[str, ...]
    active: np.ndarray

    def total(self) -> np.ndarray:
        """Return the predictions: (n_samples,) for one task, else (n_samples, n_tasks)."""
        total = self.values.sum(axis=2) + self.intercept
        return total[:, 0] if total.shape[1] == 1 else total

    def by_group(self) -> Contributions:
        """Return the sums over the kernels of each group, in order of first appearance."""
        places = {group: place for place, group in enumerate(dict.fromkeys(self.groups))}
        values = np.zeros((*self.values.shape[:2], len(places)))
        active, size = np.full(len(places), -1), Counter(self.groups)
        for part, group in enumerate(self.groups):
            values[:, :, places[group]] += self.values[:, :, part]
            if size[group] == 1:
                active[places[group]] = self.active[part]
        return replace(self, values=values, names=tuple(places), groups=tuple(places), active=active)

    def to_frame(self, row: int = 0, task: int = 0) -> pd.DataFrame:
        """Return the parts of one prediction, the largest (of either sign) first.

        Parameters
        ----------
        row, task : int, default 0
            Which sample, and which class if there are several.

        Returns
        -------
        DataFrame with the columns "kernel", "group" and "value"
            The values sum to the prediction less ``intercept[task]``.
        """
        frame = pd.DataFrame({"kernel": self.names, "group": self.groups, "value": self.values[row, task]})
        order = np.argsort(-frame["value"].abs().to_numpy(), kind="stable")
        return frame.iloc[order].reset_index(drop=True)


class ContributionsMixin:
    """The method ``contributions`` of an estimator that predicts with a sum of kernels."""

    @one_blas_thread()
    def contributions(self: Any, X: Any) -> Contributions:
        """Return what each active kernel adds to the predictions.

        With the weights d, the coefficients beta of the kept samples x_i and the intercept b, a prediction is

            f(x) = sum_k f_k(x) + b,        f_k(x) = d_k sum_i beta_i k_k(x_i, x),

        where k_k is normalized as in the fit, and centered if that was asked for. The values are f_k(x); together with
        the intercept they are what ``decision_function`` (for regression ``predict``) returns, to rounding.

        A ladder of which so many widths are active that it is summed on its nodes has one part for all its widths:
        the nodes are not kernels of their own, and their coefficients may be negative. With an approximation the
        kernels are the approximate ones. Where kernels are augmented by a constant (``UFOMKLClassifier``), it is in the
        intercept.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Or, for precomputed kernels, an array of shape (n_kernels, n_samples, n_training_samples).

        Returns
        -------
        Contributions
            ``values`` of shape (n_samples, n_tasks, n_parts): they are all held in memory.

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels import MKLRegressor
        >>> from manykernels.kernels import Gaussian
        >>> X = np.random.default_rng(0).normal(size=(80, 3))
        >>> model = MKLRegressor([Gaussian(1.0, columns=[j]) for j in range(3)], C=10.0).fit(X, np.sin(X[:, 1]))
        >>> parts = model.contributions(X)
        >>> bool(np.allclose(parts.total(), model.predict(X)))
        True
        >>> parts.names[int(parts.values.std(axis=0).argmax())]
        'Gaussian(width=1) on x1'
        """
        check_is_fitted(self)
        if not Recipe(combination=self.combination).is_sum:
            raise TypeError(
                f"A prediction has parts only where the kernel is a sum: contributions needs combination='sum', got "
                f"{self.combination!r}."
            )
        predictors = self._machines()
        if getattr(X, "ndim", 2) == 3:
            return _gathered(predictors, self.kernel_names_, self._check_stack(X), Predictor.parts_from_stack, 1)
        return _gathered(predictors, self.kernel_names_, self._checked(X), Predictor.parts, 0)

    def _machines(self: Any) -> list[Predictor]:
        """Return the predictors, with coefficients and intercepts, whose parts make up a prediction."""
        return self._predictors


def _gathered(
    predictors: list[Predictor], names: Sequence[str], X: Any, add: Callable[..., None], samples: int
) -> Contributions:
    """Return the parts of all tasks; a kernel that is active for some of them has zeros for the others.

    ``add`` is the method of the predictors that adds their parts, ``samples`` the axis of X that they are along.
    """
    owners = [predictor.owners(names) for predictor in predictors]
    # Kernels in the order of the bank, then ladders as they come.
    parts = dict.fromkeys(part for parts_of, _ in owners for part in parts_of)
    every = sorted(parts, key=lambda part: part.place if part.place >= 0 else len(names))
    place = {part: i for i, part in enumerate(every)}
    intercept = np.concatenate([predictor.own_intercept() for predictor in predictors])
    values, task = np.zeros((X.shape[samples], intercept.size, len(every))), 0
    for predictor, (parts_of, owner) in zip(predictors, owners, strict=True):
        where = np.array([place[part] for part in parts_of], dtype=np.int64)
        n_tasks = predictor.intercept.size
        add(predictor, X, where[owner], values[:, task : task + n_tasks])
        task += n_tasks
    return Contributions(
        values,
        intercept,
        tuple(part.name for part in every),
        tuple(part.group for part in every),
        np.array([part.place for part in every], dtype=np.int64),
    )
