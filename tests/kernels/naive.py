"""Kernels by their definitions, one pair of samples at a time, and normalization by its definition.

Nothing here imports the library.
"""

import math

import numpy as np


def gram(function, A, B):
    """The matrix of function(a, b) for the rows of two dense arrays, by two loops."""
    return np.array([[function(a, b) for b in B] for a in A])


def linear():
    return lambda a, b: math.fsum(s * t for s, t in zip(a, b, strict=True))


def overlap(count):
    inner = linear()
    return lambda a, b: inner(a, b) / count


def polynomial(degree, coef0=1.0):
    inner = linear()
    return lambda a, b: (inner(a, b) + coef0) ** degree


def gaussian(width):
    return lambda a, b: math.exp(-math.fsum((s - t) ** 2 for s, t in zip(a, b, strict=True)) / (2 * width**2))


def dirichlet(frequency):
    return lambda a, b: 1 + 2 * math.cos(frequency * math.dist(a, b))


def laplacian(scale):
    return lambda a, b: math.exp(-math.fsum(abs(s - t) for s, t in zip(a, b, strict=True)) / scale)


def lookup(K):
    return lambda a, b: K[int(a[0]), int(b[0])]


def normalized(function, Z, X, kind, center, weight):
    """The normalized kernel between Z and the training samples X, from the definition."""
    own = np.array([function(z, z) for z in Z])
    return normalized_gram(gram(function, Z, X), gram(function, X, X), own, kind, center, weight)


def normalized_gram(cross, train, own, kind, center, weight):
    """The same from raw matrices: of Z with X, of X, and the diagonal of Z.

    Cosine first, then centering in feature space with the weighted mean of X, then the scale.
    """
    share = weight / weight.sum()
    if kind == "cosine":
        of_z, of_x = (np.array([inverse_root(value) for value in values]) for values in (own, np.diag(train)))
        cross, train = cross * np.outer(of_z, of_x), train * np.outer(of_x, of_x)
    if center:
        left, right, total = cross @ share, train @ share, share @ train @ share
        cross = cross - left[:, None] - right[None, :] + total
        train = train - right[:, None] - right[None, :] + total
    diagonal = np.diag(train)
    scale = {"mean_diag": share @ diagonal, "trace": weight @ diagonal}.get(kind, 1.0)
    return cross / scale


def inverse_root(value):
    return 1 / math.sqrt(value) if value > 0 else 0.0
