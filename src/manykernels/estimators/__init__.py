"""scikit-learn estimators."""

from manykernels.estimators.classifier import MKLClassifier
from manykernels.estimators.cv import MKLClassifierCV, MKLRegressorCV
from manykernels.estimators.path import mkl_path
from manykernels.estimators.persistence import load
from manykernels.estimators.regressor import MKLRegressor

__all__ = ["MKLClassifier", "MKLClassifierCV", "MKLRegressor", "MKLRegressorCV", "load", "mkl_path"]
