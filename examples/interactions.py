"""Interactions: which of 1,770 products of features is in the target?

`ProductKernels` holds all products of up to three of twenty linear kernels, the monomials of the features. They are
searched, not listed: the best one joins, all weights are learned anew, and the duality gap says when there is no better
one. The certificate is for all 1,770, also for those that were never computed.
"""

import numpy as np
from sklearn.metrics import r2_score

from manykernels import MKLRegressor
from manykernels.kernels import Linear, ProductKernels

rng = np.random.default_rng(0)
X = rng.normal(size=(260, 20))
y = X[:, 0] * X[:, 3] + 0.5 * X[:, 1] * X[:, 2] * X[:, 5] + 0.1 * rng.normal(size=260)

family = ProductKernels([Linear(columns=[j]) for j in range(20)], degree=3)
model = MKLRegressor(family, norm=1.0, C=0.3, tol=1e-2).fit(X[:160], y[:160])
print(f"{len(family):,} products, {model.active_.size} in the model, gap {model.gap_:.1e}")
print(f"R2 on new samples: {r2_score(y[160:], model.predict(X[160:])):.3f}")
for k in model.weights_.argsort()[::-1][:3]:
    print(f"{model.weights_[k]:.3f}  {model.kernel_names_[k]}")
