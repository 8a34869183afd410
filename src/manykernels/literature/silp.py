"""The semi-infinite linear program (Sonnenburg et al., 2006), and its version for p > 1 (Kloft et al., 2009).

Every machine gives a plane below J, the value of the machine as a function of the weights. The next weights are the
lowest point of the maximum of all planes so far (:mod:`manykernels.literature.cutting_planes`), a linear program for
p = 1.
"""

from __future__ import annotations

import numpy as np

from manykernels.compute.threads import one_blas_thread
from manykernels.core.results import Result
from manykernels.literature.cutting_planes import CuttingPlanes
from manykernels.literature.weight_search import SearchPoint, WeightSearch
from manykernels.outer.reduced_newton import exponent
from manykernels.problem import Problem


@one_blas_thread()
def silp(problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None) -> Result:
    """Run the method.

    Parameters
    ----------
    problem : Problem
        Its norm is an LpNorm.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most planes; each takes one machine and one program of as many constraints as there are planes.
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
    >>> from manykernels.literature.silp import silp
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]), X)
    >>> problem = Problem(bank, Hinge(), LpNorm(1), np.sign(np.sin(3 * X.T)), np.ones((1, 30)))
    >>> silp(problem).converged
    True
    """
    return _CuttingPlanes(problem, tol).run(max_iter, start)


class _CuttingPlanes(WeightSearch):
    def __init__(self, problem: Problem, tol: float) -> None:
        super().__init__(problem, tol)
        self.planes = CuttingPlanes(problem, exponent(problem.norm))

    def advance(self, point: SearchPoint) -> SearchPoint | None:
        """Return the machine at the lowest point of the maximum of the planes."""
        if self.planes.are_at_their_end:
            return None
        self.planes.add(point)
        weights = self.planes.lowest()
        if weights is None:
            return None
        return self.evaluate(weights, self.planes.mean_machine(point), self.planes.needed)
