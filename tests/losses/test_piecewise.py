"""Losses of straight pieces: minimizers of what is flat somewhere."""

import numpy as np
import pytest

from manykernels.losses import EpsilonInsensitive, Hinge


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.5)], ids=repr)
def test_best_intercept_takes_the_middle_of_an_interval(loss):
    """Where every b of an interval is as good, the result does not depend on the order of the samples."""
    y = np.array([1.0, -1.0]) if loss.name == "hinge" else np.array([0.2, -0.2])
    z, C = np.array([3.0, -3.0]) if loss.name == "hinge" else np.zeros(2), np.ones(2)
    assert loss.best_intercept(y, z, C) == pytest.approx(0.0, abs=1e-15)
    assert loss.best_intercept(y[::-1], z[::-1], C) == pytest.approx(0.0, abs=1e-15)
