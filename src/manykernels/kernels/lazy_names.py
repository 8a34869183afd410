"""Names of very many kernels, made when they are asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import groupby
from typing import overload

import numpy as np


class LazyNames(Sequence[str]):
    """A sequence of texts of which a subclass gives the length and, one by one, the texts."""

    @abstractmethod
    def text(self, k: int) -> str:
        """Return text k, 0 <= k < len(self)."""

    @overload
    def __getitem__(self, k: int) -> str: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[str]: ...
    def __getitem__(self, k: int | slice) -> str | Sequence[str]:
        if isinstance(k, slice):
            return [self.text(i) for i in range(*k.indices(len(self)))]
        k = int(k)
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        return self.text(k % len(self))

    def __repr__(self) -> str:
        return f"<{len(self)} texts, from {self[0]!r} to {self[-1]!r}>"


def run_lengths(texts: Sequence[str]) -> list[tuple[str, int]]:
    """Return the texts as runs of equal ones, (text, length); a lazy sequence that knows its runs makes no texts.

    Examples
    --------
    >>> from manykernels.kernels.lazy_names import run_lengths
    >>> run_lengths(["image", "image", "text"])
    [('image', 2), ('text', 1)]
    """
    known = getattr(texts, "runs", None)
    return known() if known is not None else [(text, len(list(same))) for text, same in groupby(texts)]


def sums_by_group(groups: Sequence[str], weights: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return the names of the groups, in order of first appearance, and their weights, (n_problems, n_groups).

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.lazy_names import sums_by_group
    >>> sums_by_group(["image", "image", "text"], np.array([[0.1, 0.2, 0.7]]))
    (['image', 'text'], array([[0.3, 0.7]]))
    """
    places: dict[str, int] = {}
    runs = run_lengths(groups)
    owner = np.repeat([places.setdefault(name, len(places)) for name, _ in runs], [count for _, count in runs])
    return list(places), np.array([np.bincount(owner, row, minlength=len(places)) for row in weights])
