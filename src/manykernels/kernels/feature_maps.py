"""Kernels with a finite feature map: random waves and landmarks for any kernel, and the maps of many side by side.

With such kernels a predictor is a vector, not a list of samples: it can learn from a stream in constant memory.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from manykernels.compute.linalg import independent_rows, order_error, ordered_product
from manykernels.compute.pairwise import dense
from manykernels.core.checks import check_count, check_number
from manykernels.kernels.base import Kernel
from manykernels.kernels.columns import resolve_columns
from manykernels.kernels.missing import observed, seen_rows, with_zeros
from manykernels.kernels.shared_distances import BoundKernel

_RANK_CUT = 1e-10
# What the order of sums may change of a phase, and so of a feature; other features are about as exact.
_PHASE_ERROR = 1e-11


class FeatureKernel(Kernel):
    """A kernel that is the inner product of finite features; a subclass implements :meth:`features`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.feature_maps import FeatureKernel
    >>> class Cube(FeatureKernel):
    ...     def features(self, X):
    ...         return X**3
    >>> Cube().compute(np.array([[2.0]]), np.array([[1.0], [-1.0]]))
    array([[ 8., -8.]])
    """

    def compute(self, X: Any, Z: Any) -> np.ndarray:
        return np.asarray(self.features(X)) @ np.asarray(self.features(Z)).T

    def diagonal(self, X: Any) -> np.ndarray:
        return np.sum(np.asarray(self.features(X)) ** 2, axis=1)

    def factor(self, X: Any) -> np.ndarray | None:
        return self.features(X)

    @property
    def trusted(self) -> bool:
        return True


class RandomFourier(FeatureKernel):
    """A Gaussian kernel of this width, approximated by random waves (Rahimi and Recht, 2007).

    Its value is the mean of cos(w'(x - z)) over random frequencies w; the error falls like 1 / sqrt(n_components).

    Parameters
    ----------
    width : float > 0
        Of the Gaussian kernel exp(-|x - z|^2 / (2 width^2)).
    n_components : int >= 2, default 100
        Number of features: a cosine and a sine for each frequency, so an even number.
    seed : int, default 0
        Of the frequencies.
    columns, group, label
        As for :class:`Kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Gaussian, RandomFourier
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> waves = RandomFourier(2.0, n_components=2000)
    >>> bool(np.abs(waves.compute(X, X) - Gaussian(2.0).compute(X, X)).max() < 0.1)
    True
    """

    def __init__(
        self,
        width: float,
        n_components: int = 100,
        seed: int = 0,
        columns: Any = None,
        group: str | None = None,
        label: str | None = None,
    ) -> None:
        super().__init__(columns, group, label)
        self.width = check_number("width", width, low=0)
        self.n_components = check_count("n_components", n_components, at_least=2)
        if self.n_components % 2:
            raise ValueError(f"n_components must be an even number of at least 2, got {n_components!r}.")
        self.seed = check_count("seed", seed, at_least=0)

    def features(self, X: Any) -> np.ndarray:
        frequencies = self.frequencies(X.shape[1])
        # A row is to give what it gives alone. SciPy takes sparse rows one by one; BLAS does not.
        multiply = ordered_product if self.depends_on_order(X) else operator.matmul
        phases = np.asarray(multiply(X, frequencies))
        return np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(self.n_components // 2)

    def depends_on_order(self, X: Any) -> bool:
        """Return whether the order in which w'x is summed changes features: where its terms are large, or cancel."""
        if sp.issparse(X):
            return False
        largest = _largest_frequencies(self.seed, X.shape[1], self.n_components // 2) / self.width
        return order_error(np.asarray(X), largest) > _PHASE_ERROR

    def frequencies(self, n_columns: int) -> np.ndarray:
        """Return the frequencies for data of so many columns, shape (n_columns, n_components // 2)."""
        return _frequencies(self.seed, n_columns, self.n_components // 2) / self.width

    def diagonal(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0])

    @property
    def title(self) -> str:
        """The kernel's name without its columns."""
        return f"RandomFourier(width={self.width:.6g}, n_components={self.n_components})"


@lru_cache(maxsize=64)
def _frequencies(seed: int, n_columns: int, count: int) -> np.ndarray:
    """Return random frequencies for a width of 1, shape (n_columns, count)."""
    return np.random.default_rng(seed).standard_normal((n_columns, count))


@lru_cache(maxsize=64)
def _largest_frequencies(seed: int, n_columns: int, count: int) -> np.ndarray:
    """Return the largest absolute frequency of each column for a width of 1, shape (n_columns,)."""
    return np.abs(_frequencies(seed, n_columns, count)).max(axis=1)


class Nystroem(FeatureKernel):
    """Any kernel, approximated by its values with a few landmarks (Williams and Seeger, 2001).

    k(x, z) is replaced by k(x, L) k(L, L)^-1 k(L, z), which is exact where x or z is a landmark.

    Parameters
    ----------
    kernel : Kernel
        What to approximate; its columns, group and label are taken over.
    landmarks : array of shape (n_components, number of the kernel's columns)
        Samples, with the columns that the kernel sees only; :meth:`from_data` chooses them.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Gaussian, Nystroem
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> kernel = Nystroem.from_data(Gaussian(3.0, columns=[0, 1]), X, n_components=20)
    >>> kernel.features(X[:, [0, 1]]).shape[1] <= 20
    True
    >>> bool(np.abs(kernel.compute(X[:, :2], X[:, :2]) - Gaussian(3.0).compute(X[:, :2], X[:, :2])).max() < 0.01)
    True
    """

    def __init__(self, kernel: Kernel, landmarks: Any) -> None:
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a Kernel, got {kernel!r}.")
        super().__init__(kernel.columns, kernel.group, kernel.label)
        self.kernel, self.landmarks = kernel, np.array(landmarks, dtype=np.float64)
        if self.landmarks.ndim != 2 or self.landmarks.shape[0] == 0 or not np.all(np.isfinite(self.landmarks)):
            raise ValueError(
                f"landmarks must be a table of at least one sample without NaN, got shape {self.landmarks.shape}."
            )

    @classmethod
    def from_data(cls, kernel: Kernel, X: Any, n_components: int = 100, random_state: int = 0) -> Nystroem:
        """Return the approximation with random rows of X as landmarks.

        Parameters
        ----------
        kernel : Kernel
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        n_components : int, default 100
            Landmarks, at most n_samples.
        random_state : int, default 0
        """
        n_components = check_count("n_components", n_components)
        positions = resolve_columns(kernel.columns, X)
        chosen = np.random.default_rng(random_state).permutation(X.shape[0])[:n_components]
        rows = X.iloc[chosen, positions].to_numpy() if hasattr(X, "iloc") else dense(X[chosen][:, positions])
        return cls(kernel, np.asarray(rows, dtype=np.float64))

    @cached_property
    def root(self) -> np.ndarray:
        """R with R R' an inverse of k(L, L), on the landmarks that those before do not span.

        A Cholesky factor is unique, where eigenvectors are not: a model file holds vectors on these features.
        """
        kept, lower = independent_rows(self.kernel.compute(self.landmarks, self.landmarks), _RANK_CUT)
        root = np.zeros((len(self.landmarks), kept.size))
        if kept.size:
            root[kept] = solve_triangular(lower, np.eye(kept.size), lower=True, check_finite=False).T
        return root

    def features(self, X: Any) -> np.ndarray:
        return self.kernel.compute(X, self.landmarks) @ self.root

    @property
    def title(self) -> str:
        """The kernel's name without its columns."""
        return f"Nystroem({self.kernel.title}, {len(self.landmarks)} landmarks)"


class Nothing(FeatureKernel):
    """The kernel that is 0, with a feature that is 0."""

    def features(self, X: Any) -> np.ndarray:
        return np.zeros((X.shape[0], 1))


class FeatureMaps:
    """The feature maps of kernels, normalized and side by side.

    Parameters
    ----------
    bound : sequence of BoundKernel
        Each with a finite feature map; see :func:`have_features`.
    scale : ndarray of shape (n_kernels,)
        Factors of the kernels.
    cosine : bool
        Divide each kernel's features by their length.
    bias : float or ndarray of shape (n_kernels,)
        This constant is a feature of each kernel that is not zero, which augments it by its square; 0 is none.
    """

    def __init__(self, bound: Sequence[BoundKernel], scale: np.ndarray, cosine: bool, bias: Any) -> None:
        self.bound, self.scale, self.cosine = list(bound), scale, cosine
        self.bias = np.where(scale > 0, np.broadcast_to(bias, scale.shape), 0.0)

    def transform(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the features of the rows, shape (len(X), n_features), and where each kernel's begin, and the end."""
        parts = [self.part(k, X) for k in range(len(self.bound))]
        return np.hstack(parts), np.cumsum([0, *(part.shape[1] for part in parts)])

    def part(self, k: int, X: Any) -> np.ndarray:
        """Return the features of one kernel."""
        positions = self.bound[k].positions
        # Columns of a sparse matrix take long to choose.
        V = X if np.array_equal(positions, np.arange(X.shape[1])) else X[:, positions]
        mask = observed(V)
        features = with_zeros(np.asarray(self.bound[k].kernel.features(seen_rows(V, mask))), mask)
        if self.cosine:
            # Brought near 1 first, so that no square overflows or vanishes.
            top = np.abs(features).max(axis=1, keepdims=True, initial=0.0)
            features = np.divide(features, top, out=np.zeros_like(features), where=top > 0)
            length = np.sqrt(np.sum(features * features, axis=1, keepdims=True))
            features = np.divide(features, length, out=np.zeros_like(features), where=length > 0)
        features = np.sqrt(self.scale[k]) * features
        return np.column_stack([features, np.full(len(features), self.bias[k])]) if np.any(self.bias) else features


def have_features(bound: Sequence[BoundKernel], X: Any) -> bool:
    """Return whether every kernel has a finite feature map on its columns of X."""
    row = np.zeros((1, X.shape[1]))
    return all(entry.kernel.features(row[:, entry.positions]) is not None for entry in bound)
