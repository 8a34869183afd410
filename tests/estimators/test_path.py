"""Paths over C and p."""

import numpy as np
import pytest

from manykernels import MKLClassifier, MKLRegressor, mkl_path
from manykernels.kernels import Gaussian, Kernel, KernelBank
from tests.estimators.test_cv import CS, KERNELS, X, Y


class Counting(Kernel):
    """A linear kernel that counts how often it is computed on many samples."""

    calls = 0

    def compute(self, A, B):
        Counting.calls += len(A) * len(B) > 1000
        return A @ B.T


@pytest.mark.parametrize("norm", [1.0, 4 / 3, 2.0])
def test_the_path_meets_single_fits(norm):
    """Each point is the model that a cold fit finds, up to the tolerance, and carries its certificate."""
    path = mkl_path(KERNELS, X, Y, Cs=CS[::-1], norms=[norm], tol=1e-5)
    assert [point.C for point in path] == CS
    for point in path:
        cold = MKLClassifier(KERNELS, norm=norm, C=point.C, tol=1e-5).fit(X, Y)
        assert point.model.converged_
        assert point.model.gap_ <= 1e-5
        assert point.model.objective_ == pytest.approx(cold.objective_, rel=3e-5)


def test_kernels_are_computed_once():
    bank = KernelBank([Counting(), Gaussian(1.0)])
    Counting.calls = 0
    MKLClassifier(bank, norm=2.0).fit(X, Y)
    once = Counting.calls
    Counting.calls = 0
    mkl_path(bank, X, Y, Cs=CS, norms=[1.5, 2.0])
    assert once == Counting.calls > 0


def test_regression_path():
    y = np.sin(X[:, 0]) + X[:, 1]
    path = mkl_path(KERNELS, X, y, Cs=[1.0, 100.0], regression=True, loss="epsilon_insensitive")
    assert all(isinstance(point.model, MKLRegressor) for point in path)
    assert path[1].model.score(X, y) > path[0].model.score(X, y)


@pytest.mark.parametrize("options", [{"Cs": []}, {"norms": []}])
def test_an_empty_path_is_refused(options):
    with pytest.raises(ValueError, match="Cs and norms"):
        mkl_path(KERNELS, X, Y, **options)
