"""The best weights of a quadratic model in a ball, against CVXPY."""

import cvxpy as cp
import numpy as np
import pytest

from manykernels.outer.quadratic_model import best_weights


@pytest.mark.parametrize("rank", [1, 6])
@pytest.mark.parametrize("p", [1.0, 1.001, 1.5, 3.0])
def test_the_model_is_minimized(p, rank):
    """Against CVXPY, with a singular and a regular Hessian."""
    rng = np.random.default_rng(7)
    root, gradient = rng.standard_normal((rank, 6)), -rng.uniform(0.1, 1.0, 6)
    at = rng.uniform(0, 1, 6)
    at /= np.sum(at**p) ** (1 / p)
    x = cp.Variable(6)
    model = gradient @ (x - at) + 0.5 * cp.sum_squares(root @ (x - at))
    expected = cp.Problem(cp.Minimize(model), [x >= 0, cp.pnorm(x, p) <= 1]).solve(solver="CLARABEL")
    found = best_weights(gradient, root.T @ root, at, p)
    assert np.all(found >= 0)
    assert np.sum(found**p) <= 1 + 1e-9
    assert gradient @ (found - at) + 0.5 * np.sum((root @ (found - at)) ** 2) == pytest.approx(expected, abs=1e-6)


def test_no_gradient_leaves_the_weights():
    at = np.array([0.25, 0.75])
    np.testing.assert_array_equal(best_weights(np.zeros(2), np.eye(2), at, 1.0), at)
