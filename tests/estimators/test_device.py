"""Fits on a device, on torch's own CPU device, give the model of the CPU."""

import builtins
import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification, make_regression

from manykernels import MKLClassifier, MKLClassifierCV, MKLRegressor, load
from manykernels.banks import Placement, plan, planning, predictions
from manykernels.banks.planning import Extent
from manykernels.compute import device_table
from manykernels.compute.gpu import Device, has_device
from manykernels.core.solver import Need
from manykernels.kernels import Gaussian, GaussianFamily, GaussianLadder, Linear, NystroemFeatures, Polynomial
from manykernels.norms import MixedNorm
from tests.binding import features_of

pytestmark = pytest.mark.skipif(not has_device("torch:cpu"), reason="needs torch")
VIEWS = (None, [0, 1], [2, 3], [4])
KERNELS = [Gaussian(w, columns=c) for w in (0.5, 2.0) for c in VIEWS] + [Linear(), Polynomial(2)]


def classes(n_classes=2, n=240):
    return make_classification(n, 6, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.1, random_state=0)


def values():
    return make_regression(240, 6, noise=5.0, random_state=0)


@cache
def on_the_cpu(kind, n_classes=2, **settings):
    """The model that others are compared with, fitted once for all ways of a device."""
    X, y = values() if kind is MKLRegressor else classes(n_classes)
    return kind(KERNELS, **settings).fit(X, y)


@pytest.fixture(params=[False, True], ids=["kernel on the CPU", "kernel on the device"])
def stays(request, monkeypatch):
    """Whether the combined kernel stays on the device, as for many samples."""
    if request.param:
        monkeypatch.setattr(planning, "LARGE", 10)
    return request.param


def assert_same(here, there, tol=1e-4):
    assert here.converged_
    assert there.converged_
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=0, atol=tol)
    assert there.dual_objective_ <= here.objective_ * (1 + 1e-6)
    assert here.dual_objective_ <= there.objective_ * (1 + 1e-6)


@pytest.mark.parametrize("norm", [1, 4 / 3, 2, np.inf], ids=str)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared"])
@pytest.mark.parametrize("tol", [1e-5, 2e-6], ids=["single", "double"])
@pytest.mark.usefixtures("stays")
def test_classifiers(loss, norm, tol):
    X, y = classes()
    settings = {"norm": norm, "loss": loss, "tol": tol}
    here = on_the_cpu(MKLClassifier, **settings)
    there = MKLClassifier(KERNELS, **settings, device="torch:cpu").fit(X, y)
    assert_same(here, there)
    assert np.mean(there.predict(X) == here.predict(X)) > 0.99


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
@pytest.mark.usefixtures("stays")
def test_regressors(loss, norm):
    settings = {"norm": norm, "loss": loss, "tol": 2e-6}
    there = MKLRegressor(KERNELS, **settings, device="torch:cpu").fit(*values())
    assert_same(on_the_cpu(MKLRegressor, **settings), there)


@pytest.mark.usefixtures("stays")
def test_the_default_tolerance_and_its_certificate():
    """In single precision; the gap is checked with kernels in double."""
    X, y = classes()
    model = MKLClassifier(KERNELS, norm=2, device="torch:cpu").fit(X, y)
    exact = on_the_cpu(MKLClassifier, norm=2, tol=1e-8)
    assert model.gap_ <= 1e-3
    assert model.dual_objective_ <= exact.objective_ * (1 + 1e-6)
    assert model.objective_ >= exact.dual_objective_ * (1 - 1e-6)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.usefixtures("stays")
def test_several_classes(shared):
    X, y = classes(3)
    settings = {"norm": 2, "shared_weights": shared, "tol": 2e-6}
    here = on_the_cpu(MKLClassifier, 3, **settings)
    assert_same(here, MKLClassifier(KERNELS, **settings, device="torch:cpu", n_jobs=2).fit(X, y))


def test_groups_and_centered_kernels():
    X, y = classes()
    for settings in ({"norm": MixedNorm(2)}, {"norm": 2, "center": True}):
        here = MKLClassifier(KERNELS, **settings, tol=2e-6).fit(X, y)
        assert_same(here, MKLClassifier(KERNELS, **settings, tol=2e-6, device="torch:cpu").fit(X, y))


def test_ladders():
    X, y = classes()
    kernels = [GaussianLadder(low=0.25, high=16.0, count=200, columns=columns) for columns in VIEWS]
    here = MKLClassifier(kernels, norm=1, tol=1e-5).fit(X, y)
    there = MKLClassifier(kernels, norm=1, tol=1e-5, device="torch:cpu").fit(X, y)
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-5)
    assert list(there.kernel_names_[:5]) == list(here.kernel_names_[:5])
    for group in range(len(VIEWS)):  # neighbors on a ladder share the weight as they like
        assert there.group_weights_[group] == pytest.approx(here.group_weights_[group], abs=5e-3)


@pytest.mark.parametrize("settings", [{"norm": 2, "tol": 1e-6}, {"norm": 2, "center": True}], ids=str)
@pytest.mark.usefixtures("poor_device")
def test_a_device_without_double_precision_leaves_it_to_the_cpu(settings):
    assert_poor_device_does(settings)


@pytest.mark.usefixtures("stays", "poor_device")
@pytest.mark.parametrize("settings", [{}, {"loss": "logistic", "tol": 1e-6}, {"center": True}], ids=str)
def test_a_device_without_double_precision(settings):
    assert_poor_device_does({"norm": 1, **settings})


@pytest.mark.usefixtures("stays", "poor_device")
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_values_beyond_single_precision_leave_a_device_without_double_precision(loss, capsys):
    """That they do is only known when the kernels are there: the fit goes on as if it had been planned for the CPU."""
    X, y = classes()
    kernels = [Linear(columns=columns) for columns in VIEWS]
    settings = {"loss": loss, "norm": 2, "normalize": None, "C": 1e-32}
    here = MKLClassifier(kernels, **settings).fit(1e16 * X, y)
    there = MKLClassifier(kernels, **settings, device="torch:cpu", verbose=1).fit(1e16 * X, y)
    assert there.converged_
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-3)
    place = capsys.readouterr().out.splitlines()[0]
    assert "; 'torch:cpu' lacks the double precision that they need; the kernels get " in place


def test_a_plan_for_a_device_without_double_precision_is_one_for_the_cpu():
    """Where the digits are known to be needed, and memory is scarce: a smooth loss takes no rows of the CPU."""
    extent, need = Extent(2000, 1, 10), Need(2 * 8 * 2000**2, asks=frozenset({"combine"}), smooth=True)
    wish = Placement("20MB", "torch:cpu", precision="double")
    with pytest.raises(MemoryError, match="the combined kernel of 2000 samples and its solver"):
        plan(extent, need, wish, has_double=False)
    assert plan(extent, need, replace(wish, precision="single"), has_double=False).device == "torch:cpu"


@pytest.fixture
def poor_device(monkeypatch):
    """A device as Apple's, which has no double precision."""
    own = Device.__init__

    def poor(self, *rest, **options):
        own(self, *rest, **options)
        self.has_double, self.wide = False, self.torch.float32

    monkeypatch.setattr(Device, "__init__", poor)


def assert_poor_device_does(settings):
    """Single precision there, and where that does not suffice the CPU."""
    X, y = classes()
    here = on_the_cpu(MKLClassifier, **settings)
    there = MKLClassifier(KERNELS, **settings, device="torch:cpu").fit(X, y)
    assert there.converged_
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-3)


def test_cross_validation_takes_the_device():
    X, y = classes()
    model = MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], norms=[1.0, 2.0], cv=2, device="torch:cpu").fit(X, y)
    assert model.best_score_ > 0.6


def test_predictions_on_the_device(monkeypatch):
    X, y = classes()
    model = MKLClassifier(KERNELS, norm=2, device="torch:cpu").fit(X[:160], y[:160])
    plain = model.decision_function(X)
    monkeypatch.setattr(predictions, "_MANY_VALUES", 1)
    np.testing.assert_allclose(model.decision_function(X), plain, rtol=0, atol=1e-10)


def test_a_model_is_used_without_torch(monkeypatch, tmp_path):
    X, y = classes()
    model = MKLClassifier(KERNELS, norm=2, device="torch:cpu").fit(X, y)
    expected = model.decision_function(X)
    model.save(tmp_path / "model.mkl")
    blob = pickle.dumps(model)
    assert b"torch" not in blob.replace(b"torch:cpu", b"")
    own = builtins.__import__

    def refuse(name, *rest, **options):
        if name.partition(".")[0] == "torch":
            raise ImportError(name)
        return own(name, *rest, **options)

    monkeypatch.setattr(predictions, "_MANY_VALUES", 1)
    monkeypatch.setattr(builtins, "__import__", refuse)
    for again in (load(tmp_path / "model.mkl"), pickle.loads(blob)):
        np.testing.assert_allclose(again.decision_function(X), expected, rtol=0, atol=1e-12)
    with pytest.raises(ImportError, match=r'pip install "manykernels\[gpu\]"'):
        MKLClassifier(KERNELS, device="cuda").fit(X, y)
    MKLClassifier(KERNELS, norm=2).fit(X, y)


def test_what_a_device_is_not_for():
    X, y = classes()
    for settings in ({"combination": "product"}, {"kernels": GaussianFamily(0.1, 10.0)}):
        with pytest.raises(ValueError, match="device='torch:cpu' is for lists of kernels"):
            MKLClassifier(**settings, device="torch:cpu").fit(X, y)


@pytest.mark.parametrize("factors", [True, False], ids=["factored", "in blocks"])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared"])
def test_features_on_the_device(loss, approximation, factors, monkeypatch):
    monkeypatch.setattr(device_table, "_MOST_FACTORED", 10**6 if factors else 0)
    X, y = classes()
    settings = {
        "approximation": features_of(approximation, 30),
        "norm": 1.5,
        "loss": loss,
        "random_state": 0,
        "tol": 1e-6,
    }
    here = on_the_cpu(MKLClassifier, **settings)
    there = MKLClassifier(KERNELS, **settings, device="torch:cpu").fit(X, y)
    assert there.converged_
    np.testing.assert_allclose(there.approximation_error_, here.approximation_error_, atol=1e-7)
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=0, atol=1e-3)
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-6)
    plain = there.decision_function(X)
    np.testing.assert_allclose(plain, here.decision_function(X), rtol=0, atol=5e-3)
    monkeypatch.setattr(predictions, "_MANY_VALUES", 1)
    np.testing.assert_allclose(there.decision_function(X), plain, rtol=0, atol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"normalize": "cosine"}, {"loss": "logistic"}], ids=str)
def test_features_of_missing_views_on_the_device(settings, monkeypatch):
    monkeypatch.setattr(predictions, "_MANY_VALUES", 1)
    X, y = classes()
    X[::7, :2] = np.nan
    kernels = [Gaussian(2.0, columns=[0, 1]), Polynomial(2, columns=[2, 3]), Linear(columns=[0, 1])]
    settings = {"norm": 2, "random_state": 0, "missing": "ignore", "tol": 1e-8, **settings}
    settings |= {"approximation": NystroemFeatures(8)}
    here = MKLClassifier(kernels, **settings).fit(X, y)
    there = MKLClassifier(kernels, **settings, device="torch:cpu").fit(X, y)
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=0, atol=1e-3)
    np.testing.assert_allclose(there.decision_function(X), here.decision_function(X), rtol=0, atol=0.01)


def test_features_of_sparse_data_and_regression_on_the_device():
    X, y = classes()
    X = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    settings = {"approximation": NystroemFeatures(20), "loss": "epsilon_insensitive", "random_state": 0, "tol": 1e-4}
    here = MKLRegressor(KERNELS, **settings).fit(X, 2.0 * y)
    there = MKLRegressor(KERNELS, **settings, device="torch:cpu").fit(X, 2.0 * y)
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-4)


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.usefixtures("poor_device")
def test_features_on_a_device_without_double_precision(tol):
    assert_poor_device_does({"norm": 2, "tol": tol, "approximation": NystroemFeatures(20), "random_state": 0})
