"""Training samples in a canonical form: no sample twice, none of weight 0, in an order that depends on them alone.

A weight below the smallest normal double has lost digits, and what is computed from it would be noise: it counts as 0.

The order looks random, so that the last n samples are a random part of the data: on them a coarse solution of a large
problem is found.

So training does not depend on how a data set is written down: rows in another
order, a row twice or once with weight 2, a row of weight 0 or no such row,
columns in another unit give the same model. It also saves work where rows repeat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

LEAST_WEIGHT = float(np.finfo(float).tiny)
_SIGN = np.uint64(1 << 63)  # the bit of a double


@dataclass(frozen=True)
class Samples:
    """Distinct samples.

    Attributes
    ----------
    rows : ndarray of shape (n_distinct,)
        For each distinct sample, the first row of the data that holds it.
    owner : ndarray of shape (n_samples,)
        For each row of the data, its distinct sample; -1 for weight 0.
    weight : ndarray of shape (n_distinct,)
        Summed weights.
    share : ndarray of shape (n_samples,)
        Each row's part of its distinct sample's weight.
    """

    rows: np.ndarray
    owner: np.ndarray
    weight: np.ndarray
    share: np.ndarray

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return values of distinct samples, shape (..., n_distinct), divided over the rows of the data."""
        return values[..., self.owner] * self.share

    @classmethod
    def all_of(cls, sample_weight: np.ndarray) -> Samples:
        """Return every row with a weight as a separate sample, in order, whatever it holds."""
        used = _with_weight(sample_weight)
        if used.size == sample_weight.size:
            return cls(used, used, sample_weight, np.ones(used.size))
        owner, share = np.full(sample_weight.size, -1), np.zeros(sample_weight.size)
        owner[used], share[used] = np.arange(used.size), 1.0
        return cls(used, owner, sample_weight[used], share)

    def of(self, X: Any) -> Any:
        """Return the rows of the distinct samples: X itself where these are all of its rows in order."""
        return X if self.rows is self.owner else X[self.rows]


def distinct_samples(X: Any, y: np.ndarray, sample_weight: np.ndarray) -> Samples:
    """Find the distinct rows of (X, y) among those with positive weight.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : ndarray of shape (n_samples,)

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.core.samples import distinct_samples
    >>> X = np.array([[1.0], [2.0], [1.0], [3.0]])
    >>> samples = distinct_samples(X, np.zeros(4), np.array([1.0, 1.0, 2.0, 0.0]))
    >>> sorted(zip(samples.rows.tolist(), samples.weight.tolist()))
    [(0, 3.0), (1, 1.0)]
    """
    used = _with_weight(sample_weight)
    labels = y[used] if y.ndim == 1 else numbers_of_rows(y, used)
    keys = _sparse_keys(X, labels, used) if hasattr(X, "indptr") else _dense_keys(X, labels, used)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.random.default_rng(0).permutation(first.size)
    place = np.argsort(order)[inverse.ravel()]
    weight = np.bincount(place, sample_weight[used])
    owner = np.full(X.shape[0], -1)
    owner[used] = place
    share = np.zeros(X.shape[0])
    share[used] = sample_weight[used] / weight[place]
    return Samples(used[first[order]], owner, weight, share)


def _with_weight(sample_weight: np.ndarray) -> np.ndarray:
    """Return the rows that count; raise ValueError if there are none."""
    used = np.flatnonzero(sample_weight >= LEAST_WEIGHT)
    if used.size == 0:
        raise ValueError("sample_weight is zero for every sample: there is nothing to learn from.")
    return used


def numbers_of_rows(table: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return a number for each used row of a table, the same for rows that are equal, in the order of their values.

    Columns are looked at only while rows are still tied, first one and then twice as many each time: of a table with
    very many columns next to nothing is copied.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.core.samples import numbers_of_rows
    >>> numbers_of_rows(np.array([[2.0, 1.0], [1.0, 5.0], [2.0, 0.0], [2.0, 1.0]]), np.arange(4))
    array([2, 0, 1, 2])
    """
    numbers, tied, low = np.zeros(used.size, np.int64), np.arange(used.size), 0
    while low < table.shape[1] and tied.size:
        high = 2 * low + 1
        keys = _row_keys(table[used[tied], low:high], numbers[tied].astype(np.float64))
        _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        # Rows with equal numbers share as many places in the order; they are divided among them.
        places = np.sort(numbers[tied])
        places += np.arange(tied.size) - np.searchsorted(places, places)
        numbers[tied] = places[(np.cumsum(counts) - counts)[inverse.ravel()]]
        tied, low = tied[counts[inverse.ravel()] > 1], high
    return np.unique(numbers, return_inverse=True)[1].ravel()


def _row_keys(rows: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the same as :func:`_dense_keys`, with a number before each row."""
    table = np.empty((rows.shape[0], rows.shape[1] + 1))
    table[:, 0], table[:, 1:] = first, rows
    return _sorting_bytes(table)


def _dense_keys(X: np.ndarray, y: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return bytes for each row, in the order of its values: so another unit of a column changes no order."""
    table = np.empty((used.size, X.shape[1] + 1))
    table[:, :-1], table[:, -1] = X if used.size == X.shape[0] else X[used], y
    return _sorting_bytes(table)


def _sorting_bytes(table: np.ndarray) -> np.ndarray:
    """Return bytes that compare as the rows of a table do; the table is overwritten."""
    table += 0.0  # -0.0 is 0.0
    bits = table.view(np.uint64)
    # Negative numbers have the larger bits the smaller they are; bytes are compared from the first on.
    bits ^= (table.view(np.int64) >> 63).view(np.uint64) | _SIGN
    return bits.astype(">u8").view(np.dtype((np.void, table.shape[1] * table.itemsize))).ravel()


def _sparse_keys(X: Any, y: np.ndarray, used: np.ndarray) -> np.ndarray:
    X = X[used].copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    X.sort_indices()
    keys = np.empty(used.size, dtype=object)
    for i in range(used.size):
        entries = slice(X.indptr[i], X.indptr[i + 1])
        label = np.float64(y[i]).tobytes()
        keys[i] = label + X.indices[entries].astype(np.int64).tobytes() + X.data[entries].astype(np.float64).tobytes()
    return keys
