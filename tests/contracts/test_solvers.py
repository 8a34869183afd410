"""Every solver gives the same optimum of one problem, up to its stated gap, whatever the norm and the loss."""

from itertools import product

import numpy as np
import pytest

from manykernels.banks import Placement, Recipe, bind
from manykernels.estimators.solvers import SOLVERS
from manykernels.kernels import Gaussian, KernelBank, Linear
from manykernels.losses import EpsilonInsensitive, Hinge, Huber, Logistic, OneClass, Quantile, Squared, SquaredHinge
from manykernels.norms import ElasticNorm, LpNorm, LpPenalty, MixedNorm
from manykernels.outer.exact_machine import of_one_class
from manykernels.problem import Problem

LOSSES = [Hinge(), SquaredHinge(), Logistic(), Squared(), EpsilonInsensitive(0.1), Quantile(0.8), Huber(0.5)]
L1 = [LpNorm(1)]
LP = [LpNorm(1.5), LpNorm(2)]
EQUAL = [LpNorm(np.inf)]
PENALTIES = [LpPenalty(1), LpPenalty(2)]
GROUPS = [MixedNorm(2)]
ELASTIC = [ElasticNorm(0.1)]
NORMS = L1 + LP + EQUAL + PENALTIES + GROUPS + ELASTIC
# What each takes; the rest it refuses.
TAKES = {
    "auto": NORMS,
    "newton": L1 + LP + PENALTIES + GROUPS,
    "reduced_newton": L1 + LP,
    "group_lasso": NORMS,
    "spg": L1 + LP + EQUAL + PENALTIES,
    "pgd": L1 + LP + EQUAL + PENALTIES,
    "mirror": L1 + GROUPS,
    "simple": L1,
    "silp": L1 + LP + EQUAL,
    "level": L1,
    "hessian": L1,
    "smo": LP + EQUAL,
}
TOL = 1e-3


def problem_of(loss, norm):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 3))
    score = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=40)
    y = score if loss.regression else np.where(score > 0, 1.0, -1.0)
    kernels = [Gaussian(w, columns=[j], group=str(j)) for j, w in product(range(3), (0.3, 1.0, 3.0))] + [Linear()]
    bank = bind(KernelBank(kernels), X, Recipe(normalize="trace"), Placement(precision="double"))
    if isinstance(norm, MixedNorm):
        norm = norm.bind(bank.groups)
    return Problem(bank, loss, norm, y[None], np.full((1, 40), 10.0))


def takes(name, norm, loss):
    if isinstance(loss, OneClass) and name in ("silp", "level", "smo"):  # which begin with coefficients that are all 0
        return False
    return norm in TAKES[name] and (name != "smo" or isinstance(loss, (Hinge, Quantile)))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_all_solvers_agree(norm, loss):
    assert_all_agree(SOLVERS, norm, loss)


def assert_all_agree(solvers, norm, loss, patience=None):
    """``patience`` has larger tolerances for methods that would take long."""
    problem = problem_of(loss, norm)
    tols = {name: (patience or {}).get(name, TOL) for name in solvers if takes(name, norm, loss)}
    results = {name: solvers[name](problem, tol=tol) for name, tol in tols.items()}
    best = min(result.certificate.primal for result in results.values())
    for name, result in results.items():
        assert result.converged, name
        primal, dual = result.certificate.primal, result.certificate.dual
        assert primal <= best + 1.001 * tols[name] * max(abs(primal), abs(dual)), name
        assert dual <= best + 1e-12 * abs(best), name


@pytest.mark.parametrize("nu", [0.1, 0.7, 1.0])
@pytest.mark.parametrize("norm", L1 + LP + EQUAL + GROUPS + ELASTIC, ids=repr)
def test_all_solvers_agree_on_one_class(norm, nu):
    """Coefficients with another sum than 0, a negative optimum; for nu = 1 no other coefficients than the bounds."""
    solvers = {name: of_one_class(solver) for name, solver in SOLVERS.items()}
    assert_all_agree(solvers, norm, OneClass(nu), patience={"mirror": 1e-2})


@pytest.mark.parametrize("loss", [*LOSSES, OneClass(0.3)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_what_a_solver_does_not_take_it_refuses(norm, loss):
    problem = problem_of(loss, norm)
    for name in SOLVERS:
        if not takes(name, norm, loss):
            with pytest.raises(TypeError, match=name):
                SOLVERS[name](problem, tol=TOL)


def test_every_solver_is_in_the_table():
    assert set(TAKES) == set(SOLVERS)
