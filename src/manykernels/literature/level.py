"""The extended level method (Xu, Jin, King and Lyu, 2008): cutting planes, with steps that are held back.

The lowest point of the maximum of the planes jumps about. Here it only gives a lower bound of the optimum; the next
weights are those nearest to the last ones at which no plane is above a level between the bounds,

    minimize over d >= 0, sum d = 1    |d - d_last|^2     with  c_i - s_i'd <= lower + 0.9 (upper - lower)  for all i

which is a quadratic program, solved by Clarabel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manykernels.compute.threads import one_blas_thread
from manykernels.core.results import Result
from manykernels.literature.cutting_planes import CuttingPlanes
from manykernels.literature.weight_search import SearchPoint, WeightSearch
from manykernels.problem import Problem

_LEVEL = 0.9  # where the level lies between the lower and the upper bound; the paper's value
_EXACT = 1e-10
_ABOVE, _BELOW = 1e-9, 1e-7  # a plane above the level by more than that takes part, one below by more does not
_NEGLIGIBLE = 1e-8  # an interior point method leaves this much of a weight that should be 0


@one_blas_thread()
def level(problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None) -> Result:
    """Run the method; it needs Clarabel, ``pip install manykernels[baselines]``.

    Parameters
    ----------
    problem : Problem
        Its norm is LpNorm(1).
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most planes; each takes one machine, one linear program and one quadratic program.
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
    >>> from manykernels.literature.level import level
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]), X)
    >>> problem = Problem(bank, Hinge(), LpNorm(1), np.sign(np.sin(3 * X.T)), np.ones((1, 30)))
    >>> level(problem).converged
    True
    """
    return _LevelMethod(problem, tol, _clarabel()).run(max_iter, start)


def _clarabel() -> Any:
    try:
        import clarabel  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("solver='level' needs Clarabel: pip install manykernels[baselines].") from error
    return clarabel


class _LevelMethod(WeightSearch):
    def __init__(self, problem: Problem, tol: float, clarabel: Any) -> None:
        super().__init__(problem, tol)
        self.clarabel = clarabel
        self.planes = CuttingPlanes(problem, 1.0)
        self.active = np.empty(0, int)

    def advance(self, point: SearchPoint) -> SearchPoint | None:
        """Return the machine at the nearest point of the level set."""
        planes = self.planes
        if planes.are_at_their_end:
            return None
        planes.add(point)
        lowest = planes.lowest()
        if lowest is None:
            return None
        level = planes.lower + _LEVEL * (planes.upper - planes.lower)
        nearest = self._projected(point.weights, level / planes.unit)
        # Where the bounds have met, rounding may leave no point below the level.
        weights = lowest if nearest is None else nearest
        return self.evaluate(weights, point.machine, planes.needed)

    def _projected(self, weights: np.ndarray, level: float) -> np.ndarray | None:
        """Return the nearest weights at which no plane is above the level; None if none are found.

        Few planes matter: the search begins with those of the last time, and adds those that are above the level.
        """
        S, c = self.planes.planes()
        active = np.append(self.active, c.size - 1)
        while True:
            nearest = self._nearest(weights, S[active], level - c[active])
            if nearest is None:
                return None
            heights = c - S @ nearest - level
            new = np.setdiff1d(np.flatnonzero(heights > _ABOVE), active)
            if not new.size:
                self.active = active[heights[active] > -_BELOW]
                return nearest
            active = np.append(active, new)

    def _nearest(self, weights: np.ndarray, S: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        """Return the nearest point of the simplex with -S d <= b."""
        m, clarabel = weights.size, self.clarabel
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _EXACT
        A = sp.vstack([sp.csc_matrix(np.ones((1, m))), -sp.identity(m), sp.csc_matrix(-S)], format="csc")
        right = np.concatenate([[1.0], np.zeros(m), b])
        cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(m + b.size)]
        solution = clarabel.DefaultSolver(sp.identity(m, format="csc"), -weights, A, right, cones, settings).solve()
        x, multipliers = np.array(solution.x), np.array(solution.z)[1 : m + 1]
        is_solved = solution.status in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
        if not is_solved or not x.max() > 0:
            return None
        x[np.maximum(np.minimum(multipliers, 0.5 * x.max()), _NEGLIGIBLE * x.max()) > x] = 0.0
        return x / x.sum()
