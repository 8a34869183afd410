"""The steps of UFO-MKL against Algorithm 1 in plain loops, and what an exact step gains."""

import numpy as np
import pytest

from manykernels.outer.ufo_feature_theta import FeatureTheta
from manykernels.outer.ufo_sample_theta import SampleTheta
from tests.outer.test_ufo import (
    N,
    alpha_of,
    assert_same_place,
    case,
    certificate,
    epochs,
    every_alpha,
    every_bounded_loss,
    every_cost,
    every_count,
    every_form,
    every_loss,
    every_share,
    every_weight,
    go,
    some_costs,
)
from tests.reference import ufo_oracle as oracle

every_unbounded_loss = pytest.mark.parametrize("name", oracle.UNBOUNDED)


# --- gradient steps ----------------------------------------------------------------------------------------


@every_form
@every_weight
@every_alpha
@every_count
@every_bounded_loss
def test_gradient_steps_are_those_of_the_paper(name, m, alpha, weighted, form):
    own, C = case(name, m), some_costs(weighted)
    theta, naive = own.theta(C, alpha, form=form), own.naive(C, alpha)
    for order in epochs(4):
        go(theta, [order])
        assert_same_place(theta, naive.run(order))


@every_form
@pytest.mark.parametrize("name", ["hinge", "logistic", "epsilon_insensitive"])
def test_several_outputs_share_their_kernels(name, form):
    own = case(name, 3, n_outputs=3)
    theta, naive = own.theta(some_costs(True), 0.1, form=form), own.naive(some_costs(True), 0.1)
    go(theta, epochs(4))
    assert_same_place(theta, naive.run(np.concatenate(epochs(4))))


@pytest.mark.parametrize(
    "weighted",
    [
        False,
        True,
    ],
)
@every_form
@every_alpha
@every_count
@every_unbounded_loss
def test_squared_steps_end_a_little_before_the_implicit_ones(name, m, alpha, form, weighted):
    """The search ends when a tenth of the slope is left; at a threshold, where it jumps, it may give up sooner."""
    own, C = case(name, m), some_costs(weighted)
    theta, naive, left = own.theta(C, alpha, form=form), own.naive(C, alpha), []
    for order in epochs(3):
        for i in order:
            before = theta.beta[i].copy()
            theta.advance(np.array([i]))
            g = (theta.beta[i] - before) / naive.gain[i]
            start, rest = naive.implicit_residual(i, 0, 0.0), naive.implicit_residual(i, 0, g[0])
            left.append(rest / start if abs(start) > 1e-9 else 0.0)
            naive.step(i, g)
        theta.settle()
        assert_same_place(theta, naive)
    assert min(left) >= -1e-9
    assert max(left) < 0.5
    assert np.quantile(left, 0.9) <= 0.1


@every_alpha
@every_unbounded_loss
def test_squared_steps_lead_where_the_implicit_ones_do(name, alpha):
    own, orders = case(name, 4), epochs(30)
    theta, naive = go(own.theta(1.0, alpha), orders), own.naive(1.0, alpha).run(np.concatenate(orders))
    outputs = theta.predictor().outputs
    assert np.abs(outputs - naive.every_output()).max() < 0.05 * np.abs(outputs).max()


# --- exact steps -------------------------------------------------------------------------------------------


def duals_along_the_way(theta, count):
    out = []
    for order in epochs(count):
        for i in order:
            go(theta, [np.array([i])])
            out.append(certificate(theta).dual)
    return np.array(out)


@every_share
@every_cost
@every_loss
def test_no_exact_step_lowers_the_dual(name, cost, share):
    duals = duals_along_the_way(case(name, 4).theta(cost, alpha_of(name, share), exact=True), 6)
    assert np.all(np.diff(duals) >= -1e-12 * np.abs(duals[1:]))


def test_no_exact_logistic_step_lowers_the_dual_when_C_is_huge():
    duals = duals_along_the_way(case("logistic", 4).theta(1e6, alpha_of("logistic", 0.3), exact=True), 12)
    assert np.all(np.diff(duals) >= -1e-9 * np.abs(duals[1:]))


@every_cost
@every_loss
def test_an_exact_step_gains_most_of_what_its_sample_can(name, cost):
    theta = go(case(name, 4).theta(cost, 0.0, exact=True), epochs(1))
    for i in range(N):
        before = certificate(theta).dual
        after = certificate(go(theta, [np.array([i])])).dual
        best = certificate(go(theta, [np.array([i] * N)] * 3)).dual
        assert after - before >= 0.9 * (best - before) - 1e-9 * abs(best)


def test_exact_steps_of_both_forms_are_the_same():
    for name in oracle.LOSSES:
        sums, vectors = (
            go(case(name, 4).theta(3.0, 0.02, exact=True, form=f), epochs(4)) for f in (SampleTheta, FeatureTheta)
        )
        np.testing.assert_allclose(vectors.beta, sums.beta, atol=1e-7)
