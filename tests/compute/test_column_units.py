"""Locations and scales of columns: those of scikit-learn's scaler, for numbers of any size and in any blocks."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from manykernels.compute.column_units import ColumnMoments, ColumnScales

ONE = np.ones(60)


def data(seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.normal(size=60), 1e3 + 5 * rng.normal(size=60), np.full(60, 0.1), rng.integers(0, 2, 60), np.zeros(60)]
    )


def learned(X, weights=ONE):
    return ColumnMoments.of(X, weights).scales()


@pytest.mark.parametrize("weights", [ONE, np.random.default_rng(1).uniform(0.1, 9.0, 60)], ids=["equal", "weights"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_as_scikit_learn_has_them(form, weights):
    X = data()
    scaler = StandardScaler().fit(X, sample_weight=weights)
    scales = learned(form(X), weights)
    np.testing.assert_allclose(scales.location, scaler.mean_, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(scales.scale, scaler.scale_, rtol=1e-12)
    np.testing.assert_allclose(scales.of(form(X)), scaler.transform(X), atol=2e-9)


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e160, 1e300])
def test_numbers_of_any_size(unit):
    X = data()[:, :2]
    scales, plain = learned(X * unit), learned(X)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        np.testing.assert_allclose(scales.of(X * unit), plain.of(X), atol=4e-9)


def test_far_from_the_origin():
    steps = np.arange(60.0)
    scales = learned((1.6e9 + steps)[:, None])
    assert scales.location[0] == 1.6e9 + steps.mean()
    assert scales.scale[0] == pytest.approx(steps.std(), rel=1e-14)


def test_the_order_of_rows_and_a_scaler_in_front_change_no_bit():
    X, weights = data(), np.arange(60) % 3 + 1.0
    standard = learned(X, weights).of(X)
    shuffled = np.random.default_rng(3).permutation(60)
    np.testing.assert_array_equal(learned(X[shuffled], weights[shuffled]).of(X), standard)
    np.testing.assert_array_equal(learned(np.repeat(X, weights.astype(int), axis=0), np.ones(120)).of(X), standard)
    before = StandardScaler().fit_transform(X, sample_weight=weights)
    np.testing.assert_array_equal(learned(before, weights).of(before), standard)


@pytest.mark.parametrize("cuts", [[1], [20, 21], range(1, 60)], ids=["two", "three", "rows"])
def test_blocks_add_up(cuts):
    X, weights = data(), np.random.default_rng(2).uniform(0.0, 1.0, 60)
    X[::7, 1] = np.nan
    parts = [ColumnMoments.of(*pair) for pair in zip(np.split(X, cuts), np.split(weights, cuts), strict=True)]
    whole, merged = ColumnMoments.of(X, weights), ColumnMoments.total(parts)
    for name in ("weight", "mean", "deviation"):
        np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), rtol=1e-12, atol=1e-12)


def test_what_is_missing_is_not_counted():
    X = data()
    X[5:20, 0] = np.nan
    X[:, 4] = np.nan
    scales = learned(X)
    assert scales.location[0] == pytest.approx(np.nanmean(X[:, 0]), rel=1e-13)
    assert scales.scale[0] == pytest.approx(np.nanstd(X[:, 0]), rel=1e-13)
    assert (scales.location[4], scales.scale[4]) == (0.0, 1.0)
    np.testing.assert_array_equal(np.isnan(scales.of(X)), np.isnan(X))


def test_weights_count_as_copies():
    X, weights = data(), np.arange(60) % 3 + 1
    copies = np.repeat(X, weights, axis=0)
    one, other = learned(X, weights.astype(float)), learned(copies, np.ones(len(copies)))
    np.testing.assert_allclose(one.location, other.location, rtol=1e-13)
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-12)


def test_values_that_leave_the_range_of_doubles_are_refused():
    with pytest.raises(ValueError, match="Column 1 of X is too large to be standardized"):
        ColumnScales(np.zeros(2), np.array([1.0, 1e-10])).of(np.array([[1.0, 1e300]]))


def test_rows_without_weight_say_nothing():
    X, weights = data(), np.ones(60)
    weights[::2] = 0.0
    np.testing.assert_array_equal(learned(X, weights).scale, learned(X[1::2], np.ones(30)).scale)
    whole = ColumnMoments.of(X, np.ones(60))
    for nothing in (ColumnMoments.of(X[:0], np.ones(0)), ColumnMoments.of(X, np.zeros(60))):
        for moments in (nothing.merged(whole), whole.merged(nothing)):
            np.testing.assert_allclose(moments.mean, whole.mean)
            np.testing.assert_allclose(moments.deviation, whole.deviation)
