"""scikit-learn's own battery, with no expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from manykernels import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
from manykernels.kernels import Gaussian, Linear

ESTIMATORS = [
    MKLClassifier(),
    MKLClassifier(norm=2.0, loss="logistic"),
    MKLClassifier([Linear(), Gaussian(1.0), Gaussian(4.0)], loss="squared_hinge", shared_weights=False, center=True),
    MKLClassifier([Linear(), Gaussian(1.0)], probability=True, class_weight="balanced", normalize="cosine"),
    MKLRegressor(),
    MKLRegressor(norm=2.0, loss="epsilon_insensitive", C=10.0),
    MKLClassifierCV([Linear(), Gaussian(1.0)], Cs=[1.0, 10.0], norms=[1.0, 2.0], cv=3),
    MKLRegressorCV([Linear(), Gaussian(1.0)], Cs=[1.0, 10.0], norms=[1.0], cv=3),
]


@parametrize_with_checks(ESTIMATORS)
def test_contract(estimator, check):
    check(estimator)
