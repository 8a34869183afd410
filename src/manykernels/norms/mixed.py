"""Mixed norms for kernels in groups (VSKL: Aflalo, Ben-Tal, Bhattacharyya, Nath and Raman, 2011)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.core.checks import check_number
from manykernels.norms.base import ComponentNorm, Levels
from manykernels.norms.lp import power_norm

# A group whose quadratic forms vanish counts as this share of the largest, so that its weights stay finite: the gap
# that this leaves is less than its square root.
_LEAST_SHARE = 1e-7


class MixedNorm(ComponentNorm):
    """Few kernels within each group, and all groups that help: an l1 norm within groups, an l_2q norm across them.

        N(a) = (sum_j A_j^(2q))^(1/(2q)),   A_j = sum of a_k over the kernels k of group j.

    For q > 1 (VSKL) large groups are held down, so that every group takes part; with q = inf the largest alone counts.
    For q = 1 groups are simply added. For q < 1 (composite kernel learning) groups are selected too, and q = 1/2 is
    plain L1-MKL. The dual norm of sqrt(q), squared, with M_j the largest quadratic form of group j, is

        N*(sqrt(q))^2 = (sum_j M_j^t)^(1/t),   t = q / (2q - 1).

    The weights are d_k = lambda_k eta_j with the lambda of a group summing to 1. For q <= 1 they minimize
    sum_k a_k^2 / d_k under ||eta||_r <= 1, r = q / (1 - q); for q > 1 the eta_j = 1 / gamma_j are the worst case under
    ||gamma||_q* <= 1 (q* = q / (q - 1)). At the optimum, in both cases, eta_j = M_j^(t-1) (sum_i M_i^t)^(1/t-1).

    Parameters
    ----------
    q : float in [1/2, inf]
    groups : sequence of hashable, one for each kernel, optional
        Default: the kernels' own ``group``, which :meth:`bind` is given.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.norms import MixedNorm
    >>> norm = MixedNorm(q=1, groups=["image", "image", "text"])
    >>> a = np.array([3.0, 1.0, 3.0])
    >>> float(norm.value(a))
    5.0
    >>> float(norm.dual_square(np.array([4.0, 9.0, 16.0])))
    25.0
    """

    def __init__(self, q: float = 2.0, groups: Sequence | None = None) -> None:
        self.q = check_number("q", q, low=0.5, closed="both")
        self.groups = None if groups is None else list(groups)
        self._owner: np.ndarray | None = None
        if self.groups is not None:
            known = {name: place for place, name in enumerate(dict.fromkeys(self.groups))}
            # With q = 1/2 the groups do not matter: all kernels are in one.
            self._owner = np.array([0 if self.q == 0.5 else known[name] for name in self.groups], dtype=np.int64)

    def parameters(self) -> dict[str, Any]:
        """Return q, and the groups as numbers: which kernels belong together matters, and names may be of any kind."""
        places = {name: place for place, name in enumerate(dict.fromkeys(self.groups or ()))}
        return {"q": self.q, "groups": None if self.groups is None else [places[name] for name in self.groups]}

    def bind(self, groups: Sequence) -> MixedNorm:
        """Return the norm for kernels of these groups; groups that were given to the norm itself are kept."""
        if self.groups is None:
            return MixedNorm(self.q, groups)
        if len(self.groups) != len(groups):
            raise ValueError(
                f"groups of MixedNorm has {len(self.groups)} entries, but there are {len(groups)} kernels."
            )
        return self

    def take(self, indices: np.ndarray) -> MixedNorm:
        """Return the norm of some of the kernels."""
        norm = MixedNorm(self.q)
        norm.groups = None if self.groups is None else [self.groups[int(k)] for k in indices]
        norm._owner = np.unique(self.owner[indices], return_inverse=True)[1].astype(np.int64)
        return norm

    @property
    def owner(self) -> np.ndarray:
        """The place of each kernel's group, shape (n_kernels,)."""
        if self._owner is None:
            raise ValueError(f"{self!r} has no groups yet: bind it to the kernels' groups.")
        return self._owner

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.owner.max(initial=-1)) + 1

    selects = True

    # -- values -------------------------------------------------------------------------------------------------

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of each group."""
        return np.bincount(self.owner, values, minlength=self.n_groups)

    def largest(self, values: np.ndarray) -> np.ndarray:
        """Return the largest value of each group, at least 0."""
        out = np.zeros(self.n_groups)
        np.maximum.at(out, self.owner, values)
        return out

    def value(self, norms: np.ndarray) -> float:
        """Return N(a) for component norms of shape (n_kernels,)."""
        return power_norm(self.sums(norms), 2.0 * self.q)

    def dual_square(self, quad_forms: np.ndarray) -> float:
        """Return N*(sqrt(q))^2 for quadratic forms of shape (n_kernels,)."""
        return power_norm(self.largest(quad_forms), self.exponent)

    @property
    def exponent(self) -> float:
        """The exponent t of the dual norm: from inf (q = 1/2) over 1 (q = 1) to 1/2 (q = inf)."""
        if np.isinf(self.q):
            return 0.5
        return np.inf if self.q == 0.5 else self.q / (2.0 * self.q - 1.0)

    def group_weights(self, largest: np.ndarray, least: float = _LEAST_SHARE) -> np.ndarray:
        """Return eta_j, the derivatives of the squared dual norm by the M_j, at M of shape (n_groups,).

        An M_j below ``least`` times the largest counts as that much: else its group's weights could be infinite.
        """
        t = self.exponent
        if t == 1 or largest.size == 1:
            return np.ones(largest.size)
        unit = float(largest.max(initial=0.0))
        if unit == 0.0:
            return self._equal(largest.size)
        shares = np.maximum(largest / unit, least)
        return shares ** (t - 1.0) * np.sum(shares**t) ** (1.0 / t - 1.0)

    def group_bend(self, largest: np.ndarray, least: float = _LEAST_SHARE) -> np.ndarray:
        """Return the derivatives of the logarithms of :meth:`group_weights` by the M_j, shape (n_groups, n_groups)."""
        t = self.exponent
        if t == 1 or largest.size == 1:
            return np.zeros((largest.size, largest.size))
        unit = float(largest.max(initial=1e-300))
        shares = np.maximum(largest / unit, least)
        moves = largest > least * unit
        parts = moves * shares ** (t - 1.0) / np.sum(shares**t)
        return (t - 1.0) / unit * (np.diag(moves / shares) - np.tile(parts, (largest.size, 1)))

    def reweigh(self, weights: np.ndarray, quad_forms: np.ndarray) -> np.ndarray:
        """Return better weights: lambda_k in proportion to a_k, then the best eta for them, both in closed form."""
        norms = weights * np.sqrt(quad_forms)
        sums = self.sums(norms)
        before = self.sums(weights)
        shares = np.divide(weights, before[self.owner], out=np.zeros_like(weights), where=before[self.owner] > 0)
        live = sums[self.owner] > 0
        shares = np.divide(norms, sums[self.owner], out=shares, where=live)
        if self.q >= 1:  # gamma is the worst case for these lambda: the quadratic forms of the groups decide
            return shares * self.group_weights(self.sums(shares * quad_forms))[self.owner]
        eta = (sums / (sums.max() or 1.0)) ** (2.0 * (1.0 - self.q))
        return self.scaled(shares * eta[self.owner]) if sums.max() > 0 else self.initial_weights(weights.size)

    # -- what a problem asks of a norm ----------------------------------------------------------------------------

    def levels(self) -> Levels:
        """Return the exponent within groups, 1, and the norm that weights the groups."""
        return Levels(1.0, groups=self)

    def initial_weights(self, n_kernels: int) -> np.ndarray:
        """Return equal weights within each group, and equal groups."""
        sizes = self.sums(np.ones(n_kernels))
        eta = self._equal(int(np.count_nonzero(sizes)))[0]
        return eta / sizes[self.owner]

    def _equal(self, n_groups: int) -> np.ndarray:
        """Return eta for groups that are all alike: n^(1/t - 1)."""
        power = -1.0 if np.isinf(self.exponent) else 1.0 / self.exponent - 1.0
        return np.full(n_groups, float(max(n_groups, 1)) ** power)

    def scaled(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights scaled to the boundary: ||eta||_r = 1 for q <= 1, ||1 / eta||_q* = 1 for q > 1."""
        eta = self.sums(weights)
        live = eta[eta > 0]
        if live.size == 0:
            return weights
        if self.q < 1:
            return weights / power_norm(live, 1.0 if self.q == 0.5 else self.q / (1.0 - self.q))
        if self.q == 1:
            return weights / np.where(eta > 0, eta, 1.0)[self.owner]
        conjugate = 1.0 if np.isinf(self.q) else self.q / (self.q - 1.0)
        return weights * power_norm(1.0 / live, conjugate)

    def __repr__(self) -> str:
        return f"MixedNorm(q={self.q:g})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MixedNorm) and (other.q, other.groups) == (self.q, self.groups)

    def __hash__(self) -> int:
        return hash((MixedNorm, self.q))
