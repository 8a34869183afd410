"""Samples that are few for their features: every solver gets the matrices that these make up."""

import numpy as np
import pytest

from manykernels.banks import Placement, bind
from manykernels.kernels import FourierFeatures, Gaussian
from manykernels.losses import Hinge
from manykernels.norms import LpNorm
from manykernels.outer.automatic import AUTO
from manykernels.outer.few_samples import solve_on_matrices
from manykernels.outer.group_lasso import GROUP_LASSO
from manykernels.outer.spg import SPG
from manykernels.problem import Problem

N = 20


def problem_on_features(rank):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 2)), np.sign(rng.normal(size=(1, N)))
    placement = Placement(approximation=FourierFeatures(rank))
    bank = bind([Gaussian(1.0), Gaussian(3.0)], X, placement=placement, seed=0)
    return Problem(bank, Hinge(), LpNorm(1), y, np.ones(y.shape))


@pytest.mark.parametrize("solver", [AUTO, GROUP_LASSO, SPG], ids=lambda solver: solver.name)
def test_matrices_give_what_the_features_give(solver):
    problem = problem_on_features(40)
    on_matrices = solve_on_matrices(solver, problem, tol=1e-4, max_iter=1000, start=None)
    assert on_matrices.converged
    assert on_matrices.machine.beta.shape == (1, N)
    on_features = solver(problem, tol=1e-4, max_iter=1000)
    assert on_matrices.certificate.primal == pytest.approx(on_features.certificate.primal, rel=2e-4)


def test_the_solver_works_on_matrices_alone():
    """Even where it does not come to its end there: the features have no more digits, and take longer."""
    problem, solved_on = problem_on_features(40), []

    def record(problem, **options):
        solved_on.append(problem.bank)
        return GROUP_LASSO(problem, **options | {"max_iter": 2})

    result = solve_on_matrices(type(AUTO)("recorded", record), problem, tol=1e-9, max_iter=9, start=None)
    assert not result.converged
    assert len(solved_on) == 1
    assert problem.bank not in solved_on


def test_few_features_stay_features():
    assert solve_on_matrices(AUTO, problem_on_features(4), tol=1e-4, max_iter=10, start=None) is None


@pytest.mark.parametrize(("n", "rank", "few"), [(20, 12, True), (20, 9, False), (1000, 200, True), (1000, 150, False)])
def test_samples_are_few_up_to_three_for_each_feature_where_they_take_long(n, rank, few):
    X = np.random.default_rng(0).normal(size=(n, 2))
    bank = bind([Gaussian(1.0), Gaussian(3.0)], X, placement=Placement(approximation=FourierFeatures(rank)), seed=0)
    assert bank.has_few_samples == few
