"""What penalties promise: gradients, conjugates and proximal points by their definitions."""

import numpy as np
import pytest

from manykernels.norms import LpPenalty, Penalty

POWERS = [1.0, 1.001, 1.1, 4 / 3, 2.0, 3.0]
every_power = pytest.mark.parametrize("p", POWERS)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@every_power
@pytest.mark.parametrize("strength", [0.3, 1.0, 20.0])
def test_gradient_by_differences(p, strength, rng):
    penalty, d, step = LpPenalty(p, strength), rng.uniform(0.2, 3.0, 5), 1e-6
    for k, slope in enumerate(penalty.gradient(d)):
        e = step * np.eye(5)[k]
        assert slope == pytest.approx((penalty.value(d + e) - penalty.value(d - e)) / (2 * step), rel=1e-6)


@every_power
@pytest.mark.parametrize("strength", [0.3, 1.0, 20.0])
def test_conjugate_on_a_grid(p, strength):
    """The maximum of u d - r(d) over a fine grid of d, for slopes of both signs."""
    penalty = LpPenalty(p, strength)
    grid = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 200_001)])
    for slope in (-1.0, 0.0, 0.5 * strength, 0.99 * strength, 1.3 * strength):
        found = penalty.conjugate(np.array([slope]))
        best = np.max(slope * grid - strength / p * grid**p)
        if p == 1 and slope > strength:
            assert found == np.inf
        elif p == 1 or (max(slope, 0.0) / strength) ** (1 / (p - 1)) < 1e3:
            assert found == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert found >= best * (1 - 1e-9)


@every_power
@pytest.mark.parametrize("length", [1e-3, 0.7, 50.0])
def test_prox_by_its_definition(p, length, rng):
    penalty, values = LpPenalty(p, 2.0), rng.normal(size=8) * 3
    x = penalty.prox(values, length)
    assert np.all(x >= 0)

    def value(d):
        return 0.5 * np.sum((d - values) ** 2) + length * penalty.value(d)

    for scale in (1e-1, 1e-3, 1e-5):
        for _ in range(30):
            assert value(np.maximum(x + scale * rng.normal(size=8), 0.0)) >= value(x) - 1e-12


@every_power
def test_closed_form_weights_minimize(p, rng):
    penalty, a = LpPenalty(p, 1.7), rng.uniform(0.1, 4.0, 6)

    def value(d):
        return float(np.sum(a**2 / (2 * d)) + penalty.value(d))

    d = penalty.weights(a)
    for _ in range(100):
        assert value(d * np.exp(0.1 * rng.normal(size=6))) >= value(d) - 1e-12
    assert penalty.weights(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("p", "strength"), [(0.5, 1.0), (np.inf, 1.0), ("2", 1.0), (1.0, 0.0), (1.0, np.nan)])
def test_bad_arguments_are_named(p, strength):
    with pytest.raises(ValueError, match=r"^(p|strength) must be"):
        LpPenalty(p, strength)


def test_equality_and_words():
    assert LpPenalty(1) == LpPenalty(1.0, 1.0)
    assert LpPenalty(1) != LpPenalty(1, 2.0)
    assert hash(LpPenalty(2, 3.0)) == hash(LpPenalty(2, 3.0))
    assert repr(LpPenalty(2, 3.0)) == "LpPenalty(p=2, strength=3)"


def test_a_penalty_of_ones_own_has_no_dual_without_a_conjugate():
    class Quartic(Penalty):
        def value(self, weights):
            return float(np.sum(weights**4))

        def gradient(self, weights):
            return 4 * weights**3

    assert not Quartic().has_dual
    assert np.isnan(Quartic().conjugate(np.ones(2)))
    assert LpPenalty(1).has_dual


def test_what_a_class_offers_is_known_by_what_it_defines_and_may_be_denied():
    class Inherits(LpPenalty):
        pass

    class Changed(LpPenalty):
        has_dual = has_closed_form = False

        def value(self, weights):
            return 2.0 * super().value(weights)

    class Unsure(LpPenalty):
        has_closed_form = False

        def weights(self, norms):
            return norms

    offers = [(kind.has_dual, kind.has_closed_form) for kind in (Penalty, LpPenalty, Inherits, Changed, Unsure)]
    assert offers == [(False, False), (True, True), (True, True), (False, False), (True, False)]
