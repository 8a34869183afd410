"""Multiple kernel learning: which kernels matter, a predictor on them, and a certificate.

>>> from manykernels import MKLClassifier
>>> from sklearn.datasets import load_breast_cancer
>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import StandardScaler
>>> X, y = load_breast_cancer(return_X_y=True)
>>> model = make_pipeline(StandardScaler(), MKLClassifier()).fit(X[:400], y[:400])
>>> bool(model[-1].gap_ <= 1e-3)
True
"""

from manykernels.estimators import (
    AlignedKernel,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
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
    "TwoStageMKLClassifier",
    "TwoStageMKLRegressor",
    "UFOMKLClassifier",
    "UFOMKLRegressor",
    "load",
    "mkl_path",
    "ufo_path",
]
