"""Kernels of small rank for many samples: the same problem as with the approximate kernels written out."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from manykernels import MKLClassifier, MKLClassifierCV, MKLRegressor, load
from manykernels.banks import Placement, Recipe, bind
from manykernels.compute.feature_table import FeatureTable
from manykernels.compute.gpu import has_device
from manykernels.compute.threads import parallel
from manykernels.datasets import ParquetRows
from manykernels.kernels import FourierFeatures, Gaussian, Kernel, KernelBank, Linear, NystroemFeatures, Polynomial
from manykernels.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Quantile, Squared, SquaredHinge
from manykernels.norms import LpNorm
from manykernels.outer.automatic import automatic
from manykernels.problem import Problem
from tests.binding import features_of

needs_torch = pytest.mark.skipif(not has_device("torch:cpu"), reason="needs torch")
KERNELS = [Gaussian(0.7), Gaussian(2.0), Gaussian(1.0, columns=[0]), Linear()]
LOSSES = [Hinge(), SquaredHinge(), Logistic(), Squared(), EpsilonInsensitive(0.1), Quantile(0.8), Huber(0.5)]


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.2 * rng.normal(size=n)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_equals_the_approximate_kernels_written_out(loss, p, C, intercept):
    X, score = data()
    y = score if loss.regression else np.where(score > 0, 1.0, -1.0)
    bank = bind(
        KernelBank(KERNELS),
        X,
        Recipe(normalize=None),
        Placement(approximation=NystroemFeatures(40), precision="double"),
        seed=0,
    )
    written = bind(
        KernelBank([entry.kernel for entry in bank.bound]), X, Recipe(normalize=None), Placement(precision="double")
    )
    problems = [Problem(own, loss, LpNorm(p), y[None], np.full((1, 300), C), intercept) for own in (bank, written)]
    found, expected = (automatic(problem, tol=1e-4) for problem in problems)
    assert found.converged
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=2e-4)
    K = written.combine(found.weights).array
    assert np.allclose(found.machine.decision, found.machine.beta @ K, atol=1e-8 * np.abs(found.machine.decision).max())
    assert np.allclose(bank.quad_forms(found.machine.beta), written.quad_forms(found.machine.beta), rtol=1e-6)


def test_epsilon_insensitive_regression_and_files(tmp_path):
    X, y = data()
    model = MKLRegressor(KERNELS, loss="epsilon_insensitive", approximation=NystroemFeatures(60), random_state=0)
    model.fit(X, y)
    exact = MKLRegressor(KERNELS, loss="epsilon_insensitive").fit(X, y)
    assert model.converged_
    assert model.score(X, y) == pytest.approx(exact.score(X, y), abs=0.03)
    assert model.approximation_error_.shape == (4,)
    assert model.ranks_.tolist()[-1] == 3
    model.save(tmp_path / "model.mkl")
    assert np.allclose(load(tmp_path / "model.mkl").predict(X), model.predict(X), atol=1e-12)


@pytest.mark.parametrize("place", ["memory", "file", "nowhere"])
def test_where_features_are_held_changes_nothing(place, monkeypatch):
    X, score = data()
    budget = {"memory": 10**9, "file": 10_000, "nowhere": 10_000}[place]
    if place == "nowhere":
        monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 0})())
    bank = bind(
        KernelBank(KERNELS),
        X,
        Recipe(center=True),
        Placement(approximation=NystroemFeatures(40), budget=budget),
        seed=0,
    )
    words = {"memory": "in memory", "file": "temporary file", "nowhere": "in each pass"}[place]
    assert words in bank.describe_storage()
    reference = bind(
        KernelBank(KERNELS),
        X,
        Recipe(center=True),
        Placement(approximation=NystroemFeatures(40), budget=10**9),
        seed=0,
    )
    assert np.allclose(bank.quad_forms(score), reference.quad_forms(score), rtol=1e-5)


@pytest.mark.parametrize(("rank", "words"), [(0, "rank must be"), (1.5, "rank must be"), (True, "rank must be")])
def test_bad_ranks(rank, words):
    with pytest.raises(ValueError, match=words):
        NystroemFeatures(rank)


def on_disk(X, folder, kind):
    if kind == "memory map":
        np.save(folder / "X.npy", X.astype(np.float32))
        return np.load(folder / "X.npy", mmap_mode="r")
    pd.DataFrame(X, columns=["a", "b", "c"]).astype("float32").to_parquet(folder / "X.parquet", row_group_size=70)
    return ParquetRows(folder / "X.parquet")


@pytest.mark.parametrize("kind", ["memory map", "parquet"])
def test_tables_on_disk(tmp_path, kind):
    X, score = data()
    rows, y = on_disk(X, tmp_path, kind), score > 0
    model = MKLClassifier(KERNELS, approximation=NystroemFeatures(300), random_state=0, tol=1e-4).fit(rows, y)
    held = MKLClassifier(KERNELS, approximation=NystroemFeatures(300), random_state=0, tol=1e-4).fit(
        X.astype(np.float32), y
    )
    assert model.objective_ == pytest.approx(held.objective_, rel=2e-3)
    assert np.allclose(model.decision_function(rows), held.decision_function(X.astype(np.float32)), atol=0.05)
    assert model.n_features_in_ == 3
    assert model.support_.max() < 300


def test_parquet_rows_and_names(tmp_path):
    X, score = data(50)
    rows = on_disk(X, tmp_path, "parquet")
    assert rows.shape == (50, 3)
    assert np.allclose(rows[[49, 3, 20]], X[[49, 3, 20]].astype(np.float32))
    assert np.allclose(rows[5:9], X[5:9].astype(np.float32))
    model = MKLRegressor([Gaussian(1.0, columns="b")], approximation=NystroemFeatures(10), random_state=0)
    assert model.fit(rows, score).kernel_names_ == ["Gaussian(width=1) on b"]
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="no column 'z'"):
        ParquetRows(tmp_path / "X.parquet", columns=["z"])


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_sparse_matrices(approximation):
    X, score = data()
    X[np.abs(X) < 0.7] = 0.0
    options = {"approximation": features_of(approximation, 300), "random_state": 0, "tol": 1e-4}
    dense = MKLClassifier([Gaussian(1.0), Linear()], **options).fit(X, score > 0)
    sparse = MKLClassifier([Gaussian(1.0), Linear()], **options).fit(sp.csr_matrix(X), score > 0)
    assert dense.objective_ == pytest.approx(sparse.objective_, rel=3e-4)
    assert np.allclose(dense.decision_function(X), sparse.decision_function(sp.csr_matrix(X)), atol=0.05)


def test_bad_rows_on_disk(tmp_path):
    X, score = data(60)
    X[41, 1] = np.nan
    rows = on_disk(X, tmp_path, "memory map")
    with pytest.raises(ValueError, match="first in row 41"):
        MKLClassifier(KERNELS, approximation=NystroemFeatures(10)).fit(rows, score > 0)
    model = MKLClassifier(KERNELS, approximation=NystroemFeatures(10)).fit(X[:40], score[:40] > 0)
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.predict(on_disk(X[:, :2], tmp_path, "memory map"))


def test_centered_cosine_and_missing_views():
    X, score = data()
    exact = {"normalize": "cosine", "center": True, "C": 10.0}
    kernels = [Gaussian(2.0), Linear()]
    model = MKLClassifier(kernels, approximation=NystroemFeatures(299), random_state=0, **exact).fit(X, score > 0)
    other = MKLClassifier(kernels, **exact).fit(X, score > 0)
    assert model.objective_ == pytest.approx(other.objective_, rel=2e-3)
    assert np.allclose(model.decision_function(X), other.decision_function(X), atol=0.05)
    X[:40, 0] = np.nan
    views = [Gaussian(1.0, columns=[0]), Gaussian(1.0, columns=[1, 2])]
    model = MKLClassifier(views, approximation=NystroemFeatures(299), random_state=0, missing="ignore").fit(
        X, score > 0
    )
    other = MKLClassifier(views, missing="ignore").fit(X, score > 0)
    assert model.objective_ == pytest.approx(other.objective_, rel=2e-3)
    assert np.allclose(model.weights_, other.weights_, atol=0.02)


def test_waves_are_for_gaussian_kernels():
    X, score = data(40)
    with pytest.raises(TypeError, match="'fourier' needs Gaussian kernels"):
        MKLClassifier([Polynomial(9)], approximation=FourierFeatures(10)).fit(X, score > 0)


@pytest.mark.parametrize("share", [0.2, 0.01])
def test_a_share_of_the_trace(share):
    X, score = data(400)
    model = MKLClassifier([Gaussian(1.0), Gaussian(4.0)], approximation=NystroemFeatures(share), random_state=0)
    errors = model.fit(X, score > 0).approximation_error_
    assert np.all(errors <= share)
    assert model.ranks_[0] > model.ranks_[1]


def test_a_kernel_for_each_class_at_the_same_time():
    X, score = data()
    y = np.digitize(score, [-0.7, 0.7])
    options = {"approximation": NystroemFeatures(30), "random_state": 0, "shared_weights": False}
    one = MKLClassifier(KERNELS, **options).fit(X, y)
    two = MKLClassifier(KERNELS, **options, n_jobs=2).fit(X, y)
    assert np.array_equal(one.weights_, two.weights_)
    assert one.weights_.shape == (3, 4)


def test_absolute_losses_at_large_C():
    X, score = data(120)
    options = {"loss": "epsilon_insensitive", "epsilon": 0.0, "C": 1000.0, "tol": 1e-4}
    model = MKLRegressor(KERNELS, approximation=NystroemFeatures(120), random_state=0, **options).fit(X, score)
    assert model.converged_
    assert model.objective_ == pytest.approx(MKLRegressor(KERNELS, **options).fit(X, score).objective_, rel=1e-3)


class Exponential(Kernel):
    """A kernel of one's own, with the parameter of a Gaussian one."""

    def __init__(self, width, columns=None, group=None, label=None):
        super().__init__(columns, group, label)
        self.width = width

    def compute(self, X, Z):
        return np.exp(-np.abs(X[:, None, :] - Z[None, :, :]).sum(axis=2) / self.width)


def test_each_kernel_has_its_own_approximation():
    X, _ = data(60)
    bank = bind(
        KernelBank([Gaussian(1.0), Exponential(1.0)]),
        X,
        Recipe(normalize=None),
        Placement(approximation=NystroemFeatures(60)),
        seed=0,
    )
    forms = bank.quad_forms(np.ones(60))
    assert np.allclose(forms, [k.compute(X, X).sum() for k in (Gaussian(1.0), Exponential(1.0))], rtol=1e-5)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_sums_over_very_many_rows_keep_their_digits(n_columns):
    Z = np.full((400_000, n_columns), 0.1, np.float32)
    table = FeatureTable(lambda low, high: Z[low:high], 400_000, n_columns, np.float32, 10**9)
    assert np.allclose(table.transposed_times(np.ones((1, 400_000))), 400_000 * float(np.float32(0.1)), rtol=1e-5)


def test_centering_is_done_before_rounding():
    rng = np.random.default_rng(0)
    X = np.column_stack([10_000 + rng.normal(size=20_000), np.full(20_000, 0.1)])
    with pytest.warns(UserWarning, match="zero on the training data"):
        bank = bind(
            KernelBank([Linear([0]), Linear([1])]),
            X,
            Recipe(center=True),
            Placement(approximation=NystroemFeatures(2)),
            seed=0,
        )
    assert bank.scale[0] == pytest.approx(1.0 / X[:, 0].var(), rel=1e-4)
    assert bank.scale[1] == 0.0


def test_features_are_unique_and_model_files_rely_on_that(tmp_path):
    """By a Cholesky factor, not by eigenvectors, whose signs are the library's choice: a file holds vectors on them."""
    X, score = data(100)
    model = MKLClassifier([Gaussian(1.0)], approximation=NystroemFeatures(40), random_state=0).fit(X, score > 0)
    (entry,) = model._predictors[0].kernel.bound
    landmarks = entry.kernel.landmarks
    lower = np.linalg.cholesky(Gaussian(1.0).compute(landmarks, landmarks))
    naive = Gaussian(1.0).compute(X, landmarks) @ np.linalg.inv(lower).T
    assert np.allclose(entry.kernel.features(X), naive, atol=1e-6)
    model.save(tmp_path / "model.mkl")
    opened = load(tmp_path / "model.mkl")
    assert np.allclose(opened.decision_function(X), model.decision_function(X), atol=1e-12)
    assert np.array_equal(opened.approximation_error_, model.approximation_error_)


def test_attributes_of_an_approximation_go_with_it():
    X, score = data(60)
    model = MKLClassifier(KERNELS, approximation=NystroemFeatures(10)).fit(X, score > 0)
    assert not hasattr(model.set_params(approximation=None).fit(X, score > 0), "approximation_error_")


def test_a_view_that_no_sample_has_and_a_kernel_that_is_zero():
    X, score = data(80)
    X[:, 0] = np.nan
    model = MKLClassifier(
        [Gaussian(1.0, columns=[0]), Gaussian(1.0, columns=[1, 2])], missing="ignore", approximation=NystroemFeatures(9)
    )
    with pytest.warns(UserWarning, match="zero on the training data"):
        assert model.fit(X, score > 0).weights_[0] == 0.0
    X = np.column_stack([score, np.zeros((80, 4))])
    zero = Polynomial(5, coef0=0.0, columns=[1, 2, 3, 4])
    for kernels in ([Gaussian(1.0), zero], [zero, Gaussian(1.0)]):
        with pytest.warns(UserWarning, match="zero on the training data"):
            model = MKLClassifier(kernels, approximation=NystroemFeatures(5), random_state=0).fit(X, score > 0)
        assert model.weights_[kernels.index(zero)] == 0.0


def test_tables_on_disk_where_they_cannot_be_used(tmp_path):
    X, score = data(60)
    rows = on_disk(X, tmp_path, "parquet")
    for estimator in (MKLClassifier(KERNELS), MKLClassifierCV(KERNELS, cv=2)):
        with pytest.raises(ValueError, match="needs MKLClassifier or MKLRegressor with approximation"):
            estimator.fit(rows, score > 0)
    assert np.array_equal(pickle.loads(pickle.dumps(rows))[:5], rows[:5])
    mapped = on_disk(X, tmp_path, "memory map")
    model = MKLClassifier(KERNELS, approximation=NystroemFeatures(20), random_state=0).fit(mapped, score > 0)
    assert model.kernel(mapped).shape == (60, 60)
    assert MKLClassifier(KERNELS).fit(X, score > 0).predict(mapped).shape == (60,)
    with pytest.raises(ValueError, match="sample_weight must be positive"):
        model.fit(mapped, score > 0, sample_weight=np.arange(60))


def test_missing_views_on_disk(tmp_path):
    X, score = data(90)
    X[:20, 1:] = np.nan
    views = [Gaussian(1.0, columns=[0]), Gaussian(1.0, columns=[1, 2])]
    model = MKLClassifier(views, missing="ignore", approximation=NystroemFeatures(80), random_state=0)
    model.fit(on_disk(X, tmp_path, "memory map"), score > 0)
    X[0, 1] = 0.0
    rows = on_disk(X, tmp_path, "memory map")
    with pytest.raises(ValueError, match="lacks 1 of the 2 columns"):
        model.predict(rows)
    with pytest.raises(ValueError, match="lacks 1 of the 2 columns"):
        model.fit(rows, score > 0)


def test_values_beyond_single_precision():
    X, score = data(100)
    model = MKLClassifier([Linear()], approximation=NystroemFeatures(5), random_state=0).fit(1e21 * X, score > 0)
    assert model.score(1e21 * X, score > 0) > 0.8


def test_cosines_tell_what_was_lost():
    X, score = data(200)
    model = MKLClassifier([Gaussian(0.2)], approximation=NystroemFeatures(5), normalize="cosine", random_state=0)
    assert model.fit(X, score > 0).approximation_error_[0] > 0.9


def test_work_inside_the_pool_does_not_wait_for_it():
    def work(number):
        return sum(parallel(lambda i: i + number, range(3)))

    assert parallel(work, range(8)) == [3 + 3 * number for number in range(8)]


def test_the_centered_kernel_of_an_approximation(tmp_path):
    X, score = data(120)
    settings = {"norm": 2, "center": True, "tol": 1e-6}
    exact = MKLClassifier([Gaussian(1.0), Gaussian(3.0)], **settings).fit(X, score > 0)
    model = MKLClassifier(exact.kernels, **settings, approximation=NystroemFeatures(120), random_state=0)
    model.fit(X, score > 0).save(tmp_path / "model.mkl")
    for own in (model, load(tmp_path / "model.mkl")):
        np.testing.assert_allclose(own.kernel(X, X[:9]), exact.kernel(X, X[:9]), atol=1e-3)
        assert np.abs(own.kernel(X).mean(axis=0)).max() < 1e-6
        assert own.contributions(X).intercept == pytest.approx(own.intercept_)


@pytest.mark.parametrize("approximation", [None, "nystroem"])
def test_centering_needs_samples_with_all_views(approximation):
    X, score = data(100)
    gaps = X.copy()
    gaps[::4, :2] = np.nan
    kernels = [Gaussian(1.0, columns=[0, 1]), Gaussian(1.0, columns=[2])]
    settings = {"center": True, "missing": "ignore", "norm": 2, "random_state": 0}
    model = MKLClassifier(kernels, approximation=features_of(approximation, 20), **settings)
    with pytest.raises(ValueError, match="center=True needs samples that have all views"):
        model.fit(gaps, score > 0)
    with pytest.raises(ValueError, match="center=True needs samples that have all views"):
        model.fit(X, score > 0).predict(gaps)


def test_probabilities_of_a_table_on_disk(tmp_path):
    X, score = data(150)
    settings = {"approximation": NystroemFeatures(20), "random_state": 0, "probability": True}
    model = MKLClassifier(KERNELS, **settings).fit(on_disk(X, tmp_path, "parquet"), score > 0)
    assert np.mean(model.predict_proba(X).argmax(axis=1) == (score > 0)) > 0.8


@pytest.mark.parametrize("device", ["cpu", pytest.param("torch:cpu", marks=needs_torch)])
@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("tiny", [1e-8, 1e-12])
def test_samples_of_tiny_weight(device, C, tiny):
    X, score = data(200)
    weight = np.where(X[:, 0] > -0.5, 1.0, tiny)
    kernels = [Gaussian(0.7), Gaussian(2.0), Polynomial(2)]
    settings = {"norm": 2, "C": C, "approximation": NystroemFeatures(30), "random_state": 0, "device": device}
    model = MKLClassifier(kernels, **settings).fit(X, score > 0.3, sample_weight=weight)
    assert model.converged_


@pytest.mark.parametrize("device", ["cpu", pytest.param("torch:cpu", marks=needs_torch)])
@pytest.mark.parametrize(("epsilon", "intercept", "shift"), [(1.0, True, 5.0), (3.0, True, 0.0), (1.5, False, 0.0)])
def test_targets_inside_the_tube_need_no_kernel(device, epsilon, intercept, shift):
    X, _ = data(100)
    settings = {"approximation": NystroemFeatures(20), "random_state": 0, "fit_intercept": intercept}
    model = MKLRegressor(KERNELS, loss="epsilon_insensitive", epsilon=epsilon, device=device, **settings)
    model.fit(X, np.sin(X[:, 0]) + shift)
    assert model.converged_
    assert model.objective_ == pytest.approx(0.0, abs=1e-9)


def test_a_name_stands_for_an_object_with_the_default_rank(tmp_path):
    X, score = data(60)
    with pytest.warns(UserWarning, match="so many features"):
        named, given = (
            MKLClassifier(KERNELS, approximation=features, random_state=0).fit(X, score > 0)
            for features in ("fourier", FourierFeatures(1000))
        )
    np.testing.assert_array_equal(named.decision_function(X), given.decision_function(X))


def test_an_approximation_is_cloned_searched_and_saved(tmp_path):
    X, score = data(60)
    options = {"approximation": [None, NystroemFeatures(5), FourierFeatures(0.5)]}
    search = GridSearchCV(MKLClassifier([Gaussian(1.0)], random_state=0), options, cv=2).fit(X, score > 0)
    assert search.best_params_["approximation"] in options["approximation"]
    model = MKLClassifier([Gaussian(1.0)], approximation=NystroemFeatures(rank=5), random_state=0)
    assert clone(model).approximation == model.approximation
    assert "approximation=NystroemFeatures(rank=5)" in repr(model)
    model.fit(X, score > 0).save(tmp_path / "model.mkl")
    for again in (load(tmp_path / "model.mkl"), pickle.loads(pickle.dumps(model))):
        assert again.approximation == NystroemFeatures(5)
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("given", ["nystrom", 100, NystroemFeatures])
def test_what_is_no_approximation_is_refused(given):
    X, score = data(40)
    with pytest.raises(ValueError, match="approximation must be None, 'nystroem', NystroemFeatures"):
        MKLClassifier(KERNELS, approximation=given).fit(X, score > 0)
