"""Multi-view models: groups from the kernels, weights of groups, views that some samples lack."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from manykernels import MKLClassifier, MKLClassifierCV, MKLRegressor, load, mkl_path
from manykernels.banks import Data, bind
from manykernels.banks.ladder_bank import LadderNames
from manykernels.kernels import Gaussian, GaussianLadder, KernelBank, Linear, Precomputed
from manykernels.kernels.lazy_names import sums_by_group
from manykernels.norms import MixedNorm

VIEWS = {"image": ["i0", "i1", "i2"], "text": ["t0", "t1"], "noise": ["n0", "n1"]}
KERNELS = [Gaussian(w, columns=columns, group=view) for view, columns in VIEWS.items() for w in (0.5, 2.0, 8.0)]


def frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 7)), columns=[c for columns in VIEWS.values() for c in columns])
    score = X["i0"] * X["i1"] + np.sin(2 * X["t0"]) + 0.3 * rng.standard_normal(n)
    return X, score.to_numpy()


def with_holes(seed=1, share=0.3):
    """A third of the samples lack the text, a few lack the image."""
    X, score = frame()
    rng = np.random.default_rng(seed)
    X.loc[rng.random(len(X)) < share, VIEWS["text"]] = np.nan
    X.loc[[3, 17], VIEWS["image"]] = np.nan
    return X, score


@pytest.mark.parametrize("q", [0.75, 1, 2, np.inf])
def test_groups_are_those_of_the_kernels(q):
    X, score = frame()
    model = MKLClassifier(KERNELS, norm=MixedNorm(q)).fit(X, score > 0)
    assert model.converged_
    assert model.group_names_ == ["image", "text", "noise"]
    assert model.group_weights_ == pytest.approx(model.weights_.reshape(3, 3).sum(axis=1))
    assert model.group_weights_.shape == (3,)
    if q == 1:
        assert model.group_weights_ == pytest.approx(np.ones(3))
    if q < 1:  # groups are selected, too
        assert model.group_weights_[2] < model.group_weights_[:2].min()


def test_groups_of_the_norm_go_first():
    X, score = frame()
    one = MKLClassifier(KERNELS, norm=MixedNorm(2, ["all"] * 9), tol=1e-5).fit(X, score > 0)
    plain = MKLClassifier(KERNELS, norm=1, tol=1e-5).fit(X, score > 0)
    assert one.objective_ == pytest.approx(plain.objective_, rel=1e-4)


@pytest.mark.parametrize("shared", [True, False])
def test_several_classes(shared):
    X, score = frame()
    y = np.digitize(score, [-0.5, 0.5])
    model = MKLClassifier(KERNELS, norm=MixedNorm(2), shared_weights=shared, C=10.0).fit(X, y)
    assert model.converged_
    assert model.group_weights_.shape == ((3,) if shared else (3, 3))
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
def test_regression(loss):
    X, score = frame()
    model = MKLRegressor(KERNELS, norm=MixedNorm(2), loss=loss, C=10.0).fit(X, score)
    assert model.converged_
    assert model.score(X, score) > 0.7


def test_every_solver_and_what_cannot():
    X, score = frame(60)
    values = [
        MKLClassifier(KERNELS, norm=MixedNorm(2), solver=solver, tol=tol).fit(X, score > 0).objective_
        for solver, tol in (("auto", 1e-4), ("newton", 1e-4), ("group_lasso", 1e-3), ("mirror", 2e-2))
    ]
    assert values == pytest.approx([values[0]] * 4, rel=2.1e-2)
    with pytest.raises(TypeError, match="projected"):
        MKLClassifier(KERNELS, norm=MixedNorm(2), solver="spg").fit(X, score > 0)


def test_a_search_scores_each_norm_as_a_fit_of_its_own():
    """Norms are cloned with their estimators, and learn their groups from the kernels of each."""
    X, score = frame(80)
    grid = {"norm": [MixedNorm(0.75), MixedNorm(2)], "C": [0.1, 10.0]}
    search = GridSearchCV(MKLClassifier(KERNELS), grid, cv=3, error_score="raise").fit(X, score > 0)
    alone = [
        cross_val_score(MKLClassifier(KERNELS, **settings), X, score > 0, cv=3).mean()
        for settings in search.cv_results_["params"]
    ]
    assert search.cv_results_["mean_test_score"] == pytest.approx(alone)
    assert len(set(alone)) > 1
    best = MKLClassifier(KERNELS, **search.best_params_).fit(X, score > 0)
    assert np.array_equal(search.best_estimator_.group_weights_, best.group_weights_)


def test_in_a_file_and_in_cross_validation(tmp_path):
    X, score = frame(80)
    model = MKLClassifier(KERNELS, norm=MixedNorm(np.inf)).fit(X, score > 0)
    model.save(tmp_path / "model.mkl")
    again = load(tmp_path / "model.mkl")
    assert again.norm == MixedNorm(np.inf)
    assert again.group_names_ == model.group_names_
    assert np.array_equal(again.group_weights_, model.group_weights_)
    assert np.allclose(again.decision_function(X), model.decision_function(X))
    tuned = MKLClassifierCV(KERNELS, norms=[1, MixedNorm(2)], Cs=[1.0, 10.0], cv=3).fit(X, score > 0)
    assert tuned.score(X, score > 0) > 0.7


# -- missing views --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [None, 250_000], ids=["plenty", "little memory"])
@pytest.mark.parametrize("normalize", ["mean_diag", "trace", "cosine", None])
def test_a_missing_view_counts_as_zero(normalize, budget):
    """The model is that of precomputed kernels with zeros in the rows and columns of the samples that lack the view."""
    X, score = with_holes()
    y = score > 0
    settings = {"norm": MixedNorm(2), "normalize": normalize, "tol": 1e-6, "memory_budget": budget}
    model = MKLClassifier(KERNELS, missing="ignore", **settings).fit(X, y)
    kernels = model.kernel(X)
    assert np.all(np.isfinite(kernels))
    assert np.linalg.eigvalsh(kernels)[0] >= -1e-9 * np.trace(kernels)
    stack = []
    for kernel in KERNELS:
        V = X[kernel.columns].to_numpy()
        K = np.nan_to_num(kernel.compute(np.nan_to_num(V), np.nan_to_num(V)))
        there = ~np.isnan(V[:, 0])
        K = K * there[:, None] * there
        stack.append(K / there.sum() if normalize == "trace" else K)
    expected = np.tensordot(model.weights_, stack, 1)
    assert kernels == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_new_samples_may_lack_views_too():
    X, score = with_holes()
    model = MKLClassifier(KERNELS, norm=MixedNorm(2), C=10.0, missing="ignore").fit(X, score > 0)
    new, truth = frame(seed=5)
    whole = np.mean(model.predict(new) == (truth > 0))
    new[VIEWS["text"]] = np.nan
    without = np.mean(model.predict(new) == (truth > 0))
    assert whole > without > 0.4
    new[:] = np.nan  # nothing is known: only the intercept is left
    assert model.decision_function(new) == pytest.approx(np.full(120, model.intercept_[0]))


def test_complete_data_give_the_same_model():
    X, score = frame()
    one, other = (MKLClassifier(KERNELS, norm=2, missing=m).fit(X, score > 0) for m in ("error", "ignore"))
    assert np.array_equal(one.weights_, other.weights_)


def test_a_linear_kernel_kept_as_a_factor():
    X, score = with_holes()
    model = MKLClassifier([Linear(columns=c, group=v) for v, c in VIEWS.items()], missing="ignore").fit(X, score > 0)
    K = model.kernel(X)
    assert model.converged_
    assert np.all(np.isfinite(K))
    arrays = [np.nan_to_num(X[columns].to_numpy()) for columns in VIEWS.values()]
    scales = [np.mean(np.sum(V[np.any(V != 0, axis=1)] ** 2, axis=1)) for V in arrays]
    expected = sum(w / s * V @ V.T for w, s, V in zip(model.weights_, scales, arrays, strict=True))
    assert pytest.approx(expected, abs=1e-9) == K


def test_it_survives_clone_files_and_pipelines(tmp_path):
    X, score = with_holes()
    model = clone(MKLClassifier(KERNELS, missing="ignore")).fit(X, score > 0)
    model.save(tmp_path / "m.mkl")
    assert np.allclose(load(tmp_path / "m.mkl").decision_function(X), model.decision_function(X))
    make_pipeline(MKLClassifier(KERNELS, missing="ignore")).fit(X, score > 0).predict(X)


def test_a_view_that_is_partly_missing_is_an_error_in_words():
    X, score = frame()
    X.loc[7, "t0"] = np.nan
    with pytest.raises(ValueError, match=r"row 7 lacks 1 of the 2 columns that Gaussian\(width=0.5\).* sees"):
        MKLClassifier(KERNELS, missing="ignore").fit(X, score > 0)
    whole, score = frame()
    model = MKLClassifier(KERNELS, missing="ignore").fit(whole, score > 0)
    with pytest.raises(ValueError, match="row 7 lacks 1 of the 2 columns"):
        model.predict(X)


@pytest.mark.parametrize("row", [7, 110])
@pytest.mark.parametrize("as_array", [False, True])
def test_a_search_names_the_row_of_the_whole_data(row, as_array):
    X, score = frame()
    X.loc[row, "t0"] = np.nan
    kernels = [Gaussian(2.0, columns=[3, 4])] if as_array else KERNELS
    with pytest.raises(ValueError, match=f"row {row} lacks 1 of the 2 columns"):
        MKLClassifierCV(kernels, cv=3, missing="ignore").fit(X.to_numpy() if as_array else X, score > 0)


def test_without_the_option_nan_is_the_usual_error():
    X, score = with_holes()
    with pytest.raises(ValueError, match="Input X contains NaN"):
        MKLClassifier(KERNELS).fit(X, score > 0)
    with pytest.raises(ValueError, match="missing must be one of 'error', 'ignore'"):
        MKLClassifier(KERNELS, missing="drop").fit(X, score > 0)


def test_what_does_not_go_together_is_refused():
    X, score = with_holes()
    with pytest.raises(ValueError, match="center=True needs samples that have all views"):
        MKLClassifier(KERNELS, missing="ignore", center=True).fit(X, score > 0)
    with pytest.raises(ValueError, match="missing='ignore' needs combination='sum'"):
        MKLClassifier(KERNELS, missing="ignore", combination="product").fit(X, score > 0)


def test_search_and_path_on_data_with_holes():
    X, score = with_holes()
    tuned = MKLClassifierCV(KERNELS, norms=[MixedNorm(2)], Cs=[1.0, 10.0], cv=3, missing="ignore").fit(X, score > 0)
    assert tuned.score(X, score > 0) > 0.7
    path = mkl_path(
        KERNELS, X, score > 0, Cs=[0.1, 1.0], norms=[1, MixedNorm(2), MixedNorm(np.inf), 2], missing="ignore"
    )
    assert all(point.model.converged_ for point in path)


def test_groups_of_a_million_kernels_are_counted_without_their_names(monkeypatch):
    monkeypatch.setattr(LadderNames, "text", lambda *_: pytest.fail("made a name for every kernel"))
    X, _ = frame(40)
    ladders = [GaussianLadder(columns=c, count=500_000, group=view) for view, c in VIEWS.items()]
    bank = bind(KernelBank([Linear(group="text"), *ladders]), Data(X.to_numpy(), X))
    names, weights = sums_by_group(bank.groups, np.ones((1, bank.n_kernels)))
    assert dict(zip(names, weights[0], strict=True)) == {"text": 500_001, "image": 500_000, "noise": 500_000}


def numbered(lacking):
    """Two precomputed kernels, each with its column of sample numbers; some samples lack the second."""
    X, score = frame(60)
    grams = [np.exp(-((A[:, None] - A[None]) ** 2).sum(axis=2)) for A in (X.to_numpy()[:, :3], X.to_numpy()[:, 3:])]
    numbers = np.column_stack([np.arange(60.0), np.arange(60.0)])
    numbers[lacking, 1] = np.nan
    return [Precomputed(K, columns=[j]) for j, K in enumerate(grams)], numbers, score > 0


@pytest.mark.parametrize("lacking", [[2, 5, 30], range(1, 60)], ids=["few", "all but one"])
def test_precomputed_kernels_that_samples_lack_in_a_file(lacking, tmp_path):
    kernels, numbers, y = numbered(lacking)
    model = MKLClassifier(kernels, norm=2, missing="ignore").fit(numbers, y)
    model.save(tmp_path / "model.mkl")
    again = load(tmp_path / "model.mkl")
    assert np.allclose(again.decision_function(numbers), model.decision_function(numbers))


def test_a_stack_says_nothing_of_training_samples_that_lack_the_view():
    kernels, numbers, y = numbered([2, 5, 30])
    model = MKLClassifier(kernels, norm=2, missing="ignore").fit(numbers, y)
    assert {2, 5, 30} & set(model.support_.tolist())
    stack = np.stack([kernel.K[:10] for kernel in kernels])
    whole = np.column_stack([np.arange(10.0), np.arange(10.0)])
    assert np.allclose(model.decision_function(stack), model.decision_function(whole))
