"""Whatever a user calls, BLAS runs on one thread inside and is left as it was."""

from typing import ClassVar

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from manykernels import (
    AlignedKernel,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    TwoStageMKLClassifier,
    TwoStageMKLRegressor,
    UFOMKLClassifier,
    UFOMKLRegressor,
    mkl_path,
    ufo_path,
)
from manykernels.banks import bind
from manykernels.kernels import Kernel, KernelBank, Linear, NystroemFeatures
from manykernels.reports import make_report

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
CLASSES = (X[:, 0] + 0.3 * RNG.standard_normal(60) > 0).astype(int)
VALUES = X[:, 0] + 0.1 * RNG.standard_normal(60)


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


class Witness(Kernel):
    """A linear kernel that remembers how many BLAS threads it was computed with."""

    seen: ClassVar[set[int]] = set()

    def compute(self, X, Z):
        Witness.seen |= blas_threads()
        return np.asarray(X) @ np.asarray(Z).T

    @property
    def trusted(self):
        return True


def kernels():
    return [Witness(), Linear(columns=[0]), Linear(columns=[1])]


@pytest.fixture
def witness():
    """Two BLAS threads outside, so that a limit shows on any machine."""
    Witness.seen = set()
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        yield Witness
        assert blas_threads() == before
    if before != {2}:
        pytest.skip("BLAS cannot have two threads here")


FITS = {
    "classifier": (MKLClassifier(kernels()), CLASSES),
    "classifier, approximate": (MKLClassifier(kernels(), approximation=NystroemFeatures(5), random_state=0), CLASSES),
    "regressor": (MKLRegressor(kernels()), VALUES),
    "classifier, CV": (MKLClassifierCV(kernels(), Cs=[1.0], norms=[1.0], cv=2), CLASSES),
    "regressor, CV": (MKLRegressorCV(kernels(), Cs=[1.0], norms=[1.0], cv=2), VALUES),
    "UFO classifier": (UFOMKLClassifier(kernels(), random_state=0), CLASSES),
    "UFO regressor": (UFOMKLRegressor(kernels(), random_state=0), VALUES),
    "two-stage classifier": (TwoStageMKLClassifier(kernels(), random_state=0), CLASSES),
    "two-stage regressor": (TwoStageMKLRegressor(kernels(), random_state=0), VALUES),
    "aligned kernel": (AlignedKernel(kernels(), random_state=0), CLASSES),
}
METHODS = ("predict", "decision_function", "transform", "kernel", "contributions")


@pytest.mark.parametrize("case", FITS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_and_predictions(witness, case):
    estimator, y = FITS[case]
    estimator.fit(X, y)
    assert witness.seen == {1}
    for name in METHODS:
        if hasattr(estimator, name):
            witness.seen = set()
            getattr(estimator, name)(X[:7])
            assert witness.seen <= {1}, name


@pytest.mark.parametrize("kind", [UFOMKLClassifier, UFOMKLRegressor])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_streams(witness, kind):
    model = kind(kernels(), random_state=0)
    more = {"classes": [0, 1]} if kind is UFOMKLClassifier else {}
    model.partial_fit(X, CLASSES, **more)
    assert witness.seen == {1}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_paths_banks_and_reports(witness):
    calls = {
        "mkl_path": lambda: mkl_path(kernels(), X, CLASSES, Cs=[1.0], norms=[1.0]),
        "ufo_path": lambda: ufo_path(kernels(), X, CLASSES, alphas=[0.1], random_state=0),
        "bind": lambda: bind(KernelBank(kernels()), X),
        "report": lambda: make_report(MKLClassifier(kernels()).fit(X, CLASSES), X, CLASSES, folds=2),
    }
    for name, call in calls.items():
        witness.seen = set()
        call()
        assert witness.seen == {1}, name
