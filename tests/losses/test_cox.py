"""Cox's partial likelihood against its definition, event by event."""

import numpy as np
import pytest

from manykernels.core.censored_times import Survival
from manykernels.losses import Cox
from tests.reference import cox_oracle

LOSS, N = Cox(), 25
every_case = pytest.mark.parametrize("ties", [True, False])
every_scale = pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])


def case(seed=0, ties=True, n=N):
    rng = np.random.default_rng(seed)
    event, time = cox_oracle.random_times(n, seed, ties=ties)
    return event, time, Survival(event, time).ranks()[1], rng.standard_normal(n), rng.uniform(0.2, 3.0, n)


@every_scale
@every_case
def test_value_slopes_and_curvature_are_those_of_the_definition(scale, ties):
    event, time, y, z, C = case(ties=ties)
    z = scale * z
    assert LOSS.total(y, z, C) == pytest.approx(cox_oracle.loss(event, time, z, C), rel=1e-12)
    np.testing.assert_allclose(-LOSS.pull(y, z, C), cox_oracle.slope(event, time, z, C), atol=1e-12)
    factor = LOSS.curvature_factor(y, z, C)
    F = factor.times(np.eye(N)).T
    np.testing.assert_allclose(F @ F.T, cox_oracle.hessian(event, time, z, C), atol=1e-12)
    np.testing.assert_allclose(factor.transposed_times(np.eye(N)), F, atol=1e-14)
    K = np.cov(np.random.default_rng(1).standard_normal((N, 40)))
    np.testing.assert_allclose(factor.congruent(K), F.T @ K @ F, atol=1e-12)


def test_slopes_and_curvature_against_finite_differences():
    _, _, y, z, C = case(3)
    h, steps = 1e-5, np.eye(N)
    slopes = [(LOSS.total(y, z + h * e, C) - LOSS.total(y, z - h * e, C)) / (2 * h) for e in steps]
    np.testing.assert_allclose(-LOSS.pull(y, z, C), slopes, atol=1e-8)
    bends = np.array([(LOSS.pull(y, z - h * e, C) - LOSS.pull(y, z + h * e, C)) / (2 * h) for e in steps])
    F = LOSS.curvature_factor(y, z, C).times(steps).T
    np.testing.assert_allclose(F @ F.T, bends, atol=1e-8)


@pytest.mark.parametrize(("factor", "shift"), [(300.0, 0.0), (1e5, 1e6), (1.0, -700.0), (1.0, 1e9)])
def test_huge_scores_lose_no_digits(factor, shift):
    """Gaps of hundreds between scores, and any offset: the exponentials themselves are never formed."""
    event, time, y, z, C = case(1)
    far = factor * z + shift
    expected = cox_oracle.loss(event, time, factor * z, C)
    assert LOSS.total(y, far, C) == pytest.approx(expected, rel=1e-9 * max(1.0, abs(shift) / 1e6), abs=1e-7)
    beta = LOSS.pull(y, far, C)
    assert np.all(np.isfinite(beta))
    assert abs(beta.sum()) < 1e-6
    assert np.all(np.isfinite(LOSS.curvature_factor(y, far, C).congruent(np.eye(N))))


@every_scale
@every_case
def test_the_conjugate_is_exact_where_beta_is_the_pull(scale, ties):
    _, _, y, z, C = case(ties=ties)
    beta = LOSS.pull(y, scale * z, C)
    value = -beta @ (scale * z) - LOSS.total(y, scale * z, C)
    assert LOSS.total_conjugate(y, beta, C) == pytest.approx(value, rel=1e-10, abs=1e-12)


def test_the_conjugate_is_what_cvxpy_finds_anywhere_in_the_domain():
    import cvxpy as cp

    event, time, y, z, C = case(5, n=10)
    beta = 0.3 * LOSS.pull(y, z, C) + 0.5 * LOSS.pull(y, -z, C)
    f = cp.Variable(10)
    terms = [-beta @ f + np.where(event, C, 0.0) @ f]
    for t in np.unique(time[event]):
        dead, there = C[event & (time == t)].sum(), np.flatnonzero(time >= t)
        terms.append(-dead * (cp.log_sum_exp(f[there] + np.log(C[there])) - np.log(dead)))
    supremum = cp.Problem(cp.Maximize(sum(terms))).solve(solver=cp.CLARABEL)
    assert LOSS.total_conjugate(y, beta, C) == pytest.approx(supremum, rel=1e-6)


def test_weights_are_copies():
    """Twice the weight is the sample twice, events and censored alike: value, slopes and conjugate."""
    _, _, y, z, _ = case(2)
    counts = np.random.default_rng(0).integers(1, 4, N)
    copies = np.repeat(np.arange(N), counts)
    C = 0.7 * counts
    alone = np.full(copies.size, 0.7)
    assert LOSS.total(y, z, C) == pytest.approx(LOSS.total(y[copies], z[copies], alone), rel=1e-13)
    beta, split = LOSS.pull(y, z, C), LOSS.pull(y[copies], z[copies], alone)
    np.testing.assert_allclose(np.bincount(copies, split), beta, atol=1e-13)
    assert LOSS.total_conjugate(y, beta, C) == pytest.approx(LOSS.total_conjugate(y[copies], split, alone), rel=1e-12)


def test_what_is_not_feasible_is_moved_into_the_domain():
    """Nobody is expected less than 0 times, no more are expected than there were events, and the sum is 0."""
    event, _, y, _, C = case(4)
    for seed in range(20):
        beta = np.random.default_rng(seed).standard_normal(N) * 10.0 ** (seed - 10)
        inside = LOSS.feasible(y, beta, C, True)
        rounding = 1e-14 * max(10.0, np.abs(beta).max())
        assert np.all(np.where(event, C, 0.0) - inside >= -rounding)
        paths = np.array([inside[np.abs(y) <= t].sum() for t in np.unique(np.abs(y))])
        assert np.all(paths >= -rounding)
        assert abs(paths[-1]) < rounding
        assert np.isfinite(LOSS.total_conjugate(y, inside, C))
        np.testing.assert_allclose(LOSS.feasible(y, inside, C, True), inside, atol=10 * rounding)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_bound_of_a_move_holds(scale):
    _, _, y, z, C = case(6)
    C, rng = scale * C, np.random.default_rng(0)
    errors = rng.uniform(0.0, 0.02, N)
    moves = [LOSS.total(y, z + errors * rng.choice([-1, 1], N), C) - LOSS.total(y, z, C) for _ in range(100)]
    assert max(moves) <= 1.01 * LOSS.moved(y, z, errors, C)


def test_samples_without_weight_and_times_without_risk():
    event, time, y, z, C = case(7)
    C[np.argsort(time)[-6:]] = 0.0  # the last ones: nobody is at risk then
    C[::7] = 0.0
    used = C > 0
    with np.errstate(all="raise", under="ignore"):
        beta = LOSS.pull(y, z, C)
        assert LOSS.total(y, z, C) == pytest.approx(cox_oracle.loss(event[used], time[used], z[used], C[used]))
        np.testing.assert_allclose(beta[used], LOSS.pull(y[used], z[used], C[used]), atol=1e-14)
        assert np.all(beta[~used] == 0)
        value = -beta @ z - LOSS.total(y, z, C)
        assert LOSS.total_conjugate(y, beta, C) == pytest.approx(value)
        F = LOSS.curvature_factor(y, z, C).times(np.eye(N)).T
        expected = cox_oracle.hessian(event[used], time[used], z[used], C[used])
        np.testing.assert_allclose((F @ F.T)[np.ix_(used, used)], expected, atol=1e-13)


def test_contrast_is_an_event_while_someone_else_is_at_risk():
    assert LOSS.has_contrast(np.array([1.0, -1.0]))
    assert LOSS.has_contrast(np.array([1.0, 1.0]))  # of two events at once none was first, but both share the risk
    assert not LOSS.has_contrast(np.array([-0.0, 1.0]))
    assert not LOSS.has_contrast(np.array([-1.0, -2.0]))
