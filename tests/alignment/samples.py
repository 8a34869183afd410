"""Samples, targets and kernels that the tests of the alignment share."""

import numpy as np
import pytest

from manykernels.alignment import Target
from manykernels.kernels import Gaussian, Linear, Polynomial
from tests.alignment import naive

RNG = np.random.default_rng(1)
N = 26
X = RNG.standard_normal((N, 4)) + 0.3
SIGNAL = X[:, 0] * X[:, 1] + 0.6 * X[:, 2]
BINARY, VALUES = np.where(SIGNAL > 0.2, 1, 0), SIGNAL + 0.2 * RNG.standard_normal(N)
THREE = np.digitize(SIGNAL, np.quantile(SIGNAL, [1 / 3, 2 / 3]))
OUTPUTS = np.column_stack([VALUES, X[:, 3], X[:, 0]])
WEIGHT = RNG.integers(1, 4, N).astype(float)
TARGETS = {
    "two classes": (Target.of_classes, BINARY, naive.same_class(BINARY)),
    "three classes": (Target.of_classes, THREE, naive.same_class(THREE)),
    "values": (Target.of_values, VALUES, np.outer(VALUES, VALUES)),
    "three outputs": (Target.of_values, OUTPUTS, OUTPUTS @ OUTPUTS.T),
}
BY_TARGET = pytest.mark.parametrize(("make", "y", "L"), TARGETS.values(), ids=TARGETS)
KERNELS = [
    *(Linear(columns=[j]) for j in range(4)),
    *(Gaussian(w, columns=[j, (j + 1) % 4]) for j in range(4) for w in (0.5, 2.0)),
    Polynomial(2),
]
