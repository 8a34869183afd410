"""The training problem of rows on workers."""

from __future__ import annotations

from typing import Any

from manykernels.distributed.row_bank import RowBank
from manykernels.problem import Problem


class OnWorkers:
    """An array of shape (n_tasks, n_samples) of which the driver has the shape, and what belongs to a tail of the bank.

    Parameters
    ----------
    bank : RowBank
    part : int
        Which one of :meth:`RowBank.sample`.
    """

    def __init__(self, bank: RowBank, part: int) -> None:
        self.shape, self._bank, self._part = (bank.n_tasks, bank.n_samples), bank, part

    def __getitem__(self, where: tuple[slice, slice]) -> Any:
        every, last = where
        assert every == slice(None)
        return self._bank.sample(-last.start)[self._part]


def row_problem(bank: RowBank, loss: Any, norm: Any, fit_intercept: bool) -> Problem:
    """Return the problem of all tasks of a bank of rows.

    Parameters
    ----------
    bank : RowBank
    loss : Loss
    norm : Norm
    fit_intercept : bool
    """
    # It offers less than other banks, and arrays of which only a sample is here: solvers ask for what they need.
    kernels: Any = bank
    targets: Any = OnWorkers(bank, 1)
    weights: Any = OnWorkers(bank, 2)
    return Problem(kernels, loss, norm, targets, weights, fit_intercept)
