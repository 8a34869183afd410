"""Approximate kernels at the edges: their optimum by a cone solver on features that are written down here."""

import re
import tracemalloc
import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from manykernels import MKLClassifier
from manykernels.banks import Placement, Recipe, bind
from manykernels.compute.feature_table import FeatureTable
from manykernels.kernels import Gaussian, KernelBank, Linear, NystroemFeatures
from manykernels.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Quantile, Squared, SquaredHinge
from manykernels.norms import LpNorm
from manykernels.outer.automatic import automatic
from manykernels.problem import Problem
from tests.binding import features_of

N = 44
LOSSES = [Hinge(), SquaredHinge(), Logistic(), Squared(), EpsilonInsensitive(0.1), Quantile(0.8), Huber(0.5)]
KERNELS = [Gaussian(1.0), Gaussian(4.0, columns=[0]), Gaussian(1.0, columns=[2]), Linear([0, 1])]


def data():
    """Duplicate samples, two of them with targets of their own, and a constant column."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(N, 2)), np.full(N, 3.0)])
    X[30:36] = X[0]
    X[40:] = X[4:8]
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=N)


def features(kernel, V):
    """Return Z with Z Z' = k(V, L) k(L, L)^+ k(L, V), by eigenvectors."""
    if not hasattr(kernel, "landmarks"):
        return V
    L = kernel.landmarks

    def values(A, B):
        return np.exp(-np.sum((A[:, None] - B[None]) ** 2, axis=2) / (2 * kernel.kernel.width**2))

    sizes, vectors = np.linalg.eigh(values(L, L))
    kept = sizes > 1e-13 * sizes[-1]
    return values(V, L) @ vectors[:, kept] / np.sqrt(sizes[kept])


def losses(loss, y, f):
    short, r = cp.pos(1 - cp.multiply(y, f)), y - f
    return {
        "hinge": lambda: cp.sum(short),
        "squared_hinge": lambda: cp.sum_squares(short) * naive_value(loss, -1.0) / 4.0,
        "logistic": lambda: cp.sum(cp.logistic(-cp.multiply(y, f))),
        "squared": lambda: cp.sum_squares(r) * naive_value(loss, 0.0),
        "epsilon_insensitive": lambda: cp.sum(cp.pos(cp.abs(r) - loss.epsilon)),
        "quantile": lambda: cp.sum(loss.quantile * cp.pos(r) + (1 - loss.quantile) * cp.pos(-r)),
        "huber": lambda: 0.5 * cp.sum(cp.huber(r, loss.delta)),
    }[loss.name]()


def naive_value(loss, prediction):
    """Return the loss at y = 1, which tells its factor."""
    return float(loss.value(np.ones(1), np.full(1, prediction))[0])


def optimum(parts, y, loss, p, C):
    """Return the least of 1/2 ||a||_r^2 / C + sum of losses, a_k = ||v_k||, times C."""
    vectors, b = [cp.Variable(Z.shape[1]) for Z in parts], cp.Variable()
    f = sum(Z @ v for Z, v in zip(parts, vectors, strict=True)) + b
    norms = cp.hstack([cp.norm(v) for v in vectors])
    size = cp.norm1(norms) if p == 1 else cp.pnorm(norms, 2 * p / (1 + p))
    unit = max(C, 1.0)
    objective = cp.square(size) * (0.5 / unit) + losses(loss, y, f) * (C / unit)
    return unit * cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("rank", [6, 1000])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_optimum_of_a_cone_solver(loss, p, C, rank):
    X, score = data()
    y = score if loss.regression else np.where(score > 0, 1.0, -1.0)
    bank = bind(KernelBank(KERNELS), X, Recipe(normalize=None), Placement(approximation=NystroemFeatures(rank)), seed=0)
    assert bank.has_few_samples == (rank > N)
    found = automatic(Problem(bank, loss, LpNorm(p), y[None], np.full((1, N), C)), tol=1e-4)
    best = optimum([features(entry.kernel, X[:, entry.positions]) for entry in bank.bound], y, loss, p, C)
    assert found.converged
    assert found.certificate.primal == pytest.approx(best, rel=2e-4)
    assert found.certificate.dual <= best * (1 + 1e-5)


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("C", [1e-3, 1e6])
@pytest.mark.parametrize("rank", [12, 1000])
def test_the_estimator_converges(approximation, loss, C, rank):
    X, score = data()
    kernels = [KERNELS[0], KERNELS[1]]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "approximation=")
        model = MKLClassifier(kernels, approximation=features_of(approximation, rank), loss=loss, C=C, random_state=0)
        model.fit(X, score > 0)
    assert model.converged_
    assert abs(model.gap_) <= model.tol


@pytest.mark.parametrize("tol", [1e-3, 1e-4])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_squared_hinge_walls_on_fewer_features_than_samples(approximation, tol):
    X, y = load_breast_cancer(return_X_y=True)
    kernels = [Gaussian(width) for width in (2.0, 5.0, 15.0)]
    settings = {"approximation": features_of(approximation, 20), "tol": tol, "random_state": 0}
    model = MKLClassifier(kernels, norm=1, loss="squared_hinge", C=1e6, **settings).fit(scale(X), y)
    assert model.ranks_.sum() < len(X)
    assert model.converged_
    assert model.gap_ <= tol


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_one_kernel_has_no_weights_to_search_for(loss):
    X, y = load_breast_cancer(return_X_y=True)
    settings = {"approximation": NystroemFeatures(40), "random_state": 0}
    model = MKLClassifier([Gaussian(5.0)], norm=1, loss=loss, C=1e3, **settings).fit(scale(X), y)
    assert model.converged_
    assert model.n_inner_solves_ <= 5


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=repr)
def test_a_quick_method_that_fails_is_given_less(loss):
    X, y = load_breast_cancer(return_X_y=True)
    bank = bind([Gaussian(5.0)], scale(X), placement=Placement(approximation=NystroemFeatures(60)), seed=0)
    hard = Problem(bank, loss, LpNorm(1), np.where(y > 0, 1.0, -1.0)[None], np.full((1, len(y)), 1e6))
    K = bank.combine(np.ones(1))
    for failures in (1, 2, 3):
        hard.solve(K, tol=1e-6)
        assert K.failures[0] == failures
    for failures in (2, 1, 0, 0):
        machine = replace(hard, C=np.full((1, len(y)), 1e-3)).solve(K, tol=1e-1)
        assert K.failures[0] == failures
    assert machine.gap <= 0.1 * machine.objective


def test_no_more_features_than_distinct_samples_or_than_the_kernel_has():
    X, score = data()
    with pytest.warns(UserWarning, match="makes so many features that"):
        model = MKLClassifier(KERNELS, approximation="nystroem", random_state=0).fit(X, score > 0)
    distinct = [len(np.unique(X[:, columns], axis=0)) for columns in ([0, 1, 2], [0], [2], [0, 1])]
    assert np.all(model.ranks_ <= distinct)
    assert model.ranks_[1] < distinct[1]  # a wide kernel of one column has few directions
    assert model.ranks_[2] == 1


def exact_kernels_are_named(rank, n=200, **settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    model = MKLClassifier([Gaussian(w) for w in (0.3, 0.5, 0.8)], approximation=NystroemFeatures(rank), **settings)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(X, X[:, 0] > 0)
    return [str(one.message) for one in seen if "approximation=" in str(one.message)]


def test_where_exact_kernels_cost_no_more_that_is_said_once():
    (words,) = exact_kernels_are_named(150)
    assert re.fullmatch(
        r"approximation='nystroem' makes so many features that the exact kernels of 200 samples \(.* of memory\) "
        r"cost no more: take approximation=None or a lower rank\.",
        words,
    )
    assert exact_kernels_are_named(40) == []


def test_nothing_is_said_where_exact_kernels_have_no_memory():
    assert exact_kernels_are_named(340, n=1000, memory_budget=15 * 10**6, max_iter=2, C=1e-3) == []


def test_what_does_not_fit_is_refused_before_the_work(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 5))
    monkeypatch.setattr(FeatureTable, "_fill", lambda *_: pytest.fail("the work has begun"))
    model = MKLClassifier([Gaussian(0.3)], approximation=NystroemFeatures(1000), memory_budget="10MB")
    with pytest.raises(MemoryError, match=r"^The memory budget leaves .* for kernels, but their landmarks need .* MB"):
        model.fit(X, X[:, 0] > 0)


def test_a_table_in_a_file_is_mapped_a_block_at_a_time():
    Z = np.random.default_rng(0).normal(size=(3000, 40))
    table = FeatureTable(lambda low, high: Z[low:high], 3000, 40, np.float64, 500_000)
    assert "temporary file" in table.describe()
    assert len(table.blocks) > 3
    assert np.array_equal(table.block(1003, 1010), Z[1003:1010])
    assert np.array_equal(table.tail(1234), Z[-1234:])
    assert table.block(5, 9).nbytes == 4 * 40 * 8


def test_predictions_take_little_memory_however_many_features_there_are():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(600, 6)), rng.normal(size=(5000, 6))
    kernels = [Gaussian(width) for width in (1.0, 1.5, 2.0)]
    settings = {"approximation": NystroemFeatures(500), "norm": 2, "max_iter": 1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MKLClassifier(kernels, **settings).fit(X, X[:, 0] > 0)
    assert model.ranks_.sum() > 1400
    expected = model.decision_function(Z[:20])
    tracemalloc.start()
    try:
        found = model.decision_function(Z)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * 10**6  # a block of 4096 rows alone has 49 MB
    np.testing.assert_allclose(found[:20], expected, rtol=1e-10, atol=1e-12)
