"""Samples that come once: what a stream reports against its definitions."""

import numpy as np
import pytest

from manykernels.outer.ufo_feature_theta import FeatureTheta
from tests.outer.test_ufo import N, case, every_alpha, every_bounded_loss, every_form, every_weight, some_costs
from tests.reference import ufo_oracle as oracle


@every_form
@every_weight
def test_the_dual_value_of_a_stream_bounds_the_optimum_on_its_samples(weighted, form):
    """Samples that came once: each counts its weight, and lambda is what it was from the start."""
    own, weight = case("hinge", 3), some_costs(weighted)
    theta = own.theta(1.0, 0.05, form=form)
    if form is FeatureTheta:
        theta.renew(own.X, own.targets, weight)
    else:
        theta.gain = weight
    theta.advance(np.arange(N))
    best = oracle.optimum(own.grams, own.y, weight, "hinge", 0.05 * N)
    found = theta.stream_certificate()
    assert found.dual <= best * (1 + 1e-7)
    assert found.primal >= found.dual


@every_alpha
@every_bounded_loss
def test_a_stream_reports_the_mean_objective_and_the_dual_value_along_the_way(name, alpha):
    own = case(name, 3)
    theta, naive, p = (
        own.theta(1.0, alpha, form=FeatureTheta, remember=False),
        own.naive(1.0, alpha),
        oracle.primal_power(3),
    )
    for low in (0, 6):  # batches
        theta.renew(own.X[low : low + 6], own.targets[low : low + 6], np.ones(6))
        theta.advance(np.arange(6))
    naive.run(np.arange(N))
    sizes = [oracle.regularizer(oracle.component_norms(own.grams, w), alpha * N, p) for w in naive.visited]
    slopes = oracle.component_norms(own.grams, [naive.theta] * 3)
    dual = np.sum(naive.offsets) - oracle.conjugate(slopes, alpha * N, oracle.dual_power(3))
    found = theta.stream_certificate()
    assert found.primal == pytest.approx(np.mean(sizes) + np.sum(naive.losses), rel=1e-10)
    assert found.dual == pytest.approx(dual, rel=1e-10)
    assert found.dual <= oracle.optimum(own.grams, own.y, np.ones(N), name, alpha * N, own.n_outputs) * (1 + 1e-7)
