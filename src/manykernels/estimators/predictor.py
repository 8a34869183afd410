"""A fitted model as predictions need it: the learned kernel on the support vectors, and their coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manykernels.core.results import Machine
from manykernels.kernels.bound import learned_kernel
from manykernels.kernels.learned import LearnedKernel
from manykernels.kernels.missing import observed
from manykernels.kernels.precomputed import Precomputed


@dataclass(frozen=True)
class Predictor:
    """The machines of the tasks that share one kernel.

    Attributes
    ----------
    kernel : LearnedKernel
    coef : ndarray of shape (n_tasks, n_kept)
    intercept : ndarray of shape (n_tasks,)
    active : ndarray of shape (n_active,)
        Places of the kernel's parts in the bank.
    rows : ndarray of shape (n_kept,)
        The rows of the training data that are kept.
    n_train : int
    """

    kernel: LearnedKernel
    coef: np.ndarray
    intercept: np.ndarray
    active: np.ndarray
    rows: np.ndarray
    n_train: int

    @classmethod
    def from_machine(
        cls, bank: Any, weights: np.ndarray, machine: Machine, rows: np.ndarray, n_train: int
    ) -> Predictor:
        """Keep the support vectors; all samples when the kernels are centred."""
        keep = np.flatnonzero(np.any(machine.beta != 0, axis=0))
        if bank.is_centered or keep.size == 0:
            keep = np.arange(bank.n_samples)
        return cls(
            kernel=learned_kernel(bank, weights, keep),
            coef=machine.beta[:, keep],
            intercept=machine.intercept,
            active=np.flatnonzero(weights > 0),
            rows=rows[keep],
            n_train=n_train,
        )

    def decision(self, X: Any) -> np.ndarray:
        """Return the predictions of the tasks, shape (len(X), n_tasks)."""
        return (self.kernel.predict(X, self.coef) + self.intercept[:, None]).T

    def decision_from_stack(self, stack: np.ndarray) -> np.ndarray:
        """Return the predictions for kernels given as an array (n_kernels, n_test, n_train).

        Test samples that lack a view have zeros there.
        """
        kernel = self.kernel
        if (
            kernel.cosine
            or kernel.means is not None
            or not all(isinstance(entry.kernel, Precomputed) for entry in kernel.bound)
        ):
            raise ValueError(
                "X is a stack of kernels: that needs precomputed kernels without centering or cosine "
                "normalization; pass sample numbers instead, X = indices.reshape(-1, 1)."
            )
        combined = np.zeros((stack.shape[1], self.rows.size))
        for entry, coefficient, k in zip(kernel.bound, kernel.coefficients, self.active, strict=True):
            mask = observed(kernel.X[:, entry.positions])  # what the stack says of samples that lack the view is void
            combined += coefficient * stack[k][:, self.rows] * (1.0 if mask is None else mask)
        return combined @ self.coef.T + self.intercept
