"""The referee is tried itself: against other definitions, and on models that were tampered with."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from tests.hostile import build, judge, oracle
from tests.hostile.cases import Case, KernelRecipe, case_of_seed
from tests.reference import oracle as reference

THREE = (KernelRecipe(value=0.5), KernelRecipe("linear", group="b"), KernelRecipe("polynomial", columns=(0,)))


@pytest.mark.parametrize("shift", [0.0, 1.6e9])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_distances_are_exact(scale, shift):
    case = Case(scale=scale, shift=shift * scale, n=4, normalize=None)
    data = build.make_data(case)
    width = build.parameter(case.kernels[0], data.plain)
    K = oracle.make_kernels(case, data).train[0]
    for i in range(4):
        for j in range(4):
            pairs = zip(data.plain[i], data.plain[j], strict=True)
            square = sum((Fraction(float(x)) - Fraction(float(z))) ** 2 for x, z in pairs)
            assert float(K[i, j]) == pytest.approx(exp(-float(square / (2 * Fraction(width) ** 2))), rel=1e-12)


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, np.inf])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared"])
def test_certificates_are_those_of_the_reference(loss, p):
    case = Case(kernels=THREE, loss=loss, norm=("lp", p), C=3.0)
    data = build.make_data(case)
    kernels = oracle.make_kernels(case, data).train
    rng = np.random.default_rng(0)
    y = np.where(data.y == 1, 1.0, -1.0)
    beta = rng.uniform(0.1, 1.0, case.n) * y
    beta[y > 0] *= -beta[y < 0].sum() / beta[y > 0].sum()
    weights, b = rng.uniform(size=3), 0.3
    truth = oracle.certificate(
        case, oracle.make_problem(case, data, np.array([0, 1])), kernels, weights, beta[None], [b]
    )
    primal, dual, _ = reference.certificate(kernels.astype(float), y, 3.0, loss, p, weights, beta, b)
    assert (truth.primal, truth.dual) == pytest.approx((primal, dual), rel=1e-10)


@pytest.mark.parametrize("q", [0.5, 0.75, 1.0, 2.0, np.inf])
def test_mixed_certificates_are_those_of_the_reference(q):
    case = Case(kernels=THREE, task="regression", norm=("mixed", q), C=3.0)
    data = build.make_data(case)
    kernels = oracle.make_kernels(case, data).train
    rng = np.random.default_rng(0)
    beta, weights = rng.normal(size=case.n), rng.uniform(size=3)
    problem = oracle.make_problem(case, data, None)
    truth = oracle.certificate(case, problem, kernels, weights, beta[None], [problem.offset])
    groups = ["a"] * 3 if q == 0.5 else ["a", "b", "a"]
    primal, dual, _ = reference.mixed_certificate(
        kernels.astype(float), problem.Y[0].astype(float), 3.0, "squared", q, groups, weights, beta, [0.0]
    )
    assert (truth.primal, truth.dual) == pytest.approx((primal, dual), rel=1e-10)


def judged(fitted, case):
    verdict = judge.Verdict(case)
    judge._look(case, fitted, verdict)
    return verdict.faults


CASE = Case(kernels=THREE, C=10.0)
TAMPERS = {
    "the certificate is wrong": lambda m: setattr(m, "objective_", m.objective_ * 1.001),
    "the certificate is wrong ": lambda m: setattr(m, "weights_", m.weights_ * 0.99),
    "is not finite": lambda m: setattr(m, "gap_", np.nan),
    "but gap_ is within tol": lambda m: setattr(m, "converged_", False),
    "does not sum to 0": lambda m: setattr(m, "dual_coef_", m.dual_coef_ + 1e-3),
    "predictions are wrong": lambda m: setattr(m, "intercept_", m.intercept_ + 1e-4),
}


def test_a_good_model_has_no_fault():
    assert not judged(judge.fit(CASE), CASE)


@pytest.mark.parametrize("name", TAMPERS)
def test_a_model_that_was_tampered_with_has_one(name):
    fitted = judge.fit(CASE)
    TAMPERS[name](fitted.model)
    assert any(name.strip() in fault for fault in judged(fitted, CASE))


def test_one_sentence_of_the_library_is_clear():
    assert judge.judge(Case(C=-1.0)).kind == "refused"


@pytest.mark.parametrize("error", [IndexError("index 3."), np.linalg.LinAlgError("Singular."), ValueError("zero-size")])
def test_raw_errors_are_not_clear(error):
    assert not judge.is_clear(error)


def test_a_seed_says_it_all():
    assert case_of_seed(7) == case_of_seed(7)
    assert eval(repr(case_of_seed(7)), {"Case": Case, "KernelRecipe": KernelRecipe, "inf": np.inf}) == case_of_seed(7)
