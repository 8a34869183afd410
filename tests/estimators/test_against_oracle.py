"""The estimators against oracles that share no code with them: CVXPY for the optimum, NumPy for the certificate."""

import numpy as np
import pytest

from manykernels import MKLClassifier, MKLRegressor
from manykernels.kernels import KernelBank, standard_bank
from tests.reference.oracle import certificate, random_problem, solve_dual

N_SAMPLES, N_KERNELS = 60, 12
NORMS = [1.0, 4 / 3, 2.0, 4.0, np.inf]
CLASSIFICATION = ["hinge", "squared_hinge", "logistic", "squared"]
REGRESSION = ["squared", "epsilon_insensitive", "absolute", "quantile", "huber"]
CASES = [("classification", loss) for loss in CLASSIFICATION] + [("regression", loss) for loss in REGRESSION]


def fit(task, loss, grams, y, **parameters):
    """Fit on the Gram matrices as they are, to a gap that leaves room for the comparison at 1e-6."""
    bank = KernelBank.from_arrays(grams)
    estimator = MKLClassifier if task == "classification" else MKLRegressor
    settings = {"normalize": None, "tol": 4e-7, "max_iter": 100_000, "loss": loss} | parameters
    return estimator(bank, **settings).fit(np.arange(y.size)[:, None], y)


def recompute(model, grams, y, C, loss, p, fit_intercept=True):
    """The certificate from public attributes alone."""
    beta = np.zeros(y.size)
    beta[model.support_] = model.dual_coef_[0]
    return certificate(grams, y, C, loss, p, model.weights_, beta, model.intercept_[0], fit_intercept)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize(("task", "loss"), CASES)
def test_objective_and_gap(task, loss, p, fit_intercept):
    grams, y = random_problem(N_SAMPLES, N_KERNELS, seed=7, task=task)
    optimum, _ = solve_dual(grams, y, 1.0, loss, p, fit_intercept)
    model = fit(task, loss, grams, y, norm=p, fit_intercept=fit_intercept)
    assert model.objective_ == pytest.approx(optimum, rel=1e-6)
    primal, dual, gap = recompute(model, grams, y, 1.0, loss, p, fit_intercept)
    assert model.converged_
    assert model.objective_ == pytest.approx(primal, rel=1e-6)
    assert model.dual_objective_ == pytest.approx(dual, rel=1e-6)
    assert model.gap_ == pytest.approx(gap, abs=1e-6)


@pytest.mark.parametrize("C", [1e-4, 1e6])
@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize(("task", "loss"), CASES)
def test_extreme_C(task, loss, p, C):
    grams, y = random_problem(30, 5, seed=3, task=task)
    model = fit(task, loss, grams, y, norm=p, C=C, tol=1e-4)
    primal, dual, gap = recompute(model, grams, y, C, loss, p)
    assert model.converged_
    assert gap <= 1.2e-4  # the true gap: what rounding adds is part of the tolerance
    assert dual <= primal * (1 + 1e-12)


@pytest.mark.parametrize("p", [1.001, 1.0, 2.0])
def test_hostile_kernels(p):
    """Duplicate kernels, a constant kernel and a zero kernel: the same optimum, weight 0 where nothing helps."""
    grams, y = random_problem(40, 4, seed=11)
    hostile = [*grams, grams[0].copy(), np.ones((40, 40)), np.zeros((40, 40))]
    with pytest.warns(UserWarning, match="1 of 7 kernels are zero"):
        model = fit("classification", "hinge", hostile, y, norm=p, tol=1e-5)
    optimum, _ = solve_dual(hostile, y, 1.0, "hinge", p)
    assert model.objective_ == pytest.approx(optimum, rel=2e-5)
    assert model.weights_[6] == 0.0
    assert model.weights_[5] < 1e-3


def test_one_sample_in_a_class():
    grams, y = random_problem(25, 4, seed=5)
    y = np.where(np.arange(25) == 4, 1.0, -1.0)
    model = fit("classification", "hinge", grams, y, C=10.0, tol=1e-5)
    optimum, _ = solve_dual(grams, y, 10.0, "hinge", 1.0)
    assert model.objective_ == pytest.approx(optimum, rel=2e-5)


@pytest.mark.parametrize("loss", CLASSIFICATION)
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_shared_weights_of_several_classes(loss, p):
    """One kernel for all classes: the sum of the one-vs-rest problems."""
    grams, Y = random_problem(45, 5, seed=2, n_tasks=3)
    labels = Y.argmax(axis=0)
    targets = np.where(labels == np.arange(3)[:, None], 1.0, -1.0)
    model = fit("classification", loss, grams, labels, norm=p, tol=1e-6)
    optimum, _ = solve_dual(grams, targets, 1.0, loss, p)
    assert model.objective_ == pytest.approx(optimum, rel=3e-6)
    beta = np.zeros(targets.shape)
    beta[:, model.support_] = model.dual_coef_
    _, _, gap = certificate(grams, targets, 1.0, loss, p, model.weights_, beta, model.intercept_)
    assert model.gap_ == pytest.approx(gap, abs=1e-6)


def test_sample_weights_and_class_weights_scale_C():
    grams, y = random_problem(40, 5, seed=9)
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.2, 3.0, 40)
    C = 2.0 * weight * np.where(y > 0, 4.0, 1.0)
    optimum, _ = solve_dual(grams, y, C, "hinge", 2.0)
    bank = KernelBank.from_arrays(grams)
    model = MKLClassifier(bank, normalize=None, norm=2.0, C=2.0, class_weight={1.0: 4.0, -1.0: 1.0}, tol=1e-6)
    model.fit(np.arange(40)[:, None], y, sample_weight=weight)
    assert model.objective_ == pytest.approx(optimum, rel=2e-6)


def test_repeated_rows_keep_the_certificate():
    """Rows that stand several times are merged inside, yet the public attributes certify the data as given."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 3))[rng.integers(0, 30, 60)]
    y = np.where(X[:, 0] + 0.3 * X[:, 1] ** 2 > 0.2, 1.0, -1.0)
    model = MKLClassifier(standard_bank(X), norm=2.0, loss="squared_hinge", normalize=None, tol=1e-5).fit(X, y)
    views = [X if kernel.columns is None else X[:, [kernel.columns]] for kernel in standard_bank(X)]
    grams = [kernel.compute(V, V) for kernel, V in zip(standard_bank(X), views, strict=True)]
    primal, _, gap = recompute(model, grams, y, 1.0, "squared_hinge", 2.0)
    assert model.objective_ == pytest.approx(primal, rel=1e-6)
    assert model.gap_ == pytest.approx(gap, abs=1e-6)
