"""Multiple kernel learning: which kernels matter, a predictor on them, and a certificate.

>>> from manykernels import MKLClassifier
>>> from sklearn.datasets import load_breast_cancer
>>> X, y = load_breast_cancer(return_X_y=True)
>>> model = MKLClassifier().fit(X[:400], y[:400])
>>> bool(model.gap_ <= 1e-3)
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manykernels.estimators import (
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
        load,
        mkl_path,
        ufo_path,
    )

__version__ = "0.1.0"
__all__ = [
    "AlignedKernel",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLRegressor",
    "MKLRegressorCV",
    "OneClassMKL",
    "TwoStageMKLClassifier",
    "TwoStageMKLRegressor",
    "UFOMKLClassifier",
    "UFOMKLRegressor",
    "load",
    "mkl_path",
    "ufo_path",
]
_PARTS = (
    "alignment",
    "banks",
    "compute",
    "core",
    "datasets",
    "estimators",
    "inner",
    "kernels",
    "literature",
    "losses",
    "norms",
    "outer",
    "problem",
    "reports",
    "tables",
)


def __getattr__(name: str) -> Any:
    # Estimators take seconds to import (compilers, scikit-learn), which `manykernels --help` should not.
    if name in __all__:
        return getattr(import_module("manykernels.estimators"), name)
    if name in _PARTS:
        return import_module(f"manykernels.{name}")
    raise AttributeError(f"module 'manykernels' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})
