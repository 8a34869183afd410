"""``converged_`` only where ``gap_ <= tol``, whatever the numbers are."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from manykernels import MKLClassifier, MKLRegressor, UFOMKLClassifier
from manykernels.kernels import Gaussian, GaussianFamily, Linear, Polynomial, ProductKernels

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sign(X[:, 0] * X[:, 1] + 0.1)


def test_costs_beyond_the_digits_of_a_double():
    """With a weight of 1e22 beside ones, no kernel value is known well enough to certify a margin."""
    weight = np.ones(60)
    weight[:5] = 1e22
    model = MKLClassifier([Gaussian(1.0), Linear()], tol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y, sample_weight=weight)
    assert not model.converged_
    assert model.gap_ > model.tol


def shifted(seed, n=40):
    """Return a linear target on columns far from 0, whose polynomials have huge values that nearly cancel."""
    table = 2000 + 10 * np.random.default_rng(seed).normal(size=(n, 2))
    return table, (table[:, 0] - 2000) / 10


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [1e3, 1e4])
@pytest.mark.parametrize("solver", ["auto", "newton", "group_lasso"])
@pytest.mark.parametrize("kernels", [[Polynomial(2)], [Linear(), Polynomial(2), Polynomial(3)]], ids=["one", "three"])
def test_kernels_that_cancel_to_the_last_digit_are_fitted(kernels, solver, C, seed):
    table, y = shifted(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MKLRegressor(kernels, C=C, normalize=None, solver=solver).fit(table, y)
    assert np.isfinite([model.objective_, model.dual_objective_, model.gap_]).all()
    assert model.converged_ == (model.gap_ <= model.tol)
    assert model.score(table, y) > 0.9999


@pytest.mark.parametrize("max_iter", [1, 3, 60])
@pytest.mark.parametrize(
    ("family", "norm", "solver"),
    [
        (GaussianFamily(0.1, 10.0), 2.0, "stochastic_mirror"),
        (ProductKernels([Linear(columns=[j]) for j in range(3)], degree=2), 2.0, "stochastic_mirror"),
        (GaussianFamily(0.1, 10.0), 1.0, "greedy"),
    ],
)
def test_families_converge_by_their_gap(family, norm, solver, max_iter):
    model = MKLClassifier(family, norm=norm, solver=solver, max_iter=max_iter, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y)
    assert model.converged_ == (model.gap_ <= model.tol)
    told = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert bool(told) == (not model.converged_)
    assert all(f"{model.gap_:.2e}" in line for line in told)


@pytest.mark.parametrize("tol", [0.0, 1e-6, 0.5])
def test_ufo_converges_by_its_gap(tol):
    model = UFOMKLClassifier([Gaussian(1.0), Linear()], tol=tol, max_iter=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y)
    assert model.converged_ == (model.gap_ <= tol)
    assert not hasattr(UFOMKLClassifier([Linear()]), "converged_")


@pytest.mark.parametrize("shared", [True, False])
def test_several_classes_converge_by_the_gap_of_all(shared):
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MKLClassifier([Gaussian(1.0), Linear()], shared_weights=shared, max_iter=2, tol=1e-7).fit(X, y)
    assert model.converged_ == (model.gap_ <= model.tol)
