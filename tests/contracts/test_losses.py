"""What every loss keeps: convexity, conjugate, domain, best intercept, derivatives. New losses join the list."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from manykernels.losses import LOSSES as NAMED
from manykernels.losses import EpsilonInsensitive, Huber, Quantile, SmoothLoss
from tests.reference import oracle


class UserHuber(SmoothLoss):
    """A loss of a user's own, with no more than it must have."""

    name = "mine"
    classification, regression = False, True

    def value(self, y, z):
        return np.where(np.abs(y - z) <= 1, 0.5 * np.minimum(np.abs(y - z), 1.0) ** 2, np.abs(y - z) - 0.5)

    def conjugate(self, y, beta, C):
        return -y * beta + np.divide(beta**2, 2 * C, out=np.zeros(np.broadcast(beta, C).shape), where=C > 0)

    def domain(self, y, C):
        C = np.broadcast_to(C, np.shape(y))
        return -C, +C

    def dual_slope(self, sign, y, x, C):
        return x / C - y

    def dual_curvature(self, y, x, C):
        return np.broadcast_to(1.0 / C, x.shape)

    def derivative(self, y, z):
        return np.clip(z - y, -1.0, 1.0)

    def curvature(self, y, z):
        return np.where(np.abs(y - z) < 1, 1.0, 0.0)


LIBRARY = [kind() for kind in NAMED] + [EpsilonInsensitive(0.0)]
LOSSES = [*LIBRARY, Quantile(0.9), Huber(0.3), UserHuber()]
SMOOTH = [loss for loss in LOSSES if isinstance(loss, SmoothLoss)]
GRID = np.linspace(-60.0, 60.0, 1_200_001)  # a step of 1e-4, with the kinks at -1, 0 and 1 on it
every_library_loss = pytest.mark.parametrize("loss", LIBRARY, ids=repr)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
every_smooth_loss = pytest.mark.parametrize("loss", SMOOTH, ids=repr)


def targets(loss):
    return np.array([-1.0, 1.0]) if loss.classification else np.array([-1.5, 0.0, 2.0])


def some_samples(loss, n=25, seed=0):
    """Random targets, predictions and positive weights that suit the loss."""
    rng = np.random.default_rng(seed)
    y = rng.choice(targets(loss), n)
    return y, 2.0 * rng.standard_normal(n), rng.uniform(0.1, 5.0, n)


@every_library_loss
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


@every_library_loss
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
    """What the intercept b costs: beside the losses, b times what the coefficients sum to, less a constant."""
    center = loss.center(C)
    return float(C @ loss.value(y, z + b)) + (0.0 if center is None else float(center @ (z + b)))


@every_loss
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_best_intercept_is_the_minimum(loss, seed, scale):
    """No b of a bounded scalar search costs less; some weights are zero."""
    y, z, C = some_samples(loss, 15, seed)
    C = scale * np.where(np.arange(C.size) % 5 == 0, 0.0, C)
    best = total(loss, y, z, C, loss.best_intercept(y, z, C))
    found = minimize_scalar(lambda b: total(loss, y, z, C, b), bounds=(-20, 20), options={"xatol": 1e-12}).fun
    assert best <= found + 1e-12 * abs(found)


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
def test_quadratic_parts_make_up_the_conjugate(loss):
    y, _, C = some_samples(loss, 30, seed=6)
    C[4] = 0.0
    parts = loss.quadratic_parts(y, C)
    if parts is None:
        assert not loss.has_box
        return
    rng = np.random.default_rng(7)
    for part in parts:
        assert np.all(part.range[C == 0] == 0)
        assert np.all(part.curvature[np.isinf(part.range)] > 0)
        x = np.minimum(part.range, 3 * C) * rng.uniform(0.0, 1.0, 30)
        cost = part.cost * x + 0.5 * part.curvature * x**2
        np.testing.assert_allclose(loss.conjugate(y, part.sign * x, C), cost, atol=1e-12)
    ends = [sum(np.where(part.sign == s, part.range, 0.0) for part in parts) for s in (-1, 1)]
    np.testing.assert_allclose([-ends[0], ends[1]], loss.domain(y, C))


@every_loss
def test_around_the_center_coefficients_sum_to_zero(loss):
    """The box and the conjugate of beta = center + rest are those of another loss of the rest."""
    y, targets_of_rest, C = some_samples(loss, 30, seed=8)
    center = loss.center(C)
    if center is None:
        assert loss.around_center() is loss
        return
    near = loss.around_center()
    for end, shifted in zip(loss.domain(y, C), near.domain(targets_of_rest, C), strict=True):
        np.testing.assert_allclose(shifted, end - center, atol=1e-14)
    rest = 0.3 * near.domain(targets_of_rest, C)[1]
    # The linear part is that of the quadratic form, and the loss itself adds none.
    np.testing.assert_allclose(near.conjugate(targets_of_rest, rest, C), -targets_of_rest * rest)
    assert np.all(loss.conjugate(y, center + rest, C) == 0)
    np.testing.assert_allclose(near.center(C) or 0.0, 0.0)


@every_loss
def test_repr_names_the_loss(loss):
    assert type(loss).__name__ in repr(loss)


def error_of(loss, y, z, beta, C):
    """e(beta) = C value + conjugate + beta z, which Fenchel's inequality says is not negative."""
    return C * loss.value(y, z) + loss.conjugate(y, beta, C) + beta * z


@every_loss
def test_the_pull_of_a_prediction(loss):
    """e is 0 at the minimizer, and grows at least with the slope, or with the stiffness where the loss is smooth."""
    y, z, C = some_samples(loss, 300, seed=6)
    slope, at = loss.dual_pull(y, z, C)
    lower, upper = loss.domain(y, C)
    assert np.all((lower <= at) & (at <= upper))
    assert np.all(slope >= 0)
    np.testing.assert_allclose(error_of(loss, y, z, at, C), 0.0, atol=1e-12)
    stiffness = loss.dual_stiffness(y, C)
    low, high = np.maximum(lower, -2 * C), np.minimum(upper, 2 * C)
    for share in np.random.default_rng(7).uniform(size=(20, 300)):
        beta = low + share * (high - low)
        least = slope * np.abs(beta - at) + (0.0 if stiffness is None else 0.5 * stiffness * (beta - at) ** 2)
        assert np.all(error_of(loss, y, z, beta, C) >= least - 1e-12)


@every_smooth_loss
def test_a_smooth_loss_has_no_slope_in_its_pull(loss):
    y, z, C = some_samples(loss)
    np.testing.assert_array_equal(loss.dual_pull(y, z, C)[0], 0.0)


@every_loss
def test_the_stiffness_is_the_least_curvature_of_the_conjugate(loss):
    y, _, C = some_samples(loss, 40, seed=8)
    stiffness = loss.dual_stiffness(y, C)
    curvatures = []
    for _, lower, upper in loss.dual_parts(y, C):
        low, high = np.maximum(lower, -2 * C), np.minimum(upper, 2 * C)
        curvatures += [loss.dual_curvature(y, low + t * (high - low), C) for t in np.linspace(0.01, 0.99, 99)]
    least = np.min(curvatures, axis=0)
    assert np.all(least >= 0)
    if stiffness is None:
        assert not isinstance(loss, SmoothLoss) or loss not in LIBRARY
    else:
        assert stiffness.shape == y.shape
        np.testing.assert_allclose(stiffness, least, rtol=1e-12)


@every_loss
def test_samples_of_weight_zero_take_no_part(loss):
    """Their parts are empty, nothing pulls them, and the best intercept does not see them."""
    y, z, C = some_samples(loss, 20, seed=9)
    C = np.where(np.arange(20) % 3 == 0, 0.0, C)
    used = C > 0
    with np.errstate(all="raise"):
        for _, lower, upper in loss.dual_parts(y, C):
            assert np.all(lower[~used] == 0)
            assert np.all(upper[~used] == 0)
        slope, at = loss.dual_pull(y, z, C)
        assert np.all(np.isfinite(slope))
        assert np.all(at[~used] == 0)
        b = loss.best_intercept(y, z, C)
        fewer = loss.best_intercept(y[used], z[used], C[used])
    assert total(loss, y, z, C, b) == pytest.approx(total(loss, y, z, C, fewer), rel=1e-12)


@every_loss
def test_weights_that_are_all_zero_leave_the_intercept_finite(loss):
    y, z, _ = some_samples(loss, 6)
    with np.errstate(all="raise"):
        assert np.isfinite(loss.best_intercept(y, z, np.zeros(6)))


@every_loss
@pytest.mark.parametrize("far", [1e3, 1e8, 1e150])
def test_extreme_targets_and_predictions_stay_finite(loss, far):
    """With no overflow, and no NaN."""
    y = np.array([-1.0, 1.0, -1.0, 1.0]) * (1.0 if loss.classification else far)
    z, C = np.array([far, far, -far, -far]), np.array([1e-3, 1.0, 1e3, 1.0])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert np.all(np.isfinite(loss.value(y, z)))
        slope, at = loss.dual_pull(y, z, C)
        assert np.all(np.isfinite(slope) & np.isfinite(at))
        assert np.all(np.isfinite(loss.conjugate(y, at, C)))
        assert np.isfinite(loss.best_intercept(y, z, C))
        if isinstance(loss, SmoothLoss):
            assert np.all(np.isfinite(loss.derivative(y, z)))
            assert np.all(np.isfinite(loss.curvature(y, z)))


@every_loss
def test_nothing_is_written_to_what_is_given(loss):
    y, z, C = some_samples(loss)
    beta = np.clip(0.3 * y, *loss.domain(y, C))
    for array in (y, z, C, beta):
        array.flags.writeable = False
    loss.value(y, z), loss.conjugate(y, beta, C), loss.dual_pull(y, z, C), loss.best_intercept(y, z, C)
    loss.dual_slope(1.0, y, beta, C), loss.dual_curvature(y, beta, C), loss.dual_stiffness(y, C)
