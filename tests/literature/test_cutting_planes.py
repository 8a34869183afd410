"""Cutting planes: they lie below the objective and bound its optimum."""

import numpy as np
import pytest

from manykernels.literature.cutting_planes import CuttingPlanes, _conjugate_weights, _derivatives
from manykernels.literature.weight_search import WeightSearch
from manykernels.norms.lp import power_norm
from manykernels.outer.newton import newton
from tests.literature.test_solvers import LOSSES, problem_of
from tests.reference.oracle import random_problem


class _Evaluation(WeightSearch):
    def advance(self, here):
        return None


@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=[loss.name for loss, _ in LOSSES])
@pytest.mark.parametrize("p", [1.0, 1.05, 3.0])
def test_planes_lie_below_and_bound_the_optimum(loss, task, p):
    grams, y = random_problem(30, 6, seed=1, task=task)
    problem = problem_of(grams, y, loss, p, C=100.0)
    search, planes, rng = _Evaluation(problem, 1e-8), CuttingPlanes(problem, p), np.random.default_rng(0)
    points = [search.evaluate(problem.norm.scaled(rng.random(6) ** 4), None) for _ in range(8)]
    for point in points:
        planes.add(point)
    planes.upper *= 1e-3  # so that all planes are made less steep
    S, c = planes.planes()
    values = np.array([point.value for point in points]) / planes.unit
    heights = c[:, None] - S @ np.array([point.weights for point in points]).T
    assert np.all(heights <= values * (1 + 1e-6))
    assert np.all(heights.diagonal() >= 99.0)
    planes.upper *= 1e3
    weights = planes.lowest()
    S, c = planes.planes()
    assert planes.lower <= newton(problem, tol=1e-8).certificate.primal * (1 + 1e-7)
    lowest = max(0.0, planes.unit * (c - S @ weights).max())
    assert lowest == pytest.approx(planes.lower, rel=1e-6, abs=1e-7 * planes.unit)


@pytest.mark.parametrize("power", [1.2, 2.0, 21.0])
def test_derivatives_of_the_bound_of_the_planes(power):
    rng = np.random.default_rng(1)
    S, c, x, step = rng.random((4, 6)), rng.random(4), rng.random(4), 1e-6

    def value(x):
        return power_norm(x @ S, power) - c @ x

    gradient, second = _derivatives(x, S, c, power)
    steps = step * np.eye(4)
    np.testing.assert_allclose(gradient, [(value(x + e) - value(x - e)) / (2 * step) for e in steps], rtol=1e-6)
    by_differences = [(_derivatives(x + e, S, c, power)[0] - _derivatives(x - e, S, c, power)[0]) for e in steps]
    np.testing.assert_allclose(second, np.array(by_differences) / (2 * step), rtol=1e-5, atol=1e-6)
    assert power_norm(_conjugate_weights(x @ S, power), power / (power - 1)) == pytest.approx(1.0)
