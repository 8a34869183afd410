"""Plain projected gradients reach what the spectral ones reach."""

import pytest

from manykernels.literature.pgd import pgd
from manykernels.norms import LpNorm, LpPenalty
from manykernels.outer.spg import spg
from tests.outer.test_spg import penalized


@pytest.mark.parametrize("norm", [LpPenalty(1.0), LpPenalty(1.5, 2.0), LpNorm(2.0)], ids=repr)
def test_the_baseline_reaches_the_same(norm):
    _, problem = penalized(norm)
    first, second = spg(problem, tol=1e-4), pgd(problem, tol=1e-4, max_iter=20_000)
    assert second.converged
    assert first.certificate.primal == pytest.approx(second.certificate.primal, rel=2e-4)
