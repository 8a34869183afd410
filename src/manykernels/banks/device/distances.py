"""Squared distances on several sets of columns, on a device: what any number of Gaussian kernels are functions of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manykernels.banks.device.views import EVERY, View, is_every
from manykernels.compute.gpu import Device, Rows, Tensor

# Up to this number of samples in play, their pairs are listed; beyond it, whole matrices are used.
_FEW_SAMPLES = 1500


class DistanceStack:
    """Squared distances D_s of the samples on the columns of set s, held or computed when asked for.

    Kernels are given by their rates: kernel k of set s is 2^(rates[k] D_s), the kernels of a set stand side by side,
    and those of set s are ``first[s]`` to ``first[s + 1]``.

    Parameters
    ----------
    device : Device
    views : sequence of View
    dtype : torch.dtype
        Of the distances and of the kernels.
    hold : bool
        Keep the distances on the device, n^2 numbers a set; if they do not fit, they are not kept.
    """

    def __init__(self, device: Device, views: Sequence[View], dtype: object, hold: bool = True) -> None:
        self._device, self.views, self.dtype, self.n = device, list(views), dtype, views[0].n
        self.held: Tensor | None = self._fill() if hold else None

    def _fill(self) -> Tensor | None:
        device, n = self._device, self.n
        D = device.empty_or_none(len(self.views), n, n, dtype=self.dtype)
        for s, view in enumerate(self.views if D is not None else ()):

            def values(_: slice, rows: slice, view: View = view) -> Tensor:
                return view.values(rows).to(self.dtype)

            for _, rows, block in device.sweep(1, n, n, values):
                D[s, rows] = block  # type: ignore[index]
        return D

    def tail(self, size: int) -> DistanceStack:
        """Return the distances of the last ``size`` samples."""
        tail = object.__new__(DistanceStack)
        tail._device, tail.dtype, tail.n = self._device, self.dtype, size
        tail.views = [view.tail(size) for view in self.views]
        tail.held = None if self.held is None else self.held[:, -size:, -size:].contiguous()
        return tail

    def block(self, s: int, rows: Rows, columns: Rows = EVERY) -> Tensor:
        """Return distances of set s, shape (len(rows), len(columns))."""
        if self.held is None:
            return self.views[s].values(rows, columns).to(self.dtype)
        return self.held[s][self._device.places(rows)][:, self._device.places(columns)]

    # -- sums over pairs of samples -----------------------------------------------------------------------------

    def forms(self, beta: np.ndarray, rates: Any, first: np.ndarray) -> np.ndarray:
        """Return beta_t' K_k beta_t for beta of shape (n_tasks, n), as (n_tasks, n_kernels).

        Only pairs of samples with a non-zero beta are looked at. The rates may lie on the device already.
        """
        device = self._device
        support = np.flatnonzero(np.any(beta != 0, axis=0))
        out, vectors = device.zeros(beta.shape[0], int(first[-1])), device.send(beta[:, support])
        if 0 < support.size <= _FEW_SAMPLES:
            top, right = device.torch.triu_indices(support.size, support.size, 1, device=device.where)
            self._add_pairs(support, vectors[:, top] * vectors[:, right], beta[:, support] ** 2, rates, first, out)
        elif support.size:
            for s in np.flatnonzero(np.diff(first)):
                self._add_square(int(s), support, vectors, rates, first, out)
        return device.fetch(out)

    def inner_products(self, M: np.ndarray, rates: Any, first: np.ndarray) -> np.ndarray:
        """Return the Frobenius inner products <K_k, M> with a symmetric M of shape (n, n)."""
        device = self._device
        support = np.flatnonzero(np.any(M != 0, axis=0))
        out = device.zeros(1, int(first[-1]))
        inner = M if support.size == M.shape[0] else M[np.ix_(support, support)]
        if 0 < support.size <= _FEW_SAMPLES:
            pairs = device.send(inner[np.triu_indices(support.size, 1)][None])
            self._add_pairs(support, pairs, inner.diagonal()[None], rates, first, out)
        elif support.size:
            self._add_products(support, device.send(inner), rates, first, out)
        return device.fetch(out)[0]

    def _add_pairs(
        self, support: np.ndarray, pairs: Tensor, squares: np.ndarray, rates: Any, first: np.ndarray, out: Tensor
    ) -> None:
        """Add 2 sum_{i<j} pairs_ij K_ij + sum_i squares_i K_ii, of the samples in ``support``, to ``out``."""
        device, used = self._device, np.flatnonzero(np.diff(first))
        first = np.append(first[used], first[-1:])
        ones = device.zeros(out.shape[0], 1) + 1.0

        def part(sets: slice, _: slice) -> Tensor:
            D = self._pairs(used[sets], support)
            low, high = first[sets.start], first[sets.stop]
            places = first[sets.start : sets.stop + 1] - low
            forms = device.exp_forms(D, ones, pairs, rates[low:high], places, symmetric=False)
            counts = device.places(np.diff(places))
            diagonals = device.send(self._diagonals(used[sets], support, squares))
            return forms.mul_(2.0).add_(diagonals.repeat_interleave(counts, dim=1))

        for sets, _, forms in device.sweep(used.size, 1, support.size**2, part):
            out[:, first[sets.start] : first[sets.stop]] += forms

    def _pairs(self, sets: np.ndarray, support: np.ndarray) -> Tensor:
        """Return the distances of the pairs i < j of the support, shape (n_sets, 1, n_pairs)."""
        device, size = self._device, support.size
        top, right = device.torch.triu_indices(size, size, 1, device=device.where)
        if self.held is None:
            return device.torch.stack([self.block(int(s), support, support)[top, right] for s in sets])[:, None]
        samples, flat = device.places(support), self.held.view(len(self.views), -1)
        if sets.size < len(self.views):
            flat = flat.index_select(0, device.places(sets))
        return flat.index_select(1, samples[top] * self.n + samples[right])[:, None]

    def _diagonals(self, sets: np.ndarray, support: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Return sum_i own[t, i] K_ii, which is 1 for samples that have the view, shape (n_tasks, n_sets)."""
        masks = (self.views[s].mask for s in sets)
        return np.stack([squares.sum(axis=1) if mask is None else squares @ mask[support] for mask in masks], axis=1)

    def _add_square(
        self, s: int, support: np.ndarray, vectors: Tensor, rates: Any, first: np.ndarray, out: Tensor
    ) -> None:
        """Add the quadratic forms of the kernels of set s to ``out``."""
        device, kernels = self._device, slice(first[s], first[s + 1])
        places = np.array([0, first[s + 1] - first[s]])
        if self.held is not None:
            D, left = self.held[s], device.zeros(vectors.shape[0], self.n)
            if 2 * support.size < self.n:
                D, left = self.block(s, support, support), vectors
            else:
                left[:, device.places(support)] = vectors
            out[:, kernels] += device.exp_forms(D[None], left, left, rates[kernels], places, symmetric=True)
            return
        blocks = device.sweep(1, support.size, support.size, lambda _, rows: self.block(s, support[rows], support))
        for _, rows, D in blocks:
            out[:, kernels] += device.exp_forms(
                D[None], vectors[:, rows], vectors, rates[kernels], places, symmetric=False
            )

    def _add_products(self, support: np.ndarray, M: Tensor, rates: Any, first: np.ndarray, out: Tensor) -> None:
        """Add <K_k, M> of the samples in ``support`` to ``out``, row by row."""
        device = self._device
        for s in np.flatnonzero(np.diff(first)):
            set_rates = rates[first[s] : first[s + 1]]

            def part(kernels: slice, rows: slice, s: int = int(s), set_rates: Any = set_rates) -> Tensor:
                E = self.powers(s, set_rates[kernels], support[rows], support)
                return (E.to(device.wide) * M[rows]).sum((1, 2))

            for kernels, _, products in device.sweep(len(set_rates), support.size, support.size, part):
                out[0, first[s] + kernels.start : first[s] + kernels.stop] += products

    # -- values -------------------------------------------------------------------------------------------------

    def powers(self, s: int, rates: Any, rows: Rows, columns: Rows = EVERY) -> Tensor:
        """Return the kernels of set s with these rates, shape (n_kernels, len(rows), len(columns))."""
        D = self.block(s, rows, columns)
        return (self._device.sent(rates, self.dtype)[:, None, None] * D).exp2_()

    def add_sum(
        self,
        coefficients: np.ndarray,
        rates: np.ndarray,
        first: np.ndarray,
        out: Tensor,
        rows: Rows = EVERY,
        columns: Rows = EVERY,
    ) -> None:
        """Add sum_k coefficients[k] K_k[rows, columns] to ``out``, in place."""
        device, used = self._device, np.flatnonzero(np.diff(first))
        is_whole = is_every(rows) and is_every(columns) and self.held is not None
        if is_whole and used.size == len(self.views):
            device.exp_sum(self.held, coefficients, rates, first, out)
            return
        numbers = np.arange(self.n)[rows]
        for s in used:
            kernels, places = slice(first[s], first[s + 1]), np.array([0, first[s + 1] - first[s]])
            if is_whole:
                device.exp_sum(self.block(int(s), EVERY)[None], coefficients[kernels], rates[kernels], places, out)
                continue

            def block(_: slice, part: slice, s: int = int(s)) -> Tensor:
                return self.block(s, numbers[part], columns)

            for _, part, D in device.sweep(1, out.shape[0], out.shape[1], block):
                device.exp_sum(D[None], coefficients[kernels], rates[kernels], places, out[part])
