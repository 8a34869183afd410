"""Those who follow a path or a cross-validation hear of each point."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

from manykernels import MKLClassifier, MKLClassifierCV, mkl_path
from manykernels.core.progress import follow
from manykernels.kernels import Gaussian, Linear
from manykernels.norms import LpNorm

X, y = load_iris(return_X_y=True)
KERNELS = [Linear(), Gaussian(1.0)]


def test_each_point_of_a_path():
    heard = []
    with follow(lambda *point: heard.append(point)):
        mkl_path(KERNELS, X[:100], y[:100], Cs=[10.0, 1.0], norms=[1, LpNorm(2)])
    assert heard == [
        (1, 4, "C=1, norm=1"),
        (2, 4, "C=10, norm=1"),
        (3, 4, "C=1, LpNorm(p=2)"),
        (4, 4, "C=10, LpNorm(p=2)"),
    ]


def test_each_point_of_each_fold():
    heard = []
    with follow(lambda *point: heard.append(point)):
        MKLClassifierCV(KERNELS, Cs=[1.0, 10.0], norms=[1.0], cv=3).fit(X, y)
    assert [done for done, _, _ in heard] == list(range(1, 7))
    assert heard[-1] == (6, 6, "fold 3, C=10, norm=1")


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_starting_from_the_fold_before_changes_nothing(norm):
    """Scores are those of fits of their own."""
    search = GridSearchCV(MKLClassifier(KERNELS, norm=norm, tol=1e-6), {"C": [0.1, 10.0]}, cv=3).fit(X, y)
    chosen = MKLClassifierCV(KERNELS, Cs=[0.1, 10.0], norms=[norm], cv=3, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(chosen.scores_.mean(axis=2)[0], search.cv_results_["mean_test_score"], atol=1e-12)
