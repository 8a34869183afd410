"""Data that the papers generate."""

from __future__ import annotations

import numpy as np

from manykernels.core.checks import check_count


def make_three_classes(
    n_per_class: int = 100, *, spread: float = 0.5, random_state: int = 0
) -> tuple[np.ndarray, np.ndarray, dict[str, slice]]:
    """Make three classes in four views, only the last of which tells all classes apart (after UFO-MKL, Figure 1).

    View 1 tells class 3 from the other two, view 2 class 1, view 3 class 2, and view 4 all three.

    Parameters
    ----------
    n_per_class : int, default 100
    spread : float, default 0.5
        Standard deviation around the centers, which are at least 2 apart.
    random_state : int, default 0

    Returns
    -------
    X : ndarray of shape (3 * n_per_class, 8)
        Two columns for each view, the samples of a class one after the other.
    y : ndarray of shape (3 * n_per_class,)
        Classes 1, 2 and 3.
    views : dict of slice
        The columns of each view by name.

    Examples
    --------
    >>> from manykernels import datasets
    >>> X, y, views = datasets.make_three_classes(20)
    >>> X.shape, list(views)
    ((60, 8), ['view 1', 'view 2', 'view 3', 'view 4'])
    """
    n_per_class = check_count("n_per_class", n_per_class)
    rng = np.random.default_rng(random_state)
    y = np.repeat([1, 2, 3], n_per_class)
    centers = [np.where(np.array([1, 2, 3]) == alone, 1.0, -1.0)[:, None] * np.ones(2) for alone in (3, 1, 2)]
    angles = 2 * np.pi * np.arange(3) / 3
    centers.append(2.0 * np.column_stack([np.cos(angles), np.sin(angles)]))
    X = np.hstack([view[y - 1] for view in centers]) + spread * rng.standard_normal((y.size, 8))
    return X, y, {f"view {j + 1}": slice(2 * j, 2 * j + 2) for j in range(4)}
