"""How targets become tasks, wherever they are: classes as signs, and what an intercept takes off numbers."""

from __future__ import annotations

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


def offset_of(mean: float, loss: Any, fit_intercept: bool) -> float:
    """Return what is subtracted from targets with this mean: an offset that the intercept takes up only costs digits.

    Examples
    --------
    >>> from manykernels.core.targets import offset_of
    >>> from manykernels.losses import Hinge, Squared
    >>> offset_of(5.0, Squared(), True), offset_of(5.0, Squared(), False), offset_of(5.0, Hinge(), True)
    (5.0, 0.0, 0.0)
    """
    return float(mean) if fit_intercept and loss.shifts else 0.0
