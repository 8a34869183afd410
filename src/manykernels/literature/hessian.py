"""HessianMKL (Chapelle and Rakotomamonjy, 2008): Newton steps in all weights, and a line search.

With F the samples inside their bounds the Hessian of J, the value of the machine as a function of the weights, is

    H = G_F (K_FF + diag(conj''))^-1 G_F',      G = the rows K_k beta,      with the intercept eliminated

as in :mod:`manykernels.outer.reduced_newton`, but for all kernels. A step goes to the minimum of the quadratic model on
the simplex, and is halved until J falls by enough. Where few samples are free, J is nearly piecewise linear: H
then says little, and steps are short.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError

from manykernels.core.results import Result
from manykernels.literature.weight_search import SearchPoint, WeightSearch
from manykernels.outer.curvature import of_task
from manykernels.outer.quadratic_model import best_weights
from manykernels.problem import Problem

_ARMIJO, _MOST_HALVINGS = 0.1, 30
_LEAST_SHARE = 1e-6
_RIDGE = 1e-8  # of the largest curvature: of two kernels that are the same, both get a share


def hessian(problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None) -> Result:
    """Run the method.

    Parameters
    ----------
    problem : Problem
        Its norm is LpNorm(1).
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most steps; each takes one machine or a few, one factorization and products with all kernels.
    start : ndarray of shape (n_kernels,), optional
        Weights to start from. Default: equal weights.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Hinge
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.literature.hessian import hessian
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]), X)
    >>> problem = Problem(bank, Hinge(), LpNorm(1), np.sign(np.sin(3 * X.T)), np.ones((1, 30)))
    >>> hessian(problem).converged
    True
    """
    return _NewtonSteps(problem, tol).run(max_iter, start)


class _NewtonSteps(WeightSearch):
    share = 0.1

    def advance(self, point: SearchPoint) -> SearchPoint | None:
        """Return the point after one step; if J does not fall along it, the same weights with a more exact machine."""
        trial = self._step(point)
        if trial is None and self.share > _LEAST_SHARE:
            self.share *= 0.1
            return self.evaluate(point.weights, point.machine)
        return trial

    def _step(self, point: SearchPoint) -> SearchPoint | None:
        """Halve the step to the model's minimum until it lowers J by enough, and return that point."""
        try:
            step = self._minimum(point) - point.weights
        except LinAlgError:
            return None
        for _ in range(_MOST_HALVINGS):
            promised = -float(point.gradient @ step)
            if not promised > _ARMIJO * point.error:
                return None
            trial = self.evaluate(np.maximum(point.weights + step, 0.0), point.machine)
            if trial.value < point.value - _ARMIJO * promised:
                return trial
            step = 0.5 * step
        return None

    def _minimum(self, point: SearchPoint) -> np.ndarray:
        """Return the weights at the minimum of the quadratic model; K is combined with those of the point."""
        K = self.problem.bank.combine(point.weights, out=self.K).array
        H = np.zeros((point.weights.size, point.weights.size))
        for t, beta in enumerate(point.machine.beta):
            products = self.problem.bank.matvecs(beta, on_support=True)
            H += of_task(self.problem, K, point.machine, products, t, mu=0.0).hessian
        H[np.diag_indices_from(H)] += _RIDGE * H.diagonal().max()
        # On the simplex adding a constant to the gradient changes nothing, and this one keeps the minimum on it.
        lifted = point.gradient - 2.0 * H.diagonal().max()
        aim = best_weights(lifted, H, point.weights, p=1)
        return aim / aim.sum()
