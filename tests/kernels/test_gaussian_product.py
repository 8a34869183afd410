"""Products of Gaussian kernels and parametric kernels: values, derivatives, and the estimators on them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import SelectFromModel

from manykernels import MKLClassifier, MKLRegressor, load
from manykernels.banks import Recipe, bind
from manykernels.kernels import Gaussian, KernelBank, Linear, ParametricKernel, PowerOfSum
from manykernels.losses import Hinge
from manykernels.norms import LpNorm, LpPenalty
from manykernels.problem import Problem

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 5)) + 3.0
KERNELS = [Gaussian(0.8, columns=[0]), Gaussian(2.0, columns=[1, 2]), Gaussian(1.0, columns=[2]), Gaussian(1.5)]


def naive(X, Z, weights):
    """One kernel after the other, from the definition."""
    out = np.ones((len(X), len(Z)))
    for d, kernel in zip(weights, KERNELS, strict=True):
        columns = range(X.shape[1]) if kernel.columns is None else kernel.columns
        D = sum((X[:, j][:, None] - Z[:, j]) ** 2 for j in columns) / (2 * kernel.width**2)
        out *= np.exp(-d * D)
    return out


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_values_and_derivatives(form):
    bank = bind(KernelBank(KERNELS), form(X), Recipe(combination="product"))
    d, beta = np.array([0.4, 0.0, 1.3, 0.2]), RNG.standard_normal((2, 40))
    beta[1, :30] = 0.0
    np.testing.assert_allclose(bank.combine(d).array, naive(X, X, d), atol=1e-12)
    out = bank.workspace()
    assert bank.combine(d, out) is out
    forms, step = bank.derivative_forms(d, beta), 1e-6
    for k in range(4):
        e = step * np.eye(4)[k]
        slope = (naive(X, X, d + e) - naive(X, X, d - e)) / (2 * step)
        expected = np.einsum("ti,ij,tj->t", beta, slope, beta)
        np.testing.assert_allclose(forms[:, k], expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(
            np.einsum("ti,ij,tj->t", beta, bank.parametric.derivative(form(X), form(X), d, k), beta),
            forms[:, k],
            atol=1e-9,
        )


def test_the_gradient_of_the_objective_by_differences():
    """What the solver steps along, with exact inner solves."""
    y = np.sign(X[:, :1].T - 3.0)
    bank = bind(KernelBank(KERNELS), X, Recipe(combination="product"))
    problem = Problem(bank, Hinge(), LpPenalty(1.0), y, np.full((1, 40), 2.0))
    d, step = np.array([0.4, 0.1, 1.3, 0.2]), 1e-4

    def value(d):
        return problem.solve(bank.combine(d), tol=1e-13).objective

    machine = problem.solve(bank.combine(d), tol=1e-13)
    gradient = -0.5 * bank.derivative_forms(d, machine.beta)[0]
    for k in range(4):
        e = step * np.eye(4)[k]
        assert gradient[k] == pytest.approx((value(d + e) - value(d - e)) / (2 * step), rel=1e-6, abs=1e-6)


def three_of_twenty(n=200, seed=1):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 20))
    return Z, np.where(Z[:, 2] * Z[:, 7] + np.sin(2 * Z[:, 11]) > 0, "yes", "no")


@pytest.mark.parametrize(("strength", "C"), [(1.0, 1.0), (10.0, 1.0), (30.0, 1.0), (1.0, 10.0)])
def test_the_features_that_matter_are_found(strength, C):
    Z, y = three_of_twenty()
    model = MKLClassifier(combination="product", norm=LpPenalty(1.0, strength), C=C).fit(Z, y)
    assert model.converged_
    assert set(np.argsort(-model.feature_importances_)[:3]) == {2, 7, 11}
    assert model.feature_importances_[[2, 7, 11]].sum() > 0.8
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.weights_.shape == (20,)
    assert np.isnan(model.gap_)
    fresh, answers = three_of_twenty(seed=2)
    assert model.score(fresh, answers) > 0.8
    chosen = SelectFromModel(model, prefit=True, max_features=3).transform(Z)
    np.testing.assert_array_equal(chosen, Z[:, [2, 7, 11]])


def test_constrained_weights():
    Z, y = three_of_twenty(100)
    model = MKLClassifier(combination="product", norm=LpNorm(1.0), C=1.0).fit(Z, y)
    assert model.converged_
    assert model.weights_.sum() <= 1 + 1e-9


def test_names_groups_and_data_frames():
    Z, y = three_of_twenty(80)
    table = pd.DataFrame(Z, columns=[f"gene {j}" for j in range(20)])
    model = MKLClassifier(combination="product", norm=LpPenalty(1.0)).fit(table, y)
    assert "gene 7" in model.kernel_names_[7]
    views = [Gaussian(3.0, columns=[f"gene {j}" for j in part]) for part in (range(10), range(10, 20))]
    grouped = MKLClassifier(views, combination="product", norm=LpPenalty(2.0)).fit(table, y)
    assert grouped.weights_.shape == (2,)
    np.testing.assert_allclose(grouped.kernel(table[:5]), grouped.kernel(table)[:5, :5])


def test_predictions_are_those_of_the_learned_kernel(tmp_path):
    Z, y = three_of_twenty(90)
    for settings in ({}, {"normalize": "trace"}, {"loss": "logistic"}):
        model = MKLClassifier(combination="product", norm=LpPenalty(1.5), C=5.0, **settings).fit(Z, y)
        K = model.kernel(Z, Z[model.support_])
        np.testing.assert_allclose(K @ model.dual_coef_[0] + model.intercept_, model.decision_function(Z), atol=1e-9)
        model.save(tmp_path / "product.mkl")
        again = load(tmp_path / "product.mkl")
        np.testing.assert_allclose(again.decision_function(Z), model.decision_function(Z))
        assert again.norm == LpPenalty(1.5)


def test_regression_and_several_classes():
    rng = np.random.default_rng(3)
    Z = rng.uniform(-2, 2, (80, 4))
    model = MKLRegressor(combination="product", norm=LpPenalty(1.0), C=100.0).fit(Z, np.sin(3 * Z[:, 1]))
    assert model.score(Z, np.sin(3 * Z[:, 1])) > 0.95
    assert np.argmax(model.feature_importances_) == 1
    labels = np.digitize(Z[:, 2], [-0.7, 0.7])
    classifier = MKLClassifier(combination="product", norm=LpPenalty(1.0), C=10.0).fit(Z, labels)
    assert classifier.score(Z, labels) > 0.9
    assert np.argmax(classifier.feature_importances_) == 2


class Rational(ParametricKernel):
    """1 / (1 + d_0 |x - z|^2), a kernel of a user's own."""

    def bind(self, X):
        return ["width"]

    def compute(self, X, Z, weights):
        return 1 / (1 + weights[0] * ((X[:, None] - Z[None]) ** 2).sum(axis=2))

    def derivative(self, X, Z, weights, k):
        distances = ((X[:, None] - Z[None]) ** 2).sum(axis=2)
        return -distances / (1 + weights[0] * distances) ** 2


def test_a_parametrization_of_ones_own():
    Z, y = three_of_twenty(60)
    model = MKLClassifier(combination=Rational(), norm=LpPenalty(2.0, 0.1), C=10.0, random_state=0, solver="spg")
    model.fit(Z, y)
    assert model.converged_
    np.testing.assert_allclose(model.kernel(Z), Rational().compute(Z, Z, model.weights_))
    assert model.kernel_names_ == ["width"]


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"kernels": [Linear()]}, TypeError, "needs Gaussian kernels"),
        ({"center": True}, ValueError, "center=True"),
        ({"center": True, "combination": Rational()}, ValueError, "center=True"),
        ({"solver": "newton"}, TypeError, "needs kernels that offer"),
        ({"solver": "group_lasso"}, TypeError, "needs kernels that offer"),
        ({"combination": "sums"}, ValueError, "combination must be"),
    ],
)
def test_what_a_product_cannot_do_is_said(settings, error, words):
    Z, y = three_of_twenty(40)
    with pytest.raises(error, match=words):
        MKLClassifier(**{"combination": "product", **settings}).fit(Z, y)


def test_out_of_iterations_is_said_without_a_gap():
    Z, y = three_of_twenty(60)
    with pytest.warns(match="projected gradient above tol"):
        MKLClassifier(combination="product", norm=LpPenalty(1.0), C=100.0, tol=1e-9, max_iter=3).fit(Z, y)


def test_a_power_of_a_sum_with_named_columns():
    """Names, and a function of the table, select the same columns as positions do; the kernel itself is left alone."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((60, 4)), columns=list("abcd"))
    target = table["a"] * table["b"]
    named = [Linear(columns="a"), Linear(columns=["b"]), Gaussian(1.0, columns=lambda t: [n for n in t if n > "b"])]
    placed = [Linear(columns=[0]), Linear(columns=[1]), Gaussian(1.0, columns=[2, 3])]
    kernel = PowerOfSum(named, degree=2)
    model = MKLRegressor(combination=kernel, norm=2.0, C=100.0).fit(table, target)
    other = MKLRegressor(combination=PowerOfSum(placed, degree=2), norm=2.0, C=100.0).fit(table.to_numpy(), target)
    np.testing.assert_array_equal(model.weights_, other.weights_)
    np.testing.assert_array_equal(model.predict(table), other.predict(table.to_numpy()))
    np.testing.assert_array_equal(model.feature_importances_, other.feature_importances_)
    assert model.kernel_names_[:2] == ["Linear on a", "Linear on b"]
    assert kernel.kernels[0].columns == "a"
    again = model.fit(table[["b", "a", "d", "c"]], target)
    np.testing.assert_allclose(again.weights_, other.weights_, rtol=1e-6)
