"""Kernels that are ruled out: what has weight 0 in every solution, and nothing else."""

import numpy as np
import pytest

import manykernels.outer.newton as engine
from manykernels.losses import Hinge, Logistic, SquaredHinge
from manykernels.norms import LpNorm
from manykernels.outer.group_lasso import group_lasso
from manykernels.outer.newton import newton
from manykernels.problem import Problem
from tests.outer.test_newton import sonar_like


@pytest.mark.parametrize("loss", [Hinge(), Logistic(), SquaredHinge()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_screening_is_safe(loss, C, monkeypatch):
    """What was ruled out has weight 0 in a solution without screening, and its quadratic form is below the largest."""
    bank, y = sonar_like()
    problem = Problem(bank, loss, LpNorm(1.0), y, np.full(y.shape, C))
    ruled_out = []
    original = engine.surviving_kernels

    def spy(problem, weights, machine, quad_forms, bound, candidates):
        survive = original(problem, weights, machine, quad_forms, bound, candidates)
        ruled_out.extend(candidates[~survive])
        return survive

    monkeypatch.setattr(engine, "surviving_kernels", spy)
    screened = newton(problem, tol=1e-7)
    monkeypatch.setattr(engine, "_SCREEN_BELOW", 0.0)
    whole = newton(problem, tol=1e-9)
    assert len(ruled_out) > 0.5 * bank.n_kernels
    assert whole.weights[ruled_out].max() == 0.0
    quad_forms = problem.quad_forms(whole.machine)
    assert quad_forms[ruled_out].max() < quad_forms.max()
    assert screened.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-6)
    # The certificate counted the ruled-out kernels as 0: with all of them it is the same.
    again = problem.certificate(screened.weights, screened.machine, problem.quad_forms(screened.machine))
    assert again.dual == pytest.approx(screened.certificate.dual, rel=1e-12)


def test_screening_with_a_wide_gap_rules_out_nothing_wrong():
    """The bound is a proof at any accuracy: also at a rough point far from the optimum."""
    bank, y = sonar_like(n=60)
    problem = Problem(bank, Hinge(), LpNorm(1.0), y, np.full(y.shape, 10.0))
    optimal = newton(problem, tol=1e-9)
    for tol in (0.5, 0.1, 0.01):
        rough = group_lasso(problem, tol=tol)
        quad_forms = problem.quad_forms(rough.machine)
        every = np.arange(bank.n_kernels)
        survive = engine.surviving_kernels(
            problem, rough.weights, rough.machine, quad_forms, rough.certificate.dual, every
        )
        assert optimal.weights[~survive].max(initial=0.0) == 0.0


def test_a_point_below_the_proof_is_checked_against_all_kernels(monkeypatch):
    """Screening that rules out all but the working set, with a bound that no point meets: the result is still right."""
    bank, y = sonar_like()
    problem = Problem(bank, Hinge(), LpNorm(1.0), y, np.full(y.shape, 100.0))
    expected = newton(problem, tol=1e-6).certificate
    looked_at = []

    def rash(problem, weights, machine, quad_forms, bound, candidates):
        return np.zeros(candidates.size, bool)

    def examine(self, weights, machine):
        self.proven_above = np.inf if self.candidates.size < bank.n_kernels else self.proven_above
        certificate, quad_forms = original(self, weights, machine)
        looked_at.append(self.candidates.size)
        return certificate, quad_forms

    original = engine._Run._examine
    monkeypatch.setattr(engine, "surviving_kernels", rash)
    monkeypatch.setattr(engine._Run, "_examine", examine)
    result = newton(problem, tol=1e-6)
    assert set(looked_at) == {bank.n_kernels}
    again = problem.certificate(result.weights, result.machine, problem.quad_forms(result.machine))
    assert again.dual == pytest.approx(result.certificate.dual, rel=1e-12)
    assert result.certificate.primal == pytest.approx(expected.primal, rel=2e-6)
