"""The reduced direction of SimpleMKL."""

import numpy as np
import pytest

from manykernels.literature.simple import reduced_direction


def test_the_reduced_direction_descends_and_keeps_the_sum():
    rng = np.random.default_rng(0)
    weights = np.array([0.4, 0.3, 0.3, 0.0, 0.0])
    gradient = -rng.random(5)
    direction = reduced_direction(weights, gradient, 0)
    assert direction.sum() == pytest.approx(0.0, abs=1e-15)
    assert gradient @ direction < 0
    assert np.all(direction[weights == 0] >= 0)
