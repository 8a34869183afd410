"""scikit-learn estimators."""

from manykernels.estimators.aligned import AlignedKernel
from manykernels.estimators.alpha_path import AlphaPoint, ufo_path
from manykernels.estimators.classifier import MKLClassifier
from manykernels.estimators.contributions import Contributions
from manykernels.estimators.cv import MKLClassifierCV, MKLRegressorCV
from manykernels.estimators.path import PathPoint, mkl_path
from manykernels.estimators.persistence import load
from manykernels.estimators.regressor import MKLRegressor
from manykernels.estimators.two_stage import TwoStageMKLClassifier, TwoStageMKLRegressor
from manykernels.estimators.ufo import UFOMKLClassifier, UFOMKLRegressor

__all__ = [
    "AlignedKernel",
    "AlphaPoint",
    "Contributions",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLRegressor",
    "MKLRegressorCV",
    "PathPoint",
    "TwoStageMKLClassifier",
    "TwoStageMKLRegressor",
    "UFOMKLClassifier",
    "UFOMKLRegressor",
    "load",
    "mkl_path",
    "ufo_path",
]
