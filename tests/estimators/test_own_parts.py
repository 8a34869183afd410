"""A kernel, a loss, a norm and a solver of a user's own, handed to the estimators."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manykernels import (
    AlignedKernel,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    TwoStageMKLClassifier,
    UFOMKLClassifier,
    UFOMKLRegressor,
    load,
)
from manykernels.banks import bind
from manykernels.banks.packed import PackedBank
from manykernels.core.solver import Solver, takes_all
from manykernels.estimators import loss_and_norm
from manykernels.kernels import Gaussian, GaussianFamily, Kernel, KernelBank, Linear
from manykernels.losses import EpsilonInsensitive, Hinge, Logistic, MulticlassHinge, Squared, SquaredHinge
from manykernels.norms import ElasticNorm, LpNorm, LpPenalty, Penalty
from manykernels.outer.greedy import greedy
from manykernels.outer.group_lasso import group_lasso
from tests.contracts.test_losses import UserHuber as Huber

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


class Steep(Hinge):
    """A hinge with the name and a parameter that an estimator has, too."""

    name = "steep"

    def __init__(self, center=2.0):
        self.center = center


@pytest.mark.parametrize("kind", [MKLClassifier, MKLClassifierCV])
def test_a_loss_with_a_name_takes_what_its_constructor_names_of_the_estimators_parameters(monkeypatch, kind):
    monkeypatch.setattr(loss_and_norm, "LOSSES", (*loss_and_norm.LOSSES, Steep))
    assert kind(loss="steep", center=7)._loss().center == 7
    assert UFOMKLClassifier(loss="steep")._loss().loss.center == 2.0  # it has no such parameter


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
    monkeypatch.setattr("manykernels.estimators.by_list.bind", lambda *a, **k: pytest.fail("kernels were bound"))
    with pytest.raises(TypeError, match=r"^solver='mine' is not for LpNorm\(p=1\)\.$"):
        MKLClassifier(KERNELS, solver=solver).fit(X, Y)


def test_kernels_that_offer_too_little_are_refused_with_the_sentence_of_the_record():
    def never(problem, **options):
        pytest.fail("it was run")

    solver = Solver("mine", never, frozenset({"combine", "quad_forms", "rows"}))
    with pytest.raises(TypeError, match=r"^solver='mine' needs kernels that offer quad_forms, rows; these do not\.$"):
        MKLClassifier(combination="product", norm=LpPenalty(1.0), solver=solver).fit(X, Y)


class Poor(KernelBank):
    """Kernels held in a bank of their own, which offers little."""

    def hold(self, data, recipe, placement):
        bank = bind(KernelBank(self.kernels), data, recipe, placement)
        bank.can = bank.can - {"centered_squares", "rows"}
        return bank


@pytest.mark.parametrize(
    ("alignment", "missing"),
    [
        ("greedy", "centered_squares, rows"),
        ("qp", "centered_squares, rows"),
        ("stagewise", "centered_squares, rows"),
        ("frank_wolfe", "centered_squares, rows"),
        ("independent", "centered_squares"),
        ("uniform", "centered_squares"),
    ],
)
def test_a_bank_that_offers_too_little_for_an_alignment_is_refused(alignment, missing, monkeypatch):
    monkeypatch.setattr(PackedBank, "combine", lambda *a: pytest.fail("it was asked"))
    words = f"^alignment='{alignment}' needs kernels that offer {missing}; these do not"
    for kind in (TwoStageMKLClassifier, AlignedKernel):
        with pytest.raises(TypeError, match=words):
            kind(Poor(KERNELS), alignment=alignment).fit(X, Y)


def cautious_greedy(problem, *, tol, max_iter):
    """A solver for families: greedy selection with half the tolerance."""
    cautious_greedy.seen = problem.precision
    return greedy(problem, tol=0.5 * tol, max_iter=max_iter)


FOR_FAMILIES = Solver(
    "mine", cautious_greedy, frozenset({"best"}), lambda norm, loss: f"is not for {norm!r}.", for_family=True
)
FAMILY = GaussianFamily(0.1, 10.0)


@pytest.mark.parametrize(("tol", "precision"), [(1e-3, "single"), (1e-6, "double")])
def test_a_solver_for_families(tol, precision):
    solver = replace(FOR_FAMILIES, refuses=takes_all)
    model = MKLClassifier(FAMILY, solver=solver, tol=tol).fit(X, Y)
    assert model.gap_ <= 0.5 * tol
    assert cautious_greedy.seen == precision


@pytest.mark.parametrize(
    ("kernels", "solver", "error", "words"),
    [
        (FAMILY, twice_as_exact, ValueError, "solver='twice_as_exact' is for a list of kernels; a family needs"),
        (FAMILY, Solver("mine", twice_as_exact), ValueError, "solver='mine' is for a list of kernels; a family needs"),
        (KERNELS, FOR_FAMILIES, ValueError, "solver='mine' is for a family of kernels"),
        (KERNELS, "greedy", ValueError, "solver='greedy' is for a family of kernels"),
        (FAMILY, FOR_FAMILIES, TypeError, r"solver='mine' is not for LpNorm\(p=1\)\."),
        (
            FAMILY,
            replace(FOR_FAMILIES, needs=frozenset({"best", "lattice"})),
            TypeError,
            "that offer lattice; these do",
        ),
        (FAMILY, "stochastic_mirror", TypeError, "solver='stochastic_mirror' needs norm=2"),
    ],
)
def test_solvers_for_other_kernels_are_refused_before_any_work(kernels, solver, error, words, monkeypatch):
    for place in ("by_list.bind", "by_family.bind_family"):
        monkeypatch.setattr(f"manykernels.estimators.{place}", lambda *a, **k: pytest.fail("kernels were bound"))
    with pytest.raises(error, match=words):
        MKLClassifier(kernels, solver=solver).fit(X, Y)


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


class Soft(Logistic):
    """The logistic loss under another name."""

    name = "soft"


class Hard(Hinge):
    """The hinge loss under the name of another."""

    name = "logistic"


@pytest.mark.parametrize("kind", [MKLClassifier, UFOMKLClassifier])
def test_what_a_loss_offers_is_not_decided_by_its_name(kind, tmp_path):
    assert not hasattr(kind(KERNELS, loss=Hard()), "predict_proba")
    assert not hasattr(kind(KERNELS, loss=Hard()).fit(X, Y), "predict_proba")
    soft, logistic = (kind(KERNELS, loss=loss, tol=1e-4).fit(X, Y) for loss in (Soft(), "logistic"))
    shown = soft.predict_proba(X)
    assert np.abs(shown - logistic.predict_proba(X)).mean() < (1e-3 if kind is MKLClassifier else 0.1)
    soft.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), shown)


def test_probabilities_are_those_of_the_loss_of_the_fit(tmp_path):
    """Whatever has become of the parameter since."""
    model = MKLClassifier(KERNELS, loss=Hard(), probability=True, random_state=0).fit(X, Y)
    plain = MKLClassifier(KERNELS, loss="hinge", probability=True, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), plain.predict_proba(X))
    model.set_params(loss="logistic")
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic(), Squared()], ids=lambda loss: loss.name)
def test_ufo_takes_a_loss_as_an_object(loss):
    one, other = (UFOMKLClassifier(KERNELS, loss=given, random_state=0).fit(X, Y) for given in (loss, loss.name))
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    assert hasattr(one, "predict_proba") == (loss.name == "logistic")
    one.partial_fit(X, Y)


@pytest.mark.parametrize("loss", [Squared(), EpsilonInsensitive(0.3)], ids=lambda loss: loss.name)
def test_a_ufo_regressor_takes_a_loss_as_an_object(loss):
    y, options = np.sin(2 * X[:, 0]), {"epsilon": 0.3, "random_state": 0}
    one, other = (UFOMKLRegressor(KERNELS, loss=given, **options).fit(X, y) for given in (loss, loss.name))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("shifts", [False, True])
def test_a_loss_of_ones_own_in_ufo(shifts):
    """The optimum is that of the batch solver for the same norm, in spite of outliers, and so it is from a stream."""
    y = np.sin(2 * X[:, 0])
    spoiled = y + np.where(np.arange(80) < 4, 50.0, 0.0)
    loss = Huber()
    loss.shifts = shifts
    p = ElasticNorm().power_for(3)
    options = {"loss": loss, "C": 3.0, "fit_intercept": False}
    batch = MKLRegressor(KERNELS, norm=LpNorm(p / (2 - p)), tol=1e-5, **options).fit(X, spoiled)
    model = UFOMKLRegressor(KERNELS, max_iter=400, random_state=0, **options).fit(X, spoiled)
    assert model.dual_objective_ <= batch.objective_ <= model.objective_ * (1 + 1e-5)
    assert model.objective_ == pytest.approx(batch.objective_, rel=0.02)
    with_bias = UFOMKLRegressor(KERNELS, loss=loss, C=10.0, max_iter=100, random_state=0).fit(X, spoiled)
    assert np.abs(with_bias.predict(X)[4:] - y[4:]).mean() < 0.2
    assert with_bias._offset == (pytest.approx(spoiled.mean()) if shifts else 0.0)
    assert with_bias.partial_fit(X, spoiled).n_seen_ == 160
    with pytest.raises(ValueError, match="step='exact' needs a loss of the library, not one of your own"):
        UFOMKLRegressor(KERNELS, loss=loss, step="exact").fit(X, y)


def test_a_joint_loss_may_derive_from_one_of_the_library():
    """It is one of the user's own: its labels are what its descent takes, and it is not compiled in."""

    class Careful(MulticlassHinge):
        def descent(self, y, z):
            value, g = super().descent(y, z)
            return 2 * value, 2 * g

        def values(self, y, z):
            return 2 * super().values(y, z)

        def conjugates(self, y, beta, C):
            return None

    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    model = UFOMKLClassifier(KERNELS, loss=Careful(3), max_iter=300, random_state=0).fit(X, labels)
    plain = UFOMKLClassifier(KERNELS, loss="multiclass_hinge", C=2.0, max_iter=300, random_state=0).fit(X, labels)
    assert model.dual_objective_ <= plain.objective_
    assert plain.dual_objective_ <= model.objective_ <= 1.05 * plain.objective_
    assert np.mean(model.decision_function(X).argmax(axis=1) == labels) > 0.9
    with pytest.raises(TypeError, match="says no label for given scores"):
        model.predict(X)

    class Telling(Careful):
        def labels(self, z):
            return z.argmax(axis=1)

    telling = UFOMKLClassifier(KERNELS, loss=Telling(3), max_iter=300, random_state=0).fit(X, labels)
    assert np.array_equal(telling.predict(X), model.decision_function(X).argmax(axis=1))


@pytest.mark.parametrize(
    ("kind", "loss"),
    [(MKLClassifier, Huber()), (MKLRegressor, Hinge()), (UFOMKLClassifier, Huber()), (UFOMKLRegressor, Hinge())],
)
def test_a_loss_for_other_targets_is_refused(kind, loss):
    with pytest.raises(ValueError, match="loss must be for"):
        kind(KERNELS, loss=loss).fit(X, Y.astype(float))


def test_a_kernel_and_a_norm():
    model = MKLClassifier([Laplacian(), Linear()], norm=Entropy()).fit(X, Y)
    assert model.gap_ <= 1e-3
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize(
    "model",
    [
        MKLRegressor(KERNELS, loss=Huber()),
        MKLRegressor(KERNELS, solver=twice_as_exact, norm=2),
        UFOMKLRegressor(KERNELS, loss=Huber(), random_state=0),
    ],
    ids=["loss", "solver", "loss in UFO"],
)
def test_files_keep_what_predictions_need(model, tmp_path):
    y = np.sin(2 * X[:, 0])
    model.fit(X, y).save(tmp_path / "model")
    opened = load(tmp_path / "model")
    np.testing.assert_array_equal(opened.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="must be one of"):
        opened.fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(KERNELS, loss=Logistic()),
        MKLRegressor(KERNELS, loss=EpsilonInsensitive(0.3)),
        UFOMKLClassifier(KERNELS, loss=Logistic(), random_state=0),
        UFOMKLRegressor(KERNELS, loss=EpsilonInsensitive(0.3), random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_files_keep_losses_and_norms_of_the_library_as_objects(model, tmp_path):
    """With their parameters: what is opened can be fitted again."""
    y = np.sin(2 * X[:, 0]) if isinstance(model, (MKLRegressor, UFOMKLRegressor)) else Y
    model.fit(X, y).save(tmp_path / "model")
    opened = load(tmp_path / "model")
    assert (type(opened.loss), opened.loss.parameters()) == (type(model.loss), model.loss.parameters())
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(opened.predict_proba(X), model.predict_proba(X))
    assert opened.set_params(kernels=KERNELS).fit(X, y).objective_ == model.objective_


def test_a_norm_that_derives_from_one_of_the_library_is_not_taken_for_it(tmp_path):
    class Mine(LpNorm):
        def __repr__(self):
            return "Mine()"

    model = MKLClassifier(KERNELS, norm=Mine(2)).fit(X, Y)
    model.save(tmp_path / "model")
    opened = load(tmp_path / "model")
    assert opened.norm == "Mine()"
    np.testing.assert_array_equal(opened.decision_function(X), model.decision_function(X))


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
