"""The parts of a prediction sum to it, are those of plain NumPy, and say which features matter."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_wine
from sklearn.inspection import permutation_importance
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
)
from manykernels.estimators import Contributions
from manykernels.kernels import (
    FourierFeatures,
    Gaussian,
    GaussianLadder,
    KernelBank,
    Linear,
    NystroemFeatures,
    PowerOfSum,
    RandomFourier,
)
from tests.binding import features_of

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
NEW = X + 0.3 * np.random.default_rng(0).normal(size=X.shape)
TWO = y < 2
KERNELS = [
    Linear(),
    Gaussian(2.0, columns=[0, 1, 2], group="left"),
    Gaussian(4.0, columns=[0, 1, 2], group="left"),
    Gaussian(3.0, columns=list(range(3, 13)), group="right"),
]


def decided(model, Z):
    return model.decision_function(Z) if hasattr(model, "decision_function") else model.predict(Z)


def assert_sums(model, Z=NEW):
    """Check that the parts sum to the predictions; returns them."""
    parts, expected = model.contributions(Z), decided(model, Z)
    np.testing.assert_allclose(parts.total(), expected, rtol=0, atol=1e-10 * max(np.abs(expected).max(), 1.0))
    assert parts.values.shape == (len(expected), parts.intercept.size, len(parts.names))
    assert len(parts.groups) == len(parts.active) == len(parts.names)
    np.testing.assert_allclose(parts.by_group().total(), parts.total(), atol=1e-10)
    return parts


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"norm": 2.0, "center": True},
        {"norm": 2.0, "normalize": "cosine"},
        {"norm": 2.0, "normalize": "cosine", "center": True},
        {"shared_weights": False},
        {"norm": 2.0, "loss": "logistic"},
        {"norm": 2.0, "approximation": NystroemFeatures(20), "random_state": 0},
        {"norm": 2.0, "approximation": NystroemFeatures(20), "random_state": 0, "center": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_parts_of_a_classifier_sum_to_its_decision(parameters, classes):
    rows = y < classes
    model = MKLClassifier(KERNELS, **parameters).fit(X[rows], y[rows])
    parts = assert_sums(model)
    assert parts.values.shape[1] == (1 if classes == 2 else 3)
    np.testing.assert_array_equal(parts.active, model.active_)
    assert parts.names == tuple(model.kernel_names_[k] for k in model.active_)
    assert parts.groups == tuple(model.kernel_groups_[k] for k in model.active_)
    np.testing.assert_allclose(parts.intercept, model.intercept_, rtol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        MKLRegressor(KERNELS, norm=2.0),
        MKLRegressor(
            [Gaussian(2.0), Gaussian(4.0)], approximation=FourierFeatures(20), center=True, norm=2.0, random_state=0
        ),
        MKLRegressorCV(KERNELS, Cs=[1.0], norms=[2.0], cv=2),
        UFOMKLRegressor(KERNELS, max_iter=3, random_state=0),
        TwoStageMKLRegressor(KERNELS, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_parts_of_a_regressor_sum_to_its_prediction(model):
    parts = assert_sums(model.fit(X, 100.0 + X[:, 0] * X[:, 4]))
    assert parts.values.shape[1] == 1


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifierCV(KERNELS, Cs=[1.0], norms=[2.0], cv=2),
        TwoStageMKLClassifier(KERNELS, random_state=0),
        UFOMKLClassifier(KERNELS, max_iter=3, random_state=0),
        UFOMKLClassifier(KERNELS, max_iter=3, loss="multiclass_hinge", random_state=0),
        UFOMKLClassifier(KERNELS, max_iter=3, average=True, step="gradient", random_state=0),
        UFOMKLClassifier([Linear(), RandomFourier(2.0)], features="explicit", random_state=0),
    ],
    ids=str,
)
def test_two_classes_have_one_task_whatever_the_estimator(model):
    assert assert_sums(model.fit(X[TWO], y[TWO])).values.shape[1] == 1


def test_a_stream_and_several_classes_of_ufo():
    model = UFOMKLClassifier(KERNELS, random_state=0).partial_fit(X, y, classes=[0, 1, 2])
    assert assert_sums(model).values.shape[1] == 3
    assert assert_sums(UFOMKLClassifier(KERNELS, max_iter=3, average=True, step="gradient").fit(X, y)).values.any()


def test_no_kernel_at_all_leaves_the_intercept():
    parts = assert_sums(UFOMKLClassifier(KERNELS, alpha=100.0).fit(X[TWO], y[TWO]))
    assert parts.values.shape == (len(NEW), 1, 0)


def test_one_part_is_what_plain_numpy_says():
    model = MKLRegressor(KERNELS, norm=2.0, C=10.0, tol=1e-6).fit(X, X[:, 0] ** 2)
    parts = model.contributions(NEW)
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    for place, (width, columns) in {1: (2.0, slice(0, 3)), 3: (3.0, slice(3, 13))}.items():
        left, right = NEW[:, columns], X[:, columns]
        distances = ((left[:, None, :] - right[None, :, :]) ** 2).sum(axis=2)
        K = np.exp(-distances / (2 * width**2))  # its mean diagonal is 1 already
        np.testing.assert_allclose(parts.values[:, 0, place], model.weights_[place] * K @ beta, atol=1e-9)
    scale = 1.0 / np.mean(np.sum(X * X, axis=1))
    np.testing.assert_allclose(parts.values[:, 0, 0], model.weights_[0] * scale * NEW @ X.T @ beta, atol=1e-9)


def test_one_centered_part_is_what_plain_numpy_says():
    model = MKLRegressor(KERNELS, norm=2.0, C=10.0, tol=1e-6, center=True, fit_intercept=False)
    model.fit(X + 2.0, X[:, 0] ** 2)
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    assert abs(beta.sum()) > 1e-3  # else centering would be no more than a constant
    scale = 1.0 / np.mean(np.sum(X**2, axis=1))  # the mean of X is 0
    expected = model.weights_[0] * scale * NEW @ X.T @ beta
    np.testing.assert_allclose(model.contributions(NEW + 2.0).values[:, 0, 0], expected, atol=1e-9)


def test_centered_features_have_the_parts_of_centered_kernels():
    options = {"norm": 2.0, "center": True, "tol": 1e-8}
    kernels = [Linear(columns=slice(0, 5)), Linear(columns=slice(5, 13))]
    exact = MKLRegressor(kernels, **options).fit(X + 3.0, X[:, 0] ** 2)
    model = MKLRegressor(kernels, approximation=NystroemFeatures(13), **options).fit(X + 3.0, X[:, 0] ** 2)
    expected = exact.contributions(NEW + 3.0)
    parts = model.contributions(NEW + 3.0)
    np.testing.assert_allclose(parts.values, expected.values, atol=1e-3 * np.abs(expected.values).max())
    np.testing.assert_allclose(parts.intercept, expected.intercept, rtol=1e-6)


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("center", [False, True])
def test_a_ladder_has_a_part_a_kernel_or_one_for_all_its_widths(norm, center):
    # As many widths as nodes: the number of terms does not tell one from the other.
    ladder = GaussianLadder(low=0.5, high=32.0, count=44, columns=[0, 1])
    assert len(ladder.nodes) == len(ladder)
    bank = KernelBank([Linear(), ladder, GaussianLadder(count=500, columns=[2])])
    model = MKLClassifier(bank, norm=norm, center=center).fit(X, y)
    parts = assert_sums(model)
    if norm == 1.0:
        np.testing.assert_array_equal(parts.active, model.active_)
        assert all(parts.names[i] == model.kernel_names_[k] for i, k in enumerate(model.active_))
    else:
        assert parts.active.tolist() == [0, -1, -1]
        assert parts.names[1:] == ("Gaussian(width=0.5 to 32) on x0, x1", "Gaussian(width=0.125 to 64) on x2")
        assert parts.by_group().names == ("all features", "x0, x1", "x2")


def test_the_part_of_a_ladder_is_that_of_its_single_kernels():
    bank = KernelBank([GaussianLadder(count=100, columns=[0, 1]), GaussianLadder(count=100, columns=[2])])
    whole = MKLRegressor(bank, norm=2.0, C=1.0, tol=1e-6).fit(X, X[:, 0] ** 2)
    single = MKLRegressor(bank.written_out(), norm=2.0, C=1.0, tol=1e-6).fit(X, X[:, 0] ** 2)
    expected = single.contributions(NEW).by_group().values
    values = whole.contributions(NEW).values
    np.testing.assert_allclose(values, expected, atol=1e-3 * np.abs(expected).max())


def test_classes_with_kernels_of_their_own_have_zeros_where_a_kernel_is_not_theirs():
    model = MKLClassifier([Gaussian(1.0, columns=[j]) for j in range(13)], shared_weights=False, C=0.1).fit(X, y)
    parts = assert_sums(model)
    active = model.weights_[:, parts.active] > 0
    assert not active.all()
    np.testing.assert_array_equal(np.any(parts.values != 0, axis=0), active)


def test_precomputed_kernels_by_number_and_as_a_stack():
    stack = np.stack([np.exp(-np.square(NEW[:, None, j] - NEW[None, :, j])) for j in range(3)])
    numbers = np.arange(len(NEW))[:, None]
    model = MKLClassifier(KernelBank.from_arrays(stack), norm=2.0).fit(numbers[:100], y[:100])
    parts = assert_sums(model, numbers)
    again = model.contributions(stack[:, :, :100])
    np.testing.assert_allclose(again.values, parts.values, atol=1e-10)
    assert again.names == parts.names


def test_missing_views_add_nothing():
    some = NEW.copy()
    some[::3, :3] = np.nan
    kernels = KERNELS[1:]
    model = MKLClassifier(kernels, norm=2.0, missing="ignore").fit(some, y)
    parts = assert_sums(model, some)
    assert not parts.values[::3, :, :2].any()
    assert parts.values[1::3, :, :2].all()


def test_sparse_data_and_rows_in_blocks(monkeypatch):
    model = MKLClassifier(KERNELS, norm=2.0, center=True).fit(sp.csr_matrix(X), y)
    whole = assert_sums(model, sp.csr_matrix(NEW))
    monkeypatch.setattr("manykernels.banks.learned._BLOCK_ENTRIES", 7 * len(X))
    np.testing.assert_allclose(model.contributions(sp.csr_matrix(NEW)).values, whole.values, atol=1e-12)


@pytest.mark.parametrize("approximation", [None, "nystroem"])
def test_a_model_from_a_file_has_the_same_parts(approximation, tmp_path):
    bank = [*KERNELS, GaussianLadder(count=200, columns=[0])]
    features = features_of(approximation, 10)
    model = MKLClassifier(bank, norm=2.0, center=True, approximation=features, random_state=0).fit(X, y)
    model.save(tmp_path / "model.mkl")
    expected, again = model.contributions(NEW), load(tmp_path / "model.mkl").contributions(NEW)
    np.testing.assert_allclose(again.values, expected.values, atol=1e-12)
    np.testing.assert_allclose(again.intercept, expected.intercept)
    assert (again.names, again.groups) == (expected.names, expected.groups)
    np.testing.assert_array_equal(again.active, expected.active)


def test_a_two_stage_model_from_a_file_has_the_same_parts(tmp_path):
    model = TwoStageMKLRegressor(KERNELS, random_state=0).fit(X, X[:, 0] ** 2)
    model.save(tmp_path / "model.mkl")
    again = load(tmp_path / "model.mkl")
    np.testing.assert_allclose(again.contributions(NEW).values, model.contributions(NEW).values, atol=1e-9)
    np.testing.assert_allclose(again.contributions(NEW).intercept, model.contributions(NEW).intercept)


@pytest.mark.parametrize("combination", ["product", PowerOfSum([Linear(columns=[j]) for j in range(3)], 2)])
def test_a_kernel_that_is_no_sum_has_no_parts(combination):
    kernels = [Gaussian(1.0, columns=[j]) for j in range(13)]
    model = MKLClassifier(kernels, combination=combination, norm=2.0).fit(X, y)
    with pytest.raises(TypeError, match="combination='sum'"):
        model.contributions(X)


def test_learners_without_parts_are_refused():
    with pytest.raises(TypeError, match="two classes or regression"):
        TwoStageMKLClassifier(KERNELS, random_state=0).fit(X, y).contributions(X)
    assert not hasattr(AlignedKernel(), "contributions")


def test_frames_are_sorted_by_size_and_groups_know_their_only_kernel():
    values = np.array([[[1.0, -3.0, 0.5], [0.0, 2.0, 1.0]]])
    parts = Contributions(values, np.array([0.5, 0.0]), ("a", "b", "c"), ("g", "h", "g"), np.array([4, 7, 9]))
    frame = parts.to_frame(row=0, task=0)
    assert frame["kernel"].tolist() == ["b", "a", "c"]
    assert frame["value"].tolist() == [-3.0, 1.0, 0.5]
    assert parts.to_frame(task=1)["group"].tolist() == ["h", "g", "g"]
    np.testing.assert_allclose(parts.total(), [[-1.0, 3.0]])
    grouped = parts.by_group()
    assert (grouped.names, grouped.active.tolist()) == (("g", "h"), [-1, 7])
    np.testing.assert_allclose(grouped.values, [[[1.5, -3.0], [1.0, 2.0]]])


def test_weights_permutations_and_parts_agree_on_what_matters():
    rng = np.random.default_rng(0)
    Z = rng.uniform(-2, 2, size=(240, 8))
    target = 3.0 * np.sin(2 * Z[:, 0]) + 1.5 * np.cos(2 * Z[:, 3]) + 0.7 * np.sin(2 * Z[:, 5])
    target += 0.1 * rng.normal(size=240)
    model = MKLRegressor([Gaussian(0.7, columns=[j]) for j in range(8)], C=1.0).fit(Z[:160], target[:160])
    permuted = permutation_importance(model, Z[160:], target[160:], n_repeats=5, random_state=0).importances_mean
    spread = np.zeros(8)
    parts = model.contributions(Z[160:])
    spread[parts.active] = parts.values[:, 0].std(axis=0)
    for importances in (model.feature_importances_, permuted, spread):
        assert np.argsort(-importances)[:3].tolist() == [0, 3, 5]
        noise = np.delete(importances, [0, 3, 5])
        assert noise.max() < 0.2 * importances[5]
