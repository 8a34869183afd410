"""Scores are of models that have not seen the row."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
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
from manykernels.reports.contestants import _uniform
from manykernels.reports.html.words import score_sentence
from manykernels.reports.single import fit_single, left_out_error
from manykernels.reports.steps import some_rows

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
    assert ("uniform sum", "these kernels are not a list that could be summed") in found.skipped


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


def test_an_equal_sum_is_compared_with_whatever_keeps_zeros():
    X, y = load_iris(return_X_y=True)
    model = UFOMKLClassifier([Gaussian(1.0), Linear()], alpha=0.05, random_state=0)
    found = assess(model, X[::3], y[::3], folds=2)
    assert "uniform sum" not in dict(found.skipped)
    assert _uniform(model).fit(X, y).weights_.tolist() == [0.5, 0.5]


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
    assert found.n_folds == 5
    assert "Class 'b' has fewer rows than there are folds, so that some folds have none of them." in found.notes
    assert not any("least populated" in note for note in found.notes)
    with pytest.raises(ValueError, match="Class 'b' has one row"):
        assess(MKLClassifier([Linear()]), X[:21], y[:21])
    with pytest.raises(ValueError, match="folds must be a whole number of at least 2, got 1"):
        assess(MKLClassifier([Linear()]), X, y, folds=1)
    with pytest.raises(ValueError, match="y has 5 values, but 3 folds need at least 6"):
        assess(MKLRegressor([Linear()]), X[:5], X[:5, 0], folds=3)


@pytest.mark.parametrize("estimator", [MKLClassifier(), MKLClassifierCV(Cs=[1.0], norms=[1.0], cv=2)])
def test_a_class_of_two_rows_among_others(estimator):
    model = clone(estimator).set_params(kernels=[Gaussian(1.0), Linear()])
    X, y = load_iris(return_X_y=True)
    X, y = X[:102:2], y[:102:2]  # one row of the last class
    found = assess(model, np.vstack([X, X[-1:] + 0.1]), np.append(y, y[-1]), folds=5)
    assert found.n_folds == 5
    assert found.model.decisions.shape == (52, 3)
    assert found.model.score.value > 0.9
    assert len(found.outcomes) == 5
    assert not any("contains classes" in note for note in found.notes)


class TestBestSingleKernel:
    def test_is_not_hidden_by_near_duplicates(self):
        x = np.random.default_rng(0).normal(size=(90, 2))
        y = x[:, 0] + 0.2 * np.random.default_rng(1).normal(size=90)
        kernels = [Gaussian(width, columns=[0]) for width in np.geomspace(0.5, 2, 20)] + [Linear([0]), Linear([1])]
        found = assess(MKLRegressor(kernels), x, y, folds=2)
        single = next(outcome for outcome in found.outcomes if outcome.name == "best single kernel")
        assert single.note == "chosen from all 22 kernels inside the training rows; Linear on x0 in 2 of 2 folds"

    def test_of_very_many(self):
        x = np.random.default_rng(0).normal(size=(60, 40))
        y = np.sin(2 * x[:, 7])
        kernels = [Gaussian(width, columns=[j]) for j in range(40) for width in np.geomspace(0.1, 10, 10)]
        model = MKLRegressor([*kernels, Gaussian(3.0)]).fit(x, y)
        fitted, tried = fit_single(MKLRegressor([*kernels, Gaussian(3.0)]), model, x, y, seed=0)
        assert fitted.kernel_names_[0].endswith("on x7")
        assert 50 <= int(tried.split()[0]) <= 100
        assert tried.endswith("of 401 kernels")

    def test_left_out_errors_are_those_of_refits(self):
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(12, 2)), rng.normal(size=12)
        K, centered = x @ x.T, y - y.mean()
        missed = []
        for i in range(12):
            rest = np.arange(12) != i
            coef = np.linalg.solve(K[rest][:, rest] + 1 + 0.5 * np.eye(11), centered[rest])
            missed.append(centered[i] - (K[i, rest] + 1) @ coef)
        assert left_out_error(K, y[:, None], np.ones(12), 0.5) == pytest.approx(np.mean(np.square(missed)))


class TestUnevenClasses:
    @staticmethod
    def assessed(counts):
        rng = np.random.default_rng(0)
        y = np.repeat(np.arange(len(counts)), counts)
        X = rng.normal(size=(y.size, 2)) + y[:, None]
        return assess(MKLClassifier([Gaussian(1.0), Linear()]), X, y, folds=2)

    def test_that_a_constant_would_nearly_get_right(self):
        found = self.assessed([110, 10])
        assert found.metric == "balanced accuracy"
        assert any("class 1 has 10 of 120 rows (8.3%)" in note and "not weighted" in note for note in found.notes)
        assert found.outcomes[-1].score.value == 0.5

    def test_with_one_rare_class(self):
        found = self.assessed([40, 40, 6])
        assert found.metric == "balanced accuracy"
        assert "of the cases of a class, on average over the classes" in score_sentence(found)
        assert any(note.startswith("The classes are uneven") for note in found.notes)

    def test_even_ones_need_no_words(self):
        found = self.assessed([40, 40])
        assert found.notes == ()
        assert "on average over" not in score_sentence(found)


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
