"""OneClassMKL against CVXPY, scikit-learn's OneClassSVM and the definitions; what it refuses, and what it finds."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM

from manykernels import MKLClassifier, OneClassMKL
from manykernels.compute.gpu import has_device
from manykernels.kernels import (
    FourierFeatures,
    Gaussian,
    GaussianFamily,
    KernelBank,
    Linear,
    NystroemFeatures,
    Precomputed,
    standard_bank,
)
from manykernels.losses import OneClass
from manykernels.norms import LpPenalty, MixedNorm, Penalty
from tests.reference.oracle import one_class_certificate, random_problem, solve_one_class

NORMS = [1.0, 4 / 3, 2.0, np.inf]
NUS = [0.05, 0.3, 0.9]
EXACT = {"normalize": None, "tol": 4e-7, "max_iter": 100_000}


def some_data(n=60, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def grams_of(X, widths=(0.5, 1.0, 2.0)):
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    single = (X[:, :1] - X[:, 0]) ** 2
    return [np.exp(-squares / (2 * w**2)) for w in widths] + [np.exp(-single / 2), 0.5 * X @ X.T]


def coefficients(model, n):
    a = np.zeros(n)
    a[model.support_] = model.dual_coef_[0]
    return a


def fit_grams(grams, sample_weight=None, **parameters):
    numbers = np.arange(len(grams[0]))[:, None]
    return OneClassMKL(KernelBank.from_arrays(grams), **EXACT | parameters).fit(numbers, sample_weight=sample_weight)


# -- the optimum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_objective_and_certificate(p, nu, weighted):
    grams = grams_of(some_data())
    weight = np.random.default_rng(1).uniform(0.2, 3.0, 60) if weighted else np.ones(60)
    model = fit_grams(grams, weight, norm=p, nu=nu)
    assert model.objective_ == pytest.approx(solve_one_class(grams, weight, nu, p), rel=1e-6)
    a = coefficients(model, 60)
    primal, dual, gap = one_class_certificate(grams, weight, nu, p, model.weights_, a, model.offset_)
    assert model.converged_
    assert model.objective_ == pytest.approx(primal, rel=1e-9)
    assert model.dual_objective_ == pytest.approx(dual, rel=1e-9)
    assert model.gap_ == pytest.approx(gap, abs=1e-9)


def test_random_kernels_that_tell_little():
    """Gram matrices that are no Gaussians; the origin can be separated with few of their directions."""
    grams, _ = random_problem(40, 6, seed=3, task="regression")
    grams = [K + 0.3 * np.trace(K) / 40 for K in grams]
    for p in NORMS:
        model = fit_grams(grams, norm=p, nu=0.4)
        assert model.objective_ == pytest.approx(solve_one_class(grams, np.ones(40), 0.4, p), rel=1e-6)


@pytest.mark.parametrize("nu", [0.003, 0.05, 0.3, 0.9])
def test_one_kernel_is_the_one_class_machine_of_scikit_learn(nu):
    X, new = some_data(150), 2 * some_data(50, seed=1)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 150)
    model = OneClassMKL([Gaussian(1.3)], nu=nu, normalize=None, tol=1e-8).fit(X, sample_weight=weight)
    theirs = OneClassSVM(nu=nu, gamma=1 / (2 * 1.3**2), tol=1e-10).fit(X, sample_weight=weight)
    a = np.zeros(150)
    a[theirs.support_] = theirs.dual_coef_[0]
    np.testing.assert_allclose(coefficients(model, 150), a, atol=1e-6)
    assert model.offset_ == pytest.approx(float(theirs.offset_[0]), abs=1e-6)
    np.testing.assert_allclose(model.decision_function(new), theirs.decision_function(new), atol=1e-6)
    np.testing.assert_allclose(model.score_samples(new), theirs.score_samples(new), atol=1e-6)


@pytest.mark.parametrize("p", NORMS)
def test_nu_of_1_has_all_coefficients_at_their_bounds(p):
    grams, weight = grams_of(some_data()), np.linspace(0.5, 2.0, 60)
    model = fit_grams(grams, weight, norm=p, nu=1.0)
    np.testing.assert_array_equal(coefficients(model, 60), weight)
    q = np.array([weight @ K @ weight for K in grams])
    best = q.max() if p == 1 else q.sum() if np.isinf(p) else np.sum(q ** (p / (p - 1))) ** ((p - 1) / p)
    assert model.objective_ == pytest.approx(-0.5 * best, rel=1e-6)


@pytest.mark.parametrize("nu", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_the_share_of_outliers_and_of_support_vectors(p, nu):
    """Also where wide kernels, whose values are all near 1, leave the coefficients open within the gap."""
    X = some_data(200)
    model = OneClassMKL(norm=p, nu=nu).fit(X)
    assert np.mean(model.decision_function(X) < -1e-4 * np.ptp(model.score_samples(X))) <= nu + 1e-9
    assert model.support_.size >= nu * 200
    assert model.support_.size <= (nu + 0.2) * 200


def test_groups_of_kernels():
    X = some_data()
    kernels = [Gaussian(w, columns=[j], group=str(j)) for j in range(3) for w in (0.5, 1.0)]
    grams = [np.exp(-((X[:, j][:, None] - X[:, j]) ** 2) / (2 * w**2)) for j in range(3) for w in (0.5, 1.0)]
    model = OneClassMKL(kernels, norm=MixedNorm(1), nu=0.3, **EXACT).fit(X)
    # q = 1: one machine on the sum of the groups, each with its own L1-MKL.
    a = coefficients(model, 60)
    q = np.array([a @ K @ a for K in grams]).reshape(3, 2)
    assert model.dual_objective_ == pytest.approx(-0.5 * q.max(axis=1).sum(), rel=1e-9)
    assert model.converged_


# -- hostile settings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_scales_of_kernels_and_of_weights(p, scale):
    grams = [scale * K for K in grams_of(some_data(40))]
    weight = np.full(40, 1 / scale)
    for given, factor in ((np.ones(40), scale), (weight, 1 / scale)):
        model = fit_grams(grams, given, norm=p, nu=0.3, tol=1e-6)
        plain = fit_grams(grams_of(some_data(40)), norm=p, nu=0.3, tol=1e-6)
        assert model.converged_
        assert model.objective_ == pytest.approx(factor * plain.objective_, rel=3e-6)


def test_scales_that_differ_within_one_problem():
    grams = [s * K for s, K in zip((1e-6, 1.0, 1e6, 1e-3, 1e3), grams_of(some_data(40)), strict=True)]
    weight = 10.0 ** np.random.default_rng(0).uniform(-6, 6, 40)
    for p in (1.0, 2.0):
        model = fit_grams(grams, weight, norm=p, nu=0.3, tol=1e-6)
        a = coefficients(model, 40)
        *_, gap = one_class_certificate(grams, weight, 0.3, p, model.weights_, a, model.offset_)
        assert model.converged_
        assert gap <= 1e-6


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("nu", [1e-6, 0.5, 1.0])
def test_few_samples(n, nu):
    model = OneClassMKL([Gaussian(1.0), Gaussian(3.0)], nu=nu, tol=1e-6).fit(some_data(n))
    assert model.converged_
    assert model.dual_coef_.sum() == pytest.approx(n * nu, rel=1e-12)


def test_a_weight_is_a_number_of_copies():
    X, weight = some_data(50), np.random.default_rng(3).integers(0, 4, 50)
    new = some_data(20, seed=1)
    weighted = OneClassMKL(nu=0.2, tol=1e-6).fit(X, sample_weight=weight)
    copied = OneClassMKL(nu=0.2, tol=1e-6).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.decision_function(new), copied.decision_function(new), rtol=1e-9)


def test_samples_that_are_all_the_same():
    model = OneClassMKL([Gaussian(1.0)], nu=0.4).fit(np.ones((10, 2)))
    assert model.converged_
    np.testing.assert_array_equal(model.predict([[1.0, 1.0], [5.0, 5.0]]), [1, -1])


@pytest.mark.parametrize("nu", [0.02, 0.5, 1.0])
@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_an_origin_within_the_data(p, nu):
    """No function is better than 0: there is no model that could look like one."""
    X = some_data(100)
    X -= X.mean(axis=0)
    for kernels in ([Linear()], [Linear(columns=[j]) for j in range(3)]):
        with pytest.raises(ValueError, match=r"The origin cannot be separated from the data with nu=.*: raise nu, or"):
            OneClassMKL(kernels, norm=p, nu=nu).fit(X)
    assert OneClassMKL([Linear()], norm=p, nu=nu).fit(X + 5.0).converged_


# -- roads ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"approximation": NystroemFeatures(60)}, {"memory_budget": "1 MB"}, {}], ids=str)
@pytest.mark.parametrize("solver", ["auto", "group_lasso"])
def test_kernels_as_features_and_rows_on_demand(options, solver):
    """As many landmarks as samples are the kernels themselves; where memory is short, rows are computed anew."""
    X = some_data(60 if "approximation" in options else 400)
    kernels = [Gaussian(w, columns=[j]) for j in range(3) for w in (0.5, 1.0)]
    plain = OneClassMKL(kernels, nu=0.2, tol=1e-5).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = OneClassMKL(kernels, nu=0.2, tol=1e-4, solver=solver, random_state=0, **options).fit(X)
    assert model.converged_
    assert model.objective_ == pytest.approx(plain.objective_, rel=2e-4)


@pytest.mark.skipif(not has_device("torch:cpu"), reason="needs torch")
@pytest.mark.parametrize("options", [{}, {"approximation": NystroemFeatures(20)}], ids=str)
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_a_device_gives_the_model_of_the_cpu(norm, options):
    X = some_data(240)
    kernels = [Gaussian(w, columns=[j]) for j in range(3) for w in (0.5, 1.0)]
    plain, there = (
        OneClassMKL(kernels, norm=norm, nu=0.2, tol=1e-4, device=device, random_state=0, **options).fit(X)
        for device in ("cpu", "torch:cpu")
    )
    assert there.converged_
    assert there.objective_ == pytest.approx(plain.objective_, rel=2e-4)
    np.testing.assert_allclose(there.decision_function(X), plain.decision_function(X), atol=0.02 * plain.offset_)


def test_features_fewer_than_samples():
    """Coordinate descent and the interior point on features: the same problem as with the matrices that they make."""
    X = some_data(200)
    kernels = [Gaussian(w, columns=[j]) for j in range(3) for w in (1.0, 2.0)]
    model = OneClassMKL(kernels, nu=0.2, norm=2, approximation=FourierFeatures(10), random_state=0).fit(X)
    assert model.converged_
    a = coefficients(model, 200)
    assert a.sum() == pytest.approx(40.0)
    assert np.all((a >= 0) & (a <= 1))
    assert np.mean(model.predict(X) == -1) == pytest.approx(0.2, abs=0.03)
    assert model.score_samples(X[:5]) @ np.ones(5) == pytest.approx(model.kernel(X[:5], X) @ a @ np.ones(5))


def test_forms_of_data():
    X = some_data()
    expected = OneClassMKL(nu=0.3).fit(X).decision_function(X)
    table = pd.DataFrame(X, columns=list("abc"))
    np.testing.assert_allclose(OneClassMKL(nu=0.3).fit(table).decision_function(table), expected)
    sparse = sp.csr_matrix(X)
    np.testing.assert_allclose(OneClassMKL(nu=0.3).fit(sparse).decision_function(sparse), expected, atol=1e-3)
    model = OneClassMKL([Precomputed(K) for K in grams_of(X)], nu=0.3).fit(np.arange(60)[:, None])
    np.testing.assert_allclose(
        model.decision_function(np.array(grams_of(X))), model.decision_function(np.arange(60)[:, None])
    )


def test_views_that_samples_lack():
    X = some_data()
    X[:10, 0] = np.nan
    kernels = [Gaussian(1.0, columns=[0]), Gaussian(1.0, columns=[1, 2])]
    assert OneClassMKL(kernels, missing="ignore", nu=0.3).fit(X).converged_


def test_standard_kernels_are_gaussian_in_units_of_the_columns():
    X = some_data() * [1.0, 1e3, 1e-3] + 5.0
    model = OneClassMKL(nu=0.3).fit(X)
    assert not any("Polynomial" in name for name in model.kernel_names_)
    same = OneClassMKL(standard_bank(X, degrees=(), standardize=True), nu=0.3).fit(X)
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X))
    assert any("Polynomial" in name for name in MKLClassifier().fit(X, X[:, 0] > 5).kernel_names_)


def test_parts_of_a_score():
    X = some_data()
    model = OneClassMKL(nu=0.3).fit(X)
    np.testing.assert_allclose(model.contributions(X).total(), model.decision_function(X))
    np.testing.assert_allclose(model.score_samples(X), model.decision_function(X) + model.offset_)
    assert not hasattr(model, "report")  # which compares predictions with targets
    np.testing.assert_array_equal(OneClassMKL(nu=0.3).fit_predict(X), model.predict(X))


# -- refusals ---------------------------------------------------------------------------------------------------------


class Entropy(Penalty):
    """A penalty without a conjugate."""

    def value(self, weights):
        return float(np.sum(weights * np.log(np.maximum(weights, 1e-300))))

    def gradient(self, weights):
        return 1 + np.log(np.maximum(weights, 1e-300))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"nu": 0.0}, "nu must be a number above 0 and up to 1"),
        ({"nu": 1.5}, "nu must be a number above 0 and up to 1"),
        ({"norm": LpPenalty(2)}, "needs a norm of the kernels' components"),
        ({"norm": Entropy()}, "needs a norm of the kernels' components"),
        ({"kernels": GaussianFamily(0.1, 10.0)}, "needs a list of kernels, got the family"),
        ({"kernels": "gaussian"}, "kernels must be"),
        ({"solver": "silp"}, "needs coefficients that may all be 0"),
        ({"solver": "level", "norm": 1}, "needs coefficients that may all be 0"),
        ({"solver": "smo"}, "needs a loss of straight pieces"),
        ({"solver": "greedy"}, "is for a family of kernels"),
    ],
)
def test_refusals(parameters, words):
    with pytest.raises((ValueError, TypeError), match=words):
        OneClassMKL(**parameters).fit(some_data(20))


def test_it_is_no_loss_for_classes_or_numbers():
    with pytest.raises(ValueError, match="loss must be for classes"):
        MKLClassifier(loss=OneClass(0.5)).fit(some_data(), np.arange(60) % 2)


# -- real data --------------------------------------------------------------------------------------------------------


def test_tumors_that_are_like_none_seen():
    """Trained on benign tumors alone, the scores of the others tell them from malignant ones."""
    X, y = load_breast_cancer(return_X_y=True)
    benign, malignant = X[y == 1], X[y == 0]
    model = OneClassMKL(nu=0.1).fit(benign[::2])
    scores = model.decision_function(np.vstack([benign[1::2], malignant]))
    labels = np.repeat([1, 0], [len(benign[1::2]), len(malignant)])
    assert roc_auc_score(labels, scores) > 0.93
    assert model.gap_ <= 1e-3
