"""Many outputs, each with weights of its own: each reaches the optimum of the oracle, wherever it is computed."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from manykernels import MKLClassifier, MKLRegressor
from manykernels.banks import Placement, bind
from manykernels.banks.device.learned import predict_on
from manykernels.compute.batches import DeviceBatches, HostBatches
from manykernels.compute.gpu import Device, has_device
from manykernels.kernels import Gaussian, KernelBank, Linear
from manykernels.losses import Squared
from manykernels.norms import LpNorm
from manykernels.outer.automatic import AUTO
from manykernels.outer.batched_ridge import BATCHED_RIDGE, batched_ridge
from manykernels.outer.separate_tasks import learns_together, solve_together
from manykernels.problem import Problem
from tests.outer.test_newton import problem_of
from tests.reference.oracle import certificate, random_problem, solve_dual

RNG = np.random.default_rng(0)
KERNELS = [Gaussian(w, columns=[j]) for j in range(3) for w in (0.5, 2.0)] + [Linear()]
X = RNG.normal(size=(60, 3))
Y = np.column_stack([np.sin(2 * X[:, j % 3]) + 0.3 * (j + 1) * RNG.normal(size=60) + j for j in range(12)])
NEW = RNG.normal(size=(9, 3))


def targets(n, n_tasks, seed=0):
    return random_problem(n, 6, seed=seed, task="regression", n_tasks=n_tasks)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
@pytest.mark.parametrize("p", [1.0, 1.1, 4 / 3, 2.0, np.inf])
def test_every_output_reaches_its_optimum(p, C, fit_intercept):
    grams, Y = targets(24, 9)
    problem = problem_of(grams, Y, Squared(), p, C, fit_intercept=fit_intercept)
    learned = batched_ridge(problem, tol=1e-6)
    assert learned.gaps.max() <= 1e-6
    for t in range(9):
        primal, dual, gap = certificate(
            grams, Y[t], C, "squared", p, learned.weights[t], learned.beta[t], learned.intercept[t], fit_intercept
        )
        assert [learned.primal[t], learned.dual[t]] == pytest.approx([primal, dual], rel=1e-8)
        assert gap <= 1.1e-6
    assert learned.primal[0] == pytest.approx(solve_dual(grams, Y[0], C, "squared", p, fit_intercept)[0], rel=2e-6)


def test_each_sample_and_output_may_have_its_own_costs():
    grams, Y = targets(24, 9)
    problem = problem_of(grams, Y, Squared(), 1.5)
    C = np.exp(RNG.normal(size=(9, 24))) * np.repeat([0.1, 1.0, 100.0], 3)[:, None]
    learned = batched_ridge(Problem(problem.bank, Squared(), LpNorm(1.5), Y, C), tol=1e-6)
    assert learned.gaps.max() <= 1e-6
    for t in range(9):
        assert learned.primal[t] == pytest.approx(solve_dual(grams, Y[t], C[t], "squared", 1.5)[0], rel=2e-6)


@pytest.mark.parametrize("C", [1e-6, 1e8])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_what_is_too_hard_together_is_learned_alone(p, C):
    """Duplicates, a constant kernel, tiny and huge C, targets of all sizes, one that does not vary."""
    grams, Y = targets(24, 9, seed=4)
    grams = [*grams, grams[0].copy(), np.ones((24, 24))]
    Y = Y * np.geomspace(1e-6, 1e6, 9)[:, None]
    Y[3] = 7.0
    problem = problem_of(grams, Y, Squared(), p, C)
    result = solve_together(AUTO, problem, tol=1e-4, max_iter=1000)
    assert result.converged
    assert result.gaps.max() <= 1e-4
    assert np.all(result.machine.beta[3] == 0.0)
    assert result.machine.intercept[3] == 7.0
    assert np.all(np.isfinite(result.weights))


def test_few_passes_and_a_warm_start():
    grams, Y = targets(60, 16)
    problem = problem_of(grams, Y, Squared(), 1.0, 10.0)
    cold = batched_ridge(problem, tol=1e-3)
    assert cold.n_iter <= 25
    warm = batched_ridge(problem, tol=1e-3, start=cold.weights)
    assert warm.n_iter < cold.n_iter


def test_small_batches_give_what_large_ones_do(monkeypatch):
    grams, Y = targets(30, 20)
    problem = problem_of(grams, Y, Squared(), 1.0, 10.0)
    expected = batched_ridge(problem, tol=1e-6)
    monkeypatch.setattr("manykernels.outer.batched_ridge._MOST_OUTPUTS", 8)
    learned = batched_ridge(problem, tol=1e-6)
    np.testing.assert_allclose(learned.primal, expected.primal, rtol=2e-6)


@pytest.mark.skipif(not has_device("torch:cpu"), reason="torch is not installed")
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_on_a_device(p, monkeypatch):
    monkeypatch.setattr(DeviceBatches, "most_factors", HostBatches.most_factors)
    problems = []
    for device in ("cpu", "torch:cpu"):
        bank = bind(KernelBank(KERNELS), X, placement=Placement(device=device, precision="double"))
        problems.append(Problem(bank, Squared(), LpNorm(p), np.ascontiguousarray(Y.T), np.full(Y.T.shape, 10.0)))
    here, there_too = (batched_ridge(problem, tol=1e-5) for problem in problems)
    np.testing.assert_allclose(there_too.weights, here.weights, atol=1e-6)
    np.testing.assert_allclose(there_too.primal, here.primal, rtol=1e-9)


def test_what_is_learned_together():
    grams, Y = targets(24, 9)
    assert learns_together(AUTO, problem_of(grams, Y, Squared(), 1.0))
    assert not learns_together(AUTO, problem_of(grams, Y[:3], Squared(), 1.0))
    assert not learns_together(BATCHED_RIDGE, problem_of(grams, Y, Squared(), 1.0))


# -- the estimator ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"norm": 2.0},
        {"norm": np.inf},
        {"norm": 4 / 3, "center": True, "normalize": "cosine"},
        {"fit_intercept": False},
    ],
    ids=str,
)
def test_predictions_are_those_of_single_fits(settings):
    model = MKLRegressor(KERNELS, C=10.0, shared_weights=False, tol=1e-8, **settings).fit(X, Y)
    assert model.converged_
    assert model.weights_.shape == (12, 7)
    assert model.gaps_.max() <= 1e-8
    assert len(model._predictors) == 1  # they were learned together
    for t in (0, 5, 11):
        single = MKLRegressor(KERNELS, C=10.0, tol=1e-8, **settings).fit(X, Y[:, t])
        np.testing.assert_allclose(model.predict(NEW)[:, t], single.predict(NEW), atol=2e-3)
        np.testing.assert_allclose(model.kernel(NEW)[t], single.kernel(NEW), atol=2e-3)
    np.testing.assert_allclose(model.contributions(NEW).total(), model.predict(NEW), rtol=1e-9)


@pytest.mark.skipif(not has_device("torch:cpu"), reason="torch is not installed")
@pytest.mark.parametrize("center", [False, True])
def test_predictions_on_a_device(center):
    predictor = MKLRegressor(KERNELS, norm=2, center=center, shared_weights=False).fit(X, Y)._predictors[0]
    expected = predictor.kernel.predict_components(NEW, predictor.coef, predictor.shares)
    sent = predict_on(Device("torch:cpu"), predictor.kernel, NEW, predictor.coef, predictor.shares)
    np.testing.assert_allclose(sent, expected, atol=1e-10)


def test_a_warning_names_the_worst_output():
    noisy = np.column_stack([1e3 * Y, Y[:, :1] ** 3])
    with pytest.warns(ConvergenceWarning, match="gap"):
        model = MKLRegressor(KERNELS, C=1e3, shared_weights=False, max_iter=2).fit(X, noisy)
    assert not model.converged_


def test_weights_of_samples_are_copies():
    weight = RNG.integers(1, 4, size=60)
    one = MKLRegressor(KERNELS, norm=2, shared_weights=False, tol=1e-7).fit(X, Y, sample_weight=weight)
    rows = np.repeat(np.arange(60), weight)
    other = MKLRegressor(KERNELS, norm=2, shared_weights=False, tol=1e-7).fit(X[rows], Y[rows])
    np.testing.assert_allclose(one.predict(NEW), other.predict(NEW), rtol=1e-5)


def test_precomputed_kernels_and_their_stack():
    grams, few = targets(30, 10)
    bank, numbers = KernelBank.from_arrays(grams), np.arange(30)[:, None]
    model = MKLRegressor(bank, norm=1, shared_weights=False, normalize=None).fit(numbers, few.T)
    stack = np.array(grams)[:, :4]
    np.testing.assert_allclose(model.predict(stack), model.predict(numbers[:4]), rtol=1e-9)
    np.testing.assert_allclose(model.contributions(stack).total(), model.predict(stack), rtol=1e-9)


def test_labels_with_squares():
    labels = (np.median(Y, axis=0) < Y).astype(int)
    model = MKLClassifier(KERNELS, loss="squared", shared_weights=False, class_weight="balanced", tol=1e-6)
    decisions = model.fit(X, labels).decision_function(NEW)
    single = MKLClassifier(KERNELS, loss="squared", class_weight="balanced", tol=1e-6).fit(X, labels[:, 4])
    np.testing.assert_allclose(decisions[:, 4], single.decision_function(NEW), atol=5e-3)
