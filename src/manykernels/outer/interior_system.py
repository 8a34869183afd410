"""The linear system of one step of the interior point, and the unknowns that it is about.

The dual coefficients are made of parts, beta = sum_j sign_j x_j. With D_j the second derivative of part j and its
bounds, the parts share the field K_d dbeta + G' dd + db, so they are eliminated first and leave the diagonal matrix
1/E, E = sum_j 1/D_j:

    (K_d + diag(1/E)) dbeta + G' dd + db 1 = r_beta            G = the rows K_k beta, K_d = sum_k d_k K_k
    2 G dbeta - (s/d + tau (p-1) d^(p-2)) dd - P dtau = r_s       P = d^(p-1), with a column for each group
    p P' dd - (deta/dtau) dtau = r_d,     1' dbeta = r_b

What remains is solved on the side of the kernels (a system of their number) or of the samples, whichever is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

if TYPE_CHECKING:
    from manykernels.outer.interior_point import InteriorPoint

_RIDGE = 1e-13


@dataclass
class Unknowns:
    """An iterate; x, z_lower and z_upper have shape (n_parts, n_tasks, n_samples), d and s (n_kernels,)."""

    x: np.ndarray
    d: np.ndarray
    s: np.ndarray
    tau: np.ndarray
    b: np.ndarray
    z_lower: np.ndarray
    z_upper: np.ndarray

    def plus(self, length: float, step: Unknowns) -> Unknowns:
        """Return this point moved along a step."""
        moved = {f.name: getattr(self, f.name) + length * getattr(step, f.name) for f in fields(self)}
        return Unknowns(**moved)


class NewtonSystem:
    """The linear system of one iteration, factored once for predictor and corrector."""

    def __init__(self, method: InteriorPoint) -> None:
        self.method, point = method, method.point
        G, p = method.products, method.p
        self.above = np.where(method.has_lower, point.x - method.lower, 1.0)
        self.below = np.where(method.has_upper, method.upper - point.x, 1.0)
        self.weights, self.roots = method.weights(point), method.roots(point)
        beta, power = method.beta(point.x), self.weights ** (p - 1)
        field = np.einsum("k,tkn->tn", self.weights, G) + point.b[:, None]
        self.residual_x = method.slopes(point.x) + method.sign * field - point.z_lower + point.z_upper
        tau, forms = method.levels(point)[method.owner], np.einsum("tkn,tn->k", G, beta)
        self.residual_s = tau * power - forms - point.s * self.roots
        self.residual_d, corner = self._group_equations(forms)
        self.residual_b = -method.imbalance(beta)
        self.D = method.curvatures(point.x) + point.z_lower / self.above + point.z_upper / self.below
        self.E = np.sum(1.0 / self.D, axis=0)
        bend = point.s * self.roots / self.weights + (tau * (p - 1) * point.d ** (p - 2) if p > 1 else 0.0)
        K = method.problem.bank.combine(self.weights, out=method.K).array
        diagonal = 1.0 / self.E + _RIDGE * float(np.mean(K.diagonal()))
        side = KernelSide if point.d.size <= beta.size else SampleSide
        P = np.zeros((power.size, method.n_groups))
        P[np.arange(power.size), method.owner] = np.where(
            method.sharp[method.owner], point.s + self.roots + forms / self.roots, power
        )
        self.system = side(K, diagonal, G, bend, P, p, corner, method.problem.fit_intercept)
        if method.fixed_tau:
            self.system.fix_tau()

    def _group_equations(self, forms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what the sums of the weights lack, and how their right sides move with tau."""
        method, point = self.method, self.method.point
        still = np.zeros((method.n_groups, method.n_groups))
        if method.conic:
            return self._cone_equations(forms)
        if method.mixed is not None:
            eta = method.group_weights(point.tau)
            return eta - method.mixed.sums(point.d), eta[:, None] * method.mixed.group_bend(point.tau, method.least)
        return np.array([0.0 if method.fixed_tau else 1.0 - np.sum(point.d**method.p)]), still

    def _cone_equations(self, forms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same for q > 1: with the slacks eliminated, products of a sharp group's right side join in."""
        method, point, roots = self.method, self.method.point, self.roots
        assert method.mixed is not None
        slope, bend = method.bent(point.tau)
        sharp = method.sharp[method.owner]
        cone = point.d * (1.0 + forms / roots**2) + self.weights * self.residual_s / roots
        held = np.where(sharp, self.weights * (1.0 + 0.5 * point.s / roots), 0.0)
        sums = method.mixed.sums(np.where(sharp, cone, point.d))
        return 2.0 * slope - sums, 2.0 * (bend - np.diag(method.mixed.sums(held)))

    def direction(self, mu: float, affine: Unknowns | None, share: float = 1.0) -> Unknowns:
        """Return the Newton direction toward products equal to ``mu``, with a share of Mehrotra's correction."""
        method, point = self.method, self.method.point
        c_d = method.omega * mu - point.d * point.s
        c_lower = mu - point.z_lower * self.above
        c_upper = mu - point.z_upper * self.below
        if affine is not None:
            c_d = c_d - share * affine.d * affine.s
            c_lower = c_lower - share * affine.z_lower * affine.x
            c_upper = c_upper + share * affine.z_upper * affine.x
        c_lower, c_upper = np.where(method.has_lower, c_lower, 0.0), np.where(method.has_upper, c_upper, 0.0)
        right_x = -self.residual_x + c_lower / self.above - c_upper / self.below
        right = np.sum(method.sign * right_x / self.D, axis=0) / self.E
        right_d = self.residual_d
        if method.mixed is not None:
            right_d = right_d + method.mixed.sums(np.where(method.sharp[method.owner], c_d / self.roots, 0.0))
        answer = self.system.solve(right, self.residual_s - c_d / self.weights, right_d, self.residual_b)
        d_d = self.roots * answer.d + self.weights * np.where(method.sharp, answer.tau, 0.0)[method.owner]
        # D x + sign * field = right_x, and the field is what makes the parts sum to d_beta.
        d_x = (right_x - method.sign * (right - answer.beta / self.E)) / self.D
        return Unknowns(
            x=d_x,
            d=d_d,
            s=(c_d - point.s * d_d) / point.d,
            tau=answer.tau,
            b=answer.b,
            z_lower=np.where(method.has_lower, (c_lower - point.z_lower * d_x) / self.above, 0.0),
            z_upper=np.where(method.has_upper, (c_upper + point.z_upper * d_x) / self.below, 0.0),
        )


class Answer(NamedTuple):
    """The changes of beta, (n_tasks, n_samples), of the weights, of the intercepts and of tau."""

    beta: np.ndarray
    d: np.ndarray
    b: np.ndarray
    tau: np.ndarray


class KernelSide:
    """The linear system with beta eliminated: one Cholesky factorization a task, then a system of the kernels."""

    def __init__(
        self,
        K: np.ndarray,
        diagonal: np.ndarray,
        G: np.ndarray,
        bend: np.ndarray,
        P: np.ndarray,
        p: float,
        corner: np.ndarray,
        intercept: bool,
    ) -> None:
        n_tasks, m, n = G.shape
        self.L, self.H = [], np.empty((n_tasks, n, m + 1))
        for t in range(n_tasks):
            A = K.copy() if n_tasks > 1 else K
            A[np.diag_indices(n)] += diagonal[t]
            # The transpose has the order that LAPACK wants: the factor takes the place of A.
            self.L.append(cholesky(A.T, lower=True, overwrite_a=True, check_finite=False))
            right = np.vstack([G[t], np.ones((1, n))]).T
            self.H[t] = solve_triangular(self.L[t], right, lower=True, check_finite=False)
        self.m, self.tasks = m, n_tasks if intercept else 0
        last = m + self.tasks
        self.M = np.zeros((last + P.shape[1], last + P.shape[1]))
        for t in range(n_tasks):
            self.M[:m, :m] += 2.0 * (self.H[t, :, :m].T @ self.H[t, :, :m])
        self.M[np.arange(m), np.arange(m)] += bend
        for t in range(self.tasks):
            ones = self.H[t, :, m]
            self.M[m + t, :m] = ones @ self.H[t, :, :m]
            self.M[:m, m + t] = 2.0 * self.M[m + t, :m]
            self.M[m + t, m + t] = ones @ ones
        self.M[:m, last:] = P
        self.M[last:, :m] = p * P.T
        self.M[last:, last:] = -corner
        if not np.all(np.isfinite(self.M)):
            raise LinAlgError("not finite")

    def fix_tau(self) -> None:
        """Put tau = 0 in the place of the last equation."""
        self.M[-1] = 0.0
        self.M[-1, -1] = 1.0

    def solve(self, r_beta: np.ndarray, r_s: np.ndarray, r_d: np.ndarray, r_b: np.ndarray) -> Answer:
        """Return the changes for these right sides, which are named as in the module's docstring."""
        m, n_tasks, last = self.m, r_beta.shape[0], self.m + self.tasks
        half = [solve_triangular(self.L[t], r_beta[t], lower=True, check_finite=False) for t in range(n_tasks)]
        right = np.zeros(self.M.shape[0])
        right[:m] = 2.0 * sum(half[t] @ self.H[t, :, :m] for t in range(n_tasks)) - r_s
        for t in range(self.tasks):
            right[m + t] = self.H[t, :, m] @ half[t] - r_b[t]
        right[last:] = r_d
        small = np.linalg.solve(self.M, right)
        d, b = small[:m], small[m:last] if self.tasks else np.zeros(n_tasks)
        rest = [half[t] - self.H[t, :, :m] @ d - self.H[t, :, m] * b[t] for t in range(n_tasks)]
        beta = [solve_triangular(self.L[t], rest[t], lower=True, trans=1, check_finite=False) for t in range(n_tasks)]
        return Answer(np.array(beta), d, b, small[last:])


class SampleSide:
    """The linear system with the weights eliminated: one Cholesky factorization of all tasks' samples.

    For more kernels than samples. ``bend`` is positive inside, for p = 1 and mixed norms by the slacks alone.
    """

    def __init__(
        self,
        K: np.ndarray,
        diagonal: np.ndarray,
        G: np.ndarray,
        bend: np.ndarray,
        P: np.ndarray,
        p: float,
        corner: np.ndarray,
        intercept: bool,
    ) -> None:
        n_tasks, m, n = G.shape
        self.G = G.transpose(1, 0, 2).reshape(m, n_tasks * n)
        self.bend, self.P, self.p, self.has_tau = bend, P, p, True
        scaled = self.G / np.sqrt(bend)[:, None]
        B = scaled.T @ scaled
        B *= 2.0
        for t in range(n_tasks):
            block = slice(t * n, (t + 1) * n)
            B[block, block] += K
        B[np.diag_indices_from(B)] += diagonal.ravel()
        self.L = cholesky(B.T, lower=True, overwrite_a=True, check_finite=False)
        self.tasks = n_tasks if intercept else 0
        self.n_groups = P.shape[1]
        self.g = (P / bend[:, None]).T @ self.G
        ones = np.zeros((self.tasks, n_tasks, n))
        for t in range(self.tasks):
            ones[t, t] = 1.0
        # Beta depends on the few other unknowns (tau, b) through these columns.
        self.columns = np.vstack([-self.g, ones.reshape(self.tasks, n_tasks * n)])
        self.half = solve_triangular(self.L, self.columns.T, lower=True, check_finite=False)
        self.M = -(self.half.T @ self.half)
        self.M[: self.n_groups, : self.n_groups] += 0.5 * P.T @ (P / bend[:, None])
        self.M[: self.n_groups, : self.n_groups] += 0.5 * corner / p
        if not np.all(np.isfinite(self.M)):
            raise LinAlgError("not finite")

    def fix_tau(self) -> None:
        """Put tau = 0 in the place of the first equation."""
        self.has_tau = False

    def solve(self, r_beta: np.ndarray, r_s: np.ndarray, r_d: np.ndarray, r_b: np.ndarray) -> Answer:
        """Return the changes for these right sides, which are named as in the module's docstring."""
        n_tasks, n_groups = r_beta.shape[0], self.n_groups
        known = r_beta.ravel() + self.G.T @ (r_s / self.bend)
        half = solve_triangular(self.L, known, lower=True, check_finite=False)
        right = np.empty(n_groups + self.tasks)
        right[:n_groups] = -0.5 * (r_d / self.p + self.P.T @ (r_s / self.bend))
        right[n_groups:] = r_b[: self.tasks]
        first = 0 if self.has_tau else 1
        few = np.zeros(n_groups + self.tasks)
        few[first:] = np.linalg.solve(self.M[first:, first:], (right - self.half.T @ half)[first:])
        beta = solve_triangular(self.L, half - self.half @ few, lower=True, trans=1, check_finite=False)
        d = (2.0 * (self.G @ beta) - self.P @ few[:n_groups] - r_s) / self.bend
        b = few[n_groups:] if self.tasks else np.zeros(n_tasks)
        return Answer(beta.reshape(r_beta.shape), d, b, few[:n_groups])
