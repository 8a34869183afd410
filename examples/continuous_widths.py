"""Continuous widths: no grid at all.

`GaussianFamily(low, high)` has all widths between two. The best one is searched and joins, and the weights are learned
anew, until the gap says that no other width would help. `DirichletFamily` does the same for frequencies: it finds the
period of a signal that a grid would have missed.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from manykernels import MKLClassifier
from manykernels.kernels import DirichletFamily, GaussianFamily

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = MKLClassifier(GaussianFamily(0.5, 100.0), C=1.0).fit(X, y)
print(f"gap over all widths {model.gap_:.1e}, exact: {model.gap_is_exact_}")
for name, weight in zip(model.kernel_names_, model.weights_, strict=True):
    print(f"{weight:.3f}  {name}")

x = np.random.default_rng(0).uniform(-10, 10, 200)[:, None]
wave = np.sin(np.sqrt(60) * x[:, 0]) > 0
model = MKLClassifier(DirichletFamily(0, 20), C=1.0, tol=1e-2).fit(x, wave)
print(f"the frequency is {np.sqrt(60):.3f}; found: {model.kernel_names_[model.weights_.argmax()]}")
