"""Factors with a known error."""

import numpy as np
import pytest

from manykernels.compute.lowrank import pivoted_factor


@pytest.mark.parametrize("error", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("width", [0.05, 1.0, 20.0])
def test_no_entry_is_off_by_more(width, error):
    x = np.random.default_rng(0).standard_normal(120)
    K = np.exp(-((x[:, None] - x) ** 2) / (2 * width**2))
    F = pivoted_factor(lambda i: K[:, i], np.ones(120), error, 120)
    assert np.abs(F @ F.T - K).max() <= error + 1e-14
    if F.shape[1] > 1:
        assert pivoted_factor(lambda i: K[:, i], np.ones(120), error, F.shape[1] - 1) is None


def test_a_matrix_of_full_rank_is_refused_or_whole():
    K = np.diag([1.0, 2.0, 3.0])
    assert pivoted_factor(lambda i: K[i], K.diagonal(), 1e-9, 2) is None
    F = pivoted_factor(lambda i: K[i], K.diagonal(), 1e-9, 3)
    np.testing.assert_allclose(F @ F.T, K)


def test_zero_has_no_columns():
    assert pivoted_factor(lambda i: np.zeros(4), np.zeros(4), 1e-9, 2).shape == (4, 0)
