"""Distinct samples: the same for dense and sparse data, and independent of the order of the rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from manykernels.core.samples import Samples, distinct_samples

FORMS = {"dense": np.asarray, "sparse": sp.csr_matrix}
every_form = pytest.mark.parametrize("form", FORMS)


def repeated(n=40, seed=0):
    """Rows drawn with repetition from few; targets and weights, some of them zero."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((8, 3)), 1)[rng.integers(0, 8, n)] * (rng.random((n, 1)) < 0.9)
    return X, rng.integers(0, 2, n).astype(float), rng.integers(0, 3, n).astype(float)


def naive(X, y, weight):
    """{(row, target): summed weight} of the rows with a positive weight."""
    out = {}
    for x, target, w in zip(X, y, weight, strict=True):
        if w > 0:
            out[(*x, target)] = out.get((*x, target), 0.0) + w
    return out


@every_form
def test_against_a_dictionary(form):
    X, y, weight = repeated()
    samples = distinct_samples(FORMS[form](X), y, weight)
    found = {(*X[i], y[i]): w for i, w in zip(samples.rows, samples.weight, strict=True)}
    assert found == pytest.approx(naive(X, y, weight))
    assert len(found) == len(samples.rows)


@every_form
def test_owner_rows_and_share(form):
    X, y, weight = repeated()
    samples = distinct_samples(FORMS[form](X), y, weight)
    for i in range(len(y)):
        if weight[i] == 0:
            assert samples.owner[i] == -1
            assert samples.share[i] == 0.0
        else:
            first = samples.rows[samples.owner[i]]
            assert first <= i
            assert np.array_equal(X[first], X[i])
            assert y[first] == y[i]
            assert samples.share[i] == pytest.approx(weight[i] / samples.weight[samples.owner[i]])


@every_form
def test_spread_keeps_sums(form):
    X, y, weight = repeated()
    samples = distinct_samples(FORMS[form](X), y, weight)
    values = np.random.default_rng(1).standard_normal((2, samples.rows.size))
    spread = samples.spread(values)
    assert spread.shape == (2, len(y))
    np.testing.assert_allclose(spread.sum(axis=1), values.sum(axis=1))
    assert np.all(spread[:, weight == 0] == 0.0)


@every_form
def test_the_order_of_the_rows_does_not_matter(form):
    X, y, weight = repeated()
    order = np.random.default_rng(2).permutation(len(y))
    one = distinct_samples(FORMS[form](X), y, weight)
    other = distinct_samples(FORMS[form](X[order]), y[order], weight[order])
    np.testing.assert_array_equal(X[one.rows], X[order][other.rows])
    np.testing.assert_array_equal(y[one.rows], y[order][other.rows])
    np.testing.assert_allclose(one.weight, other.weight)


@every_form
def test_minus_zero_is_zero(form):
    X = FORMS[form](np.array([[0.0, 1.0], [-0.0, 1.0]]))
    assert distinct_samples(X, np.zeros(2), np.ones(2)).rows.size == 1


def test_sparse_rows_written_differently_are_the_same():
    """Explicit zeros, unsorted indices and entries in two parts; the matrix that was given is left alone."""
    data, indices, indptr = np.array([2.0, 5.0, 5.0, 2.0, 0.0, 1.0, 4.0, 2.0]), [0, 2, 2, 0, 1, 2, 2, 0], [0, 2, 5, 8]
    X = sp.csr_matrix((data, indices, indptr), shape=(3, 3))
    before = X.data.copy(), X.indices.copy()
    assert distinct_samples(X, np.zeros(3), np.ones(3)).rows.tolist() == [0]
    np.testing.assert_array_equal(X.data, before[0])
    np.testing.assert_array_equal(X.indices, before[1])


@every_form
def test_all_distinct_and_all_equal(form):
    X = np.arange(12.0).reshape(6, 2)
    assert sorted(distinct_samples(FORMS[form](X), np.zeros(6), np.ones(6)).rows) == list(range(6))
    same = distinct_samples(FORMS[form](np.ones((6, 2))), np.zeros(6), np.ones(6))
    assert same.rows.tolist() == [0]
    assert same.weight.tolist() == [6.0]


def test_empty_rows_are_rows():
    X = sp.csr_matrix(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]))
    assert sorted(distinct_samples(X, np.zeros(3), np.ones(3)).weight) == [1.0, 2.0]


@every_form
def test_no_weight_at_all_is_an_error(form):
    with pytest.raises(ValueError, match=r"^sample_weight is zero for every sample"):
        distinct_samples(FORMS[form](np.eye(3)), np.zeros(3), np.zeros(3))


def test_the_last_samples_are_a_random_part():
    X = np.sort(np.random.default_rng(0).standard_normal(400))[:, None]
    rows = distinct_samples(X, np.zeros(400), np.ones(400)).rows
    assert abs(X[rows[-100:]].mean()) < 0.3
    assert not np.array_equal(rows, np.sort(rows))


class TestEveryRowIsASample:
    def test_all_count(self):
        X = np.ones((4, 2))
        samples = Samples.all_of(np.array([1.0, 2.0, 1.0, 0.5]))
        assert samples.rows.tolist() == samples.owner.tolist() == [0, 1, 2, 3]
        assert samples.weight.tolist() == [1.0, 2.0, 1.0, 0.5]
        assert samples.of(X) is X  # a table on disk is not copied
        np.testing.assert_array_equal(samples.spread(np.arange(4.0)), np.arange(4.0))

    def test_rows_without_a_weight_do_not(self):
        samples = Samples.all_of(np.array([0.0, 2.0, 1e-310, 3.0]))
        assert samples.rows.tolist() == [1, 3]
        assert samples.owner.tolist() == [-1, 0, -1, 1]
        assert samples.weight.tolist() == [2.0, 3.0]
        np.testing.assert_array_equal(samples.spread(np.array([5.0, 7.0])), [0.0, 5.0, 0.0, 7.0])
        np.testing.assert_array_equal(samples.of(np.eye(4)), np.eye(4)[[1, 3]])

    def test_no_weight_at_all_is_an_error(self):
        with pytest.raises(ValueError, match=r"^sample_weight is zero for every sample"):
            Samples.all_of(np.zeros(3))


def test_another_unit_of_a_column_changes_no_order():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    X[10:20] = X[:10]
    X[:, 1] = np.round(X[:, 1])
    rows = [distinct_samples(Z, y, np.ones(50)).rows for Z in (X, 3.7 * X - 40.0, X / 1e200)]
    assert np.array_equal(rows[0], rows[1])
    assert np.array_equal(rows[0], rows[2])


def test_rows_are_in_the_order_of_their_values_before_they_are_shuffled():
    values = np.array([0.0, -1.0, 1e-300, -1e300, 5.0, -1e-300, 1e300])
    samples = distinct_samples(values[:, None], np.zeros(7), np.ones(7))
    shuffled = np.random.default_rng(0).permutation(7)
    assert np.array_equal(values[samples.rows], np.sort(values)[shuffled])
