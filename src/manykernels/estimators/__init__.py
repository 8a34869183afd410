"""scikit-learn estimators."""

from manykernels.estimators.classifier import MKLClassifier
from manykernels.estimators.persistence import load
from manykernels.estimators.regressor import MKLRegressor

__all__ = ["MKLClassifier", "MKLRegressor", "load"]
