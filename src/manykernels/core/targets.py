"""How targets become tasks, wherever they are: classes as signs, and what an intercept takes off numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


def n_tasks_of(n_classes: int) -> int:
    """Return how many machines tell so many classes apart: one for two classes, otherwise one for each.

    Examples
    --------
    >>> from manykernels.core.targets import n_tasks_of
    >>> n_tasks_of(2), n_tasks_of(3)
    (1, 3)
    """
    return 1 if n_classes == 2 else n_classes


def one_vs_rest(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return targets -1 and 1 of shape (n_tasks, n_samples): for two classes, 1 is the second.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.core.targets import one_vs_rest
    >>> one_vs_rest(np.array([0, 1, 1]), 2)
    array([[-1.,  1.,  1.]])
    """
    tasks = [1] if n_tasks_of(n_classes) == 1 else range(n_classes)
    return np.array([np.where(codes == c, 1.0, -1.0) for c in tasks])


def offset_of(mean: Any, loss: Any, fit_intercept: bool) -> Any:
    """Return what is subtracted from targets with this mean: an offset that the intercept takes up only costs digits.

    Of several outputs both are arrays of shape (n_outputs,).

    Examples
    --------
    >>> from manykernels.core.targets import offset_of
    >>> from manykernels.losses import Hinge, Squared
    >>> offset_of(5.0, Squared(), True), offset_of(5.0, Squared(), False), offset_of(5.0, Hinge(), True)
    (5.0, 0.0, 0.0)
    """
    return mean if fit_intercept and loss.shifts else 0.0


@dataclass(frozen=True)
class Targets:
    """How targets become tasks, wherever they are: -1 and 1 for each class, or numbers; and the weights of the losses.

    Numbers of shape (n, n_outputs) are a task for each output.

    Attributes
    ----------
    C : float or ndarray of shape (n_outputs,)
    classes : ndarray or None
    factors : ndarray of shape (n_classes,) or None
        Weights of the classes.
    offset : float or ndarray of shape (n_outputs,)
        Subtracted from numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.core.targets import Targets
    >>> Targets(10.0, np.array(["a", "b"]), np.array([1.0, 2.0])).tasks(np.array(["b", "a"]), np.ones(2))
    (array([[ 1., -1.]]), array([[20., 10.]]))
    """

    C: Any
    classes: np.ndarray | None = None
    factors: np.ndarray | None = None
    offset: Any = 0.0

    @property
    def n_tasks(self) -> int:
        """How many machines there are to learn."""
        return 1 if self.classes is None else n_tasks_of(self.classes.size)

    def codes(self, y: np.ndarray) -> np.ndarray:
        """Return the number of each target's class."""
        assert self.classes is not None
        return np.minimum(np.searchsorted(self.classes, y), self.classes.size - 1)  # rows of weight 0 may be of none

    def costs(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the weight of each sample's loss, shape (n,)."""
        return self.C * weight if self.factors is None else self.C * weight * self.factors[self.codes(y)]

    def tasks(self, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the targets and the weights of the losses, both of shape (n_tasks, n)."""
        if self.classes is None:
            targets = np.array(np.atleast_2d(y.T), dtype=np.float64, order="C")
            targets -= np.reshape(self.offset, (-1, 1))
        else:
            targets = one_vs_rest(self.codes(y), self.classes.size)
        costs = np.multiply.outer(self.C, weight) if np.ndim(self.C) else self.costs(y, weight)
        return targets, np.broadcast_to(costs, targets.shape)


@dataclass(frozen=True)
class LabelTargets:
    """How a matrix of labels becomes tasks: one for each label, 1 where a sample has it and -1 where it does not.

    Attributes
    ----------
    C : float
    factors : ndarray of shape (2, n_labels) or None
        Weights of the samples without each label, and of those with it.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.core.targets import LabelTargets
    >>> y, C = LabelTargets(10.0).tasks(np.array([[0, 1], [1, 1]]), np.ones(2))
    >>> y
    array([[-1.,  1.],
           [ 1.,  1.]])
    """

    C: float
    factors: np.ndarray | None = None
    offset: float = 0.0

    def tasks(self, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the targets and the weights of the losses, both of shape (n_labels, n)."""
        has_label = np.ascontiguousarray(y.T) > 0
        costs = np.broadcast_to(self.C * weight, has_label.shape)
        if self.factors is not None:
            costs = costs * np.where(has_label, self.factors[1][:, None], self.factors[0][:, None])
        return np.where(has_label, 1.0, -1.0), costs
