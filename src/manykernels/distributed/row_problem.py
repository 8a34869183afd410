"""The training problem of rows on workers."""

from __future__ import annotations

from typing import Any

import numpy as np

from manykernels.distributed.row_bank import RowBank
from manykernels.problem import Problem


class OnWorkers:
    """An array of shape (n_tasks, n_samples) of which the driver has the shape, and the values of the bank's sample."""

    def __init__(self, shape: tuple[int, int], values: np.ndarray) -> None:
        self.shape, self._values = shape, values

    def __getitem__(self, where: Any) -> np.ndarray:
        return self._values[where]


def row_problem(bank: RowBank, loss: Any, norm: Any, fit_intercept: bool) -> Problem:
    """Return the problem of all tasks of a bank of rows.

    Parameters
    ----------
    bank : RowBank
    loss : Loss
    norm : Norm
    fit_intercept : bool
    """
    _, y, C = bank.sample
    shape = (y.shape[0], bank.n_samples)
    # It offers less than other banks, and arrays of which only a sample is here: solvers ask for what they need.
    kernels: Any = bank
    targets: Any = OnWorkers(shape, y)
    weights: Any = OnWorkers(shape, C)
    return Problem(kernels, loss, norm, targets, weights, fit_intercept)
