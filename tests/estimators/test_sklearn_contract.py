"""scikit-learn's own battery, with no expected failure."""

from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from manykernels import (
    AlignedKernel,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    OneClassMKL,
    TwoStageMKLClassifier,
    TwoStageMKLRegressor,
    UFOMKLClassifier,
    UFOMKLRegressor,
)
from manykernels.kernels import Gaussian, GaussianFamily, Linear, Polynomial

ESTIMATORS = [
    MKLClassifier(),
    MKLClassifier(norm=2.0, loss="logistic"),
    MKLClassifier([Linear(), Gaussian(1.0), Gaussian(4.0)], loss="squared_hinge", shared_weights=False, center=True),
    MKLClassifier([Linear(), Gaussian(1.0)], probability=True, class_weight="balanced", normalize="cosine"),
    MKLRegressor(),
    MKLRegressor(norm=2.0, loss="epsilon_insensitive", C=10.0),
    # Few settings and folds: each check is of many fits, and the choice among them is tested in test_cv.py.
    MKLClassifierCV([Linear(), Gaussian(1.0)], Cs=[1.0], norms=[1.0, 2.0], cv=2),
    MKLRegressorCV([Linear(), Gaussian(1.0)], Cs=[1.0, 10.0], norms=[1.0], cv=2),
    OneClassMKL(),
    OneClassMKL([Gaussian(1.0), Gaussian(4.0)], norm=1.0, nu=0.1, normalize="cosine"),
    UFOMKLClassifier(),
    UFOMKLClassifier([Linear(), Polynomial(2)], loss="logistic", step="gradient", average=True, max_iter=20),
    UFOMKLClassifier(loss="multiclass_hinge", alpha=1e-3, normalize="cosine"),
    UFOMKLRegressor(C=10.0),
    UFOMKLRegressor([Linear(), Gaussian(1.0)], loss="epsilon_insensitive", C=10.0, max_iter=50),
    TwoStageMKLClassifier(),
    TwoStageMKLClassifier(GaussianFamily(0.1, 100.0), validation_fraction=None),
    TwoStageMKLClassifier([Linear(), Gaussian(1.0)], alignment="qp", learner=SVC(kernel="precomputed")),
    TwoStageMKLRegressor([Linear(), Gaussian(1.0)], alignment="independent"),
    TwoStageMKLRegressor(),
    AlignedKernel(),
]


def expected_failures(estimator):
    """Each training row is a column of what AlignedKernel returns, so that repeated rows are repeated columns."""
    if not isinstance(estimator, AlignedKernel):
        return {}
    checks = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    return dict.fromkeys(checks, "a column for each training row")


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_contract(estimator, check):
    check(estimator)
