"""Paths over alpha: from no kernel to many."""

import numpy as np
import pytest

from manykernels import UFOMKLClassifier, ufo_path
from manykernels.estimators import ufo
from manykernels.kernels import standard_bank
from tests.estimators.test_ufo import X2, Y2


def test_the_path_begins_with_no_kernel_and_takes_in_more():
    kernels = standard_bank(X2)
    path = ufo_path(kernels, X2, Y2, n_alphas=6, max_iter=30, random_state=0)
    counts = [point.n_kernels for point in path]
    assert counts[0] == 0
    assert counts == sorted(counts)
    assert counts[-1] > 20
    alphas = [point.alpha for point in path]
    assert alphas == sorted(alphas, reverse=True)
    assert path[0].model.objective_ == pytest.approx(len(Y2))  # the losses at 0
    cold = UFOMKLClassifier(kernels, alpha=alphas[3], max_iter=200, random_state=0).fit(X2, Y2)
    assert path[3].model.objective_ == pytest.approx(cold.objective_, rel=0.01)


def test_the_path_walks_given_alphas_and_regression():
    x = np.linspace(-2, 2, 40)[:, None]
    path = ufo_path("standard", x, x[:, 0] ** 2, alphas=[0.001, 0.1], regression=True, random_state=0)
    assert [point.alpha for point in path] == [0.1, 0.001]
    with pytest.raises(ValueError, match="pass alphas instead"):
        ufo_path("standard", X2, Y2, alpha=1.0)
    for wrong in ({"alphas": []}, {"n_alphas": 0}, {"least": 2.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ufo_path("standard", X2, Y2, **wrong)


@pytest.mark.parametrize("options", [{}, {"alphas": [0.1, 0.01]}], ids=["default", "given"])
def test_the_data_are_read_once(monkeypatch, options):
    """And each model knows what a fit by itself would."""
    read, original = [], ufo.read_training

    def counting(estimator, *arguments):
        read.append(estimator)
        return original(estimator, *arguments)

    monkeypatch.setattr(ufo, "read_training", counting)
    path = ufo_path("standard", X2, Y2, n_alphas=3, random_state=0, **options)
    assert len(read) == 1
    alone = UFOMKLClassifier(alpha=path[-1].alpha, random_state=0).fit(X2, Y2)
    for point in path:
        assert set(vars(point.model)) == set(vars(alone))
        assert point.model.n_features_in_ == X2.shape[1]
        np.testing.assert_array_equal(point.model.classes_, alone.classes_)


def test_costs_without_digits_are_refused():
    with pytest.raises(ValueError, match="C times the sample weight must be 0 or at least"):
        ufo_path("standard", X2, Y2, C=1e-200, sample_weight=np.full(len(Y2), 1e-120))
