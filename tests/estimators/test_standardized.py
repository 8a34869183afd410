"""Standard kernels on raw columns: what a scaler in front would do, for every estimator and kind of data."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manykernels import (
    AlignedKernel,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    TwoStageMKLClassifier,
    TwoStageMKLRegressor,
    UFOMKLClassifier,
    UFOMKLRegressor,
    load,
    mkl_path,
)
from manykernels.kernels import Gaussian, KernelBank, Linear, NystroemFeatures, ProductKernels, standard_bank
from manykernels.kernels.powers import PowerOfSum

ESTIMATORS = [
    MKLClassifier(),
    MKLClassifier(norm=2, loss="logistic"),
    MKLClassifier(probability=True),
    MKLClassifier(combination="product", norm=1.0),
    MKLRegressor(),
    MKLClassifierCV(Cs=[1.0, 10.0], norms=[1.0], cv=2),
    MKLRegressorCV(Cs=[1.0], norms=[1.0, 2.0], cv=2),
    UFOMKLClassifier(random_state=0, max_iter=3, tol=0),
    UFOMKLRegressor(random_state=0, max_iter=3, tol=0),
    TwoStageMKLClassifier(random_state=0),
    TwoStageMKLRegressor(random_state=0),
]
SETS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "diabetes": load_diabetes}


def raw(n=80, seed=0):
    """Columns of many units, one of them constant, and targets that depend on some."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 4))
    y = Z[:, 0] + np.sin(2 * Z[:, 1]) + 0.1 * rng.normal(size=n)
    return np.column_stack([1e5 + 1e3 * Z[:, 0], 1e-6 * Z[:, 1], Z[:, 2] - 40.0, np.full(n, 7.0), Z[:, 3]]), y


def fitted(estimator, X, y):
    return estimator.fit(X, y if is_regressor(estimator) else y > np.median(y))


def decisions(model, X):
    return model.predict(X) if is_regressor(model) else model.decision_function(X)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: repr(e)[:60])
def test_as_with_a_scaler_in_front(estimator):
    X, y = raw()
    if hasattr(estimator, "learner"):
        decide = TwoStageMKLRegressor.predict if is_regressor(estimator) else TwoStageMKLClassifier.predict
    else:
        decide = decisions
    new = raw(30, seed=1)[0]
    scaler = StandardScaler().fit(X)
    plain = decide(fitted(estimator, X, y), new)
    scaled = decide(fitted(estimator, scaler.transform(X), y), scaler.transform(new))
    if hasattr(estimator, "cv"):  # folds have units of their own, whose last bits differ
        np.testing.assert_allclose(plain, scaled, atol=1e-6 * np.abs(scaled).max())
    else:
        np.testing.assert_array_equal(plain, scaled)


@pytest.mark.parametrize("name", SETS)
def test_tables_that_people_have(name):
    X, y = SETS[name](return_X_y=True)
    kind = MKLRegressor if name == "diabetes" else MKLClassifier
    plain, scaled = kind().fit(X[::2], y[::2]), make_pipeline(StandardScaler(), kind()).fit(X[::2], y[::2])
    expected = decisions(scaled, X) if name != "diabetes" else scaled.predict(X)
    np.testing.assert_array_equal(decisions(plain, X), expected)


def test_kernels_of_ones_own_are_left_alone():
    X, y = raw()
    X = X[:, [2, 4]]
    for kernels in ([Gaussian(1.0), Linear()], KernelBank([Linear()]), standard_bank(X)):
        model = MKLRegressor(kernels).fit(X, y)
        assert not hasattr(model, "column_scales_")
    assert not hasattr(MKLRegressor(combination=PowerOfSum([Linear()], 2)).fit(X, y), "column_scales_")


@pytest.mark.parametrize("wrap", [lambda bank: bank, lambda bank: ProductKernels(bank, 1)], ids=["list", "products"])
def test_a_list_may_ask_for_it(wrap):
    X, y = raw()
    kernels = [Linear(columns=[0]), Gaussian(1.0, columns=[1])]
    plain = MKLRegressor(wrap(KernelBank(kernels, standardize=True)), tol=1e-6).fit(X, y)
    scaled = MKLRegressor(wrap(KernelBank(kernels)), tol=1e-6).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_allclose(plain.predict(X), scaled.predict(StandardScaler().fit_transform(X)), atol=1e-6)
    np.testing.assert_allclose(plain.column_means_, X.mean(axis=0), rtol=1e-12)


def test_a_list_that_asks_for_it_is_no_part_of_one_that_does_not():
    with pytest.raises(ValueError, match="needs a list with standardize=True"):
        KernelBank([KernelBank([Linear()], standardize=True)])
    assert KernelBank([KernelBank([Linear()], standardize=True)], standardize=True).standardize


def test_units_do_not_depend_on_how_the_data_are_written_down():
    X, y = raw()
    weight = np.random.default_rng(2).integers(0, 3, len(y))
    one = MKLRegressor().fit(X, y, sample_weight=weight)
    other = MKLRegressor().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(one.column_scales_, other.column_scales_, rtol=1e-13)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-7, atol=1e-9)


def test_frames_sparse_data_and_gaps():
    X, y = raw()
    frame = pd.DataFrame(X, columns=list("abcde"))
    expected = MKLRegressor().fit(X, y).predict(X)
    np.testing.assert_allclose(MKLRegressor().fit(frame, y).predict(frame), expected, rtol=1e-9)
    few = sp.csr_array(X)
    np.testing.assert_allclose(MKLRegressor().fit(few, y).predict(few), expected, atol=2e-3 * np.abs(expected).max())
    gaps = X.copy()
    gaps[:5] = np.nan
    with_gaps = MKLRegressor(missing="ignore").fit(gaps, y)
    np.testing.assert_allclose(with_gaps.column_means_, np.nanmean(gaps, axis=0), rtol=1e-12)
    assert np.all(np.isfinite(with_gaps.predict(gaps)))


def test_wide_sparse_data_are_looked_at_as_they_are():
    rng = np.random.default_rng(0)
    X = sp.random(60, 300, density=0.05, random_state=0, format="csr")
    with pytest.warns(UserWarning, match="too many for kernels of their own"):
        model = MKLClassifier().fit(X, rng.random(60) > 0.5)
    assert not hasattr(model, "column_scales_")


def test_a_table_on_disk(tmp_path):
    X, y = raw(300)
    np.save(tmp_path / "X.npy", X)
    on_disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    settings = {"approximation": NystroemFeatures(20), "random_state": 0}
    model = MKLRegressor(**settings).fit(on_disk, y)
    np.testing.assert_allclose(model.column_means_, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(model.predict(on_disk), model.predict(X), rtol=1e-12)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("kind", [UFOMKLClassifier, UFOMKLRegressor])
def test_a_stream_keeps_the_units_of_its_first_batch(kind):
    X, y = raw(120)
    target = y if kind is UFOMKLRegressor else y > 0
    options = {} if kind is UFOMKLRegressor else {"classes": [False, True]}
    model, scaled = kind(), kind()
    scaler = StandardScaler().fit(X[:60])
    for rows in (slice(60), slice(60, None)):
        model.partial_fit(X[rows], target[rows], **options)
        scaled.partial_fit(scaler.transform(X[rows]), target[rows], **options)
    np.testing.assert_allclose(model.column_scales_[[0, 1, 2, 4]], scaler.scale_[[0, 1, 2, 4]], rtol=1e-12)
    expected = decisions(scaled, scaler.transform(X))
    np.testing.assert_allclose(decisions(model, X), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    "estimator",
    [
        MKLClassifier(),
        UFOMKLClassifier(max_iter=2),
        AlignedKernel(),
        MKLRegressor(KernelBank([Linear()], standardize=True)),
    ],
    ids=lambda e: type(e).__name__,
)
def test_files_keep_the_units(estimator, tmp_path):
    X, y = raw()
    model = fitted(estimator, X, y) if not isinstance(estimator, AlignedKernel) else estimator.fit(X, y > 0)
    model.save(tmp_path / "model.mkl")
    again = load(tmp_path / "model.mkl")
    ask = "transform" if isinstance(estimator, AlignedKernel) else "predict"
    np.testing.assert_array_equal(getattr(again, ask)(X), getattr(model, ask)(X))
    assert not isinstance(again.kernels, list) or not again.kernels or isinstance(again.kernels, KernelBank)


def test_paths_contributions_and_kernels_see_the_same_units():
    X, y = raw()
    for point in mkl_path("standard", X, y, Cs=[1.0, 10.0], regression=True):
        parts = point.model.contributions(X)
        total = parts.values.sum(axis=2)[:, 0] + parts.intercept[0]
        np.testing.assert_allclose(total, point.model.predict(X), rtol=1e-9, atol=1e-9)
        beta = np.zeros(len(y))
        beta[point.model.support_] = point.model.dual_coef_[0]
        np.testing.assert_allclose(
            point.model.kernel(X) @ beta + point.model.intercept_, point.model.predict(X), rtol=1e-6, atol=1e-6
        )


def test_another_fit_forgets_the_units():
    X, y = raw()
    model = MKLRegressor().fit(X, y)
    model.set_params(kernels=[Gaussian(1.0, columns=[4])]).fit(X, y)
    assert not hasattr(model, "column_scales_")
