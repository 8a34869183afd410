"""Two-stage estimators against kernels that are written out, and learners that are fitted to them by hand."""

import pickle
import re
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC

from manykernels import AlignedKernel, TwoStageMKLClassifier, TwoStageMKLRegressor
from manykernels.kernels import Gaussian, GaussianFamily, GaussianLadder, KernelBank, Linear, Polynomial, ProductKernels
from tests.alignment import naive
from tests.estimators.refusals import ALL_ZERO

RNG = np.random.default_rng(0)
N = 48
X, Z = RNG.standard_normal((N, 3)) + 0.2, RNG.standard_normal((15, 3)) + 0.2
SIGNAL = X[:, 0] + 0.7 * X[:, 1] ** 2 + 0.1 * RNG.standard_normal(N)
VALUES, BINARY = SIGNAL + 3.0, np.where(np.median(SIGNAL) < SIGNAL, 1, -1)
WORDS = np.array(["low", "medium", "high"], dtype=object)[np.digitize(SIGNAL, np.quantile(SIGNAL, [0.4, 0.7]))]
WEIGHT = RNG.integers(1, 4, N).astype(float)
KERNELS = [Linear(columns=[0]), Linear(columns=[1, 2]), Gaussian(1.0), Gaussian(3.0, columns=[1]), Polynomial(2)]
ESTIMATORS = pytest.mark.parametrize(
    ("kind", "y"), [(TwoStageMKLClassifier, WORDS), (TwoStageMKLRegressor, VALUES), (AlignedKernel, WORDS)]
)
EXACT = SVC(kernel="precomputed", C=5.0, tol=1e-9)
RIDGE = KernelRidge(kernel="precomputed", alpha=0.3)


class PlainRidge(RegressorMixin, BaseEstimator):
    """Kernel ridge regression that takes no weights."""

    def __init__(self, kernel="precomputed", alpha=0.3):
        self.kernel, self.alpha = kernel, alpha

    def fit(self, K, y):
        self.coef_ = np.linalg.solve(K + self.alpha * np.eye(len(K)), y)
        return self

    def predict(self, K):
        return K @ self.coef_


def crosses(A, B):
    """The kernels of two sets of samples, not normalized."""

    def gaussian(A, B, width):
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * width**2))

    return np.array(
        [
            np.outer(A[:, 0], B[:, 0]),
            A[:, 1:] @ B[:, 1:].T,
            gaussian(A, B, 1.0),
            gaussian(A[:, [1]], B[:, [1]], 3.0),
            (A @ B.T + 1) ** 2,
        ]
    )


def levels(X=X, weight=None):
    return np.array([np.average(np.diag(K), weights=weight) for K in crosses(X, X)])


def by_hand(weights, A, B, X=X, weight=None):
    """The weighted sum of the kernels, each of mean diagonal 1 on the training data X."""
    return np.tensordot(weights / levels(X, weight), crosses(A, B), 1)


def outer(y):
    return np.outer(y, y) if y.dtype.kind == "f" else naive.same_class(y)


def grams(X=X, weight=None):
    return crosses(X, X) / levels(X, weight)[:, None, None]


# -- the kernel --------------------------------------------------------------------------------------------


@ESTIMATORS
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_the_kernel_is_the_best_sum_of_normalized_kernels(kind, y, weight):
    model = kind(KERNELS, alignment="qp").fit(X, y, weight)
    expected, weights = naive.best(grams(weight=weight), outer(y), weight)
    np.testing.assert_allclose(model.weights_, weights, atol=1e-6)
    assert model.alignment_ == pytest.approx(expected, abs=1e-9)
    assert model.alignment_bound_ == pytest.approx(expected, abs=1e-7)
    assert model.alignment_gap_ == model.alignment_bound_ - model.alignment_
    np.testing.assert_allclose(model.kernel(Z, X), by_hand(model.weights_, Z, X, weight=weight), rtol=1e-9)
    np.testing.assert_allclose(model.kernel(Z), by_hand(model.weights_, Z, Z, weight=weight), rtol=1e-9)
    assert model.alignment_ == pytest.approx(naive.alignment(model.kernel(X), outer(y), weight), abs=1e-9)


@pytest.mark.parametrize("alignment", ["greedy", "qp", "stagewise", "frank_wolfe"])
@ESTIMATORS
def test_every_way_comes_near_the_best_alignment(kind, y, alignment):
    model = kind(KERNELS, alignment=alignment, validation_fraction=None, max_iter=300).fit(X, y)
    expected = naive.best(grams(), outer(y))[0]
    assert expected - 2e-3 <= model.alignment_ <= expected + 1e-9
    assert expected <= model.alignment_bound_ + 1e-9
    assert model.converged_ == (model.alignment_gap_ <= model.tol)
    assert model.converged_ or alignment in ("stagewise", "frank_wolfe")  # whose bounds close slowly
    assert model.weights_.sum() == pytest.approx(1.0)


@ESTIMATORS
def test_weights_that_are_not_optimized(kind, y):
    model = kind(KERNELS, alignment="uniform").fit(X, y)
    np.testing.assert_allclose(model.weights_, 1 / len(KERNELS))
    own = np.array([naive.alignment(K, outer(y)) for K in grams()])
    model = kind(KERNELS, alignment="independent").fit(X, y)
    np.testing.assert_allclose(model.weights_, own / own.sum(), atol=1e-9)
    assert np.isnan(model.alignment_bound_)
    assert model.alignment_ == pytest.approx(naive.alignment(model.kernel(X), outer(y)), abs=1e-9)


@pytest.mark.parametrize("normalize", ["mean_diag", "trace", "cosine", None])
def test_kernels_are_normalized_as_asked_for(normalize):
    model = TwoStageMKLClassifier(KERNELS, alignment="uniform", normalize=normalize).fit(X, BINARY)
    raw, cross = crosses(X, X), crosses(Z, X)
    if normalize == "cosine":
        lengths = np.sqrt(np.diagonal(crosses(Z, Z), axis1=1, axis2=2))
        cross = cross / lengths[:, :, None] / np.sqrt(np.diagonal(raw, axis1=1, axis2=2))[:, None]
    scale = {"mean_diag": levels(), "trace": N * levels()}.get(normalize, np.ones(len(KERNELS)))
    np.testing.assert_allclose(model.kernel(Z, X), np.mean(cross / scale[:, None, None], axis=0), rtol=1e-9)


@pytest.mark.parametrize("scales", [[1e-60, 1e60], [1e9, 1e9], [1e-9, 1e-9]])
@pytest.mark.parametrize("alignment", ["greedy", "qp"])
def test_the_scale_of_kernels_that_are_not_normalized(scales, alignment):
    stack = [scales[0] * grams()[0], scales[1] * grams()[2]]
    model = AlignedKernel(KernelBank.from_arrays(stack), alignment=alignment, normalize=None, tol=1e-8)
    model.fit(np.arange(N)[:, None], BINARY)
    assert model.alignment_ == pytest.approx(naive.best(grams()[[0, 2]], outer(BINARY))[0], abs=1e-7)


def test_a_family_of_widths():
    model = TwoStageMKLClassifier(GaussianFamily(0.3, 30.0), random_state=0).fit(X, WORDS)
    widths = [float(name.split("width=")[1].split(")")[0]) for name in model.kernel_names_]
    K = sum(d * naive.gaussian(X, w) for d, w in zip(model.weights_, widths, strict=True))
    np.testing.assert_allclose(model.kernel(X), K, atol=1e-5)
    listed = naive.best([naive.gaussian(X, w) for w in np.geomspace(0.3, 30.0, 100)], outer(WORDS))[0]
    assert model.alignment_ == pytest.approx(listed, abs=2e-3)
    assert model.score(X, WORDS) > 0.8


def test_a_family_of_products():
    model = TwoStageMKLRegressor(ProductKernels([Linear(columns=[j]) for j in range(3)], 2), tol=1e-6)
    model.fit(X, VALUES)
    base = [np.outer(x, x) / np.mean(x**2) for x in X.T]
    every = base + [base[i] * base[j] for i in range(3) for j in range(i + 1)]
    assert model.alignment_ == pytest.approx(naive.best(every, outer(VALUES))[0], abs=1e-4)
    assert model.score(X, VALUES) > 0.9


def test_a_ladder():
    ladder = KernelBank([GaussianLadder(low=0.5, high=20.0, count=600), Linear(columns=[0])])
    model = TwoStageMKLRegressor(ladder, alignment="qp").fit(X, VALUES)  # more than 512: kernels on demand
    listed = [grams()[0], *(naive.gaussian(X, w) for w in np.geomspace(0.5, 20.0, 600))]
    K = np.tensordot(model.weights_, listed, 1)
    np.testing.assert_allclose(model.kernel(X), K, atol=1e-7)
    assert model.alignment_ == pytest.approx(naive.alignment(K, outer(VALUES)), abs=1e-6)
    assert model.alignment_ >= naive.best(listed[::5], outer(VALUES))[0] - 1e-6


def test_a_thousand_kernels_on_25_samples():
    """More than 512: the kernels are taken in on demand, to the same optimum."""
    rng = np.random.default_rng(3)
    V = rng.standard_normal((25, 5))
    y = np.sign(V[:, 0] * V[:, 1] + 0.3 * rng.standard_normal(25)).astype(int)
    pairs = [(i, j) for i in range(5) for j in range(i + 1)][:10]
    widths = np.geomspace(0.2, 20.0, 100)
    kernels = [Gaussian(w, columns=sorted({i, j})) for i, j in pairs for w in widths]
    every = [naive.gaussian(V[:, sorted({i, j})], w) for i, j in pairs for w in widths]
    model = TwoStageMKLClassifier(kernels, alignment="qp", validation_fraction=None).fit(V, y)
    expected = naive.best(every, naive.same_class(y))[0]
    assert len(model.weights_) == 1000
    assert model.converged_
    assert model.alignment_ == pytest.approx(expected, abs=1e-6)
    assert expected <= model.alignment_bound_ + 1e-9
    assert model.alignment_gap_ < 1e-4
    assert model.alignment_ == pytest.approx(
        naive.alignment(np.tensordot(model.weights_, every, 1), outer(y)), abs=1e-7
    )


def test_little_memory_changes_nothing():
    plain, small = (
        TwoStageMKLClassifier(KERNELS, alignment="qp", memory_budget=memory, random_state=0).fit(X, WORDS)
        for memory in (None, "180 kB")
    )
    np.testing.assert_allclose(small.weights_, plain.weights_, atol=1e-7)
    with pytest.raises(MemoryError, match="memory_budget is 10 kB"):
        TwoStageMKLClassifier(KERNELS, memory_budget="10 kB").fit(X, WORDS)


def test_what_the_attributes_say():
    model = TwoStageMKLClassifier(KERNELS, random_state=0).fit(X, WORDS)
    assert list(model.kernel_names_)[:2] == ["Linear on x0", "Linear on x1, x2"]
    np.testing.assert_array_equal(model.active_, np.flatnonzero(model.weights_))
    assert model.group_weights_.sum() == pytest.approx(1.0)
    expected = np.zeros(3)
    for columns, d in zip(([0], [1, 2], [0, 1, 2], [1], [0, 1, 2]), model.weights_, strict=True):
        expected[columns] += d / len(columns)
    np.testing.assert_allclose(model.feature_importances_, expected, atol=1e-12)
    assert len(model.trace_) == model.n_iter_
    assert model.n_features_in_ == 3
    assert model.alignment_gap_is_exact_


# -- samples held out --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fraction", [0.25, 0.5])
@pytest.mark.parametrize("y", [WORDS, VALUES], ids=["classes", "values"])
def test_the_alignment_on_samples_held_out(y, fraction):
    """They are the first of a permutation of the rows; the kernel and its normalization are learned on the rest."""
    model = AlignedKernel(KERNELS, alignment="qp", validation_fraction=fraction, random_state=7).fit(X, y)
    order = np.random.RandomState(7).permutation(N)
    out, rest = order[: round(fraction * N)], order[round(fraction * N) :]
    weights = naive.best(grams(X[rest]), outer(y[rest]))[1]
    K = by_hand(weights, X[out], X[out], X[rest])
    assert model.held_out_alignment_ == pytest.approx(naive.alignment(K, outer(y[out])), abs=1e-6)
    # The kernel itself is learned on all.
    np.testing.assert_allclose(model.weights_, naive.best(grams(), outer(y))[1], atol=1e-6)


def test_samples_held_out_depend_on_the_random_state_alone():
    def held_out(state):
        model = TwoStageMKLClassifier(KERNELS, alignment="uniform", learner=EXACT, random_state=state)
        return model.fit(X, BINARY).held_out_alignment_

    assert held_out(0) == held_out(0)
    assert held_out(0) != held_out(1)


def test_nothing_is_held_out_of_few_samples_or_if_not_asked_for():
    assert np.isnan(TwoStageMKLClassifier(KERNELS).fit(X[:19], BINARY[:19]).held_out_alignment_)
    assert np.isnan(TwoStageMKLClassifier(KERNELS, validation_fraction=None).fit(X, BINARY).held_out_alignment_)
    assert np.isnan(AlignedKernel(KERNELS).fit(X, BINARY).held_out_alignment_)


def test_a_warning_tells_of_overfitting():
    rng = np.random.default_rng(6)
    V, y = rng.standard_normal((40, 60)), rng.permutation(np.arange(40) % 2)
    kernels = [Linear(columns=[j]) for j in range(60)]
    with pytest.warns(UserWarning, match="The kernel overfits: its alignment is 0.* on the training data, but"):
        model = TwoStageMKLClassifier(kernels, alignment="qp", random_state=0).fit(V, y)
    assert model.held_out_alignment_ < 0.5 * model.alignment_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TwoStageMKLClassifier(KERNELS, alignment="qp", random_state=0).fit(X, BINARY)


@pytest.mark.filterwarnings("ignore:The kernel overfits")
def test_a_warning_tells_of_too_few_steps():
    with pytest.warns(ConvergenceWarning, match="stopped after 1 steps.* raise max_iter"):
        model = TwoStageMKLClassifier(KERNELS, alignment="frank_wolfe", max_iter=1).fit(X, BINARY)
    assert not model.converged_


def test_shrinkage_is_chosen_on_samples_held_out():

    def family(shrinkage):
        return GaussianFamily(0.3, 30.0, per_feature=True, n_starts=0, shrinkage=shrinkage)

    options = {"validation_fraction": 0.3, "random_state": 0, "max_iter": 1, "tol": 0.9}
    strengths = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = [
            AlignedKernel(family(strength), **options).fit(X[:24], BINARY[:24]).held_out_alignment_
            for strength in strengths
        ]
        model = AlignedKernel(family("auto"), **options).fit(X[:24], BINARY[:24])
        fixed = AlignedKernel(family(model.shrinkage_), **options).fit(X[:24], BINARY[:24])
    assert model.held_out_alignment_ == pytest.approx(max(scores), abs=1e-9)
    assert model.shrinkage_ == strengths[int(np.argmax(scores))]
    np.testing.assert_allclose(model.transform(Z), fixed.transform(Z), rtol=1e-9)


def test_too_few_samples_to_choose_the_shrinkage_by_are_refused():
    family = GaussianFamily(0.3, 30.0, per_feature=True, n_starts=0, shrinkage="auto")
    with pytest.raises(ValueError, match=r"shrinkage='auto'\) needs 20 samples"):
        TwoStageMKLClassifier(family).fit(X[:12], BINARY[:12])


# -- the learner -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("y", [BINARY, WORDS], ids=["two classes", "three classes"])
def test_predictions_are_those_of_a_classifier_fitted_by_hand(y, weight):
    model = TwoStageMKLClassifier(KERNELS, learner=EXACT, alignment="qp").fit(X, y, weight)
    learner = clone(EXACT).fit(by_hand(model.weights_, X, X, weight=weight), y, weight)
    K = by_hand(model.weights_, Z, X, weight=weight)
    np.testing.assert_array_equal(model.predict(Z), learner.predict(K))
    np.testing.assert_allclose(model.decision_function(Z), learner.decision_function(K), atol=1e-5)
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert model.best_params_ == {}
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("learner", [RIDGE, SVR(kernel="precomputed", C=3.0, tol=1e-9)])
def test_predictions_are_those_of_a_regressor_fitted_by_hand(learner, weight):
    model = TwoStageMKLRegressor(KERNELS, learner=learner, alignment="qp").fit(X, VALUES, weight)
    offset = np.average(VALUES, weights=weight)
    own = clone(learner).fit(by_hand(model.weights_, X, X, weight=weight), VALUES - offset, sample_weight=weight)
    expected = own.predict(by_hand(model.weights_, Z, X, weight=weight)) + offset
    np.testing.assert_allclose(model.predict(Z), expected, atol=1e-5)
    assert model.offset_ == pytest.approx(offset)


def test_a_learner_without_weights_sees_repeated_samples_as_often_as_they_are_there():
    rows = np.r_[0:N, 0:7, 0:3]
    model = TwoStageMKLRegressor(KERNELS, learner=PlainRidge(), alignment="qp").fit(X[rows], VALUES[rows])
    offset = VALUES[rows].mean()
    learner = PlainRidge().fit(by_hand(model.weights_, X[rows], X[rows], X[rows]), VALUES[rows] - offset)
    expected = learner.predict(by_hand(model.weights_, Z, X[rows], X[rows])) + offset
    np.testing.assert_allclose(model.predict(Z), expected, atol=1e-8)


def test_a_learner_without_weights_takes_only_equal_ones():
    options = {"learner": PlainRidge(), "alignment": "qp"}
    plain = TwoStageMKLRegressor(KERNELS, **options).fit(X, VALUES)
    for unit in (2.0, 1e-6, 1e6):
        model = TwoStageMKLRegressor(KERNELS, **options).fit(X, VALUES, np.full(N, unit))
        np.testing.assert_allclose(model.predict(Z), plain.predict(Z), atol=1e-7)
    half = np.where(np.arange(N) < 30, 1.0, 0.0)
    model = TwoStageMKLRegressor(KERNELS, **options).fit(X, VALUES, half)
    part = TwoStageMKLRegressor(KERNELS, **options).fit(X[:30], VALUES[:30])
    np.testing.assert_allclose(model.predict(Z), part.predict(Z), atol=1e-8)
    with pytest.raises(ValueError, match="sample_weight cannot be used: PlainRidge takes none"):
        TwoStageMKLRegressor(KERNELS, **options).fit(X, VALUES, WEIGHT)


def test_other_learners():
    model = TwoStageMKLClassifier(KERNELS, learner=NuSVC(nu=0.2, kernel="precomputed")).fit(X, WORDS)
    assert model.score(X, WORDS) > 0.8
    assert not hasattr(model, "predict_proba")
    assert isinstance(model.learner_, NuSVC)


def test_what_a_learner_cannot_do_the_model_cannot():
    class Certain(BaseEstimator):
        def __init__(self, kernel="precomputed"):
            self.kernel = kernel

        def fit(self, K, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, K):
            return np.full(len(K), self.classes_[0])

        def predict_proba(self, K):
            return np.eye(len(self.classes_))[np.zeros(len(K), int)]

    model = TwoStageMKLClassifier(KERNELS, learner=Certain()).fit(X, WORDS)
    assert not hasattr(model, "decision_function")
    np.testing.assert_array_equal(model.predict_proba(Z), np.eye(3)[np.zeros(len(Z), int)])
    assert hasattr(TwoStageMKLClassifier(), "decision_function")
    assert not hasattr(TwoStageMKLClassifier(), "predict_proba")


# -- the grid ----------------------------------------------------------------------------------------------

CS, ALPHAS = (0.01, 0.1, 1.0, 100.0), (1e-4, 1e-2, 1.0, 1e2)
SPLITS = list(KFold(4, shuffle=True, random_state=3).split(X))
FOLDS = {"splitter": KFold(4, shuffle=True, random_state=3), "list": SPLITS, "tuple": tuple(SPLITS)}


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("cv", FOLDS.values(), ids=FOLDS)
def test_the_grid_of_a_regressor_is_scored_on_the_folds(cv, weight):
    model = TwoStageMKLRegressor(KERNELS, alignment="qp", learner=RIDGE, grid={"alpha": ALPHAS}, cv=cv)
    model.fit(X, VALUES, weight)
    w = np.ones(N) if weight is None else weight
    K, y = by_hand(model.weights_, X, X, weight=weight), VALUES - np.average(VALUES, weights=w)
    losses = []
    for alpha in ALPHAS:
        learner = KernelRidge(kernel="precomputed", alpha=alpha)
        predicted = [
            (test, learner.fit(K[np.ix_(train, train)], y[train], w[train]).predict(K[np.ix_(test, train)]))
            for train, test in SPLITS
        ]
        losses.append(sum(w[test] @ (own - y[test]) ** 2 for test, own in predicted))
    assert model.best_params_ == {"alpha": ALPHAS[int(np.argmin(losses))]}
    assert model.learner_.alpha == ALPHAS[int(np.argmin(losses))]


@pytest.mark.parametrize("cv", FOLDS.values(), ids=FOLDS)
def test_the_grid_of_a_classifier_is_scored_on_the_folds(cv):
    model = TwoStageMKLClassifier(KERNELS, alignment="qp", grid={"C": CS}, cv=cv).fit(X, WORDS)
    K = by_hand(model.weights_, X, X)
    hits = []
    for C in CS:
        learner = SVC(kernel="precomputed", C=C)
        hits.append(
            sum(
                np.sum(
                    learner.fit(K[np.ix_(train, train)], WORDS[train]).predict(K[np.ix_(test, train)]) == WORDS[test]
                )
                for train, test in SPLITS
            )
        )
    assert model.best_params_ == {"C": CS[int(np.argmax(hits))]}


def test_folds_of_rows_that_repeat_are_folds_of_rows():
    """With folds of one's own, a row may be learned from while its copy is scored."""
    rows = np.r_[0:N, 0:10]
    splits = list(KFold(3).split(rows))
    options = {"alignment": "qp", "learner": PlainRidge(), "grid": {"alpha": ALPHAS}, "cv": splits}
    model = TwoStageMKLRegressor(KERNELS, **options).fit(X[rows], VALUES[rows])
    K, y = by_hand(model.weights_, X[rows], X[rows], X[rows]), VALUES[rows] - VALUES[rows].mean()
    losses = [
        sum(
            np.sum((PlainRidge(alpha=a).fit(K[np.ix_(s, s)], y[s]).predict(K[np.ix_(t, s)]) - y[t]) ** 2)
            for s, t in splits
        )
        for a in ALPHAS
    ]
    assert model.best_params_ == {"alpha": ALPHAS[int(np.argmin(losses))]}


def test_a_number_of_folds_and_a_list_of_grids():
    model = TwoStageMKLClassifier(KERNELS, cv=3).fit(X, WORDS)
    assert set(model.best_params_) == {"C"}
    assert model.best_params_["C"] == model.learner_.C
    assert set(TwoStageMKLRegressor(KERNELS, cv=np.int64(3)).fit(X, VALUES).best_params_) == {"alpha"}
    grids = [{"C": [1.0]}, {"C": [10.0], "class_weight": ["balanced"]}]
    folds = StratifiedKFold(3)
    model = TwoStageMKLClassifier(KERNELS, grid=grids, cv=folds, alignment="qp").fit(X, WORDS)
    K, settings = model.kernel(X), [{"C": 1.0}, {"C": 10.0, "class_weight": "balanced"}]
    scores = [cross_val_score(SVC(kernel="precomputed", **own), K, WORDS, cv=folds).mean() for own in settings]
    assert scores[0] != scores[1]
    assert model.best_params_ == settings[int(np.argmax(scores))]


def test_threads_change_nothing():
    with joblib.parallel_backend("threading"):
        parallel = TwoStageMKLClassifier(KERNELS, n_jobs=2).fit(X, WORDS)
    assert parallel.best_params_ == TwoStageMKLClassifier(KERNELS).fit(X, WORDS).best_params_


def test_splits_may_be_lists():
    splits = [(train.tolist(), test.tolist()) for train, test in SPLITS]
    model, same = (
        TwoStageMKLRegressor(KERNELS, grid={"alpha": ALPHAS}, cv=cv).fit(X, VALUES) for cv in (splits, SPLITS)
    )
    assert model.best_params_ == same.best_params_
    np.testing.assert_array_equal(model.predict(Z), same.predict(Z))


def test_splits_that_are_used_up_are_an_error():
    model, same = (
        TwoStageMKLRegressor(KERNELS, grid={"alpha": ALPHAS}, cv=cv).fit(X, VALUES) for cv in (iter(SPLITS), SPLITS)
    )
    assert model.best_params_ == same.best_params_
    with pytest.raises(ValueError, match="cv"):
        model.fit(X, VALUES)


def test_a_class_of_one_sample():
    y = WORDS.copy()
    y[0] = "unique"
    model = TwoStageMKLClassifier(KERNELS).fit(X, y)
    assert model.classes_.tolist() == ["high", "low", "medium", "unique"]
    assert model.score(X, y) > 0.8


def test_a_class_of_one_sample_does_not_turn_off_the_grid():
    y = WORDS.copy()
    y[0] = "unique"
    assert set(TwoStageMKLClassifier(KERNELS).fit(X, y).best_params_) == {"C"}


# -- data --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TwoStageMKLClassifier, TwoStageMKLRegressor])
def test_a_weight_counts_like_copies(kind):
    y, learner = (WORDS, EXACT) if kind is TwoStageMKLClassifier else (VALUES, RIDGE)
    copies = np.repeat(np.arange(N), WEIGHT.astype(int))
    weighted = kind(KERNELS, learner=learner, random_state=0).fit(X, y, WEIGHT)
    repeated = kind(KERNELS, learner=learner, random_state=0).fit(X[copies], y[copies])
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-9)
    assert weighted.held_out_alignment_ == pytest.approx(repeated.held_out_alignment_, abs=1e-9)
    np.testing.assert_allclose(weighted.kernel(Z), repeated.kernel(Z), rtol=1e-9)
    if kind is TwoStageMKLClassifier:
        np.testing.assert_array_equal(weighted.predict(Z), repeated.predict(Z))
    else:
        np.testing.assert_allclose(weighted.predict(Z), repeated.predict(Z), rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_weights_does_not_change_the_kernel(factor):
    plain, scaled = (AlignedKernel(KERNELS).fit(X, WORDS, c * WEIGHT) for c in (1.0, factor))
    np.testing.assert_allclose(scaled.transform(Z), plain.transform(Z), rtol=1e-7)


def test_a_transformer_has_a_column_for_each_row():
    rows = np.r_[0:N, 0:10]
    model = AlignedKernel(KERNELS, alignment="qp").fit(X[rows], WORDS[rows])
    K = model.transform(Z)
    assert K.shape == (len(Z), N + 10)
    np.testing.assert_allclose(K[:, N:], K[:, :10])
    np.testing.assert_allclose(K, by_hand(model.weights_, Z, X[rows], X[rows]), rtol=1e-9)
    copies = AlignedKernel(KERNELS, alignment="qp").fit(X, WORDS, 1.0 + (np.arange(N) < 10))
    np.testing.assert_allclose(copies.weights_, model.weights_, atol=1e-7)
    np.testing.assert_allclose(model.fit_transform(X, WORDS), model.transform(X))


def test_a_transformer_has_a_column_for_a_row_of_weight_zero():
    pipeline = make_pipeline(AlignedKernel(KERNELS), SVC(kernel="precomputed"))
    pipeline.fit(X, WORDS, alignedkernel__sample_weight=np.where(np.arange(N) < 5, 0.0, 1.0))
    assert pipeline[0].transform(X[:3]).shape == (3, N)


def test_a_transformer_warns_of_whole_numbers_that_are_hardly_classes():
    with pytest.warns(UserWarning, match="target='values'"):
        assert AlignedKernel(KERNELS).fit(X, np.arange(N)).target_ == "classes"
    assert AlignedKernel(KERNELS, target="values").fit(X, np.arange(N)).target_ == "values"


def test_what_is_wrong_with_learner_grid_and_folds_is_said_before_any_work():
    for options, error, words in (
        ({"learner": SVC}, TypeError, "learner must be a scikit-learn estimator"),
        ({"learner": make_pipeline(SVC())}, ValueError, "svc__kernel='precomputed'"),
        ({"grid": {"D": [1.0]}}, ValueError, "grid names parameters"),
        ({"cv": 3.0}, ValueError, "cv must be at least 2"),
    ):
        with pytest.raises(error, match=words):
            TwoStageMKLClassifier(KERNELS, **options).fit(X, WORDS)


def test_a_transformer_names_its_columns():
    assert len(AlignedKernel(KERNELS).fit(X, WORDS).get_feature_names_out()) == N


def test_a_transformer_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), AlignedKernel(KERNELS), SVC(kernel="precomputed", C=10.0))
    assert cross_val_score(pipeline, X, WORDS, cv=3).mean() > 0.6
    regression = make_pipeline(AlignedKernel(KERNELS), RIDGE).fit(X, VALUES - VALUES.mean())
    model = TwoStageMKLRegressor(KERNELS, learner=RIDGE, validation_fraction=None).fit(X, VALUES)
    np.testing.assert_allclose(regression.predict(Z) + VALUES.mean(), model.predict(Z), atol=1e-4)


def test_tables_with_names():
    table = pd.DataFrame(X, columns=["age", "dose", "rest"])
    kernels = [Linear(columns="age"), Linear(columns=["dose", "rest"]), Gaussian(1.0)]
    named = TwoStageMKLClassifier(kernels, random_state=0).fit(table, WORDS)
    same = [Linear(columns=[0]), Linear(columns=[1, 2]), Gaussian(1.0)]
    plain = TwoStageMKLClassifier(same, random_state=0).fit(X, WORDS)
    np.testing.assert_array_equal(named.predict(pd.DataFrame(Z, columns=table.columns)), plain.predict(Z))
    np.testing.assert_array_equal(named.feature_names_in_, ["age", "dose", "rest"])
    assert list(named.kernel_names_)[:2] == ["Linear on age", "Linear on dose, rest"]
    assert named.held_out_alignment_ == plain.held_out_alignment_
    with pytest.raises(ValueError, match="feature names"):
        named.predict(pd.DataFrame(Z, columns=["dose", "age", "rest"]))


@ESTIMATORS
def test_sparse_data(kind, y):
    V = np.where(np.abs(X) > 0.5, X, 0.0)
    dense, sparse = (kind(KERNELS, alignment="qp").fit(data, y) for data in (V, sp.csr_matrix(V)))
    np.testing.assert_allclose(sparse.weights_, dense.weights_, atol=1e-8)
    np.testing.assert_allclose(sparse.kernel(sp.csr_array(Z)), dense.kernel(Z), atol=1e-9)


def test_sparse_data_and_a_family():
    V = np.where(np.abs(X) > 0.5, X, 0.0)
    dense, sparse = (AlignedKernel(GaussianFamily(0.3, 30.0)).fit(data, WORDS) for data in (V, sp.csr_matrix(V)))
    np.testing.assert_allclose(sparse.transform(sp.csr_matrix(Z)), dense.transform(Z), atol=1e-6)


def test_kernels_that_were_computed_elsewhere():
    every = np.r_[X, Z]
    bank, numbers = KernelBank.from_arrays(crosses(every, every)), np.arange(len(every))[:, None]
    model = TwoStageMKLClassifier(bank, alignment="qp", learner=EXACT).fit(numbers[:N], WORDS)
    plain = TwoStageMKLClassifier(KERNELS, alignment="qp", learner=EXACT).fit(X, WORDS)
    np.testing.assert_allclose(model.weights_, plain.weights_, atol=1e-8)
    np.testing.assert_allclose(model.decision_function(numbers[N:]), plain.decision_function(Z), atol=1e-6)
    np.testing.assert_allclose(model.decision_function(crosses(Z, X)), plain.decision_function(Z), atol=1e-6)
    np.testing.assert_array_equal(model.predict(crosses(Z, X)), plain.predict(Z))
    with pytest.raises(ValueError, match=r"stack of shape .* must have shape \(5 kernels"):
        model.predict(crosses(Z, X)[:4])


def test_a_stack_has_the_columns_of_rows_that_repeat():
    rows = np.r_[0:N, 0:10]
    bank = KernelBank.from_arrays(crosses(X, X))
    for learner in (RIDGE, PlainRidge()):
        model = TwoStageMKLRegressor(bank, learner=learner, alignment="qp").fit(rows[:, None], VALUES[rows])
        expected = TwoStageMKLRegressor(KERNELS, learner=learner, alignment="qp").fit(X[rows], VALUES[rows]).predict(Z)
        np.testing.assert_allclose(model.predict(crosses(Z, X[rows])), expected, atol=1e-7)
    transformer = AlignedKernel(bank, alignment="qp").fit(rows[:, None], VALUES[rows])
    K = by_hand(transformer.weights_, Z, X[rows], X[rows])
    np.testing.assert_allclose(transformer.transform(crosses(Z, X[rows])), K, rtol=1e-8)


def test_views_that_some_samples_lack():
    """A kernel is 0 where a sample lacks its columns, and normalized on those that have them."""
    V, there = X.copy(), np.arange(N) >= 9
    V[~there, 1:] = np.nan
    kernels = [Linear(columns=[0]), Linear(columns=[1, 2])]
    model = TwoStageMKLRegressor(kernels, alignment="qp", missing="ignore", learner=RIDGE).fit(V, VALUES)
    second = X[:, 1:] * there[:, None]
    raw = [np.outer(X[:, 0], X[:, 0]), second @ second.T]
    listed = [raw[0] / np.mean(X[:, 0] ** 2), raw[1] / np.mean(np.diag(raw[1])[there])]
    expected, weights = naive.best(listed, outer(VALUES))
    np.testing.assert_allclose(model.weights_, weights, atol=1e-7)
    assert model.alignment_ == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(model.kernel(V), np.tensordot(weights, listed, 1), atol=1e-6)
    K = model.kernel(V)
    own = clone(RIDGE).fit(K, VALUES - VALUES.mean()).predict(K) + VALUES.mean()
    np.testing.assert_allclose(model.predict(V), own, atol=1e-6)
    V[0, 1] = 0.0
    with pytest.raises(ValueError, match="row 0 lacks 1 of the 2 columns"):
        model.fit(V, VALUES)


@pytest.mark.parametrize("n", [2, 3])
def test_very_few_samples(n):
    V, y = np.array([[0.0, 1.0, 2.0], [1.0, 3.0, 0.0], [5.0, 2.0, 1.0]])[:n], np.array([0, 1, 1])[:n]
    for alignment in ("greedy", "qp", "independent", "uniform"):
        model = TwoStageMKLClassifier(KERNELS, alignment=alignment).fit(V, y)
        assert set(model.predict(V)) <= {0, 1}
        model = TwoStageMKLRegressor(KERNELS, alignment=alignment, learner=RIDGE).fit(V, y.astype(float))
        assert np.all(np.isfinite(model.predict(V)))
        assert 0.0 <= model.alignment_ <= 1.0 + 1e-12
    found = AlignedKernel(KERNELS).fit(V, y)
    assert found.alignment_bound_ >= found.alignment_ - 1e-12


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("alignment", ["greedy", "qp", "independent", "uniform"])
def test_constant_features(alignment):
    V = np.column_stack([X[:, :2], np.full(N, 1 / 3)])
    kernels = [Linear(columns=[0]), Gaussian(1.0, columns=[1]), Linear(columns=[2]), Gaussian(2.0, columns=[2])]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = TwoStageMKLClassifier(kernels, alignment=alignment).fit(V, BINARY)
    np.testing.assert_array_equal(model.weights_[2:], 0.0)


def test_only_constant_features_and_a_family():
    for alignment in ("greedy", "stagewise", "frank_wolfe"):
        for seed in range(6):
            y = np.random.default_rng(seed).standard_normal(N)
            model = TwoStageMKLRegressor(GaussianFamily(0.1, 10.0), alignment=alignment).fit(np.full((N, 2), 0.5), y)
            np.testing.assert_allclose(model.predict(np.full((1, 2), 0.5)), y.mean(), atol=1e-8)


@pytest.mark.parametrize("alignment", ["greedy", "qp", "uniform", "independent"])
@pytest.mark.parametrize("value", [2.0, 0.0])
def test_a_constant_target(alignment, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = TwoStageMKLRegressor(KERNELS, alignment=alignment).fit(X, np.full(N, value))
    np.testing.assert_allclose(model.predict(Z), value)


def test_a_constant_target_with_rounding_has_alignment_zero():
    assert TwoStageMKLRegressor(KERNELS).fit(X, np.full(N, 0.1)).alignment_ == pytest.approx(0.0, abs=1e-9)


def test_labels_of_every_kind():
    for labels in (np.array(["b", "a"]), np.array([True, False]), np.array([7, -3]), np.array([2.0, 1.0])):
        y = labels[(BINARY > 0).astype(int)]
        model = TwoStageMKLClassifier(KERNELS, learner=EXACT, alignment="qp").fit(X, y)
        assert model.predict(Z).dtype == y.dtype
        np.testing.assert_array_equal(model.classes_, np.unique(y))
        assert model.alignment_ == pytest.approx(naive.best(grams(), outer(BINARY))[0], abs=1e-9)


def test_integers_are_values_of_a_regression():
    model = TwoStageMKLRegressor(KERNELS, alignment="qp", learner=RIDGE).fit(X, np.round(VALUES).astype(int))
    y = np.round(VALUES)
    assert model.alignment_ == pytest.approx(naive.best(grams(), outer(y))[0], abs=1e-9)


# -- scikit-learn ------------------------------------------------------------------------------------------


@ESTIMATORS
def test_pickles_and_clones(kind, y):
    model = kind(KERNELS, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.kernel(Z), model.kernel(Z))
    use = "transform" if kind is AlignedKernel else "predict"
    np.testing.assert_array_equal(getattr(again, use)(Z), getattr(model, use)(Z))
    with pytest.raises(NotFittedError):
        getattr(clone(model), use)(Z)
    np.testing.assert_array_equal(getattr(clone(model).fit(X, y), use)(Z), getattr(model, use)(Z))


def test_a_search_over_the_estimator():
    learner = SVC(kernel="precomputed")
    grid = {"alignment": ["qp", "uniform"], "learner__C": [0.1, 10.0], "kernels": [KERNELS, KERNELS[:2]]}
    search = GridSearchCV(TwoStageMKLClassifier(learner=learner, validation_fraction=None), grid, cv=3).fit(X, WORDS)
    assert search.best_score_ > 0.6
    assert search.best_params_["learner__C"] == search.best_estimator_.learner_.C
    assert learner.C == 1.0


def test_the_learner_that_was_given_stays_as_it_was():
    learner = SVC(kernel="precomputed", C=3.0)
    TwoStageMKLClassifier(KERNELS, learner=learner, grid={"C": [7.0]}).fit(X, WORDS)
    assert learner.C == 3.0
    assert not hasattr(learner, "classes_")


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = TwoStageMKLClassifier(KERNELS, random_state=0).fit(X, WORDS)
    before = model.predict(Z)
    with pytest.raises(ValueError, match="at least 2 classes"):
        model.fit(X, np.full(N, "one"))
    np.testing.assert_array_equal(model.predict(Z), before)


def test_the_order_of_the_rows_is_of_no_account():
    order = np.random.default_rng(1).permutation(N)
    plain, mixed = (TwoStageMKLClassifier(KERNELS, random_state=0).fit(X[o], WORDS[o]) for o in (np.arange(N), order))
    assert mixed.held_out_alignment_ == pytest.approx(plain.held_out_alignment_, abs=1e-12)
    assert mixed.best_params_ == plain.best_params_
    np.testing.assert_array_equal(mixed.predict(Z), plain.predict(Z))


def test_verbose_prints_each_step_of_the_final_kernel(capsys):
    model = TwoStageMKLClassifier(KERNELS, verbose=1, random_state=0).fit(X, WORDS)
    place, *lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"kernels: KernelBank of \d+ kernels; kernels get .* in addition to matrices of \d+ samples", place
    )
    assert len(lines) == model.n_iter_
    assert lines[0].startswith("iteration")


# -- errors ------------------------------------------------------------------------------------------------

ARD = GaussianFamily(0.3, 30.0, per_feature=True)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"alignment": "best"}, ValueError, "alignment must be one of 'greedy', .* got 'best'"),
        ({"missing": "drop"}, ValueError, "missing must be"),
        ({"tol": 0}, ValueError, "tol must be a finite number above 0, got 0"),
        ({"max_iter": 0}, ValueError, "max_iter must be a whole number of at least 1, got 0"),
        ({"max_iter": 2.5}, ValueError, "max_iter must be a whole number"),
        ({"validation_fraction": 1.0}, ValueError, "validation_fraction must be a number between 0 and 1 or None"),
        ({"validation_fraction": "half"}, ValueError, "validation_fraction must be a number"),
        ({"normalize": "sum"}, ValueError, "normalize must be one of"),
        (
            {"kernels": GaussianFamily(per_feature=True, shrinkage="auto"), "validation_fraction": None},
            ValueError,
            r"shrinkage='auto'\) needs a validation_fraction",
        ),
        ({"kernels": ARD, "alignment": "qp"}, ValueError, "alignment='qp' needs a list of kernels"),
        ({"kernels": ARD, "missing": "ignore"}, ValueError, "family of kernels needs missing='error'"),
        ({"kernels": ARD, "normalize": "cosine"}, ValueError, "normalize='cosine' is not for a family"),
        ({"kernels": []}, ValueError, "kernels is empty"),
        ({"kernels": "all"}, ValueError, "kernels must be 'standard', got 'all'"),
        ({"cv": 1}, ValueError, "cv must be at least 2"),
        ({"cv": True}, ValueError, "cv must be at least 2"),
        ({"cv": "five"}, ValueError, "cv"),
        ({"learner": "svm"}, TypeError, "learner must be a scikit-learn estimator, got 'svm'"),
        ({"learner": SVC()}, ValueError, "learner must have kernel='precomputed', got 'rbf'"),
        ({"grid": {"width": [1.0]}}, ValueError, r"grid names parameters that SVC does not have: \['width'\]"),
    ],
)
def test_bad_parameters_are_named(options, error, words):
    with pytest.raises(error, match=words):
        TwoStageMKLClassifier(**{"kernels": KERNELS, **options}).fit(X, WORDS)


def test_bad_data_is_named():
    with pytest.raises(ValueError, match=r"at least 2 classes, got 1 class: 'one'"):
        TwoStageMKLClassifier(KERNELS).fit(X, np.full(N, "one"))
    with pytest.raises(ValueError, match="continuous"):
        TwoStageMKLClassifier(KERNELS).fit(X, VALUES)
    with pytest.raises(ValueError, match="NaN"):
        TwoStageMKLClassifier(KERNELS).fit(np.where(X > 1.5, np.nan, X), WORDS)
    for kind, y in ((TwoStageMKLClassifier, WORDS), (TwoStageMKLRegressor, VALUES)):
        with pytest.raises(ValueError, match=ALL_ZERO):
            kind(KERNELS).fit(X, y, np.zeros(N))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        TwoStageMKLRegressor(KERNELS).fit(X, VALUES, np.where(np.arange(N) == 3, -1.0, 1.0))
    with pytest.raises(ValueError, match="3 features"):
        TwoStageMKLClassifier(KERNELS).fit(X, WORDS).predict(Z[:, :2])
    with pytest.raises(ValueError, match="y"):
        AlignedKernel(KERNELS).fit(X, None)
