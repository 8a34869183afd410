"""Paths over C and p."""

import numpy as np
import pandas as pd
import pytest

from manykernels import MKLClassifier, MKLClassifierCV, MKLRegressor, mkl_path
from manykernels.estimators import base, cv
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


def test_the_data_are_read_once(monkeypatch):
    read, calls = base.read_training, []
    monkeypatch.setattr(base, "read_training", lambda *given: calls.append(given) or read(*given))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    path = mkl_path(KERNELS, frame, Y, Cs=CS, norms=[1.0, 2.0])
    assert len(calls) == 1
    for point in path:
        assert point.model.n_features_in_ == X.shape[1]
        assert list(point.model.feature_names_in_) == list(frame.columns)
        assert list(point.model.classes_) == list(np.unique(Y))


@pytest.mark.parametrize(
    "fit",
    [
        lambda norm: MKLClassifier(KERNELS, norm=norm).fit(X, Y),
        lambda norm: mkl_path(KERNELS, X, Y, Cs=CS, norms=[1.0, norm]),
        lambda norm: mkl_path(KERNELS, X, Y, Cs=CS, norms=[1.0, norm], n_jobs=2),
        lambda norm: MKLClassifierCV(KERNELS, Cs=CS, norms=[1.0, norm], cv=2).fit(X, Y),
    ],
    ids=["fit", "path", "side by side", "search"],
)
def test_a_norm_is_refused_before_anything_is_read(fit, monkeypatch):
    for module, name in ((base, "read_training"), (cv, "read_rows")):
        monkeypatch.setattr(module, name, lambda *given, **named: pytest.fail("it was read"))
    with pytest.raises(ValueError, match=r"^norm must be a number p in \[1, inf\] or a norm"):
        fit(0.5)


def test_what_a_solver_refuses_is_refused_before_the_path_begins(monkeypatch):
    monkeypatch.setattr(base, "read_training", lambda *given: pytest.fail("it was read"))
    with pytest.raises(TypeError, match=r"^solver='simple' needs LpNorm\(1\), got LpNorm\(p=2\)\.$"):
        mkl_path(KERNELS, X, Y, Cs=CS, norms=[1.0, 2.0], solver="simple")


def test_a_search_takes_a_solver_that_is_for_its_norms_alone():
    model = MKLClassifierCV(KERNELS, Cs=[1.0], norms=[2.0], cv=2, solver="smo").fit(X, Y)
    assert model.norm_ == 2.0


def test_regression_path():
    y = np.sin(X[:, 0]) + X[:, 1]
    path = mkl_path(KERNELS, X, y, Cs=[1.0, 100.0], regression=True, loss="epsilon_insensitive")
    assert all(isinstance(point.model, MKLRegressor) for point in path)
    assert path[1].model.score(X, y) > path[0].model.score(X, y)


@pytest.mark.parametrize("options", [{"Cs": []}, {"norms": []}])
def test_an_empty_path_is_refused(options):
    with pytest.raises(ValueError, match="Cs and norms"):
        mkl_path(KERNELS, X, Y, **options)
