"""Bandwidth ladders on a device: every kernel of the ladder itself, none of them interpolated.

A GPU computes exponentials as fast as other processors read memory, so a pass over a million Gaussian kernels of a few
hundred samples takes a few milliseconds, and quadratic forms, sums and inner products are those of the true kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.banks.argument_checks import check_length, check_matrix, checked_places
from manykernels.banks.device.distances import DistanceStack
from manykernels.banks.device.views import View
from manykernels.banks.ladder_bank import LadderBank
from manykernels.banks.placement import PRECISIONS, UNIT_ROUNDOFFS
from manykernels.compute.gpu import Device, Rows, Tensor, binary_rates, device_budget
from manykernels.kernels.ladder import GaussianLadder


class DeviceLadderBank(LadderBank):
    """Ladders bound to training data, with passes over all of their kernels on a device.

    It is not for centered kernels, nor for double precision on a device that has none. Parameters are those of
    :class:`LadderBank`, and the name of the device.
    """

    concurrent = False  # each problem has the whole device

    def __init__(
        self,
        ladders: Sequence[GaussianLadder],
        places: Sequence[tuple[np.ndarray, str, str]],
        X: Any,
        sample_weight: np.ndarray,
        *,
        device: str,
        storage: str,
        precision: str,
        **options: Any,
    ) -> None:
        # The nodes are for learned kernels of very many widths only: nothing is held for them.
        super().__init__(ladders, places, X, sample_weight, storage="recomputed", precision=precision, **options)
        self.device = Device(device)
        dtype = self.device.dtype(PRECISIONS[precision])
        # Ladders on the same columns share their distances; kernels are then not in the order of the sets.
        sets: dict[bytes, int] = {}
        owner = [sets.setdefault(positions.tobytes(), len(sets)) for positions, _, _ in places]
        leaders = [owner.index(s) for s in range(len(sets))]
        views = [View(self.device, X[:, places[f][0]], "distance") for f in leaders]
        matrix = np.dtype(PRECISIONS[precision]).itemsize * X.shape[0] ** 2 * len(views)
        left = device_budget(self.device) - self.device.fill_bytes(X.shape[0])
        hold = storage != "recomputed" and matrix <= left
        self._stack = DistanceStack(self.device, views, dtype, hold)
        self._set_of = np.repeat(owner, [len(ladder) for ladder in ladders])
        units = np.array([view.unit for view in views])[self._set_of]
        self._rates = binary_rates(np.concatenate([ladder.widths for ladder in ladders]), units)
        order, first = self._sorted(None)
        # What a pass over all kernels takes: a million rates are not sent each time.
        self._every = order, self.device.send(self._rates[order], dtype), first

    @property
    def held_on(self) -> str:  # type: ignore[override]
        """The name of the device."""
        return self.device.name

    @property
    def unit_roundoff(self) -> float:  # type: ignore[override]
        """Error of the kernel values."""
        return UNIT_ROUNDOFFS[self.precision]

    def describe_storage(self) -> str:
        """Return words for how the kernels are held."""
        return f"{self.n_kernels} kernels of distances on {len(self._stack.views)} column sets on {self.device.name}"

    def _sorted(self, chosen: np.ndarray | None) -> tuple[Any, np.ndarray]:
        """Return the kernels by their sets (a slice if that is their order), and where those of each set start."""
        owner = self._set_of if chosen is None else self._set_of[chosen]
        counts = np.bincount(owner, minlength=len(self._stack.views))
        first = np.concatenate([[0], np.cumsum(counts)])
        if np.all(owner[1:] >= owner[:-1]):
            return slice(None), first
        return np.argsort(owner, kind="stable"), first

    def quad_forms(self, beta: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray:
        """Return beta' K_k beta of the kernels of the subset (default: all), each computed from its own kernel."""
        check_length(beta, self.n_samples)
        rows = np.atleast_2d(np.asarray(beta, dtype=np.float64))
        chosen, (order, rates, first) = self._chosen(subset)
        out = self._stack.forms(rows, rates, first)
        if not isinstance(order, slice):
            out[:, order] = out.copy()
        out *= self.scale[chosen]
        np.maximum(out, 0.0, out=out)
        return out if np.ndim(beta) == 2 else out[0]

    def _chosen(self, subset: np.ndarray | None) -> tuple[Any, tuple[Any, Any, np.ndarray]]:
        """Return the kernels of the subset, and their order by sets, rates in that order and where sets start."""
        if subset is None:
            return slice(None), self._every
        chosen = checked_places(subset, self.n_kernels)
        order, first = self._sorted(chosen)
        return chosen, (order, self._rates[chosen][order], first)

    def inner_products(self, M: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray:
        """Return the Frobenius inner products <K_k, M>."""
        check_matrix(M, self.n_samples)
        chosen, (order, rates, first) = self._chosen(subset)
        out = np.empty(int(first[-1]))
        out[order] = self._stack.inner_products(M, rates, first)
        return out * self.scale[chosen]

    def fill(self, weights: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write sum_k weights[k] K_k, of the kernels themselves, to ``out``."""
        chosen = np.flatnonzero(weights * self.scale)
        order, first = self._sorted(chosen)
        chosen = chosen[order]
        coefficients, rates = (weights * self.scale)[chosen], self._rates[chosen]

        def add(block: Tensor, rows: Rows) -> None:
            if chosen.size:
                self._stack.add_sum(coefficients, rates, first, block, rows)

        return self.device.fill_symmetric(out, add)

    def tail(self, size: int) -> DeviceLadderBank:
        """Return the kernels on the last ``size`` samples, normalized as here."""
        tail: Any = super().tail(size)
        tail._stack = self._stack.tail(size)
        return tail
