"""Memory that working sets of kernels share: what one has taken, another has not."""

from __future__ import annotations

import threading
import weakref

import numpy as np


class Room:
    """Bytes that kernels may take in addition to those that a bank holds.

    The kernels of a working set are held while they fit; the others are computed in each pass. Room that an array took
    is there again when the array is gone.

    Parameters
    ----------
    n_bytes : int or None
        None means no limit.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks.room import Room
    >>> room = Room(1000)
    >>> room.take(count=3, size=400)  # as many as fit
    2
    >>> stack = room.guard(np.zeros((2, 50)))
    >>> room.left
    200
    >>> del stack
    >>> room.left
    1000
    """

    def __init__(self, n_bytes: int | None = None) -> None:
        self.left = n_bytes
        self._lock = threading.Lock()

    def take(self, count: int, size: int) -> int:
        """Take room for as many as fit of ``count`` things of ``size`` bytes; return how many."""
        with self._lock:
            if self.left is None:
                return count
            taken = min(count, max(self.left, 0) // max(size, 1))
            self.left -= taken * size
            return taken

    def guard(self, array: np.ndarray) -> np.ndarray:
        """Return an array for which room was taken, and give the room back when it is gone."""
        weakref.finalize(array, self._give, array.nbytes)
        return array

    def _give(self, n_bytes: int) -> None:
        with self._lock:
            if self.left is not None:
                self.left += n_bytes

    def __reduce__(self) -> tuple:
        return Room, (self.left,)
