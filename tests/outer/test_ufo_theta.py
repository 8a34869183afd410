"""What UFO-MKL keeps on its way: sums of samples or vectors, their averages, and states to go on from."""

import numpy as np
import pytest

from manykernels.outer.ufo import ufo
from manykernels.outer.ufo_feature_theta import FeatureTheta
from tests.outer.test_ufo import (
    LARGE,
    N,
    alpha_of,
    case,
    certificate,
    epochs,
    every_alpha,
    every_bounded_loss,
    every_form,
    every_loss,
    every_weight,
    go,
    optimum,
    rows_budget,
    some_costs,
)
from tests.reference import ufo_oracle as oracle


@every_form
@pytest.mark.parametrize("exact", [False, True])
@every_loss
def test_one_sample_at_a_time_is_the_same_walk(name, exact, form):
    """What a sample has not heard of yet reaches it in time, in whatever pieces the order comes."""
    whole, pieces = (case(name, 3).theta(1.0, 0.02, exact=exact, form=form) for _ in range(2))
    for order in epochs(3):
        go(whole, [order])
        for i in order:
            pieces.advance(np.array([i]))
        pieces.settle()
    np.testing.assert_allclose(pieces.beta, whole.beta, atol=1e-12)
    np.testing.assert_allclose(pieces.predictor().outputs, whole.predictor().outputs, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("exact", [False, True])
@every_loss
def test_rows_computed_in_blocks_give_the_same(name, exact, rows):
    own = case(name, 4)
    held, blocks = (own.theta(1.0, 0.05, exact=exact, budget=b) for b in (LARGE, rows_budget(rows, 4)))
    assert (held.pairs.is_held, blocks.pairs.is_held) == (True, False)
    assert blocks.pairs.block_size == rows
    for theta in (held, blocks):
        go(theta, epochs(4))
    np.testing.assert_allclose(blocks.beta, held.beta, atol=1e-12)
    assert certificate(blocks).dual == pytest.approx(certificate(held).dual, rel=1e-12)
    assert certificate(blocks).primal == pytest.approx(certificate(held).primal, rel=1e-12)


def test_a_budget_below_one_row_is_refused():
    with pytest.raises(MemoryError, match="memory_budget"):
        case("hinge", 4).theta(1.0, 0.0, budget=rows_budget(1, 4) - 1)


# --- the average -------------------------------------------------------------------------------------------


def components(own, w):
    """Coefficients (n_kernels, n, n_outputs) as vectors of features, (n_outputs, n_features)."""
    return np.hstack([part.T @ own.X[:, columns] for part, columns in zip(w, own.columns, strict=True)])


@pytest.mark.parametrize("budget", [LARGE, rows_budget(1, 3)])
@pytest.mark.parametrize("first", [0, N])
@every_alpha
@every_bounded_loss
def test_the_average_is_the_mean_of_the_predictors_along_the_way(name, alpha, first, budget):
    own, orders = case(name, 3), epochs(3)
    theta, naive = own.theta(1.0, alpha, average=True, budget=budget), own.naive(1.0, alpha)
    naive.run(np.concatenate(orders))
    go(theta, orders[:1])
    if first:
        theta.forget_average()
    go(theta, orders[1:])
    _, norms, W, outputs = theta.predictor()
    mean = naive.mean(first)
    np.testing.assert_allclose(W, mean.transpose(1, 2, 0), atol=1e-12)
    np.testing.assert_allclose(norms, oracle.component_norms(own.grams, mean), atol=1e-12)
    np.testing.assert_allclose(outputs, sum(K @ part for K, part in zip(own.grams, mean, strict=True)), atol=1e-12)


@pytest.mark.parametrize("first", [0, N])
@every_alpha
@every_bounded_loss
def test_the_average_of_vectors_is_the_same(name, alpha, first):
    own, orders = case(name, 3), epochs(3)
    theta, naive = own.theta(1.0, alpha, average=True, form=FeatureTheta), own.naive(1.0, alpha)
    naive.run(np.concatenate(orders))
    go(theta, orders[:1])
    if first:
        theta.forget_average()
    go(theta, orders[1:])
    _, norms, W, outputs = theta.predictor()
    mean = naive.mean(first)
    np.testing.assert_allclose(W, components(own, mean), atol=1e-12)
    np.testing.assert_allclose(norms, oracle.component_norms(own.grams, mean), atol=1e-12)
    np.testing.assert_allclose(outputs, sum(K @ part for K, part in zip(own.grams, mean, strict=True)), atol=1e-12)


@every_form
def test_an_average_that_goes_on_from_a_start_is_over_its_own_steps(form):
    own = case("hinge", 3)
    start = go(own.theta(1.0, 0.0), epochs(5)).state()
    last, averaged = (own.theta(1.0, 0.0, form=form, start=start, average=average) for average in (False, True))
    seen = []
    for i in range(N):
        seen.append(last.predictor().outputs)
        go(last, [np.array([i])])
        averaged.advance(np.array([i]))
    averaged.settle()
    np.testing.assert_allclose(averaged.predictor().outputs, np.mean(seen, axis=0), atol=1e-9)


# --- zeros -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [False, True])
@every_loss
def test_kernels_at_or_below_the_threshold_have_norm_zero(name, exact):
    own = case(name, 8)
    alpha = alpha_of(name, 0.4, 8)
    theta = own.theta(1.0, alpha, exact=exact)
    norms = ufo(theta, max_iter=20).norms
    lengths = oracle.component_norms(own.grams, [theta.beta] * 8)
    above = lengths > alpha * (N if exact else theta.n_steps)
    assert 0 < above.sum() < 8
    assert np.array_equal(norms[~above], np.zeros(8 - above.sum()))
    assert np.all(norms[above] > 0)


# --- going on ----------------------------------------------------------------------------------------------


@every_form
@every_weight
@every_loss
def test_exact_and_gradient_steps_go_on_from_each_other(name, weighted, form):
    own, C = case(name, 4), some_costs(weighted)
    gradient = go(own.theta(C, 0.02, form=form), epochs(5))
    exact = own.theta(C, 0.02, exact=True, form=form, start=gradient.state())
    assert certificate(exact).dual == pytest.approx(certificate(gradient).dual, rel=1e-10)
    go(exact, epochs(3, seed=2))
    again = own.theta(C, 0.02, form=form, start=exact.state())
    assert certificate(again).dual == pytest.approx(certificate(exact).dual, rel=1e-10)
    assert certificate(again).primal == pytest.approx(certificate(exact).primal, rel=1e-10)
    assert certificate(exact).dual >= certificate(gradient).dual


def test_a_walk_of_equal_visits_goes_on_as_if_it_had_not_stopped():
    own, orders = case("hinge", 3), [np.random.default_rng(s).permutation(N) for s in range(6)]
    half, whole = go(own.theta(1.0, 0.05), orders[:3]), go(own.theta(1.0, 0.05), orders)
    rest = go(own.theta(1.0, 0.05, start=half.state()), orders[3:])
    np.testing.assert_allclose(rest.beta, whole.beta, atol=1e-10)
    assert rest.n_steps == whole.n_steps == 6 * N


@every_loss
def test_the_state_holds_for_another_C_and_alpha(name):
    """A mean step is a dual point whatever the weights of the losses: the new dual value is a bound at once."""
    own = case(name, 4)
    start = go(own.theta(1.0, 0.0, exact=True), epochs(5)).state()
    alpha = alpha_of(name, 0.3)
    found = certificate(own.theta(100.0, alpha, exact=True, start=start))
    assert found.dual <= optimum(name, 100.0, 0.3) * (1 + 1e-7)
    assert found.primal >= optimum(name, 100.0, 0.3) * (1 - 1e-7)


def test_a_log_that_is_full_is_emptied_on_the_way():
    order = np.tile(np.arange(18), 10)
    one, other = (case("logistic", 3).theta(0.1, 0.0) for _ in range(2))
    n = one.n_samples
    one.advance(order % n)
    for low in range(0, order.size, n):
        other.advance(order[low : low + n] % n)
        other.settle()
    one.settle()
    assert one.beta == pytest.approx(other.beta, rel=1e-6, abs=1e-9)
