"""What a certificate may claim: nothing that is not a number, and no digits that rounding took."""

import numpy as np
import pytest

from manykernels.core.results import UNKNOWN, Certificate
from tests.core.test_progress import step


@pytest.mark.parametrize(
    ("primal", "dual", "gap"),
    [(10.0, 9.0, 0.1), (1.0, -1.0, 2.0), (-9.0, -10.0, 0.1), (0.0, 0.0, 0.0), (0.0, -5.0, 1.0)],
)
def test_relative_gap(primal, dual, gap):
    assert Certificate(primal, dual).gap == pytest.approx(gap)


def test_records_are_frozen():
    with pytest.raises(AttributeError):
        step().gap = 0.0


@pytest.mark.parametrize("lost", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("other", [np.nan, np.inf, -np.inf, 0.0, 1.0])
def test_what_is_not_finite_certifies_nothing(lost, other):
    for certificate in (Certificate(lost, other), Certificate(other, lost)):
        assert not certificate.within(1e300)
        assert not certificate.gap <= 1.0


def test_without_a_dual_the_gap_is_not_known():
    certificate = Certificate(1.0, UNKNOWN)
    assert np.isnan(certificate.gap)
    assert not certificate.within(1.0)


def test_the_better_certificate():
    good, poor, useless = Certificate(1.0, 0.9), Certificate(1.0, -0.1), Certificate(1e22, 1e15)
    nothing = Certificate(np.nan, 1.0)
    assert good.improves(poor)
    assert poor.improves(useless)
    assert not useless.improves(poor)
    assert useless.improves(nothing)
    assert not nothing.improves(None)


def test_digits_that_rounding_took_are_not_claimed():
    assert Certificate(2.0, 1.9999).within(1e-3)
    assert not Certificate(2.0, 1.9999, rounding=2e-3).within(1e-3)
    assert np.isnan(Certificate(2.0, UNKNOWN, rounding=1.0).gap)


def test_rounding_beyond_a_hundred_thousandth_is_stated_whether_the_tolerance_is_reached_or_not():
    assert Certificate(10.0, 9.999).rounded(5e-6, 1e-3).rounding == 0.0
    assert Certificate(10.0, 9.999).rounded(2e-5, 1e-3).rounding == 2e-5
    assert Certificate(10.0, 1.0).rounded(2e-5, 1e-3).rounding == 2e-5
