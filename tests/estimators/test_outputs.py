"""Targets that are a matrix: several outputs of a regression, and labels of which a sample may have many."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import r2_score

from manykernels import (
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    TwoStageMKLRegressor,
    UFOMKLRegressor,
    load,
    mkl_path,
)
from manykernels.kernels import Gaussian, KernelBank, Linear
from tests.reference.oracle import certificate, random_problem, solve_dual

LOSSES = ["squared", "epsilon_insensitive", "absolute", "quantile", "huber"]
KERNELS = [Gaussian(1.0), Gaussian(4.0), Linear()]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] + 0.1 * RNG.normal(size=60), 100.0 + X[:, 2] ** 2])
NEW = RNG.normal(size=(7, 3))
LABELS = np.column_stack([X[:, 0] > 0, X[:, 1] ** 2 > 0.5, X[:, 2] > 1.0]).astype(int)


def coefficients(model, n):
    beta = np.zeros((model.dual_coef_.shape[0], n))
    beta[:, model.support_] = model.dual_coef_
    return beta


# -- the optimum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_outputs_reach_the_optimum_and_their_certificate_can_be_recomputed(loss, p, shared):
    grams, targets = random_problem(24, 5, seed=2, task="regression", n_tasks=3)
    bank = KernelBank.from_arrays(grams)
    model = MKLRegressor(bank, loss=loss, norm=p, shared_weights=shared, normalize=None, tol=4e-7, max_iter=10_000)
    model.fit(np.arange(24)[:, None], targets.T)
    beta = coefficients(model, 24)
    if shared:
        problems = [(targets, model.weights_, beta, model.intercept_)]
    else:
        problems = list(zip(targets, model.weights_, beta, model.intercept_, strict=True))
    optima = [solve_dual(grams, y, 1.0, loss, p)[0] for y, *_ in problems]
    values = np.array([certificate(grams, y, 1.0, loss, p, *rest)[:2] for y, *rest in problems]).sum(axis=0)
    assert model.converged_
    assert model.objective_ == pytest.approx(sum(optima), rel=1e-6)
    assert [model.objective_, model.dual_objective_] == pytest.approx(list(values), rel=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_labels_reach_the_optimum(p, fit_intercept):
    grams, targets = random_problem(24, 5, seed=2, n_tasks=3)
    model = MKLClassifier(
        KernelBank.from_arrays(grams), norm=p, normalize=None, tol=4e-7, max_iter=10_000, fit_intercept=fit_intercept
    ).fit(np.arange(24)[:, None], (targets.T > 0).astype(int))
    assert model.objective_ == pytest.approx(solve_dual(grams, targets, 1.0, "hinge", p, fit_intercept)[0], rel=1e-6)


# -- shapes and conventions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
def test_shapes_of_a_regression(shared):
    model = MKLRegressor(KERNELS, shared_weights=shared, C=10.0).fit(X, Y)
    assert model.n_outputs_ == 3
    assert model.weights_.shape == ((3,) if shared else (3, 3))
    assert model.dual_coef_.shape == (3, model.support_.size)
    assert model.intercept_.shape == (3,)
    assert model.predict(NEW).shape == (7, 3)
    assert model.score(X, Y) == pytest.approx(r2_score(Y, model.predict(X)))
    parts = model.contributions(NEW)
    np.testing.assert_allclose(parts.total(), model.predict(NEW), rtol=1e-9)
    assert model.kernel(NEW).shape == ((7, 7) if shared else (3, 7, 7))


def test_one_column_stays_a_column():
    column = MKLRegressor(KERNELS).fit(X, Y[:, :1])
    plain = MKLRegressor(KERNELS).fit(X, Y[:, 0])
    assert column.predict(NEW).shape == (7, 1)
    assert plain.predict(NEW).shape == (7,)
    assert not hasattr(plain, "n_outputs_")
    np.testing.assert_array_equal(column.predict(NEW)[:, 0], plain.predict(NEW))
    assert not hasattr(column.fit(X, Y[:, 0]), "n_outputs_")


def test_single_fits_are_what_separate_weights_are():
    model = MKLRegressor(KERNELS, shared_weights=False, C=10.0, tol=1e-8).fit(X, Y)
    for t in range(3):
        single = MKLRegressor(KERNELS, C=10.0, tol=1e-8).fit(X, Y[:, t])
        np.testing.assert_allclose(model.weights_[t], single.weights_, atol=1e-4)
        np.testing.assert_allclose(model.predict(NEW)[:, t], single.predict(NEW), atol=1e-4 * np.ptp(Y[:, t]))


def test_weights_of_samples_are_copies_and_rows_of_y_tell_samples_apart():
    """Equal rows of X with equal rows of Y are one sample; with another row of Y they are two."""
    rows = np.concatenate([np.arange(30), [0, 0, 1]])
    weight = np.ones(30)
    weight[[0, 1]] = 3.0, 2.0
    one = MKLRegressor(KERNELS, tol=1e-7).fit(X[:30], Y[:30], sample_weight=weight)
    other = MKLRegressor(KERNELS, tol=1e-7).fit(X[rows], Y[rows])
    np.testing.assert_allclose(one.predict(NEW), other.predict(NEW), rtol=1e-6)
    moved = np.vstack([Y[:30], Y[:1] + np.array([0.0, 0.0, 3.0])])
    both = MKLRegressor(KERNELS, C=1e3, tol=1e-7).fit(np.vstack([X[:30], X[:1]]), moved)
    assert both.support_.size == 31


@pytest.mark.parametrize("shared", [True, False])
def test_shapes_of_labels(shared):
    model = MKLClassifier(KERNELS, loss="logistic", shared_weights=shared).fit(X, LABELS)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert model.decision_function(NEW).shape == (7, 3)
    assert model.predict_proba(NEW).shape == (7, 3)
    np.testing.assert_array_equal(model.predict(NEW), model.decision_function(NEW) > 0)
    np.testing.assert_array_equal(model.predict(NEW), model.predict_proba(NEW) > 0.5)
    assert model.score(X, LABELS) > 0.5
    two = MKLClassifier(KERNELS).fit(X, LABELS[:, :2])
    assert two.predict(NEW).shape == two.decision_function(NEW).shape == (7, 2)


def test_separate_labels_are_single_fits():
    model = MKLClassifier(KERNELS, shared_weights=False, tol=1e-6).fit(X, LABELS)
    for t in range(3):
        single = MKLClassifier(KERNELS, tol=1e-6).fit(X, LABELS[:, t])
        np.testing.assert_allclose(model.decision_function(NEW)[:, t], single.decision_function(NEW), atol=1e-3)


@pytest.mark.parametrize("form", [sp.csr_matrix, lambda y: y.astype(bool), lambda y: y.tolist(), lambda y: y * 1.0])
def test_forms_of_labels(form):
    expected = MKLClassifier(KERNELS).fit(X, LABELS).predict(NEW)
    np.testing.assert_array_equal(MKLClassifier(KERNELS).fit(X, form(LABELS)).predict(NEW), expected)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared"])
@pytest.mark.parametrize("shared", [True, False])
def test_a_label_that_all_samples_have(loss, shared):
    labels = np.column_stack([LABELS, np.ones(60, int), np.zeros(60, int)])
    model = MKLClassifier(KERNELS, loss=loss, shared_weights=shared).fit(X, labels)
    assert model.converged_
    assert np.all(model.predict(NEW)[:, 3:] == [1, 0])
    if shared:
        few = MKLClassifier(KERNELS, loss=loss).fit(X, LABELS)
        np.testing.assert_allclose(model.decision_function(NEW)[:, :3], few.decision_function(NEW), atol=1e-2)


def test_outputs_that_do_not_vary():
    constant = np.column_stack([Y[:, 0], np.full(60, 3.0)])
    model = MKLRegressor(KERNELS, C=10.0).fit(X, constant)
    np.testing.assert_allclose(model.predict(NEW)[:, 1], 3.0)
    np.testing.assert_allclose(MKLRegressor(KERNELS).fit(X, np.full((60, 2), 3.0)).predict(NEW), 3.0)


def test_class_weights_of_labels():
    balanced = MKLClassifier(KERNELS, class_weight="balanced", loss="logistic").fit(X, LABELS)
    single = MKLClassifier(KERNELS, class_weight="balanced", loss="logistic", tol=1e-5).fit(X, LABELS[:, 2])
    alone = MKLClassifier(KERNELS, class_weight="balanced", loss="logistic", tol=1e-5, shared_weights=False)
    np.testing.assert_allclose(
        alone.fit(X, LABELS).decision_function(NEW)[:, 2], single.decision_function(NEW), atol=1e-2
    )
    plain = MKLClassifier(KERNELS, loss="logistic").fit(X, LABELS)
    assert balanced.intercept_[2] > plain.intercept_[2]  # few samples have that label
    same = MKLClassifier(KERNELS, class_weight={0: 1.0, 1: 1.0}, loss="logistic").fit(X, LABELS)
    np.testing.assert_allclose(same.decision_function(NEW), plain.decision_function(NEW), atol=1e-6)


def test_calibrated_labels():
    model = MKLClassifier(KERNELS, probability=True, random_state=0).fit(X, LABELS)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == LABELS.shape
    assert model.temperature_scale_ > 0
    np.testing.assert_array_equal(model.predict(X), probabilities > 0.5)


# -- files, paths, searches -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "target"),
    [(MKLRegressor(KERNELS, shared_weights=shared), Y) for shared in (True, False)]
    + [(MKLRegressor(KERNELS), Y[:, :1]), (MKLClassifier(KERNELS), LABELS), (MKLClassifier(KERNELS), LABELS[:, :2])],
)
def test_files_and_pickles(estimator, target, tmp_path):
    model = estimator.fit(X, target)
    model.save(tmp_path / "model.mkl")
    for again in (load(tmp_path / "model.mkl"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
        assert again.n_outputs_ == target.shape[1]


def test_path_and_search():
    for point in mkl_path(KERNELS, X, Y, Cs=[1.0, 10.0], regression=True):
        assert point.model.predict(NEW).shape == (7, 3)
    search = MKLRegressorCV(KERNELS, Cs=[0.1, 10.0], norms=[1.0], cv=3).fit(X, Y)
    assert search.C_ == 10.0
    assert search.predict(NEW).shape == (7, 3)
    labels = MKLClassifierCV(KERNELS, Cs=[1.0], norms=[1.0], cv=3).fit(X, LABELS)
    assert labels.predict(NEW).shape == (7, 3)


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_what_is_refused():
    with pytest.raises(ValueError, match="matrix of labels"):
        MKLClassifier(KERNELS).fit(X, LABELS + 1)
    with pytest.raises(ValueError, match="matrix of labels"):
        MKLClassifier(KERNELS).fit(X, np.column_stack([LABELS[:, 0], np.arange(60) % 3]))
    with pytest.raises(ValueError, match="one target or for classes"):
        MKLRegressor(KERNELS).fit(X, Y).report(X, Y)
    for estimator in (UFOMKLRegressor(KERNELS), TwoStageMKLRegressor(KERNELS)):
        with pytest.raises(ValueError, match="1d"):
            estimator.fit(X, Y)


def test_labels_that_are_only_called_so():
    drawn, labels = make_multilabel_classification(n_samples=40, n_features=5, n_classes=6, random_state=0)
    model = MKLClassifier("standard", loss="squared").fit(drawn, labels)
    assert model.predict(drawn).shape == (40, 6)


# -- a C for each output ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
def test_a_cost_for_each_output(shared, tmp_path):
    grams, targets = random_problem(24, 5, seed=2, task="regression", n_tasks=10)
    costs = np.geomspace(0.1, 100.0, 10)
    model = MKLRegressor(KernelBank.from_arrays(grams), C=costs, shared_weights=shared, normalize=None, tol=4e-7)
    model.fit(np.arange(24)[:, None], targets.T)
    C = np.repeat(costs[:, None], 24, axis=1)
    if shared:
        optimum = solve_dual(grams, targets, C, "squared", 1.0)[0]
    else:
        optimum = sum(solve_dual(grams, y, c, "squared", 1.0)[0] for y, c in zip(targets, C, strict=True))
    assert model.objective_ == pytest.approx(optimum, rel=1e-6)
    model.save(tmp_path / "model.mkl")
    again = load(tmp_path / "model.mkl")
    np.testing.assert_array_equal(again.C, costs)
    np.testing.assert_array_equal(again.predict(np.arange(5)[:, None]), model.predict(np.arange(5)[:, None]))
    for C in ([1.0, 2.0], [1.0] * 9 + [-1.0], np.ones((10, 1))):
        with pytest.raises(ValueError, match="C "):
            MKLRegressor(KERNELS, C=C).fit(X, np.tile(Y, 4)[:, :10])
    with pytest.raises(ValueError, match="one column"):
        MKLRegressor(KERNELS, C=[1.0, 2.0]).fit(X, Y[:, 0])


def test_a_search_chooses_a_cost_for_each_output():
    rng = np.random.default_rng(3)
    noise = np.geomspace(0.01, 3.0, 10)
    targets = np.sin(2 * X[:, :1]) + noise * rng.normal(size=(60, 10))
    search = MKLRegressorCV(KERNELS, Cs=[100.0, 0.01, 1.0], norms=[1.0, 2.0], cv=3, shared_weights=False)
    search.fit(X, targets)
    assert search.scores_.shape == (2, 3, 3, 10)
    assert search.C_.shape == (10,)
    assert search.C_[0] == 100.0
    assert search.C_[-1] < 100.0
    assert search.predict(NEW).shape == (7, 10)
    means = search.scores_.mean(axis=2)
    assert search.best_score_ == pytest.approx(means.max(axis=1).mean(axis=1).max())
    # What it found for an output is what a search for it alone finds.
    alone = MKLRegressorCV(KERNELS, Cs=[0.01, 1.0, 100.0], norms=[search.norm_], cv=3).fit(X, targets[:, 4])
    place = [1.0, 2.0].index(search.norm_)
    np.testing.assert_allclose(search.scores_[place, :, :, 4], alone.scores_[0], atol=5e-3)
    assert search.C_[4] == alone.C_
    with pytest.raises(ValueError, match="scoring"):
        MKLRegressorCV(KERNELS, cv=3, shared_weights=False, scoring="r2").fit(X, targets)
