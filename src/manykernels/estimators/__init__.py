"""scikit-learn estimators, each imported when it is asked for: whoever fits a classifier needs no other."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manykernels.estimators.aligned import AlignedKernel
    from manykernels.estimators.alpha_path import AlphaPoint, ufo_path
    from manykernels.estimators.classifier import MKLClassifier
    from manykernels.estimators.contributions import Contributions
    from manykernels.estimators.cv import MKLClassifierCV, MKLRegressorCV
    from manykernels.estimators.one_class import OneClassMKL
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
    "OneClassMKL",
    "PathPoint",
    "TwoStageMKLClassifier",
    "TwoStageMKLRegressor",
    "UFOMKLClassifier",
    "UFOMKLRegressor",
    "load",
    "mkl_path",
    "ufo_path",
]
_MODULES = {
    "AlignedKernel": "aligned",
    "AlphaPoint": "alpha_path",
    "Contributions": "contributions",
    "MKLClassifier": "classifier",
    "MKLClassifierCV": "cv",
    "MKLRegressor": "regressor",
    "MKLRegressorCV": "cv",
    "OneClassMKL": "one_class",
    "PathPoint": "path",
    "TwoStageMKLClassifier": "two_stage",
    "TwoStageMKLRegressor": "two_stage",
    "UFOMKLClassifier": "ufo",
    "UFOMKLRegressor": "ufo",
    "load": "persistence",
    "mkl_path": "path",
    "ufo_path": "alpha_path",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
