"""MKLSurvival against CVXPY, a naive Newton method for Cox's model, and definitions written out."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from manykernels import MKLRegressor, MKLSurvival
from manykernels.kernels import FourierFeatures, Gaussian, GaussianFamily, Linear, NystroemFeatures, ProductKernels
from manykernels.losses import Cox
from manykernels.norms import LpNorm, LpPenalty, MixedNorm
from tests.reference import cox_oracle

N, WIDTHS = 80, (0.5, 1.0, 2.0)
X = np.random.default_rng(0).standard_normal((N, 3))
RISK = X[:, 0] + np.sin(2 * X[:, 1])
EVENT, TIME = cox_oracle.random_times(N, 0, RISK)
Y = np.array(list(zip(EVENT, TIME, strict=True)), dtype=[("event", bool), ("time", float)])
KERNELS = [Gaussian(width, columns=[j], group=str(j)) for j in range(3) for width in WIDTHS] + [Linear()]


def grams_of(points):
    """The matrices of KERNELS, each with a mean diagonal of 1."""
    grams = [np.exp(-((points[:, [j]] - points[:, j]) ** 2) / (2 * w**2)) for j in range(3) for w in WIDTHS]
    grams.append(points @ points.T)
    return np.array([gram / gram.diagonal().mean() for gram in grams])


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0])
def test_the_optimum_is_that_of_cvxpy(p, C):
    rows = slice(0, 30)
    assert np.unique(TIME[rows][EVENT[rows]]).size < EVENT[rows].sum()  # ties
    model = MKLSurvival(KERNELS, norm=p, C=C, tol=1e-7).fit(X[rows], Y[rows])
    optimum = cox_oracle.solve(grams_of(X[rows]), EVENT[rows], TIME[rows], np.full(30, C), p)
    assert model.converged_
    assert model.objective_ == pytest.approx(optimum, rel=1e-6)
    assert model.dual_objective_ <= optimum * (1 + 1e-7)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_the_certificate_can_be_recomputed(p):
    C, e = 3.0, 2 * p / (1 + p)
    model = MKLSurvival(KERNELS, norm=p, C=C, tol=1e-6).fit(X, Y)
    beta = np.zeros(N)
    beta[model.support_] = model.dual_coef_[0]
    products = grams_of(X) @ beta
    q, f = products @ beta, model.weights_ @ products
    a = model.weights_ * np.sqrt(q)
    primal = 0.5 * np.sum(a**e) ** (2 / e) + cox_oracle.loss(EVENT, TIME, f, np.full(N, C))
    expected = C * EVENT - beta
    conjugate = np.sum(expected * np.log(expected / C, where=expected > 0, out=np.zeros(N)))
    left = 0.0
    for t in np.unique(TIME):
        events = C * np.sum(EVENT & (t == TIME))
        risk, left = left + events, max(left + beta[t == TIME].sum(), 0.0)
        conjugate += sum(sign * v * np.log(v) for sign, v in ((1, left), (1, events), (-1, risk)) if v > 1e-10)
    dual = -conjugate - 0.5 * (q.max() if p == 1 else np.linalg.norm(q, p / (p - 1)))
    assert abs(beta.sum()) < 1e-10
    assert model.objective_ == pytest.approx(primal, rel=1e-9)
    assert model.dual_objective_ == pytest.approx(dual, rel=1e-7)
    assert model.gap_ <= 1e-6


def test_dual_coefficients_are_martingale_residuals():
    model = MKLSurvival(KERNELS, norm=2, C=2.0, tol=1e-10).fit(X, Y)
    residuals = EVENT.astype(float)
    hazard = model.predict_cumulative_hazard_function(X)
    for i in range(N):
        past = np.flatnonzero(model.event_times_ <= TIME[i])
        residuals[i] -= hazard[i, past[-1]] if past.size else 0.0
    beta = np.zeros(N)
    beta[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(beta, 2.0 * residuals, atol=1e-3)


@pytest.mark.parametrize("ties", [True, False])
def test_one_linear_kernel_is_the_ridge_model_of_cox(ties):
    event, time = cox_oracle.random_times(N, 1, X[:, 0] - 0.5 * X[:, 2], ties)
    C = 1e4
    model = MKLSurvival([Linear()], norm=2, C=C, normalize=None, tol=1e-9).fit(X, (event, time))
    w = cox_oracle.naive_newton(X, event, time, np.ones(N), 1.0 / C)
    np.testing.assert_allclose(model.predict(X), (X - X.mean(axis=0)) @ w, atol=1e-3)


def test_the_baseline_is_that_of_breslow():
    model = MKLSurvival(KERNELS, norm=2).fit(X, Y)
    f = model.predict(X)
    assert f.mean() == pytest.approx(0.0, abs=1e-6)
    steps = [np.sum(EVENT & (t == TIME)) / np.exp(f)[t <= TIME].sum() for t in model.event_times_]
    np.testing.assert_array_equal(model.event_times_, np.unique(TIME[EVENT]))
    np.testing.assert_allclose(model.baseline_cumulative_hazard_, np.cumsum(steps), rtol=1e-5)
    hazard = model.predict_cumulative_hazard_function(X)
    np.testing.assert_allclose(hazard, np.exp(f)[:, None] * np.cumsum(steps), rtol=1e-5)
    np.testing.assert_allclose(model.predict_survival_function(X), np.exp(-hazard))
    # On average as many events are expected as there were.
    last = np.searchsorted(model.event_times_, TIME, side="right") - 1
    expected = np.where(last >= 0, hazard[np.arange(N), last], 0.0).sum()
    assert expected == pytest.approx(EVENT.sum(), rel=1e-5)


def test_what_is_predicted_far_away_is_finite():
    model = MKLSurvival([Linear()], C=100.0).fit(X, Y)
    far = np.array([[1e6, 0.0, 0.0], [-1e6, 0.0, 0.0]])
    hazard, survival = model.predict_cumulative_hazard_function(far), model.predict_survival_function(far)
    assert np.all(np.isfinite(hazard))
    np.testing.assert_array_equal(survival, np.repeat([[0.0], [1.0]], survival.shape[1], axis=1))


def test_all_forms_of_y_learn_the_same():
    model = MKLSurvival(KERNELS).fit(X, Y)
    forms = (
        np.array(list(zip(TIME, EVENT, strict=True)), dtype=[("t", float), ("e", bool)]),
        np.c_[EVENT, TIME],
        pd.DataFrame({"time": TIME, "event": EVENT}),
        (EVENT, TIME),
        np.array(list(zip(EVENT, np.exp(TIME), strict=True)), dtype=Y.dtype),  # the order alone counts
    )
    for y in forms:
        other = MKLSurvival(KERNELS).fit(X, y)
        np.testing.assert_array_equal(other.weights_, model.weights_)
        assert other.score(X, y) == model.score(X, Y)
    assert model.score(X, Y) == pytest.approx(cox_oracle.concordance(EVENT, TIME, model.predict(X), np.ones(N)))


def test_weights_are_copies_and_the_order_does_not_count():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 3, N)
    copies = rng.permutation(np.repeat(np.arange(N), counts))
    model = MKLSurvival(KERNELS, tol=1e-6).fit(X, Y, sample_weight=counts)
    other = MKLSurvival(KERNELS, tol=1e-6).fit(X[copies], Y[copies])
    np.testing.assert_allclose(model.weights_, other.weights_, atol=1e-12)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-12)
    np.testing.assert_array_equal(model.event_times_, other.event_times_)
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=1e-12)
    assert model.score(X, Y, counts) == pytest.approx(other.score(X[copies], Y[copies]))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"norm": 4 / 3, "center": True},
        {"norm": np.inf},
        {"norm": MixedNorm(2)},
        {"norm": LpPenalty(1)},
        {"norm": LpPenalty(2)},
        {"solver": "spg", "norm": 2},
        {"solver": "reduced_newton", "normalize": "cosine"},
        {"C": 1e-6},
        {"C": 1e6},
        {"approximation": NystroemFeatures(5), "norm": 2},
        {"approximation": NystroemFeatures(5)},
        {"approximation": FourierFeatures(10), "kernels": [Gaussian(1.0), Gaussian(3.0)]},
        {"kernels": GaussianFamily(0.3, 10.0)},
        {"kernels": ProductKernels([Linear(columns=[j]) for j in range(3)], degree=2)},
        {"combination": "product", "kernels": "standard", "norm": LpPenalty(1)},
    ],
    ids=lambda parameters: "-".join(parameters) or "default",
)
@pytest.mark.filterwarnings("ignore:approximation='nystroem' makes no fewer")
def test_every_way_to_hold_and_to_weigh_kernels_converges(parameters):
    model = MKLSurvival(**{"kernels": KERNELS, **parameters}).fit(X, Y)
    assert model.converged_
    assert model.score(X, Y) > 0.65
    assert np.all(np.isfinite(model.predict_survival_function(X)))


def test_an_approximation_of_nearly_full_rank_learns_the_same():
    """By products with the features; a wide Gaussian kernel on one column has a low rank."""
    wide = [Gaussian(2.0, columns=[j]) for j in range(2)]
    exact, features = (
        MKLSurvival(wide, norm=2, tol=1e-6, **options).fit(X, Y)
        for options in ({}, {"approximation": NystroemFeatures(20)})
    )
    assert features.objective_ == pytest.approx(exact.objective_, rel=1e-5)
    np.testing.assert_allclose(features.predict(X), exact.predict(X), atol=1e-2)


def test_a_sparse_table_learns_the_same():
    dense = MKLSurvival(KERNELS[-1:]).fit(X, Y)
    assert MKLSurvival(KERNELS[-1:]).fit(sp.csr_matrix(X), Y).objective_ == pytest.approx(dense.objective_)


def test_searches_clones_and_pickles():
    search = GridSearchCV(MKLSurvival(KERNELS), {"C": [1e-3, 1.0]}, cv=3).fit(X, Y)
    assert cross_val_score(clone(search.best_estimator_), X, Y, cv=3).mean() == pytest.approx(search.best_score_)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(
        again.predict_survival_function(X), search.best_estimator_.predict_survival_function(X)
    )


def test_parts_of_a_score():
    model = MKLSurvival(KERNELS, norm=2).fit(X, Y)
    np.testing.assert_allclose(model.contributions(X).total(), model.predict(X), rtol=1e-10)


@pytest.mark.parametrize("solver", ["newton", "smo"])
def test_solvers_that_look_at_samples_one_by_one_refuse(solver):
    with pytest.raises(TypeError, match="needs a loss that is a sum over samples, got Cox"):
        MKLSurvival(KERNELS, norm=2, solver=solver).fit(X, Y)


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(ValueError, match="no event"):
        MKLSurvival(KERNELS).fit(X, (np.zeros(N), TIME))
    with pytest.raises(ValueError, match="no event"):
        MKLSurvival(KERNELS).fit(X, Y, sample_weight=~EVENT)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MKLSurvival(KERNELS).fit(X[1:], Y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        MKLSurvival(KERNELS).fit(X, None)
    with pytest.raises(ValueError, match="y holds 80 samples, but X holds 79"):
        MKLSurvival(KERNELS).fit(X, Y).score(X[1:], Y)
    with pytest.raises(ValueError, match=r"loss must be one of .*, or a Loss, got Cox\(\)"):
        MKLRegressor(KERNELS, loss=Cox()).fit(X, TIME)
    with pytest.raises(AttributeError, match="report"):
        MKLSurvival(KERNELS).fit(X, Y).report(X, Y)


def test_rows_on_workers_are_refused_before_any_work():
    dask = pytest.importorskip("dask.array")
    for points, cluster in ((dask.from_array(X), None), (X, "dask")):
        with pytest.raises(ValueError, match="needs the rows in this process"):
            MKLSurvival(KERNELS, approximation="nystroem", cluster=cluster).fit(points, Y)


def test_an_event_of_nobody_else_leaves_nothing_to_learn():
    """Only the last to be seen has its event: every f is as good as another, and none is the smallest."""
    event = np.argsort(np.argsort(TIME, kind="stable"), kind="stable") == N - 1
    model = MKLSurvival(KERNELS).fit(X, (event, np.arange(N)[np.argsort(np.argsort(TIME, kind="stable"))]))
    assert (model.objective_, model.gap_) == (0.0, 0.0)
    np.testing.assert_allclose(model.predict(X), 0.0, atol=1e-12)


@pytest.mark.parametrize("C", [1e-4, 1e6])
@pytest.mark.parametrize("p", [1.0, 1.001, 2.0])
def test_hostile_settings(p, C):
    """Duplicate kernels, a constant feature, one event at a time with many, and extreme C."""
    points = np.column_stack([X, np.ones(N)])
    kernels = [*KERNELS, KERNELS[0], Gaussian(1.0, columns=[3])]
    event, time = EVENT.copy(), np.where(TIME > 3, 3.0, TIME)
    model = MKLSurvival(kernels, norm=LpNorm(p), C=C).fit(points, (event, time))
    assert model.converged_
    assert np.all(np.isfinite(model.predict_survival_function(points)))
