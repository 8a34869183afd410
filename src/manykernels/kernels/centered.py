"""Inner products of centered kernels, without a centered kernel in memory.

With sample weights w, K_c = H K H' with H = I - 1 w' / sum(w), and <K, L>_w = sum_ij w_i w_j K_ij L_ij.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from manykernels.core.protocols import Bank

# Bytes of a block of kernel rows, at most, and how many of them are there at once: the last, the next, and it centered.
_BLOCK_BYTES, _BLOCKS = 64e6, 3


def centered(K: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return M with <M, L> = <K_c, L_c>_w for every L, shape (n, n).

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.centered import centered
    >>> centered(np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones(2))
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    M = K
    for _ in range(2):  # once more for what rounding has left, which beside a nearly constant kernel is not small
        means = M @ weight / weight.sum()
        M = M - means[:, None]
        M -= means
        M += float(means @ weight) / weight.sum()
    M *= weight[:, None]
    M *= weight
    return M


def inner_matrix(bank: Bank, weight: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
    """Return <K_k, K_l> of the centered kernels of a bank, or of the chosen ones, shape (m, m), in blocks."""
    chosen = np.arange(bank.n_kernels) if chosen is None else chosen
    G = np.zeros((chosen.size, chosen.size))
    for V in _centered_blocks(bank, weight, chosen):
        flat = V.reshape(chosen.size, -1)
        G += flat @ flat.T
    return G


def inner_factor(bank: Bank, weight: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return R with R'R = inner_matrix(bank, weight, chosen), shape (at most m, m), in blocks.

    ||sum_k c_k K_k|| = ||R c|| keeps its digits where the kernels nearly cancel; c'Gc would lose them twice over.
    """
    R: Any = np.empty((0, chosen.size))
    for V in _centered_blocks(bank, weight, chosen):
        R = np.linalg.qr(np.vstack([R, V.reshape(chosen.size, -1).T]), mode="r")
    return R


def _centered_blocks(bank: Bank, weight: np.ndarray, chosen: np.ndarray) -> Iterator[np.ndarray]:
    """Yield rows of the centered kernels on and above the diagonal, scaled so that their squares sum to the whole."""
    n, root = bank.n_samples, np.sqrt(weight)
    means = bank.matvecs(weight, chosen) / weight.sum()
    totals = means @ weight / weight.sum()
    block = _BLOCK_BYTES if bank.spare is None else min(_BLOCK_BYTES, bank.spare / _BLOCKS)
    size = max(1, int(block / (8.0 * n * chosen.size)))
    for start in range(0, n, size):
        rows = np.arange(start, min(start + size, n))
        V = bank.rows(rows, chosen)[:, :, start:]
        V = V - means[:, rows, None]
        V -= means[:, None, start:]
        V += totals[:, None, None]
        V *= root[rows, None]
        V *= root[start:]
        V[:, :, rows.size :] *= np.sqrt(2.0)  # each stands for two
        yield V
