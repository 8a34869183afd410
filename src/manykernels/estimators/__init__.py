"""scikit-learn estimators."""

from manykernels.estimators.alpha_path import ufo_path
from manykernels.estimators.classifier import MKLClassifier
from manykernels.estimators.cv import MKLClassifierCV, MKLRegressorCV
from manykernels.estimators.path import mkl_path
from manykernels.estimators.persistence import load
from manykernels.estimators.regressor import MKLRegressor
from manykernels.estimators.ufo import UFOMKLClassifier, UFOMKLRegressor

__all__ = [
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLRegressor",
    "MKLRegressorCV",
    "UFOMKLClassifier",
    "UFOMKLRegressor",
    "load",
    "mkl_path",
    "ufo_path",
]
