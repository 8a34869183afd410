"""What banks are measured by: samples, sets of kernels, and their normalized matrices by definition."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from manykernels.kernels import (
    Dirichlet,
    Gaussian,
    GaussianLadder,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    RandomFourier,
)
from tests.kernels import naive

N_TRAIN, N_TEST, N_FEATURES = 17, 6, 4
NUMBERS = N_FEATURES  # the column of sample numbers, beside the features
FEATURES = list(range(N_FEATURES))
NORMALIZATIONS = ["mean_diag", "trace", "cosine", None]


class Laplacian(Kernel):
    """A kernel of a user's own; it can only do what :class:`Kernel` does by itself."""

    def __init__(self, scale, columns=None):
        super().__init__(columns)
        self.scale = scale

    def compute(self, X, Z):
        X, Z = (A.toarray() if sp.issparse(A) else A for A in (X, Z))
        return np.exp(-cdist(X, Z, "cityblock") / self.scale)


def samples(n, seed=0):
    """Features, some of them zero, and a last column that counts the samples."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, N_FEATURES)) * (rng.random((n, N_FEATURES)) < 0.8)
    return np.column_stack([X, np.arange(n)])


def train_and_test():
    X = samples(N_TRAIN + N_TEST)
    return X[:N_TRAIN], X[N_TRAIN:]


def sample_weight():
    return np.random.default_rng(9).uniform(0.2, 3.0, N_TRAIN)


def own_matrix(n=N_TRAIN + N_TEST):
    A = np.random.default_rng(5).standard_normal((n, 5))
    return A @ A.T


# --- sets of kernels: what a bank is made of, and its kernels one by one, each beside its definition ------------


def waves_of(kernel):
    """The mean of cos(w'(a - b)) over the waves that a kernel has drawn."""
    W = kernel.frequencies(len(kernel.columns))
    return lambda a, b: np.mean(np.cos((a - b) @ W))


def rungs(ladder):
    return [(Gaussian(w, columns=ladder.columns), naive.gaussian(w)) for w in ladder.widths]


# Kernels on the same columns do not stand side by side, so that groups and places in the bank differ.
LIST = [
    (Gaussian(0.7, columns=FEATURES), naive.gaussian(0.7)),
    (Linear(columns=[0]), naive.linear()),
    (Polynomial(2, columns=[1]), naive.polynomial(2)),
    (Precomputed(own_matrix(), columns=[NUMBERS]), naive.lookup(own_matrix())),
    (Polynomial(3, coef0=0.5, columns=[0]), naive.polynomial(3, 0.5)),
    (Gaussian(2.0, columns=[2]), naive.gaussian(2.0)),
    (Linear(columns=FEATURES), naive.linear()),
    (Dirichlet(1.3, columns=[1]), naive.dirichlet(1.3)),
    (Laplacian(1.5, columns=FEATURES), naive.laplacian(1.5)),
    (Gaussian(2.5, columns=FEATURES), naive.gaussian(2.5)),
    (Polynomial(2, coef0=0.0, columns=FEATURES), naive.polynomial(2, 0.0)),
]
# Fewer widths than nodes on one, and more on the other; the third shares its columns with the first.
LADDERS = [
    GaussianLadder(0.5, 8.0, 40, columns=FEATURES),
    GaussianLadder(0.7, 3.0, 5, columns=[1, 2]),
    GaussianLadder(0.6, 2.0, 7, group="narrow", columns=FEATURES),
]
PLAIN = [LIST[k] for k in (1, 3, 0, 8)]
SMALL = [LIST[k] for k in (0, 1, 2, 5, 8)]
WAVES = [RandomFourier(0.7, 40, 1, columns=FEATURES), RandomFourier(2.0, 16, 2, columns=[2]), Linear(columns=[0, 1])]
GAUSSIANS = [LIST[k] for k in (0, 5, 9)]


@dataclass(frozen=True)
class KernelSet:
    """What is given to a bank, and each of its kernels with its definition."""

    given: list
    single: list

    @property
    def size(self):
        return len(self.single)

    @property
    def weights(self):
        """Weights of the kernels; a third is zero."""
        weights = np.random.default_rng(8).uniform(0.1, 1.0, self.size)
        return weights * (np.arange(self.size) % 3 != 2)


def of_list(pairs):
    return KernelSet([kernel for kernel, _ in pairs], list(pairs))


SETS = {
    "list": of_list(LIST),
    "ladders": KernelSet(LADDERS, [pair for ladder in LADDERS for pair in rungs(ladder)]),
    # Plain kernels come first in a bank's order, wherever they stand in the list.
    "both": KernelSet(
        [LADDERS[0], *(kernel for kernel, _ in PLAIN), LADDERS[1]], [*PLAIN, *rungs(LADDERS[0]), *rungs(LADDERS[1])]
    ),
    "small": of_list(SMALL),
    "waves": of_list([(WAVES[0], waves_of(WAVES[0])), (WAVES[1], waves_of(WAVES[1])), (WAVES[2], naive.linear())]),
    "gaussians": of_list(GAUSSIANS),
}


# --- their matrices --------------------------------------------------------------------------------------------


@cache
def raw_matrices(name, of_test):
    """(kernel between the rows and the training samples, of the training samples, diagonal of the rows), of each."""
    X, Z = train_and_test()
    rows = Z if of_test else X
    return [
        (
            naive.gram(function, rows[:, kernel.columns], X[:, kernel.columns]),
            naive.gram(function, X[:, kernel.columns], X[:, kernel.columns]),
            np.array([function(z, z) for z in rows[:, kernel.columns]]),
        )
        for kernel, function in SETS[name].single
    ]


@cache
def naive_stack(name, normalize, center, weighted=False, of_test=False):
    """(n_kernels, rows, n_train): the naive normalized kernels of the training or the test rows."""
    weight = sample_weight() if weighted else np.ones(N_TRAIN)
    stack = [naive.normalized_gram(*raw, normalize, center, weight) for raw in raw_matrices(name, of_test)]
    stack = np.array(stack)
    stack.flags.writeable = False
    return stack


class Sum:
    """The truth of a bank whose kernels add up."""

    def __init__(self, stack):
        self.stack = stack

    def combined(self, weights):
        return np.tensordot(weights, self.stack, axes=1)

    def size(self, weights):
        """How large what is added up is, entry by entry."""
        return np.tensordot(weights, np.abs(self.stack), axes=1)

    def derivatives(self, weights):
        return self.stack


class Product:
    """The truth of the product of Gaussian kernels, each raised to its weight."""

    _STEP = 1e-5

    def __init__(self, stack, scale):
        self._logarithms, self._scale = np.log(stack), scale

    def combined(self, weights):
        return self._scale * np.exp(np.tensordot(weights, self._logarithms, axes=1))

    size = combined

    def derivatives(self, weights):
        """By differences."""
        steps = self._STEP * np.eye(weights.size)
        return np.array([self.combined(weights + e) - self.combined(weights - e) for e in steps]) / (2 * self._STEP)


def truth_of(kind, normalize, center, weighted=False):
    """What the numbers of a bank of this kind must be."""
    if kind.set == "gaussians":
        total = sample_weight().sum() if weighted else N_TRAIN
        return Product(naive_stack(kind.set, None, False), 1.0 / total if normalize == "trace" else 1.0)
    return Sum(naive_stack(kind.set, normalize, center, weighted))
