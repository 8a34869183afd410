"""Steps along pairs: their derivatives by differences, their rows, their memory."""

import numpy as np
import pytest

import manykernels.literature.smo_mkl as pairs
from manykernels import MKLClassifier
from manykernels.core.solver import Sizes
from manykernels.kernels import Gaussian
from manykernels.literature.records import SMO
from manykernels.literature.smo_mkl import PairSteps, smo
from manykernels.losses import EpsilonInsensitive, Hinge
from manykernels.losses.base import Box
from manykernels.losses.piecewise import minimize_piecewise_linear
from manykernels.norms import LpNorm
from manykernels.norms.lp import power_norm
from manykernels.outer.newton import newton
from tests.literature.test_solvers import problem_of, two_moons
from tests.reference.oracle import random_problem


def test_pairs_solve_no_machine():
    grams, y = random_problem(30, 6, seed=1)
    assert smo(problem_of(grams, y, Hinge(), 2.0)).n_inner_solves == 0


class Wide(Hinge):
    """max(0, 2 - y z): a hinge with a margin of 2, and no name."""

    name = ""

    def value(self, y, z):
        return np.maximum(0.0, 2.0 - y * z)

    def conjugate(self, y, beta, C):
        return -2.0 * y * beta

    def box(self, y, C):
        return Box(2.0 * y, *self.domain(y, C))

    def dual_slope(self, sign, y, x, C):
        return -2.0 * y

    def dual_pull(self, y, z, C):
        short = 2.0 - y * z
        return np.abs(short), np.where(short > 0, y * C, 0.0)

    def best_intercept(self, y, z, C):
        return minimize_piecewise_linear(2.0 * y - z, C, -float(C[y > 0].sum()))


@pytest.mark.parametrize("loss", [Wide(), EpsilonInsensitive(0.0)], ids=["wide hinge", "absolute"])
def test_any_loss_of_straight_pieces_without_a_tube(loss):
    """What the method needs is the box, not the name."""
    grams, Y = random_problem(30, 4, seed=5, n_tasks=2)
    problem = problem_of(grams, Y, loss, 2.0)
    pairs, expected = smo(problem, tol=1e-5), newton(problem, tol=1e-6)
    assert pairs.converged
    assert pairs.certificate.primal == pytest.approx(expected.certificate.primal, rel=2e-5)


@pytest.mark.parametrize("p", [1.05, 1.5, 2.0, 6.0])
def test_gradient_of_the_dual(p):
    grams, Y = random_problem(20, 5, seed=3, n_tasks=2)
    run, rng = PairSteps(problem_of(grams, Y, Hinge(), p), p, 1e-3), np.random.default_rng(0)
    beta, direction = rng.normal(size=Y.shape), rng.normal(size=20)

    def value(beta):
        forms = np.array([np.einsum("ti,ij,tj->", beta, K, beta) for K in grams])
        return 0.5 * power_norm(forms, p / (p - 1)) - np.sum(Y * beta)

    run.set_beta(beta)
    for t in range(2):
        change = np.zeros_like(beta)
        change[t] = 1e-6 * direction
        slope = (value(beta + change) - value(beta - change)) / 2e-6
        assert run.gradient(t) @ direction == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("exponent", [0.0, 0.2, 1.0, 20.0])
def test_derivatives_along_a_pair(exponent):
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(2, 5, 3))
    forms, square = (vectors**2).sum(axis=2)
    linear = (vectors[0] * vectors[1]).sum(axis=1)
    q, d, x, step = np.empty(5), np.empty(5), 0.3, 1e-6

    def at(x):
        return pairs.line_derivatives(x, forms, linear, square, exponent, 0.7, q, d)

    def value(x):
        return 0.5 * power_norm(forms + 2 * x * linear + x**2 * square, 1.0 + exponent) - 0.7 * x

    assert at(x)[0] == pytest.approx((value(x + step) - value(x - step)) / (2 * step), rel=1e-6)
    assert at(x)[1] == pytest.approx((at(x + step)[0] - at(x - step)[0]) / (2 * step), rel=1e-5)


def test_rows_are_held_and_dropped(monkeypatch):
    grams, y = random_problem(90, 3, seed=3)
    problem = problem_of(grams, y, Hinge(), 2.0, C=10.0)
    expected = smo(problem, tol=1e-6)
    monkeypatch.setattr(pairs, "CACHE_BYTES", 8 * 3 * 90 * 5)
    run = pairs._Rows(problem)
    for chosen in (np.arange(30), np.arange(20, 50), np.array([0, 89])):
        for i, row in zip(chosen, run.of(chosen), strict=True):
            np.testing.assert_allclose(row, [K[i] for K in grams])
        assert len(run.held) <= 37
    assert smo(problem, tol=1e-6).certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-12)


def test_pairs_count_their_memory():
    X, y = two_moons()
    need = SMO.need(Sizes(1, 80, 6), LpNorm(2), Hinge()).n_bytes - 8 * 80 * 80
    with pytest.raises(MemoryError, match="memory_budget"):
        MKLClassifier([Gaussian(w) for w in range(1, 7)], norm=2, solver="smo", memory_budget=need).fit(X, y)
