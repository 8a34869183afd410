"""UFO-MKL: one sample at a time, with exact zeros in the kernel weights (Orabona and Jie, 2011, Algorithm 1).

    minimize   lambda/2 ||a||_p^2 + alpha ||a||_1 + mean_i loss(y_i, f(x_i)),   a_k = ||f_k||,   lambda = 1 / (C n)

Step t looks at one sample, adds minus a subgradient of its loss to theta, and takes for f the gradient of the
regularizer's conjugate at theta / t. So theta / t is the mean of subgradients: with every sample visited equally often
it is feasible for the dual problem, and each epoch ends with a certificate that costs nothing. Values are stated like
all others of the library, divided by lambda: 1/2 ||a||_p^2 + alpha C n ||a||_1 + C sum_i loss.

The sum of the steps, theta, is in :mod:`manykernels.outer.ufo_theta`, the compiled steps in
:mod:`manykernels.outer.ufo_steps`. A bias comes with augmented kernels, k plus a constant: there is no intercept in the
problem itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.checks import check_choice, check_count
from manykernels.core.progress import emit, is_listened_to
from manykernels.core.results import Certificate, Step
from manykernels.outer.ufo_theta import Theta

SAMPLINGS = ("shuffle", "uniform")
# A gap of this size is rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class UfoResult:
    """The outcome: ``coef`` (m,) with f_k = coef_k theta_k, the norms a_k (m,), certificate and trace.

    ``beta`` (n, n_outputs) are the coefficients of theta_k = sum_i beta_i phi_k(x_i).

    ``components``, for an average, holds the f_k themselves: as sums over samples (n, n_outputs, m), or as vectors
    (n_outputs, n_features).
    """

    coef: np.ndarray
    norms: np.ndarray
    certificate: Certificate
    trace: list[Step]
    beta: np.ndarray
    components: np.ndarray | None
    interrupted: bool


def largest_alpha(theta: Theta) -> float:
    """Return an alpha from which on no kernel helps: the predictor 0 is then optimal.

    It is max_k ||mean_i g_i phi_k(x_i)||, with -g_i a subgradient of the loss of sample i at 0. Where that is the only
    one, it is the smallest such alpha; for the multiclass hinge loss, a smaller one may do.
    """
    share = theta.C / theta.C.sum()
    return float(np.sqrt(theta.squared_norms(share[:, None] * theta.first_steps()).max()))


@one_blas_thread()
def ufo(
    theta: Theta,
    *,
    max_iter: int = 10,
    sampling: str = "shuffle",
    tol: float = 0.0,
    random_state: int | np.random.Generator = 0,
) -> UfoResult:
    """Walk through the samples.

    Parameters
    ----------
    theta : SampleTheta or FeatureTheta
    max_iter : int
        Epochs: passes over the samples, each of as many steps as there are samples.
    sampling : {"shuffle", "uniform"}
        Every sample once an epoch in random order, or each step at a random sample, as in the paper.
    tol : float
        Stop when the relative duality gap falls to this.
    random_state : int or Generator

    Returns
    -------
    UfoResult

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.banks.pairs import PairValues
    >>> from manykernels.losses import Hinge, OneVsRest
    >>> from manykernels.outer.ufo import ufo
    >>> from manykernels.outer.ufo_sample_theta import SampleTheta
    >>> from manykernels.outer.ufo_theta import make_rule
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> y = np.sign(np.sin(3 * X))
    >>> pairs = PairValues(bind(KernelBank([Gaussian(w) for w in (0.1, 0.5, 10.0)]), X), 0.0, 10**9)
    >>> loss = OneVsRest(Hinge(), 1)
    >>> theta = SampleTheta(pairs, loss, y, np.ones(60), make_rule(loss, alpha=0.02, total_C=60, n_kernels=3))
    >>> result = ufo(theta, max_iter=50)
    >>> bool(result.certificate.gap < 0.05)
    True
    >>> float(result.norms[2])  # much too wide
    0.0
    """
    check_choice("sampling", sampling, SAMPLINGS)
    max_iter = check_count("max_iter", max_iter)
    rng = np.random.default_rng(random_state)
    orders: dict[str, Callable[[int], np.ndarray]] = {
        "shuffle": rng.permutation,
        "uniform": lambda n: rng.integers(0, n, n),
    }
    started, trace = time.perf_counter(), []
    for epoch in range(1, max_iter + 1):
        interrupted = _interrupted(theta.advance, orders[sampling](theta.n_samples))
        result = standing(theta)
        gap, n_active = result.certificate.gap, int(np.count_nonzero(result.norms))
        trace.append(Step(epoch, time.perf_counter() - started, result.certificate.primal, gap, n_active, tol))
        interrupted = _interrupted(emit, trace[-1]) or interrupted
        if interrupted or gap <= max(tol, _ROUNDING):
            break
        if epoch == 1 and theta.average and max_iter > 1:
            theta.forget_average()
    return replace(result, trace=trace, interrupted=interrupted)


def standing(theta: Theta) -> UfoResult:
    """Return the predictor of theta and its certificate as they stand, without a step."""
    theta.settle()
    reached = theta.predictor()
    certificate = theta.certificate(reached.norms, reached.outputs)
    return UfoResult(reached.coef, reached.norms, certificate, [], theta.beta, reached.components, False)


def _interrupted(run: Callable[[Any], None], argument: Any) -> bool:
    """Run; return whether Ctrl-C ended that while someone watches, who gets what has been learned so far."""
    try:
        run(argument)
    except KeyboardInterrupt:
        if not is_listened_to():
            raise
        return True
    return False
