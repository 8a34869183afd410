"""Coordinate descent on quadratics: all ways find the minimum, and the fixed seed the same walk."""

import numpy as np
import pytest

from manykernels.literature.coordinate import gradient_sampling, racdm, rcdm

CURVATURE = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])
TARGET = np.array([1.0, -2.0, 3.0])


def derivative(x, i):
    return float(CURVATURE[i] @ x - TARGET[i])


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_known_constants(alpha):
    x = rcdm(derivative, np.zeros(3), np.diag(CURVATURE), 500, alpha=alpha, random_state=1)
    np.testing.assert_allclose(CURVATURE @ x, TARGET, atol=1e-10)


@pytest.mark.parametrize("first", [1e-3, 1.0, 1e3])
def test_constants_are_learned_on_the_way(first):
    x = racdm(derivative, np.zeros(3), first, 1000)
    np.testing.assert_allclose(CURVATURE @ x, TARGET, atol=1e-8)


def test_gradient_sampling_comes_near_and_repeats():
    def gradient(x):
        return CURVATURE @ x - TARGET

    start, seen = np.zeros(3), []
    x = gradient_sampling(gradient, start, 5000, watch=lambda k, x: seen.append(k))
    assert np.abs(gradient(x)).max() < 0.3
    np.testing.assert_array_equal(x, gradient_sampling(gradient, start, 5000))
    assert seen == list(range(1, 5001))
    assert not np.any(start)


def test_gradient_sampling_rests_at_the_minimum():
    seen = []
    x = gradient_sampling(lambda x: x - TARGET, TARGET, 10, watch=lambda k, x: seen.append(k))
    np.testing.assert_array_equal(x, TARGET)
    assert not seen
