"""The estimators that choose C and the norm among folds."""

import inspect

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from manykernels import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV, load, mkl_path
from manykernels.estimators import cv, path
from manykernels.kernels import Gaussian, Linear, NystroemFeatures

X, Y = load_breast_cancer(return_X_y=True)
X, Y = StandardScaler().fit_transform(X)[:150, :5], Y[:150]
KERNELS = [Linear(), *(Gaussian(w) for w in (0.5, 2.0, 8.0)), *(Gaussian(1.0, columns=[i]) for i in range(5))]
CS = [0.1, 1.0, 10.0]


def test_the_choice_is_the_one_of_a_grid_search():
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    chosen = MKLClassifierCV(KERNELS, Cs=CS, norms=[1.0, 2.0], cv=folds, tol=1e-5).fit(X, Y)
    grid = GridSearchCV(MKLClassifier(KERNELS, tol=1e-5), {"norm": [1.0, 2.0], "C": CS}, cv=folds).fit(X, Y)
    by_setting = {
        (p["norm"], p["C"]): s
        for p, s in zip(grid.cv_results_["params"], grid.cv_results_["mean_test_score"], strict=True)
    }
    for i, norm in enumerate([1.0, 2.0]):
        for j, C in enumerate(CS):
            assert chosen.scores_[i, j].mean() == pytest.approx(by_setting[norm, C], abs=0.01)
    assert chosen.best_score_ == pytest.approx(chosen.scores_.mean(axis=2).max())
    refit = MKLClassifier(KERNELS, norm=chosen.norm_, C=chosen.C_, tol=1e-5).fit(X, Y)
    np.testing.assert_allclose(chosen.decision_function(X), refit.decision_function(X), atol=1e-8)


def test_the_chosen_model_is_saved(tmp_path):
    model = MKLClassifierCV(KERNELS, Cs=[1.0, 10.0], norms=[1.0], cv=3).fit(X, Y)
    model.save(tmp_path / "model.mkl")
    again = load(tmp_path / "model.mkl")
    assert type(again) is MKLClassifier
    assert again.C == model.C_
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X))


def test_sample_weights_reach_the_folds():
    """Samples of weight 0 count neither in training nor in the score."""
    rng = np.random.default_rng(0)
    noise = np.where(np.arange(150) >= 100, 0.0, 1.0)
    y = np.where(noise > 0, X[:, 0], rng.standard_normal(150))
    folds = [(np.arange(150) % 3 != k, np.arange(150) % 3 == k) for k in range(3)]
    folds = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in folds]
    weighted = MKLRegressorCV(KERNELS, Cs=[1.0, 100.0], norms=[1.0], cv=folds).fit(X, y, sample_weight=noise)
    assert weighted.best_score_ > 0.9


@pytest.mark.parametrize("kind", [MKLClassifierCV, MKLRegressorCV])
def test_what_runs_in_parallel_is_asked_for_again(kind):
    """Folds and norms that run in parallel have one thread each; the models that come back have what was asked for."""
    settings = {"Cs": [0.1, 1.0], "norms": [1.5, 2.0], "cv": 2, "scoring": "r2"}
    model = kind([Linear(), Gaussian(1.0)], n_jobs=2, **settings).fit(X[:60], Y[:60])
    assert model.best_estimator_.n_jobs == 2
    path = mkl_path([Linear()], X[:60], Y[:60], Cs=[1.0], norms=[1.5, 2.0], n_jobs=2)
    assert [point.model.n_jobs for point in path] == [2, 2]


def test_folds_and_norms_take_turns_on_a_device(monkeypatch):
    """One process for each of them would be as many on one device."""
    pytest.importorskip("torch")
    for module in (cv, path):
        monkeypatch.setattr(module, "Parallel", None)
    settings = {"norms": [1.5, 2.0], "Cs": [0.1, 1.0], "n_jobs": 2, "device": "torch:cpu"}
    search = MKLClassifierCV([Linear(), Gaussian(1.0)], cv=3, **settings).fit(X[:60], Y[:60])
    alone = MKLClassifierCV([Linear(), Gaussian(1.0)], cv=3, **{**settings, "n_jobs": None}).fit(X[:60], Y[:60])
    np.testing.assert_array_equal(search.scores_, alone.scores_)
    points = mkl_path([Linear(), Gaussian(1.0)], X[:60], Y[:60], **settings)
    assert [point.model.n_jobs for point in points] == [2] * 4


def test_cloning_leaves_the_original_alone(monkeypatch):
    """A connection to a cluster cannot be copied; it is not taken off the original for that, not even for a moment."""

    class Connection:
        def __deepcopy__(self, memo):
            raise TypeError("a connection cannot be copied")

    with config_context(enable_metadata_routing=True):
        model, touched = MKLClassifier(KERNELS, cluster=Connection()).set_fit_request(sample_weight=True), []

    def spy(self, name, value):
        touched.append(self)
        object.__setattr__(self, name, value)

    monkeypatch.setattr(MKLClassifier, "__setattr__", spy)
    copy = clone(model)
    assert touched
    assert not any(touch is model for touch in touched)
    assert copy is not model
    assert copy.cluster is model.cluster
    assert copy.get_params()["kernels"] is not model.kernels
    assert copy.get_metadata_routing().fit.requests["sample_weight"]


@pytest.mark.parametrize(("search", "single"), [(MKLClassifierCV, MKLClassifier), (MKLRegressorCV, MKLRegressor)])
def test_a_search_has_the_parameters_of_its_estimator(search, single):
    """With the defaults of the estimator, as scikit-learn sees them: in the signature, and in the docstring by name."""
    given, expected = inspect.signature(search).parameters, inspect.signature(single).parameters
    assert set(expected) - set(given) == {"C", "norm"}
    assert set(given) - set(expected) == {"Cs", "norms", "cv", "scoring"}
    assert [name for name in given if name in expected] == [name for name in expected if name in given]
    for name in set(given) & set(expected):
        assert given[name].default == expected[name].default == getattr(search(), name)
        assert given[name].kind == expected[name].kind
        assert name in search.__doc__


@pytest.mark.parametrize("search", [MKLClassifierCV, MKLRegressorCV])
def test_a_search_refuses_what_it_searches(search):
    for name in ("C", "norm", "unknown"):
        with pytest.raises(TypeError, match=name):
            search(**{name: 1.0})
    with pytest.raises(TypeError, match="too many positional"):
        search("standard", [1.0])


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
def test_a_fold_without_a_score_is_refused(n_jobs):
    """One row has no R2; the place of a NaN is not that of the best score."""
    search = MKLRegressorCV([Linear()], Cs=[0.1, 1.0], norms=[1.0], cv=LeaveOneOut(), n_jobs=n_jobs)
    with pytest.raises(ValueError, match=r"scoring must .* got nan for one of 1 held-out row\(s\), at C=0.1, norm=1"):
        search.fit(X[:6], X[:6, 0])
    assert not hasattr(search, "C_")
    search.set_params(scoring="neg_mean_absolute_error").fit(X[:6], X[:6, 0])
    assert np.isfinite(search.best_score_)


@pytest.mark.parametrize("score", [np.nan, -np.inf])
def test_a_scoring_that_returns_no_number_is_refused(score):
    search = MKLClassifierCV([Linear()], Cs=[0.1, 1.0], norms=[1.0], cv=2, scoring=lambda *_: score)
    with pytest.raises(ValueError, match="scoring must give a finite number"):
        search.fit(X[:40], Y[:40])


@pytest.mark.parametrize("approximation", [None, "nystroem"])
def test_dask_data_too_large_for_a_search_are_refused_with_advice_that_helps(approximation):
    da = pytest.importorskip("dask.array")
    pytest.importorskip("distributed")
    search = MKLClassifierCV(KERNELS, approximation=approximation, memory_budget="1kB")
    with pytest.raises(MemoryError, match=r"a search takes its folds from there; raise memory_budget, or .* mkl_path"):
        search.fit(da.from_array(X, chunks=(50, 5)), Y)


@pytest.mark.parametrize(
    ("kind", "options"), [(MKLClassifier, {}), (MKLClassifierCV, {"Cs": [1.0], "norms": [1.0], "cv": 2})]
)
def test_what_only_an_earlier_fit_has_set_is_gone(kind, options):
    model = kind([Linear(), Gaussian(1.0)], approximation=NystroemFeatures(10), random_state=0, **options).fit(X, Y)
    assert model.ranks_.sum() > 0
    assert model.approximation_error_.size == 2
    model.set_params(approximation=None).fit(X, Y)
    fresh = kind([Linear(), Gaussian(1.0)], **options).fit(X, Y)
    assert set(vars(model)) == set(vars(fresh))


def test_an_attempt_that_fails_leaves_the_fitted_model():
    model = MKLClassifierCV([Linear()], Cs=[1.0], norms=[1.0], cv=2).fit(X, Y)
    before = vars(model).copy()
    with pytest.raises(ValueError, match="2 classes"):
        model.fit(X, np.zeros(len(X)))
    assert vars(model) == before
