"""Kernels of data of any scale and place, against distances by differences in ratios."""

import numpy as np
import pytest
import scipy.sparse as sp

from manykernels import MKLClassifier, MKLRegressor
from manykernels.compute.pairwise import scaled_distances, squared_distances
from manykernels.kernels import Dirichlet, Gaussian, GaussianFamily, GaussianLadder, KernelBank, Linear
from tests.binding import bind_with

FORMS = [np.asarray, sp.csr_matrix]
DEVICES = ["cpu", "torch:cpu"]


def naive_gaussian(X, Z, width):
    """Return the kernel by differences, divided by the width before they are squared."""
    with np.errstate(over="ignore", under="ignore"):
        ratios = np.array([[np.minimum(np.abs(x - z) / width, 1e100) for z in Z] for x in X])
        return np.exp(-0.5 * (ratios**2).sum(axis=2))


def bound(kernels, X, device="cpu", **options):
    if device != "cpu":
        pytest.importorskip("torch")
    return bind_with(KernelBank(kernels), X, device=device, **options)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-27, 1.0, 1e30, 1e160, 1e300])
def test_distances_in_a_unit(scale, d, form):
    rng = np.random.default_rng(d)
    X, Z = rng.normal(size=(9, d)), rng.normal(size=(5, d))
    D, unit = scaled_distances(form(X * scale), form(Z * scale))
    expected = ((X[:, None] - Z[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(np.sqrt(D) * (unit / scale), np.sqrt(expected), rtol=1e-12)
    assert np.frexp(unit)[0] == 0.5  # a power of two: nothing is rounded by it


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("d", [2, 4, 20, 50])
@pytest.mark.parametrize("place", [0.0, 1.6e9, -3e12])
def test_distances_are_exact_to_the_rounding_of_the_data(place, d, form):
    rng = np.random.default_rng(0)
    X = place + 10 * rng.normal(size=(30, d)) + 1e5 * rng.integers(0, 2, 30)[:, None]  # two clusters, far apart
    X = np.vstack([X, X[:5]])
    D = squared_distances(form(X), form(X))
    expected = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(D.diagonal(), 0.0)
    np.testing.assert_array_equal(D[30:, :5].diagonal(), 0.0)
    np.testing.assert_allclose(D, D.T, rtol=1e-13)
    rounding = np.spacing(np.abs(X).max()) * np.sqrt(d)
    np.testing.assert_allclose(D, expected, rtol=1e-12, atol=1e-2 * rounding * np.sqrt(expected.max()))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("d", [1, 2, 12])
@pytest.mark.parametrize("scale", [1e-160, 1e-27, 1.0, 1e160])
def test_gaussian_banks_of_any_scale(scale, d, precision, device):
    X = np.random.default_rng(1).normal(size=(25, d)) * scale
    widths = [0.5 * scale, 3.0 * scale, 1e-12 * scale, 1e12 * scale]
    bank = bound([Gaussian(w) for w in widths], X, device, precision=precision, normalize=None)
    for k, width in enumerate(widths):
        K = bank.combine(np.eye(4)[k]).array
        np.testing.assert_allclose(K, naive_gaussian(X, X, width), atol=2e-7 if precision == "single" else 1e-12)
        np.testing.assert_array_equal(K.diagonal(), 1.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("d", [4, 15])
@pytest.mark.parametrize("spread", [5e6, 1e8, 1e12])
def test_a_sample_is_at_no_distance_from_itself(spread, d, form, device):
    X = spread * np.random.default_rng(2).normal(size=(45, d))
    K = bound([Gaussian(1.0)], form(X), device, precision="double", normalize=None).combine(np.ones(1)).array
    np.testing.assert_allclose(K, naive_gaussian(X, X, 1.0), atol=1e-12)


@pytest.mark.parametrize("width", [1e-170, 5e-324, 1e160, 1.7e308])
def test_widths_at_the_end_of_the_range(width):
    X = np.random.default_rng(3).normal(size=(20, 3))
    expected = np.eye(20) if width < 1 else np.ones((20, 20))
    np.testing.assert_array_equal(Gaussian(width).compute(X, X), expected)
    np.testing.assert_array_equal(Gaussian(width).compute(X[:, :1], X[:, :1]), expected)
    y = np.sign(X[:, 0])
    model = MKLClassifier([Gaussian(width), Linear()]).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.converged_


@pytest.mark.parametrize("form", FORMS)
def test_time_stamps_in_any_form(form):
    rng = np.random.default_rng(4)
    X = 1.6e9 + 10 * rng.normal(size=(60, 3))
    y = np.sin((X[:, 0] - 1.6e9) / 10)
    model = MKLRegressor([Gaussian(10.0), Gaussian(30.0)], C=100.0).fit(form(X), y)
    near = MKLRegressor([Gaussian(10.0), Gaussian(30.0)], C=100.0).fit(X - 1.6e9, y)
    np.testing.assert_allclose(model.predict(form(X)), near.predict(X - 1.6e9), atol=1e-4)


def same_at_scale(make, scale):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 2)), np.sign(rng.normal(size=40))
    models = [MKLClassifier(make(s), C=1.0, random_state=0, tol=1e-2).fit(X * s, y) for s in (1.0, scale)]
    near, far = (model.decision_function(X * s) for model, s in zip(models, (1.0, scale), strict=True))
    np.testing.assert_allclose(near, far, atol=0.02 * np.abs(near).max())


@pytest.mark.parametrize("scale", [1e-170, 1e-27, 1e160])
def test_ladders_of_any_scale(scale):
    same_at_scale(lambda s: [GaussianLadder(low=0.3 * s, high=10 * s, count=200)], scale)


@pytest.mark.parametrize("per_feature", [False, True])
@pytest.mark.parametrize("scale", [1e-57, 1e-27, 1e30])
def test_families_of_any_scale(scale, per_feature):
    same_at_scale(lambda s: GaussianFamily(0.3 * s, 10 * s, per_feature=per_feature), scale)


@pytest.mark.parametrize("span", [(1e-170, 1.0), (1.0, 1e160)])
def test_a_family_says_which_widths_it_cannot_search(span):
    with pytest.raises(ValueError, match="low and high must be between"):
        GaussianFamily(*span)


def test_frequencies_of_any_scale():
    X = np.random.default_rng(6).normal(size=(10, 1))
    expected = Dirichlet(2.0).compute(X, X)
    np.testing.assert_allclose(Dirichlet(2e-200).compute(X * 1e200, X * 1e200), expected, atol=1e-12)


def test_waves_far_from_the_origin():
    near = np.random.default_rng(7).normal(size=(30, 1))
    far = near + 2.0**40
    near = far - 2.0**40
    kernel = Dirichlet(3.0)
    factor = kernel.factor(far)
    np.testing.assert_allclose(factor @ factor.T, kernel.compute(near, near), atol=1e-12)
