"""The program of :mod:`manykernels.inner.smo` for a kernel on a device, where products and blocks are cheap.

    minimize over beta    1/2 beta' K beta - y' beta + epsilon * sum_i |beta_i|,   beta in a box, 1' beta = 0

A few thousand samples at a time, those that violate the optimality conditions most and the free ones of the last turn,
are solved for by sequential minimal optimization on the CPU, in the block of the kernel that belongs to them. The
gradient of all samples is then corrected by the product of the changes with their columns, which the device does in a
fraction of the time of the block: no row is kept, and no sample is set aside. The gradient is made anew from beta
before the solver returns.
"""

from __future__ import annotations

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.protocols import BlockKernel
from manykernels.inner import smo
from manykernels.inner.decomposition import working_set
from manykernels.inner.smo import BoxSolution

_WORKING_SET = 2000
_PATIENCE = 5  # turns that gain nothing
_TINY_GAIN = 1e-14  # beside the size of the objective
_FEW_STEPS = 1_000_000  # are never too many
_RENEWALS = 3  # of the gradient; if it is still not optimal then, rounding allows no more
_ROUGH = 0.1  # a block is left when its violation is this part of that of all samples


@one_blas_thread()
def solve_blocks(
    K: BlockKernel,
    y: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    epsilon: float = 0.0,
    start: np.ndarray | None = None,
    intercept: bool = True,
    tol: float = 1e-3,
) -> BoxSolution:
    """Solve the box-constrained quadratic program; parameters as :func:`manykernels.inner.smo.solve_box`.

    ``K.product(beta)`` is K beta_t for beta of shape (n_tasks, n), ``K.block(rows)`` the block of these rows and
    columns, ``K.columns_product(columns, change)`` the product K[:, columns] @ change.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.inner.device_smo import solve_blocks
    >>> class Identity:
    ...     n_samples, unit_roundoff = 2, 2.0**-53
    ...     def diagonal(self):
    ...         return np.ones(2)
    ...     def product(self, beta):
    ...         return beta
    ...     def block(self, rows):
    ...         return np.eye(len(rows))
    ...     def columns_product(self, columns, change):
    ...         return np.eye(2)[:, columns] @ change
    >>> y = np.array([1.0, -1.0])
    >>> solve_blocks(Identity(), y, np.minimum(0, 5 * y), np.maximum(0, 5 * y)).beta
    array([ 1., -1.])
    """
    state = _State(K, y, lower, upper, float(epsilon), intercept, smo.feasible_start(start, lower, upper, intercept))
    n_iter, idle, n_renewed, last = 0, 0, 0, np.empty(0, np.int64)
    most, violation = 1000 * y.size + _FEW_STEPS, state.violation()
    wanted, tol = tol, max(tol, state.rounding())
    while violation > tol and n_renewed <= _RENEWALS:
        last = state.choose(last)
        used, gain = state.solve(last, max(tol, _ROUGH * violation), min(100 * last.size, most - n_iter))
        n_iter, idle = n_iter + used, 0 if gain > _TINY_GAIN * state.size() else idle + 1
        violation = state.violation()
        if violation <= tol or idle > _PATIENCE or n_iter >= most:
            # The corrections have left their rounding in the gradient: what counts is one made anew.
            state.renew()
            violation, n_renewed = state.violation(), n_renewed + 1
            tol = max(wanted, state.rounding())
            if n_iter >= most:
                break
    return BoxSolution(state.beta, state.gradient, n_iter, bool(violation <= wanted))


class _State:
    """Coefficients and gradient of all samples."""

    def __init__(
        self,
        K: BlockKernel,
        y: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        epsilon: float,
        intercept: bool,
        beta: np.ndarray,
    ) -> None:
        self.K, self.y, self.lower, self.upper = K, y, lower, upper
        self.epsilon, self.intercept, self.beta = epsilon, intercept, beta
        self.diagonal = K.diagonal()
        self.renew()

    def renew(self) -> None:
        """Make the gradient anew."""
        self.gradient = self.K.product(self.beta[None])[0] - self.y

    def violation(self) -> float:
        return smo.violation(self.gradient, self.beta, self.lower, self.upper, self.epsilon, self.intercept)

    def rounding(self) -> float:
        """Return about how far rounded kernel values move the gradient: a smaller violation means nothing."""
        root = np.sqrt(self.diagonal)
        return self.K.unit_roundoff * float(root.max()) * float(np.linalg.norm(root * self.beta))

    def size(self) -> float:
        """Return about how large the objective is, for what counts as nothing beside it."""
        return float(np.abs(self.beta) @ np.abs(self.y)) + float(np.abs(self.beta @ self.gradient))

    def choose(self, last: np.ndarray) -> np.ndarray:
        """Return the samples of the next working set."""
        return working_set(self.gradient, self.beta, self.lower, self.upper, self.epsilon, last, _WORKING_SET)

    def solve(self, chosen: np.ndarray, tol: float, most: int) -> tuple[int, float]:
        """Solve for the chosen samples, and correct the gradient of all; returns the steps made and what they gain."""
        before, slope = self.beta[chosen], self.gradient[chosen]
        beta, gradient = before.copy(), slope.copy()
        used, _ = smo.solve_in_place(
            self.K.block(chosen),
            self.diagonal[chosen],
            gradient,
            beta,
            self.lower[chosen],
            self.upper[chosen],
            self.epsilon,
            tol,
            most,
            self.intercept,
        )
        change = beta - before
        moved = np.flatnonzero(change)
        if moved.size:
            self.beta[chosen] = beta
            self.gradient += self.K.columns_product(chosen[moved], change[moved])
        kink = self.epsilon * float(np.abs(before).sum() - np.abs(beta).sum())
        return used, kink - 0.5 * float(change @ (slope + gradient))
