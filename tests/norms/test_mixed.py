"""What MixedNorm promises: the dual norm by its definition, special cases, weights that attain the norm."""

import numpy as np
import pytest

from manykernels.norms import LpNorm, MixedNorm

EXPONENTS = [0.5, 0.6, 0.75, 0.99, 1, 1.5, 2, 3, np.inf]
every_q = pytest.mark.parametrize("q", EXPONENTS)
GROUPS = ["a", "b", "b", "a", "b", "c"]
M = len(GROUPS)


def vectors(count, seed=0):
    rng = np.random.default_rng(seed)
    a = np.abs(rng.standard_normal((count, M)))
    a[::3] **= 6
    a[1::4] *= rng.random(a[1::4].shape) < 0.5
    return a[a.max(axis=1) > 0]


def naive_value(a, q):
    sums = np.array([sum(a[k] for k in range(M) if GROUPS[k] == name) for name in "abc"])
    return sums.max() if np.isinf(q) else np.sum(sums ** (2 * q)) ** (1 / (2 * q))


@every_q
def test_value_is_the_mixed_norm(q):
    for a in vectors(20):
        assert MixedNorm(q, GROUPS).value(a) == pytest.approx(naive_value(a, q), rel=1e-12)


@every_q
def test_dual_norm_by_its_definition(q):
    """No a has <a, s> above N(a) N*(s), and the one that the definition points to attains it."""
    norm = MixedNorm(q, GROUPS)
    candidates = np.vstack([vectors(3000, seed=1), np.eye(M)])
    values = np.array([norm.value(a) for a in candidates])
    for s in vectors(8, seed=2) + 1e-3:
        dual = np.sqrt(norm.dual_square(s**2))
        assert np.max(candidates @ s / values) <= dual * (1 + 1e-12)
        # a on the largest kernel of each group, in proportion to the derivative of the dual norm
        a = np.zeros(M)
        tops = [max((k for k in range(M) if GROUPS[k] == name), key=lambda k: s[k]) for name in "abc"]
        if q == 0.5:
            a[np.argmax(s)] = 1.0
        else:
            t = 0.5 if np.isinf(q) else q / (2 * q - 1)
            a[tops] = s[tops] ** (2 * t - 1)
        assert a @ s == pytest.approx(dual * norm.value(a), rel=1e-9)


@pytest.mark.parametrize("q", [0.5, 0.6, 0.75, 0.99, 1])
def test_for_small_q_the_weights_attain_the_norm(q):
    """sum_k a_k^2 / d_k is N(a)^2 at the weights, and not less at any others of the same size."""
    norm, rng = MixedNorm(q, GROUPS), np.random.default_rng(3)
    for a in vectors(10, seed=4) + 1e-6:
        d = norm.reweigh(np.ones(M), a**2)  # with equal weights, a_k is the root of the form
        assert np.sum(a**2 / d) == pytest.approx(norm.value(a) ** 2, rel=1e-9)
        for _ in range(50):
            other = norm.scaled(d * np.exp(0.5 * rng.standard_normal(M)))
            assert np.sum(a**2 / other) >= norm.value(a) ** 2 * (1 - 1e-9)


@pytest.mark.parametrize("q", [1.5, 2, 3, np.inf])
def test_for_large_q_the_group_weights_are_the_worst_case(q):
    """For given shares, sum_j eta_j D_j is smallest at the closed form among all gamma of the ball."""
    norm, rng = MixedNorm(q, GROUPS), np.random.default_rng(5)
    conjugate = 1.0 if np.isinf(q) else q / (q - 1)
    for D in np.abs(rng.standard_normal((10, 3))) + 1e-3:
        eta = norm.group_weights(D)
        assert np.sum((1 / eta) ** conjugate) == pytest.approx(1.0)
        for _ in range(50):
            gamma = (1 / eta) * np.exp(0.5 * rng.standard_normal(3))
            gamma /= np.sum(gamma**conjugate) ** (1 / conjugate)
            assert np.sum(D / gamma) >= eta @ D * (1 - 1e-12)


@pytest.mark.parametrize("q", EXPONENTS[1:])  # with q = 1/2 the largest of all kernels decides: there is no derivative
def test_group_weights_are_the_derivative_of_the_dual_norm(q):
    norm, M_j, step = MixedNorm(q, GROUPS), np.array([2.0, 0.3, 1.1]), 1e-6

    def square(values):
        forms = np.zeros(M)
        forms[[0, 1, 5]] = values
        return norm.dual_square(forms)

    slopes = [(square(M_j + step * e) - square(M_j - step * e)) / (2 * step) for e in np.eye(3)]
    assert norm.group_weights(M_j) == pytest.approx(slopes, rel=1e-6)
    logs = [
        np.log(norm.group_weights(M_j + step * e) / norm.group_weights(M_j - step * e)) / (2 * step) for e in np.eye(3)
    ]
    assert norm.group_bend(M_j) == pytest.approx(np.array(logs).T, rel=1e-5, abs=1e-9)


@every_q
def test_one_group_is_the_l1_norm(q):
    mixed, plain = MixedNorm(q, ["all"] * M), LpNorm(1)
    for a in vectors(10):
        assert mixed.value(a) == pytest.approx(plain.value(a))
        assert mixed.dual_square(a**2) == pytest.approx(plain.dual_square(a**2))
        assert mixed.reweigh(np.full(M, 1 / M), a**2) == pytest.approx(plain.reweigh(np.full(M, 1 / M), a**2))
    assert mixed.initial_weights(M) == pytest.approx(plain.initial_weights(M))


def test_one_kernel_a_group_is_the_plain_sum_for_q_1_and_an_lp_norm_below():
    alone = [str(k) for k in range(M)]
    for a in vectors(10):
        assert MixedNorm(1, alone).value(a) == pytest.approx(LpNorm(np.inf).value(a))
        assert MixedNorm(1, alone).dual_square(a**2) == pytest.approx(LpNorm(np.inf).dual_square(a**2))
        # 2q = 2p / (1 + p)
        assert MixedNorm(2 / 3, alone).value(a) == pytest.approx(LpNorm(2).value(a))
        assert MixedNorm(2 / 3, alone).dual_square(a**2) == pytest.approx(LpNorm(2).dual_square(a**2))
    assert MixedNorm(1, alone).initial_weights(M) == pytest.approx(np.ones(M))


def test_q_one_half_is_the_l1_norm_whatever_the_groups():
    for a in vectors(10):
        assert MixedNorm(0.5, GROUPS).value(a) == pytest.approx(a.sum())
        assert MixedNorm(0.5, GROUPS).dual_square(a) == pytest.approx(a.max())


@every_q
def test_initial_weights_are_on_the_boundary(q):
    norm = MixedNorm(q, GROUPS)
    d = norm.initial_weights(M)
    assert norm.scaled(d) == pytest.approx(d)
    assert norm.scaled(7.0 * d) == pytest.approx(d)


def test_some_of_the_kernels():
    part = MixedNorm(2, GROUPS).take(np.array([1, 2, 5]))
    assert part.owner.tolist() == [0, 0, 1]
    assert part.value(np.array([1.0, 2.0, 4.0])) == pytest.approx((3**4 + 4**4) ** 0.25)


def test_groups_come_from_the_kernels_unless_given():
    assert MixedNorm(2).bind(["x", "y", "x"]).owner.tolist() == [0, 1, 0]
    assert MixedNorm(2, ["u", "u", "v"]).bind(["x", "y", "z"]).owner.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="2 entries, but there are 3 kernels"):
        MixedNorm(2, ["u", "v"]).bind(["x", "y", "z"])
    with pytest.raises(ValueError, match="no groups yet"):
        MixedNorm(2).value(np.ones(3))


@pytest.mark.parametrize("q", [0.4, -1, np.nan, "2", None, True])
def test_a_wrong_q_is_refused(q):
    with pytest.raises(ValueError, match=r"q must be a number in \[0.5, inf\]"):
        MixedNorm(q)


def test_equality_and_words():
    assert MixedNorm(2) == MixedNorm(2.0)
    assert MixedNorm(2) != MixedNorm(2, ["a"])
    assert MixedNorm(2) != LpNorm(2)
    assert hash(MixedNorm(2)) == hash(MixedNorm(2))
    assert repr(MixedNorm(np.inf)) == "MixedNorm(q=inf)"
