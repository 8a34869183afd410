"""What ElasticNorm promises: its conjugate by definition, exact zeros, and the problem that a plain solver sees."""

import cvxpy as cp
import numpy as np
import pytest

from manykernels.banks import Placement, Recipe, bind
from manykernels.kernels import KernelBank
from manykernels.losses import Hinge
from manykernels.norms import ElasticNorm, LpNorm
from manykernels.norms.elastic import dual_power
from manykernels.outer.group_lasso import group_lasso
from manykernels.problem import Problem
from tests.reference.oracle import random_problem

POWERS = [1.001, 1.1, 4 / 3, 2.0, None]
every_power = pytest.mark.parametrize("p", POWERS)
every_strength = pytest.mark.parametrize("strength", [0.0, 0.3, 50.0])
M = 6


def vectors(count, seed=0):
    rng = np.random.default_rng(seed)
    a = np.abs(rng.standard_normal((count, M)))
    a[::3] **= 6
    a[1::4] *= rng.random(a[1::4].shape) < 0.4
    return a


def plain_value(a, strength, p):
    p = 2 * np.log(M) / (2 * np.log(M) - 1) if p is None else p
    return 0.5 * np.sum(a**p) ** (2 / p) + strength * a.sum()


def attained(slopes, strength, p):
    """The a >= 0 at which the conjugate is attained, by the formula in the module's docstring."""
    p = 2 * np.log(M) / (2 * np.log(M) - 1) if p is None else p
    q, v = p / (p - 1), np.maximum(slopes - strength, 0.0)
    return v if not np.any(v) else v * (v / (v.max() * np.sum((v / v.max()) ** q) ** (1 / q))) ** (q - 2)


@every_power
@every_strength
def test_value(p, strength):
    for a in vectors(20):
        assert ElasticNorm(strength, p).value(a) == pytest.approx(plain_value(a, strength, p), rel=1e-12)


@every_power
@every_strength
def test_conjugate_is_the_supremum_and_is_attained(p, strength):
    norm, others = ElasticNorm(strength, p), vectors(400, seed=1)
    for slopes in vectors(10, seed=2):
        best = attained(slopes, strength, p)
        assert slopes @ best - plain_value(best, strength, p) == pytest.approx(
            norm.conjugate(slopes), rel=1e-9, abs=1e-12
        )
        scale = max(best.max(), 1e-3)
        assert (
            max(slopes @ (scale * a) - plain_value(scale * a, strength, p) for a in others)
            <= norm.conjugate(slopes) + 1e-12
        )


@every_power
def test_conjugate_gradient_by_differences(p):
    norm, slopes = ElasticNorm(0.2, p), np.array([0.5, 1.0, 0.1, 2.0, 0.7, 0.21])
    for k in range(M):
        step = np.zeros(M)
        step[k] = 1e-6
        rise = (norm.conjugate(slopes + step) - norm.conjugate(slopes - step)) / 2e-6
        assert attained(slopes, 0.2, p)[k] == pytest.approx(rise, rel=1e-4, abs=1e-6)


@every_power
def test_zeros_are_exact(p):
    norms = attained(np.array([0.5, 1.0, 0.99, 2.0, 1.0 + 1e-12, 0.0]), 1.0, p)
    weights = ElasticNorm(1.0, p).weights(norms)
    assert np.array_equal(weights[[0, 1, 2, 5]], np.zeros(4))
    assert weights[3] > 0
    assert np.array_equal(ElasticNorm(1.0, p).weights(np.zeros(M)), np.zeros(M))


@every_power
@every_strength
def test_weights_belong_to_the_slopes(p, strength):
    """At a = attained(s), d_k s_k = a_k: the machine with the weights d has the component norms a."""
    norm = ElasticNorm(strength, p)
    for slopes in strength + vectors(10, seed=3) + 0.01:
        a = attained(slopes, strength, p)
        assert norm.weights(a) * slopes == pytest.approx(a, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("p", [1.1, 4 / 3, 2.0])
def test_without_strength_it_is_the_lp_norm(p):
    """||a||_p^2 is LpNorm's of the weight norm p / (2 - p)."""
    lp = LpNorm(p / (2 - p) if p < 2 else np.inf)
    for a in vectors(10):
        assert ElasticNorm(0.0, p).value(a) == pytest.approx(0.5 * lp.value(a) ** 2)
        assert ElasticNorm(0.0, p).conjugate(a) == pytest.approx(0.5 * lp.dual_square(a**2))


def test_power_of_few_and_many_kernels():
    assert [dual_power(m) for m in (1, 2)] == [2.0, 2.0]
    assert dual_power(3) == pytest.approx(2 * np.log(3))
    assert ElasticNorm().power_for(100) == pytest.approx(2 * np.log(100) / (2 * np.log(100) - 1))


@pytest.mark.parametrize(("strength", "C"), [(0.0, 1.0), (0.4, 1.0), (3.0, 100.0)])
def test_the_alternation_reaches_the_optimum_of_a_plain_solver(strength, C):
    Ks, y = random_problem(20, 4, seed=5)[:2]
    y = y.ravel()
    factors = [np.linalg.cholesky(K + 1e-10 * np.eye(20)) for K in Ks]
    w = [cp.Variable(20) for _ in Ks]
    norms = cp.hstack([cp.norm(part) for part in w])
    p = ElasticNorm().power_for(4)
    outputs = sum(F @ part for F, part in zip(factors, w, strict=True))
    objective = (
        0.5 * cp.square(cp.pnorm(norms, p)) + strength * cp.sum(norms) + C * cp.sum(cp.pos(1 - cp.multiply(y, outputs)))
    )
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver=cp.CLARABEL)
    bank = bind(
        KernelBank.from_arrays(Ks), np.arange(20.0)[:, None], Recipe(normalize=None), Placement(precision="double")
    )
    result = group_lasso(
        Problem(bank, Hinge(), ElasticNorm(strength), y[None], np.full((1, 20), C), False), tol=1e-6, max_iter=3000
    )
    assert result.certificate.primal == pytest.approx(problem.value, rel=1e-4)
    assert result.certificate.dual <= problem.value * (1 + 1e-5)


@pytest.mark.parametrize(
    ("argument", "value"), [("strength", -1), ("strength", np.inf), ("strength", "1"), ("power", 1), ("power", 3)]
)
def test_bad_arguments_are_named(argument, value):
    with pytest.raises(ValueError, match=argument):
        ElasticNorm(**{argument: value})
