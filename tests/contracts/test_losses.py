"""What every loss keeps: convexity, conjugate, domain, best intercept, derivatives. New losses join the list."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from manykernels.losses import EpsilonInsensitive, Hinge, Logistic, SmoothLoss, Squared, SquaredHinge
from tests.reference import oracle

LOSSES = [Hinge(), SquaredHinge(), Logistic(), Squared(), EpsilonInsensitive(0.1), EpsilonInsensitive(0.0)]
SMOOTH = [loss for loss in LOSSES if isinstance(loss, SmoothLoss)]
GRID = np.linspace(-60.0, 60.0, 1_200_001)  # a step of 1e-4, with the kinks at -1, 0 and 1 on it

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
every_smooth_loss = pytest.mark.parametrize("loss", SMOOTH, ids=repr)


def targets(loss):
    return np.array([-1.0, 1.0]) if loss.classification else np.array([-1.5, 0.0, 2.0])


def some_samples(loss, n=25, seed=0):
    """Random targets, predictions and positive weights that suit the loss."""
    rng = np.random.default_rng(seed)
    y = rng.choice(targets(loss), n)
    return y, 2.0 * rng.standard_normal(n), rng.uniform(0.1, 5.0, n)


@every_loss
def test_value_is_the_definition(loss):
    y, z, _ = some_samples(loss)
    epsilon = getattr(loss, "epsilon", 0.1)
    np.testing.assert_allclose(loss.value(y, z), oracle.loss_value(loss.name, y, z, epsilon), rtol=1e-14, atol=1e-15)


@every_loss
def test_value_is_convex_and_not_negative(loss):
    rng = np.random.default_rng(1)
    for y in targets(loss):
        left, right = 5.0 * rng.standard_normal((2, 500))
        share = rng.uniform(size=500)
        middle = loss.value(y, share * left + (1 - share) * right)
        chord = share * loss.value(y, left) + (1 - share) * loss.value(y, right)
        assert np.all(middle <= chord + 1e-12 * (1 + chord))
        assert np.all(middle >= 0)


@every_loss
@pytest.mark.parametrize("z", [-1e4, 1e4])
def test_value_far_out_is_finite(loss, z):
    assert np.all(np.isfinite(loss.value(targets(loss), np.float64(z))))


def inside_domain(loss, y, C):
    """A few beta strictly inside the domain; half as far as C where it has no end."""
    lower, upper = loss.domain(np.array([y]), np.array([C]))
    low, high = max(lower[0], -2.0 * C), min(upper[0], 2.0 * C)
    return low + (high - low) * np.array([0.05, 0.3, 0.5, 0.8, 0.95])


@every_loss
@pytest.mark.parametrize("C", [0.3, 4.0])
def test_conjugate_is_the_supremum_on_a_grid(loss, C):
    for y in targets(loss):
        cost = C * loss.value(y, GRID)
        for beta in inside_domain(loss, y, C):
            supremum = np.max(-beta * GRID - cost)
            assert loss.conjugate(np.array([y]), np.array([beta]), np.array([C]))[0] == pytest.approx(
                supremum, rel=1e-6, abs=1e-6
            )


@every_loss
@pytest.mark.parametrize("C", [0.3, 4.0])
def test_domain_encloses_zero_and_the_supremum_is_infinite_outside(loss, C):
    """Just outside a finite end of the domain, -beta z - C loss grows without bound."""
    for y in targets(loss):
        lower, upper = (float(end[0]) for end in loss.domain(np.array([y]), np.array([C])))
        assert lower <= 0.0 <= upper
        for end, outward in ((lower, -1.0), (upper, 1.0)):
            if np.isfinite(end):
                beta = end + 0.05 * outward
                far, farther = (-beta * z - C * loss.value(y, z) for z in (-outward * 1e4, -outward * 2e4))
                assert farther > far + 100.0


@every_loss
def test_conjugate_is_finite_and_attained_at_the_ends_of_the_domain(loss):
    y, _, C = some_samples(loss)
    for end in loss.domain(y, C):
        beta = np.where(np.isfinite(end), end, 0.0)
        expected = oracle.conjugate(loss.name, y, beta, C, getattr(loss, "epsilon", 0.1))
        np.testing.assert_allclose(loss.conjugate(y, beta, C), expected, atol=1e-12)


@every_loss
def test_weight_zero_costs_nothing(loss):
    """C = 0: the domain is {0}, and the conjugate there is 0, with no warning of a division."""
    y = targets(loss)
    zero = np.zeros(y.size)
    for end in loss.domain(y, zero):
        assert np.all(end == 0)
    with np.errstate(all="raise"):
        assert np.all(loss.conjugate(y, zero, zero) == 0)


@every_loss
def test_methods_broadcast_over_tasks(loss):
    y, z, C = some_samples(loss, 12)
    Y, Z, costs = y.reshape(3, 4), z.reshape(3, 4), C.reshape(3, 4)
    beta = np.clip(0.3 * Y, *loss.domain(Y, costs))
    np.testing.assert_array_equal(loss.value(Y, Z).ravel(), loss.value(y, z))
    np.testing.assert_array_equal(loss.conjugate(Y, beta, costs).ravel(), loss.conjugate(y, beta.ravel(), C))
    assert all(end.shape == (3, 4) for end in loss.domain(Y, costs))


def total(loss, y, z, C, b):
    return float(C @ loss.value(y, z + b))


@every_loss
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_best_intercept_is_the_minimum(loss, seed, scale):
    """No b of a bounded scalar search costs less; some weights are zero."""
    y, z, C = some_samples(loss, 15, seed)
    C = scale * np.where(np.arange(C.size) % 5 == 0, 0.0, C)
    best = total(loss, y, z, C, loss.best_intercept(y, z, C))
    found = minimize_scalar(lambda b: total(loss, y, z, C, b), bounds=(-20, 20), options={"xatol": 1e-12}).fun
    assert best <= found * (1 + 1e-12)


@every_loss
@pytest.mark.parametrize("shift", [1e3, -1e5])
def test_best_intercept_follows_a_shift(loss, shift):
    """Predictions that are off by a constant far from zero: the intercept undoes it."""
    y, z, C = some_samples(loss, 15)
    near, far = loss.best_intercept(y, z, C), loss.best_intercept(y, z + shift, C)
    assert total(loss, y, z + shift, C, far) == pytest.approx(total(loss, y, z, C, near), rel=1e-8)


@every_loss
def test_best_intercept_of_one_class(loss):
    """Only one label: the infimum is 0; it is reached, or nearly (logistic)."""
    y, z, C = np.ones(4), np.array([-3.0, 0.0, 1.0, 2.0]), np.ones(4)
    b = loss.best_intercept(y, z, C)
    assert np.isfinite(b)
    if loss.name in ("hinge", "squared_hinge", "logistic"):
        assert total(loss, y, z, C, b) <= 1e-10


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.5)], ids=repr)
def test_best_intercept_takes_the_middle_of_an_interval(loss):
    """Where every b of an interval is as good, the result does not depend on the order of the samples."""
    y = np.array([1.0, -1.0]) if loss.name == "hinge" else np.array([0.2, -0.2])
    z, C = np.array([3.0, -3.0]) if loss.name == "hinge" else np.zeros(2), np.ones(2)
    assert loss.best_intercept(y, z, C) == pytest.approx(0.0, abs=1e-15)
    assert loss.best_intercept(y[::-1], z[::-1], C) == pytest.approx(0.0, abs=1e-15)


@every_smooth_loss
def test_derivative_and_curvature_against_finite_differences(loss):
    h = 1e-5
    for y in targets(loss):
        z = np.linspace(-4.0, 4.0, 81) + 0.0123  # keeps away from the kink of the squared hinge's slope
        slope = (loss.value(y, z + h) - loss.value(y, z - h)) / (2 * h)
        bend = (loss.derivative(y, z + h) - loss.derivative(y, z - h)) / (2 * h)
        np.testing.assert_allclose(loss.derivative(y, z), slope, atol=1e-8)
        np.testing.assert_allclose(loss.curvature(y, z), bend, atol=1e-8)


@every_smooth_loss
def test_minus_the_slope_is_dual_feasible_and_attains_the_conjugate(loss):
    """beta = -C loss'(z) lies in the domain, and there Fenchel's inequality is an equality."""
    y, z, C = some_samples(loss, 200, seed=3)
    beta = -C * loss.derivative(y, z)
    lower, upper = loss.domain(y, C)
    assert np.all((lower <= beta) & (beta <= upper))
    np.testing.assert_allclose(C * loss.value(y, z) + loss.conjugate(y, beta, C), -beta * z, atol=1e-12)


@every_loss
def test_the_dual_in_parts(loss):
    """beta = sum sign * x over the parts; slope and curvature of the conjugate in each part, by differences."""
    y, _, C = some_samples(loss, 30, seed=4)
    h = 1e-6
    parts = loss.dual_parts(y, C)
    for sign, lower, upper in parts:
        low, high = np.maximum(lower, -2 * C), np.minimum(upper, 2 * C)
        x = low + (high - low) * np.random.default_rng(5).uniform(0.2, 0.8, 30)
        above, below = (loss.conjugate(y, sign * (x + step), C) for step in (h, -h))
        np.testing.assert_allclose(loss.dual_slope(sign, y, x, C), (above - below) / (2 * h), rtol=1e-5, atol=1e-6)
        bend = (loss.dual_slope(sign, y, x + h, C) - loss.dual_slope(sign, y, x - h, C)) / (2 * h)
        np.testing.assert_allclose(loss.dual_curvature(y, x, C), bend, rtol=1e-5, atol=1e-6)
    lowest = sum(np.minimum(sign * lower, sign * upper) for sign, lower, upper in parts)
    highest = sum(np.maximum(sign * lower, sign * upper) for sign, lower, upper in parts)
    for end, expected in zip((lowest, highest), loss.domain(y, C), strict=True):
        np.testing.assert_allclose(end, expected)


@every_loss
def test_repr_names_the_loss(loss):
    assert type(loss).__name__ in repr(loss)
