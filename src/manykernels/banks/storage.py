"""What a bank asks of the ways to hold its kernels; all give the same numbers up to rounding.

    packed      upper triangles in float32 (or float64): one pass reads the memory once
    factors     K = F F' with few columns: next to no memory
    recomputed  nothing is held: each pass computes the kernels in blocks again

A storage holds the kernels at ``indices`` of the bank. ``local`` below counts within the storage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from manykernels.banks.room import Room

FACTOR_ROWS = 64  # rows at a time for products with wide factors: fewer would read the factors too often
TILE = (128, 1024)  # rows and columns of a tile: with those it is made of, it stays in the cache
BLOCK_ENTRIES = 1 << 16  # a block of rows in float64 is then half a megabyte: it stays in the cache

Adder = Callable[[int, int, np.ndarray], None]


class Storage(Protocol):
    """What a bank asks of a storage."""

    indices: np.ndarray

    @property
    def nbytes(self) -> int:
        """Memory that its kernels take, that of others in the same array not counted."""

    @property
    def is_wide(self) -> bool:
        """Whether a sum of its kernels is a matter of arithmetic, so that blocks of many rows pay."""

    def describe(self) -> str:
        """Return words for what is held."""

    def adder(self, weights: np.ndarray) -> Adder:
        """Return a function that adds the weighted sum of the kernels' packed rows start:stop to a segment."""

    def subset(self, chosen: np.ndarray, room: Room) -> list[Storage]:
        """Return storages of those kernels of the bank that are held here, counted anew: in memory while they fit."""

    def moved(self, indices: np.ndarray) -> Storage:
        """Return the same storage for a bank in which its kernels stand at these (rising) places."""

    def tail(self, size: int) -> Storage:
        """Return a storage of the kernels' values on the last ``size`` samples; what is held is shared."""

    def quad_forms(self, beta: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return beta_t' K_k beta_t of the chosen kernels, beta (n_tasks, n), as (n_tasks, len(local))."""

    def inner_products(self, M: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return the Frobenius inner products of the chosen kernels with a symmetric M of shape (n, n)."""

    def centered_squares(self, weight: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return ||K_c||_w^2 of the chosen kernels, see :mod:`manykernels.kernels.centered`."""

    def matvecs(self, beta: np.ndarray, local: np.ndarray, on_support: bool) -> np.ndarray:
        """Return K_k beta for the chosen kernels, shape (len(local), n); ``on_support``: 0 where beta is 0."""

    def rows(self, rows: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Return rows of the chosen kernels, shape (len(local), len(rows), n)."""

    def add_rows(self, rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """Add the weighted sum of the kernels' blocks [rows, columns] to ``out``, in place."""

    def add_products(self, rows: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        """Add sum_r coefficients[t, r] K_k[rows[r]] to out[t, k], of shape (n_tasks, n_held, n), in place."""


def row_means(products: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of each row of each kernel, and of all of it, from K w."""
    means = products / weight.sum()
    return means, means @ weight / weight.sum()


def held_here(indices: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (places in ``chosen``, places in ``indices``) of the kernels that both name; ``indices`` is sorted."""
    where = np.searchsorted(indices, chosen)
    where[where == indices.size] = 0
    places = np.flatnonzero(indices[where] == chosen)
    return places, where[places]
