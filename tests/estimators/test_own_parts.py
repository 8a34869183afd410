"""A kernel, a loss, a norm and a solver of a user's own, handed to the estimators."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manykernels import MKLClassifier, MKLRegressor, TwoStageMKLClassifier, UFOMKLClassifier, load
from manykernels.core.solver import Solver
from manykernels.kernels import Gaussian, Kernel, KernelBank, Linear
from manykernels.losses import Hinge, Logistic, Squared
from manykernels.norms import Penalty
from manykernels.outer.group_lasso import group_lasso
from tests.contracts.test_losses import Huber

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = X[:, 0] * X[:, 1] > 0
KERNELS = [Gaussian(w) for w in (0.5, 1.0, 2.0)]


class Laplacian(Kernel):
    def compute(self, X, Z):
        return np.exp(-cdist(X, Z, "cityblock"))


class Entropy(Penalty):
    def value(self, weights):
        return float(np.sum(weights * np.log(np.maximum(weights, 1e-300))))

    def gradient(self, weights):
        return 1 + np.log(np.maximum(weights, 1e-300))

    def conjugate(self, slopes):
        return float(np.sum(np.exp(slopes - 1)))


def twice_as_exact(problem, *, tol, max_iter, start=None):
    twice_as_exact.calls += 1
    return group_lasso(problem, tol=0.5 * tol, max_iter=max_iter, start=start)


twice_as_exact.calls = 0


@pytest.mark.parametrize(
    "solver", [twice_as_exact, Solver("mine", twice_as_exact, frozenset({"quad_forms"}))], ids=["function", "record"]
)
def test_a_solver(solver):
    before = twice_as_exact.calls
    model = MKLClassifier(KERNELS, norm=2, solver=solver).fit(X, Y)
    assert twice_as_exact.calls > before
    assert model.gap_ <= 0.5e-3
    plain = MKLClassifier(KERNELS, norm=2, tol=1e-6).fit(X, Y)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-3)


def test_a_solver_that_refuses_does_so_before_any_work(monkeypatch):
    solver = Solver("mine", twice_as_exact, refuses=lambda norm, loss: f"is not for {norm!r}.")
    monkeypatch.setattr("manykernels.estimators.base.bind", lambda *a, **k: pytest.fail("kernels were bound"))
    with pytest.raises(TypeError, match=r"^solver='mine' is not for LpNorm\(p=1\)\.$"):
        MKLClassifier(KERNELS, solver=solver).fit(X, Y)


@pytest.mark.parametrize(("own", "name"), [(Logistic(), "logistic"), (Hinge(), "hinge"), (Squared(), "squared")])
def test_a_loss_as_an_object_is_its_name(own, name):
    one, other = (MKLClassifier(KERNELS, loss=loss).fit(X, Y) for loss in (own, name))
    np.testing.assert_array_equal(one.weights_, other.weights_)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    assert hasattr(one, "predict_proba") == (name == "logistic")


def test_a_loss_of_ones_own():
    """Outliers count less than with squares: the fit of the rest is as good as without them."""
    y = np.sin(2 * X[:, 0])
    spoiled = y.copy()
    spoiled[:4] += 50.0
    huber, squares = (MKLRegressor(KERNELS, loss=loss, C=10.0).fit(X, spoiled) for loss in (Huber(), "squared"))
    assert huber.converged_
    errors = [np.abs(model.predict(X)[4:] - y[4:]).mean() for model in (huber, squares)]
    assert errors[0] < 0.2 * errors[1]


@pytest.mark.parametrize(("kind", "loss"), [(MKLClassifier, Huber()), (MKLRegressor, Hinge())])
def test_a_loss_for_other_targets_is_refused(kind, loss):
    with pytest.raises(ValueError, match="loss must be for"):
        kind(KERNELS, loss=loss).fit(X, Y.astype(float))


def test_a_kernel_and_a_norm():
    model = MKLClassifier([Laplacian(), Linear()], norm=Entropy()).fit(X, Y)
    assert model.gap_ <= 1e-3
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize("own", [{"loss": Huber()}, {"solver": twice_as_exact, "norm": 2}], ids=["loss", "solver"])
def test_files_keep_what_predictions_need(own, tmp_path):
    y = np.sin(2 * X[:, 0])
    model = MKLRegressor(KERNELS, **own).fit(X, y)
    model.save(tmp_path / "model")
    opened = load(tmp_path / "model")
    np.testing.assert_array_equal(opened.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="must be one of"):
        opened.fit(X, y)


class Held(KernelBank):
    """Kernels that say how they are held: as the library would, but seen by the test."""

    asked = 0

    def hold(self, data, recipe, placement):
        Held.asked += 1


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        (MKLClassifier, {"approximation": "nystroem"}, "approximation='nystroem'"),
        (MKLClassifier, {"combination": "product"}, "combination='product'"),
        (UFOMKLClassifier, {}, "UFOMKLClassifier"),
    ],
)
def test_kernels_that_say_how_they_are_held_are_refused_where_they_cannot_be(kind, settings, words):
    kernels = Held(KERNELS)
    message = rf"^{words} cannot hold kernels as Held\.hold would: pass list\(kernels\), a plain list\.$"
    with pytest.raises(TypeError, match=message):
        kind(kernels, **settings).fit(X, Y)
    kind(list(kernels), **settings).fit(X, Y)


def test_kernels_that_say_how_they_are_held():
    before = Held.asked
    for kind in (MKLClassifier, TwoStageMKLClassifier):
        kind(Held(KERNELS)).fit(X, Y)
    assert Held.asked >= before + 2
    with pytest.raises(TypeError, match=r"^A list of more kernels cannot hold kernels as Held\.hold would"):
        MKLClassifier([Held(KERNELS), Linear()]).fit(X, Y)
