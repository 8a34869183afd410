"""Coordinate descent for a smooth convex function of many variables, with coordinates drawn at random.

Three ways to draw and to step: in proportion to the gradient with steps of fixed length (what
:mod:`manykernels.outer.stochastic_mirror` does with kernels), and Nesterov's RCDM and RACDM (2010), with Lipschitz
constants of the coordinates that are known, or estimated on the way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Gradient = Callable[[np.ndarray], np.ndarray]
Derivative = Callable[[np.ndarray, int], float]


def gradient_sampling(
    gradient: Gradient, x: np.ndarray, steps: int, *, random_state: int = 0, watch: Callable | None = None
) -> np.ndarray:
    """Draw coordinates in proportion to the size of their derivative; each step has the length 1 / sqrt(steps).

    Parameters
    ----------
    gradient : callable
        The gradient at x, shape (n,).
    x : ndarray of shape (n,)
    steps : int
    random_state : int
    watch : callable, optional
        Called with the number of the step and x.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.literature.coordinate import gradient_sampling
    >>> target = 0.5 ** np.arange(10)
    >>> x = gradient_sampling(lambda x: x - target, np.zeros(10), 2000)
    >>> bool(np.abs(x - target).max() < 0.1)
    True
    """
    rng, x = np.random.default_rng(random_state), x.copy()
    for k in range(steps):
        slopes = gradient(x)
        size = np.abs(slopes)
        total = float(size.sum())
        if total == 0.0:
            break
        i = int(np.searchsorted(np.cumsum(size), rng.random() * total).clip(0, x.size - 1))
        # The estimate sign(g_i) * sum |g| e_i is unbiased.
        x[i] -= np.sign(slopes[i]) * total / np.sqrt(steps)
        if watch is not None:
            watch(k + 1, x)
    return x


def rcdm(
    derivative: Derivative,
    x: np.ndarray,
    lipschitz: np.ndarray,
    steps: int,
    *,
    alpha: float = 1.0,
    random_state: int = 0,
    watch: Callable | None = None,
) -> np.ndarray:
    """Draw coordinate i in proportion to L_i^alpha and step by 1 / L_i (Nesterov's RCDM).

    ``derivative(x, i)`` is one entry of the gradient, ``lipschitz`` (n,) bounds its change; the rest is as for
    :func:`gradient_sampling`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.literature.coordinate import rcdm
    >>> x = rcdm(lambda x, i: x[i] - i, np.zeros(5), np.ones(5), 100)
    >>> x.tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    rng, x = np.random.default_rng(random_state), x.copy()
    odds = np.cumsum(lipschitz**alpha)
    for k in range(steps):
        i = int(np.searchsorted(odds, rng.random() * odds[-1]).clip(0, x.size - 1))
        x[i] -= derivative(x, i) / lipschitz[i]
        if watch is not None:
            watch(k + 1, x)
    return x


def racdm(
    derivative: Derivative,
    x: np.ndarray,
    first: float,
    steps: int,
    *,
    random_state: int = 0,
    watch: Callable | None = None,
) -> np.ndarray:
    """Draw coordinates uniformly and learn their Lipschitz constants on the way (Nesterov's RACDM).

    A constant starts at ``first``, is doubled while a step goes too far, and halved after each step.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.literature.coordinate import racdm
    >>> x = racdm(lambda x, i: 3 * (x[i] - i), np.zeros(5), 0.1, 300)
    >>> bool(np.abs(x - np.arange(5)).max() < 1e-6)
    True
    """
    rng, x = np.random.default_rng(random_state), x.copy()
    constants = np.full(x.size, float(first))
    for k in range(steps):
        i = int(rng.integers(x.size))
        value, slope = x[i], derivative(x, i)
        x[i] = value - slope / constants[i]
        while slope * derivative(x, i) < 0.0:
            constants[i] *= 2.0
            x[i] = value - slope / constants[i]
        constants[i] *= 0.5
        if watch is not None:
            watch(k + 1, x)
    return x
