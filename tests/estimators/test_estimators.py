"""The estimators as a user of scikit-learn meets them: pipelines, grids, views of tables, precomputed kernels."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import compute_class_weight

from manykernels import MKLClassifier, MKLRegressor
from manykernels.core.solver import Solver
from manykernels.kernels import Gaussian, KernelBank, Linear, Polynomial, Precomputed
from manykernels.norms import LpNorm
from manykernels.outer.group_lasso import group_lasso

RNG = np.random.default_rng(0)
X = RNG.standard_normal((70, 4))
BINARY = np.where(X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.standard_normal(70) > 0.8, 1, 0)
CLASSES = np.digitize(X[:, 0] + 0.2 * RNG.standard_normal(70), [-0.5, 0.5])
TARGET = np.sin(2 * X[:, 0]) + 0.5 * X[:, 2] + 0.05 * RNG.standard_normal(70)
TRAIN, TEST = np.arange(50), np.arange(50, 70)
KERNELS = [Gaussian(0.5), Gaussian(2.0), Linear(), Polynomial(2), Gaussian(1.0, columns=[0])]
GRAMS = np.array([np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * width**2)) for width in (0.5, 1.5, 5.0)])
NUMBERS = np.arange(70)[:, None]


def views():
    """Two views of a table, with units far apart: one that tells, one of noise."""
    frame = pd.DataFrame(X, columns=["lab_a", "lab_b", "scan_a", "scan_b"])
    return frame * [1.0, 10.0, 100.0, 1000.0] + [0, 5, 50, 500]


LAB, SCAN = ["lab_a", "lab_b"], ["scan_a", "scan_b"]


# -- inside scikit-learn -----------------------------------------------------------------------------------


def test_a_grid_over_a_pipeline_on_views_of_a_table():
    """Kernels name their columns; scaling, C and the norm are chosen by cross-validation."""
    kernels = [
        Gaussian(1.0, columns=LAB, group="lab"),
        Gaussian(1.0, columns=SCAN, group="scan"),
        Linear(columns="lab_a", group="lab"),
    ]
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), MKLClassifier(kernels))
    settings = {"mklclassifier__C": [0.1, 10.0], "mklclassifier__norm": [1.0, 2.0, LpNorm(np.inf)]}
    grid = GridSearchCV(pipeline, settings, cv=3, error_score="raise").fit(views(), BINARY)
    model = grid.best_estimator_[-1]
    assert grid.best_score_ > 0.8
    assert model.feature_names_in_.tolist() == LAB + SCAN
    assert model.kernel_groups_ == ["lab", "scan", "lab"]
    assert model.kernel_names_[0] == "Gaussian(width=1) on lab_a, lab_b"
    for parameters, found in zip(grid.cv_results_["params"], grid.cv_results_["mean_test_score"], strict=True):
        alone = clone(pipeline).set_params(**parameters)
        assert found == pytest.approx(cross_val_score(alone, views(), BINARY, cv=3).mean())
    assert len(set(grid.cv_results_["mean_test_score"])) > 2
    np.testing.assert_array_equal(grid.predict(views()), grid.best_estimator_.fit(views(), BINARY).predict(views()))


def test_a_table_is_its_array():
    by_name = MKLClassifier([Linear(columns=LAB), Gaussian(1.0, columns=slice("lab_b", "scan_a"))], norm=2)
    by_place = MKLClassifier([Linear(columns=[0, 1]), Gaussian(1.0, columns=[1, 2])], norm=2)
    frame = pd.DataFrame(X, columns=LAB + SCAN)
    np.testing.assert_array_equal(by_name.fit(frame, BINARY).weights_, by_place.fit(X, BINARY).weights_)
    np.testing.assert_array_equal(by_name.decision_function(frame), by_place.decision_function(X))


def test_cross_validation_on_precomputed_kernels():
    """The index column goes through scikit-learn like any feature, and nothing of a test fold leaks in."""
    model = MKLClassifier(KernelBank.from_arrays(GRAMS), norm=2, normalize=None)
    features = MKLClassifier([Gaussian(0.5), Gaussian(1.5), Gaussian(5.0)], norm=2, normalize=None)
    scores, expected = cross_val_score(model, NUMBERS, BINARY, cv=4), cross_val_score(features, X, BINARY, cv=4)
    np.testing.assert_array_equal(scores, expected)
    assert scores.mean() > 0.75


@pytest.mark.parametrize("normalize", ["mean_diag", "trace", None])
def test_a_rectangular_stack_predicts_like_sample_numbers(normalize):
    C = 50.0 if normalize == "trace" else 1.0
    order = np.random.default_rng(1).permutation(TRAIN)  # rows of the stack follow the training data as given
    model = MKLClassifier(KernelBank.from_arrays(GRAMS), norm=2, normalize=normalize, C=C).fit(
        NUMBERS[order], CLASSES[order]
    )
    stack = GRAMS[:, TEST][:, :, order]
    np.testing.assert_allclose(model.decision_function(stack), model.decision_function(NUMBERS[TEST]), atol=1e-12)
    np.testing.assert_array_equal(model.predict(stack), model.predict(NUMBERS[TEST]))
    regressor = MKLRegressor(KernelBank.from_arrays(GRAMS), normalize=normalize, C=C).fit(NUMBERS[order], TARGET[order])
    np.testing.assert_allclose(regressor.predict(stack), regressor.predict(NUMBERS[TEST]), atol=1e-12)


def test_features_are_selected_by_importance():
    """Only the first two features tell; the importances say so and sum to 1."""
    target = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    selector = SelectFromModel(MKLClassifier([Gaussian(1.0, columns=[i]) for i in range(4)])).fit(X, target)
    importances = selector.estimator_.feature_importances_
    assert selector.get_support().tolist() == [True, True, False, False]
    assert importances.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(importances, selector.estimator_.weights_)


def test_importance_is_divided_over_the_columns_of_a_kernel():
    model = MKLClassifier([Linear(), Linear(columns=[0, 1]), Gaussian(1.0, columns=[2])], norm=np.inf).fit(X, BINARY)
    np.testing.assert_allclose(model.feature_importances_ * 3, [1 / 4 + 1 / 2, 1 / 4 + 1 / 2, 1 / 4 + 1, 1 / 4])


# -- the learned kernel --------------------------------------------------------------------------------------


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("normalize", ["mean_diag", "trace", "cosine", None])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_the_learned_kernel_is_a_kernel(form, normalize, center):
    model = MKLClassifier(KERNELS, norm=2, normalize=normalize, center=center).fit(form(X[TRAIN]), BINARY[TRAIN])
    K = model.kernel(form(X))
    np.testing.assert_allclose(K, K.T, atol=1e-10 * np.abs(K).max())
    assert np.linalg.eigvalsh((K + K.T) / 2)[0] >= -1e-9 * np.abs(K).max()
    np.testing.assert_allclose(model.kernel(form(X[TEST]), form(X[TRAIN])), K[np.ix_(TEST, TRAIN)], atol=1e-10)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("normalize", ["mean_diag", "cosine"])
def test_an_svm_on_the_learned_kernel_is_the_model(normalize, center):
    """With p = inf all weights are 1: libsvm on kernel(X) gives the same decision values."""
    model = MKLClassifier(KERNELS, norm=np.inf, tol=1e-8, normalize=normalize, center=center).fit(
        X[TRAIN], BINARY[TRAIN]
    )
    assert np.all(model.weights_ == 1.0)
    svm = SVC(kernel="precomputed", tol=1e-9).fit(model.kernel(X[TRAIN]), BINARY[TRAIN])
    expected = svm.decision_function(model.kernel(X[TEST], X[TRAIN]))
    np.testing.assert_allclose(model.decision_function(X[TEST]), expected, atol=2e-3)
    np.testing.assert_array_equal(model.predict(X[TEST]), svm.predict(model.kernel(X[TEST], X[TRAIN])))


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_decisions_are_the_learned_kernel_times_the_coefficients(norm):
    model = MKLClassifier(KERNELS, norm=norm).fit(X[TRAIN], CLASSES[TRAIN])
    decision = model.kernel(X[TEST], X[TRAIN][model.support_]) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X[TEST]), decision, atol=1e-9)


# -- classes ---------------------------------------------------------------------------------------------------


def test_own_weights_are_the_binary_problems_one_by_one():
    """shared_weights=False: each class is the binary problem of that class against the rest."""
    model = MKLClassifier(KERNELS, norm=1.5, shared_weights=False, tol=1e-6).fit(X, CLASSES)
    assert model.weights_.shape == (3, len(KERNELS))
    assert model.kernel(X[:5]).shape == (3, 5, 5)
    total = 0.0
    for c in range(3):
        binary = MKLClassifier(KERNELS, norm=1.5, tol=1e-6).fit(X, c == CLASSES)
        np.testing.assert_allclose(model.weights_[c], binary.weights_, atol=1e-3)
        np.testing.assert_allclose(model.decision_function(X)[:, c], binary.decision_function(X), atol=1e-2)
        total += binary.objective_
    assert model.objective_ == pytest.approx(total, rel=1e-5)


def test_shared_weights_cost_something():
    """One kernel for all classes has the larger optimum; with p = inf there is no choice and they agree."""
    one, own = (MKLClassifier(KERNELS, norm=1.5, tol=1e-5, shared_weights=s).fit(X, CLASSES) for s in (True, False))
    assert one.weights_.shape == (len(KERNELS),)
    assert one.objective_ > own.objective_ * (1 + 1e-4)
    one, own = (MKLClassifier(KERNELS, norm=np.inf, tol=1e-6, shared_weights=s).fit(X, CLASSES) for s in (True, False))
    assert one.objective_ == pytest.approx(own.objective_, rel=1e-5)


def test_jobs_change_nothing():
    models = [MKLClassifier(KERNELS, shared_weights=False, n_jobs=jobs).fit(X, CLASSES) for jobs in (None, 2)]
    np.testing.assert_array_equal(models[0].weights_, models[1].weights_)


@pytest.mark.parametrize(
    "labels", [BINARY, CLASSES, np.array(["x", "y", "z"])[CLASSES], BINARY == 1], ids=["0/1", "0/1/2", "text", "bool"]
)
@pytest.mark.parametrize(
    "settings", [{"loss": "logistic"}, {"probability": True, "random_state": 0}], ids=["logistic", "calibrated"]
)
def test_probabilities(labels, settings):
    """They sum to 1, the most probable class is the predicted one, and they beat a guess."""
    model = MKLClassifier(KERNELS, norm=2, **settings).fit(X[TRAIN], labels[TRAIN])
    proba = model.predict_proba(X)
    assert proba.shape == (70, model.classes_.size)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert proba.min() >= 0.0
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
    codes = np.searchsorted(model.classes_, labels[TEST])
    log_loss = -np.log(proba[TEST, codes]).mean()
    assert log_loss < np.log(model.classes_.size)


def test_probabilities_far_from_the_data():
    """Decision values of hundreds: still a distribution, with no overflow."""
    for labels in (BINARY, CLASSES):
        model = MKLClassifier([Linear(), Polynomial(2)], norm=2, loss="logistic", C=100.0).fit(X, labels)
        proba = model.predict_proba(X * 1e3)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        of_the_predicted = proba[np.arange(70), model.predict(X * 1e3)]
        np.testing.assert_array_equal(of_the_predicted, proba.max(axis=1))


def test_scores():
    classifier = MKLClassifier(KERNELS).fit(X[TRAIN], CLASSES[TRAIN])
    assert classifier.score(X[TEST], CLASSES[TEST]) == accuracy_score(CLASSES[TEST], classifier.predict(X[TEST]))
    regressor = MKLRegressor(KERNELS, C=10.0).fit(X[TRAIN], TARGET[TRAIN])
    assert regressor.score(X[TEST], TARGET[TEST]) == r2_score(TARGET[TEST], regressor.predict(X[TEST])) > 0.5


# -- the same data, written differently ------------------------------------------------------------------------

MODELS = {
    "hinge": MKLClassifier(KERNELS, norm=1.5),
    "logistic": MKLClassifier(KERNELS, norm=2, loss="logistic"),
    "centered": MKLClassifier(KERNELS, norm=2, center=True, normalize="cosine"),
    "balanced": MKLClassifier(KERNELS, class_weight="balanced"),
    "ridge": MKLRegressor(KERNELS, norm=2),
    "tube": MKLRegressor(KERNELS, loss="epsilon_insensitive"),
}
every_model = pytest.mark.parametrize("name", MODELS)


def outcome(name, data, weight=None):
    """A model fitted on data (X, y), as its weights and its predictions on the test samples."""
    model = clone(MODELS[name]).fit(*data, sample_weight=weight)
    out = model.decision_function(X[TEST]) if hasattr(model, "decision_function") else model.predict(X[TEST])
    return model.weights_, out, model


def target_of(name):
    return TARGET if isinstance(MODELS[name], MKLRegressor) else CLASSES


def assert_same(one, other, tolerance=1e-10):
    for a, b in zip(one[:2], other[:2], strict=True):
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)


@every_model
def test_the_order_of_the_rows_does_not_matter(name):
    order, y = np.random.default_rng(2).permutation(TRAIN), target_of(name)
    one, other = outcome(name, (X[TRAIN], y[TRAIN])), outcome(name, (X[order], y[order]))
    assert_same(one, other)
    np.testing.assert_array_equal(np.sort(order[other[2].support_]), one[2].support_)


@every_model
def test_a_row_twice_is_a_row_of_weight_two(name):
    y = target_of(name)
    twice = np.concatenate([TRAIN, TRAIN[:20]])
    weight = np.where(np.arange(50) < 20, 2.0, 1.0)
    one, other = outcome(name, (X[twice], y[twice])), outcome(name, (X[TRAIN], y[TRAIN]), weight)
    assert_same(one, other)
    assert one[2].objective_ == pytest.approx(other[2].objective_, rel=1e-12)


def test_balanced_counts_every_row():
    """ "balanced" is scikit-learn's: rows that stand twice count twice, and so does a weight of two."""
    rows = np.concatenate([np.flatnonzero(BINARY == 1)[[0] * 9], np.arange(70)])
    data, y = X[rows], BINARY[rows]
    by_hand = dict(enumerate(compute_class_weight("balanced", classes=np.array([0, 1]), y=y)))
    one, other = (MKLClassifier(KERNELS, norm=2, class_weight=weight).fit(data, y) for weight in ("balanced", by_hand))
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-12)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-12)


@every_model
def test_a_row_of_weight_zero_is_no_row(name):
    y = target_of(name)
    weight = np.where(np.arange(70) < 50, 1.0, 0.0)
    assert_same(outcome(name, (X[TRAIN], y[TRAIN])), outcome(name, (X, y), weight))


@every_model
def test_sparse_is_dense(name):
    """Up to rounding, which may change the path to the optimum but not where it ends."""
    y = target_of(name)
    sparse, dense = (
        clone(MODELS[name]).set_params(norm=2).fit(form(X[TRAIN]), y[TRAIN]) for form in (sp.csr_matrix, np.array)
    )
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-3)
    np.testing.assert_allclose(sparse.weights_, dense.weights_, atol=0.02)
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(X)), sparse.predict(X), rtol=1e-9, atol=1e-9)


def test_the_order_of_the_kernels_does_not_matter():
    one = MKLClassifier(KERNELS, norm=1.5, tol=1e-6).fit(X, BINARY)
    other = MKLClassifier(KERNELS[::-1], norm=1.5, tol=1e-6).fit(X, BINARY)
    np.testing.assert_allclose(other.weights_[::-1], one.weights_, atol=1e-3)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-5)


# -- the contract of an estimator --------------------------------------------------------------------------------


@every_model
def test_clone_pickle_and_parameters(name):
    model, y = MODELS[name], target_of(name)
    fitted = clone(model).fit(X[TRAIN], y[TRAIN])
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X[TEST]), fitted.predict(X[TEST]))
    assert clone(fitted).get_params() == model.get_params()
    assert not hasattr(clone(fitted), "weights_")
    before = fitted.get_params()
    assert fitted.set_params(C=7.0) is fitted
    assert fitted.get_params() == before | {"C": 7.0}
    with pytest.raises(ValueError, match="Invalid parameter"):
        fitted.set_params(gamma=1.0)


@every_model
def test_a_second_fit_forgets_the_first(name):
    y = target_of(name)
    reused = clone(MODELS[name]).fit(X[TRAIN][:, ::-1], y[TRAIN]).fit(X[TRAIN], y[TRAIN])
    fresh = clone(MODELS[name]).fit(X[TRAIN], y[TRAIN])
    np.testing.assert_array_equal(reused.predict(X[TEST]), fresh.predict(X[TEST]))
    assert set(vars(reused)) == set(vars(fresh))


def test_names_of_columns_are_forgotten_by_a_fit_without_names():
    model = MKLClassifier(norm=2).fit(views(), BINARY)
    assert model.feature_names_in_.tolist() == LAB + SCAN
    model.fit(X, BINARY)
    assert not hasattr(model, "feature_names_in_")


def test_the_columns_of_a_table_must_come_in_their_order():
    model = MKLClassifier([Linear(columns=LAB), Linear(columns=SCAN)], norm=2).fit(views(), BINARY)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(views()[SCAN + LAB])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(views().rename(columns={"lab_a": "lab_c"}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(views().to_numpy())


def test_attributes_fit_together():
    for labels, n_problems in ((BINARY, 1), (CLASSES, 3)):
        model = MKLClassifier(KERNELS, tol=1e-4).fit(X, labels)
        assert model.weights_.shape == (5,)
        assert model.weights_.sum() == pytest.approx(1.0, abs=1e-4)
        np.testing.assert_array_equal(model.active_, np.flatnonzero(model.weights_))
        assert model.dual_coef_.shape == (n_problems, model.support_.size)
        assert model.intercept_.shape == (n_problems,)
        assert np.all(np.any(model.dual_coef_ != 0, axis=0))
        np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0.0, atol=1e-9)
        assert model.dual_objective_ <= model.objective_
        assert model.gap_ == pytest.approx((model.objective_ - model.dual_objective_) / model.objective_)
        assert model.converged_
        assert model.trace_[-1].objective >= model.dual_objective_
        assert len(model.kernel_names_) == len(model.kernel_groups_) == 5


def test_iris_by_cross_validation():
    """A sanity check on data everybody knows."""
    data, labels = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), MKLClassifier(C=10.0))
    assert accuracy_score(labels, cross_val_predict(model, data, labels, cv=3)) > 0.93


# -- hostile numbers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        MKLRegressor(),
        MKLClassifier(loss="squared_hinge"),
        MKLClassifier(loss="logistic"),
        MKLClassifier(loss="squared"),
    ],
    ids=["ridge", "squared hinge", "logistic", "least squares"],
)
@pytest.mark.parametrize("case", ["large features", "large C"])
def test_rounded_kernels_of_low_rank_do_not_end_the_fit(estimator, case):
    """Rounding makes a large kernel of low rank indefinite; the factorization must not give up on it.

    Without normalization, cubes of features of size 30 are kernel values of 1e10; with a large C, 1/C on the
    diagonal is smaller than the rounding of values near 1.
    """
    rng = np.random.default_rng(3)
    data = rng.standard_normal((150, 3))
    y = np.where(data[:, 0] + 0.5 * rng.standard_normal(150) > 0, 1.0, -1.0)
    if case == "large features":
        model = clone(estimator).set_params(kernels=[Polynomial(3), Gaussian(30.0)], normalize=None, norm=2)
        model.fit(30 * data, y)
    else:
        model = clone(estimator).set_params(kernels=[Gaussian(8.0), Polynomial(3)], C=1e8, norm=2, max_iter=100)
        model.fit(data, y)
    assert model.gap_ < 0.1
    assert np.all(np.isfinite(model.predict(30 * data)))


@pytest.mark.parametrize("y", [np.full(70, 3.0), np.full(70, 0.0)], ids=["three", "zero"])
@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
def test_a_constant_target(y, loss):
    """Nothing to learn but the intercept: the objective is 0, and so is the gap."""
    model = MKLRegressor(KERNELS, loss=loss).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-9 if loss == "squared" else 0.1 + 1e-9)
    assert model.objective_ == pytest.approx(0.0, abs=1e-12)
    assert model.gap_ == pytest.approx(0.0, abs=1e-12)
    assert model.converged_


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
def test_the_unit_of_the_target_does_not_matter(unit, loss):
    base = MKLRegressor(KERNELS, loss=loss, norm=2, epsilon=0.1, tol=1e-6).fit(X[TRAIN], TARGET[TRAIN])
    C = 1.0 if loss == "squared" else unit
    scaled = MKLRegressor(KERNELS, loss=loss, norm=2, epsilon=0.1 * unit, C=C, tol=1e-6).fit(
        X[TRAIN], unit * TARGET[TRAIN]
    )
    np.testing.assert_allclose(scaled.predict(X[TEST]), unit * base.predict(X[TEST]), atol=2e-2 * unit)


@pytest.mark.parametrize("shift", [1e6, -1e8])
@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
def test_an_offset_of_the_target_goes_to_the_intercept(loss, shift):
    """Money, years, time stamps: the certificate still encloses the optimum, and the model is the same."""
    base = MKLRegressor(KERNELS, loss=loss, norm=2, tol=1e-6).fit(X[TRAIN], TARGET[TRAIN])
    moved = MKLRegressor(KERNELS, loss=loss, norm=2, tol=1e-6).fit(X[TRAIN], TARGET[TRAIN] + shift)
    assert moved.converged_
    assert moved.gap_ >= -1e-9  # the dual value is never above the primal one
    np.testing.assert_allclose(moved.predict(X[TEST]) - shift, base.predict(X[TEST]), atol=1e-2)


def test_two_samples():
    model = MKLClassifier(KERNELS, norm=2).fit([[0.0, 0, 0, 1], [1.0, 1, 1, 0]], ["a", "b"])
    assert model.predict([[0.0, 0, 0, 1], [1.0, 1, 1, 0]]).tolist() == ["a", "b"]


def test_precomputed_beside_features_is_the_sum_of_both():
    both = np.column_stack([X, NUMBERS])
    kernels = [Precomputed(GRAMS[0], columns=[4], label="graph"), Linear(columns=[0, 1, 2, 3])]
    model = MKLClassifier(kernels, norm=np.inf, normalize=None, tol=1e-6).fit(both[TRAIN], BINARY[TRAIN])
    assert model.kernel_names_ == ["graph", "Linear on x0, x1 and 2 more"]
    np.testing.assert_allclose(model.kernel(both), GRAMS[0] + X @ X.T, atol=1e-10)


def test_a_random_state_gives_one_seed_for_all_that_a_fit_draws():
    seeds = []

    def drawing(problem, *, tol, max_iter, start=None, random_state=None):
        seeds.append(random_state)
        return group_lasso(problem, tol=tol, max_iter=max_iter, start=start)

    solver = Solver("drawing", drawing, draws=True)
    X, y = load_iris(return_X_y=True)
    for given in (0, np.random.RandomState(0), None):
        model = MKLClassifier([Gaussian(1.0)], solver=solver, norm=2, shared_weights=False, n_jobs=2)
        model.set_params(random_state=given).fit(X, y)
    assert len(seeds) == 9
    assert seeds[0] is not None
    assert seeds == [seeds[0]] * 6 + [None] * 3
