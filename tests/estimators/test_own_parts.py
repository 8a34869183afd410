"""A kernel, a loss, a norm and a solver of a user's own, handed to the estimators."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manykernels import AlignedKernel, MKLClassifier, MKLRegressor, TwoStageMKLClassifier, load
from manykernels.banks import bind
from manykernels.banks.packed import PackedBank
from manykernels.core.solver import Solver, takes_all
from manykernels.kernels import Gaussian, GaussianFamily, Kernel, KernelBank, Linear
from manykernels.losses import Hinge, Logistic, Squared
from manykernels.norms import LpPenalty, Penalty
from manykernels.outer.greedy import greedy
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
    for place in ("base.bind", "by_family.bind_family"):
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
