"""What LpNorm promises: the dual norm by its definition, and weights that attain the norm."""

import numpy as np
import pytest

from manykernels.norms import LpNorm

POWERS = [1, 1.001, 4 / 3, 2, 4, 100, np.inf]
every_power = pytest.mark.parametrize("p", POWERS)
M = 6


def exponent(p):
    """r of N(a) = ||a||_r."""
    return 2.0 if np.isinf(p) else 2 * p / (1 + p)


def vectors(count, seed=0, m=M):
    """Random non-negative vectors; in some of them most entries vanish or are tiny."""
    rng = np.random.default_rng(seed)
    a = np.abs(rng.standard_normal((count, m)))
    a[::3] **= 8
    a[1::5] *= rng.random(a[1::5].shape) < 0.4
    return a[a.max(axis=1) > 0]


def feasible_weights(p, count, seed=1):
    """Random d >= 0 on the boundary ||d||_p = 1."""
    d = vectors(count, seed) + 1e-12
    size = (
        d.max(axis=1) if np.isinf(p) else np.array([np.sum((row / row.max()) ** p) ** (1 / p) * row.max() for row in d])
    )
    return d / size[:, None]


@every_power
def test_value_is_the_r_norm(p):
    for a in vectors(20):
        assert LpNorm(p).value(a) == pytest.approx(np.linalg.norm(a, exponent(p)), rel=1e-12)


@every_power
def test_value_is_a_norm(p):
    """Homogeneous, and the triangle inequality holds."""
    norm, (a, b) = LpNorm(p), vectors(20)[[0, 1]]
    assert norm.value(3.5 * a) == pytest.approx(3.5 * norm.value(a))
    assert norm.value(a + b) <= norm.value(a) + norm.value(b) + 1e-12
    assert norm.value(np.zeros(M)) == 0.0


@every_power
def test_dual_norm_by_its_definition(p):
    """N*(s) = sup <a, s> / N(a): no random a exceeds it, and one that is refined from the best comes close."""
    norm, rng = LpNorm(p), np.random.default_rng(2)
    for s in vectors(8, seed=3):
        dual = np.sqrt(norm.dual_square(s**2))
        candidates = np.vstack([vectors(2000, seed=4), np.eye(M)])
        ratios = candidates @ s / np.array([norm.value(a) for a in candidates])
        assert ratios.max() <= dual * (1 + 1e-12)
        best, spread = candidates[ratios.argmax()], 0.3
        for _ in range(60):  # climb: keep the best of a shrinking cloud
            step = spread * best.max() * rng.standard_normal((40, M))
            cloud = np.vstack([best, np.maximum(best + step, 0.0)])
            best = cloud[np.argmax(cloud @ s / np.array([norm.value(a) for a in cloud]))]
            spread *= 0.9
        assert best @ s / norm.value(best) >= 0.999 * dual


@every_power
def test_weights_attain_the_norm(p):
    """sum a^2 / d at the closed form is N(a)^2, and no feasible d gives less."""
    norm = LpNorm(p)
    for a in vectors(10, seed=5):
        d = norm.weights(a)
        used = a > 0
        assert np.all(d >= 0)
        attained = np.sum(a[used] ** 2 / d[used])
        assert attained == pytest.approx(norm.value(a) ** 2, rel=1e-10)
        for other in feasible_weights(p, 300):
            assert np.sum(a[used] ** 2 / other[used]) >= attained * (1 - 1e-10)


@every_power
def test_weights_are_on_the_boundary_of_the_ball(p):
    norm = LpNorm(p)
    for a in [*vectors(10, seed=6), np.zeros(M)]:
        for d in (norm.weights(a), norm.initial_weights(M), norm.scaled(norm.weights(a) * 7)):
            assert np.linalg.norm(d / d.max(), p) * d.max() == pytest.approx(1.0, rel=1e-10)


@every_power
def test_initial_weights_are_equal(p):
    assert np.ptp(LpNorm(p).initial_weights(5)) == 0.0


@every_power
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_no_power_overflows(p, scale):
    """Numbers far from 1 scale through, with no floating-point error."""
    norm = LpNorm(p)
    a = scale * np.array([1.0, 0.5, 0.0, 1e-3])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert norm.value(a) == pytest.approx(scale * norm.value(a / scale), rel=1e-12)
        assert norm.dual_square(a) == pytest.approx(scale * norm.dual_square(a / scale), rel=1e-12)
        np.testing.assert_allclose(norm.weights(a), norm.weights(a / scale), rtol=1e-12)


@pytest.mark.parametrize("p", [1 + 1e-15, 1 + 1e-9, 1.001])
def test_near_one_is_continuous(p):
    """A norm a hair above 1 is nearly LpNorm(1), many kernels or few."""
    q = np.random.default_rng(7).uniform(0.1, 2.0, 1000)
    near, one = LpNorm(p), LpNorm(1)
    slack = 10 * (p - 1) + 1e-12
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert near.dual_square(q) == pytest.approx(one.dual_square(q), rel=slack)
        assert near.value(q) == pytest.approx(one.value(q), rel=slack)
        np.testing.assert_allclose(near.weights(q), one.weights(q), rtol=slack)


@pytest.mark.parametrize("p", [1e6, 1e300, 1e308])
def test_a_huge_power_is_nearly_infinity(p):
    a = np.array([3.0, 4.0, 0.5])
    huge, infinite = LpNorm(p), LpNorm(np.inf)
    assert huge.value(a) == pytest.approx(infinite.value(a), rel=1e-4)
    assert huge.dual_square(a) == pytest.approx(infinite.dual_square(a), rel=1e-4)
    np.testing.assert_allclose(huge.weights(a), infinite.weights(a), rtol=1e-4)


@pytest.mark.parametrize("p", [0.5, 0, -1, np.nan, "2", None, True, [2], 2j])
def test_other_powers_are_refused(p):
    with pytest.raises((ValueError, TypeError), match=r"^p must be"):
        LpNorm(p)


def test_identity():
    assert LpNorm(2) == LpNorm(2.0)
    assert LpNorm(2) != LpNorm(3)
    assert hash(LpNorm(2)) == hash(LpNorm(2.0))
    assert repr(LpNorm(np.inf)) == "LpNorm(p=inf)"
    assert [LpNorm(p).selects for p in (1, 1.001, np.inf)] == [True, False, False]
