"""Fits whose combined kernel does not fit into the memory budget: rows on demand give the same model."""

import re
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression

from manykernels import MKLClassifier, MKLRegressor
from manykernels.kernels import Gaussian, GaussianLadder, Linear
from manykernels.norms import LpPenalty

KERNELS = [Gaussian(w, columns=c) for w in (1.0, 3.0) for c in (None, [0, 1], [2, 3])] + [Linear()]
N = 700
BUDGET = 2_000_000  # the combined kernel alone takes 3.9 MB


def classes(n_classes=2):
    return make_classification(N, 4, n_informative=3, n_redundant=0, n_classes=n_classes, flip_y=0.1, random_state=0)


@cache
def with_all_memory(norm):
    """Fitted once, for all solvers that are compared with it."""
    return MKLClassifier(KERNELS, norm=norm, tol=1e-4).fit(*classes())


@pytest.mark.parametrize("norm", [1, 1.33, 2, np.inf, LpPenalty(1.33, 10.0)], ids=str)
@pytest.mark.parametrize("solver", ["auto", "spg", "group_lasso"])
def test_the_same_model_as_with_all_memory(norm, solver):
    X, y = classes()
    large = MKLClassifier(KERNELS, norm=norm, solver=solver, tol=1e-3, memory_budget=BUDGET).fit(X, y)
    small = with_all_memory(norm)
    assert large.converged_
    assert large.objective_ == pytest.approx(small.objective_, rel=1.2e-3)
    assert large.dual_objective_ <= small.objective_ * (1 + 1e-6)
    assert np.mean(large.predict(X) == small.predict(X)) > 0.99


@pytest.mark.parametrize("shared", [True, False])
def test_several_classes(shared):
    X, y = classes(3)
    large = MKLClassifier(KERNELS, norm=2, shared_weights=shared, memory_budget=BUDGET, n_jobs=2).fit(X, y)
    small = MKLClassifier(KERNELS, norm=2, shared_weights=shared).fit(X, y)
    assert large.converged_
    assert large.objective_ == pytest.approx(small.objective_, rel=2e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_regression(fit_intercept):
    X, y = make_regression(N, 4, noise=5.0, random_state=0)
    settings = {"loss": "epsilon_insensitive", "norm": 1.33, "epsilon": 2.0, "fit_intercept": fit_intercept}
    large = MKLRegressor(KERNELS, memory_budget=BUDGET, **settings).fit(X, y)
    small = MKLRegressor(KERNELS, tol=1e-4, **settings).fit(X, y)
    assert large.converged_
    assert large.objective_ == pytest.approx(small.objective_, rel=1.2e-3)


def test_a_tight_tolerance_is_reached():
    X, y = classes()
    model = MKLClassifier(KERNELS, norm=2, tol=1e-7, memory_budget=BUDGET).fit(X, y)
    assert model.converged_
    assert abs(model.gap_) <= 1e-7


@pytest.mark.parametrize(
    "settings",
    [{"loss": "logistic"}, {"solver": "newton"}, {"combination": "product"}, {"kernels": [GaussianLadder(columns=0)]}],
)
def test_what_needs_the_matrix_says_how_much_memory(settings):
    X, y = classes()
    model = MKLClassifier(**({"kernels": KERNELS[:6]} | settings), memory_budget=BUDGET)
    with pytest.raises(MemoryError, match=r"^memory_budget is 2 MB, but the combined kernel of 700 samples .* MB\.$"):
        model.fit(X, y)


def test_the_smallest_budget_leaves_room_for_rows_beside_factors():
    """With one factor for each column, the factors alone would take all of it."""
    X, y = make_classification(N, 130, n_informative=6, n_redundant=0, flip_y=0.1, random_state=0)
    kernels = [Linear(columns=[j]) for j in range(130)]
    with pytest.raises(MemoryError) as refusal:
        MKLClassifier(kernels, norm=2, memory_budget=1_000_000).fit(X, y)
    needed = float(re.search(r"need ([0-9.]+) MB", str(refusal.value))[1])
    assert MKLClassifier(kernels, norm=2, memory_budget=f"{needed + 0.01} MB").fit(X, y).converged_
