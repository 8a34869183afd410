"""Which kernels provably have weight 0 at the optimum (LpNorm(1)).

Let d be any weights with sum 1, beta any feasible dual point, f = K_d beta, b any intercept, z = f + b, and
P = 1/2 beta' K_d beta + sum_i C_i loss(y_i, z_i). For every feasible beta' (write delta = beta' - beta), expanding
the square and the inequality of Fenchel and Young for each sample gives the identity

    P - D_d(beta')  =  1/2 delta' K_d delta + sum_i e_i(beta'_i),                                              (1)
    D_d(beta') = -sum_i conj_i(beta'_i) - 1/2 beta'' K_d beta',
    e_i(beta'_i) = C_i loss(y_i, z_i) + conj_i(beta'_i) + beta'_i z_i  >=  0.

The dual value of the problem with all kernels is D(beta') <= D_d(beta'), since max_k q_k >= sum_k d_k q_k. So every
beta' with D_d(beta') >= L, where L is a lower bound of the optimum, has both terms of (1) at most Gamma = P - L; the
optimal beta' is such a point.

The conjugate tells how fast e_i grows. For the hinge, e_i = |r_i| |beta'_i - end_i| with r_i = 1 - y_i z_i and end_i
the end of the box to which the sign of r_i points (likewise for the epsilon-insensitive loss). So the samples N with
|r_i| >= r move little: sum_N |beta'_i - end_i| <= Gamma / r, hence

    sum_N |delta_i| <= S = Gamma / r + sum_N |end_i - beta_i|.

On the other samples F, with R^2 = 2 Gamma and kappa_k^2 the largest diagonal entry of K_k, the triangle inequality
gives ||delta_F||_{K_d} <= T = R + kappa_d S. Along directions where K_d vanishes only the box holds beta', |delta_i| <=
w_i = max(beta_i - lower_i, upper_i - beta_i); so for every eps > 0, H = K_d + eps I on F has

    delta_F' H delta_F  <=  T^2 + eps sum_F w_i^2.

Any r and eps give a bound; those that make it small for an average kernel are taken. A smooth loss needs neither N nor
the box: it has e_i >= c_i/2 (beta'_i - beta0_i)^2 with beta0_i = -C_i loss'(y_i, z_i) and c_i the least curvature of
its conjugate, so H = K_d + diag(c) on all samples has delta' H delta <= (R + sqrt(sum_i c_i (beta0_i - beta_i)^2))^2.

Write rho^2 for the right-hand side. Since delta' K_k delta <= tr(K_k H^-1) delta' H delta,

    ||delta||_{K_k}  <=  t_k := sqrt(tr(K_k H^-1)) rho + kappa_k S.

So sqrt(q_k(beta')) lies within t_k of sqrt(q_k(beta)), and a kernel with

    sqrt(q_k(beta)) + t_k  <  max_j (sqrt(q_j(beta)) - t_j)

does not attain max_j q_j at the optimum: its weight there is 0. The same holds at every feasible point whose D_d is at
least L, so a later dual value is exact without it.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy.linalg import LinAlgError, eigvalsh
from scipy.linalg.lapack import dpotrf, dpotri

from manykernels.compute.linalg import principal_block
from manykernels.compute.triangles import mirror_rows
from manykernels.core.results import Machine
from manykernels.losses import Loss
from manykernels.problem import Problem

# tr(K_k H^-1) is summed in floating point: the bound is widened by this factor.
_SAFETY = 1.0 + 1e-6
# Values of r to try, in the unit in which kappa S is about R.
_MARGINS = (0.5, 2.0)


def surviving_kernels(
    problem: Problem,
    weights: np.ndarray,
    machine: Machine,
    quad_forms: np.ndarray,
    lower_bound: float,
    candidates: np.ndarray,
) -> np.ndarray:
    """Tell which candidates cannot be ruled out.

    Parameters
    ----------
    problem : Problem
        With LpNorm(1), one task or several.
    weights : ndarray of shape (n_kernels,)
    machine : Machine
    quad_forms : ndarray of shape (len(candidates),)
        q_k of the candidates at the machine.
    lower_bound : float
        A lower bound of the optimal value, such as a dual value.
    candidates : ndarray of int
        Kernels still in question; the others are known to have weight 0.

    Returns
    -------
    ndarray of bool, of shape (len(candidates),)
        One pass over the candidates is made.
    """
    gamma = max(machine.objective - lower_bound, 0.0)
    reach = _Reach(problem, problem.bank.combine(weights).array, machine, gamma)
    traces = np.maximum(problem.bank.inner_products(reach.inverse, candidates), 0.0)
    top = np.sqrt(problem.bank.largest_diagonals(candidates))
    t = _SAFETY * (np.sqrt(traces) * reach.rho + top * reach.fixed)
    root = np.sqrt(quad_forms)
    return root + t >= np.max(root - t)


class _Reach:
    """How far a feasible point as good as the bound can be: S (``fixed``), rho and H^-1 of the module's docstring.

    K is overwritten.
    """

    def __init__(self, problem: Problem, K: np.ndarray, machine: Machine, gamma: float) -> None:
        loss, y, C, beta = cast(Loss, problem.loss), problem.y, problem.C, machine.beta
        slope, end = loss.dual_pull(y, machine.decision + machine.intercept[:, None], C)
        stiffness = loss.dual_stiffness(y, C)
        radius = np.sqrt(2.0 * gamma) + 1e-300
        if stiffness is not None:
            self.fixed = 0.0
            self.rho = radius + float(np.sqrt(np.sum(stiffness * (end - beta) ** 2)))
            self.inverse = _inverse(K, np.arange(K.shape[0]), stiffness.min(axis=0))
            return
        lower, upper = loss.domain(y, C)
        room = np.maximum(beta - lower, upper - beta)
        kappa = float(np.sqrt(K.diagonal().max()))
        best = np.inf
        for factor in _MARGINS:
            least = factor * gamma * kappa / radius + 1e-300
            fixed = slope >= least
            moved = gamma / least + float(np.sum(np.abs(end - beta)[fixed]))
            free = np.flatnonzero(~fixed.all(axis=0))
            reach = radius + kappa * moved
            ridge, stretch = _best_ridge(K, free, reach, float(np.sum(room[:, free] ** 2)))
            size = stretch + kappa * moved
            if size < best:
                best, chosen = size, (free, ridge, moved, np.sqrt(reach**2 + ridge * np.sum(room[:, free] ** 2)))
        free, ridge, self.fixed, self.rho = chosen
        self.inverse = _inverse(K, free, np.full(K.shape[0], ridge))


def _best_ridge(K: np.ndarray, free: np.ndarray, reach: float, room: float) -> tuple[float, float]:
    """Return the eps that makes the bound of an average kernel smallest, and that bound."""
    if free.size == 0:
        return 0.0, 0.0
    eigenvalues = np.maximum(eigvalsh(principal_block(K, free).T, overwrite_a=True, check_finite=False), 0.0)
    ridges = reach**2 / (room + 1e-300) * np.geomspace(1e-3, 10.0, 13)
    traces = np.sum(1.0 / (eigenvalues[:, None] + ridges[None, :]), axis=0) * float(np.mean(K.diagonal()))
    bounds = np.sqrt(traces * (reach**2 + ridges * room))
    k = int(np.argmin(bounds))
    return float(ridges[k]), float(bounds[k])


def _inverse(K: np.ndarray, free: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """Return the inverse of K + diag on the free samples, 0 elsewhere; it may take the place of K."""
    H = principal_block(K, free)
    H[np.diag_indices_from(H)] += diagonal[free]
    inverse = _inverted(H)
    if free.size == K.shape[0]:
        return inverse
    K[:] = 0.0
    K[np.ix_(free, free)] = inverse
    return K


def _inverted(H: np.ndarray) -> np.ndarray:
    """Return the inverse of a positive definite matrix in its place: memory is planned for no other."""
    if H.size == 0:
        return H
    factor, status = dpotrf(H.T, overwrite_a=True, clean=False)
    if status == 0:
        factor, status = dpotri(factor, overwrite_c=True)
    if status:
        raise LinAlgError(f"a matrix of order {H.shape[0]} is not positive definite")
    mirror_rows(factor, 0, factor.shape[0])
    return factor.T
