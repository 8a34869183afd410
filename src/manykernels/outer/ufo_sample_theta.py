"""The sum of the steps of UFO-MKL as a sum over samples: for any kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from manykernels.banks.pairs import PairValues
from manykernels.compute.threads import n_threads, parallel
from manykernels.losses import JointLoss
from manykernels.losses.codes import CUSTOM
from manykernels.outer import ufo_steps as steps
from manykernels.outer.ufo_steps import Rule, Scores
from manykernels.outer.ufo_theta import Start, Theta

# Samples of an epoch that are brought up to date side by side before their steps are taken one after the other.
_AHEAD = 64
# Below this many multiplications a thread costs more than it saves.
_SMALL_PASS = 1 << 16


class SampleTheta(Theta):
    """theta_k = sum_i beta_i phi_k(x_i): for any kernels.

    Parameters
    ----------
    pairs : PairValues
    loss, y, C, rule, average
        As for :class:`Theta`.
    start : Start, optional
        Where to go on.
    """

    def __init__(
        self,
        pairs: PairValues,
        loss: JointLoss,
        y: Any,
        C: np.ndarray,
        rule: Rule,
        average: bool = False,
        start: Start | None = None,
    ) -> None:
        n, m = pairs.n_samples, pairs.n_kernels
        super().__init__(loss, y, C, rule, m, average)
        shape = (n, self.n_outputs, m)
        self.pairs, self.squares = pairs, np.ascontiguousarray(pairs.diagonals())
        self._values = pairs.triangle if pairs.is_held else None
        self.s = Scores(
            scores=np.zeros(shape),
            seen=np.zeros(n, np.int64),
            beta=np.zeros((n, self.n_outputs)),
            visits=np.zeros(n),
            samples=np.zeros(2 * n, np.int64),
            steps=np.zeros((2 * n, self.n_outputs)),
            length=np.zeros(1, np.int64),
            debt=np.zeros(shape if average else (0, 0, 0)),
        )
        self.beta, self.visits = self.s.beta, self.s.visits
        self.begin(start)

    def begin(self, start: Start | None) -> None:
        """Go on from another walk, whose steps enter the log as one per sample."""
        if start is None:
            return
        super().begin(start)
        self.hear(self.beta)
        self.settle()

    def hear(self, beta: np.ndarray) -> None:
        """Enter steps that were taken elsewhere in the log, for the scores to hear of."""
        used = np.flatnonzero(np.any(beta != 0, axis=1))
        self.s.samples[: used.size], self.s.steps[: used.size] = used, beta[used]
        self.s.length[0] = used.size

    def advance(self, order: np.ndarray) -> None:
        for block in self._blocks(order):
            self._advance_block(block)  # the kernel values of a block are gone before those of the next come

    def _advance_block(self, block: np.ndarray) -> None:
        if self.s.length[0] + block.size > self.s.samples.size:
            self.settle()  # the log is full
        values, places = self._catch_up(np.unique(block), block)
        if self.rule.loss == CUSTOM:
            self._advance_by_asking(block, values, places)
        else:
            steps.walk_samples(self.rule, self.walk, self.s, values, self.squares, self.y, self.gain, block, places)

    def _advance_by_asking(self, block: np.ndarray, values: np.ndarray, places: np.ndarray) -> None:
        for i, place in zip(block, places, strict=True):
            steps.catch_up(self.s, values, i, place)
            step = self._ask(i, self.s.scores[i], self.squares[i])
            if step is not None:
                steps.enter(self.walk, self.s, i, step)

    def settle(self) -> None:
        for block in self._blocks(np.arange(self.n_samples)):
            self._catch_up(block, block)
        self.s.seen[:], self.s.length[0] = 0, 0
        self.walk.squared[:] = np.einsum("ic,ick->k", self.beta, self.s.scores)
        self.theta_moved()

    def outputs(self) -> np.ndarray:
        return self.s.scores @ self.walk.coef

    def squared_norms(self, beta: np.ndarray) -> np.ndarray:
        support = np.flatnonzero(np.any(beta != 0, axis=1))
        if self._values is None:
            return self._squared_norms_in_blocks(beta, support)
        # Row a has a + 1 pairs: dealt out in turns, the threads have the same to do.
        shares = [np.arange(k, support.size, n_threads()) for k in range(n_threads())]

        def part(rows: np.ndarray) -> np.ndarray:
            out = np.zeros(self.pairs.n_kernels)
            steps.add_norms(self._values, beta, support, rows, out)
            return out

        return np.sum(parallel(part, shares), axis=0)

    def _squared_norms_in_blocks(self, beta: np.ndarray, support: np.ndarray) -> np.ndarray:
        total = np.zeros(self.pairs.n_kernels)
        for block in self._blocks(support):
            self._add_norms(beta[block] @ beta.T, self.pairs.rows(block), total)
        return total

    @staticmethod
    def _add_norms(products: np.ndarray, values: np.ndarray, total: np.ndarray) -> None:
        """Add the parts of some samples' rows; one after the other, since they are made double on the way."""
        for product, rows in zip(products, values.reshape(*products.shape, -1), strict=True):
            total += product @ rows

    def averaged(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        W = (self.beta[:, :, None] * self.walk.area - self.s.debt) / self.n_averaged
        scores = np.zeros_like(W)
        for block in self._blocks(np.arange(self.n_samples)):
            self._add_components(block, W, scores)
        squared = np.einsum("ick,ick->k", W, scores)
        return W, scores.sum(axis=2), np.sqrt(np.maximum(squared, 0.0))

    def _add_components(self, block: np.ndarray, W: np.ndarray, scores: np.ndarray) -> None:
        values, places = self._values_of(block)
        pieces = np.array_split(np.arange(block.size), n_threads())
        parallel(lambda piece: steps.add_components(values, W, block[piece], places[piece], scores), pieces)

    def forget_average(self) -> None:
        super().forget_average()
        self.s.debt[:] = 0.0

    def _blocks(self, order: np.ndarray) -> Iterator[np.ndarray]:
        size = min(_AHEAD, self.n_samples) if self._values is not None else self.pairs.block_size
        return (order[low : low + size] for low in range(0, order.size, size))

    def _values_of(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return kernel values, and where the rows of the samples are in them; -1 says in a triangle of all."""
        if self._values is not None:
            return self._values, np.full(samples.size, -1)
        return self.pairs.rows(samples), np.arange(samples.size)

    def _catch_up(self, samples: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bring distinct samples up to date; return kernel values and the places of the samples in ``order``."""
        values, places = self._values_of(samples)
        pending = int(np.sum(self.s.length[0] - self.s.seen[samples])) * self.pairs.n_kernels
        pieces = np.array_split(np.arange(samples.size), n_threads() if pending > _SMALL_PASS else 1)
        parallel(lambda piece: steps.catch_up_all(self.s, values, samples[piece], places[piece]), pieces)
        return values, places[np.searchsorted(samples, order)]
