"""Missing views: patients for whom a whole measurement is absent.

Breast-cancer measurements in two views, size and shape. A third of the patients lack the shape: these columns are NaN,
and with `missing="ignore"` their kernel values for this view are 0. `MixedNorm(2)` picks few kernels within each view
and lets both take part. The alternative, leaving these patients out, learns from two thirds of the data.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manykernels import MKLClassifier
from manykernels.kernels import Gaussian
from manykernels.norms import MixedNorm

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
size = [name for name in X if any(word in name for word in ("radius", "area", "perimeter"))]
shape = [name for name in X if name not in size]
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
lacking = np.arange(len(X_train)) % 3 == 0
X_train.loc[lacking, shape] = np.nan

kernels = [
    Gaussian(width, columns=view, group=name, label=name)
    for name, view in (("size", size), ("shape", shape))
    for width in (1.0, 4.0, 16.0)
]
model = make_pipeline(
    StandardScaler().set_output(transform="pandas"),
    MKLClassifier(kernels, norm=MixedNorm(2), missing="ignore", C=10.0),
)
model.fit(X_train, y_train)
for name, weight in zip(model[-1].group_names_, model[-1].group_weights_, strict=True):
    print(f"{name}: weight {weight:.2f}")
print(f"all patients:              accuracy {model.score(X_test, y_test):.3f}")
model.fit(X_train[~lacking], y_train[~lacking])
print(f"without those who lack it: accuracy {model.score(X_test, y_test):.3f}")
