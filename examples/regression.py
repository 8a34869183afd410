"""Regression: which measurements matter for the course of a disease?

The standard kernels on ten measurements of diabetes patients: Gaussians of ten widths and polynomials, on all features
and on each. `norm=1` selects few of the 143 kernels; `feature_importances_` divides their weights over the features.
"""

from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_score

from manykernels import MKLRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True)
y = (y - y.mean()) / y.std()
model = MKLRegressor(norm=1.0, C=1.0)
print(f"cross-validated R2 {cross_val_score(model, X, y, cv=5).mean():.3f}")
learned = model.fit(X, y)
for feature, importance in sorted(zip(X.columns, learned.feature_importances_, strict=True), key=lambda pair: -pair[1]):
    print(f"{importance:6.3f}  {feature}")
