"""Feature selection: a width for each feature, most of them infinite.

`combination="product"` learns one Gaussian kernel with a width for each feature. With `LpPenalty(1)` most features get
the weight 0, which is an infinite width: they are out, and interactions of the others are in. Here y depends on
the product of the first two of 30 features, which no single feature shows.
"""

import numpy as np
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from manykernels import MKLClassifier
from manykernels.norms import LpPenalty

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 30))
y = X[:, 0] * X[:, 1] > 0

# Features are chosen on one half of the samples; the other half judges them.
model = MKLClassifier(combination="product", norm=LpPenalty(1), C=10.0).fit(X[:300], y[:300])
for j in model.feature_importances_.argsort()[::-1][:4]:
    print(f"feature {j}: importance {model.feature_importances_[j]:.3f}")

selected = SelectFromModel(model, threshold=0.1, prefit=True).transform(X[300:])
print(f"SVC on all {X.shape[1]} features:   {cross_val_score(SVC(C=10.0), X[300:], y[300:]).mean():.3f}")
print(f"SVC on the {selected.shape[1]} selected:   {cross_val_score(SVC(C=10.0), selected, y[300:]).mean():.3f}")
