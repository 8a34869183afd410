"""A fit whose kernels are on workers gives the model of a fit on one machine."""

import pickle
import tracemalloc

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.model_selection import GridSearchCV

from manykernels import MKLClassifier, MKLClassifierCV, MKLRegressor, load, mkl_path
from manykernels.banks import Placement, bind
from manykernels.compute.triangles import triangle_size
from manykernels.kernels import Gaussian, GaussianFamily, KernelBank, Linear, Precomputed, standard_bank
from manykernels.norms import MixedNorm

N = 90
FIGURES = ("objective_", "dual_objective_", "intercept_")


def classes(n=N, n_classes=2):
    return make_classification(n, 5, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.1, random_state=0)


def compare(local, remote, rtol=1e-6):
    np.testing.assert_allclose(remote.weights_, local.weights_, rtol=0, atol=1e-6)
    for name in FIGURES:
        np.testing.assert_allclose(getattr(remote, name), getattr(local, name), rtol=rtol, atol=1e-6)
    assert remote.converged_
    assert remote.gap_ <= remote.tol
    assert list(remote.kernel_names_) == list(local.kernel_names_)
    assert remote.group_names_ == local.group_names_
    np.testing.assert_allclose(remote.feature_importances_, local.feature_importances_, atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"norm": 1.0},
        {"norm": 1.5},
        {"norm": 1.0, "loss": "logistic"},
        {"norm": 1.5, "loss": "squared", "center": True},
        {"norm": 2.0, "loss": "squared_hinge", "normalize": "cosine"},
        {"norm": MixedNorm(2), "loss": "logistic"},
    ],
    ids=str,
)
def test_the_same_weights(client, settings):
    X, y = classes()
    bank = standard_bank(X, widths=3, degrees=(1,))
    settings = {"kernels": bank, "tol": 1e-7, **settings}
    local = MKLClassifier(**settings).fit(X, y)
    remote = MKLClassifier(**settings, cluster="dask").fit(X, y)
    compare(local, remote)
    np.testing.assert_allclose(remote.decision_function(X), local.decision_function(X), atol=1e-4)
    assert remote.n_iter_ == len(remote.trace_)


def test_a_default_fit_differs_by_less_than_its_tolerance(client):
    X, y = classes()
    local, remote = MKLClassifier().fit(X, y), MKLClassifier(cluster=client).fit(X, y)
    assert remote.objective_ == pytest.approx(local.objective_, rel=1e-3)
    assert np.array_equal(local.predict(X), remote.predict(X))


def test_regression_with_a_client_of_its_own(processes):
    X, y = make_regression(N, 4, noise=5.0, random_state=0)
    settings = {"loss": "epsilon_insensitive", "epsilon": 1.0, "norm": 1.0, "tol": 1e-8}
    compare(MKLRegressor(**settings).fit(X, y), MKLRegressor(**settings, cluster=processes).fit(X, y))


@pytest.mark.parametrize("shared", [True, False])
def test_several_classes(client, shared):
    X, y = classes(60, 3)
    settings = {"kernels": [Gaussian(w) for w in (1.0, 3.0)] + [Linear()], "norm": 1.0, "shared_weights": shared}
    local = MKLClassifier(**settings, tol=1e-8).fit(X, y)
    compare(local, MKLClassifier(**settings, tol=1e-8, cluster="dask").fit(X, y))


def test_matrices_of_your_own(client):
    X, y = classes()
    kernels = [Precomputed(np.exp(-((X[:, [j]] - X[:, j]) ** 2)), label=f"feature {j}") for j in range(5)]
    numbers, settings = np.arange(N)[:, None], {"norm": 1.5, "tol": 1e-8}
    local = MKLClassifier(kernels, **settings).fit(numbers, y)
    compare(local, MKLClassifier(kernels, **settings, cluster="dask").fit(numbers, y))


def test_the_model_holds_no_futures(processes, tmp_path):
    """It is pickled, cloned and saved; a client, which cannot be, becomes "dask"."""
    X, y = classes(60)
    model = MKLClassifier([Gaussian(1.0), Linear()], cluster=processes).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    model.save(tmp_path / "model.mkl")
    saved = load(tmp_path / "model.mkl")
    for other in (again, saved):
        assert other.cluster == "dask"
        np.testing.assert_allclose(other.decision_function(X), model.decision_function(X))
    assert model.cluster is processes
    assert clone(model).cluster is processes
    assert not hasattr(clone(model), "weights_")
    calibrated = MKLClassifier([Gaussian(1.0), Linear()], cluster=processes, probability=True).fit(X, y)
    assert calibrated.predict_proba(X).shape == (60, 2)


def test_a_path_keeps_its_kernels_on_the_workers(client):
    # So exact that one iteration more or less, which rounding may decide, does not move the weights by 1e-6.
    X, y = classes(60)
    settings = {"Cs": [0.1, 1.0], "norms": [1.5], "tol": 1e-10}
    kernels = [Gaussian(w) for w in (1.0, 2.0, 4.0)]
    for local, remote in zip(
        mkl_path(kernels, X, y, **settings), mkl_path(kernels, X, y, cluster="dask", **settings), strict=True
    ):
        compare(local.model, remote.model)


# -- what moves, and what is held -------------------------------------------------------------------------------


def bytes_sent(client):
    """What all workers have sent so far, to one another and to the driver, as they count it."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def test_bytes_of_an_iteration_do_not_grow_with_the_kernels(processes):
    """An iteration sends triangles along the tree, and one number for each kernel."""
    n, sent = 120, {}
    X = np.random.default_rng(0).normal(size=(n, 4))
    for m in (20, 80, 320):
        kernels = [Gaussian(w, columns=[c]) for w in np.geomspace(0.5, 8, m // 4) for c in range(4)]
        bank = bind(kernels, X, placement=Placement(1, client=processes))
        beta = np.random.default_rng(1).normal(size=n)
        bank.combine(np.ones(m))
        before = bytes_sent(processes)
        for _ in range(3):
            bank.combine(np.full(m, 1 / m))
            bank.quad_forms(beta)
        sent[m] = (bytes_sent(processes) - before) / 3
    for m, found in sent.items():
        assert found == pytest.approx(4 * 8 * triangle_size(n) + 8 * m, rel=0.02)
    assert sent[320] - sent[20] <= 8 * 300 + 0.02 * sent[20]


def test_a_fit_with_many_kernels_moves_little_more(client):
    """Of a whole fit with four times the kernels, the bytes of an iteration are the same but for the numbers."""
    X, y = classes(100)
    per_iteration = {}
    for widths in (4, 16):
        before = bytes_sent(client)
        model = MKLClassifier(standard_bank(X, widths=widths, degrees=()), norm=1.5, cluster="dask").fit(X, y)
        per_iteration[widths] = (bytes_sent(client) - before) / model.n_iter_
        m = len(model.weights_)
    assert per_iteration[16] <= 1.35 * per_iteration[4] + 8 * m


@pytest.mark.parametrize("norm", [1.0, 1.5])
def test_the_driver_keeps_to_its_memory(client, norm):
    """The kernels take three times what the driver may use; those of the working set are there only if they fit."""
    n, budget = 300, 24_000_000
    X, y = classes(n)
    views = [[0], [1], [0, 1], [1, 2], [2, 3], [3, 4], [0, 1, 2], None]
    bank = KernelBank([Gaussian(w, columns=c) for c in views for w in np.geomspace(0.3, 10, 52)])
    assert len(bank) * 4 * triangle_size(n) > 3 * budget
    settings = {"kernels": bank, "norm": norm, "memory_budget": budget, "cluster": "dask"}
    MKLClassifier(**settings).fit(X, y)  # what is compiled and imported belongs to no fit
    tracemalloc.start()
    try:
        model = MKLClassifier(**settings).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.converged_
    assert peak < budget


# -- other ways to use a cluster ----------------------------------------------------------------------------------


def test_folds_and_grids_through_joblib(client):
    """Each fit is one task; a fit within a task does not start others, whatever cluster says."""
    X, y = classes(60)
    kernels = [Gaussian(1.0), Gaussian(3.0)]
    settings = {"Cs": [0.1, 1.0], "norms": [1.0, 2.0], "cv": 3}
    local = MKLClassifierCV(kernels, **settings).fit(X, y)
    grid = GridSearchCV(MKLClassifier(kernels, cluster="dask"), {"C": [0.1, 1.0]}, cv=3, error_score="raise")
    with joblib.parallel_config("dask"):
        remote = MKLClassifierCV(kernels, **settings).fit(X, y)
        grid.fit(X, y)
        path = mkl_path(kernels, X, y, Cs=[0.1, 1.0], norms=[1.0, 2.0])
    np.testing.assert_allclose(remote.scores_, local.scores_)
    assert (remote.C_, remote.norm_) == (local.C_, local.norm_)
    assert grid.best_score_ > 0.5
    for point, other in zip(path, mkl_path(kernels, X, y, Cs=[0.1, 1.0], norms=[1.0, 2.0]), strict=True):
        assert (point.C, point.norm) == (other.C, other.norm)
        assert point.model.objective_ == pytest.approx(other.model.objective_, rel=1e-3)


def test_what_is_not_for_workers_is_refused(client):
    X, y = classes(60)
    for settings in ({"combination": "product"}, {"kernels": GaussianFamily(0.1, 10.0)}):
        with pytest.raises(ValueError, match="cluster= needs"):
            MKLClassifier(**settings, cluster="dask").fit(X, y)
    with pytest.raises(TypeError, match="cluster must be None, 'dask' or"):
        MKLClassifier(cluster="spark").fit(X, y)
    with pytest.raises(MemoryError, match="memory_budget"):
        MKLClassifier(cluster="dask", memory_budget="50kB").fit(X, y)
    with pytest.raises(ValueError, match="positive semidefinite"):
        MKLClassifier([Precomputed(-np.eye(60))], cluster="dask").fit(np.arange(60)[:, None], y)
