"""How a program with strict types uses the library: mypy reads this file, nobody runs it."""

from typing import Any

import numpy as np

from manykernels import (
    AlignedKernel,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    TwoStageMKLClassifier,
    UFOMKLClassifier,
    load,
    mkl_path,
)
from manykernels.kernels import Gaussian, KernelBank, Linear, ProductKernels, standard_bank
from manykernels.losses import Hinge, Quantile
from manykernels.norms import LpNorm, MixedNorm

X, y = np.zeros((10, 2)), np.arange(10) % 2
model: MKLClassifier = MKLClassifier([Linear(), Gaussian(1.0, columns=[0])], norm=LpNorm(2), loss=Hinge()).fit(X, y)
gap: float = model.gap_
converged: bool = model.converged_
weights: np.ndarray[Any, Any] = model.weights_
names: list[str] = list(model.kernel_names_)
predicted: np.ndarray[Any, Any] = model.predict(X)
decided: np.ndarray[Any, Any] = model.decision_function(X)
seconds: list[float] = [step.seconds for step in model.trace_]
model.save("model.mkl", extra={"made": "today"})
again = load("model.mkl")
assert isinstance(again, MKLClassifier)
classes: np.ndarray[Any, Any] = again.predict(X)
regression: np.ndarray[Any, Any] = MKLRegressor(standard_bank(X), loss=Quantile(0.9)).fit(X, y).predict(X)
searched: MKLClassifierCV = MKLClassifierCV(Cs=[1.0, 10.0]).fit(X, y)
best: float = searched.C_
stream: UFOMKLClassifier = UFOMKLClassifier().partial_fit(X, y, classes=[0, 1])
staged: TwoStageMKLClassifier = TwoStageMKLClassifier(KernelBank([Linear()])).fit(X, y)
features: np.ndarray[Any, Any] = AlignedKernel(ProductKernels([Linear()], 2)).fit(X, y).transform(X)
for point in mkl_path("standard", X, y, norms=[1.0, MixedNorm(2)]):
    print(point.C, point.model.gap_)
