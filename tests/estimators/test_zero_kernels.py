"""Kernels that are zero on the training data have weight 0, whatever the norm, the solver and the bank."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from manykernels import MKLClassifier, MKLRegressor, TwoStageMKLClassifier, UFOMKLClassifier, load, mkl_path
from manykernels.kernels import Gaussian, GaussianLadder, KernelBank, Linear, NystroemFeatures, Polynomial
from manykernels.norms import ElasticNorm, LpNorm, LpPenalty, MixedNorm, Penalty

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.standard_normal((50, 3)), np.zeros(50), np.full(50, 2.0)])
NEW = RNG.standard_normal((9, 5))  # where those kernels are not zero
BINARY = np.where(X[:, 0] + X[:, 1] ** 2 > 0.8, 1, -1)
CLASSES = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
# Kernels 1 and 4 are zero; where kernels are centered, so is 5, which is constant.
KERNELS = [
    Gaussian(0.5, columns=[0, 1, 2], group="a"),
    Linear(columns=[3], group="b"),
    Gaussian(2.0, columns=[0, 1], group="a"),
    Linear(columns=[2], group="c"),
    Polynomial(2, coef0=0.0, columns=[3], group="a"),
    Linear(columns=[4], group="c"),
]
ZERO, CONSTANT = [1, 4], [1, 4, 5]
LP_SOLVERS = ("auto", "newton", "reduced_newton", "group_lasso", "spg", "pgd", "silp")
COMBINATIONS = [
    *((p, solver) for p in (1, 1.1, 2) for solver in LP_SOLVERS),
    *((1, solver) for solver in ("mirror", "simple", "level", "hessian")),
    (2, "smo"),
    *((np.inf, solver) for solver in ("auto", "group_lasso", "spg", "pgd", "silp", "smo")),
    *((MixedNorm(q), solver) for q in (0.5, 1, 2) for solver in ("auto", "newton", "group_lasso")),
    *((MixedNorm(q), "mirror") for q in (1, 2)),
    (MixedNorm(np.inf), "group_lasso"),
    *((LpPenalty(p, 1.0), solver) for p in (1, 2) for solver in ("auto", "newton", "group_lasso", "spg", "pgd")),
    *((ElasticNorm(0.1, p), solver) for p in (None, 1.5) for solver in ("auto", "group_lasso")),
]
BANKS = {
    "plain": {},
    "centered": {"center": True},
    "cosine": {"normalize": "cosine"},
    "as they are": {"normalize": None},
    "nystroem": {"approximation": NystroemFeatures(20)},
    "nystroem, centered": {"approximation": NystroemFeatures(20), "center": True},
}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # they say what is tested
        yield


def zeros(options):
    return CONSTANT if options.get("center") else ZERO


def check(model, places):
    weights = np.atleast_2d(model.weights_)
    assert np.all(weights[:, places] == 0.0)
    assert not set(places) & set(model.active_)
    groups = np.array(list(model.kernel_groups_))
    sums = np.array([[own[groups == name].sum() for name in model.group_names_] for own in weights])
    np.testing.assert_allclose(np.atleast_2d(model.group_weights_), sums)


@pytest.mark.parametrize(("norm", "solver"), COMBINATIONS, ids=str)
def test_norms_and_solvers(norm, solver):
    model = MKLClassifier(KERNELS, norm=norm, solver=solver).fit(X, BINARY)
    check(model, ZERO)
    assert model.converged_
    assert model.gap_ <= 1e-3


@pytest.mark.parametrize("norm", [1.1, 2, np.inf, MixedNorm(2), LpPenalty(2, 1.0)], ids=str)
@pytest.mark.parametrize("bank", BANKS)
def test_banks(bank, norm):
    for solver in ("auto", "spg"):
        if isinstance(norm, MixedNorm) and solver == "spg":
            continue
        check(MKLClassifier(KERNELS, norm=norm, solver=solver, **BANKS[bank]).fit(X, BINARY), zeros(BANKS[bank]))


def test_sparse_rows_and_rows_on_demand():
    check(MKLClassifier(KERNELS, norm=np.inf).fit(sp.csr_matrix(X), BINARY), ZERO)
    rng = np.random.default_rng(1)
    many = np.column_stack([rng.standard_normal((2200, 4)), np.zeros(2200)])
    kernels = [Gaussian(1.0, columns=[0, 1]), Gaussian(2.0, columns=[2, 3]), Polynomial(2, coef0=0.0, columns=[4])]
    check(MKLClassifier(kernels, norm=np.inf, memory_budget=30e6).fit(many, many[:, 0] > 0), [2])


@pytest.mark.parametrize("center", [False, True])
def test_ladders_beside_kernels(center):
    """A ladder on a constant column is a constant kernel, and zero when it is centered."""
    bank = KernelBank([*KERNELS, GaussianLadder(columns=[4], low=0.5, high=2.0, count=3)])
    model = MKLClassifier(bank, norm=np.inf, center=center).fit(X, BINARY)
    check(model, [*CONSTANT, 6, 7, 8] if center else ZERO)


@pytest.mark.parametrize("shared", [True, False])
def test_several_classes(shared):
    check(MKLClassifier(KERNELS, norm=np.inf, shared_weights=shared).fit(X, CLASSES), ZERO)


def test_paths():
    for point in mkl_path(KERNELS, X, BINARY, norms=(2, np.inf), Cs=(0.1, 1.0)):
        check(point.model, ZERO)


@pytest.mark.parametrize("alignment", ["greedy", "qp", "independent", "uniform", "stagewise", "frank_wolfe"])
def test_two_stages(alignment):
    check(TwoStageMKLClassifier(KERNELS, alignment=alignment, random_state=0).fit(X, BINARY), ZERO)


@pytest.mark.parametrize(
    "options", [{}, {"step": "gradient"}, {"average": True}, {"norm": 3.0}, {"features": "kernel"}]
)
def test_one_sample_at_a_time(options):
    check(UFOMKLClassifier(KERNELS, random_state=0, **options).fit(X, BINARY), ZERO)


def test_the_predictor_does_not_see_them():
    """New rows on which those kernels are not zero are predicted as by a model without them."""
    rest = [kernel for k, kernel in enumerate(KERNELS) if k not in ZERO]
    for norm in (2, np.inf, LpPenalty(2, 1.0)):
        with_them = MKLRegressor(KERNELS, norm=norm, tol=1e-7).fit(X, X[:, 0])
        without = MKLRegressor(rest, norm=norm, tol=1e-7).fit(X, X[:, 0])
        np.testing.assert_allclose(with_them.predict(NEW), without.predict(NEW), rtol=1e-3, atol=1e-4)
        assert with_them.objective_ == pytest.approx(without.objective_, rel=1e-6)


def naive_kernels():
    """The kernels of KERNELS on X, of mean diagonal 1."""

    def gaussian(V, width):
        return np.exp(-((V[:, None] - V[None]) ** 2).sum(axis=2) / (2 * width**2))

    def linear(V):
        return V @ V.T

    raw = [
        gaussian(X[:, :3], 0.5),
        linear(X[:, [3]]),
        gaussian(X[:, :2], 2.0),
        linear(X[:, [2]]),
        linear(X[:, [3]]) ** 2,
        linear(X[:, [4]]),
    ]
    return np.array([K / (np.trace(K) / 50 or 1.0) for K in raw])


@pytest.mark.parametrize(("solver", "norm"), [("spg", LpPenalty(2, 1.0)), ("spg", 2), ("group_lasso", np.inf)], ids=str)
def test_the_objective_is_that_of_the_weights(solver, norm):
    """What is reported is what the public attributes give, penalty included."""
    model = MKLClassifier(KERNELS, norm=norm, solver=solver).fit(X, BINARY)
    beta = np.zeros(50)
    beta[model.support_] = model.dual_coef_[0]
    stack = naive_kernels()
    forms = np.einsum("i,kij,j->k", beta, stack, beta).clip(0.0)  # of zero kernels, up to rounding
    f = np.tensordot(model.weights_, stack, 1) @ beta + model.intercept_
    losses = np.maximum(0.0, 1.0 - BINARY * f).sum()
    parts = model.weights_ * np.sqrt(forms)
    if isinstance(norm, LpPenalty):
        regularizer = 0.5 * model.weights_ @ forms + 0.5 * np.sum(model.weights_**2)
        assert LpPenalty(2, 1.0).value(model.weights_) == pytest.approx(0.5 * np.sum(model.weights_**2))
    else:  # the norm of the components belongs to the weights: 2p / (p + 1)
        exponent = 2.0 if np.isinf(norm) else 2 * norm / (norm + 1)
        regularizer = 0.5 * np.sum(parts**exponent) ** (2 / exponent)
    assert model.objective_ == pytest.approx(regularizer + losses, rel=1e-5)


class Rewarding(Penalty):
    """It is lowest at positive weights, also of kernels that do nothing."""

    def value(self, weights):
        return float(np.sum(weights * np.log(np.maximum(weights, 1e-300))))

    def gradient(self, weights):
        return 1 + np.log(np.maximum(weights, 1e-300))

    def conjugate(self, slopes):
        return float(np.sum(np.exp(slopes - 1)))


def test_a_penalty_that_pays_for_weights_keeps_its_optimum():
    model = MKLClassifier(KERNELS, norm=Rewarding(), solver="spg").fit(X, BINARY)
    np.testing.assert_allclose(model.weights_[ZERO], np.exp(-1), atol=0.05)
    assert model.gap_ <= 1e-3


@pytest.mark.parametrize("norm", [1, 2, np.inf, LpNorm(1.5), MixedNorm(2)], ids=str)
def test_approximated_zero_kernels_can_be_saved(norm, tmp_path):
    """A kernel that is zero has no landmark: it is saved, opened and predicts as before."""
    model = MKLClassifier(KERNELS, norm=norm, approximation=NystroemFeatures(0.01), random_state=0).fit(X, BINARY)
    model.save(tmp_path / "model.mkl")
    again = load(tmp_path / "model.mkl")
    np.testing.assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))
