"""Rows on workers: features of them are learned from without an array of all rows, and only sums travel."""

import weakref
from functools import reduce
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from manykernels import MKLClassifier, MKLClassifierCV, MKLRegressor, load, mkl_path
from manykernels.banks import Placement, Recipe, bind, on_workers
from manykernels.banks.cluster import load_rows
from manykernels.banks.cluster import row_block as on_row_block
from manykernels.banks.cluster.row_bank import RowBank, RowSource
from manykernels.banks.cluster.row_blocks import RowBlocks
from manykernels.compute.gpu import has_device
from manykernels.compute.threads import n_threads
from manykernels.core.solver import Solver
from manykernels.core.targets import Targets
from manykernels.estimators import by_rows
from manykernels.inner.simplex_program import solve_program
from manykernels.kernels import FourierFeatures, Gaussian, KernelBank, Linear, NystroemFeatures
from manykernels.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Quantile, Squared, SquaredHinge
from manykernels.norms import LpNorm, LpPenalty, MixedNorm, Penalty
from manykernels.outer.automatic import automatic
from manykernels.problem import Problem
from tests.binding import bind_with, features_of

KERNELS = [Gaussian(0.7), Gaussian(2.0), Gaussian(1.0, columns=[0]), Linear()]
LOSSES = [Hinge(), SquaredHinge(), Logistic(), Squared(), EpsilonInsensitive(0.1), Quantile(0.8), Huber(0.5)]


needs_torch = pytest.mark.skipif(not has_device("torch:cpu"), reason="needs torch")
PARTS = [Gaussian(1.0, columns=[0]), Linear(columns=[1, 2])]


class Here:
    """Blocks in this process, with the interface of those on workers."""

    def __init__(self, blocks):
        self.blocks = blocks

    def derived(self, function, large, *, replaces=False):
        return Here([function(block, large) for block in self.blocks])

    def sum(self, function, *arguments):
        return reduce(np.add, [function(block, *arguments) for block in self.blocks])

    def each(self, function, *arguments):
        return [function(block, *arguments) for block in self.blocks]

    def chosen(self, function, rows, sizes):
        first = np.concatenate([[0], np.cumsum(sizes)])
        own = [rows[(rows >= low) & (rows < high)] - low for low, high in pairwise(first)]
        return [function(block, part) for block, part in zip(self.blocks, own, strict=True)]


def data(n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.2 * rng.normal(size=n)


def bank_of_rows(X, y, weight, targets, cuts=(0, 50, 130, 240), kernels=KERNELS, **settings):
    pieces = [slice(low, high) for low, high in pairwise(cuts)]
    raw = Here([on_row_block.RawBlock(X[own], y[own], weight[own]) for own in pieces])
    source = RowSource(raw, [(own.stop - own.start, X.shape[1]) for own in pieces])
    options = {"approximation": NystroemFeatures(30), "normalize": "mean_diag", "center": False, **settings}
    rng = np.random.default_rng(0)
    options.setdefault("precision", "double")
    return RowBank(KernelBank(kernels).resolve(X), source, targets, random_state=rng, **options)


def row_problem(bank, loss, norm, fit_intercept, offset=0.0):
    return Problem(bank, loss, norm, bank.unknown, bank.unknown, fit_intercept, offset)


def targets_of(loss, C):
    return Targets(C) if loss.regression else Targets(C, np.array([-1.0, 1.0]), np.ones(2))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize(
    ("norm", "C", "intercept"),
    [(LpNorm(1), 1.0, True), (LpNorm(1.5), 0.01, False), (LpNorm(2), 10.0, True), (LpPenalty(2), 1.0, True)],
)
def test_equals_the_same_problem_with_matrices(loss, norm, C, intercept):
    X, score = data()
    y = score if loss.regression else np.where(score > 0, 1.0, -1.0)
    bank = bank_of_rows(X, y, np.ones(240), targets_of(loss, C), normalize=None)
    found = automatic(row_problem(bank, loss, norm, intercept), tol=1e-4)
    written = bind(
        KernelBank([entry.kernel for entry in bank.bound]), X, Recipe(normalize=None), Placement(precision="double")
    )
    problem = Problem(written, loss, norm, y[None], np.full((1, 240), C), intercept)
    expected = automatic(problem, tol=1e-5)
    assert found.converged
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=2e-4)
    assert found.certificate.dual <= expected.certificate.primal * (1 + 1e-9)


@pytest.mark.parametrize("loss", [Squared(), EpsilonInsensitive(0.01)], ids=repr)
def test_an_intercept_keeps_the_digits_that_a_huge_offset_leaves_it(loss):
    X, y = data()
    offset = 1e15 + 0.25
    problem = row_problem(bank_of_rows(X, y, np.ones(240), Targets(10.0)), loss, LpNorm(2), True, offset)
    result = automatic(problem, tol=1e-6, max_iter=20)
    weights, machine = result.weights, result.machine
    assert np.all((machine.intercept + offset) - offset == machine.intercept)
    u = problem.bank.by_column(weights) * machine.beta.vectors[0]
    z = np.concatenate([block.Z @ u for block in problem.bank.blocks.blocks]) + machine.intercept[0]
    primal = LpNorm(2).regularizer(weights, problem.quad_forms(machine)) + 10.0 * loss.value(y, z).sum()
    assert result.certificate.primal == pytest.approx(primal, rel=1e-9)
    assert result.certificate.gap > 1e-4  # of what is left, no more can be had


def test_a_huge_mean_of_targets_is_in_the_certificate_of_rows_on_workers(threads):
    X, y = data()
    y = y + 1e15
    settings = {"kernels": KERNELS, "approximation": NystroemFeatures(30), "norm": 2, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        model = MKLRegressor(**settings, loss="squared", C=10.0, tol=1e-6, max_iter=20, cluster=threads).fit(X, y)
    assert model.gap_ > 1e-4


@pytest.mark.parametrize("normalize", ["mean_diag", "trace", "cosine", None])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_learns_of_the_data_what_a_local_bank_learns(normalize, center, approximation):
    X, y = data()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 240)
    settings = {"approximation": features_of(approximation, 30), "normalize": normalize, "center": center}
    bank = bank_of_rows(X, y, weight, Targets(1.0), **settings)
    local = bind_with(
        KernelBank(KERNELS),
        X,
        sample_weight=weight,
        precision="double",
        random_state=0,
        **settings,
    )
    for name in ("first", "scale", "largest", "mean", "errors"):
        np.testing.assert_allclose(getattr(bank, name), getattr(local, name), rtol=1e-9, atol=1e-12)
    few, _, _ = bank.coarse(20, bank.unknown, bank.unknown)
    assert few.combine(np.ones(4)).array.shape == (20, 20)


def test_centering_needs_rows_that_have_all_views():
    """As everywhere: rows that lack one would be as far from the mean as from 0, and the model would refuse them."""
    X, y = data()
    X[200, 0] = np.nan
    assert np.isfinite(bank_of_rows(X, y, np.ones(240), Targets(1.0), kernels=PARTS).scale).all()
    with pytest.raises(ValueError, match="center=True needs samples that have all views"):
        bank_of_rows(X, y, np.ones(240), Targets(1.0), kernels=PARTS, center=True)


def test_values_beyond_single_precision_are_held_in_double():
    X, y = data()
    bank = bank_of_rows(1e18 * X, y, np.ones(240), Targets(1.0), kernels=[Linear(), Gaussian(1e18)], precision="single")
    local = bind_with([Linear(), Gaussian(1e18)], 1e18 * X, approximation=NystroemFeatures(30), random_state=0)
    assert bank.precision == local.precision == "double"
    assert np.isfinite(bank.largest).all()
    np.testing.assert_allclose(bank.scale, local.scale, rtol=1e-12)
    with pytest.raises(ValueError, match="'Linear on x0' overflows on this data: scale the features"):
        bank_of_rows(1e200 * X, y, np.ones(240), Targets(1.0), kernels=[Linear(columns=[0])])


def test_a_worker_without_rows_changes_nothing():
    """As a filter leaves it."""
    X, y = data()
    bank, whole = (bank_of_rows(X, y, np.ones(240), Targets(1.0), cuts=c) for c in ((0, 50, 50, 240), (0, 50, 240)))
    np.testing.assert_array_equal(bank.largest, whole.largest)
    results = [automatic(row_problem(b, Squared(), LpNorm(1), True), tol=1e-3, max_iter=30) for b in (bank, whole)]
    assert results[0].converged
    np.testing.assert_allclose(results[0].certificate.primal, results[1].certificate.primal, rtol=2e-3)


class Workers:
    """Workers in this process, which know the results that they have been asked for, but do not keep them."""

    def __init__(self):
        self.results = []

    def send(self, data):
        return data

    def submit(self, place, function, *arguments):
        result = function(*arguments)
        if isinstance(result, on_row_block.FeatureBlock):
            self.results.append(weakref.ref(result))
        return result

    def gather(self, futures):
        return futures

    def tree(self, add, parts):
        future = SimpleNamespace(value=reduce(add, [part for _, part in parts]))
        future.result = lambda: future.value
        return future

    def persistent(self, ask, restore):
        return ask()


@pytest.mark.parametrize("center", [False, True])
def test_workers_keep_each_block_of_features_once(center):
    X, y = data()
    workers, blocks = (
        Workers(),
        [on_row_block.RawBlock(X[rows], y[rows], np.ones(120)) for rows in np.arange(240).reshape(2, -1)],
    )
    source = RowSource(RowBlocks(workers, lambda: blocks), [block.X.shape for block in blocks])
    options = {"approximation": NystroemFeatures(30), "normalize": "mean_diag", "precision": "single"}
    bank = RowBank(
        KernelBank(KERNELS).resolve(X),
        source,
        Targets(1.0),
        center=center,
        random_state=np.random.default_rng(0),
        **options,
    )
    assert len(workers.results) == 2 * (1 + center)
    assert sum(block() is not None for block in workers.results) == 2
    np.testing.assert_allclose(
        bank.scale, bank_of_rows(X, y, np.ones(240), Targets(1.0), center=center).scale, rtol=1e-12
    )


def test_the_program_of_the_planes():
    """Against its conditions: no feasible direction raises the value."""
    rng = np.random.default_rng(0)
    A, o, owner, balance = rng.normal(size=(12, 5)), rng.normal(size=12), np.arange(12) % 3, rng.normal(size=12)
    x, b = solve_program(A @ A.T, o, owner, balance)
    assert np.all(x >= 0)
    assert np.all(np.bincount(owner, x) <= 1 + 1e-12)
    assert abs(balance @ x) < 1e-12
    slope = o - A @ (A.T @ x) - b * balance
    best = np.maximum([slope[owner == g].max() for g in range(3)], 0.0)
    assert float(best.sum() - slope @ x) < 1e-6


# -- the estimators -----------------------------------------------------------------------------------------------


def classes(n=300):
    return make_classification(n, 4, n_informative=3, n_redundant=0, flip_y=0.1, random_state=0)


SETTINGS = {
    "kernels": [Gaussian(0.7), Gaussian(2.0), Linear()],
    "approximation": FourierFeatures(20),
    "random_state": 0,
}


@pytest.mark.parametrize("kind", ["array", "frame", "local"])
def test_a_fit_on_rows_of_workers(client, kind, tmp_path):
    """With the same waves as a fit on one machine, the same model."""
    da, dd, pd = (pytest.importorskip(name) for name in ("dask.array", "dask.dataframe", "pandas"))
    X, y = classes()
    X_given, y_given, X_local = X, y, X
    if kind == "array":
        X_given, y_given = da.from_array(X, chunks=(70, 2)), da.from_array(y, chunks=100)
    if kind == "frame":
        X_local = pd.DataFrame(X, columns=list("abcd"))
        frame = dd.from_pandas(X_local.assign(y=y), npartitions=5)
        X_given, y_given = frame[list("abcd")], frame["y"]
    local = MKLClassifier(**SETTINGS, norm=1.5).fit(X_local, y)
    model = MKLClassifier(**SETTINGS, norm=1.5, cluster="dask").fit(X_given, y_given)
    assert model.converged_
    assert model.objective_ == pytest.approx(local.objective_, rel=2e-3)
    np.testing.assert_allclose(model.weights_, local.weights_, atol=5e-2)
    assert np.mean(model.predict(X_local) == local.predict(X_local)) > 0.97
    assert list(model.kernel_names_) == list(local.kernel_names_)
    assert model.n_features_in_ == 4
    assert getattr(model, "feature_names_in_", None) is None or list(model.feature_names_in_) == list("abcd")
    np.testing.assert_allclose(model.decision_function(X_given), model.decision_function(X_local))
    model.save(tmp_path / "model.mkl")
    np.testing.assert_allclose(
        load(tmp_path / "model.mkl").decision_function(X_local), model.decision_function(X_local)
    )


def test_regression_with_weights_and_centering(client):
    da = pytest.importorskip("dask.array")
    X, y = data(300)
    weight = np.random.default_rng(1).integers(1, 3, 300).astype(float)
    settings = {**SETTINGS, "norm": 1.0, "C": 0.1, "center": True, "loss": "squared"}
    local = MKLRegressor(**settings).fit(X, y, sample_weight=weight)
    model = MKLRegressor(**settings).fit(da.from_array(X, chunks=(90, 3)), y, sample_weight=weight)
    assert model.objective_ == pytest.approx(local.objective_, rel=2e-3)
    np.testing.assert_allclose(model.predict(X), local.predict(X), atol=0.1)


def test_several_classes_with_balanced_weights(client):
    da = pytest.importorskip("dask.array")
    X, y = make_classification(240, 4, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    names = np.array(["low", "middle", "high"])[y]
    settings = {**SETTINGS, "norm": 2.0, "class_weight": "balanced", "loss": "logistic"}
    local = MKLClassifier(**settings).fit(X, names)
    model = MKLClassifier(**settings).fit(da.from_array(X, chunks=(80, 4)), da.from_array(names, chunks=80))
    assert list(model.classes_) == list(local.classes_)
    assert model.objective_ == pytest.approx(local.objective_, rel=2e-3)
    assert model.predict_proba(X).shape == (240, 3)


def test_only_sums_as_long_as_the_features_travel(client):
    """A round sends a plane of each block and a few losses, whatever the number of rows."""
    sent = {}
    for n in (1000, 8000):
        X, y = classes(n)
        source, _ = load_rows(client, X, y, None, False)
        targets = Targets(1 / n, np.array([0, 1]), np.ones(2))
        options = {"normalize": "mean_diag", "center": False, "precision": "single"}
        bound, rng = KernelBank(SETTINGS["kernels"]).resolve(X), np.random.default_rng(0)
        bank = RowBank(bound, source, targets, approximation=FourierFeatures(200), random_state=rng, **options)
        problem = row_problem(bank, Hinge(), LpNorm(1), True)
        K, D, before = bank.combine(np.full(3, 1 / 3)), int(bank.first[-1]), _bytes_sent(client)
        machine = problem.solve(K, None, 1e-2)
        rounds = K.planes[0].offsets.size // 4
        sent[n] = (_bytes_sent(client) - before) / rounds
        assert machine.gap <= 1e-2 * machine.objective
        assert sent[n] < 1.2 * 8 * (4 * D + 4 * 50 + 12 * 4 * 33)
    assert 0.5 < sent[8000] / sent[1000] < 2.0


def _bytes_sent(client):
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def test_parts_without_rows_have_no_predictions(client):
    """As a filter leaves them."""
    da = pytest.importorskip("dask.array")
    X, y = classes(100)
    model = MKLClassifier([Gaussian(1.0)]).fit(X, y)
    given, keep = da.from_array(X, chunks=(25, 4)), np.arange(100) // 25 != 1
    filtered = given[da.from_array(keep, chunks=25)]
    for name in ("predict", "decision_function"):
        np.testing.assert_allclose(getattr(model, name)(filtered), getattr(model, name)(X[keep]), rtol=1e-12)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(given[da.zeros(100, chunks=25, dtype=bool)])


def threads_of(X):
    """What a prediction would use, in the place of each row."""
    return np.full((len(X), 1), n_threads())


def test_predictions_take_the_threads_of_their_worker(client):
    da = pytest.importorskip("dask.array")
    used = on_workers.by_parts(threads_of, da.zeros((30, 2), chunks=(10, 2)), client)
    np.testing.assert_array_equal(used, np.ones((30, 1)))


class Counted:
    """A function that counts how often it is pickled."""

    times = 0

    def __call__(self, X):
        return np.zeros((len(X), 1))

    def __getstate__(self):
        type(self).times += 1
        return {}


def test_what_predicts_is_sent_once(client):
    da = pytest.importorskip("dask.array")
    Counted.times = 0
    on_workers.by_parts(Counted(), da.zeros((60, 2), chunks=(5, 2)), client)
    assert Counted.times == 1


def test_exact_kernels_gather_small_data_only(client):
    da = pytest.importorskip("dask.array")
    X, y = classes(100)
    given = da.from_array(X, chunks=(30, 4)), da.from_array(y, chunks=30)
    local, model = MKLClassifier([Gaussian(1.0)]).fit(X, y), MKLClassifier([Gaussian(1.0)]).fit(*given)
    np.testing.assert_allclose(model.decision_function(X), local.decision_function(X))
    with pytest.raises(MemoryError, match="approximation='nystroem'"):
        MKLClassifier([Gaussian(1.0)], memory_budget="20kB").fit(*given)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"norm": MixedNorm(2)}, "norm"),
        ({"solver": "newton"}, "solver"),
        ({"probability": True}, "probability"),
        ({"shared_weights": False}, "shared_weights"),
        pytest.param({"device": "torch:cpu"}, "device='cpu'", marks=needs_torch),
    ],
)
def test_what_needs_all_rows_is_refused(client, settings, words):
    da = pytest.importorskip("dask.array")
    X, y = classes(60)
    with pytest.raises(ValueError, match=words):
        MKLClassifier(**{**SETTINGS, **settings}).fit(da.from_array(X, chunks=(30, 4)), y)


def counting(monkeypatch, owner, name):
    """Count the calls of a function."""
    function, calls = getattr(owner, name), []
    monkeypatch.setattr(owner, name, lambda *given, **named: calls.append(name) or function(*given, **named))
    return calls


def remembering(starts):
    """A solver that remembers where it started."""

    def run(problem, *, tol, max_iter, start=None):
        starts.append(start)
        return automatic(problem, tol=tol, max_iter=max_iter, start=start)

    return run


@pytest.mark.parametrize("regression", [False, True])
def test_rows_are_loaded_and_bound_once_on_a_path(client, monkeypatch, regression):
    da = pytest.importorskip("dask.array")
    X, y = data() if regression else classes()
    given = da.from_array(X, chunks=(70, X.shape[1])), da.from_array(y, chunks=70)
    loads, binds, starts = counting(monkeypatch, on_workers, "load_rows"), counting(monkeypatch, by_rows, "bind"), []
    settings = {**SETTINGS, "loss": "squared", "cluster": "dask"}
    path = mkl_path(
        settings.pop("kernels"),
        *given,
        Cs=[0.01, 0.1],
        norms=[1.5, 2.0],
        regression=regression,
        solver=remembering(starts),
        **settings,
    )
    assert (len(loads), len(binds)) == (1, 1)
    assert starts[0] is None
    for point, start in zip(path[:-1], starts[1:], strict=True):  # each where the one before ended
        np.testing.assert_allclose(start / start.sum(), point.model.weights_ / point.model.weights_.sum())
    for point in path:
        alone = type(point.model)(**{**SETTINGS, "loss": "squared"}, C=point.C, norm=point.norm).fit(*given)
        assert point.model.converged_
        assert point.model.objective_ == pytest.approx(alone.objective_, rel=2e-3)
        assert point.model.n_features_in_ == X.shape[1]


def test_a_search_loads_the_rows_of_each_fold_once(client, monkeypatch):
    X, y = classes(120)
    loads = counting(monkeypatch, on_workers, "load_rows")
    MKLClassifierCV(**SETTINGS, Cs=[0.1, 1.0], norms=[1.5, 2.0], cv=2, cluster="dask").fit(X, y)
    assert len(loads) == 2 + 1  # that of all samples is the last


def test_norms_are_walked_in_turns_where_rows_are_on_workers(client):
    da = pytest.importorskip("dask.array")
    X, y = classes(60)
    given = da.from_array(X, chunks=(30, X.shape[1])), da.from_array(y, chunks=30)
    path = mkl_path(SETTINGS["kernels"], *given, Cs=[0.1], norms=[1.5, 2.0], approximation="nystroem", n_jobs=2)
    assert [point.norm for point in path] == [1.5, 2.0]
    assert [point.model.n_jobs for point in path] == [2, 2]


def test_a_table_on_disk_is_refused_before_it_is_read(client):
    class Unread:
        is_row_source, shape, columns = True, (60, 5), ["a", "b", "c", "d", "e"]

        def __getitem__(self, rows):
            raise AssertionError("was read")

    _, y = classes(60)
    words = "^A table on disk is not sent to Dask workers: pass a Dask DataFrame of the same file"
    with pytest.raises(ValueError, match=words):
        MKLClassifier(**SETTINGS, cluster="dask").fit(Unread(), y)
    with pytest.raises(ValueError, match=words):
        mkl_path(X=Unread(), y=y, **SETTINGS, cluster="dask")


def test_a_path_refuses_what_needs_all_rows_before_they_are_loaded(client, monkeypatch):
    monkeypatch.setattr(on_workers, "load_rows", lambda *arguments: pytest.fail("rows were loaded"))
    with pytest.raises(ValueError, match="a norm without groups"):
        mkl_path([Gaussian(1.0)], *classes(60), norms=[2.0, MixedNorm(2)], approximation="fourier", cluster="dask")


def test_bad_rows_are_named(client):
    da = pytest.importorskip("dask.array")
    X, y = classes(60)
    with pytest.raises(ValueError, match="as many rows"):
        MKLClassifier(**SETTINGS).fit(da.from_array(X, chunks=(30, 4)), da.from_array(y[:50], chunks=30))
    with pytest.raises(ValueError, match="at least 2 classes"):
        MKLClassifier(**SETTINGS).fit(da.from_array(X, chunks=(30, 4)), np.zeros(60))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        MKLClassifier(**SETTINGS).fit(da.from_array(X, chunks=(30, 4)), y)


class Bound(Penalty):
    """LpPenalty(2) that tells which groups it was bound to."""

    seen = None

    def bind(self, groups):
        Bound.seen = list(groups)
        return self

    def value(self, weights):
        return float(weights @ weights)

    def gradient(self, weights):
        return 2 * weights


def refusing(problem, **options):
    raise AssertionError


def test_a_solver_that_refuses_does_so_before_rows_are_loaded(client, monkeypatch):
    monkeypatch.setattr(on_workers, "load_rows", lambda *arguments: pytest.fail("rows were loaded"))
    solver = Solver("mine", refusing, refuses=lambda norm, loss: f"is not for {loss!r}.")
    with pytest.raises(TypeError, match=r"^solver='mine' is not for Hinge\(\)\.$"):
        MKLClassifier(**SETTINGS, solver=solver, cluster="dask").fit(*classes(60))


def test_a_norm_learns_the_groups_of_kernels_on_rows_of_workers(client):
    kernels = [Gaussian(w, group=group) for w, group in ((1.0, "a"), (2.0, "b"), (4.0, "b"))]
    model = MKLClassifier(kernels, norm=Bound(), approximation=FourierFeatures(10), random_state=0, cluster="dask")
    model.set_params(max_iter=2, tol=1.0).fit(*classes(60))
    assert Bound.seen == ["a", "b", "b"]


def test_costs_that_have_lost_their_digits_are_refused_on_rows_of_workers(client):
    X, y = classes(60)
    for cluster in (None, "dask"):
        with pytest.raises(
            ValueError, match=r"^C times the sample weight must be 0 or at least 2\.2e-308, got 1e-309\.$"
        ):
            MKLClassifier(**SETTINGS, C=1e-2, cluster=cluster).fit(X, y, np.where(np.arange(60) == 3, 1e-307, 1.0))
    weight = np.where(np.arange(60) == 3, 1e-309, 1.0)  # counts as 0 itself
    MKLClassifier(**SETTINGS, cluster="dask").fit(X, y, weight)


def test_where_rows_are_and_why_is_printed(client, capsys):
    MKLClassifier(**SETTINGS, cluster="dask", verbose=1).fit(*classes(60))
    place = capsys.readouterr().out.splitlines()[0]
    assert place.startswith("kernels: 3 kernels with ")
    assert place.endswith("of 60 rows on Dask workers; they stay where the rows are")


def test_kernels_that_say_how_they_are_held_are_refused_on_workers(client):
    class Held(KernelBank):
        def hold(self, data, recipe, placement):
            return None

    X, y = classes(60)
    for settings, words in (({}, "cluster='dask'"), ({"approximation": "fourier"}, "approximation='fourier'")):
        with pytest.raises(TypeError, match=rf"^{words} cannot hold kernels as Held\.hold would"):
            MKLClassifier(Held([Gaussian(1.0)]), cluster="dask", **settings).fit(X, y)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_standard_kernels_learn_the_units_of_columns_where_the_rows_are(client, form):
    da = pytest.importorskip("dask.array")
    X, y = data()
    X = X * [1e5, 1e-3, 1.0] + [1e7, 0.0, 3.0]
    weight = np.random.default_rng(1).integers(0, 3, 240).astype(float)
    settings = {"approximation": NystroemFeatures(20), "norm": 2, "random_state": 0}
    model = MKLRegressor(**settings, cluster=client).fit(form(X), y, sample_weight=weight)
    mean = np.average(X, axis=0, weights=weight)
    np.testing.assert_allclose(model.column_means_, mean, rtol=1e-12)
    np.testing.assert_allclose(model.column_scales_, np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight)))
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(model.predict(da.from_array(X, chunks=(100, 3))), model.predict(X), rtol=1e-9)


def kernels_here_and_on_workers(client, X, y, **settings):
    settings = {"approximation": NystroemFeatures(5), "norm": 2, "max_iter": 2, "tol": 1.0, **settings}
    models = []
    for cluster in (None, client):
        with pytest.warns(UserWarning, match="too many for kernels of their own") as told:
            models.append(MKLClassifier(**settings, cluster=cluster).fit(X, y))
        assert sum("too many for kernels" in str(entry.message) for entry in told) == 1
    return models


def test_standard_kernels_of_a_large_table_are_the_same_on_workers(threads):
    X = np.random.default_rng(0).normal(size=(6000, 400))
    local, remote = kernels_here_and_on_workers(threads, X, np.sign(X[:, 0]))
    assert len(remote.kernel_names_) == 13
    assert list(remote.kernel_names_) == list(local.kernel_names_)


def test_standard_kernels_of_wide_sparse_rows_are_the_same_on_workers(threads):
    rng = np.random.default_rng(0)
    X = sp.random(300, 400, 0.05, "csr", random_state=0).toarray()
    X[:, 7] = rng.normal(size=300)  # a column that is filled gets kernels of its own
    y = np.sign(X[:, 7] + X[:, 0] - 0.1)
    local, remote = kernels_here_and_on_workers(threads, sp.csr_array(X), y)
    assert not hasattr(remote, "column_scales_")
    assert len(local.kernel_names_) == 7 + 13
    assert list(local.kernel_names_) == list(remote.kernel_names_)


def test_a_bank_that_standardizes_does_so_for_wide_sparse_rows_of_workers(threads):
    X = sp.random(240, 120, 0.3, "csr", random_state=0)
    y = np.sign(X.toarray()[:, 0] - 0.2)
    kernels = KernelBank([Gaussian(10.0), Linear()], standardize=True)
    settings = {"approximation": NystroemFeatures(20), "random_state": 0}
    local, remote = (MKLClassifier(kernels, **settings, cluster=cluster).fit(X, y) for cluster in (None, threads))
    np.testing.assert_allclose(remote.column_scales_, local.column_scales_)
    np.testing.assert_allclose(remote.column_means_, local.column_means_, atol=1e-12)
