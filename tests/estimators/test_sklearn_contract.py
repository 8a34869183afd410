"""scikit-learn's own battery, with no expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from manykernels import (
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    UFOMKLClassifier,
    UFOMKLRegressor,
)
from manykernels.kernels import Gaussian, Linear, Polynomial

ESTIMATORS = [
    MKLClassifier(),
    MKLClassifier(norm=2.0, loss="logistic"),
    MKLClassifier([Linear(), Gaussian(1.0), Gaussian(4.0)], loss="squared_hinge", shared_weights=False, center=True),
    MKLClassifier([Linear(), Gaussian(1.0)], probability=True, class_weight="balanced", normalize="cosine"),
    MKLRegressor(),
    MKLRegressor(norm=2.0, loss="epsilon_insensitive", C=10.0),
    MKLClassifierCV([Linear(), Gaussian(1.0)], Cs=[1.0, 10.0], norms=[1.0, 2.0], cv=3),
    MKLRegressorCV([Linear(), Gaussian(1.0)], Cs=[1.0, 10.0], norms=[1.0], cv=3),
    UFOMKLClassifier(),
    UFOMKLClassifier([Linear(), Polynomial(2)], loss="logistic", step="gradient", average=True, epochs=20),
    UFOMKLClassifier(loss="multiclass_hinge", alpha=1e-3, normalize="cosine"),
    UFOMKLRegressor(C=10.0),
    UFOMKLRegressor([Linear(), Gaussian(1.0)], loss="epsilon_insensitive", C=10.0, epochs=50),
]


@parametrize_with_checks(ESTIMATORS)
def test_contract(estimator, check):
    check(estimator)
