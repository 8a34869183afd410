"""Scores are of models that have not seen the row."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manykernels import (
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    TwoStageMKLClassifier,
    UFOMKLClassifier,
)
from manykernels.core.progress import follow
from manykernels.kernels import Gaussian, GaussianFamily, KernelBank, Linear
from manykernels.reports.assessment import assess
from manykernels.reports.baselines import some_rows

NAMES = ["learned kernels", "uniform sum", "best single kernel", "tuned RBF SVM", "constant prediction"]


@pytest.fixture(scope="module")
def noise():
    rng = np.random.default_rng(1)
    return rng.normal(size=(160, 20)), rng.permutation(np.arange(160) % 2)


def test_noise_is_not_learned(noise):
    kernels = [Gaussian(width, columns=[j]) for j in range(20) for width in (0.3, 3.0)]
    found = assess(MKLClassifier(kernels, C=10.0), *noise)
    assert [outcome.name for outcome in found.outcomes] == NAMES
    for outcome in found.outcomes:
        assert 0.38 < outcome.score.value < 0.62
        assert not outcome.difference.excludes_zero


def test_noise_is_not_learned_by_regression(noise):
    found = assess(MKLRegressor([Gaussian(1.0, columns=[j]) for j in range(20)]), noise[0], noise[0][::-1, 0].copy())
    assert all(outcome.score.value < 0.15 for outcome in found.outcomes)


def test_predictions_are_those_of_the_folds():
    X, y = load_iris(return_X_y=True)
    model = MKLClassifier([Gaussian(1.0), Linear()])
    found = assess(model, X, y, folds=3, seed=7)
    folds = StratifiedKFold(3, shuffle=True, random_state=7)
    np.testing.assert_array_equal(found.model.predicted, cross_val_predict(model, X, y, cv=folds))
    assert found.model.decisions.shape == (150, 3)
    assert found.model.beside["balanced accuracy"] == pytest.approx(found.model.score.value)


def test_signal_is_found_beside_the_baselines():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 30))
    y = np.where(X[:, 3] > 0, "up", "down")
    found = assess(MKLClassifier([Gaussian(1.0, columns=[j]) for j in range(30)]), X, y, folds=3)
    scores = {outcome.name: outcome for outcome in found.outcomes}
    assert found.model.score.value > 0.95
    assert "Gaussian(width=1) on x3 in 3 of 3 folds" in scores["best single kernel"].note
    assert scores["best single kernel"].score.value > 0.95
    assert scores["constant prediction"].difference.excludes_zero
    assert all(refit.shares.argmax() == 3 and refit.views["x3"] > 0.5 for refit in found.refits)


def test_columns_of_a_frame_reach_the_refits():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["age", "size"])
    y = (X["age"] > 0).to_numpy()
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), MKLClassifier([Linear(["age"])]))
    assert assess(model, X, y, folds=2).model.score.value > 0.9


class Spy(ClassifierMixin, BaseEstimator):
    """Remembers every row that it was given, by the number in the first column."""

    def __init__(self, kernels="standard"):
        self.kernels = kernels

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen = set(X[:, 0])
        self.weights_, self.group_weights_, self.feature_importances_ = np.ones(1), np.ones(1), np.ones(2)
        self.kernel_names_, self.group_names_ = ["k"], ["g"]
        return self

    def predict(self, X):
        assert not self.seen & set(X[:, 0])
        return np.full(len(X), self.classes_[0])


def test_no_fit_sees_the_rows_that_it_predicts():
    X = np.column_stack([np.arange(40.0), np.zeros(40)])
    found = assess(Spy(), X, np.arange(40) % 2)
    assert len(found.refits) == 5
    assert ("uniform sum", "these kernels are no list that could be summed") in found.skipped


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifierCV([Gaussian(1.0), Linear()], Cs=[1.0, 10.0], norms=[1.0], cv=2),
        UFOMKLClassifier([Gaussian(1.0), Linear()], random_state=0),
        TwoStageMKLClassifier([Gaussian(1.0), Linear()], random_state=0),
        MKLClassifier(GaussianFamily(0.5, 5.0)),
        MKLClassifier(combination="product", solver="spg"),
        MKLClassifier([Gaussian(1.0), Linear()], shared_weights=False, norm=2),
    ],
    ids=lambda model: f"{type(model).__name__}-{type(model.kernels).__name__}",
)
@pytest.mark.filterwarnings("ignore")
def test_every_estimator(model):
    X, y = load_iris(return_X_y=True)
    found = assess(model, X[::2], y[::2], folds=2)
    assert found.model.score.value > 0.85
    assert len(found.outcomes) + len(found.skipped) == 5
    assert all(refit.shares.sum() == pytest.approx(1.0) for refit in found.refits)


def test_regression_with_a_choice_of_C():
    x = np.linspace(-3, 3, 60)[:, None]
    found = assess(MKLRegressorCV([Gaussian(1.0), Gaussian(0.1)], Cs=[1.0, 100.0], cv=2), x, np.sin(x[:, 0]), folds=2)
    assert found.model.score.value > 0.9
    assert found.classes is None


def test_matrices_and_sparse_data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] > 0
    bank = KernelBank.from_arrays(np.stack([X @ X.T, np.outer(X[:, 0], X[:, 0])]))
    found = assess(MKLClassifier(bank), np.arange(40)[:, None], y, folds=2)
    assert found.model.score.value > 0.8
    assert [name for name, _ in found.skipped] == ["tuned RBF SVM"]
    assert len(assess(MKLClassifier([Linear()]), sparse.csr_matrix(X), y, folds=2).outcomes) == 5


def test_missing_views():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] > 0
    X[::6, 1] = np.nan
    found = assess(MKLClassifier([Linear([0]), Linear([1])], missing="ignore"), X, y, folds=2)
    assert len(found.outcomes) == 5


def test_few_rows_of_a_class():
    y = np.array(["a"] * 20 + ["b"] * 3)
    X = np.arange(23.0)[:, None]
    found = assess(MKLClassifier([Linear()]), X, y, folds=5)
    assert found.n_folds == 3
    assert "Class 'b' has 3 rows, so there are 3 folds only." in found.notes
    with pytest.raises(ValueError, match="Class 'b' has one row"):
        assess(MKLClassifier([Linear()]), X[:21], y[:21])
    with pytest.raises(ValueError, match="folds must be a whole number of at least 2, got 1"):
        assess(MKLClassifier([Linear()]), X, y, folds=1)
    with pytest.raises(ValueError, match="y has 5 values, but 3 folds need at least 6"):
        assess(MKLRegressor([Linear()]), X[:5], X[:5, 0], folds=3)


def test_warnings_become_notes_and_progress_is_told():
    X, y = load_iris(return_X_y=True)
    points = []
    with follow(lambda *point: points.append(point)):
        found = assess(MKLClassifier([Gaussian(0.5), Linear()], max_iter=1, tol=1e-12), X, y, folds=2)
    assert any("stopped after 1 iterations" in note for note in found.notes)
    assert points[0] == (0, 10, "fold 1, learned kernels")
    assert points[-1] == (10, 10, "done")
    assert len(points) == 11


def test_some_rows_keep_every_class():
    X, y = np.arange(1000)[:, None], np.array(["rare"] * 3 + ["common"] * 997)
    few, labels = some_rows(X, y, 50, seed=0, classes=True)
    assert few.shape == (50, 1)
    assert 2 <= np.sum(labels == "rare") <= 3
    np.testing.assert_array_equal(y[few[:, 0]], labels)
