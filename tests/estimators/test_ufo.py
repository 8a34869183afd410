"""UFOMKLClassifier, UFOMKLRegressor and their path: the problem they solve, streams, structure, bad input."""

import pickle
import weakref

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manykernels import (
    MKLClassifier,
    MKLRegressor,
    UFOMKLClassifier,
    UFOMKLRegressor,
    datasets,
    load,
)
from manykernels.banks import Placement, bind
from manykernels.banks.pairs import PairValues
from manykernels.core.progress import listen
from manykernels.estimators import ufo_base
from manykernels.kernels import Gaussian, GaussianLadder, KernelBank, Linear, Nystroem, Polynomial, RandomFourier
from manykernels.literature.obscure import obscure
from manykernels.losses import EpsilonInsensitive, Hinge, MulticlassHinge, OneVsRest, Squared, StructuredHinge
from manykernels.norms import ElasticNorm, LpNorm
from manykernels.outer.ufo import ufo
from manykernels.outer.ufo_sample_theta import SampleTheta
from manykernels.outer.ufo_theta import make_rule
from tests.estimators.refusals import ALL_ZERO

WINE, WINE_Y = load_wine(return_X_y=True)
WINE = StandardScaler().fit_transform(WINE)
KERNELS = [Gaussian(1.0), Gaussian(4.0), Linear(), Polynomial(2, columns=[0, 1]), Gaussian(1.0, columns=[12])]
MAPS = [Linear(), RandomFourier(2.0, 40), Polynomial(2, columns=[0, 1, 2])]
BINARY = WINE_Y < 2
X2, Y2 = WINE[BINARY], WINE_Y[BINARY]


def recomputed_objective(model, X, y, loss, C, alpha):
    """The objective from the outside: norms from the attributes, losses from the predictions."""
    decisions = model.decision_function(X)
    a, n = model.kernel_norms_, len(y)
    p = 2 * np.log(a.size) / (2 * np.log(a.size) - 1)
    return 0.5 * np.sum(a**p) ** (2 / p) + alpha * C * n * a.sum() + C * np.sum(loss(y, decisions))


def hinge(y, z):
    return np.maximum(0, 1 - (2 * y - 1) * z)


def multiclass_hinge(y, z):
    rivals = z + 1.0
    rivals[np.arange(len(y)), y] -= 1.0
    return rivals.max(axis=1) - z[np.arange(len(y)), y]


@pytest.mark.parametrize("step", ["exact", "gradient"])
@pytest.mark.parametrize("kernels", [KERNELS, MAPS])
def test_the_objective_can_be_recomputed(kernels, step):
    model = UFOMKLClassifier(kernels, alpha=0.01, C=2.0, step=step, random_state=0).fit(X2, Y2)
    assert recomputed_objective(model, X2, Y2, hinge, 2.0, 0.01) == pytest.approx(model.objective_, rel=1e-5)
    joint = UFOMKLClassifier(kernels, alpha=0.01, loss="multiclass_hinge", step=step, random_state=0).fit(WINE, WINE_Y)
    assert recomputed_objective(joint, WINE, WINE_Y, multiclass_hinge, 1.0, 0.01) == pytest.approx(
        joint.objective_, rel=1e-5
    )
    assert joint.dual_objective_ <= joint.objective_
    assert joint.gap_ == pytest.approx((joint.objective_ - joint.dual_objective_) / joint.objective_)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared"])
def test_alpha_0_is_the_lp_norm_at_the_same_group_norm(loss):
    """||a||_p^2 with p = 2 ln m / (2 ln m - 1) is LpNorm's with the weight norm p / (2 - p)."""
    p = ElasticNorm().power_for(len(KERNELS))
    options = {"loss": loss, "fit_intercept": False, "C": 1.0}
    batch = MKLClassifier(KERNELS, norm=LpNorm(p / (2 - p)), tol=1e-6, **options).fit(WINE, WINE_Y)
    model = UFOMKLClassifier(KERNELS, max_iter=400, tol=1e-5, random_state=0, **options).fit(WINE, WINE_Y)
    assert model.objective_ == pytest.approx(batch.objective_, rel=1e-4)
    assert model.weights_ == pytest.approx(batch.weights_ / batch.weights_.sum(), abs=0.01)
    assert model.decision_function(WINE) == pytest.approx(batch.decision_function(WINE), abs=0.05)


def test_alpha_above_0_is_the_elastic_norm_of_a_batch_solver():
    alpha, n = 0.03, len(Y2)
    batch = MKLClassifier(KERNELS, norm=ElasticNorm(alpha * n), fit_intercept=False, tol=1e-5).fit(X2, Y2)
    model = UFOMKLClassifier(KERNELS, alpha=alpha, max_iter=400, fit_intercept=False, random_state=0).fit(X2, Y2)
    assert model.objective_ == pytest.approx(batch.objective_, rel=1e-4)
    assert set(model.active_) == set(np.flatnonzero(batch.weights_ > 1e-3 * batch.weights_.max()))


@pytest.mark.parametrize("norm", [1.5, 3.0, np.inf])
def test_norm_means_what_it_means_elsewhere(norm):
    options = {"norm": norm, "fit_intercept": False, "tol": 1e-4}
    batch = MKLClassifier(KERNELS, **options).fit(X2, Y2)
    model = UFOMKLClassifier(KERNELS, **options, max_iter=1000, random_state=0).fit(X2, Y2)
    assert model.converged_
    assert model.objective_ == pytest.approx(batch.objective_, rel=2e-4)


@pytest.mark.parametrize("step", ["exact", "gradient"])
def test_kernels_that_are_left_out_have_weight_exactly_0(step):
    model = UFOMKLClassifier(alpha=0.05, step=step, max_iter=30, random_state=0).fit(X2, Y2)
    out = np.setdiff1d(np.arange(model.weights_.size), model.active_)
    assert 0 < model.active_.size < model.weights_.size
    assert np.all(model.weights_[out] == 0.0)
    assert np.all(model.kernel_norms_[out] == 0.0)
    assert np.all(model.kernel_norms_[model.active_] > 0)
    assert model.weights_.sum() == pytest.approx(1.0)


def test_three_classes_need_one_view_if_they_are_learned_jointly():
    """Figure 1 of the paper: one against the rest with l1 keeps several kernels, jointly only the last is kept."""
    X, y, views = datasets.make_three_classes()
    kernels = [Gaussian(2.0, columns=columns, label=name) for name, columns in views.items()]
    apart = MKLClassifier(kernels, norm=1, C=100.0, shared_weights=False).fit(X, y)
    assert np.all(np.count_nonzero(apart.weights_ > 0.05, axis=1) >= 2)
    assert np.all(np.any(apart.weights_ > 0.05, axis=0))
    for step in ("exact", "gradient"):
        joint = UFOMKLClassifier(
            kernels, alpha=0.2, C=100.0, loss="multiclass_hinge", max_iter=50, step=step, random_state=0
        )
        assert np.array_equal(joint.fit(X, y).weights_, [0.0, 0.0, 0.0, 1.0])
        assert joint.score(X, y) > 0.98


def test_the_gap_falls_along_the_epochs():
    steep = UFOMKLClassifier(max_iter=30, random_state=0).fit(WINE, WINE_Y)
    assert steep.trace_[-1].gap < 0.05 * steep.trace_[0].gap
    slow = UFOMKLClassifier(max_iter=30, step="gradient", random_state=0).fit(WINE, WINE_Y)
    assert steep.gap_ < slow.gap_ < 0.5 * slow.trace_[0].gap
    assert [s.iteration for s in slow.trace_] == list(range(1, 31))
    assert slow.n_iter_ == 30


def test_averaged_and_uniform_solve_the_same_problem():
    options = {"step": "gradient", "max_iter": 60, "random_state": 0, "loss": "logistic"}
    best = UFOMKLClassifier(KERNELS, loss="logistic", max_iter=60, random_state=0).fit(X2, Y2)
    for extra in ({"average": True}, {"sampling": "uniform"}, {"average": True, "sampling": "uniform"}):
        model = UFOMKLClassifier(KERNELS, **options, **extra).fit(X2, Y2)
        assert best.objective_ <= model.objective_ * (1 + 1e-6)
        assert model.objective_ == pytest.approx(best.objective_, rel=0.05)
        assert model.dual_objective_ <= best.objective_


def test_averaged_predictions_belong_to_the_averaged_objective():
    for kernels in (KERNELS, MAPS):
        model = UFOMKLClassifier(kernels, average=True, max_iter=5, random_state=0).fit(X2, Y2)
        assert recomputed_objective(model, X2, Y2, hinge, 1.0, 0.0) == pytest.approx(model.objective_, rel=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"max_iter": 5},
        {"max_iter": 5, "average": True},
        {"max_iter": 2, "loss": "multiclass_hinge"},  # the last bit chooses between rivals that are even
        {"max_iter": 5, "normalize": "cosine"},
    ],
)
def test_feature_maps_and_coefficients_of_samples_agree(options):
    one = UFOMKLClassifier(MAPS, features="explicit", random_state=0, **options).fit(WINE, WINE_Y)
    other = UFOMKLClassifier(MAPS, features="kernel", random_state=0, **options).fit(WINE, WINE_Y)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-5)
    assert one.decision_function(WINE) == pytest.approx(other.decision_function(WINE), abs=1e-3)


def test_a_small_component_whose_form_is_lost_in_rounding_asks_for_no_second_walk(monkeypatch):
    """Ordinary data and standard kernels, some of which get next to nothing: single precision is fine enough."""

    def walk_again(*_):
        raise AssertionError("walked again in double precision")

    monkeypatch.setattr(UFOMKLClassifier, "_again_in_double", walk_again)
    X, y = make_classification(500, 20, n_informative=8, flip_y=0.05, random_state=0)
    model = UFOMKLClassifier(max_iter=10, random_state=0).fit(X, y)
    plain = abs(model.objective_ - model.dual_objective_) / max(abs(model.objective_), abs(model.dual_objective_))
    assert model.gap_ == pytest.approx(plain, abs=1e-3)


def test_rows_in_blocks_give_the_same():
    whole = UFOMKLClassifier(KERNELS, max_iter=4, random_state=0).fit(WINE, WINE_Y)
    with pytest.warns(UserWarning, match="do not fit into the memory budget"):
        small = UFOMKLClassifier(KERNELS, max_iter=4, random_state=0, memory_budget=200_000).fit(WINE, WINE_Y)
    assert small.decision_function(WINE) == pytest.approx(whole.decision_function(WINE), abs=1e-6)
    with pytest.raises(MemoryError, match="memory_budget is 20 kB"):
        UFOMKLClassifier(KERNELS, memory_budget=20_000).fit(WINE, WINE_Y)


# -- streams ----------------------------------------------------------------------------------------------------------


def rings(n, seed):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, np.where(np.sum(X**2, axis=1) > 1.4, "out", "in")


@pytest.mark.parametrize("kernels", [[Linear(), Polynomial(2)], [Linear(), Gaussian(1.0)]])
def test_a_stream_is_learned_from_batches(kernels):
    model, (test, labels) = UFOMKLClassifier(kernels, loss="logistic"), rings(500, 99)
    scores = []
    for seed in range(15):
        model.partial_fit(*rings(100, seed), classes=["in", "out"])
        scores.append(model.score(test, labels))
    assert np.mean(scores[-3:]) > max(0.88, scores[0])
    assert (model.n_seen_, model.n_iter_, len(model.trace_)) == (1500, 15, 15)
    assert model.dual_objective_ < model.objective_
    assert model.predict_proba(test).sum(axis=1) == pytest.approx(1.0)


def test_a_stream_of_feature_maps_takes_no_more_memory():
    model = UFOMKLClassifier([Linear(), RandomFourier(1.0)])
    sizes = []
    for n in (100, 200, 400, 3000, 100):
        model.partial_fit(*rings(n, n), classes=["in", "out"])
        sizes.append(len(pickle.dumps(model)))
    assert max(sizes) <= sizes[1] + 2000


def test_weights_of_samples_in_a_stream_multiply_C():
    (X, y), (Z, z) = rings(80, 0), rings(60, 1)
    for kernels in ([Linear(), Polynomial(2)], [Linear(), Gaussian(1.0)]):
        heavy = UFOMKLClassifier(kernels, alpha=0.01)
        heavy.partial_fit(X, y, classes=["in", "out"], sample_weight=np.full(80, 4.0))
        heavy.partial_fit(Z, z, sample_weight=np.full(60, 4.0))
        same = UFOMKLClassifier(kernels, alpha=0.01, C=4.0).partial_fit(X, y, classes=["in", "out"]).partial_fit(Z, z)
        assert heavy.decision_function(Z) == pytest.approx(same.decision_function(Z), rel=1e-6)
        fitted = UFOMKLClassifier(kernels, alpha=0.01, random_state=0).fit(X, y, np.full(80, 4.0))
        same = UFOMKLClassifier(kernels, alpha=0.01, C=4.0, random_state=0).fit(X, y)
        fitted.partial_fit(Z, z, sample_weight=np.full(60, 4.0))
        same.partial_fit(Z, z)
        assert fitted.decision_function(Z) == pytest.approx(same.decision_function(Z), rel=1e-6)
        assert fitted.objective_ == pytest.approx(same.objective_, rel=1e-6)


def test_samples_of_weight_0_are_not_there():
    X, y = rings(80, 0)
    weight = (np.arange(80) % 4 > 0).astype(float)
    for estimator, target, extra in (
        (UFOMKLClassifier([Linear(), Polynomial(2)]), y, {"classes": ["in", "out"]}),
        (UFOMKLRegressor([Linear(), Polynomial(2)]), X[:, 0] ** 2, {}),
    ):
        one = estimator.partial_fit(X, target, sample_weight=weight, **extra)
        other = type(estimator)(**estimator.get_params()).partial_fit(X[weight > 0], target[weight > 0], **extra)
        outputs = "decision_function" if extra else "predict"
        assert getattr(one, outputs)(X) == pytest.approx(getattr(other, outputs)(X))
        assert one.n_seen_ == other.n_seen_ == 60
        with pytest.raises(ValueError, match=ALL_ZERO):
            estimator.partial_fit(X, target, sample_weight=np.zeros(80))


@pytest.mark.parametrize("expected", [None, 20, 2000])
@pytest.mark.parametrize("kernels", [KERNELS, MAPS])
def test_a_stream_after_a_fit_has_a_gap_that_is_no_less_than_0(kernels, expected):
    model = UFOMKLClassifier(kernels, expected_samples=expected, max_iter=60, random_state=0).fit(X2[::2], Y2[::2])
    for low in (1, 3, 5):
        model.partial_fit(X2[low : low + 1], Y2[low : low + 1])
        assert model.gap_ >= 0


def test_views_that_are_partly_missing_are_named_in_every_batch():
    X = WINE.copy()
    model = UFOMKLClassifier([Linear(columns=[0, 1]), Linear(columns=[2])], missing="ignore")
    model.partial_fit(X, WINE_Y, classes=[0, 1, 2])
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="row 3 lacks 1 of the 2 columns"):
        model.partial_fit(X, WINE_Y)


@pytest.mark.parametrize(
    "change", [{"loss": "multiclass_hinge"}, {"fit_intercept": False}, {"alpha": 0.1}, {"C": 2.0}, {"average": True}]
)
def test_a_stream_says_which_parameter_has_changed(change):
    model = UFOMKLClassifier(MAPS).partial_fit(WINE, WINE_Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=f"{next(iter(change))} has changed since the stream began"):
        model.set_params(**change).partial_fit(WINE, WINE_Y)


def test_dense_batches_may_follow_sparse_ones():
    order = np.random.default_rng(0).permutation(len(WINE))
    X, y = WINE[order], WINE_Y[order]
    for first, second in ((sp.csr_matrix(X), X), (X, sp.csr_matrix(X))):
        model = UFOMKLClassifier(KERNELS, max_iter=2, random_state=0).fit(first, y).partial_fit(second, y)
        assert model.score(X, y) > 0.9


def test_long_streams_keep_a_short_trace(monkeypatch):
    monkeypatch.setattr("manykernels.estimators.ufo_streams._LONG_TRACE", 8)
    model = UFOMKLClassifier([Linear()])
    for k in range(40):
        model.partial_fit(WINE[[k]], WINE_Y[[k]], classes=[0, 1, 2])
    assert len(model.trace_) <= 9
    assert (model.n_iter_, model.trace_[-1].iteration, model.n_seen_) == (40, 40, 40)


def test_both_kinds_of_streams_agree():
    explicit, kernel = (UFOMKLClassifier([Linear(), Polynomial(2)], features=f) for f in ("explicit", "kernel"))
    for seed in range(4):
        for model in (explicit, kernel):
            model.partial_fit(*rings(60, seed), classes=["in", "out"])
    X = rings(50, 9)[0]
    assert explicit.decision_function(X) == pytest.approx(kernel.decision_function(X), abs=1e-3)
    assert explicit.objective_ == pytest.approx(kernel.objective_, rel=1e-4)


@pytest.mark.parametrize("kernels", [KERNELS, MAPS])
@pytest.mark.parametrize("step", ["exact", "gradient"])
def test_partial_fit_goes_on_after_fit(kernels, step):
    """One more step among twenty epochs moves the predictor by no more than C / 20 kernels of mean diagonal 2."""
    model = UFOMKLClassifier(kernels, step=step, max_iter=20, random_state=0).fit(WINE[::2], WINE_Y[::2])
    before, objective = model.decision_function(WINE), model.objective_
    model.partial_fit(WINE[1:2], WINE_Y[1:2])
    assert model.decision_function(WINE) == pytest.approx(before, abs=0.3)
    assert model.objective_ == pytest.approx(objective, rel=0.01)
    assert model.partial_fit(WINE[1::2], WINE_Y[1::2]).score(WINE, WINE_Y) > 0.95


def test_a_failed_batch_leaves_the_model_as_it_was():
    model = UFOMKLClassifier([Linear(), Polynomial(2)]).partial_fit(*rings(50, 0), classes=["in", "out"])
    X = rings(50, 9)[0]
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="'elsewhere', which is not one of classes"):
        model.partial_fit(X[:2], ["in", "elsewhere"])
    assert np.array_equal(model.decision_function(X), before)


def test_regression_streams():
    rng = np.random.default_rng(0)
    model = UFOMKLRegressor([Linear(), RandomFourier(1.0, 200)], C=10.0)
    for _ in range(20):
        X = rng.uniform(-2, 2, size=(200, 1))
        model.partial_fit(X, np.sin(2 * X[:, 0]) + 5.0)
    assert model.score(X, np.sin(2 * X[:, 0]) + 5.0) > 0.9


# -- warm starts and paths --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["exact", "gradient"])
def test_a_warm_start_goes_on(step):
    model = UFOMKLClassifier(KERNELS, step=step, max_iter=10, warm_start=True, random_state=0).fit(WINE, WINE_Y)
    first = model.gap_
    assert model.fit(WINE, WINE_Y).gap_ < first
    with pytest.raises(ValueError, match="warm_start=True goes on with the same samples"):
        model.fit(WINE[1:], WINE_Y[1:])
    model.set_params(C=3.0, alpha=0.01).fit(WINE, WINE_Y)
    assert (
        model.trace_[0].gap
        < UFOMKLClassifier(KERNELS, step=step, max_iter=1, C=3.0, random_state=0).fit(WINE, WINE_Y).gap_
    )


@pytest.mark.parametrize("step", ["exact", "gradient"])
def test_a_warm_start_with_another_loss_begins_anew(step):
    x = np.linspace(-3, 3, 60)[:, None]
    y = 10 * np.sin(x[:, 0])
    model = UFOMKLRegressor(KERNELS[:3], warm_start=True, max_iter=5, step=step, random_state=0).fit(x, y)
    model.set_params(loss="epsilon_insensitive").fit(x, y)
    cold = UFOMKLRegressor(KERNELS[:3], loss="epsilon_insensitive", max_iter=5, step=step, random_state=0).fit(x, y)
    assert model.objective_ == pytest.approx(cold.objective_)
    assert np.abs(model.dual_coef_).max() <= 1.0 + 1e-9


# -- labels with a structure ------------------------------------------------------------------------------------------


class Tree(StructuredHinge):
    """Three wines, two of which are close: leaves 0 and 1 hang on one branch, leaf 2 on another."""

    paths = np.array([[1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [0, 1, 0, 0, 1]], dtype=float)
    n_outputs = 5

    def embed(self, label):
        return self.paths[label]

    def cost(self, label, other):
        return 0.25 * np.abs(self.paths[label] - self.paths[other]).sum()

    def best(self, z, y=None):
        costs = 0.0 if y is None else 0.25 * np.abs(self.paths - self.paths[y]).sum(axis=1)
        return int(np.argmax(self.paths @ z + costs))


@pytest.mark.parametrize("kernels", [KERNELS, MAPS])
def test_classes_in_a_tree(kernels):
    model = UFOMKLClassifier(kernels, loss=Tree(), alpha=0.01, max_iter=20, random_state=0).fit(WINE, WINE_Y)
    assert model.score(WINE, WINE_Y) > 0.97
    assert model.decision_function(WINE).shape == (len(WINE), 5)
    np.testing.assert_allclose(model.contributions(WINE).total(), model.decision_function(WINE), atol=1e-10)
    assert model.dual_objective_ < model.objective_
    assert model.gap_ < 0.5 * model.trace_[0].gap
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save("nowhere")
    model.partial_fit(WINE[:10], WINE_Y[:10])
    assert model.score(WINE, WINE_Y) > 0.95
    with pytest.raises(ValueError, match="178 targets"):
        model.fit(WINE[:5], WINE_Y)
    order = np.random.default_rng(0).permutation(len(WINE))
    shuffled = pd.Series(WINE_Y)[order]  # whose index is no longer 0, 1, 2, ...
    again = UFOMKLClassifier(kernels, loss=Tree(), alpha=0.01, max_iter=20, random_state=0).fit(WINE[order], shuffled)
    assert again.score(WINE, WINE_Y) > 0.97


# -- data of all kinds ------------------------------------------------------------------------------------------------


def test_frames_sparse_matrices_weights_and_ladders():
    frame = load_iris(as_frame=True)
    X, y = frame.data, frame.target_names[frame.target]
    kernels = [Gaussian(1.0, columns=["petal length (cm)"], group="petal"), GaussianLadder(count=4), Linear()]
    model = UFOMKLClassifier(kernels, max_iter=20, random_state=0).fit(X, y)
    assert len(model.weights_) == 6
    assert set(model.group_names_) == {"petal", "all features"}
    assert model.group_weights_.sum() == pytest.approx(1.0)
    assert model.score(X, y) > 0.9
    dense, sparse = (UFOMKLClassifier(KERNELS, loss="logistic", max_iter=30, random_state=0) for _ in range(2))
    dense.fit(WINE, WINE_Y)
    sparse.fit(sp.csr_matrix(WINE), WINE_Y)
    assert sparse.decision_function(sp.csr_matrix(WINE)) == pytest.approx(dense.decision_function(WINE), abs=1e-3)
    assert sparse.partial_fit(sp.csr_matrix(WINE[:20]), WINE_Y[:20]).score(WINE, WINE_Y) > 0.9


def test_a_weight_of_two_is_two_copies():
    twice = np.r_[np.arange(60), np.arange(20)]
    weight = np.r_[np.full(20, 2.0), np.ones(40)]
    one = UFOMKLClassifier(KERNELS, max_iter=6, random_state=0).fit(X2[:60], Y2[:60], weight)
    two = UFOMKLClassifier(KERNELS, max_iter=6, random_state=0).fit(X2[twice], Y2[twice])
    assert one.decision_function(X2) == pytest.approx(two.decision_function(X2), abs=1e-9)


def test_missing_views_count_nothing():
    X = WINE.copy()
    X[::3, 5:] = np.nan
    kernels = [Linear(columns=slice(0, 5)), RandomFourier(2.0, columns=slice(5, 13))]
    for features in ("explicit", "kernel"):
        model = UFOMKLClassifier(kernels, missing="ignore", features=features, max_iter=20, random_state=0).fit(
            X, WINE_Y
        )
        assert model.score(X, WINE_Y) > 0.85
    with pytest.raises(ValueError, match="NaN"):
        UFOMKLClassifier(kernels).fit(X, WINE_Y)


@pytest.mark.parametrize(
    "options",
    [{}, {"average": True}, {"loss": "multiclass_hinge", "alpha": 0.02}, {"alpha": 10.0}, {"normalize": "cosine"}],
)
@pytest.mark.parametrize("kernels", [KERNELS, [*MAPS, Nystroem.from_data(Gaussian(3.0, columns=[3, 4]), WINE, 20)]])
def test_model_files(tmp_path, kernels, options):
    model = UFOMKLClassifier(kernels, max_iter=5, random_state=0, **options).fit(WINE, WINE_Y)
    model.save(tmp_path / "wine.mkl")
    again = load(tmp_path / "wine.mkl")
    assert again.decision_function(WINE) == pytest.approx(model.decision_function(WINE), abs=1e-9)
    assert np.array_equal(again.kernel_norms_, model.kernel_norms_)
    assert again.get_params()["alpha"] == model.alpha
    with pytest.raises(ValueError, match="loaded from a file"):
        again.partial_fit(WINE, WINE_Y)


def test_search_pipelines_and_clones():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), UFOMKLClassifier(KERNELS, random_state=0)),
        {"ufomklclassifier__alpha": [0.0, 0.02]},
        cv=3,
    ).fit(WINE, WINE_Y)
    assert search.best_score_ > 0.95


def test_constant_features_and_single_samples():
    X = np.column_stack([WINE[:, :3], np.zeros(len(WINE))])
    y = np.where(np.arange(len(WINE)) == 7, "one", "rest")
    with pytest.warns(UserWarning, match="zero on the training data"):
        model = UFOMKLClassifier(
            [Linear(columns=[3]), Gaussian(0.2), Linear()], C=100.0, max_iter=50, random_state=0
        ).fit(X, y)
    assert model.weights_[0] == 0.0
    assert model.score(X, y) == 1.0


def test_all_kernels_left_out_is_a_model_that_predicts():
    model = UFOMKLClassifier(KERNELS, alpha=10.0, random_state=0).fit(WINE, WINE_Y)
    assert model.active_.size == 0
    assert model.objective_ == pytest.approx(3 * len(WINE))
    assert np.array_equal(model.decision_function(WINE), np.zeros((len(WINE), 3)))


@pytest.mark.parametrize("C", [1e-4, 1e6])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared", "multiclass_hinge"])
def test_extreme_C(C, loss):
    for step in ("exact", "gradient"):
        model = UFOMKLClassifier(KERNELS, C=C, loss=loss, step=step, max_iter=5, random_state=0).fit(WINE, WINE_Y)
        assert np.all(np.isfinite(model.decision_function(WINE)))
        assert model.gap_ > -1e-6


def test_regression_matches_the_batch_solver():
    x = np.linspace(-3, 3, 60)[:, None]
    y = np.sin(2 * x[:, 0]) + 3.0
    for loss in ("squared", "epsilon_insensitive"):
        p = ElasticNorm().power_for(4)
        kernels = [Gaussian(w) for w in (0.3, 1.0, 3.0)] + [Linear()]
        batch = MKLRegressor(kernels, loss=loss, norm=LpNorm(p / (2 - p)), fit_intercept=False, C=5.0, tol=1e-5).fit(
            x, y
        )
        model = UFOMKLRegressor(kernels, loss=loss, fit_intercept=False, C=5.0, max_iter=500, random_state=0)
        assert model.fit(x, y).objective_ == pytest.approx(batch.objective_, rel=5e-3)
    assert UFOMKLRegressor(C=10.0, max_iter=50, random_state=0).fit(x, y).score(x, y) > 0.98


def test_linear_streams_do_as_well_as_plain_stochastic_gradients():
    rng = np.random.default_rng(1)
    w = rng.normal(size=20)
    model, plain = UFOMKLClassifier([Linear()], expected_samples=2000), SGDClassifier(random_state=0)
    for _ in range(20):
        X = rng.normal(size=(100, 20))
        y = X @ w > 0
        model.partial_fit(X, y, classes=[False, True])
        plain.partial_fit(X, y, classes=[False, True])
    X = rng.normal(size=(2000, 20))
    assert model.score(X, X @ w > 0) > plain.score(X, X @ w > 0) - 0.02


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": -1.0}, "alpha must be"),
        ({"alpha": np.inf}, "alpha must be"),
        ({"C": 0.0}, "C must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"max_iter": 1.5}, "max_iter must be"),
        (
            {"loss": "zero_one"},
            "loss must be one of 'hinge', 'squared_hinge', 'logistic', 'squared', 'multiclass_hinge', ",
        ),
        ({"loss": EpsilonInsensitive()}, "loss must be for classes"),
        ({"loss": ["hinge"]}, "loss must be one of"),
        ({"step": "long"}, "step must be one of"),
        ({"sampling": "all"}, "sampling must be one of"),
        ({"features": "many"}, "features must be one of"),
        ({"norm": 1.0}, "norm must be a finite number above 1, inf or None"),
        ({"tol": -1.0}, "tol must be"),
        ({"expected_samples": 0}, "expected_samples must be"),
        ({"missing": "drop"}, "missing must be one of"),
        ({"average": True, "step": "exact"}, "exact steps need no average"),
        ({"features": "explicit"}, r"finite feature map; 'Gaussian\(width=1\) on all features' has none"),
        ({"loss": Tree(), "step": "exact"}, "step='exact' needs a loss of the library, not one of your own"),
        ({"normalize": "max"}, "normalize must be one of"),
        (
            {"loss": MulticlassHinge(3)},
            r"loss=MulticlassHinge\(\.\.\.\) is made for the classes by the estimator: pass 'multiclass_hinge'",
        ),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        UFOMKLClassifier(KERNELS, **options).fit(WINE, WINE_Y)


def test_bad_streams_are_named():
    model = UFOMKLClassifier(KERNELS)
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        model.partial_fit(WINE, WINE_Y)
    with pytest.raises(ValueError, match="at least 2 classes"):
        model.partial_fit(WINE, WINE_Y, classes=[1])
    model.partial_fit(WINE, WINE_Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(WINE, WINE_Y, classes=[0, 1])
    with pytest.raises(ValueError, match="balanced"):
        model.set_params(class_weight="balanced").partial_fit(WINE, WINE_Y)
    with pytest.raises(ValueError, match="average=True with partial_fit"):
        UFOMKLClassifier(KERNELS, average=True).partial_fit(WINE, WINE_Y, classes=[0, 1, 2])


def test_probabilities_only_where_they_mean_something():
    assert not hasattr(UFOMKLClassifier(), "predict_proba")
    model = UFOMKLClassifier(KERNELS, loss="logistic", max_iter=20, random_state=0).fit(WINE, WINE_Y)
    assert np.array_equal(model.predict_proba(WINE).argmax(axis=1), model.predict(WINE))


def test_a_tolerance_that_is_missed_warns_and_one_that_is_met_stops():
    with pytest.warns(ConvergenceWarning, match="above tol"):
        UFOMKLClassifier(KERNELS, max_iter=2, tol=1e-9, random_state=0).fit(WINE, WINE_Y)
    model = UFOMKLClassifier(KERNELS, loss="logistic", max_iter=500, tol=1e-3, random_state=0).fit(WINE, WINE_Y)
    assert model.n_iter_ < 500
    assert model.gap_ <= 1e-3


def test_ctrl_c_keeps_the_model_so_far_if_someone_watches():
    def interrupt(step):
        if step.iteration == 2:
            raise KeyboardInterrupt

    with listen(interrupt), pytest.warns(ConvergenceWarning, match="Ctrl-C ended it"):
        model = UFOMKLClassifier(KERNELS, max_iter=50, random_state=0).fit(WINE, WINE_Y)
    assert model.n_iter_ < 50
    assert model.score(WINE, WINE_Y) > 0.9


def test_precomputed_stacks():
    K = np.stack([WINE @ WINE.T, np.exp(-((WINE[:, :1] - WINE[:, :1].T) ** 2))])
    bank, rows = KernelBank.from_arrays(K), np.arange(len(WINE))[:, None]
    train, test = rows[::2], rows[1::2]
    model = UFOMKLClassifier(bank, max_iter=20, random_state=0).fit(train, WINE_Y[::2])
    assert model.score(test, WINE_Y[1::2]) > 0.9
    stack = K[:, 1::2, ::2]
    assert model.decision_function(stack) == pytest.approx(model.decision_function(test), abs=1e-6)


def test_names_follow_a_frame():
    X = pd.DataFrame(WINE[:, :3], columns=["a", "b", "c"])
    model = UFOMKLClassifier([Linear(columns=["a"]), Linear(columns=["b", "c"])], random_state=0).fit(X, WINE_Y)
    assert model.kernel_names_ == ["Linear on a", "Linear on b, c"]
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["b", "a", "c"]])


def test_a_bias_is_as_large_as_the_kernels():
    """Kernels of unit trace are small: beside a constant of 1 they would not be seen."""
    for normalize in ("mean_diag", "trace"):
        scale = 1.0 if normalize == "mean_diag" else float(len(X2))
        model = UFOMKLClassifier(KERNELS, normalize=normalize, C=scale, max_iter=100, random_state=0).fit(X2, Y2)
        assert model.score(X2, Y2) == 1.0
        if normalize == "mean_diag":
            decisions = model.decision_function(X2)
    assert model.decision_function(X2) == pytest.approx(decisions, abs=0.02)


def test_obscure_refuses_losses_that_it_has_no_steps_for():
    class Same(Hinge):
        """Not compiled in."""

    pairs = PairValues(bind(KernelBank(KERNELS), X2), 0.0, 10**8)
    for loss in (Squared(), Same()):
        with pytest.raises(ValueError, match="obscure needs a loss that is compiled in and has bounded subgradients"):
            obscure(pairs, OneVsRest(loss, 1), np.ones((len(X2), 1)), np.ones(len(X2)))


def test_obscure_comes_near_the_optimum_and_stays_in_its_ball():
    bank = bind(KernelBank(KERNELS), X2, placement=Placement(storage="recomputed"))
    pairs, loss, n = PairValues(bank, 0.0, 10**8), OneVsRest(Hinge(), 1), len(Y2)
    y, C = (2.0 * Y2 - 1.0)[:, None], np.ones(len(Y2))
    found = obscure(pairs, loss, y, C, max_iter=100)
    best = ufo(SampleTheta(pairs, loss, y, C, make_rule(loss, 0.0, float(n), 5, exact=True)), max_iter=500, tol=1e-5)
    assert best.certificate.dual <= found.certificate.primal <= 1.05 * best.certificate.primal
    norm = ElasticNorm()
    decisions = bank.combine(found.coef).array @ found.beta[:, 0]
    value = norm.value(found.norms) + np.maximum(0, 1 - y[:, 0] * decisions).sum()
    assert value == pytest.approx(found.certificate.primal, rel=1e-4)
    assert norm.value(found.norms) <= min(step.objective for step in found.trace[:5]) + 1e-9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("step", "walks"), [("exact", 3), ("gradient", 2)])
@pytest.mark.parametrize("kernels", [KERNELS, MAPS], ids=["values", "features"])
def test_what_single_precision_held_goes_before_double_precision_comes(monkeypatch, kernels, step, walks):
    """Kernels, and what a walk knows of them, be it for a second walk or, in double precision, for a third."""
    model = UFOMKLClassifier(kernels, step=step, tol=1e-14, max_iter=4, random_state=0)
    model.fit(X2, Y2)  # compiling may keep what a function was first called with
    banks, thetas, bind, theta_of = [], [], ufo_base.bind, UFOMKLClassifier._theta

    def bind_alone(*arguments):
        assert all(earlier() is None for earlier in banks + thetas)
        bank = bind(*arguments)
        banks.append(weakref.ref(bank))
        return bank

    def theta_alone(*arguments):
        assert all(earlier() is None for earlier in thetas)
        theta = theta_of(*arguments)
        thetas.append(weakref.ref(theta))
        return theta

    monkeypatch.setattr(ufo_base, "bind", bind_alone)
    monkeypatch.setattr(ufo_base, "needs_digits", lambda rounding, tol: True)
    # Ended early, so that epochs are left.
    monkeypatch.setattr(ufo_base, "ufo", lambda theta, max_iter, **options: ufo(theta, max_iter=2, **options))
    monkeypatch.setattr(UFOMKLClassifier, "_theta", theta_alone)
    UFOMKLClassifier(**model.get_params()).fit(X2, Y2)
    assert len(banks) == 2
    assert len(thetas) == walks


def test_weights_without_digits_count_as_zero_in_a_stream_and_costs_are_refused():
    x, weight = np.linspace(-1.0, 1.0, 20)[:, None], np.ones(20)
    weight[::4] = 1e-310
    y = np.where(weight < 1, 1e3, x[:, 0])
    tiny = UFOMKLRegressor([Linear()]).partial_fit(x, y, weight)
    without = UFOMKLRegressor([Linear()]).partial_fit(x[weight == 1], y[weight == 1])
    assert tiny.n_seen_ == without.n_seen_ == 15
    np.testing.assert_array_equal(tiny.predict(x), without.predict(x))
    with pytest.raises(ValueError, match="C times the sample weight must be 0 or at least"):
        UFOMKLRegressor([Linear()], C=1e-200).partial_fit(x, y, np.full(20, 1e-120))
