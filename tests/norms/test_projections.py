"""Nearest points of the balls of weights, by their definition and by CVXPY."""

import cvxpy as cp
import numpy as np
import pytest

from manykernels.norms import LpNorm
from manykernels.norms.projections import onto_lp_ball


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("p", [1.0, 1.001, 1.1, 4 / 3, 2.0, 3.0, 100.0, np.inf])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_projection_onto_the_ball(p, scale, rng):
    """Feasible, and the obtuse angle of the nearest point: (v - x)'(z - x) <= 0 for every feasible z."""
    for _ in range(10):
        v = scale * rng.normal(size=7)
        x = onto_lp_ball(v, p)
        assert np.all(x >= 0)
        size = x.max() if np.isinf(p) else np.sum(x**p)
        assert size <= 1 + 1e-9
        others = np.abs(rng.normal(size=(200, 7)))
        others[::2] *= rng.random((100, 7)) < 0.3
        norms = [z.max() if np.isinf(p) else np.sum(z**p) ** (1 / p) for z in others]
        for z, norm in zip(others, norms, strict=True):
            if norm > 0:
                assert (v - x) @ (z / norm - x) <= 1e-7 * max(1.0, np.abs(v).max())


def test_projection_against_cvxpy():
    v = np.array([1.3, 0.2, -0.4, 0.9])
    for p in (1.0, 1.5, 2.0, 3.0):
        x = cp.Variable(4)
        cp.Problem(cp.Minimize(cp.sum_squares(x - v)), [x >= 0, cp.pnorm(x, p) <= 1]).solve(solver="CLARABEL")
        np.testing.assert_allclose(onto_lp_ball(v, p), x.value, atol=1e-5)


def test_inside_the_ball_nothing_moves():
    v = np.array([0.1, 0.0, 0.3])
    for p in (1.0, 1.5, 2.0, np.inf):
        np.testing.assert_array_equal(LpNorm(p).project(v), v)
